"""What ran when, on three levels: graph, steps, inside the tools; lanes of bars on one axis of work time.

Places and widths are percentages, so the picture fits any width without being drawn again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.records.timeline import GAPS, Bar, attempts, bars, side_by_side, span_ms, work_ticks
from workbench.views.labels import Labels, milliseconds
from workbench.views.labels.sentences import took_told
from workbench.views.page import Data, Markup, Picture, button, closed, el, family, glyph, joined, opened

_LATE = 0.6
"""The share of the axis from which the words of a bar stand before it, since behind it there is no room."""
_LAST = 0.9
"""The same for the words of a tick, which are shorter."""


def timeline(
    document: Data, labels: Labels, running: Mapping[str, float] | None = None, unfolded: Collection[str] = ()
) -> Picture:
    """The timeline of a run.

    Args:
        document: of the run.
        labels: the words.
        running: steps whose calls are under way, with their seconds so far.
        unfolded: ``step_id/attempt`` of the steps whose inside is shown; ``*`` unfolds all.
    """
    running = running or {}
    found = bars(document["log"], document["records"], document["decisions"])
    scale = _Scale(max(span_ms(found), 1000 * max(running.values(), default=0.0), 1.0))
    taped = {(r["step_id"], r["attempt"]) for r in document["records"] if r.get("replayed")}
    rows = {"graph": _graph_lane(found, scale, labels)} if found else {}
    for bar, inside in attempts(found):
        key = f"{bar.step_id}/{bar.attempt}"
        opened = key in unfolded or "*" in unfolded
        rows[key] = _step_lane(bar, key, scale, labels, (bar.step_id, bar.attempt) in taped, opened)
        for number, sub in enumerate(inside if opened else ()):
            drawn = scale.bar("sub.wb-done", sub, milliseconds(sub.duration_ms))
            rows[f"{key}/{number}"] = _lane("sub", f"{key}/{number}", el("span.wb-dim", sub.name), drawn)
    for step_id, seconds in running.items():
        now = Bar("step", "", max(scale.whole - 1000 * seconds, 0.0), scale.whole, 1000 * seconds)
        drawn = scale.bar("step.wb-run.wb-going", now, f"{labels('running')} · {seconds:.1f} s")
        name = el("span", glyph("running", labels), " ", step_id)
        rows[f"{step_id}/now"] = _lane("step", f"{step_id}/now", name, drawn)
    took = took_told(document["figures"], labels) if document["log"] else ""
    return Picture(_head(took, labels, bool(unfolded)), rows, _axis(found, scale, labels))


@dataclass(frozen=True)
class _Scale:
    """Milliseconds of an axis as percentages of its ``whole``."""

    whole: float

    def at(self, moment: float, late: bool = False) -> str:
        """From the left, or what comes before it from the right."""
        share = 100 * moment / self.whole
        return f"right:{100 - share:.3f}%" if late else f"left:{share:.3f}%"

    def span(self, bar: Bar) -> str:
        """Where a bar begins, and how wide it is."""
        return f"{self.at(bar.start_ms)};width:max({100 * (bar.end_ms - bar.start_ms) / self.whole:.3f}%,2px)"

    def bar(self, look: str, bar: Bar, told: str) -> list[Markup]:
        """A bar with its words behind it, or before it where that leaves more room."""
        late = bar.end_ms > _LATE * self.whole and bar.start_ms > self.whole - bar.end_ms
        beside = self.at(bar.start_ms if late else bar.end_ms, late)
        title = _told(bar) if bar.name else None
        drawn = el(f"span.wb-bar-{look}", style=self.span(bar), title=title)
        return [drawn, el("span.wb-bar-word.wb-dim", told, style=beside)]


def _head(took: str, labels: Labels, unfolded: bool) -> Markup:
    title = el("h3.wb-title", labels("timeline"), " ", el("span.wb-dim", took))
    fold = button(labels("fold_all" if unfolded else "unfold_all"), "unfold", cls="wb-quiet")
    bar = el("div.wb-bar", title, el("span.wb-dim.wb-push", labels("timeline_axis")), fold)
    lanes = opened("div.wb-time-lanes", data_scroll="lanes", role="listbox", aria_label=labels("timeline"))
    return joined([opened("section.wb-section"), bar, lanes])


def _lane(kind: str, key: str, name: Markup, inside: Sequence[Markup], **attributes: Any) -> Markup:
    named = el("div.wb-time-lane-name.wb-cut", name)
    track = el("div.wb-track", inside)
    return el(f"div.wb-time-lane.wb-time-lane-{kind}", named, track, data_key=key, **attributes)


def _graph_lane(found: Sequence[Bar], scale: _Scale, labels: Labels) -> Markup:
    """The nodes, and the folded gaps: hatched, of fixed width, their length written."""
    nodes = side_by_side([bar for bar in found if bar.kind == "node"])
    drawn = [el("span.wb-bar-node.wb-cut", bar.name, style=scale.span(bar), title=_told(bar)) for bar in nodes]
    for bar in (bar for bar in found if bar.kind in GAPS):
        length = milliseconds(bar.duration_ms)
        told = f"{labels(bar.kind)} · {length}"
        look = f"span.wb-bar-gap.wb-{'person' if bar.kind == 'waiting' else 'idle'}"
        drawn.append(el(look, length, style=scale.span(bar), title=told, role="img", aria_label=told))
    return _lane("graph", "graph", el("span.wb-strong", labels("graph")), drawn)


def _step_lane(bar: Bar, key: str, scale: _Scale, labels: Labels, taped: bool, opened: bool) -> Markup:
    told = [milliseconds(bar.duration_ms)] + ([labels("n_found", n=bar.found)] if bar.found is not None else [])
    if taped or bar.status != "success":
        told.append(labels("step_recorded" if taped else bar.status))
    drawn = scale.bar(f"step.wb-{family(bar.status)}{'.wb-recorded' if taped else ''}", bar, " · ".join(told))
    sign = el("span.wb-dim", "▾" if opened else "▸", aria_hidden="true")
    again = f" ×{bar.attempt}" if bar.attempt > 1 else ""
    name = el("span", glyph("recorded" if taped else bar.status, labels), " ", bar.step_id + again, " ", sign)
    return _lane("step", key, name, drawn, role="option", aria_selected="false", tabindex="-1")


def _axis(found: Sequence[Bar], scale: _Scale, labels: Labels) -> Markup:
    """Ticks in seconds, with the unit at the beginning; at the end of the axis a word stands before its tick."""
    marks = []
    for at, work in work_ticks(found, scale.whole, 6):
        late = at >= _LAST * scale.whole
        word = f"{work / 1000:g}" if work else "0 s"
        marks.append(el("span.wb-tick.wb-late" if late else "span.wb-tick", word, style=scale.at(at, late)))
    axis = el("div.wb-time-lane.wb-axis", el("div.wb-time-lane-name"), el("div.wb-track", marks))
    empty = el("p.wb-dim", labels("nothing_run"))
    return joined([closed("div"), axis if found else empty, closed("section")])


def _told(bar: Bar) -> str:
    return f"{bar.step_id + ': ' if bar.step_id else ''}{bar.name} · {milliseconds(bar.duration_ms)}"
