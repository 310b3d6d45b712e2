"""The registry, plans checked against it, the tools over a film corpus, and tools of one's own at their worst."""

import asyncio
import dataclasses
import datetime
import decimal
import json
import math
import multiprocessing
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

from tests.films import where
from tests.shelves import CORE, fill
from workbench.errors import NotPaused, PlanError, ToolError
from workbench.plans import Plan, PlanBudget, PlanStep
from workbench.session import Workbench
from workbench.testing import MemoryKnowledge
from workbench.tools import evidence
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
        assert tool.description.endswith(".")
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


def _no_annotation(query): ...


def _stars(query: str, *more: str): ...


def _nameless(*, year: int): ...


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (_no_annotation, {}, "parameter 'query' needs an annotation"),
        (_stars, {}, r"parameter \*more: str cannot be a field"),
        (_nameless, {"intents": {"qa"}}, "needs a parameter `query: str`"),
        (_nameless, {"name": "Über tool"}, "is not a name for a tool"),
        (_nameless, {"name": "discover"}, "There is a tool 'discover' already.*replace=True.*Known: chain_explo"),
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
    odd = {"conditions": [{"field": "year", "op": "near"}], "who": {"$from": "b.entities"}}
    bad = plan(
        {"step_id": "a", "tool": "hybrid", "tool_input": {"query": "q"}},
        {"step_id": "b", "tool": "naive_search", "tool_input": {"query": "q", "top_k": 0, "year": 1993}},
        {"step_id": "c", "tool": "local_search", "tool_input": {"entities": {"$from": "b.people"}}},
        {"step_id": "d", "tool": "discover", "tool_input": odd},
    )
    said = {
        "a tool": "a: unknown tool 'hybrid'. Did you mean 'hybrid_search'? Known: chain_exploration, deep_",
        "b tool_input.top_k": "is 0: input should be greater than or equal to 1. Give integer, 1 to 1000 (default 50).",
        "b tool_input.year": "naive_search has no input 'year'. Its inputs: query, conditions, top_k, kb_prefix",
        "c tool_input.query": "input 'query' is missing",
        "c tool_input.entities": "from b, which does not give it. naive_search gives: results, entities, candidates.",
        "d tool_input.conditions.0.op": "near",
        "d tool_input.who": "who",
    }
    with pytest.raises(PlanError) as error:
        require(bad, registry)
    found = {f"{p['step_id']} {p['field']}": f"{p['message']} {p['fix']}" for p in error.value.problems}
    assert found.keys() == said.keys() and [name for name in said if said[name] not in found[name]] == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"query": {"$from": "a.results", "text": "Who made it?"}}, "'Who made it?' has no {}"),
        ({"query": {"$from": "a.people", "text": "Who is {}?"}}, "'people' from a, which does not give it"),
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


TOOLS = ToolRegistry()


@pytest.fixture
def film(shelf: Any) -> Any:
    return shelf.get("film")


def call(name: str, film: Any, query: str, **values: Any) -> Any:
    tool = TOOLS[name]
    return asyncio.run(tool(read_input(tool, {"query": query, **values}), film, StepLog()))


def fields(output: Any, name: str) -> list[Any]:
    return [r["metadata"]["fields"].get(name) for r in output.results]


SEARCHES = ["naive_search", "keyword_search", "local_search", "global_search", "hybrid_search", "chain_exploration"]


@pytest.mark.parametrize("name", SEARCHES[:-1])
@pytest.mark.parametrize("query", ["Who directed Inception?", "《盗梦空间》是谁导演的？"])
def test_every_result_has_the_shape_of_the_contract(film, name, query):
    output = call(name, film, query, top_k=7)
    assert call(name, film, query, top_k=7).model_dump_json() == output.model_dump_json()
    assert 0 < len(output.results) <= 7
    assert [r["metadata"]["rank"] for r in output.results] == list(range(1, len(output.results) + 1))
    keys = [(-r["score"], r["result_id"]) for r in output.results]
    assert keys == sorted(keys) and len({r["result_id"] for r in output.results}) == len(output.results)
    for result in output.results:
        assert 0 <= result["score"] <= 1 and round(result["score"], 6) == result["score"]
        assert result["result_id"] == f"{result['granularity']}:{result['source_id']}"
        assert result["evidence"].strip()
        assert result["metadata"]["tools"] == [name] and result["metadata"]["kb_prefix"] == "film"
        if result["source_type"] == "chunk":
            assert result["metadata"].keys() >= {"doc_id", "title", "url", "licence", "position", "fields", "signals"}
            assert result["source_id"] == f"{result['metadata']['doc_id']}#{result['metadata']['position']}"
    json.dumps(output.model_dump(mode="json"))


