"""A run once more from its tape, and the first point at which it does not fit: corpus or bytes."""

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
    """See ``Workbench.replay``; ``fork`` makes a run of this one, and waits for it."""
    if mode not in FROM_TAPE:
        raise RunError(f"A replay cannot be {mode!r}. Known: {', '.join(FROM_TAPE)}.")
    if corpus not in ("check", "tape"):
        raise RunError(f"The corpus of a replay cannot be {corpus!r}. Known: check, tape.")
    if run.status != "done":
        raise RunError(f"Run {run.run_id} is {run.status}: only a run that is done can be replayed.")
    effects = run.tape()
    require_whole(run.run_id, effects)
    asked = any(effect.kind == "model" for effect in effects)
    if mode == "regression" and asked and not any(map(settings.model_of, ROLES)):
        raise RunError(f"Run {run.run_id} asked a model, and none is configured here. Set WORKBENCH_CHAT_MODEL.")
    if corpus == "check":
        same_corpus(run, effects, knowledge)
    again = fork(mode=mode, mismatch="stop", rest="rules")
    if again.status != "done":
        told = [effect.value for effect in again.tape() if effect.kind == "divergence"]
        raise Divergence(**told[-1]) if told else RunError(f"The replay is {again.status}: {again.error}")
    if mode == "replay":
        same_bytes(run, again)
    return again


def same_corpus(run: Recording, effects: list[Effect], knowledge: KnowledgeBases) -> None:
    """Every knowledge base that is here is the one of the recording.

    Raises:
        Divergence: names the base, and the documents of the evidence that differ.
    """
    for name, version in fingerprints(effects).items():
        try:
            base = knowledge.get(name)
        except UnknownKnowledge:  # not here: then the tape is all there is
            continue
        if base.fingerprint() != version.partition("@")[0]:  # a date as of which it was seen stands behind
            changed = _changed(run, name, base)
            raise Divergence(
                "knowledge",
                name,
                {"version": version, "input": {"documents": sorted(changed)}},
                {"version": base.fingerprint(), "input": {"documents": sorted(d for d in changed if changed[d])}},
                ["version", *(f"document {d}" + ("" if changed[d] else " (gone)") for d in sorted(changed))],
            )


def _changed(run: Recording, name: str, base: Any) -> dict[str, bool]:
    """Documents of which the run found passages that say something else now, or (False) are gone."""
    found: dict[str, bool] = {}
    bodies = [effect.value["body"] for effect in run.tape() if effect.kind == "tool" and effect.value["body"]]
    for result in [*run.evidence, *(result for body in bodies for result in body["results"])]:
        doc_id = result["metadata"].get("doc_id")
        if result["source_type"] != "chunk" or result["metadata"].get("kb_prefix", name) != name:
            continue
        if not doc_id or doc_id in found:
            continue
        now = {passage["chunk_id"]: passage["text"] for passage in base.passages_of([doc_id])}
        if now.get(result["source_id"]) != result["evidence"]:
            found[doc_id] = bool(now)
    return found


def same_bytes(run: Recording, again: Recording) -> None:
    """Two runs agree in their canonical bytes.

    Raises:
        Divergence: the first part that differs.
    """
    one, two = (json.loads(canonical(whole(r))) for r in (run, again))
    for part in one:
        paths = differences(one[part], two.get(part))
        if paths:
            expected, got = ({"version": "", "input": other.get(part)} for other in (one, two))
            raise Divergence("result", part, expected, got, [f"input{path}" for path in paths])


def whole(run: Recording) -> Json:
    """Return the run's document with its evidence and what was merged; ``canonical`` of it is equal for equal runs."""
    return {**run.to_dict(), "evidence": run.evidence, "merged": run.merged}
