"""A timeline of three levels (graph, steps, sub-steps): lanes of bars on one axis of work time.

Places and widths are percentages, so that the picture fits any width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from markupsafe import Markup

from workbench.records.timeline import GAPS, Bar, attempts, bars, span_ms, work_ticks
from workbench.state import Data, Decision, ExecutionRecord
from workbench.views.drawing import Body, Drawing, sheet, short, width
from workbench.views.labels import SIGNS, Labels, milliseconds
from workbench.views.markup import Picture, draw, joined, step_name

_WIDE = 780
"""The width of a page."""
_FACTS, _TRACK = 150, 410
"""The width of the column of facts, and about that of a track."""


def timeline(document: Data, labels: Labels) -> Picture:
    """Return the timeline of a run."""
    segments = bars(document["log"], document["records"], document["decisions"])
    body = _body(segments, document["records"], labels)
    return Picture(draw("plan.timeline", labels, body=body, found=bool(segments)), body.rows)


def when(
    log: Iterable[Data],
    records: Iterable[ExecutionRecord],
    decisions: Sequence[Decision] = (),
    language: str = "en",
) -> Drawing:
    """Draw the timeline for a page; its rows are bars, with ``replayed`` for those from the tape of another run."""
    records = list(records)
    labels = Labels(language)
    segments = bars([*log], records, decisions)
    taped = _taped(records)
    rows = [{**asdict(bar), "replayed": (bar.step_id, bar.attempt) in taped} for bar in segments]
    legend = [("┄", "text", labels("step_recorded"))] if taped else []
    return sheet(
        rows,
        _body(segments, records, labels, True),
        labels("timeline"),
        labels("timeline_axis"),
        legend,
    )


def _taped(records: Iterable[ExecutionRecord]) -> set[tuple[str, int]]:
    return {
        (record["step_id"], record["attempt"]) for record in records if record.get("replayed")
    }


def _body(
    segments: Sequence[Bar],
    records: Sequence[ExecutionRecord],
    labels: Labels,
    page: bool = False,
) -> Body:
    """Draw lanes: on a page names, tracks and facts are columns; on a bench a track is below its name and its facts.

    A page of up to 12 attempts has a lane for each sub-step; a bench has them as a strip below the bar.
    """
    total = span_ms(segments) or 1.0
    groups = attempts(segments)
    taped = _taped(records)
    widths = [round(width(step_name(bar.step_id))) + 44 for bar, _ in groups]
    left = min(max(widths, default=80), 320) if page else 0
    size = Markup(f'x="{left}" width="{_WIDE - left - _FACTS if page else "100%"}"')
    axis = draw("timeline.axis", ticks=work_ticks(total, 6), total=total, size=size, page=page)
    rows = dict[str, Markup]()
    top = 22
    look = {"size": size, "page": page}
    nodes, high = _graph_lane(segments, total, labels)
    if nodes:
        rows["graph"] = draw(
            "timeline.lane",
            key="graph",
            name=labels("graph"),
            inside=nodes,
            rows=high,
            top=top,
            **look,
        )
        top += 18 * high + (6 if page else 24)
    for bar, inside in groups:
        key = f"{bar.step_id}/{bar.attempt}"
        subs = inside if len(groups) <= 12 or not page else []
        rows[key] = draw(
            "timeline.step",
            labels,
            key=key,
            bar=bar,
            name=short(step_name(bar.step_id), (left or 240) // 7),
            sign=SIGNS.get(bar.status, "·"),
            taped=(bar.step_id, bar.attempt) in taped,
            total=total,
            subs=subs,
            top=top,
            **look,
        )
        top += 24 + 18 * len(subs) if page else 42
    return Body([axis], rows, _WIDE if page else "100%", top + 4)


def _graph_lane(segments: Sequence[Bar], total: float, labels: Labels) -> tuple[Markup, int]:
    """Return the nodes, the bars of each on the first row with room for them and its name, and the number of rows.

    A mark shows where a gap is folded, and how long it was.
    """
    groups: dict[Any, list[Bar]] = {}
    for bar in segments:
        if bar.kind in ("node", *GAPS):
            groups.setdefault(bar.name if bar.kind == "node" else bar, []).append(bar)
    ends = list[float]()
    drawn = []
    for group in groups.values():
        first = group[0]
        last = max(group, key=lambda bar: bar.end_ms)
        longest = max(group, key=lambda bar: bar.duration_ms)
        name = labels.get(f"node_{first.name}", first.name)
        if first.kind in GAPS:
            name = f"{labels(first.kind)} · {milliseconds(first.duration_ms)}"
        elif len(group) > 1:
            name = f"{name} {len(group)}×"
        pixels = _TRACK / total
        left = first.start_ms * pixels
        right = last.end_ms * pixels
        needed = width(name) + 6
        if needed < (longest.end_ms - longest.start_ms) * pixels:
            side, labelled = "inside", longest
        elif right + needed < _TRACK:
            side, labelled = "after", last
            right += needed
        else:
            side, labelled = "before", first
            left -= needed
        row = next((n for n, taken in enumerate(ends) if taken <= left), len(ends))
        ends[row : row + 1] = [right]
        look = {"total": total, "side": side, "row": row, "kind": first.kind}
        for bar in group:
            words = name if bar is labelled else ""
            drawn.append(draw("timeline.node", bar=bar, words=words, **look))
    return joined(drawn), len(ends)
