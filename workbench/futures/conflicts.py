"""Where branches contradict one another: what two runs say of the same thing, as data. Nothing is decided here.

A conflict is ``{"kind", "where", "values": {run_id: what it says}, "how", "open"}``. ``how`` is what becomes of it:
``both`` stay, one is ``replaced`` or ``dropped``, the ``base``'s holds, the ``preferred`` run's holds, or it is
``anew``; an ``open`` one needs a choice of the caller.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.canonical import comparable
from workbench.plans import canonical_json
from workbench.run import Run
from workbench.state import RetrievalResult
from workbench.tape import Effect

Conflict = dict[str, Any]
KINDS = ("step", "question", "knowledge_base", "settings", "history", "corpus", "tape", "text", "field")


def conflict(kind: str, where: str, values: Mapping[str, Any], how: str) -> Conflict:
    """One contradiction; it is open when nothing says what becomes of it."""
    return {"kind": kind, "where": where, "values": dict(values), "how": how, "open": how == "open"}


def between(
    runs: Sequence[Run], tapes: Mapping[str, Sequence[Effect]], chosen: bool, prefer: str | None
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
    begun: dict[str, Any] = {
        run_id: next((e.value for e in tape if (e.kind, e.name) == ("begin", "settings")), {})
        for run_id, tape in tapes.items()
    }
    for name in sorted({name for settings in begun.values() for name in settings}):
        yield "settings", name, {run_id: settings.get(name) for run_id, settings in begun.items() if settings}


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
