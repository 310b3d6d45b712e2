"""Budgets stop while a person thinks: days later, in other processes, with clocks set forwards and back meanwhile."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.test_bad_models import fill
from workbench.plans import Plan, PlanBudget, PlanStep
from workbench.session import Workbench
from workbench.testing import EPOCH, ManualClock

STEP_S = 8.0
DAY = 86_400.0
REVIEW = ("plan", "reflect")


def open_with(folder: Path, clock: ManualClock) -> Workbench:
    """The workspace on this clock, with a tool that takes eight seconds of it, and a plan of two such steps."""
    wb = Workbench.open(folder, embedding_model="hashing", rerank_model="none", max_iterations=9)
    wb._clock = clock

    @wb.tools.tool
    async def slow(query: str) -> list[str]:
        """Takes eight seconds."""
        clock.advance(STEP_S)
        return [f"{query} is a film."]

    @wb.register("planner")
    async def two(query: str, decision: Any, knowledge: Any, tools: Any) -> Plan:
        return Plan(steps=[step("s0"), step("s1", "s0")])

    return wb


def step(step_id: str, *behind: str) -> PlanStep:
    budget = PlanBudget(timeout_s=20)
    return PlanStep(
        step_id=step_id, objective="", tool="slow", tool_input={"query": step_id}, depends_on=[*behind], budget=budget
    )


def more(n: int) -> dict[str, Any]:
    """What the person says at each reflection: once more, in another step."""
    made = step(f"more_{n}").model_dump(mode="json")
    return {"decisions": [{"type": "edit", "edited_action": {"name": "reflect", "args": {"next_steps": [made]}}}]}


def go_on(folder: str, run_id: str, wall: str) -> None:
    """Give one answer, in a process whose wall clock says ``wall`` seconds after the beginning."""
    with open_with(Path(folder), ManualClock(EPOCH + timedelta(seconds=float(wall)))) as wb:
        run = wb.run(run_id)
        answered(run)
        print(json.dumps(told(run)))


def answered(run: Any) -> None:
    """One more step at each reflection, as long as there is time for it."""
    if run.review["point"] == "reflect" and run.reflections[-1]["remaining_budget"] > 0:
        run.answer_review(more(len(run.reflections)))
    else:
        run.approve()


def told(run: Any) -> dict[str, Any]:
    """All that must not depend on when, or where, the answers came."""
    return {
        "status": run.status,
        "ends": [(r["step_id"], r["attempt"], r["status"], r["error"], r["duration_ms"]) for r in run.records],
        "budgets": [(r["remaining_budget"], r["should_continue"], r["stop_reason"]) for r in run.reflections],
        "stop": run.state["stop_reason"],
        "answer": run.answer,
        "retrieval_ms": run.state.get("merged", {}).get("statistics", {}).get("total_duration_ms"),
        "in order": [r["started_at"] for r in run.records] == sorted(r["started_at"] for r in run.records),
    }


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("at-once")
    with open_with(folder, ManualClock()) as wb:
        fill(wb)
        run = wb.ask("Who directed it?", kb="notes", review=REVIEW)
        while run.status == "paused":
            answered(run)
        return json.loads(json.dumps(told(run)))


def test_thirty_seconds_are_spent_at_once(at_once):
    assert at_once["status"] == "done" and at_once["in order"]
    spent = [row for row in at_once["ends"] if row[2] == "success"]
    assert 3 <= len(spent) <= 4, "four steps of eight seconds, the last with what is left"
    assert at_once["budgets"][0][0] == 14.0


WALLS = {
    "days later": [DAY, 3 * DAY, 9 * DAY, 30 * DAY],
    "set back by a day each time": [-DAY, -2 * DAY, -3 * DAY, -4 * DAY],
    "set back so that new work lies on old": [0, 0, 0, 0],
    "half over": [STEP_S / 2, STEP_S, STEP_S * 1.5, 2],
    "forwards, then back": [30 * DAY, -DAY, 3 * DAY, 1],
}


def begun(folder: Path) -> str:
    """A run that waits at its plan."""
    with open_with(folder, ManualClock()) as wb:
        fill(wb)
        return wb.ask("Who directed it?", kb="notes", review=REVIEW).run_id


@pytest.mark.parametrize("name", WALLS)
@pytest.mark.few(2)
def test_the_same_as_at_once_whatever_the_clock_says(name, tmp_path, at_once):
    run_id = begun(tmp_path)
    for wall in (*WALLS[name], *[WALLS[name][-1]] * 9):
        with open_with(tmp_path, ManualClock(EPOCH + timedelta(seconds=wall))) as wb:
            run = wb.run(run_id)
            answered(run)
            said = json.loads(json.dumps(told(run)))
        if said["status"] != "paused":
            break
    assert said == at_once


@pytest.mark.full
def test_the_same_as_at_once_in_other_processes(tmp_path, at_once):
    run_id = begun(tmp_path)
    code = "import sys; from tests.test_thinking_time import go_on; go_on(*sys.argv[1:])"
    for wall in (3 * DAY, 0.0, -DAY, 4.0, 4.0, 4.0):
        command = [sys.executable, "-c", code, str(tmp_path), run_id, str(wall)]
        done = forked.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent, timeout=120)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        if said["status"] != "paused":
            break
    assert said == at_once
