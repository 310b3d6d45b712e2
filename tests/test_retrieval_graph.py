"""The retrieval graph over tools of the test's own: order, failures, retries, time-outs, budgets, every answer."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from workbench.graphs.retrieval import build_retrieval
from workbench.plans import Plan, PlanBudget, PlanStep
from workbench.records.lease import SystemClock
from workbench.testing import FixedPlanner, MemoryKnowledge, memory_context
from workbench.tools.registry import ToolRegistry

KB = MemoryKnowledge("notes", {"a": "Ang Lee directed The Wedding Banquet in 1993.", "b": "《推手》是李安的电影。"})
DECISION = {
    "query_intent": "unknown", "filters": {}, "extracted_entities": {"low_level": [], "high_level": []},
    "worker_name": "notes:fusion_agent:retrieve_only", "kb_prefix": "notes",
}  # fmt: skip
ENOUGH = {"min_evidence": 0, "min_top_score": 0.0, "min_probability": 0.0}


class Desk:
    """A graph, its ports and its tools; ``calls`` counts what the tools did."""

    def __init__(self, *steps: PlanStep, mode: str = "parallel", **settings):
        self.calls: list[str] = []
        self.tools = ToolRegistry()
        self._register()
        self.planner = FixedPlanner(Plan(steps=list(steps), execution_mode=mode))
        context = memory_context([KB], tools=self.tools, planner=self.planner, **settings)
        self.context = replace(context, clock=SystemClock())
        self.graph = build_retrieval().compile(checkpointer=InMemorySaver())
        self.config = {"configurable": {"thread_id": "t"}, "max_concurrency": 4}

    def _register(self) -> None:
        calls, failures = self.calls, {"flaky": 1}

        @self.tools.tool
        def found(query: str) -> list[str]:
            """Always finds one thing."""
            calls.append(query)
            return [f"about {query}"]

        @self.tools.tool
        async def slow(query: str, seconds: float = 0.5) -> list[str]:
            """Takes its time."""
            calls.append(query)
            await asyncio.sleep(seconds)
            return [f"about {query}"]

        @self.tools.tool
        def flaky(query: str) -> list[str]:
            """Fails once."""
            calls.append(query)
            if failures["flaky"]:
                failures["flaky"] -= 1
                raise ConnectionError("down")
            return [f"about {query}"]

        @self.tools.tool
        def broken(query: str) -> list[str]:
            """Always fails."""
            calls.append(query)
            raise ConnectionError("down")

        @self.tools.tool(parallel=False)
        def alone(query: str) -> list[str]:
            """Runs beside nothing."""
            calls.append(query)
            return [f"about {query}"]

    def start(self, review=(), thresholds=ENOUGH):
        return {
            "run_id": "r",
            "query": "q",
            "kb_prefix": "notes",
            "kb_prefixes": ["notes"],
            "route_decision": DECISION,
            "resolved_agent_type": "fusion_agent",
            "session_id": "s",
            "review": list(review),
            "thresholds": thresholds,
            "iteration": 1,
        }

    async def run(self, given=None, *, review=(), thresholds=ENOUGH):
        return await self.graph.ainvoke(given or self.start(review, thresholds), self.config, context=self.context)


def step(step_id: str, *depends_on: str, tool: str = "found", **fields) -> PlanStep:
    given = {"tool_input": {"query": step_id}, "depends_on": list(depends_on), **fields}
    return PlanStep(step_id=step_id, objective=step_id, tool=tool, **given)


def ends(state) -> dict[str, str]:
    return {r["step_id"]: r["status"] for r in state["records"]}


async def test_a_plan_runs_in_order_and_is_merged():
    desk = Desk(step("a"), step("b", "a"), step("c"))
    state = await desk.run()
    assert ends(state) == {"a": "success", "b": "success", "c": "success"}
    assert desk.calls.index("b") > desk.calls.index("a")
    assert [r["evidence"] for r in state["merged"]["retrieval_results"]] and state["merged"]["context"]
    assert state["stop_reason"] == "quality_satisfied"
    assert [r["step_id"] for r in desk.context.runs.records("r")] == [r["step_id"] for r in state["records"]]


async def test_four_independent_half_seconds_take_about_half_a_second():
    desk = Desk(*(step(f"s{n}", tool="slow") for n in range(4)))
    began = time.monotonic()
    state = await desk.run()
    spans = [(r["started_at"], r["duration_ms"]) for r in state["records"]]
    assert len(spans) == 4 and max(start for start, _ in spans) < min(
        r["started_at"][:17] + f"{float(r['started_at'][17:26]) + r['duration_ms'] / 1000:09.6f}"
        for r in state["records"]
    ), "they overlapped"
    assert time.monotonic() - began < 4 * 0.5


async def test_a_failure_is_a_record_is_retried_and_then_skips_what_needs_it():
    desk = Desk(step("f", tool="flaky"), step("x", tool="broken"), step("y", "x"), step("z", "y"))
    state = await desk.run()
    attempts = [(r["step_id"], r["attempt"], r["status"]) for r in state["records"]]
    assert ("f", 1, "failed") in attempts and ("f", 2, "success") in attempts
    assert ("x", 2, "failed") in attempts
    by_id = {r["step_id"]: r for r in state["records"]}
    assert (by_id["y"]["status"], by_id["y"]["error"]) == ("skipped", "x failed")
    assert (by_id["z"]["status"], by_id["z"]["error"]) == ("skipped", "y was skipped")
    assert "ConnectionError: down" in by_id["x"]["error"]


async def test_the_time_budget_ends_the_run_and_says_so():
    slow = {"tool": "slow", "tool_input": {"query": "a", "seconds": 0.3}}
    desk = Desk(step("a", **slow), step("b", "a"), time_budget_s=0.2)
    state = await desk.run(thresholds={"min_evidence": 5, "min_top_score": 0.9})
    assert ends(state)["b"] == "skipped"
    assert state["stop_reason"] == "budget_exhausted"


async def test_a_conditional_step_nobody_needs_is_skipped_and_counts_in_no_rate():
    state = await Desk(step("a"), step("b", "a", condition="if_insufficient")).run()
    last = {r["step_id"]: r for r in state["records"]}
    assert (last["b"]["status"], last["b"]["error"]) == ("skipped", "not needed")
    assert state["merged"]["statistics"]["success_rate"] == 1.0


async def test_too_little_evidence_activates_the_fallback():
    desk = Desk(step("a"), step("b", "a", condition="if_insufficient"))
    state = await desk.run(thresholds={"min_evidence": 2, "min_top_score": 0.0})
    assert ends(state)["b"] == "success"
    assert [r["current_iteration"] for r in state["reflections"]] == [1, 2]
    assert state["reflections"][0]["activate"] == ["b"]


@pytest.mark.parametrize("mode", ["sequential", "parallel", "adaptive"])
async def test_execution_modes_start_what_they_should(mode):
    desk = Desk(step("a"), step("b", tool="alone"), step("c"), mode=mode)
    waves = []
    async for chunk in desk.graph.astream(desk.start(), desk.config, context=desk.context, stream_mode="updates"):
        if "dispatcher" in chunk:
            waves.append([entry["step_id"] for entry in chunk["dispatcher"]["wave"]])
    assert (
        waves
        == {
            "sequential": [["a"], ["b"], ["c"], []],
            "parallel": [["a", "b", "c"], []],
            "adaptive": [["a", "c"], ["b"], []],
        }[mode]
    )


@pytest.mark.parametrize("bound", ["top_k", "max_evidence_count"])
async def test_evidence_beyond_the_budget_is_cut_and_the_summary_says_so(bound):
    desk = Desk(step("a", tool="many", budget=PlanBudget(**{bound: 2})))

    @desk.tools.tool
    def many(query: str) -> list[str]:
        """Finds five things."""
        return [f"{query} {n}" for n in range(5)]

    (record,) = (await desk.run())["records"]
    assert record["status"] == "success"
    assert (record["output_summary"]["evidence_count"], record["output_summary"]["cut"]) == (2, 3)
