"""Branches merged: steps of several runs in one new run, whose tape is the union of theirs; and whence its evidence.

The plan is joined step by step, what the branches contradict one another in is listed, and the rest is a fork.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench.errors import GraftConflict, RunError, UnknownRun, shown
from workbench.plans import ENDED_WELL, Plan, PlanStep, canonical_json, fresh_id, last_records, needed, step_renamed
from workbench.records.figures import Identity, identity
from workbench.records.proposals import JUDGED_BY
from workbench.records.tape import Effect, begun, comparable, key_of_record
from workbench.runs.fork import Forecast, forecast
from workbench.runs.recording import Recording
from workbench.runs.run import Run
from workbench.state import ExecutionRecord, RetrievalResult
from workbench.views.graft import graft_blocks
from workbench.views.labels import labels_for
from workbench.views.outline import Block
from workbench.views.render import page_html
from workbench.views.terminal import plain

if TYPE_CHECKING:
    import pandas


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
            self._ids[branch.run_id, step_id] = self._placed(branch, step_renamed(step, before))
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
        return set().union(*(needed(self.joined.plan, step_id) for step_id in step_ids))

    def _add(self, branch: Branch, step: PlanStep, step_id: str) -> str:
        self.joined.plan = self.joined.plan.adding(step.model_copy(update={"step_id": step_id}))
        self.joined.origins[step_id] = (branch.run_id, step.step_id)
        return step_id


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


Conflict = dict[str, Any]
KINDS = ("step", "question", "knowledge_base", "settings", "history", "corpus", "tape", "text", "field")


def conflict(kind: str, where: str, values: Mapping[str, Any], how: str) -> Conflict:
    """One contradiction; it is open when nothing says what becomes of it."""
    return {"kind": kind, "where": where, "values": dict(values), "how": how, "open": how == "open"}


def between(
    runs: Sequence[Recording], tapes: Mapping[str, Sequence[Effect]], chosen: bool, prefer: str | None
) -> list[Conflict]:
    """What the runs as wholes disagree on: question, knowledge bases, settings, history, corpus, recorded values.

    Args:
        runs: the base first.
        tapes: of each run.
        chosen: the caller named the base, whose question, settings and history then hold.
        prefer: the run that the caller prefers.
    """
    how = "base" if chosen else "open"
    found = [
        conflict(kind, where, values, how)
        for kind, where, values in [
            ("question", "message", {run.run_id: run.message for run in runs}),
            ("question", "query", {run.run_id: run.query for run in runs}),
            ("knowledge_base", "kb", {run.run_id: run.kb_prefix for run in runs}),
            *_settings(tapes),
        ]
        if _differ(values.values())
    ]
    if any(c["where"] == "message" for c in found):
        found = [c for c in found if c["where"] != "query"]
    return [*found, *_recorded(tapes, how, prefer)]


def _settings(tapes: Mapping[str, Sequence[Effect]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    known = {run_id: begun(tape).get("settings", {}) for run_id, tape in tapes.items()}
    for name in sorted({name for settings in known.values() for name in settings}):
        yield "settings", name, {run_id: settings.get(name) for run_id, settings in known.items() if settings}


def _recorded(tapes: Mapping[str, Sequence[Effect]], how: str, prefer: str | None) -> Iterator[Conflict]:
    """The same key with two values."""
    by_key: dict[str, dict[str, Effect]] = {}
    for run_id, tape in tapes.items():
        for effect in tape:
            if effect.kind not in ("begin", "divergence"):
                by_key.setdefault(effect.key, {})[run_id] = effect
    for effects in by_key.values():
        values = {run_id: _value(effect) for run_id, effect in effects.items()}
        if not _differ(values.values()):
            continue
        effect = next(iter(effects.values()))
        if effect.kind == "memory":
            said = {i: [[m["role"], m["content"]] for m in value[-2:]] for i, value in values.items()}
            yield conflict("history", effect.name, said, how)
        elif effect.kind == "knowledge" and effect.name.endswith(".fingerprint"):
            yield conflict("corpus", effect.name.removesuffix(".fingerprint"), values, "anew" if prefer else "open")
        elif effect.kind == "plan" or (effect.kind == "knowledge" and not effect.version):
            yield conflict("tape", f"{effect.kind} {effect.name}", values, "base")
        else:
            answered = "preferred" if prefer in values else "open"
            told = {i: _briefly(e) for i, e in effects.items()} if effect.kind == "tool" else values
            yield conflict("tape", f"{effect.kind} {effect.name} {effect.key[:8]}", told, answered)


def _value(effect: Effect) -> Any:
    """What an effect came to, as two runs may share it."""
    if effect.kind != "tool":
        return comparable(effect.value)
    record, body = effect.value["record"], effect.value["body"]
    return comparable({"status": record["status"], "error": record["error"], **(body or {})})


def _briefly(effect: Effect) -> dict[str, Any]:
    """What a tool's call came to, without the texts."""
    record, results = effect.value["record"], (effect.value["body"] or {}).get("results", [])
    said = hashlib.sha256(canonical_json(_value(effect)).encode()).hexdigest()[:12]
    pieces = [[r["result_id"], round(r["score"], 6)] for r in results]
    return {"input": record["raw_input"], "status": record["status"], "found": pieces, "digest": said}


