"""Merge branches: steps of several runs in one new run, whose tape is the union of theirs.

The plan is joined step by step, and the rest is a fork of the base. Where two runs recorded one thing differently, the
base's record holds; the conflicts are listed in the new run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from workbench.errors import RunError, shown
from workbench.plans import ENDED_WELL, Plan, PlanStep, canonical_json, fresh_id, last_records, needed, step_renamed
from workbench.records.proposals import JUDGED_BY
from workbench.records.tape import begun, comparable
from workbench.runs.recording import Recording
from workbench.state import Data, Json

Conflict = Json


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
        taken = {n: {"$from": f"{signs[s]}.{given}"} for n, (s, given) in step.references().items()}
        content = {
            **step.model_dump(mode="json", exclude={"step_id"}),
            "tool_input": {**step.tool_input, **taken},
            "depends_on": sorted({signs[name] for name in step.dependencies()}),
        }
        signs[step_id] = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    return signs


class Joined:
    """The base's plan with steps of other runs, each with the steps that it depends on.

    A step that the plan has already, under any id, is not taken twice. A wanted step replaces the base's step of the
    same id, unless another step that was taken depends on that one; then it gets an id of its own.

    Args:
        base: the run into whose plan steps are taken.
        plans: the plan of each run.
        wanted: runs and step ids, in order.

    Attributes:
        plan: the joined plan.
        origins: step of the plan -> the run and the step that it was.
        clashes: a conflict for each id that two runs use for different steps.
    """

    def __init__(self, base: str, plans: Mapping[str, Plan], wanted: Sequence[tuple[str, str]]):
        self.plan, self.clashes = plans[base], list[Conflict]()
        self.origins = {step.step_id: (base, step.step_id) for step in self.plan.steps}
        self._base, self._plans, self._wanted = base, plans, wanted
        self._ids: dict[tuple[str, str], str] = {}
        for run_id, step_id in wanted:
            self._bring(run_id, step_id)

    def _bring(self, run_id: str, step_id: str) -> str:
        """Return the id of that step in the joined plan, and take it when it is missing."""
        if (run_id, step_id) not in self._ids:
            step = self._plans[run_id].step(step_id)
            before = {name: self._bring(run_id, name) for name in step.dependencies()}
            self._ids[run_id, step_id] = self._place(run_id, step_renamed(step, before))
        return self._ids[run_id, step_id]

    def _place(self, run_id: str, step: PlanStep) -> str:
        step_id, sign = step.step_id, signatures(self._plans[run_id])[step.step_id]
        for same_id, other in signatures(self.plan).items():
            if other == sign:
                return same_id
        placed, kept = step_id, self.plan.by_id().get(step_id)
        if kept is None:
            self.plan = self.plan.adding(step)
        elif replaces := self._may_replace(run_id, step):
            steps = [step if s.step_id == step_id else s for s in self.plan.steps]
            self.plan = self.plan.model_copy(update={"steps": steps})
        else:
            placed = fresh_id(self.plan, re.sub(r"^step_\d+_?", "", step_id) or "step")
            self.plan = self.plan.adding(step.model_copy(update={"step_id": placed}))
        if kept is not None:
            values = {self.origins[step_id][0]: kept, run_id: step}
            dumped = {run: other.model_dump(mode="json") for run, other in values.items()}
            how = "replaced" if replaces else "both"
            self.clashes.append({"kind": "step", "where": step_id, "values": dumped, "how": how, "as": placed})
        self.origins[placed] = (run_id, step_id)
        return placed

    def _may_replace(self, run_id: str, step: PlanStep) -> bool:
        used = {name for end in (*step.dependencies(), *self._ids.values()) for name in needed(self.plan, end)}
        wanted = (run_id, step.step_id) in self._wanted
        return wanted and self.origins[step.step_id][0] == self._base and step.step_id not in used


def conflicts_of(runs: Sequence[Recording]) -> Iterator[Conflict]:
    """Yield what the runs disagree on, the base first: question, knowledge base, settings, and one call's outcome."""
    stated: dict[tuple[str, str], Json] = {}
    for run in runs:
        stated.setdefault(("question", "query"), {})[run.run_id] = run.query
        stated.setdefault(("knowledge_base", "kb"), {})[run.run_id] = run.state.get("kb_prefix", "")
        for name, value in begun(run.tape()).get("settings", {}).items():
            stated.setdefault(("settings", name), {})[run.run_id] = value
        for effect in run.tape():
            outcome = effect.value
            if effect.kind == "tool":
                outcome = [effect.value["record"]["status"], effect.value["body"]]
            if effect.kind in ("tool", "model", "handler") or effect.name.endswith(".fingerprint"):
                digest = hashlib.sha256(canonical_json(comparable(outcome)).encode()).hexdigest()[:12]
                place = ("tape", f"{effect.kind} {effect.name} {effect.key[:8]}")
                stated.setdefault(place, {})[run.run_id] = digest
    for (kind, where), values in stated.items():
        if len({canonical_json(value) for value in values.values()}) > 1:
            yield {"kind": kind, "where": where, "values": values, "how": "base"}


