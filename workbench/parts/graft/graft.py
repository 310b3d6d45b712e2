"""Merge branches: steps of several runs in one new run, whose tape is the union of theirs.

The plan is joined step by step, and the rest is a fork of the base. Where two runs recorded one call differently, the
base's record is used; ``wb.compare`` shows what they differ in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import RunError, shown
from workbench.plans import (
    ENDED_WELL,
    Plan,
    PlanStep,
    canonical_json,
    fresh_id,
    last_records,
    needed,
    step_renamed,
)
from workbench.records.proposals import JUDGED_BY
from workbench.runs.run import Run
from workbench.runs.stored import Recording, snapshot
from workbench.session import Workbench
from workbench.state import Json
from workbench.text import text_digest


def graft(
    wb: Workbench,
    steps: Mapping[str, Run | str | Sequence[Run | str]],
    *,
    base: Run | str | None = None,
    **options: Any,
) -> Run:
    """Merge branches: a new run that takes each of these steps, and what it depends on, from the run named for it.

    The tapes of all these runs answer; only what no tape knows is done, then reflection, merge and answer. A step
    replaces the base's step of the same id. Where two runs recorded one thing differently, the base's holds.

    Args:
        wb: the workspace.
        steps: step id -> the run that it comes from, or several runs.
        base: the run whose plan, question and settings the others' steps join; None for the first one.
        options: what ``Run.fork`` takes too, as ``review``.

    Returns:
        The new run: ``options["graft"]`` has its ``base`` and its ``steps`` with their origins.

    Raises:
        RunError: no such step, or a run that still runs.
    """
    wb._must_be_open()
    if not isinstance(steps, Mapping) or not steps:
        raise RunError('Name the steps to take and the run of each: {"step_2": run}.')

    def read(run: Run | str) -> Recording:
        return snapshot(wb.run(run) if isinstance(run, str) else run)

    wanted = [
        (read(run), step_id)
        for step_id, runs in steps.items()
        for run in ([runs] if isinstance(runs, (str, Run)) else runs)
    ]
    taken = [run for run, _ in wanted]
    sources = {run.run_id: run for run in ([read(base), *taken] if base else taken)}
    plans = {run_id: _plan(run) for run_id, run in sources.items()}
    for run, step_id in wanted:
        if step_id not in plans[run.run_id].by_id():
            step_ids = ", ".join(plans[run.run_id].by_id()) or "none"
            raise RunError(f"Run {run.run_id} has no step {shown(step_id)}. It has: {step_ids}.")
    ground = next(iter(sources.values()))
    joined = Joined(ground.run_id, plans, [(run.run_id, step_id) for run, step_id in wanted])
    origins = {
        new: {"run_id": run_id, "step_id": step_id}
        for new, (run_id, step_id) in joined.origins.items()
    }
    edits: Json = {"graft": {"base": ground.run_id, "steps": origins}, "sources": list(sources)}
    by_hand = [run.options.get("results", {}) for run in reversed([*sources.values()])]
    if any(by_hand):
        edits["results"] = {name: value for results in by_hand for name, value in results.items()}
    if joined.plan != ground.plan:
        succeeded = {
            (run.run_id, step_id)
            for run in sources.values()
            for step_id, record in last_records(run.records).items()
            if record["status"] in ENDED_WELL
        }
        ran = {step_id for step_id, origin in joined.origins.items() if origin in succeeded}
        edits |= {"plan": _unconditional(joined.plan, ran), "review": (), **_decided(ground)}
    return wb.run(ground.run_id).fork(**edits, **options)


def signatures(plan: Plan) -> dict[str, str]:
    """Return for each step a digest of all that it does and depends on, without any step's id.

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
        content = {
            **step.model_dump(mode="json", exclude={"step_id"}),
            "tool_input": step.input_with(signs.__getitem__),
            "depends_on": sorted({signs[name] for name in step.dependencies()}),
        }
        signs[step_id] = text_digest(canonical_json(content))
    return signs


class Joined:
    """The base's plan with steps of other runs, each with the steps that it depends on.

    A step that the plan already has, under any id, is not taken twice. A wanted step replaces the base's step of the
    same id, unless another step that was taken depends on that one; then it gets a new id.

    Args:
        base: the run into whose plan steps are taken.
        plans: the plan of each run.
        wanted: runs and step ids, in order.

    Attributes:
        plan: the joined plan.
        origins: step of the plan -> the run and the step that it was.
    """

    def __init__(self, base: str, plans: Mapping[str, Plan], wanted: Sequence[tuple[str, str]]):
        self.plan = plans[base]
        self.origins = {step.step_id: (base, step.step_id) for step in self.plan.steps}
        self._base = base
        self._plans = plans
        self._wanted = wanted
        self._ids: dict[tuple[str, str], str] = {}
        for run_id, step_id in wanted:
            self._take(run_id, step_id)

    def _take(self, run_id: str, step_id: str) -> str:
        """Return the id of that step in the joined plan, and add it when it is missing."""
        if (run_id, step_id) not in self._ids:
            step = self._plans[run_id].step(step_id)
            before = {name: self._take(run_id, name) for name in step.dependencies()}
            self._ids[run_id, step_id] = self._place(run_id, step_renamed(step, before))
        return self._ids[run_id, step_id]

    def _place(self, run_id: str, step: PlanStep) -> str:
        signature = signatures(self._plans[run_id])[step.step_id]
        for same_id, present in signatures(self.plan).items():
            if present == signature:
                return same_id
        new_id = step.step_id
        if new_id not in self.origins:
            self.plan = self.plan.adding(step)
        elif self._may_replace(run_id, step):
            steps = [step if s.step_id == new_id else s for s in self.plan.steps]
            self.plan = self.plan.copy_with(steps=steps)
        else:
            new_id = fresh_id(self.plan, re.sub(r"^step_\d+_?", "", new_id) or "step")
            self.plan = self.plan.adding(step.copy_with(step_id=new_id))
        self.origins[new_id] = (run_id, step.step_id)
        return new_id

    def _may_replace(self, run_id: str, step: PlanStep) -> bool:
        used = {
            name
            for end in (*step.dependencies(), *self._ids.values())
            for name in needed(self.plan, end)
        }
        wanted = (run_id, step.step_id) in self._wanted
        return wanted and self.origins[step.step_id][0] == self._base and step.step_id not in used


def _plan(run: Recording) -> Plan:
    if run.status == "running":
        raise RunError(f"Run {run.run_id} is still running. Wait for it, or cancel it.")
    if run.plan is None:
        raise RunError(
            f"Run {run.run_id} has no plan: it asked no knowledge base, so there is no step to take."
        )
    return run.plan


def _unconditional(plan: Plan, ran: set[str]) -> Plan:
    """Return the plan with the condition removed of each step that ran in its run: that is why it was taken."""
    steps = [
        s.copy_with(condition="always") if ran >= {s.step_id, *s.dependencies()} else s
        for s in plan.steps
    ]
    return plan.copy_with(steps=steps)


def _decided(run: Recording) -> Json:
    """Return the question, the thresholds and the needs as people's decisions left them."""
    edits = [decision["edits"] for decision in run.decisions]
    reworded = any(d["action"] == "respond" or d["edits"].get("query") for d in run.decisions)
    decided: Json = {"query": run.query} if reworded else {}
    for name in JUDGED_BY:
        if values := {n: v for edit in edits for n, v in (edit.get(name) or {}).items()}:
            decided[name] = values
    return decided
