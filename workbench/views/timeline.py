"""A timeline of three levels (graph, steps, sub-steps): lanes of bars on one axis of work time.

Places and widths are percentages, so that the picture fits any width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from markupsafe import Markup

from workbench.records.timeline import GAPS, Bar, attempts, bars, side_by_side, span_ms, work_ticks
from workbench.state import Data, Decision, ExecutionRecord, Json
from workbench.views.drawing import Body, Drawing, sheet, short
from workbench.views.labels import SIGNS, Labels, milliseconds
from workbench.views.markup import Picture, draw, family, joined

_LAST = 0.9
"""The share of the axis from which the text of a tick is before it, for want of room behind it."""
_HIGH, _LOW = 24, 17
"""Heights of the lanes of steps and of sub-steps, in pixels."""
_WIDE = 240
"""The width of the axis where the bench is narrow: a name is inside its bar only where it fits."""


def timeline(document: Data, labels: Labels) -> Picture:
    """Return the timeline of a run."""
    segments = bars(document["log"], document["records"], document["decisions"])
    body = _body(segments, document["records"], labels)
    picture = body.picture(role="group", aria_label=labels("timeline"))
    return Picture(draw("plan.timeline", labels, svg=picture.frame, found=bool(segments)), picture.rows)


def when(
    log: Iterable[Data],
    records: Iterable[ExecutionRecord],
    decisions: Iterable[Decision] = (),
    language: str = "en",
) -> Drawing:
    """Draw the timeline for a page; its rows are bars, with ``replayed`` for those from the tape of another run."""
    records, labels = list(records), Labels(language)
    segments, taped = bars(log, records, decisions), _taped(records)
    body = _body(segments, records, labels, 36, 12)._replace(width=780)
    rows = [{**asdict(bar), "replayed": (bar.step_id, bar.attempt) in taped} for bar in segments]
    legend = f"┄ {labels('step_recorded')}" if taped else ""
    return sheet(rows, body, labels("timeline"), labels("timeline_axis"), legend)


def _taped(records: Iterable[ExecutionRecord]) -> set[tuple[str, int]]:
    return {(record["step_id"], record["attempt"]) for record in records if record.get("replayed")}


def _body(
    segments: Sequence[Bar],
    records: Sequence[ExecutionRecord],
    labels: Labels,
    columns: int = 15,
    unfold: int = 2,
) -> Body:
    rows, top, taped = dict[str, Markup](), 0, _taped(records)
    unfolded = len(attempts(segments)) <= unfold

    def add(key: str, name: str, inside: Markup, height: int = _HIGH, spoken: str = "") -> None:
        """Add a lane at the bottom."""
        nonlocal top
        place = {"height": height, "top": top, "dim": height == _LOW}
        rows[key] = draw("svg.lane", key=key, name=name, inside=inside, spoken=spoken, **place)
        top += height

    scale = _Scale(max(span_ms(segments), 1.0))
    if segments:
        add("graph", labels("graph"), _graph_lane(segments, scale, labels))
    for bar, inside in attempts(segments):
        key = f"{bar.step_id}/{bar.attempt}"
        status = "recorded" if (bar.step_id, bar.attempt) in taped else bar.status
        again = f" ×{bar.attempt}" if bar.attempt > 1 else ""
        name = f"{SIGNS.get(bar.status, '·')} {short(bar.step_id, columns)}{again}"
        spoken = f"{bar.step_id}{again}, {labels(bar.status)}"
        add(key, name, _step_bar(bar, status, scale, labels), spoken=spoken)
        for number, sub in enumerate(inside if unfolded else ()):
            drawn = scale.bar(sub, milliseconds(sub.duration_ms), 6, ink="done-fill")
            add(f"{key}/{number}", f"   · {short(sub.name, columns)}", drawn, _LOW)
    return Body([_axis(segments, scale, top)] if segments else [], rows, "100%", top + 20)


@dataclass(frozen=True)
class _Scale:
    """Milliseconds of an axis as percentages of its ``total``."""

    total: float

    def at(self, moment: float) -> str:
        """Return the distance from the left."""
        return f"{100 * moment / self.total:.3f}%"

    def span(self, bar: Bar) -> dict[str, str]:
        """Return the place and the width of a bar."""
        width = max(100 * (bar.end_ms - bar.start_ms) / self.total, 0.3)
        return {"x": self.at(bar.start_ms), "width": f"{width:.3f}%"}

    def bar(self, bar: Bar, words: str, height: int = 12, **look: Any) -> Markup:
        """Draw a bar with its text behind it, before it or on it: where there is most room."""
        rooms = {"behind": self.total - bar.end_ms, "before": bar.start_ms, "on": bar.end_ms - bar.start_ms}
        where = max(rooms, key=rooms.__getitem__)
        place = {"middle": (_LOW if height < 12 else _HIGH) / 2, "height": height, "where": where}
        at = self.at(bar.start_ms if where == "before" else bar.end_ms)
        return draw("svg.bar", title=_title(bar), words=words, at=at, **self.span(bar), **place, **look)


def _graph_lane(segments: Sequence[Bar], scale: _Scale, labels: Labels) -> Markup:
    """Return the nodes, and the folded gaps, which have a fixed width and show their length."""
    nodes = side_by_side([bar for bar in segments if bar.kind == "node"])
    drawn = []
    for n, bar in enumerate(nodes):
        covered = any(later.start_ms < bar.end_ms for later in nodes[n + 1 :])
        name = "" if covered else labels.get(f"node_{bar.name}", bar.name)
        drawn.append(_labelled(bar, name, "idle", scale, _title(bar)))
    for bar in (bar for bar in segments if bar.kind in GAPS):
        length = milliseconds(bar.duration_ms)
        ink = "person" if bar.kind == "waiting" else "idle"
        drawn.append(_labelled(bar, length, ink, scale, f"{labels(bar.kind)} · {length}", True))
    return joined(drawn)


def _labelled(bar: Bar, name: str, ink: str, scale: _Scale, title: str, dashes: bool = False) -> Markup:
    """Return a bar with its name inside."""
    room = _WIDE * (bar.end_ms - bar.start_ms) / scale.total
    return draw(
        "svg.gap", **scale.span(bar), title=title, name=name if 7 * len(name) < room else "", ink=ink, dashes=dashes
    )


def _step_bar(bar: Bar, status: str, scale: _Scale, labels: Labels) -> Markup:
    words = [milliseconds(bar.duration_ms)]
    words += [labels("n_found", n=bar.found)] if bar.found is not None else []
    words += [labels(bar.status)] if bar.status != "success" else []
    ink, taped = family(bar.status), status == "recorded"
    look: Json = {"ink": "ground" if taped else f"{ink}-fill", "stroke": ink, "dashes": taped}
    return scale.bar(bar, " · ".join(words), **look)


def _axis(segments: Sequence[Bar], scale: _Scale, top: int) -> Markup:
    """Return ticks in seconds, the first one with the unit."""
    ticks = [
        (scale.at(at), f"{work / 1000:g}" if work else "0 s", at >= _LAST * scale.total)
        for at, work in work_ticks(segments, scale.total, 6)
    ]
    return draw("svg.axis", ticks=ticks, top=top)


def _title(bar: Bar) -> str:
    return f"{bar.step_id + ': ' if bar.step_id else ''}{bar.name} · {milliseconds(bar.duration_ms)}"
