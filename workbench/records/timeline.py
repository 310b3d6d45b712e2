"""What happened when, on three levels: graph node -> step -> inside the tool; on an axis of work time.

The axis is the wall clock without its long gaps: while a person thinks, or while no process ran, nothing is charged
and no time passes on it; the gap becomes one bar without a width that carries its length.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal

from workbench.state import Data, Decision, ExecutionRecord, Records, without_empty

Kind = Literal["phase", "node", "step", "sub_step", "waiting", "stopped"]
GAPS = ("waiting", "stopped")
"""Kinds of bars that are folded gaps: a person thought, or no process ran."""


@dataclass(frozen=True)
class Bar:
    """A bar of the timeline: ``start_ms`` to ``end_ms`` on the folded axis, ``duration_ms`` long in truth.

    ``inside`` is the phase of a node, and the node that ran a step. A replayed step is where the tape answered, and as
    long as it took in the run that was at work.
    """

    kind: Kind
    name: str
    start_ms: float
    end_ms: float
    duration_ms: float
    status: str = ""
    step_id: str = ""
    attempt: int = 1
    inside: str = ""
    found: int | None = None
    replayed: bool = False


def bars(
    log: Sequence[Data], records: Sequence[ExecutionRecord], decisions: Sequence[Decision] = ()
) -> list[Bar]:
    """Return every bar by start: phases, nodes that did something, steps, and the inside of tools."""
    passed = unasked(log, decisions)
    ran = {(sub["step_id"], sub["attempt"]): e for e in log for sub in e.get("sub_steps", ())}

    def placed(record: ExecutionRecord) -> tuple[float, float]:
        """Return when a step began and how long it took; what the tape answered was at work in another run."""
        entry = ran.get((record["step_id"], record["attempt"]))
        if entry and record.get("replayed"):
            return moment_ms(entry["timestamp"]), entry["duration_ms"]
        return moment_ms(record["started_at"]), record["duration_ms"]

    nodes = [(moment_ms(entry["timestamp"]), entry["duration_ms"]) for entry in log]
    steps = [placed(record) for record in records]
    if not nodes + steps:
        return []
    at, gaps = _folded(nodes + steps, [moment_ms(d["decided_at"]) for d in decisions])

    def bar(kind: Kind, name: str, moment: float, length: float, **more: Any) -> Bar:
        begin = at(moment)
        return Bar(
            kind, name, round(begin, 3), round(begin + length, 3), round(length, 3), **more
        )

    entries = [(e, span) for e, span in zip(log, nodes, strict=True) if e["node"] not in passed]
    drawn = [bar("node", e["node"], *span, inside=_phase(e)) for e, span in entries]
    drawn += [
        bar("phase", name, begin, end - begin)
        for name, spans in phases(log, records).items()
        for begin, end in spans
    ]
    for record, (begin, length) in zip(records, steps, strict=True):
        of_step = {"step_id": record["step_id"], "attempt": record["attempt"]}
        of_step["inside"] = next(
            (e["node"] for e, (start, took) in entries if 0 <= begin - start <= took), ""
        )
        count = record["output_summary"].get("evidence_count")
        taped = bool(record.get("replayed"))
        step = bar("step", record["tool"], begin, length, found=count, replayed=taped, **of_step)
        took = round(record["duration_ms"], 3)
        drawn.append(replace(step, status=record["status"], duration_ms=took))
        for sub in () if taped else record["sub_steps"]:
            moment = begin + sub["offset_ms"]
            drawn.append(bar("sub_step", sub["name"], moment, sub["duration_ms"], **of_step))
    order = {"step": 1, "sub_step": 2}
    return sorted(
        [*drawn, *gaps], key=lambda b: (order.get(b.kind, 0), b.start_ms, b.step_id, b.attempt)
    )


def unasked(log: Iterable[Data], decisions: Iterable[Decision]) -> set[str]:
    """Return the reviews that asked no person: the run passed them without doing anything."""
    reviews = {entry["node"] for entry in log if entry["node_type"] == "review"}
    return reviews - {f"review_{decision.get('point')}" for decision in decisions}


def _folded(
    spans: Sequence[tuple[float, float]], answered: Sequence[float]
) -> tuple[Callable[[float], float], list[Bar]]:
    """Wall-clock milliseconds -> milliseconds from the beginning, long gaps folded; and those gaps."""
    union = _union(spans)
    starts = [union[0][0]]
    offsets = [0.0]
    gaps = []

    def at(moment: float) -> float:
        index = max(bisect_right(starts, moment) - 1, 0)
        return offsets[index] + moment - starts[index]

    for (_, left), (start, _) in pairwise(union):
        begin = at(left)
        kind: Kind = (
            "waiting" if any(left <= moment <= start + 1000 for moment in answered) else "stopped"
        )
        gaps.append(Bar(kind, kind, round(begin, 3), round(begin, 3), round(start - left, 3)))
        starts.append(start)
        offsets.append(begin)
    return at, gaps


_IDLE_MS = 250.0
"""Idle time from which a gap is folded: more than a checkpoint takes, less than a person needs."""


def _union(spans: Iterable[tuple[float, float]], gap: float = _IDLE_MS) -> list[list[float]]:
    """From when to when something was at work, of (start, duration); what is nearer to one another is one."""
    union: list[list[float]] = []
    for start, duration in sorted(spans):
        if union and start - union[-1][1] < gap:
            union[-1][1] = max(union[-1][1], start + duration)
        else:
            union.append([start, start + duration])
    return union


_PHASES = {
    kind: phase
    for phase, kinds in (
        ("before", "route memory prepare clarify"),
        ("plan", "plan"),
        ("retrieval", "dispatch execute merge"),
        ("reflection", "reflect"),
        ("answer", "generate outline write decide research check assemble"),
        ("other", "review persist"),
    )
    for kind in kinds.split()
}
"""Type of a node -> its phase; a node of a recorded graph is a phase of its own."""


def _phase(entry: Data) -> Any:
    return _PHASES.get(entry["node_type"], entry["node"])


def phases(log: Iterable[Data], records: Records) -> dict[str, list[list[float]]]:
    """Return from when to when each phase of a run was at work, in milliseconds: every moment of work is in one.

    What runs at once is in the phase that began first; ``other`` has what passes between nodes, where a checkpoint is
    written. Waiting for a person, and what the tape answered, are in none.
    """
    work = [(moment_ms(e["timestamp"]), e["duration_ms"], _phase(e)) for e in log]
    work += [
        (moment_ms(r["started_at"]), r["duration_ms"], "retrieval")
        for r in records
        if r["started_at"] and not r.get("replayed")
    ]
    spans: dict[str, list[list[float]]] = {name: [] for name in _PHASES.values()}
    reached = float("-inf")
    for start, duration, name in sorted(work):
        if 0 < start - reached < _IDLE_MS:
            spans["other"].append([reached, start])
        if start + duration > reached:
            begin, reached = max(start, reached), start + duration
            spans.setdefault(name, []).append([begin, reached])
    return without_empty(spans)


def span_ms(segments: Iterable[Bar]) -> float:
    """Return the end of the axis."""
    return max((bar.end_ms for bar in segments), default=0.0)


def busy_ms(segments: Iterable[Bar]) -> float:
    """Return how long at least one of these took: what runs side by side counts once.

    >>> busy_ms([Bar("node", "a", 0, 30, 30), Bar("node", "a", 10, 40, 30), Bar("node", "a", 90, 95, 5)])
    45.0
    """
    spans = ((bar.start_ms, bar.end_ms - bar.start_ms) for bar in segments)
    return sum((end - start for start, end in _union(spans, gap=0)), 0.0)


def moment_ms(moment: str) -> float:
    """Return a moment of a log or a record, in milliseconds."""
    return datetime.fromisoformat(moment).timestamp() * 1000


def work_ticks(span: float, limit: int) -> list[float]:
    """Return at most so many round milliseconds of work, and 0.

    >>> work_ticks(4200, 6)
    [0, 1000, 2000, 3000, 4000]
    """
    step = next(
        (s * 10**e for e in range(-1, 9) for s in (1, 2, 5) if span / (s * 10**e) <= limit), span
    )
    return [round(step * i, 6) for i in range(int(span / step) + 1)]
