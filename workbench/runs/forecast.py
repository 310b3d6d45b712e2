"""The forecast of a fork: the steps that would run again, and what they would take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import dropwhile
from typing import NotRequired, TypedDict

from workbench.errors import UnknownKnowledge
from workbench.knowledge.dated import dated
from workbench.plans import Plan
from workbench.records.store import ENDED
from workbench.records.tape import answered, read
from workbench.runs.stored import Recording, asked_dates, tape_sources
from workbench.state import Json


class Forecast(TypedDict):
    """The forecast of a fork.

    ``steps`` has for each step of the plan ``{"step_id", "tool", "replayed", "runs", "p50_s", "p90_s"}``: the tape
    answers it, it runs again, or neither, where it waits to be activated. ``seconds`` is for the steps that run, along
    its critical path, at both quantiles; ``basis`` is how many past calls that rests on.
    ``tokens``, where models read what steps had found, is what that was, since they read again what is found again.
    """

    steps: list[Json]
    seconds: dict[str, float]
    basis: int
    tokens: NotRequired[int]


def forecast(run: Recording, plan: Plan, activated: Iterable[str] = ()) -> Forecast:
    """Return what a plan would take as the plan of this run: the steps that run, and their seconds (P50, P90).

    A run that has not ended continues with the plan, one that has is forked with it.

    Args:
        run: the run.
        plan: the plan.
        activated: conditional steps that will be woken, besides those that were.
    """
    effects = [*run.tape()]
    for run_id in tape_sources(run.options):
        effects += read(run._store, run_id)
    records = run.records
    state = run.state
    kb = state.get("kb_prefix", "")
    dates = asked_dates(run)
    versions = dict[str, str]()
    for name in {kb, *(str(step.tool_input.get("kb_prefix") or kb) for step in plan.steps)}:
        with suppress(UnknownKnowledge):  # then what the tape says of it holds
            versions[name] = dated(run._workspace.knowledge.get(name), dates).fingerprint()
    taped = answered(plan, effects, records, kb, versions)
    ended = () if run.status in ENDED else records
    woken = [*state.get("activated", []), *activated]
    starts = {step.step_id for step in plan.ahead(ended, woken, taped)}
    history = run._store.tool_seconds()
    rows = list[Json]()
    basis = 0
    for step_id, end in taped.items():
        tool = plan.step(step_id).tool
        runs = step_id in starts
        past = history.get(tool, ()) if runs else ()
        basis += len(past)
        p50, p90 = _quantiles(past)
        row = {"step_id": step_id, "tool": tool, "replayed": bool(end), "runs": runs}
        rows.append({**row, "p50_s": p50, "p90_s": p90})
    seconds = {}
    for name in ("p50", "p90"):
        taken = {row["step_id"]: row[f"{name}_s"] for row in rows}
        seconds[name] = round(sum(taken[step_id] for step_id in plan.critical_path(taken)), 3)
    estimate = Forecast(steps=rows, seconds=seconds, basis=basis)
    # what models read and wrote after the first step: for a reflection, for an answer
    later = dropwhile(lambda effect: effect.kind != "tool", effects)
    tokens = sum(effect.tokens for effect in later if effect.kind in ("model", "handler"))
    if tokens and basis:
        estimate["tokens"] = tokens
    return estimate


def _quantiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median and the ninth decile.

    >>> _quantiles([1.0]), _quantiles([]), _quantiles([1.0, 3.0, 2.0])
    ((1.0, 1.0), (0.0, 0.0), (2.0, 3.0))
    """
    rising = sorted(seconds) or [0.0]
    return round(rising[len(rising) // 2], 3), round(rising[int(0.9 * len(rising))], 3)
