"""The plan type: order, readiness, versions, difference, problems."""

from __future__ import annotations

import pytest

from workbench.errors import PlanError
from workbench.graphs.execute import make_record
from workbench.plans import Plan, PlanBudget, PlanStep, work_seconds


def step(step_id: str, *depends_on: str, **fields) -> PlanStep:
    return PlanStep(step_id=step_id, objective=step_id, tool="naive_search", depends_on=list(depends_on), **fields)


def record(step_id: str, status: str = "success", attempt: int = 1, **fields):
    return {
        **make_record(step(step_id), attempt, 1, "skipped", "2026-01-01T00:00:00+00:00"),
        "status": status,
        **fields,
    }


@pytest.mark.parametrize(
    ("steps", "field", "said"),
    [
        ([step("a"), step("a")], "step_id", "'a' is used twice"),
        ([step("a", "b")], "depends_on", "'b', which is not in the plan"),
        ([step("a", "b"), step("b", "a")], "depends_on", "Cycle: "),
        ([step("a", "a")], "depends_on", "Cycle: a -> a"),
        ([step("a", budget=PlanBudget(top_k=0))], "budget.top_k", "top_k is 0"),
        ([step("a", budget=PlanBudget(timeout_s=0))], "budget.timeout_s", "timeout_s is 0"),
        ([PlanStep(step_id="a", objective="x" * 10_001, tool="naive_search")], "objective", "10,001 characters"),
        ([step("a", budget=PlanBudget(timeout_s=float("nan")))], "budget.timeout_s", "timeout_s is nan"),
        ([step(" ")], "step_id", "has no id"),
    ],
)
def test_problems_name_the_step_the_field_and_the_mend(steps, field, said):
    (found,) = [p for p in Plan(steps=steps).problems() if p["field"] == field]
    assert said in found["message"] and found["fix"]


def test_plan_id_follows_content_and_survives_the_json_form():
    plan = Plan(steps=[step("a")], problem_statement="喜宴")
    assert Plan.load(plan.dump()) == plan
    assert plan.model_copy(update={"version": 7}).plan_id == plan.plan_id
    assert plan.replace("a", top_k=5).plan_id != plan.plan_id


def test_replace_refuses_an_unknown_step_and_without_cuts_its_edges():
    plan = Plan(steps=[step("a"), step("b", "a")])
    with pytest.raises(PlanError, match="Known: a, b"):
        plan.replace("z", top_k=1)
    assert plan.without("a").steps[0].depends_on == []


def test_critical_path_by_time_outs_and_by_measured_seconds():
    plan = Plan(steps=[step("a"), step("b"), step("c", "a"), step("d", "b")])
    assert plan.critical_path({"a": 1, "b": 3, "c": 1, "d": 1}) == ["b", "d"]
    assert len(plan.critical_path()) == 2


def test_work_time_counts_parallel_steps_once_and_pauses_not_at_all():
    def ran(start: str, ms: float):
        return record(start, started_at=f"2026-01-01T{start}+00:00", duration_ms=ms)

    assert work_seconds([ran("00:00:00", 2000), ran("00:00:01", 2000)]) == pytest.approx(3)
    assert work_seconds([ran("00:00:00", 1000), ran("09:00:00", 1000)]) == pytest.approx(2)
    assert work_seconds([record("skipped", "skipped", duration_ms=0.0, started_at="")]) == 0


def test_signal_is_what_a_scheduler_reads():
    plan = Plan(steps=[step("b", "a"), step("a")], assumptions=["x"], acceptance_criteria=["y"])
    assert plan.signal()["execution_sequence"] == ["a", "b"]
    assert set(plan.signal()) == {
        "plan_id", "version", "mode", "tasks", "execution_sequence", "assumptions", "acceptance_criteria",
    }  # fmt: skip
