"""The figures of a run, each defined once: whatever shows one of them takes it from here (``docs/figures.md``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from typing_extensions import TypedDict

from workbench.plans import ENDED_WELL, last_records, work_seconds
from workbench.state import ExecutionRecord
from workbench.timeline import elapsed_ms, moment_ms

_WRITERS = ("generate", "kb_handler")


class Figures(TypedDict):
    """What a run took and found, so far.

    ``total_s``: while any node of the graph was at work; waiting for a person, and what the tape answered, not at all.
    ``retrieval_s``: while any step was at work. ``generation_s``: writing the answer. Side by side counts once in each.
    ``calls``: attempts at steps that this run made; ``saved_calls``: those that the tape of another run answered, and
    ``saved_s`` how long these had taken when they were made. ``found``: what the steps found, doubles and all;
    ``evidence``: distinct pieces, after the merge those that it kept; ``in_prompt``: those that fitted the prompt;
    ``cited``: those that the answer cites, its sources. ``passes``: of execute and reflect.
    """

    total_s: float
    retrieval_s: float
    generation_s: float
    calls: int
    saved_calls: int
    saved_s: float
    found: int
    evidence: int
    in_prompt: int
    cited: int
    passes: int


def figures(document: Mapping[str, Any]) -> Figures:
    """The figures of a run, from its document or what there is of it."""
    records, log = document["records"], document.get("log") or []
    statistics, reflections = document.get("statistics") or {}, document.get("reflections") or []
    made, taped = own(records), [r for r in records if r.get("replayed")]
    spans = [(moment_ms(r["started_at"]), r["duration_ms"]) for r in made if r["started_at"]]
    spans += [(moment_ms(entry["timestamp"]), entry["duration_ms"]) for entry in log]
    wrote = [entry for entry in log if entry["node"] in _WRITERS]
    ended = [r for r in last_records(records).values() if r["status"] in ENDED_WELL]
    evidence = len(document.get("evidence") or [])
    return Figures(
        total_s=round(elapsed_ms(spans) / 1000, 6),
        retrieval_s=retrieval_seconds(records),
        generation_s=round(sum(entry["duration_ms"] for entry in wrote) / 1000, 6),
        calls=sum(r["status"] != "skipped" for r in made),
        saved_calls=len(taped),
        saved_s=round(work_seconds(taped), 6),
        found=statistics.get("total_retrieved", sum(r["output_summary"]["evidence_count"] for r in ended)),
        evidence=evidence,
        in_prompt=statistics.get("used", 0),
        cited=len({citation["n"] for citation in document.get("citations") or []}),
        passes=reflections[-1]["current_iteration"] if reflections else 0,
    )


def own(records: Iterable[ExecutionRecord]) -> list[ExecutionRecord]:
    """The attempts that a run made itself."""
    return [record for record in records if not record.get("replayed")]


def retrieval_seconds(records: Iterable[ExecutionRecord]) -> float:
    """How long at least one step of this run was at work; what the tape answered took none of its time."""
    return round(work_seconds(own(records)), 6)
