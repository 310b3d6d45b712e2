"""A plan while a person edits it: undo, steps moved, fixes, and the parts that cannot change."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench.plans import Plan, PlanStep
from workbench.records import proposals
from workbench.state import Data, ExecutionRecord, Json


class Draft:
    """A plan with undo.

    Args:
        base: the plan before any edit.

    Attributes:
        plan: the plan as edited.
        before: the plans before each edit, which can be undone.
    """

    def __init__(self, base: Plan):
        self.base = self.plan = base
        self.before: list[Plan] = []
        self._key: Hashable = None

    def edit(self, plan: Plan, key: Hashable = None) -> None:
        """Replace the plan. Consecutive edits with the same key are undone at once, like the letters of a word."""
        if plan == self.plan:
            return
        if key is None or key != self._key:
            self.before.append(self.plan)
        self.plan = plan
        self._key = key

    def undo(self) -> None:
        """Undo the last edit."""
        if self.before:
            self.plan = self.before.pop()
            self._key = None

    def discard(self) -> None:
        """Return to the base, as an edit that can be undone."""
        self.edit(self.base)

    def changes(self) -> Json:
        """Return what differs from the base (``Plan.diff``)."""
        return self.base.diff(self.plan)


@dataclass(frozen=True)
class RunPlan:
    """The plan of a run's document.

    Attributes:
        plan: the plan, with the steps that a reflection proposes.
        records: the records of its steps.
        proposed: ids of the proposed steps.
        locks: why a step cannot be changed, by id: ``ran``, ``approved``, ``running`` or ``ended``.
        query: the query of a new step.
        key: equal for two documents whose plan is edited as one.
    """

    plan: Plan = field(default_factory=Plan)
    records: tuple[ExecutionRecord, ...] = ()
    proposed: Collection[str] = ()
    locks: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    key: tuple[str, ...] = ()

    @classmethod
    def from_document(cls, document: Data, editable: bool) -> RunPlan:
        """Read a run's document."""
        recorded = Plan.load(document["plan"]) if document["plan"] else Plan()
        review = document["review"] or {}
        records = tuple(document["records"])
        status = document["status"]
        reflects = review.get("point") == "reflect"
        approved = recorded.by_id()
        next_steps = proposals.proposal(review).get("next_steps") or () if reflects else ()
        steps = [
            PlanStep.model_validate(step)
            for step in next_steps
            if step["step_id"] not in approved
        ]
        plan = recorded.adding(*steps)
        proposed = {step.step_id for step in steps}
        ran = {record["step_id"] for record in records}
        locks = {}
        for step_id in plan.by_id():
            if not editable:
                locks[step_id] = "ended" if status in ("failed", "cancelled") else "running"
            elif status == "paused" and step_id in ran:
                locks[step_id] = "ran"
            elif reflects and step_id not in proposed:
                locks[step_id] = "approved"
        key = (document["run_id"], str(recorded.version), plan.plan_id)
        return cls(plan, records, proposed, locks, document["message"], key)


class Fix(NamedTuple):
    """A change that solves a problem: the key and the subject of its label, and the changed plan."""

    label: str
    subject: object
    plan: Plan


def suggest_fix(plan: Plan, problem: Data, step_id: str) -> Fix | None:
    """Return the obvious fix of a problem in this step, if there is one; every step of a cycle has its own.

    The problem comes from ``Plan.problems`` or ``tools.registry.check``.

    >>> plan = Plan(steps=[PlanStep(step_id="a", objective="", tool="t", depends_on=["b"])])
    >>> suggest_fix(plan, plan.problems()[0], "a")[:2]
    ('fix_unlink', 'b')
    """
    step = plan.by_id().get(step_id)
    kind = problem["kind"]
    values = problem["values"]
    if step is None:
        return None
    if kind in ("cycle", "no_such_step"):
        path = values.get("path", ())
        source = path[path.index(step_id) + 1] if step_id in path else values.get("missing")
        depends_on = [dependency for dependency in step.depends_on if dependency != source]
        references = {name for name, (origin, _) in step.references().items() if origin == source}
        tool_input = {
            name: value for name, value in step.tool_input.items() if name not in references
        }
        return Fix(
            "fix_first" if path[2:] else "fix_unlink",
            source,
            plan.replace(step_id, depends_on=depends_on, tool_input=tool_input),
        )
    name = values.get("name")
    default = values.get("default")
    if kind == "too_small":
        return Fix("fix_change", default, plan.replace(step_id, **{name: default}))
    # the list of tools is next to an unknown one
    if default is None and kind != "not_given" and values.get("rule") != "extra_forbidden":
        return None
    fixed = plan.replace(step_id, tool_input=_without(step.tool_input, name.split(".")))
    if fixed == plan:  # the input is inside a list
        return None
    return (
        Fix("fix_remove", name, fixed) if default is None else Fix("fix_change", default, fixed)
    )


def _without(value: Any, path: Sequence[str]) -> Any:
    """Return a copy of an object without the property at this path."""
    name, *rest = path
    if not isinstance(value, dict) or name not in value:
        return value
    if rest:
        return {**value, name: _without(value[name], rest)}
    return {key: item for key, item in value.items() if key != name}
