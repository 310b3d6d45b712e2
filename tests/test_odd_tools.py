"""Tools and parts of one's own that return or raise what nobody expects: a result, or a failure with its type."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import json
import math
import os
import signal
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.shelves import CORE, fill
from workbench import Plan, PlanStep
from workbench.errors import NotPaused
from workbench.plans import PlanBudget
from workbench.session import Workbench


@pytest.fixture(scope="module")
def wb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with Workbench.open(tmp_path_factory.mktemp("odd"), **CORE, max_iterations=1) as opened:
        fill(opened, {"Notes": "The kiln was built in 1911. It is old."}, "site")
        yield opened


def plan(tool: str, **budget: Any) -> Plan:
    limits = {"timeout_s": 5.0, "top_k": 5, "max_retries": 0, **budget}
    step = PlanStep(step_id="a", objective="q", tool=tool, tool_input={"query": "q"}, budget=PlanBudget(**limits))
    return Plan(problem_statement="q", steps=[step])


def asked(wb: Workbench, function: Any, **budget: Any) -> Any:
    function.__annotations__ = {"query": str}
    wb.tools.tool(function, name="odd", description="odd", replace=True)
    run = wb.ask("q?", kb="site", plan=plan("odd", **budget))
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
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = repr(work())
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    signal.alarm(30)
    try:
        with os.fdopen(reading) as pipe:
            return pipe.read()
    finally:
        signal.alarm(0)
        os.waitpid(child, 0)


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
