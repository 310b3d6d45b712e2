"""The plan as a list of steps with its DAG as the gutter; what the list and the graph know of a step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, NamedTuple

from workbench.draw.lanes import Edge, Row, drawn, gutters
from workbench.draw.page import Markup, Picture, closed, code, el, glyph, opened, safe
from workbench.labels import Labels, milliseconds
from workbench.labels.told import reason_told
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
        stands: the status of the run, by which it follows what can be done about a step that failed.
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
    stands: str = ""

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
    def critical(self) -> frozenset[tuple[str, str]]:
        """The edges of the chain that took longest, or will, as (step, the one after it)."""
        measured = {step_id: record["duration_ms"] / 1000 for step_id, record in self.last.items()}
        seconds = {**self.expected, **measured}
        return _critical(
            tuple(
                (s.step_id, tuple(s.dependencies()), seconds.get(s.step_id, 0.0) if seconds else s.budget.timeout_s)
                for s in self.plan.steps
            )
        )

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
        return {"if_insufficient": "waiting", "held": "held"}.get(step.condition, "pending")

    def word(self, step: PlanStep) -> str:
        """The status in a word."""
        status = self.status(step)
        return self.labels(f"step_{step.condition}") if status in ("waiting", "held") else self.labels(status)

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
        """Why a step did not end well, at which attempt, and what can be done about it where something can."""
        record = self.last.get(step.step_id)
        if not record or record["status"] in ("success", "partial"):
            return "", ""
        why, status = record["error"] or "", record["status"]
        if status == "skipped":
            return (self.labels("step_skipped", why=reason_told(why, self.labels)) if why else ""), ""
        labels, most = self.labels, step.budget.max_retries + 1
        tried = labels("step_attempt", n=record["attempt"], most=max(most, record["attempt"])) if most > 1 else ""
        can = "step_mend" if step.step_id in self.movable else f"step_mend_{self.stands}"
        mend = (
            labels(can) if can in ("step_mend", "step_mend_paused", "step_mend_failed", "step_mend_cancelled") else ""
        )
        return reason_told(why, labels), f"{tried} {mend}".strip()


@lru_cache(8)
def _critical(steps: tuple[tuple[str, tuple[str, ...], float], ...]) -> frozenset[tuple[str, str]]:
    """The edges of the longest chain of (step, what it waits for, seconds); none where there is a cycle."""
    before, cost = {i: d for i, d, _ in steps}, {i: seconds for i, _, seconds in steps}
    best: dict[str, float] = {}
    chain: dict[str, str] = {}
    try:
        order = list(TopologicalSorter(before).static_order())
    except CycleError:
        return frozenset()
    for step_id in order:
        source = max(before.get(step_id, ()), key=best.__getitem__, default="")
        chain[step_id], best[step_id] = source, best.get(source, 0.0) + cost.get(step_id, 0.0)
    last, found = max(best, key=best.__getitem__, default=""), set()
    while source := chain.get(last, ""):
        found.add((source, last))
        last = source
    return frozenset(found)


def steps(view: PlanView) -> Picture:
    """The list: a row a step, dots and lines for who waits for whom, the critical path heavy, a cycle dashed red."""
    gutter, wide = gutters(len(view.plan.steps), tuple(_edges(view)))
    rows = {step.step_id: _row(view, step, row, wide) for step, row in zip(view.plan.steps, gutter, strict=True)}
    name = view.labels("plan")
    return Picture(
        opened("div", cls="wb-list wb-scroll wb-steps", role="listbox", aria_label=name, data_scroll="steps"),
        rows,
        closed("div"),
    )


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
    return "dashed" if view.status(step) in ("proposed", "waiting", "held") else "plain"


class _Said(NamedTuple):
    """All that a row shows."""

    step_id: str
    tool: str
    objective: str
    tags: tuple[tuple[str, str], ...]
    why: str
    status: str
    word: str
    facts: tuple[str, str]
    chosen: bool
    movable: bool


def _row(view: PlanView, step: PlanStep, gutter: Row, wide: int) -> Markup:
    status, labels, mark = view.status(step), view.labels, view.marks.get(step.step_id)
    tags = [("idle", labels(f"step_{step.condition}"))] if step.condition != "always" else []
    tags += [("run" if mark == "new" else "person", labels(f"step_{mark}"))] if mark else []
    why, mend = view.trouble(step)
    said = _Said(
        step.step_id,
        step.tool,
        step.objective,
        tuple(tags),
        f"{cut(why, _LONGEST_ERROR)} {mend}".strip(),
        status,
        view.word(step),
        view.facts(step),
        step.step_id == view.chosen,
        step.step_id in view.movable,
    )
    return _markup(said, gutter, wide, labels)


@lru_cache(1024)
def _markup(said: _Said, gutter: Row, wide: int, labels: Labels) -> Markup:
    """The row; kept, since while a run goes on most rows are as they were."""
    tags = [el("span", word, cls=f"wb-tag wb-{ink}") for ink, word in said.tags]
    name = el("span", safe(said.step_id, 120), cls="wb-strong wb-id")
    lines = [el("div", name, " ", code(safe(said.tool, 120)), tags, cls="wb-name")]
    lines.append(el("div", safe(said.objective, _OBJECTIVE), cls="wb-dim wb-cut"))
    if said.why:
        lines.append(el("div", said.why, cls="wb-why" if said.status == "skipped" else "wb-why wb-bad"))
    bad = " wb-bad" if said.status == "invalid" else ""
    return el(
        "div",
        drawn(gutter, said.status in ("proposed", "waiting", "held"), wide),
        el("span", glyph(said.status, labels, said=False), el("span", said.word, cls="wb-said"), cls="wb-sign"),
        el("div", lines, cls="wb-main"),
        el(
            "div", el("div", said.facts[0], cls=f"wb-small{bad}"), el("div", said.facts[1], cls="wb-dim"), cls="wb-side"
        ),
        cls=f"wb-row wb-step{bad}{' wb-proposed' if said.status == 'proposed' else ''}",
        style=f"padding-left:{wide + 4}px",
        role="option",
        aria_selected="true" if said.chosen else "false",
        data_key=said.step_id,
        draggable="true" if said.movable else None,
    )


def cut(text: str, most: int) -> str:
    """A text that is not longer than this.

    >>> cut("abcdef", 4)
    'abcd…'
    """
    return text if len(text) <= most else f"{text[:most]}…"


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 0.1 else f"{value:.2f}"
