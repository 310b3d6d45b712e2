"""A timeline: phases that add up to the time of a run, and their nodes and steps on one axis of work time.

Places and widths on the axis are percentages, so that the picture fits any width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple

from markupsafe import Markup

from workbench.records.timeline import GAPS, Bar, bars, busy_ms, span_ms, work_ticks
from workbench.state import Data, Decision, ExecutionRecord
from workbench.views.drawing import Body, Drawing, Legend, sheet
from workbench.views.labels import Labels, milliseconds, percent, phase_name
from workbench.views.markup import Picture, draw, step_name
from workbench.views.plan import document_titles, query_text

_SIGNS = (
    ("waiting", "▮", "person-fill"),
    ("stopped", "▯", "idle"),
    ("from_tape", "▥", "idle"),
    ("at_once", "⇉", "dim"),
)
"""Looks of bars besides their share of the time: sign, colour."""


class Lane(NamedTuple):
    """A row of the timeline: its bars, how long they took together, and whether some of it ran at the same time."""

    key: str
    name: str
    bars: Sequence[Bar]
    took: float
    at_once: bool = False


def timeline(document: Data, labels: Labels) -> Picture:
    """Return the timeline of a run."""
    segments = bars(document["log"], document["records"], document["decisions"])
    body, slowest, legend = _drawn(segments, document_titles(document), labels)
    return Picture(
        draw(
            "plan.timeline",
            labels,
            body=body,
            slowest=slowest,
            legend=legend,
            bars=segments,
        ),
        body.rows,
    )


def when(
    log: Iterable[Data],
    records: Sequence[ExecutionRecord],
    decisions: Sequence[Decision] = (),
    language: str = "en",
    words: Mapping[str, str] = {},
) -> Drawing:
    """Draw the timeline for a page; its rows are bars, with ``replayed`` for those from the tape of another run."""
    labels = Labels(language)
    segments = bars([*log], records, decisions)
    titles = {record["step_id"]: query_text(record["raw_input"], words) for record in records}
    body, slowest, legend = _drawn(segments, titles, labels, True)
    under = f"{slowest} · {labels('timeline_axis')}".strip(" ·")
    return sheet(
        map(asdict, segments), body, labels("timeline"), under, legend, labels("of_the_time")
    )


def _drawn(
    segments: Sequence[Bar],
    titles: Mapping[str, str],
    labels: Labels,
    page: bool = False,
) -> tuple[Body, str, Legend]:
    """Draw the lanes below each other: name, track, facts; name the slowest step or node, and explain the signs."""
    total = span_ms(segments) or 1.0
    lanes = [*_lanes(segments, labels)]
    worked = sum(lane.took for lane in lanes if lane.bars[0].kind == "phase")
    look = {"total": total, "page": page}
    axis = draw("timeline.axis", ticks=work_ticks(total, 4), bars=segments, **look)
    rows = dict[str, Markup]()
    for lane in lanes:
        place = {"titles": titles, "top": 22 + 18 * len(rows), "worked": worked}
        rows[lane.key] = draw("timeline.lane", labels, lane=lane, **place, **look)
    body = Body([axis], rows, 780 if page else "100%", 26 + 18 * len(rows))
    looks = {"from_tape" if bar.replayed else bar.kind for bar in segments}
    looks |= {"at_once" for lane in lanes if lane.at_once}
    legend = [(sign, ink, labels(look)) for look, sign, ink in _SIGNS if look in looks]
    return body, _slowest(lanes, titles, worked, labels), legend


def _slowest(
    lanes: Sequence[Lane], titles: Mapping[str, str], worked: float, labels: Labels
) -> str:
    """Return the step or node that took most of this run's own time; a node around steps is none."""
    outer = {lane.bars[0].inside for lane in lanes if lane.bars[0].kind == "step"}
    inner = [
        lane
        for lane in lanes
        if not (lane.key.startswith("phase ") or lane.key in outer or lane.bars[0].replayed)
    ]
    if not inner:
        return ""
    lane = max(inner, key=lambda lane: lane.took)
    what = labels("slowest", what=titles.get(lane.bars[0].step_id) or lane.name)
    return f"{what} · {milliseconds(lane.took)} · {percent(lane.took / worked)}"


def _lanes(segments: Sequence[Bar], labels: Labels) -> Iterator[Lane]:
    """Yield the lanes of phases and gaps; below a phase its nodes, below a node its attempts at steps.

    The only node of a phase has no lane of its own.
    """
    phases: dict[str, list[Bar]] = {}
    nodes: dict[str, dict[str, list[Bar]]] = {}
    for bar in segments:
        if bar.kind in ("phase", *GAPS):
            phases.setdefault(bar.name, []).append(bar)
        elif bar.kind == "node":
            nodes.setdefault(bar.inside, {}).setdefault(bar.name, []).append(bar)

    def steps(node: str) -> Iterator[Lane]:
        for bar in segments:
            if bar.kind == "step" and bar.status != "skipped" and bar.inside == node:
                key = f"{bar.step_id}/{bar.attempt}"
                yield Lane(key, step_name(bar.step_id), [bar], bar.duration_ms)

    for name in sorted(phases | nodes, key=lambda name: name == "other"):
        group = phases.get(name, [])
        inside = nodes.get(name, {})
        took = sum(bar.duration_ms for bar in group)
        each = sum(bar.duration_ms for ran in inside.values() for bar in ran)
        single = len(inside) == 1 and name != "other" and group
        key = next(iter(inside)) if single else f"phase {name}"
        if group:
            yield Lane(key, phase_name(name, labels), group, took, each > took + 0.1)
        for node, ran in inside.items():
            if not single:
                yield Lane(node, labels.get(f"node_{node}", node), ran, busy_ms(ran))
            yield from steps(node)
    yield from steps("")
