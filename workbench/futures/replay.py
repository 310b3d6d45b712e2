"""A run once more from its tape, and the first point at which it does not fit."""

from __future__ import annotations

from typing import Any

from workbench.canonical import canonical
from workbench.context import KnowledgeBases
from workbench.errors import Divergence, RunError, UnknownKnowledge
from workbench.run import Run
from workbench.tape import MODES, Effect, differences


def replayed(run: Run, knowledge: KnowledgeBases, mode: str, corpus: str) -> Run:
    """See ``Workbench.replay``."""
    if mode not in MODES[2:]:
        raise RunError(f"A replay cannot be {mode!r}. Known: {', '.join(MODES[2:])}.")
    if run.status != "done":
        raise RunError(f"Run {run.run_id} is {run.status}: only a run that is done can be replayed.")
    effects = run.tape()
    if not any(effect.kind == "begin" for effect in effects):
        raise RunError(f"Run {run.run_id} has no tape: it was made before there were tapes, or the tape was pruned.")
    if corpus == "check":
        same_corpus(run, effects, knowledge)
    again = run.start_fork(mode=mode, mismatch="stop", rest="rules").wait()
    if again.status != "done":
        raise again.divergence or RunError(f"The replay of {run.run_id} is {again.status}: {again.error}")
    if mode == "replay":
        same_bytes(run, again)
    return again


def same_corpus(run: Run, effects: list[Effect], knowledge: KnowledgeBases) -> None:
    """Every knowledge base that is here is the one of the recording.

    Raises:
        Divergence: names the base, and the documents of the evidence that differ.
    """
    for effect in effects:
        name, _, read = effect.name.rpartition(".")
        if effect.kind != "knowledge" or read != "fingerprint":
            continue
        try:
            base = knowledge.get(name)
        except UnknownKnowledge:  # not here: then the tape is all there is
            continue
        if base.fingerprint() != effect.value:
            changed = _changed(run, name, base)
            raise Divergence(
                "knowledge",
                name,
                {"version": effect.value, "input": {"documents": sorted(changed)}},
                {"version": base.fingerprint(), "input": {"documents": sorted(d for d in changed if changed[d])}},
                ["version", *(f"document {d}" + ("" if changed[d] else " (gone)") for d in sorted(changed))],
            )


def _changed(run: Run, name: str, base: Any) -> dict[str, bool]:
    """Documents of the run's evidence that say something else now, or (False) are gone."""
    found: dict[str, bool] = {}
    for result in run.evidence:
        doc_id = result["metadata"].get("doc_id")
        if result["source_type"] != "chunk" or result["metadata"].get("kb_prefix", name) != name or not doc_id:
            continue
        now = {passage["chunk_id"]: passage["text"] for passage in base.passages_of([doc_id])}
        if now.get(result["source_id"]) != result["evidence"]:
            found[doc_id] = bool(now)
    return found


def same_bytes(run: Run, again: Run) -> None:
    """Two runs agree in their canonical bytes.

    Raises:
        Divergence: the first part that differs.
    """
    import json

    one, two = (json.loads(canonical(whole(r))) for r in (run, again))
    paths = differences(one, two)
    if paths:
        part = paths[0].removeprefix(".").split(".")[0].split("[")[0]
        raise Divergence(
            "result", part, {"version": "", "input": one.get(part)}, {"version": "", "input": two.get(part)}, paths[:10]
        )


def whole(run: Run) -> dict[str, Any]:
    """The run's document with its evidence and what was merged, as two equal runs share them."""
    return {**run.to_dict(), "evidence": run.evidence, "merged": run.merged}
