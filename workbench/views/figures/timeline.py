"""What ran when: a lane for the graph, one for each attempt at a step, and one for each thing inside its tool.

Of many steps the lanes are shared: what follows one another stands in one lane, and its name shows when zoomed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from plotly import graph_objects

from workbench.records.timeline import GAPS, Bar, attempts, bars, side_by_side, span_ms, work_ticks
from workbench.state import Decision, ExecutionRecord
from workbench.views.figures.paper import (
    CLEAR,
    COLOURS,
    GROUND,
    INK,
    NODE,
    axis,
    box,
    hover,
    inks,
    lines,
    paper,
    safe,
    short,
    statuses,
    swatch,
)
from workbench.views.figures.picture import Picture
from workbench.views.labels import SIGNS, Labels, milliseconds

_PATTERNS = {"waiting": "/", "stopped": "/", "failed": "x", "timeout": "-", "partial": "."}
"""What did not go well differs by more than its colour."""
_INSIDE_UP_TO, _LANES_UP_TO = 12, 40
"""Attempts up to which the inside of tools has lanes, and attempts have lanes of their own."""


class Drawn(NamedTuple):
    """A bar in its lane, counted from the top; ``taped``: its call came from another run's tape."""

    lane: int
    bar: Bar
    taped: bool


def timeline(
    log: Iterable[Mapping[str, Any]],
    records: Iterable[ExecutionRecord],
    decisions: Iterable[Decision] = (),
    title: str = "",
    language: str = "en",
) -> Picture:
    """What ran when, on an axis of work time: the graph, the steps, and what happened inside the tools.

    Waiting for a person is one hatched bar of fixed width that carries its length, and is not charged. What was taken
    from another run's tape is outlined with dashes, at the time of its recording.
    """
    records, labels = list(records), Labels(language)
    taped = {(r["step_id"], r["attempt"]) for r in records if r.get("replayed")}
    found = bars(log, records, decisions)
    shared = len(attempts(found)) > _LANES_UP_TO
    placed, names = (_packed if shared else _in_lanes)(found, labels)
    placed = [(0, bar) for bar in side_by_side(b for b in found if b.kind == "node")] + placed
    drawn = [Drawn(lane, bar, (bar.step_id, bar.attempt) in taped) for lane, bar in placed]
    count = max((lane for lane, _ in placed), default=-1) + 1
    span = span_ms(found)
    kinds = [[one for one in drawn if one.bar.kind in kinds] for kinds in (("node", *GAPS), ("step",), ("sub_step",))]
    reach = span * 1.01 if shared else max([span, *(_reach(one, span, labels) for one in drawn)])
    rows = [{**asdict(bar), "replayed": (bar.step_id, bar.attempt) in taped} for bar in found]
    layout = paper(
        title or labels("timeline"),
        width=960,
        height=160 + (25 if names else 22) * max(count, 1),
        below=88,
        barmode="overlay",
        bargap=0.3,
        xaxis=_time_axis(found, span, reach, labels),
        yaxis=axis(
            tickvals=sorted(names),
            ticktext=[names[lane] for lane in sorted(names)],
            range=[count - 0.4, -0.9],
            automargin=True,
            fixedrange=True,
            showgrid=False,
        )
        | {"tickfont": {"size": 11, "color": INK}},
        shapes=_outlines(drawn),
        annotations=[_gap_note(bar, rows, labels) for bar in found if bar.kind in GAPS],
        uniformtext={"mode": "hide", "minsize": 9} if shared else {},
    )
    steps = ("recorded" if row["replayed"] else row["status"] for row in rows if row["kind"] == "step")
    legend = statuses(steps, labels, solid=True)
    legend += [swatch(labels("zoom_for_names"))] if shared else []
    return Picture.of(rows, [*(_trace(kind, span, labels, shared) for kind in kinds if kind), *legend], layout)


Placed = tuple[list[tuple[int, Bar]], dict[int, str]]
"""Bars, each with its lane, and the names of lanes; the graph has the first one."""


def _in_lanes(found: Sequence[Bar], labels: Labels) -> Placed:
    """A lane for each attempt at a step, and of a few for each thing inside it."""
    placed = [(0, bar) for bar in found if bar.kind in GAPS]
    names = {0: f"<b>{safe(labels('graph'))}</b>"} if found else {}
    steps = attempts(found)
    for step, inside in steps:
        again = f" ×{step.attempt}" if step.attempt > 1 else ""
        named = [(step, f"{short(step.step_id, 30)}{again}")]
        named += [(sub, f"· {short(sub.name, 28)}") for sub in inside] if len(steps) <= _INSIDE_UP_TO else []
        for bar, name in named:
            placed.append((len(names), bar))
            names[len(names)] = safe(name)
    return placed, names


def _packed(found: Sequence[Bar], labels: Labels) -> Placed:
    """Each attempt at a step in the first lane that is free when it begins."""
    placed, ends = [(0, bar) for bar in found if bar.kind in GAPS], list[float]()
    for step, _ in attempts(found):
        lane = next((number for number, end in enumerate(ends) if end <= step.start_ms), len(ends))
        ends[lane : lane + 1] = [step.end_ms]
        placed.append((1 + lane, step))
    return placed, {0: f"<b>{safe(labels('graph'))}</b>", 1: safe(labels("all_steps"))}


