"""What ran when: a lane for the graph, one for each attempt at a step, and one for each thing inside its tool.

Of many steps the lanes are shared: what follows one another stands in one lane, and its name shows when zoomed in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from workbench.records.timeline import Bar, bars, side_by_side, span_ms, work_ticks
from workbench.state import Decision, ExecutionRecord
from workbench.views.figures.paper import (
    CLEAR,
    COLOURS,
    DIM,
    FAMILY,
    GROUND,
    INK,
    LINE,
    NODE,
    box,
    entry,
    lines,
    paper,
    safe,
    short,
)
from workbench.views.labels import SIGNS, Labels, milliseconds

if TYPE_CHECKING:
    from workbench.views.figures.picture import Picture


_GAPS = ("waiting", "stopped")
_PATTERNS = {"waiting": "/", "stopped": "/", "failed": "x", "timeout": "-", "partial": "."}
"""What did not go well differs by more than its colour."""
_INSIDE_UP_TO, _LANES_UP_TO = 12, 40
"""Attempts up to which the inside of tools has lanes, and attempts have lanes of their own."""


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
    from workbench.views.figures.picture import Picture

    records, labels = list(records), Labels(language)
    taped = {(r["step_id"], r["attempt"]) for r in records if r.get("replayed")}
    found = bars(log, records, decisions)
    span, lanes = span_ms(found), _Lanes(found, labels)
    high = 25 if lanes.names else 22
    layout = {
        **paper(title or labels("timeline"), width=960, height=160 + high * max(lanes.count, 1), below=88),
        "barmode": "overlay",
        "bargap": 0.3,
        "xaxis": _axis(found, span, lanes, labels, taped),
        "yaxis": {
            "tickvals": sorted(lanes.names),
            "ticktext": [lanes.names[lane] for lane in sorted(lanes.names)],
            "tickfont": {"size": 11, "color": INK},
            "range": [lanes.count - 0.4, -0.9],
            "automargin": True,
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
        },
        "shapes": _outlines(lanes, taped),
        "annotations": [_gap_note(bar, found, taped, labels) for bar in found if bar.kind in _GAPS],
    }
    if lanes.shared:
        layout["uniformtext"] = {"mode": "hide", "minsize": 9}
    rows = [{**asdict(bar), "replayed": (bar.step_id, bar.attempt) in taped} for bar in found]
    drawn = [_trace(kind, lanes, span, labels, taped) for kind in _KINDS if lanes.of(kind)]
    return Picture.of(rows, [*drawn, *_legend(found, taped, lanes, labels)], layout)


Taped = Collection[tuple[str, int]]
_KINDS = (("node", *_GAPS), ("step",), ("sub_step",))


class _Lanes:
    """Which bar stands in which lane, counted from the top, and what the lanes are called."""

    def __init__(self, found: Sequence[Bar], labels: Labels):
        nodes = side_by_side(bar for bar in found if bar.kind == "node")
        steps = [bar for bar in found if bar.kind == "step" and bar.status != "skipped"]
        self.shared = len(steps) > _LANES_UP_TO
        self.placed = [(0, bar) for bar in [*nodes, *(bar for bar in found if bar.kind in _GAPS)]]
        self.names, self.count = {0: f"<b>{safe(labels('graph'))}</b>"} if found else {}, 1 if found else 0
        if self.shared:
            self._pack(steps, labels)
            return
        for step in steps:
            again = f" ×{step.attempt}" if step.attempt > 1 else ""
            self._add(step, safe(f"{short(step.step_id, 30)}{again}"))
            which = (step.step_id, step.attempt)
            inside = [bar for bar in found if bar.kind == "sub_step" and (bar.step_id, bar.attempt) == which]
            for sub in inside if len(steps) <= _INSIDE_UP_TO else ():
                self._add(sub, f"· {safe(short(sub.name, 28))}")

    def _add(self, bar: Bar, name: str) -> None:
        self.names[self.count] = name
        self.placed.append((self.count, bar))
        self.count += 1

    def _pack(self, steps: Iterable[Bar], labels: Labels) -> None:
        """Each step in the first lane that is free when it begins."""
        ends: list[float] = []
        for step in sorted(steps, key=lambda bar: (bar.start_ms, bar.step_id, bar.attempt)):
            lane = next((number for number, end in enumerate(ends) if end <= step.start_ms), len(ends))
            ends[lane : lane + 1] = [step.end_ms]
            self.placed.append((1 + lane, step))
        self.count = 1 + len(ends)
        self.names[1] = safe(labels("all_steps"))

    def of(self, kinds: Collection[str]) -> list[tuple[int, Bar]]:
        return [(lane, bar) for lane, bar in self.placed if bar.kind in kinds]


def _axis(found: Sequence[Bar], span: float, lanes: _Lanes, labels: Labels, taped: Taped) -> dict[str, Any]:
    """Round ticks of work time, in seconds when it is long."""
    ticks = work_ticks(found, span)
    seconds = max((work for _, work in ticks), default=0) >= 5000
    told = labels("axis_time", unit=labels("unit_s" if seconds else "unit_ms"))
    return {
        "title": {"text": told, "font": {"size": 11, "color": DIM}, "standoff": 8},
        "range": [-0.005 * span, span * 1.01 or 1 if lanes.shared else _reach(lanes, span, labels, taped)],
        "tickvals": [at for at, _ in ticks],
        "ticktext": [f"{work / 1000 if seconds else work:g}" for _, work in ticks],
        "tickfont": {"color": INK},
        "gridcolor": LINE,
        "zeroline": False,
    }


def _reach(lanes: _Lanes, span: float, labels: Labels, taped: Taped, drawn: float = 740, letter: float = 7.5) -> float:
    """The end of the axis, so far out that the words behind the last bars fit; in ``drawn`` and ``letter`` pixels."""
    told = [(bar, len(_words(bar, span, labels, taped)) * letter) for _, bar in lanes.of(("step", "sub_step"))]
    return max([span, *(bar.end_ms * drawn / (drawn - min(wide, drawn / 2)) for bar, wide in told)]) or 1


def _trace(kinds: Collection[str], lanes: _Lanes, span: float, labels: Labels, taped: Taped) -> Any:
    from plotly.graph_objects import Bar as PlotlyBar

    placed, least = lanes.of(kinds), span * 0.002
    found, inside = [bar for _, bar in placed], "node" in kinds or lanes.shared
    ink = GROUND if inside else INK
    return PlotlyBar(
        orientation="h",
        y=[lane for lane, _ in placed],
        base=[bar.start_ms for bar in found],
        x=[round(max(bar.end_ms - bar.start_ms, least), 3) for bar in found],
        width=0.42 if "sub_step" in kinds else 0.72,
        marker={
            "color": [_fill(bar, taped) for bar in found],
            "line": {
                "color": [_outline(bar) for bar in found],
                "width": [0 if _is_taped(bar, taped) else 1 for bar in found],
            },
            "pattern": {
                "shape": [_PATTERNS.get(bar.status or bar.kind, "") for bar in found],
                "fgcolor": GROUND,
                "size": 6,
                "solidity": [0.4 if bar.kind in _GAPS else 0.15 for bar in found],
            },
        },
        text=[safe(_words(bar, span, labels, taped, lanes.shared)) for bar in found],
        textposition="inside" if inside else "outside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="inside" if lanes.shared else "none",
        cliponaxis=False,
        textfont={
            "size": 11,
            "color": [INK if _is_taped(bar, taped) or bar.status in _PATTERNS else ink for bar in found],
        },
        hoverinfo="text",
        hovertext=[_hover(bar, labels, taped) for bar in found],
        showlegend=False,
    )


def _is_taped(bar: Bar, taped: Taped) -> bool:
    return (bar.step_id, bar.attempt) in taped


def _fill(bar: Bar, taped: Taped) -> str:
    if _is_taped(bar, taped):
        return CLEAR
    if bar.kind == "node":
        return NODE
    if bar.kind == "sub_step":
        return COLOURS["done"][1]
    return COLOURS[FAMILY.get(bar.status or bar.kind, "idle")][1]


def _outline(bar: Bar) -> str:
    if bar.kind == "waiting":
        return COLOURS["person"][0]
    return COLOURS[FAMILY[bar.status]][0] if bar.status in _PATTERNS else GROUND


def _outlines(lanes: _Lanes, taped: Taped) -> list[dict[str, Any]]:
    """Dashed outlines around what was taken from a tape."""
    placed = [(lane, bar) for lane, bar in lanes.of(("step", "sub_step")) if _is_taped(bar, taped)]
    paths = [
        box(bar.start_ms, bar.end_ms, lane - high, lane + high)
        for lane, bar in placed
        for high in (0.36 if bar.kind == "step" else 0.21,)
    ]
    return [lines(paths, color=COLOURS["done"][1], width=1.3, dash="4px,3px")] if paths else []


def _gap_note(bar: Bar, found: Sequence[Bar], taped: Taped, labels: Labels) -> dict[str, Any]:
    """Above the graph's lane: what the hatched bar is, and how long it was."""
    before = max((one for one in found if one.end_ms <= bar.start_ms), key=lambda one: one.end_ms, default=bar)
    forked = bar.kind == "stopped" and _is_taped(before, taped)
    told = labels("forked_here") if forked else f"{labels(bar.kind)} · {milliseconds(bar.duration_ms)}"
    return {
        "x": (bar.start_ms + bar.end_ms) / 2,
        "y": -0.45,
        "text": safe(told),
        "font": {"size": 11, "color": COLOURS[FAMILY.get(bar.kind, "idle")][0]},
        "showarrow": False,
        "yanchor": "bottom",
    }


