"""``deep_research`` and ``deeper_research``: what is missing is named, the next search asks for that, and it ends."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.shelf import small_base
from workbench.knowledge.library import Library
from workbench.settings import Settings
from workbench.testing import ManualClock, MemoryKnowledge
from workbench.tools import chain_walk as walk
from workbench.tools import deep_research as deep
from workbench.tools import deeper_research as deeper
from workbench.tools import research
from workbench.tools.gaps import Demand
from workbench.tools.scoring import Question
from workbench.tools.tool import StepLog

ENGLISH = [
    ("film", "Lanterns at Dusk", "Lanterns at Dusk is a 1961 drama directed by Mara Velden."),
    ("woman", "Mara Velden", "Mara Velden grew up in Osterby. She married the painter Jonas Hale."),
    ("man", "Jonas Hale", "Jonas Hale was a painter who studied at the Royal Academy of Tarn."),
    ("town", "Osterby", "Osterby is a small town in the north with an old church."),
    ("second", "Rain on Tin", "Rain on Tin is a comedy directed by Otto Brandt."),
    ("otto", "Otto Brandt", "Otto Brandt was born in Welmar in 1921."),
    ("mara2", "Velden crater", "A crater that was born of a meteor. Its director is unknown."),
    *((f"noise{n}", f"Ledger {n}", f"A ledger of accounts number {n} was kept in the office.") for n in range(12)),
    *((f"life{n}", f"Person {n}", f"Person {n} was born, studied and worked in an office.") for n in range(6)),
]
CHINESE = [
    ("film", "夜航灯", "《夜航灯》是一部剧情片，由林若川执导。"),
    ("man", "林若川", "林若川，导演，成长于临溪镇，妻子是画家苏晚晴。"),
    ("wife", "苏晚晴", "苏晚晴是一位画家，毕业于云泽美术学院。"),
    ("town", "临溪镇", "临溪镇是一座古镇，以木桥闻名。"),
    *((f"noise{n}", f"账册{n}号", f"这是办公室里的第{n}本账册，记录了收支。") for n in range(12)),
]
WHERE = "Where did the painter study who married the director of Lanterns at Dusk?"
TOOLS = {"deep_research": (deep.TOOL, deep.DEEP), "deeper_research": (deeper.TOOL, deeper.DEEPER)}


@pytest.fixture(scope="module")
def english(tmp_path_factory):
    library = small_base(tmp_path_factory.mktemp("english"), ENGLISH)
    yield library.get("base")
    library.close()


@pytest.fixture(scope="module")
def by_meaning(tmp_path_factory):
    """The English and the Chinese texts with an embedding model that knows what words mean."""
    made = [small_base(tmp_path_factory.mktemp("meaning"), texts, "use") for texts in (ENGLISH, CHINESE)]
    yield [library.get("base") for library in made]
    for library in made:
        library.close()


@pytest.fixture(scope="module")
def chinese(tmp_path_factory):
    library = small_base(tmp_path_factory.mktemp("chinese"), CHINESE)
    yield library.get("base")
    library.close()


def asked(knowledge, query, tool="deep_research", clock=None, **more):
    log = StepLog(clock)
    found, reach = TOOLS[tool]
    given_input = found.input_schema(query=query, **more)
    return deep.researched(tool, reach, given_input, knowledge, log, threading.Event()), log


def documents(output):
    return list(dict.fromkeys(r["metadata"]["doc_id"] for r in output.results))


def of_kind(log, kind):
    return [step["detail"] for step in log.sub_steps if step["name"].startswith(kind)]


# --- what is missing ---


def test_what_is_missing_is_said_of_each_name_by_itself(english):
    output, log = asked(english, "Where were the directors of Lanterns at Dusk and Rain on Tin born?")
    first = of_kind(log, "missing")[0]["missing"]
    assert first == [
        {"kind": "word", "what": "born", "side": "Lanterns at Dusk"},
        {"kind": "word", "what": "born", "side": "Rain on Tin"},
    ]
    queries = {ask["query"]: ask["side"] for ask in output.thoughts[0]["asks"]}
    assert queries == {"Mara Velden born": "Lanterns at Dusk", "Otto Brandt born": "Rain on Tin"}
    second = of_kind(log, "missing")[1]["missing"]
    assert second == [{"kind": "word", "what": "born", "side": "Lanterns at Dusk"}]
    assert {"film", "second", "woman", "otto"} == set(documents(output)[:4])


def test_a_name_that_nothing_holds_is_missing_and_asked_for():
    knowledge = MemoryKnowledge("m", {"Arvel": "Arvel met a king.", "Borun": "Borun built a river."})
    demand = Demand.of(Question.of("Who built Arvel?", knowledge), "Who built Arvel?", knowledge)
    assert [side.name for side in demand.sides] == ["Arvel"]
    missing = research.lacks(demand.sides[0], False, demand.left(set()), set())
    assert [(lack.kind, lack.what, lack.side) for lack in missing] == [
        ("name", "Arvel", "Arvel"),
        ("word", "built", "Arvel"),
    ]


def test_a_field_that_documents_have_is_missing_as_a_field(tmp_path):
    path = tmp_path / "films.jsonl"
    films = [
        {"id": "a", "title": "Lanterns at Dusk", "text": "A film about lamps.", "composer": "Mara Velden"},
        {"id": "b", "title": "Rain on Tin", "text": "A film about weather."},
    ]
    path.write_text("\n".join(map(json.dumps, films)), encoding="utf-8")
    library = Library(tmp_path / "knowledge", Settings.load(embedding_model="hashing", names="rules"))
    library.add("base", [path])
    knowledge = library.get("base")
    there, _ = asked(knowledge, "Who is the composer of Lanterns at Dusk?")
    assert (there.stopped, there.missing) == ("covered", [])
    gone, log = asked(knowledge, "Who is the composer of Rain on Tin?")
    assert of_kind(log, "missing")[0]["missing"] == [{"kind": "field", "what": "composer", "side": "Rain on Tin"}]
    assert gone.missing == ["composer"] and gone.stopped == "nothing new"
    library.close()


def test_words_of_another_script_are_not_missed(english):
    output, _ = asked(english, "《Lanterns at Dusk》的导演是谁？")
    assert output.missing == []


@pytest.mark.parametrize("tool", TOOLS)
def test_what_is_missing_is_named_as_the_texts_could_say_it(by_meaning, tool):
    english, chinese = by_meaning
    there, _ = asked(english, "谁是导演？", tool)
    missing = [lack["what"] for lack in there.thoughts[0]["missing"]]
    assert missing in (["director"], []) and there.missing == []
    here, _ = asked(chinese, "Who is the wife of the director of 夜航灯, and how tall?", tool)
    said = json.dumps([thought["missing"] for thought in here.thoughts], ensure_ascii=False)
    assert not any(word in said for word in ("wife", "director", "tall")), "how to say tall nobody knows"


def test_a_chain_is_followed_in_the_language_of_the_texts(by_meaning):
    output, _ = asked(by_meaning[1], "Who is the wife of the director of 夜航灯?")
    assert "man" in documents(output)[:2] and output.stopped == "covered"


def test_a_long_list_has_its_ways_too(english, monkeypatch):
    monkeypatch.setattr(walk, "POOL", 1)
    output, _ = asked(english, WHERE, "deeper_research")
    assert len(output.results) > 5 and output.paths


def test_a_way_goes_only_over_what_a_search_has_given(english, monkeypatch):
    monkeypatch.setattr(research, "HITS", 1)
    real = walk.Chains.best
    monkeypatch.setattr(
        walk.Chains, "best", lambda chains, most: real(chains, 50)[2:4] if most < 50 else real(chains, most)
    )
    output, _ = asked(english, WHERE, "deeper_research")
    steps = [s for r in output.results for s in r["metadata"].get("chain", {}).get("steps", ())]
    assert output.results and {s["from"] for s in steps} <= {r["source_id"] for r in output.results}


# --- what is asked next ---


@pytest.mark.parametrize("tool", TOOLS)
def test_the_next_search_asks_the_name_that_was_found_for_what_is_missing(english, tool):
    output, _ = asked(english, WHERE, tool)
    assert set(documents(output)[:3]) == {"film", "woman", "man"}
    man = next(r for r in output.results if r["metadata"]["doc_id"] == "man")
    assert [(step["from"], step["to"]) for step in man["metadata"]["chain"]["steps"]] == [
        ("film#0", "woman#0"),
        ("woman#0", "man#0"),
    ]
    assert output.stopped == "covered" and output.missing == []
    assert any("Mara Velden names Jonas Hale" in path for path in output.paths)


def test_thoughts_carry_their_evidence(english):
    output, log = asked(english, WHERE)
    names = [step["name"] for step in log.sub_steps]
    assert names[:2] == ["link", f"search 1: {WHERE}"] and names[-1] == "choose"
    assert names[2].startswith("missing 1: painter, study, married")
    assert names[3] == "search 2: Mara Velden painter study married"
    first, second = output.thoughts[:2]
    assert first["evidence"] == ["film#0"]
    assert first["asks"][0]["query"] == "Mara Velden painter study married"
    assert first["asks"][0]["because"] == "Lanterns at Dusk is a 1961 drama directed by Mara Velden."
    assert first["asks"][0]["evidence"] == ["woman#0"] == second["evidence"]
    assert first["says"].startswith("Found “Lanterns at Dusk”. Missing: painter (Lanterns at Dusk), study")
    assert "Asking for “Mara Velden painter study married”" in first["says"]
    woman = next(r for r in output.results if r["metadata"]["doc_id"] == "woman")
    assert woman["metadata"]["research"]["round"] in (1, 2)
    assert of_kind(log, "search 2")[0]["evidence"] == ["Mara Velden"]


@pytest.mark.parametrize("tool", TOOLS)
def test_research_in_chinese(chinese, tool):
    output, log = asked(chinese, "《夜航灯》的导演的妻子毕业于哪所学院？", tool)
    assert set(documents(output)[:3]) == {"film", "man", "wife"}
    assert output.stopped == "covered"
    missing = [lack["what"] for lack in of_kind(log, "missing")[0]["missing"]]
    if tool == "deep_research":
        assert missing and "毕业于" in "".join(missing)
        assert any(ask["query"].startswith("林若川") for ask in output.thoughts[0]["asks"])
        assert (
            output.thoughts[0]["says"].startswith("已找到“夜航灯”。还缺：") and "夜航灯的" in output.thoughts[0]["says"]
        )


# --- when it ends ---


def test_it_ends_at_once_when_everything_is_covered(english):
    output, log = asked(english, "Who directed Lanterns at Dusk?")
    assert output.stopped == "covered" and output.missing == []
    names = ["link", "search 1: Who directed Lanterns at Dusk?", "missing 1", "choose"]
    assert [step["name"] for step in log.sub_steps] == names


@pytest.mark.parametrize("tool", TOOLS)
def test_it_ends_when_nothing_new_comes_and_says_what_is_still_missing(english, tool):
    output, log = asked(english, "Which award for zither did the director of Lanterns at Dusk win?", tool)
    assert output.stopped in ("nothing new", "rounds") and "zither" in output.missing
    queries = [step["query"] for step in of_kind(log, "search")]
    assert len(queries) == len({(q, s["tool"]) for q, s in zip(queries, of_kind(log, "search"), strict=True)})
    assert len(of_kind(log, "missing")) <= TOOLS[tool][1].rounds


def test_it_gives_what_it_has_when_its_time_is_nearly_over(english, monkeypatch):
    clock, real = ManualClock(), research.hybrid.search
    monkeypatch.setattr(research.hybrid, "search", lambda *given: clock.advance(2.0) or real(*given))
    whole, log = asked(english, WHERE, clock=clock, timeout_s=60)
    assert whole.stopped == "covered"
    short, log = asked(english, WHERE, clock=clock, timeout_s=5.5)
    assert short.stopped == "time" and len(of_kind(log, "search")) == 2 and "film" in documents(short)
    least, log = asked(english, WHERE, clock=clock, timeout_s=0.1)
    assert least.stopped == "time" and len(of_kind(log, "search")) == 1 and documents(least)[0] == "film"


async def test_nobody_waits_and_no_other_search_begins(english, monkeypatch):
    begun, go_on, calls = threading.Event(), threading.Event(), []
    real = research.hybrid.search

    def slow(*given):
        calls.append(given[0].query)
        begun.set()
        assert go_on.wait(30)
        return real(*given)

    monkeypatch.setattr(research.hybrid, "search", slow)
    work = asyncio.create_task(deep.TOOL(deep.Input(query=WHERE), english, StepLog()))
    await asyncio.to_thread(begun.wait, 30)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    go_on.set()
    await asyncio.get_running_loop().shutdown_default_executor()  # waits for the thread to end
    assert calls == [WHERE]


# --- what holds for any question ---


@pytest.mark.parametrize("tool", TOOLS)
def test_the_same_bytes_twice_and_scores_that_fall(english, tool):
    one, two = (asked(english, WHERE, tool)[0] for _ in range(2))
    assert one.model_dump_json() == two.model_dump_json()
    scores = [r["score"] for r in one.results]
    assert scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)
    assert [r["metadata"]["rank"] for r in one.results] == list(range(1, len(scores) + 1))


NAMES = ["Arvel", "Borun", "Cestra", "Dovane", "Elmir"]
TEXTS = st.lists(
    st.lists(st.sampled_from([*NAMES, "river", "built", "king"]), min_size=1, max_size=8), min_size=5, max_size=5
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts=TEXTS, question=st.lists(st.sampled_from([*NAMES, "river", "king", "who"]), min_size=1, max_size=5))
def test_any_research_ends_finds_nothing_twice_and_its_paths_are_said_by_their_sentences(texts, question):
    knowledge = MemoryKnowledge("m", {n: f"{' '.join(t)}." for n, t in zip(NAMES, texts, strict=True)})
    for tool in TOOLS:
        output, log = asked(knowledge, " ".join(question), tool)
        ids = [r["source_id"] for r in output.results]
        assert len(ids) == len(set(ids))
        assert output.stopped in ("covered", "nothing new", "rounds")
        assert len(of_kind(log, "search")) <= 3 + len(question) * 20
        for result in output.results:
            for step in result["metadata"].get("chain", {}).get("steps", ()):
                assert step["from"] != step["to"] and step["surface"] in step["sentence"]


def test_nothing_asked_is_nothing_missed(english):
    output, _ = asked(english, "?")
    assert output.stopped == "covered" and output.missing == []


async def test_as_a_tool_of_a_plan_its_time_is_the_steps(english):
    output = await deeper.TOOL(deeper.TOOL.input_schema(query=WHERE, top_k=3), english, StepLog())
    assert len(output.results) == 3 and output.candidates
    assert "missing" in deep.TOOL.description and "wider" in deeper.TOOL.description
