"""What is proposed at a review point: what of it can be edited, the values now in force, and what an edit changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from workbench.plans import Plan, PlanStep


def renamed(plan: Plan, names: Mapping[str, str]) -> Plan:
    """A copy with other ids for some steps, by their old ones; dependencies and references follow.

    >>> plan = Plan(steps=[PlanStep(step_id=i, objective="", tool="t", depends_on=["a"] * (i == "b")) for i in "ab"])
    >>> [(step.step_id, step.depends_on) for step in renamed(plan, {"a": "z"}).steps]
    [('z', []), ('b', ['z'])]
    """
    return plan.model_copy(update={"steps": [step_renamed(step, names) for step in plan.steps]}) if names else plan


def step_renamed(step: PlanStep, names: Mapping[str, str]) -> PlanStep:
    """A copy of the step with other ids for itself and for what it depends on, by the old ones."""
    taken = {name: {"$from": f"{names.get(s, s)}.{field}"} for name, (s, field) in step.references().items()}
    return step.model_copy(
        update={
            "step_id": names.get(step.step_id, step.step_id),
            "depends_on": [names.get(one, one) for one in step.depends_on],
            "tool_input": {**step.tool_input, **taken},
        }
    )


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


def needed(plan: Plan, step_id: str, before: Callable[[PlanStep], Iterable[str]] = PlanStep.dependencies) -> set[str]:
    """The ids of that step and of everything before it, by what stands ``before`` a step."""
    steps, found, waiting = plan.by_id(), {step_id}, [step_id]
    while waiting:
        if step := steps.get(waiting.pop()):
            new = {*before(step)} - found
            found |= new
            waiting += new
    return found


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


def fresh_id(plan: Plan, label: str) -> str:
    """A step id that the plan does not have, continuing its numbering."""
    number = len(plan.steps)
    while any(step.step_id.startswith(f"step_{number}_") for step in plan.steps):
        number += 1
    return f"step_{number}_{label}"


def mended(plan: Plan, problem: Mapping[str, Any], step_id: str) -> tuple[str, str, Plan] | None:
    """The mend of one problem in one step, where there is a plain one: ``take_out`` or ``set``, of what, and the plan.

    A problem is one of ``Plan.problems`` or ``tools.registry.check``. In a cycle every step has a mend of its own.
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


