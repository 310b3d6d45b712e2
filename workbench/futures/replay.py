"""Replay a run from its tape, and name the first point at which the bytes differ."""

from __future__ import annotations

import json
from collections.abc import Callable

from workbench.errors import Divergence, RunError
from workbench.records.tape import FROM_TAPE, canonical, differences, require_whole
from workbench.runs.recording import Recording
from workbench.settings import ROLES, Settings
from workbench.state import Json


def replayed(
    run: Recording,
    fork: Callable[..., Recording],
    settings: Settings,
    mode: str,
) -> Recording:
    """Replay a run (``Workbench.replay``); ``fork`` makes a run of this one, and waits for it."""
    if mode not in FROM_TAPE:
        raise RunError(f"A replay cannot be {mode!r}. Known: {', '.join(FROM_TAPE)}.")
    if run.status != "done":
        raise RunError(f"Run {run.run_id} is {run.status}: only a run that is done can be replayed.")
    effects = run.tape()
    require_whole(run.run_id, effects)
    asks_model = any(effect.kind == "model" for effect in effects)
    if mode == "regression" and asks_model and not any(map(settings.role_model, ROLES)):
        raise RunError(f"Run {run.run_id} asked a model, and none is configured here. Set WORKBENCH_CHAT_MODEL.")
    again = fork(mode=mode, mismatch="stop", rest="rules")
    if again.status != "done":
        divergences = [effect.value for effect in again.tape() if effect.kind == "divergence"]
        if divergences:
            raise Divergence(**divergences[-1])
        raise RunError(f"The replay is {again.status}: {again.error}")
    if mode == "replay":
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
            expected, actual = ({"version": "", "input": document.get(part)} for document in (original, replay))
            raise Divergence("result", part, expected, actual, [f"input{path}" for path in paths])


def full_document(run: Recording) -> Json:
    """Return the run's document with its evidence and what was merged; ``canonical`` of it is equal for equal runs."""
    return {**run.to_dict(), "evidence": run.evidence, "merged": run.state.get("merged", {})}