def within(
    found: Mapping[str, tuple[str, Sequence[RetrievalResult]]], moved: bool, prefer: str | None
) -> list[Conflict]:
    """What the pieces of evidence disagree on: two texts of one piece, two values of one typed field of a document.

    Args:
        found: step of the new plan -> the run from which it comes, and what it found there.
        moved: the runs saw different corpora: then the pieces are read anew, and neither is taken as recorded.
        prefer: the run whose pieces hold.
    """
    texts: dict[str, dict[str, str]] = {}
    fields: dict[str, dict[str, Any]] = {}
    for run_id, results in found.values():
        for result in results:
            base = result["metadata"].get("kb_prefix", "")
            texts.setdefault(f"{base}/{result['result_id']}", {}).setdefault(run_id, result["evidence"])
            for name, value in _stated(result):
                fields.setdefault(name, {}).setdefault(run_id, value)
    kinds = (("text", texts), ("field", fields))
    return [
        conflict(kind, where, values, "anew" if moved else "preferred" if prefer in values else "open")
        for kind, places in kinds
        for where, values in sorted(places.items())
        if _differ(values.values())
    ]


def _stated(result: RetrievalResult) -> Iterator[tuple[str, Any]]:
    """The typed fields of a piece's document, each by base, document and name."""
    metadata = result["metadata"]
    for name, value in (metadata.get("fields") or {}).items():
        yield f"{metadata.get('kb_prefix', '')}/{metadata.get('doc_id', '')} {name}", value


def outvoted(
    found: Mapping[str, tuple[str, Sequence[RetrievalResult]]], conflicts: Iterable[Conflict], prefer: str | None
) -> list[list[str]]:
    """The pieces that another run's contradict and that are not preferred: ``[step_id, result_id]`` of each."""
    values = {(c["kind"], c["where"]): c["values"] for c in conflicts if c["how"] == "preferred"}
    pieces = []
    for step_id, (run_id, results) in found.items():
        for result in results:
            place = f"{result['metadata'].get('kb_prefix', '')}/{result['result_id']}"
            said = [("text", place, result["evidence"]), *(("field", name, value) for name, value in _stated(result))]
            if run_id != prefer and any(
                _differ([value, values[kind, where][prefer]])
                for kind, where, value in said
                if prefer in values.get((kind, where), ())
            ):
                pieces.append([step_id, result["result_id"]])
    return pieces


def _differ(values: Iterable[Any]) -> bool:
    return len({canonical_json(value) for value in values}) > 1


class Graft(Run):
    """A run that was put together from others: all that a run is, and where its parts come from."""

    @property
    def base(self) -> str:
        """The run whose plan, question and settings it has."""
        return self._told["base"]

    @property
    def steps(self) -> dict[str, dict[str, str]]:
        """For each step of its first plan the run and the step that it was: ``{"run_id", "step_id"}``."""
        return self._told["steps"]

    @property
    def conflicts(self) -> list[Conflict]:
        """What the branches contradict one another in, and what became of it."""
        return self._told["conflicts"]

    @property
    def anew(self) -> list[str]:
        """The steps that no tape knew, which ran again."""
        return [step_id for step_id, r in last_records(self.records).items() if "effect" in r and not r.get("replayed")]

    @property
    def _told(self) -> Any:
        return self.options["graft"]

    def conflicts_frame(self) -> pandas.DataFrame:
        """One row a conflict and run: ``kind``, ``where``, ``run_id``, ``value``, ``how``."""
        import pandas

        rows = [
            {"kind": c["kind"], "where": c["where"], "run_id": run_id, "value": value, "how": c["how"]}
            for c in self.conflicts
            for run_id, value in c["values"].items()
        ]
        return pandas.DataFrame(rows, columns=["kind", "where", "run_id", "value", "how"])

    def __str__(self) -> str:
        return f"{super().__str__()}\n\n{plain(self.blocks(), 100)}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        html = super()._repr_mimebundle_()["text/html"]
        return {"text/plain": str(self), "text/html": f"{html}\n{page_html(self.blocks(), labels_for(self.message))}"}

    def blocks(self) -> list[Block]:
        """Where its steps and its evidence come from, and the conflicts."""
        return graft_blocks(self)


