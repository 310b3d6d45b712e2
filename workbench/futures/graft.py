"""Branches merged: steps of several runs in one new run, whose tape is the union of theirs; and whence its evidence.

The plan is joined step by step, what the branches contradict one another in is listed, and the rest is a fork.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from workbench.errors import GraftConflict, RunError, UnknownRun, shown
from workbench.plans import ENDED_WELL, Plan, PlanStep, canonical_json, fresh_id, last_records, needed, step_renamed
from workbench.records.figures import Identity, identity
from workbench.records.proposals import JUDGED_BY
from workbench.records.tape import Effect, comparable
from workbench.runs.fork import Forecast, forecast
from workbench.runs.recording import Recording
from workbench.runs.run import Run
from workbench.state import RetrievalResult
from workbench.views.graft import graft_blocks
from workbench.views.labels import labels_for
from workbench.views.outline import Block
from workbench.views.render import page_html
from workbench.views.terminal import plain

Conflict = dict[str, Any]
Unedited = Callable[[str, str], bool]
"""Called with a run and a step id: the base's step of that id is as it was where base and that run parted."""
Found = Mapping[str, tuple[str, Sequence[RetrievalResult]]]
"""Step of the new plan -> the run from which it comes, and what it found there."""


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

    A step that is there already, under whatever id, is not taken twice. An id that means another step in base is
    base's place to be filled when base never edited it (or ``prefer`` says so); else both stay, and the newcomer gets
    an id of its own.

    Args:
        base: the run into whose plan is taken.
        plans: the plan of each run.
        wanted: runs and step ids, in order.
        unedited: says which steps base never edited.
        prefer: the run whose step alone stays where two have the same id.

    Attributes:
        plan: the joined one.
        origins: step of the plan -> the run and the step that it was.
        clashes: a conflict for each id that two runs use for different steps, which is ``as`` another one in the plan.
    """

    def __init__(
        self,
        base: str,
        plans: Mapping[str, Plan],
        wanted: Sequence[tuple[str, str]],
        unedited: Unedited,
        prefer: str | None = None,
    ):
        self.plan, self.clashes = plans[base], list[Conflict]()
        self.origins = {step.step_id: (base, step.step_id) for step in self.plan.steps}
        self._base, self._plans, self._wanted = base, plans, wanted
        self._unedited, self._prefer = unedited, prefer
        self._ids: dict[tuple[str, str], str] = {}
        for run_id, step_id in wanted:
            self._bring(run_id, step_id)

    def _bring(self, run_id: str, step_id: str) -> str:
        """Return the id of that step in the joined plan, into which it is taken when it is not there."""
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
        if step_id not in self.plan.by_id():
            return self._add(run_id, step, step_id)
        how, holder, placed = self._how(run_id, step), self.origins[step_id][0], step_id
        mine, theirs = (s.model_dump(mode="json") for s in (self.plan.step(step_id), step))
        names = [name for name in mine if mine[name] != theirs[name]]
        if how == "replaced":
            steps = [step if s.step_id == step_id else s for s in self.plan.steps]
            self.plan = self.plan.model_copy(update={"steps": steps})
            self.origins[step_id] = (run_id, step_id)
        elif how == "both":
            label = re.sub(r"^step_\d+_?", "", step_id) or "step"
            placed = self._add(run_id, step, fresh_id(self.plan, label))
        values = {holder: {n: mine[n] for n in names}, run_id: {n: theirs[n] for n in names}}
        self.clashes.append({**conflict("step", step_id, values, how), "as": placed})
        return placed

    def _how(self, run_id: str, step: PlanStep) -> str:
        """Return what becomes of a step whose id means another one in the plan."""
        step_id, holder = step.step_id, self.origins[step.step_id][0]
        ends = (*step.dependencies(), *self._ids.values())
        taken = {name for end in ends for name in needed(self.plan, end)}
        if (run_id, step_id) not in self._wanted or step_id in taken:
            return "both"
        if self._prefer in (holder, run_id):
            return "replaced" if self._prefer == run_id else "dropped"
        return "replaced" if holder == self._base and self._unedited(run_id, step_id) else "both"

    def _add(self, run_id: str, step: PlanStep, step_id: str) -> str:
        self.plan = self.plan.adding(step.model_copy(update={"step_id": step_id}))
        self.origins[step_id] = (run_id, step.step_id)
        return step_id


def awake(plan: Plan, ran: Iterable[str]) -> Plan:
    """Return the plan whose steps that ran where they came from run here too, unasked: that is why they were taken."""
    well = set(ran)
    steps = [
        s.model_copy(update={"condition": "always"}) if s.step_id in well and well >= set(s.dependencies()) else s
        for s in plan.steps
    ]
    return plan.model_copy(update={"steps": steps})


def conflict(kind: str, where: str, values: Mapping[str, Any], how: str) -> Conflict:
    """Return one contradiction; it is open when nothing says what becomes of it."""
    return {"kind": kind, "where": where, "values": dict(values), "how": how, "open": how == "open"}


def conflicts_of(runs: Sequence[Recording], found: Found, chosen: bool, prefer: str | None) -> Iterator[Conflict]:
    """Yield what the runs disagree on: question, knowledge bases, settings, recorded values, texts of a piece.

    Args:
        runs: the base first.
        found: what the steps found.
        chosen: the caller named the base, whose question and settings then hold.
        prefer: the run that the caller prefers.
    """
    settings = {run.run_id: run.begun.get("settings", {}) for run in runs}
    stated = [
        ("question", "query", {run.run_id: run.query for run in runs}),
        ("knowledge_base", "kb", {run.run_id: run.kb_prefix for run in runs}),
    ]
    for name in sorted({name for values in settings.values() for name in values}):
        stated.append(("settings", name, {run_id: own.get(name) for run_id, own in settings.items() if own}))
    for kind, where, values in stated:
        if _differ(values.values()):
            yield conflict(kind, where, values, "base" if chosen else "open")
    recorded: dict[tuple[str, str], dict[str, Any]] = {}
    for run in runs:
        for effect in run.tape():
            if effect.kind in ("tool", "model", "handler") or effect.name.endswith(".fingerprint"):
                key = ("tape", f"{effect.kind} {effect.name} {effect.key[:8]}")
                recorded.setdefault(key, {})[run.run_id] = _value(effect)
    for place, texts in _texts(found).items():
        recorded["text", place] = texts
    for (kind, where), values in recorded.items():
        if _differ(values.values()):
            yield conflict(kind, where, values, "preferred" if prefer in values else "open")


def _value(effect: Effect) -> Any:
    """Return what an effect came to, as two runs may share it; of a tool's call a digest beside its status."""
    if effect.kind != "tool":
        return comparable(effect.value)
    record, body = effect.value["record"], comparable(effect.value["body"] or {})
    digest = hashlib.sha256(canonical_json([record["error"], body]).encode()).hexdigest()[:12]
    return {"input": record["raw_input"], "status": record["status"], "digest": digest}


