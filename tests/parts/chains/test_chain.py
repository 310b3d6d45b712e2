"""Chains of searches: over names, shared phrases and typed documents."""

import asyncio
import itertools
import threading

import pytest

from tests.films import small_base
from workbench.parts.chains import chain
from workbench.parts.chains.chain import ChainOutput, DeepResearchInput, search
from workbench.testing import ManualClock, MemoryKnowledge
from workbench.tools import hybrid
from workbench.tools.tool import Search, StepLog


@pytest.fixture(scope="module")
def english(tmp_path_factory):
    library = small_base(tmp_path_factory.mktemp("english"), "chain_english")
    yield library.get("base")
    library.close()


def explored(knowledge, query):
    log = StepLog()
    return ChainOutput(**search(Search(query=query), knowledge, log)), log


def documents(output):
    return list(dict.fromkeys(r["metadata"]["doc_id"] for r in output.results))


def test_a_chain_leads_from_the_film_over_its_director_to_her_husband(english):
    output, log = explored(english, "Where did the husband of the director of Lanterns at Dusk study?")
    assert documents(output)[:2] == ["film", "woman"] and "man" in documents(output)[:4]
    man = next(r for r in output.results if r["metadata"]["doc_id"] == "man")
    assert [(step["from"], step["to"], step["by"]) for step in man["metadata"]["chain"]["steps"]] == [
        ("film#0", "woman#0", "title"),
        ("woman#0", "man#0", "title"),
    ]
    assert "Mara K. Velden names Jonas Hale (“Her husband was Jonas Hale.”)" in man["metadata"]["chain"]["says"]
    assert output.paths[0] == output.results[1]["metadata"]["chain"]["says"]
    assert man["metadata"]["chain"]["says"] in output.paths
    assert [step["name"] for step in log.sub_steps] == ["link", "seeds", "step", "choose", "ask on", "calibrate"]


def test_a_chain_in_chinese(tmp_path):
    library = small_base(tmp_path, "chain_chinese")
    output, _ = explored(library.get("base"), "《夜航灯》的导演的妻子毕业于哪所学院？")
    library.close()
    assert documents(output)[:3] == ["film", "man", "wife"]
    wife = next(r for r in output.results if r["metadata"]["doc_id"] == "wife")
    assert "林若川提到苏晚晴" in wife["metadata"]["chain"]["says"]


WHERE = "Where did the husband of the director of Lanterns at Dusk study?"
TOOLS = {tool.name: tool for tool in (chain.DEEP, chain.DEEPER)}


def research(knowledge, query, tool="deep_research", clock=None, **options):
    log = StepLog(clock)
    tool_input = DeepResearchInput(query=query, **{"timeout_s": 300, **options})
    return asyncio.run(TOOLS[tool](tool_input, knowledge, log)), log


@pytest.mark.parametrize("tool", TOOLS)
def test_chains_lead_to_the_answer(english, tool):
    output, _ = research(english, WHERE, tool, top_k=5)
    assert output.model_dump_json() == research(english, WHERE, tool, top_k=5)[0].model_dump_json()
    scores = [r["score"] for r in output.results]
    assert len(scores) == 5 and scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)
    assert {"film", "woman", "man"} <= set(documents(output))
    assert output.stopped in ("nothing new", "rounds")
    steps = [r["metadata"]["chain"]["steps"] for r in output.results if "chain" in r["metadata"]]
    assert steps and all(a["to"] == b["from"] for way in steps for a, b in itertools.pairwise(way))
    assert any("Mara K. Velden" in path for path in output.paths)
    assert {name for r in output.results for name in r["metadata"]["tools"]} == {tool}


@pytest.mark.parametrize("tool", TOOLS)
def test_research_over_twins_in_memory_without_links_ends(tool):
    texts = {"mill": "The mill was built by Ann Lee.", "lee": "Ann Lee was born in Tarn."}
    output, log = research(MemoryKnowledge("m", texts), "Where was the builder of the mill born?", tool)
    assert set(documents(output)) == {"mill", "lee"} and len(output.results) == 2, "nothing is found twice"
    assert output.stopped in ("nothing new", "rounds") and len(log.sub_steps) <= 4


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
    work = asyncio.create_task(chain.DEEP(DeepResearchInput(query=WHERE), english, log))
    await asyncio.to_thread(begun.wait, 30)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    released.set()
    await asyncio.get_running_loop().shutdown_default_executor()  # waits for the thread to end
    assert queries == [WHERE] and len(log.sub_steps) == 1
