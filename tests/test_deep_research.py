"""``deep_research`` and ``deeper_research``: they follow chains, and stop."""

from __future__ import annotations

import asyncio
import itertools
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.linked import LinkedKnowledge
from tests.shelf import small_base
from workbench.testing import ManualClock
from workbench.tools import deep_research, hybrid
from workbench.tools.deep_research import DeepResearchInput
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
WHERE = "Where did the painter study who married the director of Lanterns at Dusk?"
TOOLS = {tool.name: tool for tool in (deep_research.DEEP, deep_research.DEEPER)}


@pytest.fixture(scope="module")
def english(tmp_path_factory):
    library = small_base(tmp_path_factory.mktemp("english"), ENGLISH)
    yield library.get("base")
    library.close()


def research(knowledge, query, tool="deep_research", clock=None, **options):
    log = StepLog(clock)
    tool_input = DeepResearchInput(query=query, **{"timeout_s": 300, **options})
    return asyncio.run(TOOLS[tool](tool_input, knowledge, log)), log


def documents(output):
    return list(dict.fromkeys(r["metadata"]["doc_id"] for r in output.results))


@pytest.mark.parametrize("tool", TOOLS)
def test_chains_lead_to_the_answer(english, tool):
    output, _ = research(english, WHERE, tool)
    assert {"film", "woman", "man"} <= set(documents(output)[:5])
    assert output.stopped in ("nothing new", "rounds")
    steps = [r["metadata"]["chain"]["steps"] for r in output.results if "chain" in r["metadata"]]
    assert steps and all(a["to"] == b["from"] for way in steps for a, b in itertools.pairwise(way))
    assert any("Mara Velden" in path for path in output.paths)
    assert {name for r in output.results for name in r["metadata"]["tools"]} == {tool}


def test_every_search_is_a_sub_step_and_every_round_a_thought(english):
    output, log = research(english, WHERE)
    assert [step["detail"]["tool"] for step in log.sub_steps][:2] == ["hybrid_search", "chain_exploration"]
    assert log.sub_steps[0]["name"] == f"search 1: {WHERE}"
    assert [thought["round"] for thought in output.thoughts] == [*range(1, len(output.thoughts) + 1)]
    first = output.thoughts[0]
    queries = [step["detail"]["query"] for step in log.sub_steps if step["name"].startswith("search 2")]
    assert [ask["query"] for ask in first["asks"]] == queries
    assert set(first["evidence"]) <= {r["source_id"] for r in output.results}
    assert output.results[0]["metadata"]["research"] == {"round": 1, "query": WHERE}


def test_it_returns_what_it_has_when_its_time_is_nearly_over(english, monkeypatch):
    clock, tool = ManualClock(), hybrid.TOOL.function
    monkeypatch.setitem(hybrid.TOOL.__dict__, "function", lambda *given: clock.advance(2.0) or tool(*given))
    output, log = research(english, WHERE, clock=clock, timeout_s=1)
    assert output.stopped == "time" and len(log.sub_steps) == 1 and documents(output)[0] == "film"


async def test_a_cancelled_step_begins_no_other_search(english, monkeypatch):
    begun, released, queries, tool = threading.Event(), threading.Event(), [], hybrid.TOOL.function

    def slow(*given):
        queries.append(given[0].query)
        begun.set()
        assert released.wait(30)
        return tool(*given)

    monkeypatch.setitem(hybrid.TOOL.__dict__, "function", slow)
    log = StepLog()
    work = asyncio.create_task(deep_research.DEEP(DeepResearchInput(query=WHERE), english, log))
    await asyncio.to_thread(begun.wait, 30)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    released.set()
    await asyncio.get_running_loop().shutdown_default_executor()  # waits for the thread to end
    assert queries == [WHERE] and len(log.sub_steps) == 1


@pytest.mark.parametrize("tool", TOOLS)
def test_the_same_bytes_twice_and_scores_that_fall(english, tool):
    first, second = (research(english, WHERE, tool, top_k=5)[0] for _ in range(2))
    assert first.model_dump_json() == second.model_dump_json()
    scores = [r["score"] for r in first.results]
    assert len(scores) == 5 and scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)


NAMES = ["Arvel", "Borun", "Cestra", "Dovane", "Elmir"]
TEXTS = st.lists(
    st.lists(st.sampled_from([*NAMES, "river", "built", "king"]), min_size=1, max_size=8), min_size=5, max_size=5
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts=TEXTS, question=st.lists(st.sampled_from([*NAMES, "river", "king", "who", "?"]), min_size=1, max_size=5))
def test_any_research_ends_and_finds_nothing_twice(texts, question):
    knowledge = LinkedKnowledge("m", {n: f"{' '.join(t)}." for n, t in zip(NAMES, texts, strict=True)})
    for tool in TOOLS:
        output, log = research(knowledge, " ".join(question), tool)
        ids = [r["source_id"] for r in output.results]
        assert len(ids) == len(set(ids)) and output.stopped in ("nothing new", "rounds")
        assert len(log.sub_steps) <= 4
        for result in output.results:
            for step in result["metadata"].get("chain", {}).get("steps", ()):
                assert step["from"] != step["to"]