def edits_of(
    steps: Mapping[str, Sequence[Recording]], base: Recording | None = None, prefer: str | None = None
) -> tuple[str, dict[str, Any]]:
    """What ``Workbench.graft`` forks: the run on whose plan the steps are put together, and the edits of that fork."""
    ground, runs, joined = _joined(steps, base, prefer)
    found = _found(joined, runs)
    conflicts = _conflicts(joined, runs, found, chosen=bool(base or prefer), prefer=prefer)
    if unsettled := [c for c in conflicts if c["open"]]:
        raise GraftConflict(unsettled)
    origins = {new: {"run_id": run_id, "step_id": old} for new, (run_id, old) in joined.origins.items()}
    edits: dict[str, Any] = {"graft": {"base": ground.run_id, "steps": origins, "conflicts": conflicts}}
    edits["sources"] = sorted((run.run_id for run in runs), key=lambda run_id: run_id != prefer)
    if pieces := outvoted(found, conflicts, prefer):
        edits["without"] = {"pieces": pieces}
    if joined.plan != _plan(ground):
        edits |= {"plan": awake(joined.plan, found), "review": (), **_as_decided(ground)}
    return ground.run_id, {**edits, **_settings_of(ground, edits["sources"][0])}


def foreseen(steps: Mapping[str, Sequence[Recording]], base: Recording, prefer: str | None = None) -> Forecast:
    """What such a graft will do: which steps the tapes answer, and how long the others will take.

    Raises:
        RunError: no such step, or a run that still runs.
    """
    ground, runs, joined = _joined(steps, base, prefer)
    known = [effect for run in runs for effect in run.tape()]
    records = [record for run in reversed(runs) for record in run.records]  # the base's versions hold
    return forecast(joined.plan, known, records, ground.tool_seconds(), ground.kb_prefix)


def _joined(
    steps: Mapping[str, Sequence[Recording]], base: Recording | None, prefer: str | None
) -> tuple[Recording, list[Recording], Joined]:
    """The run on whose plan the steps are put together, all the runs with that one first, and the plan."""
    wanted = list(_wanted(steps))
    runs = list({run.run_id: run for run in [*([base] if base else []), *(run for _, run in wanted)]}.values())
    _may_be_grafted(runs, prefer)
    ground = base or next((run for run in runs if run.run_id == prefer), runs[0])
    runs = [ground, *(run for run in runs if run.run_id != ground.run_id)]
    branches = {run.run_id: Branch(run.run_id, _plan(run)) for run in runs}
    named = [(step_id, branches[run.run_id]) for step_id, run in wanted]
    return ground, runs, join(branches[ground.run_id], named, _unedited(ground), prefer)


def _wanted(steps: Mapping[str, Sequence[Recording]]) -> Iterator[tuple[str, Recording]]:
    """Step ids and runs, one by one.

    Raises:
        RunError: nothing is asked for, or a run has no such step.
    """
    if not isinstance(steps, Mapping) or not steps:
        raise RunError('Name the steps to take and the run of each: {"step_2": run}.')
    for step_id, several in steps.items():
        for run in several:
            known = list(_plan(run).by_id())
            if step_id not in known:
                raise RunError(f"Run {run.run_id} has no step {shown(step_id)}. It has: {', '.join(known) or 'none'}.")
            yield step_id, run


def _may_be_grafted(runs: Sequence[Recording], prefer: str | None) -> None:
    for run in runs:
        if run.status == "running":
            raise RunError(f"Run {run.run_id} is still running. Wait for it, or cancel it.")
    ids = [run.run_id for run in runs]
    if prefer is not None and prefer not in ids:
        raise RunError(f"{shown(prefer)} is none of the runs that are put together: {', '.join(ids)}.")


def _plan(run: Recording) -> Plan:
    if run.plan is None:
        raise RunError(f"Run {run.run_id} has no plan: it asked no knowledge base, so there is no step to take.")
    return run.plan