def _place_of(result: RetrievalResult) -> str:
    return f"{result['metadata'].get('kb_prefix', '')}/{result['result_id']}"


def _texts(found: Found) -> dict[str, dict[str, str]]:
    """Return the text of each piece by run."""
    texts: dict[str, dict[str, str]] = {}
    for run_id, results in found.values():
        for result in results:
            texts.setdefault(_place_of(result), {}).setdefault(run_id, result["evidence"])
    return texts


def outvoted(found: Found, prefer: str | None) -> list[list[str]]:
    """Return the pieces whose text is another in the run that is preferred: ``[step_id, result_id]`` of each."""
    texts, pieces = _texts(found), list[list[str]]()
    for step_id, (_, results) in found.items():
        for result in results:
            text = result["evidence"]
            if texts[_place_of(result)].get(prefer or "", text) != text:
                pieces.append([step_id, result["result_id"]])
    return pieces


def _differ(values: Iterable[Any]) -> bool:
    return len({canonical_json(value) for value in values}) > 1


class Graft(Run):
    """A run that was put together from others: all that a run is, and where its parts come from."""

    @property
    def base(self) -> str:
        """The run whose plan, question and settings it has."""
        return self.options["graft"]["base"]

    @property
    def steps(self) -> dict[str, dict[str, str]]:
        """For each step of its first plan the run and the step that it was: ``{"run_id", "step_id"}``."""
        return self.options["graft"]["steps"]

    @property
    def conflicts(self) -> list[Conflict]:
        """What the branches contradict one another in, and what became of it."""
        return self.options["graft"]["conflicts"]

    @property
    def anew(self) -> list[str]:
        """The steps that no tape knew, which ran again."""
        return [step_id for step_id, r in last_records(self.records).items() if "effect" in r and not r.get("replayed")]

    def __str__(self) -> str:
        return f"{super().__str__()}\n\n{plain(self.blocks(), 100)}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        html = super()._repr_mimebundle_()["text/html"]
        return {"text/plain": str(self), "text/html": f"{html}\n{page_html(self.blocks(), labels_for(self.message))}"}

    def blocks(self) -> list[Block]:
        """Return where its steps and its evidence come from, and the conflicts."""
        return graft_blocks(self)


