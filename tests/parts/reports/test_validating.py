"""What an answer must speak of, and whether it does; a step whose findings fall short is done again, and only then."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.test_retrieval_graph import desk, step
from workbench.language.question import read
from workbench.parts.reports.checking import validate
from workbench.testing import MemoryKnowledge
from workbench.tools.registry import read_input
from workbench.tools.tool import StepLog

__all__ = ["desk"]

KB = MemoryKnowledge("notes", {"mill": "Salt Mill was built by Titus Salt in 1853.", "茶": "盐仓由沈万和建造。"})


def test_the_other_language_counts_where_the_base_knows_the_name(shelf: Any):
    base, asked = shelf.get("film"), "李安拍过哪些电影？"
    reading, text = read(asked, [base]), "Ang Lee made several films."
    assert validate(reading, text, [base]).passed
    assert not validate(reading, "Spike Lee made several films.", [base]).passed


async def test_the_tool_says_what_is_missing_and_finds_nothing_itself():
    from workbench.parts.reports.checking import TOOL

    results = [{"evidence": "Salt Mill is a mill.", "metadata": {"title": "Salt Mill", "fields": {"owner": ["Salt"]}}}]
    asked = {"query": "Who built the Salt Mill of 1853?", "found": results}
    log = StepLog()
    output = await TOOL(read_input(TOOL, asked), KB, log)
    detail = log.sub_steps[0]["detail"]
    assert output.results == [] and not output.passed and "built" in output.missing
    assert detail["passed"] is False and detail["missing"] == output.missing and "built" in detail["error"]


JUDGE = {"query": "amber lantern violin", "found": {"$from": "a.results"}}
STEPS = (
    step("a", tool="shy", tool_input={"query": "amber"}),
    step("judge", tool="reflection", tool_input=JUDGE),
    step("b", "judge"),
)


@pytest.fixture
def shy(desk):
    """A tool that says what it is asked alone: the first search falls short of what is validated."""

    @desk.wb.tools.tool
    def shy(query: str) -> list[str]:
        """Finds what it is asked for."""
        desk.calls.append(query)
        return [f"about {query}"]

    return desk


def attempts(run) -> list[tuple[str, int, str]]:
    return [(r["step_id"], r["attempt"], r["status"]) for r in run.records]


def test_without_leave_it_only_reports(shy):
    run = shy.ask(*STEPS)
    assert attempts(run) == [("a", 1, "success"), ("judge", 1, "partial"), ("b", 1, "success")]
    record = next(r for r in run.records if r["step_id"] == "judge")
    assert "lantern" in record["error"] and record["raw_input"]["found"] == {"$from": "a.results"}
    assert record["output_summary"]["evidence_count"] == 0


def test_with_leave_the_step_asks_for_what_is_missing_and_what_it_had_found_is_out(shy):
    run = shy.ask(*STEPS, settings={"reflection_allow_retry": True})
    done = [("a", 1, "success"), ("judge", 1, "partial"), ("a", 2, "success"), ("judge", 2, "success")]
    assert attempts(run) == [*done, ("b", 1, "success")]
    assert shy.calls[:2] == ["amber", "amber lantern violin"], "the plan itself stays as it was"
    said = [piece["evidence"] for piece in run.evidence]
    assert "about amber lantern violin" in said and "about amber" not in said


def test_a_retry_waits_and_a_cancel_ends_the_wait(desk):
    first, again = desk.ask(step("a", tool="flaky"), settings={"retry_delay_s": 0.4}).records
    began, next_one = (datetime.fromisoformat(r["started_at"]) for r in (first, again))
    assert (first["status"], again["status"]) == ("failed", "success") and (next_one - began).total_seconds() >= 0.4
    run = desk.start(step("a", tool="broken"), settings={"retry_delay_s": 600})
    next(event for event in run.events() if "retrieval_step_done" in event)
    run.cancel()
    assert run.wait(20).status == "cancelled"
