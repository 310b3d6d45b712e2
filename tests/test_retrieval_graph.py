"""Plans of one's own under whole runs: order, failures, retries, time-outs, budgets, conditions."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.shelves import CORE
from workbench.plans import Plan, PlanBudget, PlanStep
from workbench.runs.run import Run
from workbench.session import Workbench

ENOUGH = {"min_evidence": 0, "min_top_score": 0.0, "min_probability": 0.0}


class Desk:
    """A workspace of a few notes, and tools of its own; ``calls`` are the queries that they were asked."""

    def __init__(self, wb: Workbench):
        self.wb, self.calls = wb, list[str]()
        calls, failures = self.calls, ["down"]

        @wb.tools.tool
        def found(query: str) -> list[str]:
            """Always finds one thing."""
            calls.append(query)
            return [f"about {query}"]

        @wb.tools.tool
        async def slow(query: str, seconds: float = 0.5) -> list[str]:
            """Takes its time."""
            calls.append(query)
            await asyncio.sleep(seconds)
            return [f"about {query}"]

        @wb.tools.tool
        def flaky(query: str) -> list[str]:
            """Fails once."""
            calls.append(query)
            if failures:
                raise ConnectionError(failures.pop())
            return [f"about {query}"]

        @wb.tools.tool
        def broken(query: str) -> list[str]:
            """Always fails."""
            raise ConnectionError("down")

        @wb.tools.tool(parallel=False)
        def alone(query: str) -> list[str]:
            """Runs beside nothing."""
            return [f"about {query}"]

    def start(self, *steps: PlanStep, mode: Any = "parallel", **options: Any) -> Run:
        plan = Plan(problem_statement="q?", steps=list(steps), execution_mode=mode)
        return self.wb.start("q?", kb="notes", plan=plan, **{"thresholds": ENOUGH, **options})

    def ask(self, *steps: PlanStep, **options: Any) -> Run:
        return self.start(*steps, **options).wait()


@pytest.fixture
def desk(tmp_path: Any) -> Iterator[Desk]:
    notes = [{"id": str(n), "text": f"Kiln {n} was built in 19{n:02}."} for n in range(9)]
    (tmp_path / "notes.jsonl").write_text("\n".join(map(json.dumps, notes)))
    with Workbench.open(tmp_path / "w", **CORE) as opened:
        opened.add_knowledge("notes", [tmp_path / "notes.jsonl"])
        yield Desk(opened)


def step(step_id: str, *depends_on: str, tool: str = "found", **fields: Any) -> PlanStep:
    given = {"tool_input": {"query": step_id}, "depends_on": list(depends_on), **fields}
    return PlanStep(step_id=step_id, objective=step_id, tool=tool, **given)


def ends(run: Run) -> dict[str, tuple[str, str | None]]:
    return {r["step_id"]: (r["status"], r["error"]) for r in run.records}


def test_a_plan_runs_in_order_and_is_merged(desk):
    run = desk.ask(step("a"), step("b", "a"), step("c"))
    assert {name: status for name, (status, _) in ends(run).items()} == dict.fromkeys("abc", "success")
    assert desk.calls.index("b") > desk.calls.index("a")
    assert {"about a", "about b", "about c"} <= {piece["evidence"] for piece in run.evidence}
    assert run.status == "done" and run.state["merged"]["context"]


def test_four_independent_half_seconds_take_about_half_a_second(desk):
    began = time.monotonic()
    run = desk.ask(*(step(f"s{n}", tool="slow") for n in range(4)), settings={"max_concurrency": 4})
    assert len(run.records) == 4 and desk.calls == ["s0", "s1", "s2", "s3"]
    assert run.state["merged"]["statistics"]["total_duration_ms"] < 1500, time.monotonic() - began


def test_a_failure_is_a_record_is_retried_and_then_skips_what_needs_it(desk):
    run = desk.ask(step("f", tool="flaky"), step("x", tool="broken"), step("y", "x"), step("z", "y"))
    attempts = [(r["step_id"], r["attempt"], r["status"]) for r in run.records]
    assert {("f", 1, "failed"), ("f", 2, "success"), ("x", 2, "failed")} <= set(attempts)
    assert ends(run)["x"][1] == "ConnectionError: down"
    assert ends(run)["y"] == ("skipped", "x failed") and ends(run)["z"] == ("skipped", "y was skipped")


def test_the_time_budget_ends_the_run_and_says_so(desk):
    slow = {"tool": "slow", "tool_input": {"query": "a", "seconds": 0.3}}
    hard = {"min_evidence": 5, "min_top_score": 0.9}
    run = desk.ask(step("a", **slow), step("b", "a"), settings={"time_budget_s": 0.2}, thresholds=hard)
    assert ends(run)["b"][0] == "skipped" and run.state["stop_reason"] == "budget_exhausted"


@pytest.mark.parametrize(("least", "end"), [(0, ("skipped", "not needed")), (2, ("success", None))])
def test_a_conditional_step_runs_where_too_little_was_found_and_else_counts_in_no_rate(desk, least, end):
    thresholds = {**ENOUGH, "min_evidence": least}
    run = desk.ask(step("a"), step("b", "a", condition="if_insufficient"), thresholds=thresholds)
    assert ends(run)["b"] == end and run.state["merged"]["statistics"]["success_rate"] == 1.0
    assert [one["activate"] for one in run.reflections] == ([["b"], []] if least else [[]])


MODES = {"sequential": [["a"], ["b"], ["c"]], "parallel": [["a", "b", "c"]], "adaptive": [["a", "c"], ["b"]]}


@pytest.mark.parametrize("mode", MODES)
def test_execution_modes_start_what_they_should(desk, mode):
    run, waves = desk.ask(step("a"), step("b", tool="alone"), step("c"), mode=mode, review="step"), []
    while run.status == "paused":
        waves.append(run.review["action_requests"][0]["args"]["wave"])
        run.approve()
    assert waves == MODES[mode] and run.status == "done"


@pytest.mark.parametrize("bound", ["top_k", "max_evidence_count"])
def test_evidence_beyond_the_budget_is_cut_and_the_summary_says_so(desk, bound):
    @desk.wb.tools.tool
    def many(query: str) -> list[str]:
        """Finds five things."""
        return [f"{query} {n}" for n in range(5)]

    (record,) = desk.ask(step("a", tool="many", budget=PlanBudget(**{bound: 2}))).records
    assert record["status"] == "success"
    assert (record["output_summary"]["evidence_count"], record["output_summary"]["cut"]) == (2, 3)
