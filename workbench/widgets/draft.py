"""A plan while a person edits it: what was shown, what it is now, the way back, and what is different."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench.plans import Plan, PlanStep, renamed
from workbench.records import proposals
from workbench.state import ExecutionRecord
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
        """The plan as it stands."""
        return self._state.plan

    @property
    def undoable(self) -> bool:
        """Whether there is an edit to take back."""
        return self._at > 0

    @property
    def redoable(self) -> bool:
        """Whether an edit was taken back."""
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
        """The id that a step had in the plan that was shown; empty for a new one."""
        return self._state.origins.get(step_id, "")

    def now(self, origin: str) -> str:
        """The id that a step of the plan that was shown has now; empty when it is gone."""
        return next((now for now, was in self._state.origins.items() if was == origin), "")

    def shown(self) -> Plan:
        """The plan that was shown, with the ids of now."""
        origins = self._state.origins
        return renamed(self.base, {was: now for now, was in origins.items() if now != was})

    def changes(self) -> Changes:
        """What is different from the plan that was shown."""
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
    def of(cls, document: Mapping[str, Any], editable: bool) -> RunPlan:
        """That of a run's document."""
        given = Plan.load(document["plan"]) if document["plan"] else Plan()
        review, records, status = document["review"] or {}, tuple(document["records"]), document["status"]
        reflects, known = review.get("point") == "reflect", given.by_id()
        told = proposals.proposal(review).get("next_steps") or () if reflects else ()
        steps = [PlanStep.model_validate(step) for step in told if step["step_id"] not in known]
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
