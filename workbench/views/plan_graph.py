"""The plan as a graph in SVG, and what an edited plan changes against the one that was shown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench.plans import ENDED_WELL, PlanStep
from workbench.views.labels import Labels, milliseconds
from workbench.views.layout import layered
from workbench.views.page import Markup, Picture, button, closed, code, el, family, glyph, joined, opened, safe
from workbench.views.plan import PlanView, seconds_told

_WIDE, _HIGH, _ACROSS, _DOWN, _EDGE, _BACK = 156, 46, 216, 62, 12, 36
CHANGE_INKS = {"changed": "person", "added": "run", "removed": "fail"}
_LOOKS = {"recorded": ".wb-dashed-box", "proposed": ".wb-dashed-box.wb-proposed", "invalid": ".wb-bad"}


Place = tuple[int, int]
"""Where a box stands: its left upper corner, in pixels."""


def plan_graph(view: PlanView) -> Picture:
    """The graph: edges, boxes that can be chosen, and what the lines mean."""
    steps = view.plan.by_id()
    found = layered(steps, view.edges).places
    top = min((row for _, row in found.values()), default=0.0)
    places = {i: (_EDGE + _ACROSS * x, round(_EDGE + _DOWN * (row - top))) for i, (x, row) in found.items()}
    wide = max((x for x, _ in places.values()), default=0) + _WIDE + _EDGE
    high = max((y for _, y in places.values()), default=0) + _HIGH + _EDGE
    high += _BACK if view.cycle else 0
    looks = [(view.look(edge), _path(*(places[end] for end in edge))) for edge in view.edges]
    looks.sort(key=lambda one: one[0] in ("heavy", "cycle"))
    lines = [el(f"path.wb-dag.wb-dag-{look}", d=path) for look, path in looks]
    head = joined(
        [
            opened("div.wb-scroll.wb-plan-graph", data_scroll="graph"),
            opened("div", role="listbox", aria_label=view.labels("plan"), style=f"width:{wide}px;height:{high}px"),
            el("svg.wb-edges", lines, width=wide, height=high, aria_hidden="true"),
        ]
    )
    rows = {step_id: _box(view, step, places[step_id]) for step_id, step in steps.items()}
    return Picture(head, rows, joined([closed("div", "div"), _legend(view)]))


def _path(start: Place, end: Place) -> str:
    (x0, y0), (x1, y1) = start, end
    half = _HIGH // 2
    if x1 > x0 + _WIDE:
        bend = (x0 + _WIDE + x1) // 2
        return f"M{x0 + _WIDE} {y0 + half}C{bend} {y0 + half} {bend} {y1 + half} {x1} {y1 + half}"
    x0, x1, low = x0 + _WIDE // 2, x1 + _WIDE // 2, max(y0, y1) + _HIGH + _BACK
    return f"M{x0} {y0 + _HIGH}C{x0} {low} {x1} {low} {x1} {y1 + _HIGH}"


def _box(view: PlanView, step: PlanStep, place: Place) -> Markup:
    status, record, fact = view.status(step), view.last.get(step.step_id), view.facts(step)[0]
    if record and status in (*ENDED_WELL, "recorded"):
        found = view.labels("step_found", n=record["output_summary"].get("evidence_count", 0))
        fact = f"{found} · {milliseconds(record['duration_ms'])}"
    sign = glyph(status, view.labels, said=False)
    return el(
        f"div.wb-box{_LOOKS.get(status, '')}.wb-{family(status)}",
        el("div.wb-cut.wb-strong", safe(step.step_id, 120)),
        el("div.wb-dim.wb-box-line", sign, el("span.wb-said", view.word(step)), el("span.wb-cut", fact)),
        style=f"left:{place[0]}px;top:{place[1]}px",
        title=f"{step.step_id}\n{step.tool}\n{step.objective[:300]}",
        role="option",
        aria_selected=step.step_id == view.chosen,
        data_key=step.step_id,
    )


def _legend(view: PlanView) -> Markup:
    labels, shown = view.labels, {view.status(step) for step in view.plan.steps}
    told = (("success", "graph_ran"), ("recorded", "step_recorded"), ("proposed", "proposed"))
    signs = [(glyph(status, labels, said=False), word) for status, word in told if status in shown]
    for look, word, there in (("heavy", "critical", view.critical), ("cycle", "graph_cycle", view.cycle)):
        line = el("svg", el(f"path.wb-dag.wb-dag-{look}", d="M0 7H22"), width=22, height=14)
        signs += [(line, word)] if there else []
    named = [el("span", sign, " ", labels(word)) for sign, word in signs]
    return el("div.wb-dim.wb-signs", named) if named else Markup()


# what an edit changes

_BRIEF = 120


class Change(NamedTuple):
    """One field of a step, before and after."""

    field: str
    old: Any
    new: Any


@dataclass(frozen=True)
class Changes:
    """What is different: steps, fields of steps by id, whether the order is another."""

    version: int = 1
    added: Sequence[PlanStep] = ()
    removed: Sequence[PlanStep] = ()
    changed: Mapping[str, Sequence[Change]] = field(default_factory=dict)
    moved: bool = False

    @property
    def count(self) -> int:
        """How many edits that is."""
        return len(self.added) + len(self.removed) + sum(map(len, self.changed.values())) + self.moved


def plan_changes(changes: Changes, labels: Labels) -> Markup:
    """A line a change; nothing where there is none."""
    if not changes.count:
        return Markup()
    told: list[tuple[str, str, Any]] = [
        ("changed", step_id, [_field(one, labels) for one in fields]) for step_id, fields in changes.changed.items()
    ]
    told += [("added", step.step_id, [" ", step.tool, _condition(step, labels)]) for step in changes.added]
    told += [("removed", step.step_id, [" ", step.tool]) for step in changes.removed]
    rows = [_row(kind, [code(safe(step_id, 120)), more], labels) for kind, step_id, more in told]
    rows += [_row("changed", labels("plan_order"), labels)] if changes.moved else []
    title = el("h3.wb-title.wb-small", labels("plan_changes_against", n=changes.version))
    undo_all = button(labels("plan_discard"), "discard", cls="wb-quiet")
    return el("section.wb-plan-changes", el("div.wb-bar", title, el("span.wb-push"), undo_all), rows)


def plan_forecast(forecast: Mapping[str, Any], valid: bool, labels: Labels) -> Markup:
    """How long it will take (``fork.Forecast``), in one line; the last word of it while the plan cannot be run."""
    seconds, tokens, said = forecast["seconds"], forecast.get("tokens"), labels("plan_nothing_anew")
    if any(row["runs"] for row in forecast["steps"]):
        said = labels("plan_no_forecast")
        if basis := forecast["basis"]:
            said = labels("plan_forecast", p50=seconds_told(seconds["p50"]), p90=seconds_told(seconds["p90"]), n=basis)
    if tokens is not None:
        said += labels("plan_tokens", n=f"{tokens:,}") if tokens else labels("plan_no_tokens")
    return el("div.wb-dim.wb-forecast", said if valid else labels("plan_forecast_later", before=said))


def plan_faults(problems: Sequence[str], labels: Labels) -> Markup:
    """What is wrong with the plan as a whole."""
    lines = [el("p", glyph("invalid", labels, said=False), " ", text) for text in problems]
    return el("div.wb-alert", lines, role="alert") if lines else Markup()


def _row(kind: str, told: Any, labels: Labels) -> Markup:
    return el("div.wb-change-row", el(f"span.wb-ink.wb-{CHANGE_INKS[kind]}", labels(kind)), el("div", told))


def _field(change: Change, labels: Labels) -> Markup:
    old, new = (_brief(value, labels) for value in (change.old, change.new))
    return el("div.wb-small", f"{change.field}{labels('colon')}", el("span.wb-struck", old), " → ", new)


def _condition(step: PlanStep, labels: Labels) -> str:
    return labels("comma") + labels(f"step_{step.condition}") if step.condition != "always" else ""


def _brief(value: Any, labels: Labels) -> Markup:
    if value is None or value == [] or value == "":
        return safe(labels("plan_nothing"))
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return safe(labels("comma").join(value), _BRIEF)
    return safe(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _BRIEF)
