"""Steps that will never start: which ones, why, and the record that says so. Nothing waits for ever."""

from __future__ import annotations

from workbench.plans import HELD_BACK, NOT_NEEDED, Plan, PlanStep, last_records, work_seconds
from workbench.state import ExecutionRecord, RetrievalState


def blocked(state: RetrievalState) -> dict[str, str]:
    """Step -> reason for every step behind one that did not end well, however long the chain."""
    plan, records = Plan.load(state["plan"]), list(state.get("records", []))
    found: dict[str, str] = {}
    while more := plan.blocked_steps(records, state.get("activated", [])):
        found |= more
        records += [skip_record(plan.step(i), reason, 1, state["iteration"], "") for i, reason in more.items()]
    return found


def unspent(state: RetrievalState, reason: str) -> dict[str, str]:
    """Step -> reason for every step that has not ended and would run by itself."""
    plan = Plan.load(state["plan"])
    ends, woken = plan.ends(state.get("records", [])), state.get("activated", [])
    return {
        s.step_id: reason
        for s in plan.steps
        if s.step_id not in ends and (s.condition == "always" or s.step_id in woken)
    }


def over_budget(state: RetrievalState, time_budget_s: float) -> dict[str, str]:
    """Step -> reason for what has not run when the elapsed work time reaches the budget, in seconds."""
    spent = work_seconds(state.get("records", []))
    return unspent(state, f"the time budget of {time_budget_s:g} s is spent") if spent >= time_budget_s else {}


def closing(state: RetrievalState, reason: str) -> dict[str, str]:
    """Step -> reason for every step without an end when retrieval stops; conditional ones were not needed or held."""
    plan = Plan.load(state["plan"])
    ends, stopped = plan.ends(state.get("records", [])), unspent(state, reason)
    idle = {s.step_id: HELD_BACK if s.condition == "held" else NOT_NEEDED for s in plan.steps}
    return {step_id: stopped.get(step_id, why) for step_id, why in idle.items() if step_id not in ends}


def skip_records(state: RetrievalState, reasons: dict[str, str], now: str) -> list[ExecutionRecord]:
    """One record a step, in the order of the plan, as the attempt after the last one."""
    plan, last = Plan.load(state["plan"]), last_records(state.get("records", []))
    return [
        skip_record(
            step,
            reasons[step.step_id],
            last[step.step_id]["attempt"] + 1 if step.step_id in last else 1,
            state["iteration"],
            now,
        )
        for step in plan.steps
        if step.step_id in reasons
    ]


def skip_record(step: PlanStep, reason: str, attempt: int, iteration: int, now: str) -> ExecutionRecord:
    """The record of a step that never started."""
    return ExecutionRecord(
        step_id=step.step_id,
        attempt=attempt,
        iteration=iteration,
        tool=step.tool,
        status="skipped",
        error=reason,
        started_at=now,
        duration_ms=0.0,
        input_summary={"tool": step.tool, "objective": step.objective, "input_keys": sorted(step.tool_input)},
        output_summary={"evidence_count": 0, "context_length": 0, "top_score": 0.0},
        raw_input=step.tool_input,
        raw_output_ref=None,
        sub_steps=[],
    )
