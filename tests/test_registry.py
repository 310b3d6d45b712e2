"""The registry: tools of ours and of others, and plans checked against them."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from workbench.errors import PlanError, ToolError
from workbench.plans import Plan, PlanStep
from workbench.testing import MemoryKnowledge
from workbench.tools.registry import BUILT_IN, StepLog, ToolRegistry, check, read_input, require
from workbench.tools.tool import Search

NOTES = MemoryKnowledge("film", {"a": "Hulk is a film."})


def run(tool: Any, **values: Any) -> BaseModel:
    return asyncio.run(tool(read_input(tool, values), NOTES, StepLog()))


def plan(*steps: dict[str, Any]) -> Plan:
    return Plan(steps=[PlanStep(objective="", **step) for step in steps])


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry()


def test_ours_state_everything_that_a_plan_a_form_and_a_drawing_need(registry):
    assert list(registry) == list(BUILT_IN) and len(registry) >= 7
    for name, tool in registry.items():
        assert tool.name == name
        assert tool.description.endswith(".") and tool.calibration.endswith(".")
        if issubclass(tool.input_schema, Search):
            assert {"query", "conditions", "top_k", "kb_prefix"} <= set(tool.input_schema.model_fields)
        assert "results" in tool.output_schema.model_fields
        for schema in (tool.input_schema, tool.output_schema):
            assert all(spec.get("description") for spec in schema.model_json_schema()["properties"].values()), name


def test_a_function_becomes_a_tool_by_its_signature(registry):
    @registry.tool(description="Award winners", intents={"qa"}, parallel=False)
    def awards(query: str, knowledge, top_k: int = 10, kind: Literal["oscar", "bear"] = "bear") -> list[str]:
        return [f"{knowledge.name} {kind}: {query}"]

    tool = registry["awards"]
    assert tool.intents == {"qa"} and tool.parallel is False and awards("q", NOTES) == ["film bear: q"]
    assert list(tool.input_schema.model_fields) == ["query", "top_k", "kind", "kb_prefix"]
    [found] = run(tool, query="喜宴").results
    assert found["evidence"] == "film bear: 喜宴"
    assert found["result_id"] == f"low_level:{found['source_id']}" and len(found["source_id"]) == 16
    assert 0 < found["score"] < 1 and found["metadata"]["tools"] == ["awards"] and found["metadata"]["rank"] == 1
    with pytest.raises(ToolError, match=r"awards: input 'kind' is 'palm'.*Give one of 'oscar', 'bear'"):
        read_input(tool, {"query": "q", "kind": "palm"})


def test_an_async_tool_and_a_log(registry):
    @registry.tool(description="Slow")
    async def slow(query: str, log) -> list[dict]:
        with log("fetch", pages=1) as detail:
            await asyncio.sleep(0.01)
            detail["hits"] = 2
        return [{"text": "b", "score": 0.2, "id": "2"}, {"evidence": "a", "score": 0.8, "source_id": "1", "title": "A"}]

    log, tool = StepLog(), registry["slow"]
    output = asyncio.run(tool(read_input(tool, {"query": "q"}), NOTES, log))
    assert [(r["source_id"], r["score"]) for r in output.results] == [("1", 0.8), ("2", 0.2)]
    assert output.candidates == ["A"]
    assert log.sub_steps[0]["detail"] == {"pages": 1, "hits": 2} and log.sub_steps[0]["duration_ms"] >= 10


def test_a_plain_tool_does_not_hold_up_the_loop(registry):
    @registry.tool(description="Sleeps")
    def sleeper(query: str) -> list[str]:
        time.sleep(0.2)
        return [threading.current_thread().name]

    async def four() -> None:
        tool = registry["sleeper"]
        await asyncio.gather(*(tool(read_input(tool, {"query": "q"}), NOTES, StepLog()) for _ in range(4)))

    begun = time.perf_counter()
    asyncio.run(four())
    assert time.perf_counter() - begun < 0.6


def _no_annotation(query): ...
def _stars(query: str, *more: str): ...
def _nameless(*, year: int): ...


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (_no_annotation, {}, "parameter 'query' needs an annotation"),
        (_stars, {}, r"parameter \*more: str cannot be a field"),
        (_nameless, {"intents": {"qa"}}, "needs a parameter `query: str`"),
        (_nameless, {"description": ""}, "needs a description"),
        (_nameless, {"name": "Über tool"}, "is not a name for a tool"),
        (
            _nameless,
            {"name": "discover"},
            "There is a tool 'discover' already.*replace=True.*Known: chain_exploration, deep_",
        ),
    ],
)
def test_what_cannot_be_a_tool_is_said_at_once(registry, function, options, message):
    with pytest.raises(ToolError, match=message):
        registry.tool(**{"description": "Mine", "name": "mine", **options})(function)


def test_any_langchain_retriever_is_a_tool(registry):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Shelf(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [
                Document(page_content=f"{query} is by Ang Lee.", id="d1", metadata={"title": "Hulk", "year": 2003}),
                Document(page_content="Something else.", metadata={"source": "shelf.txt"}),
                Document(page_content="Something else.", metadata={"source": "shelf.txt"}),
            ]

    tool = registry.register_retriever("shelf", Shelf(), intents={"qa"})
    log = StepLog()
    output = asyncio.run(tool(read_input(tool, {"query": "Hulk"}), NOTES, log))
    assert [r["evidence"] for r in output.results] == ["Hulk is by Ang Lee.", "Something else."]
    first, second = output.results
    assert first["source_id"] == "d1" and first["metadata"]["year"] == 2003 and first["score"] > second["score"]
    assert second["metadata"]["title"] == "shelf.txt" and len(second["source_id"]) == 16
    assert log.sub_steps[0]["detail"] == {"retriever": "Shelf", "hits": 3}
    with pytest.raises(ToolError, match=r"list is no LangChain BaseRetriever. .*as_retriever"):
        registry.register_retriever("list", [])


def test_a_langchain_tool_is_adapted_and_what_is_none_is_refused_at_once(registry):
    from langchain_core.tools import tool

    @tool("Award-Search")
    async def awards(about: str, most: int = 3) -> str:
        """Awards by film."""
        return f"{about} won the Golden Bear."

    made = registry.register(awards)
    assert made.name == "award_search" and list(made.input_schema.model_fields) == ["about", "most"]
    assert run(made, about="Hulk").results[0]["evidence"] == "Hulk won the Golden Bear."
    for wrong, message in (
        (object(), "is no tool: it has no valid name, description, input_schema"),
        (7, "7 is no tool"),
        (_no_annotation, "needs a description"),
    ):
        with pytest.raises(ToolError, match=message):
            registry.register(wrong)
    with pytest.raises(ToolError, match="needs a parameter `query: str`"):
        registry.register(awards, intents={"qa"}, replace=True)
    assert list(registry) == [*BUILT_IN, "award_search"]


def test_every_problem_names_step_field_and_mend(registry):
    bad = plan(
        {"step_id": "a", "tool": "hybrid", "tool_input": {"query": "q"}},
        {"step_id": "b", "tool": "naive_search", "tool_input": {"query": "q", "top_k": 0, "year": 1993}},
        {"step_id": "c", "tool": "local_search", "tool_input": {"entities": {"$from": "b.people"}}},
        {
            "step_id": "d",
            "tool": "discover",
            "tool_input": {"conditions": [{"field": "year", "op": "near"}], "who": {"$from": "b.entities"}},
        },
    )
    found = {(p["step_id"], p["field"]): f"{p['message']} {p['fix']}" for p in check(bad, registry)}
    assert found.keys() == {
        ("a", "tool"),
        ("b", "tool_input.top_k"),
        ("b", "tool_input.year"),
        ("c", "tool_input.query"),
        ("c", "tool_input.entities"),
        ("d", "tool_input.conditions.0.op"),
        ("d", "tool_input.who"),
    }
    assert found["a", "tool"].startswith(
        "a: unknown tool 'hybrid'. Did you mean 'hybrid_search'? Known: chain_exploration, deep_"
    )
    assert found["b", "tool_input.top_k"] == (
        "b: input 'top_k' is 0: input should be greater than or equal to 1. Give integer, 1 to 1000 (default 50)."
    )
    assert (
        "naive_search has no input 'year'. Its inputs: query, conditions, top_k, kb_prefix"
        in found["b", "tool_input.year"]
    )
    assert "input 'query' is missing" in found["c", "tool_input.query"]
    assert found["c", "tool_input.entities"] == (
        "c: 'entities' takes 'people' from b, which does not give it. "
        "naive_search gives: results, entities, candidates."
    )
    with pytest.raises(PlanError) as error:
        require(bad, registry)
    assert len(error.value.problems) == 7


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"query": {"$from": "a.results", "text": "Who made it?"}}, "'Who made it?' has no {}"),
        ({"query": {"$from": "a.results", "text": 7}}, "7 has no {}"),
        ({"query": {"$from": "a.people", "text": "Who is {}?"}}, "'people' from a, which does not give it"),
        ({"query": "q", "entities": {"$from": "a.entities", "text": "{}"}}, "Only a text has words around it"),
        ({"query": {"$from": "a.entities", "text": "Who is {}?"}}, ""),
    ],
)
def test_words_around_what_a_step_found_are_checked(registry, value, said):
    hop = plan(
        {"step_id": "a", "tool": "naive_search", "tool_input": {"query": "q"}},
        {"step_id": "b", "tool": "local_search", "tool_input": value},
    )
    found = check(hop, registry)
    assert said in " ".join(problem["message"] for problem in found) and bool(found) is bool(said)
