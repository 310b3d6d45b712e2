"""What ran when: a lane for the graph, one for each attempt at a step, and one for each thing inside its tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from workbench.figures.paper import COLOURS, DIM, FAMILY, LINE, STRONG, paper, safe, short
from workbench.labels import Labels, milliseconds
from workbench.state import Decision, ExecutionRecord
from workbench.timeline import Bar, bars, busy_ms, span_ms

if TYPE_CHECKING:
    import pandas
    from plotly.graph_objects import Figure


def timeline_frame(
    log: Iterable[Mapping[str, Any]], records: Iterable[ExecutionRecord], decisions: Iterable[Decision] = ()
) -> pandas.DataFrame:
    """The data of ``timeline``: one row a bar, times in ms of work since the beginning."""
    import pandas

    return pandas.DataFrame([asdict(bar) for bar in bars(log, records, decisions)])


def timeline(
    log: Iterable[Mapping[str, Any]],
    records: Iterable[ExecutionRecord],
    decisions: Iterable[Decision] = (),
    title: str = "",
    language: str = "en",
) -> Figure:
    """What ran when, on an axis of work time: the graph, the steps, and what happened inside the tools.

    Waiting for a person is one hatched bar of fixed width that carries its length, and is not charged.
    """
    from plotly.graph_objects import Figure

    found, labels = bars(log, records, decisions), Labels(language)
    span, lanes = span_ms(found), _lanes(found, labels)
    ticks = _work_ticks(found, span)
    figure = Figure(data=[_lane_bars(lane, index, span, labels) for index, lane in enumerate(lanes) if lane[1]])
    figure.update_layout(
        **paper(title or labels("timeline"), width=960, height=120 + 25 * max(len(lanes), 1)),
        barmode="overlay",
        bargap=0.3,
        xaxis={
            "title": {"text": labels("work_axis"), "font": {"size": 11, "color": DIM}, "standoff": 8},
            "range": [-0.005 * span, _reach(found, span, labels)],
            "tickvals": [at for at, _ in ticks],
            "ticktext": [f"{work:g}" for _, work in ticks],
            "gridcolor": LINE,
            "zeroline": False,
        },
        yaxis={
            "tickvals": list(range(len(lanes))),
            "ticktext": [label for label, _ in lanes],
            "range": [len(lanes) - 0.4, -0.6],
            "automargin": True,
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
        },
        showlegend=False,
        annotations=[_gap_note(bar, labels) for bar in found if bar.kind in _GAPS],
    )
    return figure


Lane = tuple[str, list[Bar]]
_GAPS = ("waiting", "stopped")
_GRAPH = ("node", *_GAPS)


def _lanes(found: Sequence[Bar], labels: Labels) -> list[Lane]:
    """Rows from the top: the graph, then each attempt at a step followed by the inside of its tool."""
    lanes: list[Lane] = [(f"<b>{safe(labels('graph'))}</b>", _side_by_side([b for b in found if b.kind in _GRAPH]))]
    for step in (bar for bar in found if bar.kind == "step" and bar.status != "skipped"):
        again = f" ×{step.attempt}" if step.attempt > 1 else ""
        lanes.append((safe(f"{short(step.step_id, 30)}{again}"), [step]))
        for sub in found:
            if sub.kind == "sub_step" and (sub.step_id, sub.attempt) == (step.step_id, step.attempt):
                lanes.append((f"<span style='color:{DIM}'>{safe(short(sub.name, 28))}</span>", [sub]))
    return lanes


def _side_by_side(found: Sequence[Bar]) -> list[Bar]:
    """Overlapping runs of one node, which the executor's parallel tasks are, as one bar."""
    merged: list[Bar] = []
    for bar in sorted(found, key=lambda b: (b.start_ms, b.end_ms)):
        before = next((b for b in reversed(merged) if b.name == bar.name), None)
        if before and bar.start_ms < before.end_ms:
            both = (before, bar)
            end = max(b.end_ms for b in both)
            merged[merged.index(before)] = Bar(bar.kind, bar.name, before.start_ms, end, round(busy_ms(both), 3))
        else:
            merged.append(bar)
    return merged