@pytest.mark.parametrize("name", SEARCHES)
def test_text_and_conditions_in_one_search(film, name):
    output = call(name, film, "films of Ang Lee and Christopher Nolan", conditions=where("year >= 2010"))
    years = [result["metadata"].get("fields", {}).get("year") for result in output.results]
    assert [year for year in years if year] and all(str(year) >= "2010" for year in years if year)
    assert call(name, film, "films of Ang Lee", conditions=where("year >= 2090")).results == []


def test_each_search_does_what_it_is_for(film):
    output = call("hybrid_search", film, "works", entities=["李安", "nobody at all"])
    assert output.entities == ["Ang Lee"]
    assert sum("Ang Lee" in directors for directors in fields(output, "directors")[:8]) >= 7
    output = call("local_search", film, "李安是谁？")
    names = ("entity", "relationship", "chunk")
    kinds = {kind: [r for r in output.results if r["source_type"] == kind] for kind in names}
    [card] = kinds["entity"]
    assert card["evidence"].startswith("Ang Lee (Person; 李安): ") and "The Wedding Banquet" in card["evidence"]
    assert card["granularity"] == "low_level" and card["source_id"] == "person:ang lee"
    assert output.results[0] is not None and len(kinds["relationship"]) > 3 and len(kinds["chunk"]) > 3
    assert all(r["granularity"] == "high_level" and r["metadata"]["doc_id"] for r in kinds["relationship"])
    assert output.entities[0] == "Ang Lee" and "Eat Drink Man Woman" in output.entities
    output = call("global_search", film, "rival stage magicians", candidates=["Hulk", "致命魔术", "No Such Film"])
    assert output.candidates == ["The Prestige", "Hulk"]
    output = call("discover", film, "", conditions=where("directors = 诺兰", "year >= 2006"))
    years = fields(output, "year")
    assert len(years) > 5 and years == sorted(years, reverse=True) and min(years) >= 2006
    assert all("Christopher Nolan" in d for d in fields(output, "directors"))
    assert output.candidates == evidence.titles(output.results) and output.results[0]["score"] > 0.7


@pytest.fixture(scope="module")
def wb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with Workbench.open(tmp_path_factory.mktemp("odd"), **CORE, max_iterations=1) as opened:
        fill(opened, {"Notes": "The kiln was built in 1911. It is old."}, "site")
        yield opened


def asked(wb: Workbench, function: Any, **budget: Any) -> Any:
    function.__annotations__ = {"query": str}
    wb.tools.tool(function, name="odd", description="odd", replace=True)
    limits = PlanBudget(**{"timeout_s": 5.0, "top_k": 5, "max_retries": 0, **budget})
    one = plan({"step_id": "a", "tool": "odd", "tool_input": {"query": "q"}, "budget": limits})
    run = wb.ask("q?", kb="site", plan=one)
    assert run.status == "done", run.error
    json.dumps(run.to_dict(), allow_nan=False).encode()
    return run


@dataclasses.dataclass
class Line:
    text: str = "a"


Row = namedtuple("Row", ["text", "score"])


class Thing:
    pass


async def _rows() -> Any:
    yield "a"


def _loop() -> dict[str, Any]:
    held: dict[str, Any] = {}
    held["self"] = held
    return held