Steps = Mapping[str, Sequence[Recording]]
"""Step id -> the runs from which it is taken."""


def edits_of(steps: Steps, base: Recording | None = None, prefer: str | None = None) -> tuple[str, dict[str, Any]]:
    """Return the run on whose plan the steps are put together, and the edits that ``Workbench.graft`` forks it with.

    Raises:
        GraftConflict: something is open.
        RunError: no such step, or a run that still runs.
    """
    runs, joined = _joined(steps, base, prefer)
    ground, found = runs[0], _found(joined, runs)
    conflicts = [*joined.clashes, *conflicts_of(runs, found, bool(base or prefer), prefer)]
    if unsettled := [c for c in conflicts if c["open"]]:
        raise GraftConflict(unsettled)
    origins = {new: {"run_id": run_id, "step_id": old} for new, (run_id, old) in joined.origins.items()}
    edits: dict[str, Any] = {"graft": {"base": ground.run_id, "steps": origins, "conflicts": conflicts}}
    edits["sources"] = sorted((run.run_id for run in runs), key=lambda run_id: run_id != prefer)
    if pieces := outvoted(found, prefer):
        edits["without"] = {"pieces": pieces}
    if joined.plan != ground.plan:
        edits |= {"plan": awake(joined.plan, found), "review": (), **_as_decided(ground)}
    first = ground.recording(edits["sources"][0]).begun.get("settings", {})  # its tape answers before the base's
    own = ground.begun.get("settings", {})
    if edited := {name: value for name, value in own.items() if first.get(name) != value}:
        edits["settings"] = edited
    return ground.run_id, edits


def foreseen(steps: Steps, base: Recording | None = None, prefer: str | None = None) -> Forecast:
    """Return what such a graft will do: which steps the tapes answer, and how long the others will take.

    Raises:
        RunError: no such step, or a run that still runs.
    """
    runs, joined = _joined(steps, base, prefer)
    effects = [effect for run in runs for effect in run.tape()]
    records = [record for run in reversed(runs) for record in run.records]  # the base's versions hold
    return forecast(joined.plan, effects, records, runs[0].tool_seconds(), runs[0].kb_prefix)


