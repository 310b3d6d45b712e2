"""A step whose findings a ``reflection`` step found wanting is done again, asking for what is missing too.

Nothing is unwritten: the newest attempt of a step is the one that counts, so what the earlier one found is out as soon
as the step is tried again, whatever becomes of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.plans import Plan, PlanStep, last_records
from workbench.settings import Settings
from workbench.state import ExecutionRecord

REFLECTION = "reflection"
"""The tool that validates what a step found."""


def most_retries(settings: Settings) -> int:
    """How often a step may be done again because of a reflection."""
    return settings.reflection_max_retries if settings.reflection_allow_retry else 0


def standing(plan: Plan, records: Sequence[ExecutionRecord], most: int) -> list[ExecutionRecord]:
    """The records that count for what runs next, in the order in which they came.

    Where a reflection found a step wanting, at most ``most`` times, that step and the reflection have not ended.
    """
    kept = list(records)
    for step in plan.steps:
        own = [(place, record) for place, record in enumerate(kept) if record["step_id"] == step.step_id]
        found = [place for place, record in own if _missing(record) is not None]
        if found and len(found) <= most:
            again = {step.step_id, *validated(step)}
            kept = [r for place, r in enumerate(kept) if place > found[-1] or r["step_id"] not in again]
    return kept


def lacked(plan: Plan, records: Iterable[ExecutionRecord]) -> dict[str, list[str]]:
    """Step -> what the last reflection on it found missing."""
    last = last_records(records)
    found = [(step, _missing(last[step.step_id])) for step in plan.steps if step.step_id in last]
    return {source: missing for step, missing in found if missing for source in validated(step)}


def asking_for(step: PlanStep, missing: Sequence[str]) -> PlanStep:
    """The step with what is missing in its query, once.

    >>> step = PlanStep(step_id="a", objective="", tool="t", tool_input={"query": "who built the mill"})
    >>> asking_for(step, ["died", "mill"]).tool_input["query"]
    'who built the mill died'
    """
    query = step.tool_input.get("query")
    if not isinstance(query, str):
        return step
    more = [word for word in missing if word.casefold() not in query.casefold()]
    return step.model_copy(update={"tool_input": {**step.tool_input, "query": " ".join([query, *more])}})


def validated(step: PlanStep) -> list[str]:
    """The steps that a reflection is on."""
    return step.dependencies() if step.tool == REFLECTION else []


def _missing(record: ExecutionRecord) -> list[str] | None:
    """What a reflection found missing; None for any other record, and where it was satisfied."""
    seen = [sub["detail"] for sub in record["sub_steps"] if sub["detail"].get("passed") is False]
    if record["tool"] != REFLECTION or not seen:
        return None
    return [str(one) for detail in seen for one in detail["missing"]]
