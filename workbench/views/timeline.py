"""What ran when, on three levels: graph, steps, inside the tools; lanes of bars on one axis of work time.

Places and widths are percentages, so the picture fits any width without being drawn again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from workbench.records.timeline import Bar, bars, side_by_side, span_ms, work_ticks
from workbench.views.labels import Labels, milliseconds
from workbench.views.labels.told import took_told
from workbench.views.page import Markup, Picture, button, closed, el, family, glyph, joined, opened

Document = Mapping[str, Any]
_GAPS = ("waiting", "stopped")
_LATE = 0.6
"""The share of the axis from which the words of a bar stand before it, since behind it there is no room."""
_LAST = 0.9
"""The same for the words of a tick, which are shorter."""


def timeline(
    document: Document, labels: Labels, running: Mapping[str, float] | None = None, unfolded: Collection[str] = ()
) -> Picture:
    """The timeline of a run.

    Args:
        document: of the run.
        labels: the words.
        running: steps whose calls are under way, with their seconds so far.
        unfolded: ``step_id/attempt`` of the steps whose inside is shown; ``*`` unfolds all.
    """
    found = bars(document["log"], document["records"], document["decisions"])
    span = max(span_ms(found), 1000 * max((running or {}).values(), default=0.0), 1.0)
    scale = _Scale(span)
    taped = {f"{r['step_id']}/{r['attempt']}" for r in document["records"] if r.get("replayed")}
    rows = {"graph": _graph_lane(found, scale, labels)} if found else {}
    for bar in (one for one in found if one.kind == "step" and one.status != "skipped"):
        key = f"{bar.step_id}/{bar.attempt}"
        opened = key in unfolded or "*" in unfolded
        rows[key] = _step_lane(bar, key, scale, labels, key in taped, opened)
        for number, sub in enumerate(_inside(found, bar) if opened else ()):
            rows[f"{key}/{number}"] = _sub_lane(sub, f"{key}/{number}", scale)
    for step_id, seconds in (running or {}).items():
        rows[f"{step_id}/now"] = _running_lane(step_id, seconds, span, scale, labels)
    took = took_told(document["figures"], labels) if document["log"] else ""
    return Picture(_head(took, labels, bool(unfolded)), rows, _axis(found, span, scale, labels))


class _Scale:
    """Milliseconds of the axis as percentages."""

    def __init__(self, whole: float):
        self._whole = whole

    def place(self, start: float, end: float) -> str:
        left, width = 100 * start / self._whole, 100 * max(end - start, 0) / self._whole
        return f"left:{left:.3f}%;width:max({width:.3f}%,2px)"

    def at(self, moment: float) -> str:
        return f"left:{100 * moment / self._whole:.3f}%"

    def tick(self, moment: float, word: str) -> Markup:
        """A tick with its word behind it, or before it at the end of the axis, where a word would stand out of it."""
        if moment < _LAST * self._whole:
            return el("span.wb-tick", word, style=self.at(moment))
        return el("span.wb-tick.wb-late", word, style=f"right:{100 - 100 * moment / self._whole:.3f}%")

    def beside(self, start: float, end: float) -> str:
        """Where the words of a bar stand: behind it, or before it where that leaves more room."""
        if end > _LATE * self._whole and start > self._whole - end:
            return f"right:{100 - 100 * start / self._whole:.3f}%"
        return self.at(end)


def _head(took: str, labels: Labels, unfolded: bool) -> Markup:
    title = el("h3.wb-title", labels("timeline"), " ", el("span.wb-dim", took))
    fold = button(labels("fold_all" if unfolded else "unfold_all"), "unfold", cls="wb-quiet")
    bar = el("div.wb-bar", title, el("span.wb-dim.wb-push", labels("timeline_axis")), fold)
    lanes = opened("div.wb-time-lanes", data_scroll="lanes", role="listbox", aria_label=labels("timeline"))
    return joined([opened("section.wb-section"), bar, lanes])


def _lane(key: str, name: Markup | str, inside: Sequence[Markup], cls: str = "", **attributes: Any) -> Markup:
    named = el("div.wb-time-lane-name.wb-cut", name)
    return el(f"div.wb-time-lane.{cls}", named, el("div.wb-track", inside), data_key=key, **attributes)


def _graph_lane(found: Sequence[Bar], scale: _Scale, labels: Labels) -> Markup:
    nodes = side_by_side([bar for bar in found if bar.kind == "node"])
    gaps = [bar for bar in found if bar.kind in _GAPS]
    drawn = [
        el("span.wb-bar-node.wb-cut", bar.name, style=scale.place(bar.start_ms, bar.end_ms), title=_told(bar))
        for bar in nodes
    ]
    drawn += [_gap(bar, scale, labels) for bar in gaps]
    return _lane("graph", el("span.wb-strong", labels("graph")), drawn, "wb-time-lane-graph")


def _gap(bar: Bar, scale: _Scale, labels: Labels) -> Markup:
    """A folded gap: hatched, of fixed width, its length written."""
    told = f"{labels(bar.kind)} · {milliseconds(bar.duration_ms)}"
    cls = "wb-bar-gap wb-person" if bar.kind == "waiting" else "wb-bar-gap wb-idle"
    place = scale.place(bar.start_ms, bar.end_ms)
    return el("span", milliseconds(bar.duration_ms), cls=cls, style=place, title=told, role="img", aria_label=told)


def _step_lane(bar: Bar, key: str, scale: _Scale, labels: Labels, taped: bool, opened: bool) -> Markup:
    again = f" ×{bar.attempt}" if bar.attempt > 1 else ""
    told = [milliseconds(bar.duration_ms)] + ([labels("n_found", n=bar.found)] if bar.found is not None else [])
    if taped:
        told.append(labels("step_recorded"))
    elif bar.status != "success":
        told.append(labels(bar.status))
    cls = f"wb-bar-step wb-{family(bar.status)}" + (" wb-recorded" if taped else "")
    inside = [
        el("span", cls=cls, style=scale.place(bar.start_ms, bar.end_ms), title=_told(bar)),
        el("span.wb-bar-word.wb-dim", " · ".join(told), style=scale.beside(bar.start_ms, bar.end_ms)),
    ]
    sign = el("span.wb-dim", "▾" if opened else "▸", aria_hidden="true")
    name = el("span", glyph("recorded" if taped else bar.status, labels), " ", bar.step_id + again, " ", sign)
    return _lane(key, name, inside, "wb-time-lane-step", role="option", aria_selected="false", tabindex="-1")


def _sub_lane(bar: Bar, key: str, scale: _Scale) -> Markup:
    inside = [
        el("span.wb-bar-sub.wb-done", style=scale.place(bar.start_ms, bar.end_ms), title=_told(bar)),
        el(
            "span.wb-bar-word.wb-dim",
            milliseconds(bar.duration_ms),
            style=scale.beside(bar.start_ms, bar.end_ms),
        ),
    ]
    return _lane(key, el("span.wb-dim", bar.name), inside, "wb-time-lane-sub")


def _running_lane(step_id: str, seconds: float, span: float, scale: _Scale, labels: Labels) -> Markup:
    start = max(span - 1000 * seconds, 0.0)
    inside = [
        el("span.wb-bar-step.wb-run.wb-going", style=scale.place(start, span)),
        el("span.wb-bar-word.wb-dim", f"{labels('running')} · {seconds:.1f} s", style=scale.beside(start, span)),
    ]
    name = el("span", glyph("running", labels), " ", step_id)
    return _lane(f"{step_id}/now", name, inside, "wb-time-lane-step")


def _axis(found: Sequence[Bar], span: float, scale: _Scale, labels: Labels) -> Markup:
    marks = [scale.tick(at, _moment(value)) for at, value in work_ticks(found, span, 6)]
    axis = el("div.wb-time-lane.wb-axis", el("div.wb-time-lane-name"), el("div.wb-track", marks))
    empty = el("p.wb-dim", labels("nothing_run"))
    return joined([closed("div"), axis if found else empty, closed("section")])


def _moment(value: float) -> str:
    """A tick in seconds, with its unit at the beginning."""
    return "0 s" if not value else f"{value / 1000:g}"


def _inside(found: Sequence[Bar], step: Bar) -> list[Bar]:
    return [b for b in found if b.kind == "sub_step" and (b.step_id, b.attempt) == (step.step_id, step.attempt)]


def _told(bar: Bar) -> str:
    return f"{bar.step_id + ': ' if bar.step_id else ''}{bar.name} · {milliseconds(bar.duration_ms)}"
