"""Steps of several plans in one: which step is the same call, which id it gets, and where each came from. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.plan_edits import fresh_id
from workbench.plans import Plan, PlanStep, canonical_json


@dataclass(frozen=True)
class Branch:
    """A run as far as joining needs it: its id and its newest plan."""

    run_id: str
    plan: Plan

    @property
    def signs(self) -> dict[str, str]:
        """For each step what it does, whatever it is called."""
        return signatures(self.plan)


@dataclass
class Joined:
    """The steps of several branches.

    Attributes:
        plan: base's, with the steps of the others.
        origins: step of the plan -> the run and the step that it was.
        clashes: ``{"step_id", "values": {run_id: what differs}, "how": both | replaced | dropped, "as": id}`` for each
            id that two branches use for different steps.
    """

    plan: Plan
    origins: dict[str, tuple[str, str]]
    clashes: list[dict[str, Any]] = field(default_factory=list)


def signatures(plan: Plan) -> dict[str, str]:
    """For each step a digest of all that it does and depends on, without any step's id.

    >>> one = Plan(steps=[PlanStep(step_id="a", objective="", tool="t", depends_on=[]),
    ...                   PlanStep(step_id="b", objective="", tool="t", depends_on=["a"])])
    >>> two = Plan(steps=[PlanStep(step_id="x", objective="", tool="t"),
    ...                   PlanStep(step_id="y", objective="", tool="t", depends_on=["x"])])
    >>> list(signatures(one).values()) == list(signatures(two).values())
    True
    """
    signs: dict[str, str] = {}
    for step_id in plan.topological_order():
        step = plan.step(step_id)
        taken = {n: {"$from": f"{signs[s]}.{given}"} for n, (s, given) in step.references().items()}
        told = {
            **step.model_dump(mode="json", exclude={"step_id"}),
            "tool_input": {**step.tool_input, **taken},
            "depends_on": sorted({signs[name] for name in step.dependencies()}),
        }
        signs[step_id] = hashlib.sha256(canonical_json(told).encode()).hexdigest()
    return signs


def join(
    base: Branch,
    wanted: Sequence[tuple[str, Branch]],
    unedited: Callable[[str, str], bool],
    prefer: str | None = None,
) -> Joined:
    """Base's plan with these steps of other branches, each with the steps that it depends on.

    A step that is there already, under whatever id, is not taken twice. An id that means another step in base is
    base's place to be filled when base never edited it (or ``prefer`` says so); else both stay, and the newcomer gets
    an id of its own.

    Args:
        base: the run into whose plan is taken.
        wanted: step ids with the branch of each, in order.
        unedited: whether base's step of that id is as it was where base and that run parted: (run id, step id).
        prefer: the run whose step alone stays where two have the same id.
    """
    joining = _Joining(base, {(branch.run_id, step_id) for step_id, branch in wanted}, unedited, prefer)
    for step_id, branch in wanted:
        joining.bring(branch, step_id)
    return joining.joined


class _Joining:
    def __init__(
        self, base: Branch, named: set[tuple[str, str]], unedited: Callable[[str, str], bool], prefer: str | None
    ):
        self._base, self._named, self._unedited, self._prefer = base, named, unedited, prefer
        self.joined = Joined(base.plan, {step.step_id: (base.run_id, step.step_id) for step in base.plan.steps})
        self._ids: dict[tuple[str, str], str] = {}

    def bring(self, branch: Branch, step_id: str) -> str:
        """The id of that step in the joined plan, into which it is taken when it is not there."""
        if (branch.run_id, step_id) not in self._ids:
            step = branch.plan.step(step_id)
            before = {name: self.bring(branch, name) for name in step.dependencies()}
            self._ids[branch.run_id, step_id] = self._placed(branch, renamed(step, step_id, before))
        return self._ids[branch.run_id, step_id]

    def _placed(self, branch: Branch, step: PlanStep) -> str:
        sign, plan = branch.signs[step.step_id], self.joined.plan
        there = next((known for known, other in signatures(plan).items() if other == sign), None)
        if there is not None:
            return there
        if step.step_id not in plan.by_id():
            return self._add(branch, step, step.step_id)
        how = self._how(branch, step)
        holder, clash = self.joined.origins[step.step_id][0], dict[str, Any]()
        clash |= {"step_id": step.step_id, "how": how, "as": step.step_id}
        mine, other = _told(plan.step(step.step_id)), _told(step)
        parts = [name for name in mine if mine[name] != other[name]]
        clash["values"] = {holder: {n: mine[n] for n in parts}, branch.run_id: {n: other[n] for n in parts}}
        self.joined.clashes.append(clash)
        if how == "replaced":
            steps = [step if s.step_id == step.step_id else s for s in plan.steps]
            self.joined.plan = plan.model_copy(update={"steps": steps})
            self.joined.origins[step.step_id] = (branch.run_id, step.step_id)
        elif how == "both":
            clash["as"] = self._add(branch, step, fresh_id(plan, re.sub(r"^step_\d+_?", "", step.step_id) or "step"))
        return str(clash["as"])

    def _how(self, branch: Branch, step: PlanStep) -> str:
        """What becomes of a step whose id means another one in the plan."""
        holder = self.joined.origins[step.step_id][0]
        needed = self._before(step.dependencies()) | self._before(self._ids.values())
        if (branch.run_id, step.step_id) not in self._named or step.step_id in needed:
            return "both"
        if self._prefer in (holder, branch.run_id):
            return "replaced" if self._prefer == branch.run_id else "dropped"
        mine = holder == self._base.run_id and self._unedited(branch.run_id, step.step_id)
        return "replaced" if mine else "both"

    def _before(self, step_ids: Iterable[str]) -> set[str]:
        """These steps of the plan, and all on which they depend, at any distance."""
        steps, found = self.joined.plan.by_id(), set[str]()
        waiting = list(step_ids)
        while waiting:
            if (name := waiting.pop()) not in found:
                found.add(name)
                waiting += steps[name].dependencies()
        return found

    def _add(self, branch: Branch, step: PlanStep, step_id: str) -> str:
        self.joined.plan = self.joined.plan.adding(step.model_copy(update={"step_id": step_id}))
        self.joined.origins[step_id] = (branch.run_id, step.step_id)
        return step_id


def renamed(step: PlanStep, step_id: str, ids: Mapping[str, str]) -> PlanStep:
    """The step under an id, with its dependencies and references under theirs."""
    taken = {n: {"$from": f"{ids.get(s, s)}.{given}"} for n, (s, given) in step.references().items()}
    return step.model_copy(
        update={
            "step_id": step_id,
            "tool_input": {**step.tool_input, **taken},
            "depends_on": [ids.get(name, name) for name in step.depends_on],
        }
    )


def awake(plan: Plan, ran: Iterable[str]) -> Plan:
    """The plan whose steps that ran where they came from run here too, unasked: that is why they were taken."""
    well = set(ran)
    steps = [
        s.model_copy(update={"condition": "always"}) if s.step_id in well and well >= set(s.dependencies()) else s
        for s in plan.steps
    ]
    return plan.model_copy(update={"steps": steps})


def _told(step: PlanStep) -> dict[str, Any]:
    return step.model_dump(mode="json", exclude={"step_id"})
