"""What an edited plan changes against the one that was shown, and how long it will take."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench.draw.page import Markup, button, code, el, glyph, safe
from workbench.labels import Labels
from workbench.plans import PlanStep

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
    title = el("h3", labels("plan_changes_against", n=changes.version), cls="wb-title wb-small")
    undo_all = button(labels("plan_discard"), "discard", cls="wb-quiet")
    return el(
        "section", el("div", title, el("span", cls="wb-push"), undo_all, cls="wb-bar"), rows, cls="wb-plan-changes"
    )


def plan_forecast(forecast: Mapping[str, Any], valid: bool, labels: Labels) -> Markup:
    """How long it will take (``fork.Forecast``), in one line; the last word of it while the plan cannot be run."""
    seconds, tokens, said = forecast["seconds"], forecast.get("tokens"), labels("plan_nothing_anew")
    if any(row["runs"] for row in forecast["steps"]):
        said = labels("plan_no_forecast")
        if basis := forecast["basis"]:
            said = labels("plan_forecast", p50=_short(seconds["p50"]), p90=_short(seconds["p90"]), n=basis)
    if tokens is not None:
        said += labels("plan_tokens", n=f"{tokens:,}") if tokens else labels("plan_no_tokens")
    return el("div", said if valid else labels("plan_forecast_later", before=said), cls="wb-dim wb-forecast")


def plan_faults(problems: Sequence[str], labels: Labels) -> Markup:
    """What is wrong with the plan as a whole."""
    lines = [el("p", glyph("invalid", labels, said=False), " ", text) for text in problems]
    return el("div", lines, cls="wb-alert", role="alert") if lines else Markup()


def _row(kind: str, ink: str, told: Any, labels: Labels) -> Markup:
    return el("div", el("span", labels(kind), cls=f"wb-ink wb-{ink}"), el("div", told), cls="wb-change-row")


def _field(change: Change, labels: Labels) -> Markup:
    old, new = (_brief(value, labels) for value in (change.old, change.new))
    return el("div", f"{change.field}{labels('colon')}", el("span", old, cls="wb-struck"), " → ", new, cls="wb-small")


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