def edits_of(steps: Mapping[str, Sequence[Recording]], base: Recording | None = None) -> tuple[str, Json]:
    """Return the run on whose plan the steps are put together, and the edits of the fork that does it.

    Args:
        steps: step id -> the runs from which it is taken.
        base: the run into whose plan they are taken; the first of the runs when it is None.

    Raises:
        RunError: no such step, or a run that still runs.
    """
    if not isinstance(steps, Mapping) or not steps:
        raise RunError('Name the steps to take and the run of each: {"step_2": run}.')
    sources = [run for several in steps.values() for run in several]
    runs = list({run.run_id: run for run in [*([base] if base else []), *sources]}.values())
    plans = {run.run_id: _plan(run) for run in runs}
    wanted = [(run.run_id, step_id) for step_id, several in steps.items() for run in several]
    for run_id, step_id in wanted:
        if step_id not in plans[run_id].by_id():
            there = ", ".join(plans[run_id].by_id()) or "none"
            raise RunError(f"Run {run_id} has no step {shown(step_id)}. It has: {there}.")
    ground, joined = runs[0], Joined(runs[0].run_id, plans, wanted)
    origins = {new: {"run_id": run_id, "step_id": old} for new, (run_id, old) in joined.origins.items()}
    conflicts = [*joined.clashes, *conflicts_of(runs)]
    edits: Json = {"graft": {"base": ground.run_id, "steps": origins, "conflicts": conflicts}}
    edits["sources"] = [run.run_id for run in runs]
    if joined.plan != ground.plan:
        ended = {(run.run_id, i) for run in runs for i, r in last_records(run.records).items() if _well(r)}
        ran = {new for new, origin in joined.origins.items() if origin in ended}
        edits |= {"plan": _awake(joined.plan, ran), "review": (), **_as_decided(ground)}
    return ground.run_id, edits


def _plan(run: Recording) -> Plan:
    if run.status == "running":
        raise RunError(f"Run {run.run_id} is still running. Wait for it, or cancel it.")
    if run.plan is None:
        raise RunError(f"Run {run.run_id} has no plan: it asked no knowledge base, so there is no step to take.")
    return run.plan


def _well(record: Data) -> bool:
    return record["status"] in ENDED_WELL


def _awake(plan: Plan, ran: Iterable[str]) -> Plan:
    """Return the plan with each step that ran where it came from made unconditional: that is why it was taken."""
    well = set(ran)
    steps = [
        s.model_copy(update={"condition": "always"}) if s.step_id in well and well >= set(s.dependencies()) else s
        for s in plan.steps
    ]
    return plan.model_copy(update={"steps": steps})


def _as_decided(run: Recording) -> Json:
    """Return the question, the thresholds and the needs at which decisions of people had arrived."""
    edits = [decision["edits"] for decision in run.decisions]
    asked = any(d["action"] == "respond" or d["edits"].get("query") for d in run.decisions)
    decided: Json = {"query": run.query} if asked else {}
    for name in JUDGED_BY:
        if values := {n: v for edit in edits for n, v in (edit.get(name) or {}).items()}:
            decided[name] = values
    return decided
