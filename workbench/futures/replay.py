"""Replay a run from its tape, and name the first point at which corpus or bytes differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from workbench.errors import Divergence, RunError, UnknownKnowledge
from workbench.ports import KnowledgeBases
from workbench.records.tape import FROM_TAPE, Effect, canonical, differences, fingerprints, require_whole
from workbench.runs.recording import Recording
from workbench.settings import ROLES, Settings
from workbench.state import Json


def replayed(
    run: Recording,
    fork: Callable[..., Recording],
    knowledge: KnowledgeBases,
    settings: Settings,
    mode: str,
    corpus: str,
) -> Recording:
    """Replay a run (``Workbench.replay``); ``fork`` makes a run of this one, and waits for it."""
    if mode not in FROM_TAPE:
        raise RunError(f"A replay cannot be {mode!r}. Known: {', '.join(FROM_TAPE)}.")
    if corpus not in ("check", "tape"):
        raise RunError(f"The corpus of a replay cannot be {corpus!r}. Known: check, tape.")
    if run.status != "done":
        raise RunError(f"Run {run.run_id} is {run.status}: only a run that is done can be replayed.")
    effects = run.tape()
    require_whole(run.run_id, effects)
    asks_model = any(effect.kind == "model" for effect in effects)
    if mode == "regression" and asks_model and not any(map(settings.role_model, ROLES)):
        raise RunError(f"Run {run.run_id} asked a model, and none is configured here. Set WORKBENCH_CHAT_MODEL.")
    if corpus == "check":
        same_corpus(run, effects, knowledge)
    again = fork(mode=mode, mismatch="stop", rest="rules")
    if again.status != "done":
        divergences = [effect.value for effect in again.tape() if effect.kind == "divergence"]
        if divergences:
            raise Divergence(**divergences[-1])
        raise RunError(f"The replay is {again.status}: {again.error}")
    if mode == "replay":
        same_bytes(run, again)
    return again


def same_corpus(run: Recording, effects: list[Effect], knowledge: KnowledgeBases) -> None:
    """Check that every knowledge base of the recording is unchanged, or absent.

    Raises:
        Divergence: names the base, and the documents of the evidence that differ.
    """
    for name, version in fingerprints(effects).items():
        try:
            base = knowledge.get(name)
        except UnknownKnowledge:  # then the tape alone answers
            continue
        if base.fingerprint() != version.partition("@")[0]:  # a date as of which it was seen follows
            changed = _changed(run, name, base)
            raise Divergence(
                "knowledge",
                name,
                {"version": version, "input": {"documents": sorted(changed)}},
                {"version": base.fingerprint(), "input": {"documents": sorted(d for d in changed if changed[d])}},
                ["version", *(f"document {d}" + ("" if changed[d] else " (gone)") for d in sorted(changed))],
            )


def _changed(run: Recording, name: str, base: Any) -> dict[str, bool]:
    """Return the documents of the evidence whose text has changed (True) or that are gone (False)."""
    changed: dict[str, bool] = {}
    bodies = [effect.value["body"] for effect in run.tape() if effect.kind == "tool" and effect.value["body"]]
    for result in [*run.evidence, *(result for body in bodies for result in body["results"])]:
        doc_id = result["metadata"].get("doc_id")
        if result["source_type"] != "chunk" or result["metadata"].get("kb_prefix", name) != name:
            continue
        if not doc_id or doc_id in changed:
            continue
        now = {passage["chunk_id"]: passage["text"] for passage in base.passages(doc_ids=[doc_id])}
        if now.get(result["source_id"]) != result["evidence"]:
            changed[doc_id] = bool(now)
    return changed


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
