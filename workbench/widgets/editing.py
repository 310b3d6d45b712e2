"""What a person does to a plan besides its fields: move, duplicate, hold back, release; take a suggested fix."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from workbench.plans import Plan, PlanStep, fresh_id, needed


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
    """Hold back all but that step, what its input is taken from, and the steps to keep; it waits for no other."""
    return _held(plan, step_id, keep, lambda step: (source for source, _ in step.references().values()))


def up_to(plan: Plan, step_id: str, keep: Collection[str] = ()) -> Plan:
    """Hold back all but that step, everything that it depends on, and the steps to keep."""
    return _held(plan, step_id, keep, PlanStep.dependencies)


def released(plan: Plan, keep: Collection[str] = ()) -> Plan:
    """Nothing is held back any more, but of the steps to keep.

    >>> plan = Plan(steps=[PlanStep(step_id=i, objective="", tool="t", condition="held") for i in "ab"])
    >>> [step.condition for step in released(plan, {"a"}).steps]
    ['held', 'always']
    """
    free = {step.step_id for step in plan.steps if step.condition == "held"} - {*keep}
    steps = [s.model_copy(update={"condition": "always"}) if s.step_id in free else s for s in plan.steps]
    return plan.model_copy(update={"steps": steps})


def _held(plan: Plan, step_id: str, keep: Collection[str], before: Callable[[PlanStep], Iterable[str]]) -> Plan:
    wanted = needed(plan, step_id, before) - {*keep}

    def changed(step: PlanStep) -> PlanStep:
        if step.step_id in wanted:
            waits = [one for one in step.depends_on if one in wanted or one in keep]
            return step.model_copy(update={"depends_on": waits, "condition": "always"})
        return step if step.step_id in keep else step.model_copy(update={"condition": "held"})

    return plan.model_copy(update={"steps": [changed(step) for step in plan.steps]})


def mended(plan: Plan, problem: Mapping[str, Any], step_id: str) -> tuple[str, str, Plan] | None:
    """The fix of one problem in one step, where there is a plain one: ``take_out`` or ``set``, of what, and the plan.

    A problem is one of ``Plan.problems`` or ``tools.registry.check``. In a cycle every step has a fix of its own.
    """
    step, kind, values = plan.by_id().get(step_id), problem.get("kind"), problem.get("values", {})
    if step is None:
        return None
    if kind in ("cycle", "no_such_step"):
        path = values.get("path", ())
        source = path[path.index(step_id) + 1] if step_id in path else values.get("missing", "")
        left = {
            name: step.tool_input[name] for name in step.tool_input if step.references().get(name, ("",))[0] != source
        }
        depends = [one for one in step.depends_on if one != source]
        return "take_out", source, plan.replace(step_id, depends_on=depends, tool_input=left)
    if kind == "too_small":
        return "set", str(values["default"]), plan.replace(step_id, **{values["name"]: values["default"]})
    if kind == "unknown_tool" and (near := get_close_matches(step.tool, values["known"].split(", "), n=1)):
        return "set", near[0], plan.replace(step_id, tool=near[0])
    default = values.get("default")
    if default is not None or kind == "not_given" or values.get("rule") == "extra_forbidden":
        left = _without_path(step.tool_input, values["name"].split("."))
        verb, what = ("take_out", values["name"]) if default is None else ("set", default)
        return verb, what, plan.replace(step_id, tool_input=left)
    return None


def _without_path(value: Any, path: Sequence[str]) -> Any:
    if not isinstance(value, dict) or path[0] not in value:
        return value
    if len(path) == 1:
        return {name: one for name, one in value.items() if name != path[0]}
    return {**value, path[0]: _without_path(value[path[0]], path[1:])}