def _time_axis(found: Sequence[Bar], span: float, reach: float, labels: Labels) -> dict[str, Any]:
    """Round ticks of work time, in seconds when it is long."""
    ticks = work_ticks(found, span)
    seconds = max((work for _, work in ticks), default=0) >= 5000
    return axis(
        labels("axis_time", unit=labels("unit_s" if seconds else "unit_ms")),
        range=[-0.005 * span, reach or 1],
        tickvals=[at for at, _ in ticks],
        ticktext=[f"{work / 1000 if seconds else work:g}" for _, work in ticks],
    )


def _reach(one: Drawn, span: float, labels: Labels, wide: float = 740, letter: float = 7.5) -> float:
    """So far out the axis must go that the words behind a bar fit; in pixels ``wide`` in all, ``letter`` a letter."""
    told = 0 if one.bar.kind == "node" else len(_words(one, span, labels)) * letter
    return one.bar.end_ms * wide / (wide - min(told, wide / 2))


def _trace(drawn: Sequence[Drawn], span: float, labels: Labels, shared: bool) -> Any:
    found, kind = [one.bar for one in drawn], drawn[0].bar.kind
    inside = shared or kind in ("node", *GAPS)
    ink = GROUND if inside else INK
    return graph_objects.Bar(
        orientation="h",
        y=[one.lane for one in drawn],
        base=[bar.start_ms for bar in found],
        x=[round(max(bar.end_ms - bar.start_ms, span * 0.002), 3) for bar in found],
        width=0.42 if kind == "sub_step" else 0.72,
        marker={
            "color": [_fill(one) for one in drawn],
            "line": {"color": [_outline(bar) for bar in found], "width": [int(not one.taped) for one in drawn]},
            "pattern": {
                "shape": [_PATTERNS.get(bar.status or bar.kind, "") for bar in found],
                "fgcolor": GROUND,
                "size": 6,
                "solidity": [0.4 if bar.kind in GAPS else 0.15 for bar in found],
            },
        },
        text=[safe(_words(one, span, labels, shared)) for one in drawn],
        textposition="inside" if inside else "outside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="inside" if shared else "none",
        cliponaxis=False,
        textfont={
            "size": 11,
            "color": [INK if one.taped or one.bar.status in _PATTERNS else ink for one in drawn],
        },
        hoverinfo="text",
        hovertext=[_hover(one, labels) for one in drawn],
        showlegend=False,
    )


def _fill(one: Drawn) -> str:
    if one.taped:
        return CLEAR
    if one.bar.kind == "node":
        return NODE
    return COLOURS["done"][1] if one.bar.kind == "sub_step" else inks(one.bar.status or one.bar.kind)[1]


def _outline(bar: Bar) -> str:
    return inks(bar.status or bar.kind)[0] if bar.status in _PATTERNS or bar.kind == "waiting" else GROUND


def _outlines(drawn: Iterable[Drawn]) -> list[dict[str, Any]]:
    """Dashed outlines around what was taken from a tape."""
    paths = [
        box(bar.start_ms, bar.end_ms, lane - high, lane + high)
        for lane, bar, taped in drawn
        for high in (0.36 if bar.kind == "step" else 0.21,)
        if taped
    ]
    return [lines(paths, color=COLOURS["done"][1], width=1.3, dash="4px,3px")] if paths else []


def _gap_note(bar: Bar, rows: Iterable[Mapping[str, Any]], labels: Labels) -> dict[str, Any]:
    """Above the graph's lane: what the hatched bar is, and how long it was."""
    before = max((row for row in rows if row["end_ms"] <= bar.start_ms), key=lambda row: row["end_ms"], default={})
    forked = bar.kind == "stopped" and before.get("replayed")
    return {
        "x": (bar.start_ms + bar.end_ms) / 2,
        "y": -0.45,
        "text": safe(labels("forked_here") if forked else f"{labels(bar.kind)} · {milliseconds(bar.duration_ms)}"),
        "font": {"size": 11, "color": inks(bar.kind)[0]},
        "showarrow": False,
        "yanchor": "bottom",
    }


def _words(one: Drawn, span: float, labels: Labels, named: bool = False) -> str:
    """What stands in a bar of the graph, and behind one of a step."""
    bar = one.bar
    if bar.kind == "node":
        return bar.name if named or bar.end_ms - bar.start_ms > span * 0.012 * len(bar.name) else ""
    if bar.kind in GAPS:
        return ""
    if named:
        return f"{SIGNS.get(bar.status, '')} {short(bar.step_id, 40)}"
    told = [milliseconds(bar.duration_ms)]
    if bar.kind == "step":
        told += [labels("n_found", n=bar.found)] if bar.found is not None else []
        told += [labels("beside_recorded")] if one.taped else []
        told += [labels.status(bar.status)] if bar.status != "success" else []
    return " · ".join(told)


def _hover(one: Drawn, labels: Labels) -> str:
    bar = one.bar
    name = labels(bar.kind) if bar.kind in GAPS else bar.step_id or bar.name
    return hover(
        name,
        bar.name if bar.step_id else "",
        milliseconds(bar.duration_ms),
        labels("n_found", n=bar.found) if bar.found is not None else "",
        labels("step_recorded") if one.taped else "",
        labels.status(bar.status) if bar.status else "",
    )