def _lane_bars(lane: Lane, index: int, span: float, labels: Labels) -> Any:
    from plotly.graph_objects import Bar as PlotlyBar

    _, found = lane
    least = span * 0.002
    return PlotlyBar(
        orientation="h",
        y=[index] * len(found),
        base=[bar.start_ms for bar in found],
        x=[max(bar.end_ms - bar.start_ms, least) for bar in found],
        width=0.42 if found[0].kind == "sub_step" else 0.72,
        marker={
            "color": [_bar_colour(bar) for bar in found],
            "line": {"color": "#FFFFFF", "width": 1 if found[0].kind in _GRAPH else 0},
            "pattern": {
                "shape": ["/" if bar.kind in _GAPS else "" for bar in found],
                "fgcolor": "#FFFFFF",
                "size": 6,
                "solidity": 0.4,
            },
        },
        text=[safe(_bar_text(bar, span, labels)) for bar in found],
        textposition=["inside" if bar.kind in _GRAPH else "outside" for bar in found],
        insidetextanchor="middle",
        textangle=0,
        constraintext="none",
        cliponaxis=False,
        textfont={"size": 11, "color": "#FFFFFF" if found[0].kind in _GRAPH else STRONG},
        hoverinfo="text",
        hovertext=[_bar_hover(bar, labels) for bar in found],
    )


def _bar_colour(bar: Bar) -> str:
    if bar.kind == "node":
        return "#6E6E6E"
    if bar.kind == "sub_step":
        return "#9CCFC2"
    return COLOURS[FAMILY.get(bar.status or bar.kind, "idle")][1]


def _gap_note(bar: Bar, labels: Labels) -> dict[str, Any]:
    """Above the graph's lane: what the hatched bar is, and how long it was."""
    return {
        "x": (bar.start_ms + bar.end_ms) / 2,
        "y": -0.45,
        "text": safe(f"{labels(bar.kind)} · {milliseconds(bar.duration_ms)}"),
        "font": {"size": 11, "color": COLOURS[FAMILY.get(bar.kind, "idle")][0]},
        "showarrow": False,
        "yanchor": "bottom",
    }


def _reach(found: Sequence[Bar], span: float, labels: Labels, drawn: float = 740, letter: float = 7.5) -> float:
    """The end of the axis, so far out that the words behind the last bars fit; in ``drawn`` and ``letter`` pixels."""
    ends = [(bar.end_ms, len(_bar_text(bar, span, labels)) * letter) for bar in found if bar.kind not in _GRAPH]
    return max([span, *(end * drawn / (drawn - min(words, drawn / 2)) for end, words in ends)]) or 1


def _bar_text(bar: Bar, span: float, labels: Labels) -> str:
    if bar.kind == "node":
        return bar.name if bar.end_ms - bar.start_ms > span * 0.012 * len(bar.name) else ""
    if bar.kind in _GAPS:
        return ""
    if bar.kind == "sub_step":
        return milliseconds(bar.duration_ms)
    said = [milliseconds(bar.duration_ms)]
    said += [labels("n_found", n=bar.found)] if bar.found is not None else []
    return " · ".join(said if bar.status == "success" else [*said, labels.status(bar.status)])


def _bar_hover(bar: Bar, labels: Labels) -> str:
    name = labels(bar.kind) if bar.kind in _GAPS else bar.step_id or bar.name
    lines = [f"<b>{safe(name)}</b>", *([safe(bar.name)] if bar.step_id else []), safe(milliseconds(bar.duration_ms))]
    return "<br>".join([*lines, *([safe(labels.status(bar.status))] if bar.status else [])])


def _work_ticks(found: Sequence[Bar], span: float) -> list[tuple[float, float]]:
    """(place on the folded axis, ms of work) of about six round ticks; folded gaps have no ticks inside."""
    gaps = [(bar.start_ms, bar.end_ms - bar.start_ms) for bar in found if bar.kind in _GAPS]
    work = span - sum(width for _, width in gaps)
    step = next((s * 10**e for e in range(-1, 9) for s in (1, 2, 5) if work / (s * 10**e) <= 7), work or 1)
    ticks = []
    for value in (round(step * i, 6) for i in range(int(work / step) + 1)):
        at = value
        for start, width in gaps:
            at += width if start < at else 0
        ticks.append((round(at, 3), value))
    return ticks