def edit_of(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> dict[str, list[str]]:
    """Which steps of a plan (as JSON) are not as they were, by id: ``added``, ``removed``, ``changed``."""
    if not before:
        return {"added": [step["step_id"] for step in after["steps"]], "removed": [], "changed": []}
    diff = Plan.load(before).diff(Plan.load(after))
    return {"added": diff["added"], "removed": diff["removed"], "changed": sorted(diff["changed"])}


Request = Mapping[str, Any]
Step = Mapping[str, Any]
LIMITS = "thresholds"
"""The one edit that holds only what changes of it."""
_KINDS = {
    "plan": {"plan"},
    "step": {"plan", "wave"},
    "reflect": {"next_steps", "activate", "rewrite_query", "should_continue"},
}


def proposal(request: Request) -> Mapping[str, Any]:
    """What is proposed."""
    return _first(request, "action_requests").get("args") or {}


def point(request: Request) -> str:
    """The review point; in a graph of one's own the name of the action."""
    return str(request.get("point") or _first(request, "action_requests").get("name") or "")


def kind(request: Request) -> str:
    """``plan``, ``step`` or ``reflect`` where that is what is proposed; empty in a graph of one's own."""
    found = point(request)
    needed = _KINDS.get(found)
    return found if needed and needed <= set(proposal(request)) else ""


def description(request: Request) -> str:
    """What the graph says about it, in a sentence."""
    return str(_first(request, "action_requests").get("description") or "")


def allowed(request: Request) -> tuple[str, ...]:
    """The answers that are taken; all of them where nothing is said."""
    return tuple(_first(request, "review_configs").get("allowed_decisions") or ("approve", "edit", "reject", "respond"))


def schema(request: Request) -> Mapping[str, Any]:
    """The JSON schema of what can be edited."""
    return _first(request, "review_configs").get("args_schema") or {"type": "object", "properties": {}}


def property_of(name: str, of: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of one property, without references and null.

    >>> property_of("a", {"$defs": {"A": {"type": "object"}}, "properties": {"a": {"anyOf": [{"$ref": "#/$defs/A"}]}}})
    {'type': 'object'}
    """
    return resolved(of.get("properties", {}).get(name, {}), of.get("$defs", {}))


def resolved(spec: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema without references and null."""
    for _ in range(5):
        options = [one for one in spec.get("anyOf", ()) if one.get("type") != "null"]
        if len(options) == 1:
            spec = options[0]
        elif "$ref" in spec:
            spec = definitions.get(str(spec["$ref"]).rpartition("/")[2], {})
        else:
            break
    return spec


def in_force(request: Request) -> dict[str, Any]:
    """What can be edited, with the values that hold now; what has none is left out.

    >>> asked = {"action_requests": [{"args": {"rewrite_query": "q", "reasoning": "thin"}}],
    ...          "review_configs": [{"args_schema": {"properties": {"rewrite_query": {}, "activate": {}}}}]}
    >>> in_force(asked)
    {'rewrite_query': 'q'}
    """
    args, form = proposal(request), schema(request)
    held = {**(request.get("in_force") or {}), **args}
    held.setdefault(LIMITS, _judged_by(request))
    names = form.get("properties", {})
    found = {name: held[name] for name in names if held.get(name) is not None}
    if isinstance(found.get(LIMITS), Mapping):
        known = property_of(LIMITS, form).get("properties", {})
        found[LIMITS] = {name: value for name, value in found[LIMITS].items() if name in known}
    return found


def fewer(request: Request) -> dict[str, int]:
    """``n`` pieces are asked for, and ``least`` are all that the knowledge base can give; empty where it has as many.

    >>> fewer({"in_force": {"thresholds": {"min_evidence": 8}},
    ...        "action_requests": [{"args": {"signals": {"thresholds": {"min_evidence": 3}}}}]})
    {'n': 8, 'least': 3}
    """
    asked = ((request.get("in_force") or {}).get(LIMITS) or {}).get("min_evidence", 0)
    least = (_judged_by(request) or {}).get("min_evidence", asked)
    return {"n": int(asked), "least": int(least)} if least < asked else {}


def _judged_by(request: Request) -> Mapping[str, Any] | None:
    """The thresholds by which a reflection judged: never more than the knowledge base can give."""
    seen = proposal(request).get("signals")
    return seen.get(LIMITS) or None if isinstance(seen, Mapping) else None


def differing(before: Mapping[str, Any], now: Mapping[str, Any], required: Iterable[str] = ()) -> dict[str, Any]:
    """What of ``now`` is not as it was; nothing for None, which leaves a value as it is.

    >>> before = {"query": "a", "thresholds": {"min_evidence": 8, "min_top_score": 0.5}}
    >>> differing(before, {"query": "a", "thresholds": {"min_evidence": 3, "min_top_score": 0.5}})
    {'thresholds': {'min_evidence': 3}}
    """
    changed: dict[str, Any] = {}
    for name, value in now.items():
        old = before.get(name)
        if value is None or value == old:
            continue
        if name == LIMITS and isinstance(value, Mapping) and isinstance(old, Mapping):
            value = differing(old, value)
            if not value:
                continue
        changed[name] = value
    if changed:
        changed = {**{name: now[name] for name in required if name in now}, **changed}
    return changed


def next_pass(
    proposed: Mapping[str, Any], steps: Sequence[Step], woken: Sequence[str], query: str, goes_on: bool | None
) -> dict[str, Any]:
    """What differs from a reflection's proposal in its next steps, woken steps, query, and whether to go on.

    Steps that are left as they were proposed ask the new query, where they asked the old one.

    Args:
        proposed: the reflection.
        steps: the steps to run next.
        woken: ids of conditional steps to run.
        query: the rewritten query.
        goes_on: what a person chose; None leaves it to what there is to do.
    """
    changed: dict[str, Any] = {}
    before, old = list(proposed["next_steps"]), str(proposed["rewrite_query"])
    if list(steps) != before:
        changed["next_steps"] = [_asking(step, old, query) if step in before else dict(step) for step in steps]
    if list(woken) != list(proposed["activate"]):
        changed["activate"] = list(woken)
    if query != old:
        changed["rewrite_query"] = query
    follows = will_go_on(proposed, changed)
    if goes_on is not None and goes_on != follows:
        changed["should_continue"] = goes_on
    return changed


def will_go_on(proposed: Mapping[str, Any], changed: Mapping[str, Any]) -> bool:
    """Whether retrieval goes on after these edits, as the graph takes them."""
    if "should_continue" in changed:
        return bool(changed["should_continue"])
    if not set(changed) - {LIMITS}:
        return bool(proposed["should_continue"])
    now, old = {**proposed, **changed}, proposed["rewrite_query"]
    return bool(now["next_steps"] or now["activate"] or (now["rewrite_query"] and now["rewrite_query"] != old))


def waves(steps: Sequence[Step]) -> list[list[str]]:
    """Ids of steps that can run together, wave by wave; what is in a cycle comes last, as one.

    >>> waves([{"step_id": "a", "depends_on": []}, {"step_id": "b", "depends_on": ["a"]}])
    [['a'], ['b']]
    """
    left = {step["step_id"]: set(step.get("depends_on") or ()) for step in steps}
    found: list[list[str]] = []
    while left:
        ready = [step_id for step_id, before in left.items() if not before & left.keys()] or list(left)
        found.append(ready)
        for step_id in ready:
            del left[step_id]
    return found


def _asking(step: Step, old: str, new: str) -> dict[str, Any]:
    if not (old and new):
        return dict(step)
    return {**step, "tool_input": {name: new if value == old else value for name, value in step["tool_input"].items()}}


def _first(request: Request, part: str) -> Mapping[str, Any]:
    found = request.get(part) or [{}]
    return found[0] if isinstance(found[0], Mapping) else {}
