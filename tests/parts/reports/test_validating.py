"""What an answer must speak of, and whether it does; a step whose findings fall short is done again, and only then."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.shelf import shelf
from tests.test_retrieval_graph import ENOUGH, Desk, ends, step
from workbench.language.question import read
from workbench.parts.reports.checking import meant_by, validate
from workbench.plans import PlanStep
from workbench.testing import MemoryKnowledge
from workbench.tools.registry import check, read_input
from workbench.tools.tool import StepLog

__all__ = ["shelf"]

KB = MemoryKnowledge("notes", {"mill": "Salt Mill was built by Titus Salt in 1853.", "茶": "盐仓由沈万和建造。"})


def test_the_other_language_counts_where_the_base_knows_the_name(shelf: Any):
    base, asked = shelf.get("film"), "李安拍过哪些电影？"
    reading, text = read(asked, [base]), "Ang Lee made several films."
    assert validate(reading, text, meant_by(asked, base)).passed
    assert not validate(reading, "Spike Lee made several films.", meant_by(asked, base)).passed


async def test_the_tool_says_what_is_missing_and_finds_nothing_itself():
    from workbench.parts.reports.checking import TOOL

    results = [{"evidence": "Salt Mill is a mill.", "metadata": {"title": "Salt Mill", "fields": {"owner": ["Salt"]}}}]
    asked = {"query": "Who built the Salt Mill of 1853?", "found": results}
    log = StepLog()
    output = await TOOL(read_input(TOOL, asked), KB, log)
    detail = log.sub_steps[0]["detail"]
    assert output.results == [] and not output.passed and "built" in output.missing
    assert detail["passed"] is False and detail["missing"] == output.missing and "built" in detail["error"]


def a_plan() -> list[PlanStep]:
    given = {"query": "amber lantern violin", "found": {"$from": "a.results"}}
    judge = PlanStep(step_id="judge", objective="", tool="reflection", tool_input=given)
    return [step("a", tool="shy", tool_input={"query": "amber"}), judge, step("b", "judge")]


def desk_of(**settings) -> Desk:
    """A tool that says what it is asked alone: the first search falls short of what is validated."""
    desk = Desk(*a_plan(), **settings)

    @desk.tools.tool
    def shy(query: str) -> list[str]:
        """Finds what it is asked for."""
        desk.calls.append(query)
        return [f"about {query}"]

    return desk


def attempts(state) -> list[tuple[str, int, str]]:
    return [(r["step_id"], r["attempt"], r["status"]) for r in state["records"]]


async def test_without_leave_it_only_reports():
    desk = desk_of()
    state = await desk.run(thresholds=ENOUGH)
    assert check(desk.planner.plan, desk.tools) == []
    assert attempts(state) == [("a", 1, "success"), ("judge", 1, "partial"), ("b", 1, "success")]
    record = next(r for r in state["records"] if r["step_id"] == "judge")
    assert "lantern" in record["error"] and record["raw_input"]["found"] == {"$from": "a.results"}
    assert record["output_summary"]["evidence_count"] == 0


async def test_with_leave_the_step_asks_for_what_is_missing_and_what_it_had_found_is_out():
    desk = desk_of(reflection_allow_retry=True)
    state = await desk.run(thresholds=ENOUGH)
    done = attempts(state)
    assert done[:4] == [("a", 1, "success"), ("judge", 1, "partial"), ("a", 2, "success"), ("judge", 2, "success")]
    assert desk.calls[:2] == ["amber", "amber lantern violin"], "the plan itself stays as it was"
    said = [result["evidence"] for result in state["merged"]["retrieval_results"]]
    assert "about amber lantern violin" in said and "about amber" not in said
    assert ends(state)["b"] == "success" and len(done) == 5


async def test_a_retry_waits_and_a_cancel_ends_the_wait(monkeypatch):
    waited = []
    real = asyncio.sleep

    async def sleep(seconds, *rest):
        waited.append(seconds)
        await real(0)

    monkeypatch.setattr("workbench.graphs.execute.asyncio.sleep", sleep)
    desk = Desk(step("a", tool="flaky"), retry_delay_s=7)
    state = await desk.run()
    assert waited == [7] and [r["status"] for r in state["records"]] == ["failed", "success"]

    monkeypatch.setattr("workbench.graphs.execute.asyncio.sleep", real)
    desk = Desk(step("a", tool="flaky"), retry_delay_s=600)
    running = asyncio.create_task(desk.run())
    while not desk.calls:
        await real(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert desk.calls == ["a"]