def _words(bar: Bar, span: float, labels: Labels, taped: Taped, named: bool = False) -> str:
    """What stands in a bar of the graph, and behind one of a step."""
    if bar.kind == "node":
        return bar.name if named or bar.end_ms - bar.start_ms > span * 0.012 * len(bar.name) else ""
    if bar.kind in _GAPS:
        return ""
    if named:
        return f"{SIGNS.get(bar.status, '')} {short(bar.step_id, 40)}"
    told = [milliseconds(bar.duration_ms)]
    if bar.kind == "sub_step":
        return told[0]
    told += [labels("n_found", n=bar.found)] if bar.found is not None else []
    told += [labels("beside_recorded")] if _is_taped(bar, taped) else []
    return " · ".join(told if bar.status == "success" else [*told, labels.status(bar.status)])


def _hover(bar: Bar, labels: Labels, taped: Taped) -> str:
    name = labels(bar.kind) if bar.kind in _GAPS else bar.step_id or bar.name
    told = [f"<b>{safe(short(name, 60))}</b>", *([safe(short(bar.name, 60))] if bar.step_id else [])]
    told.append(safe(milliseconds(bar.duration_ms)))
    told += [safe(labels("n_found", n=bar.found))] if bar.found is not None else []
    told += [safe(labels("step_recorded"))] if _is_taped(bar, taped) else []
    return "<br>".join([*told, *([safe(labels.status(bar.status))] if bar.status else [])])


def _legend(found: Sequence[Bar], taped: Taped, lanes: _Lanes, labels: Labels) -> list[Any]:
    """What the colours and outlines mean, with the sign and word of each."""
    entries = []
    here = [bar for bar in found if bar.kind == "step" and not _is_taped(bar, taped)]
    for status in dict.fromkeys(bar.status for bar in here):
        marker = {"symbol": "square", "size": 11, "color": COLOURS[FAMILY.get(status, "idle")][1]}
        entries.append(entry(labels.status(status), mode="markers", marker=marker))
    if any(_is_taped(bar, taped) for bar in found):
        line = {"color": COLOURS["done"][1], "width": 1.4}
        marker = {"symbol": "square", "size": 11, "color": CLEAR, "line": line}
        entries.append(entry(f"┄ {labels('step_recorded')}", mode="markers", marker=marker))
    if lanes.shared:
        entries.append(entry(labels("zoom_for_names"), mode="markers", marker={"size": 1, "color": CLEAR}))
    return entries
