"""A plan while a person edits it: the way back and what is different; steps moved, held back, fixed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

from workbench.plans import Plan, PlanStep, fresh_id, needed, renamed
from workbench.records import proposals
from workbench.state import Data, ExecutionRecord
from workbench.views.plan_graph import Changes


class _State(NamedTuple):
    plan: Plan
    origins: Mapping[str, str]


class Draft:
    """A plan with undo. A step keeps what it was when its id changes.

    Args:
        base: the plan that was shown.
    """

    def __init__(self, base: Plan):
        self.base = base
        self._states = [_State(base, {step.step_id: step.step_id for step in base.steps})]
        self._at = 0
        self._key: Hashable = None

    @property
    def _state(self) -> _State:
        return self._states[self._at]

    @property
    def plan(self) -> Plan:
        """Return the plan as it stands."""
        return self._state.plan

    @property
    def undoable(self) -> bool:
        """Return whether there is an edit to take back."""
        return self._at > 0

    @property
    def redoable(self) -> bool:
        """Return whether an edit was taken back."""
        return self._at < len(self._states) - 1

    def do(self, plan: Plan, key: Hashable = None, names: Mapping[str, str] = {}) -> None:
        """Make it that plan.

        Args:
            plan: the edited plan.
            key: edits in a row with the same key are taken back at once, as the letters of a word are.
            names: the new ids of steps by their old ones.
        """
        if plan == self.plan:
            return
        known = plan.by_id()
        origins = {now: was for old, was in self._state.origins.items() if (now := names.get(old, old)) in known}
        more = key is not None and key == self._key and self.undoable and not self.redoable
        self._states[self._at if more else self._at + 1 :] = [_State(plan, origins)]
        self._at, self._key = len(self._states) - 1, key

    def undo(self) -> None:
        """Take the last edit back."""
        self._at, self._key = max(self._at - 1, 0), None

    def redo(self) -> None:
        """Make the edit again that was taken back."""
        self._at, self._key = min(self._at + 1, len(self._states) - 1), None

    def discard(self) -> None:
        """The plan that was shown, as an edit that can be taken back."""
        if self.plan != self.base:
            self._states[self._at + 1 :] = [self._states[0]]
            self._at, self._key = self._at + 1, None

    def origin(self, step_id: str) -> str:
        """Return the id that a step had in the plan that was shown; empty for a new one."""
        return self._state.origins.get(step_id, "")

    def now(self, origin: str) -> str:
        """Return the id that a step of the plan that was shown has now; empty when it is gone."""
        return next((now for now, was in self._state.origins.items() if was == origin), "")

    def shown(self) -> Plan:
        """Return the plan that was shown, with the ids of now."""
        origins = self._state.origins
        return renamed(self.base, {was: now for now, was in origins.items() if now != was})

    def changes(self) -> Changes:
        """Return what is different from the plan that was shown."""
        origins, before = self._state.origins, self.shown()
        differs = before.diff(self.plan)["changed"]
        named = {now: {"step_id": [was, now]} if was != now else {} for now, was in origins.items()}
        changed = {now: {**name, **differs.get(now, {})} for now, name in named.items()}
        return Changes(
            version=self.base.version,
            added=[step for step in self.plan.steps if step.step_id not in origins],
            removed=[step for step in self.base.steps if not self.now(step.step_id)],
            changed={now: fields for now, fields in changed.items() if fields},
            moved=[i for i in before.by_id() if i in origins] != [i for i in self.plan.by_id() if i in origins],
        )


@dataclass(frozen=True)
class RunPlan:
    """What a run's document says of its plan: the steps, which of them are proposed, which may not be changed and why.

    Attributes:
        plan: the plan, with what the reflection proposes.
        records: what has run.
        proposed: ids of the proposed steps.
        locks: why a step cannot be changed, by id: ``ran``, ``approved``, ``running`` or ``ended``.
        query: what a new step asks first.
        key: equal for two documents whose plan is edited as one.
        status: of the run.
    """

    plan: Plan = field(default_factory=Plan)
    records: tuple[ExecutionRecord, ...] = ()
    proposed: Collection[str] = ()
    locks: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    key: tuple[str, ...] = ()
    status: str = ""

    @classmethod
    def of(cls, document: Data, editable: bool) -> RunPlan:
        """That of a run's document."""
        given = Plan.load(document["plan"]) if document["plan"] else Plan()
        review, records, status = document["review"] or {}, tuple(document["records"]), document["status"]
        reflects, known = review.get("point") == "reflect", given.by_id()
        words = proposals.proposal(review).get("next_steps") or () if reflects else ()
        steps = [PlanStep.model_validate(step) for step in words if step["step_id"] not in known]
        plan, proposed = given.adding(*steps), {step.step_id for step in steps}
        ran = {record["step_id"] for record in records}
        locks = {}
        for step in plan.steps:
            if not editable:
                locks[step.step_id] = "ended" if status in ("failed", "cancelled") else "running"
            elif status == "paused" and step.step_id in ran:
                locks[step.step_id] = "ran"
            elif reflects and step.step_id not in proposed:
                locks[step.step_id] = "approved"
        key = (document["run_id"], str(given.version), plan.plan_id)
        return cls(plan, records, proposed, locks, document["message"], key, status)


# what is done to a plan besides its fields


def moved(plan: Plan, step_id: str, before: str = "") -> Plan:
    """Return a copy with that step standing before another, or at the end.

    >>> plan = Plan(steps=[PlanStep(step_id=i, objective="", tool="t") for i in "abc"])
    >>> [step.step_id for step in moved(plan, "c", "a").steps], [step.step_id for step in moved(plan, "a").steps]
    (['c', 'a', 'b'], ['b', 'c', 'a'])
    """
    steps = [step for step in plan.steps if step.step_id != step_id]
    place = next((at for at, step in enumerate(steps) if step.step_id == before), len(steps))
    return plan.model_copy(update={"steps": [*steps[:place], plan.step(step_id), *steps[place:]]})


def duplicated(plan: Plan, step_id: str) -> tuple[Plan, str]:
    """Return a copy with the same step once more, right after it, and the id of that one."""
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


def mended(plan: Plan, problem: Data, step_id: str) -> tuple[str, str, Plan] | None:
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