RETURNED: dict[str, tuple[Any, list[tuple[str, Any]]]] = {
    "np.float32": ([{"text": "a", "score": np.float32(0.5)}], [("a", 0.5)]),
    "Decimal": ([{"text": "a", "score": decimal.Decimal("0.5")}], [("a", 0.5)]),
    "array": (np.array(["a", "b"]), [("a", None), ("b", None)]),
    "DataFrame": (pd.DataFrame({"text": ["a"], "score": [0.5]}), [("a", 0.5)]),
    "set": ({"b", "a"}, [("a", None), ("b", None)]),
    "asynchronous generator": (_rows, [("a", None)]),
    "half a surrogate": (["bad \ud83d here"], [("bad ? here", None)]),
    "dataclass": ([Line()], [("a", None)]),
    "named tuple": ([Row("a", 0.5)], [("a", 0.5)]),
}
METADATA: dict[str, tuple[Any, Any]] = {
    "float32": (np.float32(0.5), 0.5),
    "nan": (math.nan, None),
    "date": (datetime.date(2020, 1, 2), "2020-01-02"),
    "key": ({1: 2, ("a", 1): 3}, {"1": 2, "('a', 1)": 3}),
    "surrogate": ("\ud83d", "?"),
    "bytes": (b"abc", "YWJj"),
    "path": (Path("a"), "a"),
}
REFUSED: dict[str, tuple[Any, str]] = {
    "None": (None, "returned NoneType"),
    "text": ("just text", "returned str"),
    "object": ([Thing()], "a Thing cannot be kept as JSON"),
    "blank": ([" "], "has no text"),
    "nan": ([{"text": "a", "score": math.nan}], "the score nan"),
    "more than certain": ([{"text": "a", "score": 1.5}], "the score 1.5"),
    "holds itself": ([{"text": "a", "loop": _loop()}], "result 1: a dict cannot be kept as JSON"),
    "without end": (lambda: ("a" for _ in iter(int, 1)), "more than 100,000 results"),
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_a_tool_returns_is_converted(wb, name) -> None:
    value, wanted = RETURNED[name]
    run = asked(wb, lambda query: value() if callable(value) else value)
    found = {r["evidence"]: r["score"] for r in run.evidence}
    assert set(found) == {text for text, _ in wanted}
    assert all(score is None or math.isclose(found[text], score) for text, score in wanted)


def test_metadata_is_json(wb) -> None:
    run = asked(wb, lambda query: [{"text": "a", **{name: value for name, (value, _) in METADATA.items()}}])
    metadata = run.evidence[0]["metadata"]
    assert {name: metadata[name] for name in METADATA} == {name: wanted for name, (_, wanted) in METADATA.items()}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_taken_is_refused_with_its_type(wb, name) -> None:
    value, says = REFUSED[name]
    run = asked(wb, lambda query: value() if name == "without end" else value)
    assert run.records[0]["status"] == "failed" and says in run.records[0]["error"]


async def _cancels(query: str) -> list[str]:
    raise asyncio.CancelledError


def raises(error: BaseException) -> Any:
    def tool(query: str) -> list[str]:
        raise error

    return tool


RAISED: dict[str, tuple[Any, str]] = {
    "SystemExit": (raises(SystemExit(3)), "SystemExit: 3"),
    "StopIteration": (lambda query: [next(iter([]))], "StopIteration"),
    "a cancellation that nobody asked for": (_cancels, "CancelledError"),
    "in a generator": (lambda query: (raises(SystemExit(4))(query) for _ in "a"), "SystemExit: 4"),
}


@pytest.mark.parametrize("name", RAISED)
def test_what_a_tool_raises_is_a_failed_step_within_its_budget(wb, name) -> None:
    function, says = RAISED[name]
    run = asked(wb, function, timeout_s=3.0)
    assert (run.records[0]["status"], says in run.records[0]["error"]) == ("failed", True), run.records


def test_a_part_that_ends_the_process_fails_its_run_alone(wb) -> None:
    def ends(*_: Any) -> Any:
        raise KeyboardInterrupt

    async def planner(query: Any, decision: Any, knowledge: Any, tools: Any) -> Any:
        raise SystemExit(3)

    run = wb.start("When was the kiln built?", kb="site", review="plan", reviewer=ends).wait(20)
    assert run.status == "failed" and "KeyboardInterrupt" in run.error
    wb.register("planner", planner)
    run = wb.ask("When was the kiln built?", kb="site")
    assert run.status == "failed" and "SystemExit" in run.error
    wb.register("planner", None)
    assert wb.ask("When was the kiln built?", kb="site").status == "done"


def _in_child(work: Any) -> str:
    mine, theirs = multiprocessing.Pipe()

    def tell() -> None:
        try:
            theirs.send(repr(work()))
        except BaseException as error:
            theirs.send(f"{type(error).__name__}: {error}")

    multiprocessing.get_context("fork").Process(target=tell, daemon=True).start()
    assert mine.poll(30)
    return mine.recv()


def test_a_forked_process_is_refused_with_the_fix(wb) -> None:
    run = wb.ask("When was the kiln built?", kb="site", review="plan")
    doors = {
        "ask": lambda: wb.ask("When was the kiln built?", kb="site").answer,
        "runs": lambda: wb.runs.list(),
        "search": lambda: wb.knowledge.get("site").search("words", "kiln", 3),
        "messages": lambda: wb.messages(run.session_id),
        "approve": lambda: run.approve(),
        "add": lambda: wb.add_knowledge("more", ["x.md"]),
    }
    for door, work in doors.items():
        told = _in_child(work)
        assert told.startswith("WorkspaceError: This process was forked") and "spawn" in told, (door, told)
    assert run.approve().status == "done", "the parent goes on"


def test_an_answer_to_what_was_seen_is_refused_when_something_else_is_asked(wb) -> None:
    mine = wb.ask("When was the kiln built?", kb="site", review={"plan", "reflect"})
    other = wb.run(mine.run_id)
    other.respond("and the mill?")
    assert wb.run(mine.run_id).plan.version == 2
    with pytest.raises(NotPaused, match="asks 1-plan by now, not 0-plan"):
        mine.approve()
    with pytest.raises(NotPaused, match="asks 1-plan by now"):
        mine.approve()
    assert mine.status == "paused" and mine.review["point"] == "plan"
    mine.approve()
    with pytest.raises(NotPaused, match="by now, not"):
        other.reject()
    assert other.to_dict()["review"]["point"] == "reflect", "a document shows it too"
    assert other.approve().status == "done"
