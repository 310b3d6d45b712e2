"""The fusion graph: two sources at once, five strategies, asked again where that falls short, the best kept."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from workbench.errors import WorkbenchError
from workbench.graphs import fusion
from workbench.graphs.fusion import build_fusion, config_of, query_of, should_retry
from workbench.ports import Context
from workbench.tools.fusing import STRATEGIES, cascade
from workbench.tools.registry import StepLog

ASKED = {"session_id": "s", "canvas_path": "", "operation": "explanation", "messages": []}
RANKING = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 9), max_size=8).map(
    lambda scores: sorted(((i, float(s)) for i, s in scores.items()), key=lambda pair: (-pair[1], pair[0]))
)


async def ask(wb: Any, query: str, context: Context | None = None, **options: Any) -> dict[str, Any]:
    graph = build_fusion().compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": uuid.uuid4().hex, "kb_prefix": "film", **options}}
    return await graph.ainvoke({**ASKED, "query": query}, config, context=context or wb.ports())


# --- Strategies ---


@pytest.mark.parametrize("name", STRATEGIES)
@given(words=RANKING, meaning=RANKING)
def test_a_fusion_keeps_everything_once_and_is_the_same_again(name, words, meaning):
    fused = STRATEGIES[name]({"words": words, "meaning": meaning}, None)
    assert sorted(i for i, _ in fused) == sorted({i for i, _ in [*words, *meaning]})
    assert fused == sorted(fused, key=lambda pair: (-pair[1], pair[0]))
    assert STRATEGIES[name]({}, None) == []


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != "cascade"])
@given(words=RANKING, meaning=RANKING)
def test_found_by_both_never_ranks_below_found_by_one_that_no_source_puts_before_it(name, words, meaning):
    scores = dict(STRATEGIES[name]({"words": words, "meaning": meaning}, None))
    place = [{i: n for n, (i, _) in enumerate(ranking)} for ranking in (words, meaning)]
    for both in set(place[0]) & set(place[1]):
        for source, other in ((place[0], place[1]), (place[1], place[0])):
            for one in set(source) - set(other):
                assert source[one] < source[both] or scores[one] <= scores[both]


@given(words=RANKING, meaning=RANKING)
def test_a_cascade_puts_the_first_source_first(words, meaning):
    order = [i for i, _ in cascade({"words": words, "meaning": meaning})]
    assert order[: len(words)] == [i for i, _ in words]


# --- The graph ---


async def test_what_is_found_at_once_is_not_asked_for_again(wb):
    state = await ask(wb, "Who directed Memento?")
    assert state["quality_score"] >= 0.7 and state["retry_count"] == 0
    assert "Nolan" in state["reranked_results"][0]["evidence"] + str(state["reranked_results"][0]["metadata"]["fields"])
    assert {hit["source"] for hit in state["vector_results"]} == {"bm25", "dense"}
    assert {hit["source"] for hit in state["graph_results"]} == {"graph"}
    ranks = [result["metadata"]["rank"] for result in state["reranked_results"]]
    assert ranks == list(range(1, len(ranks) + 1)) and {one["chunk_id"] for one in state["fused_results"]} >= {
        result["source_id"] for result in state["reranked_results"]
    }


async def test_one_pass_is_what_hybrid_search_finds(wb):
    base, tool = wb.knowledge.get("film"), wb.ports().tools["hybrid_search"]
    for query in ("Who directed Memento?", "喜宴讲了什么？", "films about dreams within dreams"):
        found = await tool(tool.input_schema(query=query, top_k=10), base, StepLog())
        state = await ask(wb, query, max_retries=0)
        assert state["reranked_results"] == found.results


async def test_a_hard_question_is_asked_again_and_the_best_pass_stands(wb, monkeypatch):
    given, passes = iter([0.5, 0.4, 0.9]), []

    def quality(question: str, found: Any, base: Any) -> float:
        passes.append([result["result_id"] for result in found])
        return next(given)

    monkeypatch.setattr(fusion, "quality_of", quality)
    state = await ask(wb, "Where was the director of The Wedding Banquet born?")
    assert state["quality_score"] == 0.9 and state["retry_count"] == 2 and len(passes) == 3
    assert {ask["pass"] for ask in state["asked"]} == {1, 2, 3} and {hit["pass"] for hit in state["graph_results"]} == {
        1,
        2,
        3,
    }
    assert [result["result_id"] for result in state["reranked_results"]] == passes[2]


async def test_at_the_limit_the_best_pass_is_given_and_says_which_it_was(wb, monkeypatch):
    given = iter([0.2, 0.6, 0.1, 0.3])
    monkeypatch.setattr(fusion, "quality_of", lambda *_: next(given))
    state = await ask(wb, "Where was the director of The Wedding Banquet born?", max_retries=3)
    assert state["retry_count"] == 3 and state["quality_score"] == 0.6 and state["best"]["retry_count"] == 1


async def test_it_ends_where_nothing_else_can_be_asked(wb, monkeypatch):
    monkeypatch.setattr(fusion, "quality_of", lambda *_: 0.0)
    monkeypatch.setattr(fusion, "further", lambda *_: [])
    state = await ask(wb, "Memento")
    assert state["retry_count"] == 0 and state["asked"] == [{"pass": 1, "query": "Memento"}]


async def test_both_sources_work_at_once_and_a_sure_cascade_asks_one(wb, monkeypatch):
    import threading

    both = threading.Barrier(2, timeout=30)
    retrieve = fusion._retrieve

    def meeting(*args: Any) -> Any:
        both.wait()
        return retrieve(*args)

    monkeypatch.setattr(fusion, "_retrieve", meeting)
    assert (await ask(wb, "Who directed Memento?"))["vector_results"]
    monkeypatch.setattr(fusion, "_retrieve", retrieve)
    sure = await ask(wb, "Memento", fusion_strategy="cascade")
    assert "vector_results" not in sure and sure["reranked_results"][0]["metadata"]["title"] == "Memento"
    unsure = await ask(wb, "a quiet story of two old friends", fusion_strategy="cascade", max_retries=0)
    assert unsure["vector_results"]


async def test_it_is_kept_between_nodes_and_goes_on(wb):
    saver = InMemorySaver()
    graph = build_fusion().compile(checkpointer=saver, interrupt_before=["rerank_results"])
    config: Any = {"configurable": {"thread_id": "t", "kb_prefix": "film"}}
    given = {**ASKED, "messages": [HumanMessage("Who directed Memento?")]}
    assert "reranked_results" not in await graph.ainvoke(given, config, context=wb.ports())
    kept = (await graph.aget_state(config)).values
    assert "reading" not in kept, "what a base keeps in memory is in no checkpoint"
    done = await graph.ainvoke(None, config, context=wb.ports())
    assert done["reranked_results"] == (await ask(wb, "Who directed Memento?"))["reranked_results"]


def test_its_input_has_a_published_schema():
    schema = build_fusion().compile().get_input_jsonschema()
    assert {"session_id", "canvas_path", "operation"} <= set(schema["required"])
    names = ["decomposition", "scoring", "explanation", "verification", "review"]
    assert schema["properties"]["operation"]["enum"] == names


def test_should_retry_reads_what_a_call_configures():
    state: Any = {"quality_score": 0.5, "retry_count": 1, "asked": [{"pass": n, "query": "a"} for n in (1, 2, 3)]}
    assert should_retry(state, {}) == "retry"
    assert should_retry(state, {"configurable": {"quality_threshold": 0.4}}) == "end"
    assert should_retry(state, {"configurable": {"max_retries": 1}}) == "end"
    assert should_retry({**state, "asked": [{"pass": n, "query": "a"} for n in (1, 2)]}, {}) == "end"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"fusion_strategy": "best"}, "rrf, weighted, cascade"),
        ({"quality_threshold": 2}, "quality_threshold cannot be 2"),
        ({"max_retries": -1}, "max_retries cannot be -1"),
    ],
)
def test_a_wrong_option_is_named(options, told):
    with pytest.raises(WorkbenchError, match=told):
        config_of({"configurable": options})


async def test_nothing_asked_and_no_base_named_are_errors(wb):
    with pytest.raises(WorkbenchError, match="Nothing is asked"):
        query_of({"messages": []})
    with pytest.raises(WorkbenchError, match="nosuch"):
        await ask(wb, "Memento", kb_prefix="nosuch")
