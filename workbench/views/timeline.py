"""A timeline of three levels (graph, steps, sub-steps): lanes of bars on one axis of work time.

Places and widths on the axis are percentages, so that the picture fits any width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple

from markupsafe import Markup

from workbench.records.timeline import GAPS, Bar, attempts, bars, busy_ms, span_ms, work_ticks
from workbench.state import Data, Decision, ExecutionRecord
from workbench.views.drawing import Body, Drawing, Legend, sheet, short
from workbench.views.labels import SIGNS, Labels, milliseconds, percent
from workbench.views.markup import Picture, draw, step_name

_SIGNS = (
    ("waiting", "▮", "person-fill"),
    ("stopped", "▯", "idle"),
    ("from_tape", "▥", "idle"),
)
"""Looks of bars besides their share of the time: sign, colour."""


class Lane(NamedTuple):
    """A row of the timeline: its bars, and how long they took together."""

    key: str
    name: str
    bars: Sequence[Bar]
    took: float
    depth: int = 0


def timeline(document: Data, labels: Labels) -> Picture:
    """Return the timeline of a run."""
    segments = bars(document["log"], document["records"], document["decisions"])
    body, slowest, legend = _drawn(segments, labels)
    return Picture(
        draw("plan.timeline", labels, body=body, slowest=slowest, legend=legend), body.rows
    )


def when(
    log: Iterable[Data],
    records: Iterable[ExecutionRecord],
    decisions: Sequence[Decision] = (),
    language: str = "en",
) -> Drawing:
    """Draw the timeline for a page; its rows are bars, with ``replayed`` for those from the tape of another run."""
    labels = Labels(language)
    segments = bars([*log], [*records], decisions)
    body, slowest, legend = _drawn(segments, labels, True)
    under = f"{slowest} · {labels('timeline_axis')}".strip(" ·")
    heat = labels("of_the_time")
    return sheet(map(asdict, segments), body, labels("timeline"), under, legend, heat)


def _drawn(
    segments: Sequence[Bar], labels: Labels, page: bool = False
) -> tuple[Body, str, Legend]:
    """Draw the lanes below each other: name, track, facts; name the slowest node, and explain the signs.

    A page of up to 12 attempts has lanes for their sub-steps.
    """
    total = span_ms(segments) or 1.0
    lanes = [*_lanes(segments, labels, page and len(attempts(segments)) <= 12)]
    gaps = [bar for bar in segments if bar.kind in GAPS]
    look = {"total": total, "page": page}
    axis = draw("timeline.axis", ticks=work_ticks(total, 4), gaps=gaps, **look)
    rows = dict[str, Markup]()
    for lane in lanes:
        name = short(lane.name, 28 - 2 * lane.depth) if page else lane.name
        place = {"name": name, "top": 22 + 18 * len(rows)}
        rows[lane.key] = draw("timeline.lane", labels, lane=lane, **place, **look)
    body = Body([axis], rows, 780 if page else "100%", 26 + 18 * len(rows))
    looks = {"from_tape" if bar.replayed else bar.kind for bar in segments}
    legend = [(sign, ink, labels(look)) for look, sign, ink in _SIGNS if look in looks]
    worked = [lane for lane in lanes if lane.bars[0].kind == "node"]
    if not worked:
        return body, "", legend
    slowest = max(worked, key=lambda lane: lane.took)
    took = f"{milliseconds(slowest.took)} · {percent(slowest.took / total)}"
    return body, labels("slowest", what=f"{slowest.name} · {took}"), legend


def _lanes(segments: Sequence[Bar], labels: Labels, subs: bool) -> Iterator[Lane]:
    """Yield the lanes of nodes and gaps; below a node its attempts at steps, below these their sub-steps."""
    nested: dict[str, list[Lane]] = {}
    for bar, inside in attempts(segments):
        key = f"{bar.step_id}/{bar.attempt}"
        again = f" ×{bar.attempt}" if bar.attempt > 1 else ""
        name = f"{SIGNS.get(bar.status, '·')} {step_name(bar.step_id)}{again}"
        lanes = nested.setdefault(bar.node, [])
        lanes.append(Lane(key, name, [bar], bar.duration_ms, 1))
        for number, sub in enumerate(inside if subs else ()):
            lanes.append(Lane(f"{key}/{number}", sub.name, [sub], sub.duration_ms, 2))
    groups: dict[str, list[Bar]] = {}
    for bar in segments:
        if bar.kind in ("node", *GAPS):
            groups.setdefault(bar.name, []).append(bar)
    for name, group in groups.items():
        if name in GAPS:
            yield Lane(name, labels(name), group, sum(bar.duration_ms for bar in group))
        else:
            yield Lane(name, labels.get(f"node_{name}", name), group, busy_ms(group))
            yield from nested.pop(name, ())
    for lanes in nested.values():
        yield from lanes
