"""A run once more from its tape, and the first point at which it does not fit: corpus, course or bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from workbench.errors import Divergence, RunError, UnknownKnowledge
from workbench.ports import KnowledgeBases
from workbench.records.tape import MODES, Effect, canonical, comparable, differences, fingerprints, require_whole
from workbench.runs.recording import Recording
from workbench.settings import ROLES, Settings

_OF_REFLECTION = ("current_iteration", "should_continue", "next_steps", "activate", "rewrite_query", "stop_reason")
_OF_ROUTE = ("kb_prefix", "method", "worker_name", "query_intent", "filters", "extracted_entities")
_OF_DECISION = ("review_id", "action", "edits", "message")


def same_course(run: Recording, again: Recording) -> None:
    """Two runs went the same way; of one that stopped early, as far as it went.

    Raises:
        Divergence: the first stage at which they did not, with what was expected and what came.
    """
    done, words = again.status == "done", _words(run)
    for (stage, name, expected), (_, _, got) in zip(_course(run, words), _course(again, words), strict=True):
        if not done:
            if got in (None, [], "", {}):
                continue
            expected = expected[: len(got)] if isinstance(got, list) and isinstance(expected, list) else expected
        paths = differences(expected, got)
        if paths:
            differs = [f"input{path}" for path in paths]
            raise Divergence(stage, name, {"version": "", "input": expected}, {"version": "", "input": got}, differs)


def _words(run: Recording) -> bool:
    """Whether the answer was written by rules, so that its words are theirs too."""
    return not any(e.kind == "handler" or (e.kind == "model" and e.name in ("writer", "answer")) for e in run.tape())


def _course(run: Recording, words: bool) -> Iterator[tuple[str, str, Any]]:
    """What a run did, stage by stage: ``(stage, name, value)``."""
    route, reflections = run.route_decision, run.reflections
    yield "route", "question", run.query if route else None
    yield "route", "decision", _some(route, _OF_ROUTE) if route else None
    yield "plan", "versions", [comparable(row["plan"]) for row in run.plan_history]
    steps = sorted(run.records, key=lambda r: (r["iteration"], r["step_id"], r["attempt"]))
    yield "step", "attempts", [{name: r[name] for name in ("step_id", "attempt", "tool", "status")} for r in steps]
    yield "reflection", "judgements", [comparable(_some(r, _OF_REFLECTION)) for r in reflections]
    yield "decision", "answers", [comparable(_some(d, _OF_DECISION)) for d in run.decisions]
    yield "retrieval", "stop_reason", run.stop_reason
    yield "evidence", "merged", [_piece(result) for result in run.merged.get("retrieval_results", [])]
    yield "citations", "sources", [{"n": c["n"], "id": c["result_id"]} for c in run.citations] if words else []
    yield "answer", "text", run.answer if words else ""


def _some(value: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value[name] for name in names}


def _piece(result: Any) -> dict[str, Any]:
    metadata = result["metadata"]
    return {
        "id": result["source_id"],
        "granularity": result["granularity"],
        "kb": metadata.get("kb_prefix", ""),
        "score": round(result["score"], 6),
        "tools": metadata.get("tools", []),
    }


def replayed(
    run: Recording,
    fork: Callable[..., Recording],
    knowledge: KnowledgeBases,
    settings: Settings,
    mode: str,
    corpus: str,
) -> Recording:
    """See ``Workbench.replay``; ``fork`` makes a run of this one, and waits for it."""
    if mode not in MODES[2:]:
        raise RunError(f"A replay cannot be {mode!r}. Known: {', '.join(MODES[2:])}.")
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
    if mode == "check":
        same_course(run, again)
    if again.status != "done":
        raise again.divergence or RunError(f"The replay of {run.run_id} is {again.status}: {again.error}")
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


def whole(run: Recording) -> dict[str, Any]:
    """The run's document with its evidence and what was merged; ``canonical`` of it is equal for equal runs."""
    return {**run.to_dict(), "evidence": run.evidence, "merged": run.merged}
