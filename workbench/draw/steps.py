"""The plan as a list of steps with its DAG as the gutter; what the list and the graph know of a step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from workbench.draw.lanes import Edge, drawn, lanes, width
from workbench.draw.page import Markup, Picture, closed, code, el, glyph, opened, safe
from workbench.labels import Labels, milliseconds
from workbench.plans import Plan, PlanStep, last_records
from workbench.state import ExecutionRecord

_LONGEST_ERROR = 300
_OBJECTIVE = 200


@dataclass(frozen=True)
class PlanView:
    """What a picture of a plan shows.

    Attributes:
        plan: the steps.
        labels: the words.
        records: what has run, of steps that are as they were.
        proposed: ids of steps that nobody has approved.
        live: seconds since the call began, by the id of a step that runs now.
        expected: seconds that a step will probably take, by id.
        problems: what is wrong (``plans.problem`` each).
        marks: ``new`` or ``edited``, by id.
        chosen: the id of the step that is looked at.
        movable: ids of the steps that can be dragged.
    """

    plan: Plan
    labels: Labels
    records: Iterable[Any] = ()
    proposed: Collection[str] = ()
    live: Mapping[str, float] = field(default_factory=dict)
    expected: Mapping[str, float] = field(default_factory=dict)
    problems: Sequence[Mapping[str, Any]] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    chosen: str = ""
    movable: Collection[str] = ()

    @cached_property
    def last(self) -> dict[str, ExecutionRecord]:
        """The newest attempt of each step."""
        return last_records(self.records)

    @cached_property
    def cycle(self) -> set[tuple[str, str]]:
        """The edges of a cycle, as (step, what it depends on)."""
        return {edge for p in self.problems if p.get("kind") == "cycle" for edge in pairwise(p["values"]["path"])}

    @cached_property
    def faults(self) -> dict[str, int]:
        """How many problems each step has; one in a cycle has at least that one."""
        found: dict[str, int] = {}
        for one in self.problems:
            for step_id in dict.fromkeys(one["values"]["path"] if one.get("kind") == "cycle" else [one["step_id"]]):
                found[step_id] = found.get(step_id, 0) + 1
        return found

    @cached_property
    def critical(self) -> set[tuple[str, str]]:
        """The edges of the chain that took longest, or will, as (step, the one after it)."""
        if self.plan.problems():
            return set()
        measured = {step_id: record["duration_ms"] / 1000 for step_id, record in self.last.items()}
        path = self.plan.critical_path({**self.expected, **measured} or None)
        return set(pairwise(path))

    def status(self, step: PlanStep) -> str:
        """The status whose glyph the step carries."""
        if step.step_id in self.faults:
            return "invalid"
        if step.step_id in self.live:
            return "running"
        if record := self.last.get(step.step_id):
            return (
                "recorded"
                if record.get("replayed") and record["status"] in ("success", "partial")
                else record["status"]
            )
        if step.step_id in self.proposed:
            return "proposed"
        return "waiting" if step.condition == "if_insufficient" else "pending"

    def word(self, step: PlanStep) -> str:
        """The status in a word."""
        status = self.status(step)
        return self.labels("step_conditional") if status == "waiting" else self.labels(status)

    def facts(self, step: PlanStep) -> tuple[str, str]:
        """The two things that matter most of a step now, in a few words each."""
        labels, status, record = self.labels, self.status(step), self.last.get(step.step_id)
        expected = self.expected.get(step.step_id, 0.0)
        probably = labels("step_expected", span=_seconds(expected)) if expected else ""
        most = labels("step_limit", span=f"{step.budget.timeout_s:g}")
        if status == "invalid":
            only_cycle = self.faults[step.step_id] == 1 and any(step.step_id in edge for edge in self.cycle)
            told = labels("step_in_cycle") if only_cycle else labels("step_problems", n=self.faults[step.step_id])
            return told, most
        if status == "running":
            gone = _seconds(self.live[step.step_id])
            return (labels("step_running", gone=gone, span=_seconds(expected)) if expected else gone), labels("running")
        if record and record["status"] in ("success", "partial"):
            summary = record["output_summary"]
            found = labels("step_found", n=summary.get("evidence_count", 0))
            if isinstance(best := summary.get("top_score"), int | float) and summary.get("evidence_count"):
                found += labels("step_best", score=f"{best:.2f}")
            taken = milliseconds(record["duration_ms"])
            return found, f"{labels('step_recorded')} · {taken}" if status == "recorded" else taken
        if record:
            return labels(record["status"]), milliseconds(record["duration_ms"]) if record["duration_ms"] else ""
        if status == "proposed":
            return labels("proposed"), probably or most
        return labels("step_top", n=step.tool_input.get("top_k", step.budget.top_k)), probably or most

    def trouble(self, step: PlanStep) -> tuple[str, str]:
        """Why a step did not end well, and the mend."""
        record = self.last.get(step.step_id)
        if not record or record["status"] in ("success", "partial"):
            return "", ""
        why, status = record["error"] or "", record["status"]
        if status == "skipped":
            return (self.labels("step_skipped", why=why) if why else ""), ""
        return why, self.labels(f"step_mend_{status}")


def steps(view: PlanView) -> Picture:
    """The list: a row a step, dots and lines for who waits for whom, the critical path heavy, a cycle dashed red."""
    gutter = lanes(len(view.plan.steps), _edges(view))
    wide = width(gutter)
    rows = {
        step.step_id: _row(view, step, drawn(gutter[place], view.status(step) in ("proposed", "waiting"), wide), wide)
        for place, step in enumerate(view.plan.steps)
    }
    head = opened(
        "div", cls="wb-list wb-scroll wb-steps", role="listbox", aria_label=view.labels("plan"), data_scroll="steps"
    )
    return Picture(head, rows, closed("div"))


def _edges(view: PlanView) -> Iterator[Edge]:
    place = {step.step_id: row for row, step in enumerate(view.plan.steps)}
    for step in view.plan.steps:
        for source in step.dependencies():
            if source in place:
                yield Edge(place[source], place[step.step_id], edge_look(view, source, step))


def edge_look(view: PlanView, source: str, step: PlanStep) -> str:
    """How the line between two steps is drawn."""
    if (step.step_id, source) in view.cycle:
        return "cycle"
    if (source, step.step_id) in view.critical:
        return "heavy"
    return "dashed" if view.status(step) in ("proposed", "waiting") else "plain"


def _row(view: PlanView, step: PlanStep, gutter: Markup, wide: int) -> Markup:
    status, labels = view.status(step), view.labels
    first, second = view.facts(step)
    why, mend = view.trouble(step)
    mark = view.marks.get(step.step_id)
    named = el(
        "div",
        el("span", safe(step.step_id, 120), cls="wb-strong wb-id"),
        " ",
        code(step.tool),
        el("span", labels("step_conditional"), cls="wb-tag wb-idle") if step.condition != "always" else None,
        el("span", labels(f"step_{mark}"), cls=f"wb-tag wb-{'run' if mark == 'new' else 'person'}") if mark else None,
        cls="wb-name",
    )
    lines = [named, el("div", safe(step.objective, _OBJECTIVE), cls="wb-dim wb-cut")]
    if why:
        lines.append(
            el("div", safe(why, _LONGEST_ERROR), " ", mend, cls="wb-why" if status == "skipped" else "wb-why wb-bad")
        )
    bad = " wb-bad" if status == "invalid" else ""
    side = [el("div", first, cls=f"wb-small{bad}"), el("div", second, cls="wb-dim")]
    chosen = step.step_id == view.chosen
    return el(
        "div",
        gutter,
        el("span", glyph(status, labels, said=False), el("span", view.word(step), cls="wb-said"), cls="wb-sign"),
        el("div", lines, cls="wb-main"),
        el("div", side, cls="wb-side"),
        cls=f"wb-row wb-step{bad}{' wb-proposed' if status == 'proposed' else ''}",
        style=f"padding-left:{wide + 4}px",
        role="option",
        aria_selected="true" if chosen else "false",
        data_key=step.step_id,
        draggable="true" if step.step_id in view.movable else None,
    )


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 0.1 else f"{value:.2f}"
