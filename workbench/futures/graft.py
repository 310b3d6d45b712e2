"""Branches merged: steps of several runs in one new run, whose tape is the union of theirs.

Only what the graft touches is made anew: steps that no tape knows, then the reflection, the merge and the answer. What
the branches contradict one another in is shown and never settled silently; the runs themselves stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.errors import GraftConflict, RunError, UnknownRun, shown
from workbench.fork import Forecast, forecast
from workbench.futures.conflicts import Conflict, between, conflict, outvoted, within
from workbench.futures.join import Branch, Joined, awake, join, signatures
from workbench.plans import ENDED_WELL, Plan, last_records
from workbench.retrieval.merge import gather
from workbench.run import Run

if TYPE_CHECKING:
    import pandas


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
        """What the branches contradict one another in, and what became of it (``futures.conflicts``)."""
        return self._told["conflicts"]

    @property
    def anew(self) -> list[str]:
        """The steps that no tape knew, which ran again."""
        records = last_records(self.records).values()
        return [r["step_id"] for r in records if "effect" in r and not r.get("replayed")]

    @property
    def _told(self) -> Any:
        return self._row["options"]["graft"]

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
        from workbench.futures.shown import graft_blocks
        from workbench.show import plain

        return f"{super().__str__()}\n\n{plain(graft_blocks(self), 100)}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.futures.shown import graft_blocks, page

        return {
            "text/plain": str(self),
            "text/html": super()._repr_mimebundle_()["text/html"] + "\n" + page(graft_blocks(self), self.message),
        }


def grafted(
    steps: Mapping[str, Run | Sequence[Run]], base: Run | None = None, prefer: str | None = None, **options: Any
) -> Graft:
    """See ``Workbench.graft``."""
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
    made = ground.start_fork(**edits, **_settings_of(ground, edits["sources"][0]), **options)
    made.wait()
    return Graft(made._work, made.run_id)


def foreseen(steps: Mapping[str, Run | Sequence[Run]], base: Run, prefer: str | None = None) -> Forecast:
    """What such a graft will do: which steps the tapes answer, and how long the others will take.

    Raises:
        RunError: no such step, or a run that still runs.
    """
    ground, runs, joined = _joined(steps, base, prefer)
    known = [effect for run in runs for effect in run.tape()]
    records = [record for run in reversed(runs) for record in run.records]  # the base's versions hold
    return forecast(joined.plan, known, records, ground._store.tool_seconds(), ground.kb_prefix)


def _joined(
    steps: Mapping[str, Run | Sequence[Run]], base: Run | None, prefer: str | None
) -> tuple[Run, list[Run], Joined]:
    """The run on whose plan the steps are put together, all the runs with that one first, and the plan."""
    wanted = list(_wanted(steps))
    runs = list({run.run_id: run for run in [*([base] if base else []), *(run for _, run in wanted)]}.values())
    _may_be_grafted(runs, prefer)
    ground = base or next((run for run in runs if run.run_id == prefer), runs[0])
    runs = [ground, *(run for run in runs if run.run_id != ground.run_id)]
    branches = {run.run_id: Branch(run.run_id, _plan(run)) for run in runs}
    named = [(step_id, branches[run.run_id]) for step_id, run in wanted]
    return ground, runs, join(branches[ground.run_id], named, _Ancestry(ground).unedited, prefer)


def _wanted(steps: Mapping[str, Run | Sequence[Run]]) -> Iterator[tuple[str, Run]]:
    """Step ids and runs, one by one.

    Raises:
        RunError: nothing is asked for, or something is no run, or a run has no such step.
    """
    if not isinstance(steps, Mapping) or not steps:
        raise RunError('Name the steps to take and the run of each: {"step_2": run}.')
    for step_id, several in steps.items():
        for run in [several] if isinstance(several, Run) else several:
            if not isinstance(run, Run):
                raise RunError(f"{step_id} is to come from {shown(run)}, which is no run.")
            known = list(_plan(run).by_id())
            if step_id not in known:
                raise RunError(f"Run {run.run_id} has no step {shown(step_id)}. It has: {', '.join(known) or 'none'}.")
            yield step_id, run


def _may_be_grafted(runs: Sequence[Run], prefer: str | None) -> None:
    for run in runs:
        if run.status == "running":
            raise RunError(f"Run {run.run_id} is still running. Wait for it, or cancel it.")
    ids = [run.run_id for run in runs]
    if prefer is not None and prefer not in ids:
        raise RunError(f"{shown(prefer)} is none of the runs that are put together: {', '.join(ids)}.")


def _plan(run: Run) -> Plan:
    if run.plan is None:
        raise RunError(f"Run {run.run_id} has no plan: it asked no knowledge base, so there is no step to take.")
    return run.plan


class _Ancestry:
    """Where the base and another run parted, and what the base has edited since."""

    def __init__(self, base: Run):
        self._base, self._signs, self._parted = base, signatures(_plan(base)), dict[str, dict[str, str]]()

    def unedited(self, run_id: str, step_id: str) -> bool:
        """Whether the base's step is as it was in the run that both were made from."""
        if run_id not in self._parted:
            own = list(_line(self._base))
            common = next(
                (run for run in _line(Run(self._base._work, run_id)) if run.run_id in {r.run_id for r in own}), None
            )
            self._parted[run_id] = signatures(common.plan) if common and common.plan else {}
        return self._parted[run_id].get(step_id) == self._signs[step_id]


def _line(run: Run | None) -> Iterator[Run]:
    """A run, the run from which it was made, and so on as far as they are kept."""
    while run is not None:
        yield run
        try:
            run = Run(run._work, run.origin) if run.origin else None
            _ = run and run.message
        except UnknownRun:
            return


def _found(joined: Joined, runs: Sequence[Run]) -> dict[str, tuple[str, list[Any]]]:
    """For each step of the new plan that ended well where it comes from: that run, and what it found."""
    bodies = {run.run_id: gather(run.records, run._store, run.run_id) for run in runs}
    ended = {run.run_id: {i for i, r in last_records(run.records).items() if r["status"] in ENDED_WELL} for run in runs}
    return {
        new: (run_id, bodies[run_id].get(old, []))
        for new, (run_id, old) in joined.origins.items()
        if old in ended[run_id]
    }


def _conflicts(
    joined: Joined,
    runs: Sequence[Run],
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


def _as_decided(run: Run) -> dict[str, Any]:
    """The question and the thresholds at which decisions of people had arrived."""
    said = any(d["action"] == "respond" or d["edits"].get("query") for d in run.decisions)
    thresholds = {n: v for d in run.decisions for n, v in (d["edits"].get("thresholds") or {}).items()}
    return {**({"query": run.query} if said else {}), **({"thresholds": thresholds} if thresholds else {})}


def _settings_of(base: Run, first: str) -> dict[str, Any]:
    """The base's settings, where another run's tape answers first."""
    mine, other = _begun(base), _begun(Run(base._work, first))
    edited = {name: value for name, value in mine.items() if other.get(name) != value}
    return {"settings": edited} if edited else {}


def _begun(run: Run) -> dict[str, Any]:
    """The settings with which a run began."""
    return next((e.value for e in run.tape() if (e.kind, e.name) == ("begin", "settings")), {})


def beside(run: Run, other: Run, steps: Iterable[str] | None, prefer: str | None, **options: Any) -> Graft:
    """See ``Run.graft``."""
    names = list(_plan(other).by_id()) if steps is None else [steps] if isinstance(steps, str) else list(steps)
    return grafted(dict.fromkeys(names, other), run, prefer, **options)
