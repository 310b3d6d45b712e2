"""What people do to a plan: a plan in, a plan out, and nothing of it that the rest of the plan does not notice."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from workbench.plans import Plan, PlanStep


def renamed(plan: Plan, old: str, new: str) -> Plan:
    """A copy with another id for one step; dependencies and references follow."""

    def name(one: str) -> str:
        return new if one == old else one

    def follow(value: Any) -> Any:
        if isinstance(value, dict) and set(value) == {"$from"}:
            source, dot, field = str(value["$from"]).partition(".")
            return {"$from": f"{name(source)}{dot}{field}"}
        return value

    steps = [
        step.model_copy(
            update={
                "step_id": name(step.step_id),
                "depends_on": [name(one) for one in step.depends_on],
                "tool_input": {key: follow(value) for key, value in step.tool_input.items()},
            }
        )
        for step in plan.steps
    ]
    return plan.model_copy(update={"steps": steps})


def moved(plan: Plan, step_id: str, before: str = "") -> Plan:
    """A copy with that step standing before another, or at the end.

    >>> plan = Plan(steps=[PlanStep(step_id=i, objective="", tool="t") for i in "abc"])
    >>> [step.step_id for step in moved(plan, "c", "a").steps], [step.step_id for step in moved(plan, "a").steps]
    (['c', 'a', 'b'], ['b', 'c', 'a'])
    """
    steps = [step for step in plan.steps if step.step_id != step_id]
    place = next((at for at, step in enumerate(steps) if step.step_id == before), len(steps))
    return plan.model_copy(update={"steps": [*steps[:place], plan.step(step_id), *steps[place:]]})


def duplicated(plan: Plan, step_id: str) -> tuple[Plan, str]:
    """A copy with the same step once more, right after it, and the id of that one."""
    label = re.sub(r"^step_\d+_?", "", step_id) or "copy"
    new = plan.step(step_id).model_copy(update={"step_id": fresh_id(plan, label[:80])})
    place = [step.step_id for step in plan.steps].index(step_id) + 1
    return plan.model_copy(update={"steps": [*plan.steps[:place], new, *plan.steps[place:]]}), new.step_id


def only(plan: Plan, step_id: str, keep: Collection[str] = ()) -> Plan:
    """That step, what its input is taken from, and the steps to keep; dependencies on others are let go."""
    return _left(plan, step_id, keep, lambda step: (source for source, _ in step.references().values()))


def up_to(plan: Plan, step_id: str, keep: Collection[str] = ()) -> Plan:
    """That step, everything that it depends on, and the steps to keep."""
    return _left(plan, step_id, keep, PlanStep.dependencies)


def _left(plan: Plan, step_id: str, keep: Collection[str], before: Callable[[PlanStep], Iterable[str]]) -> Plan:
    steps, wanted, waiting = plan.by_id(), {*keep}, [step_id, *keep]
    wanted.add(step_id)
    while waiting:
        if step := steps.get(waiting.pop()):
            new = {one for one in before(step) if one not in wanted}
            wanted |= new
            waiting += sorted(new)
    return plan.without(*(one for one in steps if one not in wanted))


def fresh_id(plan: Plan, label: str) -> str:
    """A step id that the plan does not have, continuing its numbering."""
    number = len(plan.steps)
    while any(step.step_id.startswith(f"step_{number}_") for step in plan.steps):
        number += 1
    return f"step_{number}_{label}"
