"""What an edited plan changes against the one that was shown, and how long it will take."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

from workbench.plans import PlanStep
from workbench.views.labels import Labels, milliseconds
from workbench.views.page import Markup, Picture, button, code, el, glyph, joined, opened, safe
from workbench.views.plan import PlanView, edge_look

_WIDE, _HIGH, _ACROSS, _DOWN, _EDGE, _BACK = 156, 46, 216, 62, 12, 36


class Place(NamedTuple):
    """Where a box stands: its left upper corner, in pixels."""

    x: int
    y: int


def plan_graph(view: PlanView) -> Picture:
    """The graph: edges, boxes that can be chosen, and what the lines mean."""
    places = layout(view)
    wide = max((place.x for place in places.values()), default=0) + _WIDE + _EDGE
    high = max((place.y for place in places.values()), default=0) + _HIGH + _EDGE
    high += _BACK if view.cycle else 0
    steps = {step.step_id: step for step in view.plan.steps}
    edges = el("svg.wb-edges", _edges(view, steps, places), width=wide, height=high, aria_hidden="true")
    head = joined(
        [
            opened("div.wb-scroll.wb-plan-graph", data_scroll="graph"),
            opened("div", role="listbox", aria_label=view.labels("plan"), style=f"width:{wide}px;height:{high}px"),
            edges,
        ]
    )
    rows = {step_id: _box(view, step, places[step_id]) for step_id, step in steps.items()}
    return Picture(head, rows, joined([Markup("</div></div>"), _legend(view)]))


def layout(view: PlanView) -> dict[str, Place]:
    """A layer a depth, dependencies left; within one, near the middle of what is waited for. Cycles are cut."""
    steps = {step.step_id: step for step in view.plan.steps}
    before = {
        step_id: [d for d in step.dependencies() if d in steps and d != step_id and (step_id, d) not in view.cycle]
        for step_id, step in steps.items()
    }
    depth: dict[str, int] = {}
    for step_id in _in_order(before):
        depth[step_id] = max((depth[d] + 1 for d in before[step_id] if d in depth), default=0)
    height: dict[str, float] = {}
    for layer in range(max(depth.values(), default=-1) + 1):
        here = [step_id for step_id in steps if depth[step_id] == layer]

        def middle(step_id: str) -> float:
            above = [height[d] for d in before[step_id] if d in height]
            return sum(above) / len(above) if above else 0.0

        for place, step_id in enumerate(sorted(here, key=middle)):
            height[step_id] = place - (len(here) - 1) / 2
    top = min(height.values(), default=0.0)
    return {i: Place(_EDGE + _ACROSS * depth[i], round(_EDGE + _DOWN * (height[i] - top))) for i in steps}


def _in_order(before: Mapping[str, list[str]]) -> list[str]:
    """Dependencies first. What is still in a circle, since only one circle is told at a time, comes as it stands."""
    sorter = TopologicalSorter[str]()
    reached: set[str] = set()
    for step_id, needed in before.items():  # an edge to what comes later in the list may close a circle
        reached.add(step_id)
        sorter.add(step_id, *(d for d in needed if d in reached or not _leads(before, d, step_id)))
    return list(sorter.static_order())


def _leads(before: Mapping[str, list[str]], start: str, end: str) -> bool:
    """Whether ``start`` waits for ``end``, however far back."""
    seen, waiting = {start}, [start]
    while waiting:
        for one in before[waiting.pop()]:
            if one == end:
                return True
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return False


def _edges(view: PlanView, steps: Mapping[str, PlanStep], places: Mapping[str, Place]) -> list[Markup]:
    drawn = []
    for step in steps.values():
        for source in step.dependencies():
            if source in places:
                look = edge_look(view, source, step)
                path = _path(places[source], places[step.step_id])
                drawn.append((look, el(f"path.wb-dag.wb-dag-{look}", d=path)))
    return [path for _, path in sorted(drawn, key=lambda one: one[0] in ("heavy", "cycle"))]


def _path(start: Place, end: Place) -> str:
    x0, y0, x1, y1 = start.x + _WIDE, start.y + _HIGH // 2, end.x, end.y + _HIGH // 2
    if x1 > x0:
        bend = (x0 + x1) // 2
        return f"M{x0} {y0}C{bend} {y0} {bend} {y1} {x1} {y1}"
    x0, x1, low = start.x + _WIDE // 2, end.x + _WIDE // 2, max(start.y, end.y) + _HIGH
    return f"M{x0} {start.y + _HIGH}C{x0} {low + _BACK} {x1} {low + _BACK} {x1} {end.y + _HIGH}"


def _box(view: PlanView, step: PlanStep, place: Place) -> Markup:
    status = view.status(step)
    looks = {"recorded": "wb-dashed-box", "proposed": "wb-dashed-box wb-proposed", "invalid": "wb-bad"}
    return el(
        "div",
        el("div.wb-cut.wb-strong", safe(step.step_id, 120)),
        el(
            "div.wb-dim.wb-box-line",
            glyph(status, view.labels, said=False),
            el("span.wb-said", view.word(step)),
            el("span.wb-cut", _fact(view, step)),
        ),
        cls=f"wb-box {looks.get(status, '')} wb-{_tint(status)}".replace("  ", " "),
        style=f"left:{place.x}px;top:{place.y}px",
        title=f"{step.step_id}\n{step.tool}\n{step.objective[:300]}",
        role="option",
        aria_selected="true" if step.step_id == view.chosen else "false",
        data_key=step.step_id,
    )


def _fact(view: PlanView, step: PlanStep) -> str:
    record = view.last.get(step.step_id)
    if view.status(step) not in ("success", "partial", "recorded") or not record:
        return view.facts(step)[0]
    found = view.labels("step_found", n=record["output_summary"].get("evidence_count", 0))
    return f"{found} · {milliseconds(record['duration_ms'])}"


def _tint(status: str) -> str:
    families = {"success": "done", "partial": "done", "recorded": "done", "proposed": "person", "running": "run"}
    return families.get(status, "fail" if status in ("failed", "timeout", "invalid") else "idle")


def _legend(view: PlanView) -> Markup:
    labels, shown = view.labels, {view.status(step) for step in view.plan.steps}
    signs = [
        el("span", glyph(status, labels, said=False), " ", labels(word))
        for status, word in (("success", "graph_ran"), ("recorded", "step_recorded"), ("proposed", "proposed"))
        if status in shown
    ]
    lines = [("heavy", "critical")] if view.critical else []
    lines += [("cycle", "graph_cycle")] if view.cycle else []
    signs += [
        el(
            "span",
            el("svg", el(f"path.wb-dag.wb-dag-{look}", d="M0 7H22"), width=22, height=14),
            " ",
            labels(word),
        )
        for look, word in lines
    ]
    return el("div.wb-dim.wb-signs", signs) if signs else Markup()


# --- What an edited plan changes against the one that was shown, and how long it will take ---

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
    rows = [
        _row("changed", "person", [code(safe(step_id, 120)), [_field(one, labels) for one in fields]], labels)
        for step_id, fields in changes.changed.items()
    ]
    rows += [
        _row("added", "run", [code(safe(step.step_id, 120)), " ", step.tool, _condition(step, labels)], labels)
        for step in changes.added
    ]
    rows += [
        _row("removed", "fail", [code(safe(step.step_id, 120)), " ", step.tool], labels) for step in changes.removed
    ]
    rows += [_row("changed", "person", [labels("plan_order")], labels)] if changes.moved else []
    title = el("h3.wb-title.wb-small", labels("plan_changes_against", n=changes.version))
    undo_all = button(labels("plan_discard"), "discard", cls="wb-quiet")
    return el("section.wb-plan-changes", el("div.wb-bar", title, el("span.wb-push"), undo_all), rows)


def plan_forecast(forecast: Mapping[str, Any], valid: bool, labels: Labels) -> Markup:
    """How long it will take (``fork.Forecast``), in one line; the last word of it while the plan cannot be run."""
    seconds, tokens, said = forecast["seconds"], forecast.get("tokens"), labels("plan_nothing_anew")
    if any(row["runs"] for row in forecast["steps"]):
        said = labels("plan_no_forecast")
        if basis := forecast["basis"]:
            said = labels("plan_forecast", p50=_short(seconds["p50"]), p90=_short(seconds["p90"]), n=basis)
    if tokens is not None:
        said += labels("plan_tokens", n=f"{tokens:,}") if tokens else labels("plan_no_tokens")
    return el("div.wb-dim.wb-forecast", said if valid else labels("plan_forecast_later", before=said))


def plan_faults(problems: Sequence[str], labels: Labels) -> Markup:
    """What is wrong with the plan as a whole."""
    lines = [el("p", glyph("invalid", labels, said=False), " ", text) for text in problems]
    return el("div.wb-alert", lines, role="alert") if lines else Markup()


def _row(kind: str, ink: str, told: Any, labels: Labels) -> Markup:
    return el("div.wb-change-row", el(f"span.wb-ink.wb-{ink}", labels(kind)), el("div", told))


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


def _short(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds >= 0.095 else f"{seconds:.2f}"