def _unedited(base: Recording) -> Callable[[str, str], bool]:
    """Whether the base's step is as it was in the run from which both it and another run were made."""
    signs, parted = signatures(_plan(base)), dict[str, dict[str, str]]()

    def unedited(run_id: str, step_id: str) -> bool:
        if run_id not in parted:
            own = {run.run_id for run in _line(base)}
            common = next((run for run in _line(base.recording(run_id)) if run.run_id in own), None)
            parted[run_id] = signatures(common.plan) if common and common.plan else {}
        return parted[run_id].get(step_id) == signs[step_id]

    return unedited


def _line(run: Recording) -> Iterator[Recording]:
    """A run, the run from which it was made, and so on as far as they are kept."""
    yield run
    with suppress(UnknownRun):
        while run.origin:
            run = run.recording(run.origin)
            yield run


def step_ids(run: Recording) -> list[str]:
    """The steps of its newest plan.

    Raises:
        RunError: it has no plan.
    """
    return list(_plan(run).by_id())


def _found(joined: Joined, runs: Sequence[Recording]) -> dict[str, tuple[str, list[Any]]]:
    """For each step of the new plan that ended well where it comes from: that run, and what it found."""
    bodies = {run.run_id: run.found for run in runs}
    ended = {run.run_id: {i for i, r in last_records(run.records).items() if r["status"] in ENDED_WELL} for run in runs}
    return {
        new: (run_id, bodies[run_id].get(old, []))
        for new, (run_id, old) in joined.origins.items()
        if old in ended[run_id]
    }


def _conflicts(
    joined: Joined,
    runs: Sequence[Recording],
    found: Mapping[str, tuple[str, list[Any]]],
    *,
    chosen: bool,
    prefer: str | None,
) -> list[Conflict]:
    steps = [
        {**conflict("step", clash["step_id"], clash["values"], clash["how"]), "as": clash["as"]}
        for clash in joined.clashes
    ]
    whole = between(runs, {run.run_id: run.tape() for run in runs}, chosen, prefer)
    moved = any(c["kind"] == "corpus" for c in whole)
    return [*steps, *whole, *within(found, moved, prefer)]


def _as_decided(run: Recording) -> dict[str, Any]:
    """The question, the thresholds and the needs at which decisions of people had arrived."""
    said = any(d["action"] == "respond" or d["edits"].get("query") for d in run.decisions)
    judged = {
        name: found
        for name in JUDGED_BY
        if (found := {n: v for d in run.decisions for n, v in (d["edits"].get(name) or {}).items()})
    }
    return {**({"query": run.query} if said else {}), **judged}


def _settings_of(base: Recording, first: str) -> dict[str, Any]:
    """The base's settings, where another run's tape answers first."""
    mine, other = (run.begun.get("settings", {}) for run in (base, base.recording(first)))
    edited = {name: value for name, value in mine.items() if other.get(name) != value}
    return {"settings": edited} if edited else {}


def provenance(run: Recording) -> list[dict[str, Any]]:
    """See ``Run.provenance``."""
    records = last_records(run.records)
    made = {step_id: _made_in(run, record) for step_id, record in records.items() if "effect" in record}
    origins = (run.options.get("graft") or {}).get("steps", {})
    finders: dict[Identity, list[str]] = {}
    for step_id, results in run.found.items():
        for result in results:
            finders.setdefault(identity(result), []).append(step_id)
    rows = []
    for n, piece in enumerate(run.evidence, 1):
        for step_id in dict.fromkeys(finders.get(identity(piece), ())):
            in_run, as_step = made[step_id]
            origin = origins.get(step_id, {"run_id": in_run, "step_id": as_step})
            rows.append(
                {
                    "n": n,
                    "result_id": piece["result_id"],
                    "title": piece["metadata"].get("title", ""),
                    "score": piece["score"],
                    "step_id": step_id,
                    "tool": records[step_id]["tool"],
                    "from_run": origin["run_id"],
                    "from_step": origin["step_id"],
                    "made_in": in_run,
                }
            )
    return rows


def _made_in(run: Recording, record: ExecutionRecord) -> tuple[str, str]:
    """The run that made this call, and the step that it was there: through the tapes from which it was taken."""
    place = (run.run_id, record["step_id"])
    if not record.get("replayed"):
        return place
    key = key_of_record(record)
    for source in run.sources:
        with suppress(UnknownRun):  # forgotten since: this run's own record is all that is left
            earlier = run.recording(source)
            same = next((r for r in earlier.records if "effect" in r and key_of_record(r) == key), None)
            if same is not None:
                return _made_in(earlier, same)
    return place
