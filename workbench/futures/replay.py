"""Replay a run from its tape, and name the first point at which the bytes differ."""

from __future__ import annotations

import json
from collections.abc import Callable

from workbench.errors import Divergence, RunError
from workbench.records.tape import begun, canonical, differences
from workbench.runs.stored import Recording, snapshot
from workbench.state import Json


def replayed(run: Recording, fork: Callable[..., Recording]) -> Recording:
    """Replay a run (``Workbench.replay``); ``fork`` makes a run of this one, and waits for it."""
    if run.status != "done":
        raise RunError(
            f"Run {run.run_id} is {run.status}: only a run that is done can be replayed."
        )
    if not begun(run.tape()):
        raise RunError(f"Run {run.run_id} has no tape: it was pruned.")
    again = snapshot(fork(mode="replay", mismatch="stop", rest="rules"))
    if again.status != "done":
        divergences = [effect.value for effect in again.tape() if effect.kind == "divergence"]
        if divergences:
            raise Divergence(**divergences[-1])
        raise RunError(f"The replay is {again.status}: {again.error}")
    same_bytes(run, again)
    return again


def same_bytes(run: Recording, again: Recording) -> None:
    """Check that two runs agree in their canonical bytes.

    Raises:
        Divergence: the first part that differs.
    """
    original, replay = (json.loads(canonical(full_document(r))) for r in (run, again))
    for part in original:
        if paths := differences(original[part], replay.get(part)):
            expected, actual = (
                {"version": "", "input": document.get(part)} for document in (original, replay)
            )
            raise Divergence("result", part, expected, actual, [f"input{path}" for path in paths])


def full_document(run: Recording) -> Json:
    """Return the run's document with its evidence and what was merged; ``canonical`` of it is equal for equal runs."""
    return {**run.to_dict(), "evidence": run.evidence, "merged": run.state.get("merged", {})}