def _joined(steps: Steps, base: Recording | None, prefer: str | None) -> tuple[list[Recording], Joined]:
    """Return all the runs, first the one on whose plan the steps are put together, and the plan."""
    if not isinstance(steps, Mapping) or not steps:
        raise RunError('Name the steps to take and the run of each: {"step_2": run}.')
    wanted = [(run.run_id, step_id) for step_id, several in steps.items() for run in several]
    by_id = {run.run_id: run for run in [*([base] if base else []), *(run for runs in steps.values() for run in runs)]}
    if prefer is not None and prefer not in by_id:
        raise RunError(f"{shown(prefer)} is none of the runs that are put together: {', '.join(by_id)}.")
    ground = base or by_id[prefer or wanted[0][0]]
    runs = [ground, *(run for run in by_id.values() if run.run_id != ground.run_id)]
    for run in runs:
        if run.status == "running":
            raise RunError(f"Run {run.run_id} is still running. Wait for it, or cancel it.")
    plans = {run.run_id: _plan(run) for run in runs}
    for run_id, step_id in wanted:
        steps_of = plans[run_id].by_id()
        if step_id not in steps_of:
            raise RunError(f"Run {run_id} has no step {shown(step_id)}. It has: {', '.join(steps_of) or 'none'}.")
    return runs, Joined(ground.run_id, plans, wanted, _unedited(ground), prefer)


def _plan(run: Recording) -> Plan:
    if run.plan is None:
        raise RunError(f"Run {run.run_id} has no plan: it asked no knowledge base, so there is no step to take.")
    return run.plan


def step_ids(run: Recording) -> list[str]:
    """Return the steps of its newest plan.

    Raises:
        RunError: it has no plan.
    """
    return list(_plan(run).by_id())


def _unedited(base: Recording) -> Unedited:
    """Compare the base's steps with those of the run from which both it and another run were made."""
    signs, own = signatures(_plan(base)), {run.run_id for run in _line(base)}

    def unedited(run_id: str, step_id: str) -> bool:
        common = next((run.plan for run in _line(base.recording(run_id)) if run.run_id in own), None)
        return common is not None and signatures(common).get(step_id) == signs[step_id]

    return unedited


def _line(run: Recording) -> Iterator[Recording]:
    """Yield a run, the run from which it was made, and so on as far as they are kept."""
    yield run
    with suppress(UnknownRun):
        while run.origin:
            run = run.recording(run.origin)
            yield run


def _found(joined: Joined, runs: Sequence[Recording]) -> Found:
    """Return what each step of the new plan found that ended well where it comes from."""
    bodies = {run.run_id: run.found for run in runs}
    ended = {run.run_id: {i for i, r in last_records(run.records).items() if r["status"] in ENDED_WELL} for run in runs}
    return {
        new: (run_id, bodies[run_id].get(old, []))
        for new, (run_id, old) in joined.origins.items()
        if old in ended[run_id]
    }


def _as_decided(run: Recording) -> dict[str, Any]:
    """Return the question, the thresholds and the needs at which decisions of people had arrived."""
    edits = [decision["edits"] for decision in run.decisions]
    asked = any(d["action"] == "respond" or d["edits"].get("query") for d in run.decisions)
    decided: dict[str, Any] = {"query": run.query} if asked else {}
    for name in JUDGED_BY:
        if values := {n: v for edit in edits for n, v in (edit.get(name) or {}).items()}:
            decided[name] = values
    return decided


def provenance(run: Recording) -> list[dict[str, Any]]:
    """See ``Run.provenance``."""
    records, origins = last_records(run.records), (run.options.get("graft") or {}).get("steps", {})
    finders: dict[Identity, dict[str, None]] = {}
    for step_id, results in run.found.items():
        for result in results:
            finders.setdefault(identity(result), {})[step_id] = None
    rows = []
    for n, piece in enumerate(run.evidence, 1):
        about = {"n": n, "result_id": piece["result_id"], "title": piece["metadata"].get("title", "")}
        for step_id in finders.get(identity(piece), ()):
            origin = origins.get(step_id, {"run_id": run.run_id, "step_id": step_id})
            found_by = {"score": piece["score"], "step_id": step_id, "tool": records[step_id]["tool"]}
            rows.append({**about, **found_by, "from_run": origin["run_id"], "from_step": origin["step_id"]})
    return rows
