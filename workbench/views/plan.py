"""The plan as a list of steps with its DAG as the gutter, and what is wrong with a plan, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from workbench.errors import PlanError
from workbench.plans import ENDED_WELL, Plan, PlanStep, last_records
from workbench.state import Data, ExecutionRecord
from workbench.views.labels import Labels, milliseconds
from workbench.views.labels.sentences import reason_told
from workbench.views.layout import Edge, Pair, Row, gutter_drawn, gutters
from workbench.views.page import Picture, cut, draw

_LONGEST_ERROR = 300
_HOLLOW = ("proposed", "waiting", "held")
"""Statuses of steps that may never run."""


@dataclass(frozen=True)
class PlanView:
    """What a picture of a plan shows.

    Attributes:
        plan: the steps.
        labels: the words.
        records: what has run, of steps that are as they were.
        proposed: ids of steps that no one has approved.
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
    problems: Sequence[Data] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    chosen: str = ""
    movable: Collection[str] = ()
    stands: str = ""

    @cached_property
    def last(self) -> dict[str, ExecutionRecord]:
        """Return the newest attempt of each step."""
        return last_records(self.records)

    @cached_property
    def edges(self) -> list[Pair]:
        """Each dependency as (step, the one that waits for it)."""
        known = self.plan.by_id()
        return [(d, step.step_id) for step in known.values() for d in step.dependencies() if d in known]

    @cached_property
    def cycle(self) -> set[Pair]:
        """Return the edges of a cycle."""
        paths = (p["values"]["path"] for p in self.problems if p.get("kind") == "cycle")
        return {(source, waiting) for path in paths for waiting, source in pairwise(path)}

    @cached_property
    def faults(self) -> Counter[str]:
        """Return how many problems each step has; one in a cycle has at least that one."""
        results = Counter[str]()
        for problem in self.problems:
            results.update({*problem["values"]["path"]} if problem.get("kind") == "cycle" else [problem["step_id"]])
        return results

    @cached_property
    def critical(self) -> set[Pair]:
        """Return the edges of the chain that took longest, or will; of a plan that can run."""
        measured = {step_id: record["duration_ms"] / 1000 for step_id, record in self.last.items()}
        try:
            return set(pairwise(self.plan.critical_path({**self.expected, **measured})))
        except PlanError:
            return set()

    def look(self, edge: Pair) -> str:
        """Return how the line between two steps is drawn (``layout.Edge``)."""
        if edge in self.cycle:
            return "cycle"
        if edge in self.critical:
            return "heavy"
        return "dashed" if self.status(self.plan.step(edge[1])) in _HOLLOW else "plain"

    def status(self, step: PlanStep) -> str:
        """Return the status whose glyph the step carries."""
        if step.step_id in self.faults:
            return "invalid"
        if step.step_id in self.live:
            return "running"
        if record := self.last.get(step.step_id):
            return "recorded" if record.get("replayed") and record["status"] in ENDED_WELL else record["status"]
        if step.step_id in self.proposed:
            return "proposed"
        return {"if_insufficient": "waiting", "held": "held"}.get(step.condition, "pending")

    def word(self, step: PlanStep) -> str:
        """Return the status in a word."""
        status = self.status(step)
        return self.labels(f"step_{step.condition}" if status in ("waiting", "held") else status)

    def facts(self, step: PlanStep) -> tuple[str, str]:
        """Return the two things that matter most of a step now, in a few words each."""
        labels, status, record = self.labels, self.status(step), self.last.get(step.step_id)
        expected = self.expected.get(step.step_id, 0.0)
        limit = labels("step_limit", span=f"{step.budget.timeout_s:g}")
        probably = labels("step_expected", span=seconds_told(expected)) if expected else limit
        if status == "invalid":
            faults = self.faults[step.step_id]
            in_cycle = faults == 1 and any(step.step_id in edge for edge in self.cycle)
            return labels("step_in_cycle") if in_cycle else labels("step_problems", n=faults), limit
        if status == "running":
            gone = seconds_told(self.live[step.step_id])
            words = labels("step_running", gone=gone, span=seconds_told(expected)) if expected else gone
            return words, labels("running")
        if record and record["status"] in ENDED_WELL:
            summary, taken = record["output_summary"], milliseconds(record["duration_ms"])
            found = labels("step_found", n=summary.get("evidence_count", 0))
            if isinstance(best := summary.get("top_score"), int | float) and summary.get("evidence_count"):
                found += labels("step_best", score=f"{best:.2f}")
            return found, f"{labels('step_recorded')} · {taken}" if status == "recorded" else taken
        if record:
            return labels(record["status"]), milliseconds(record["duration_ms"]) if record["duration_ms"] else ""
        most = step.tool_input.get("top_k", step.budget.top_k)
        return labels("proposed") if status == "proposed" else labels("step_top", n=most), probably

    def trouble(self, step: PlanStep) -> tuple[str, str]:
        """Why a step did not end well, at which attempt, and what can be done about it where something can."""
        record = self.last.get(step.step_id)
        if not record or record["status"] in ENDED_WELL:
            return "", ""
        labels, why = self.labels, reason_told(record["error"] or "", self.labels)
        if record["status"] == "skipped":
            return (labels("step_skipped", why=why) if record["error"] else ""), ""
        most = step.budget.max_retries + 1
        tried = labels("step_attempt", n=record["attempt"], most=max(most, record["attempt"])) if most > 1 else ""
        mend = ""
        if step.step_id in self.movable:
            mend = labels("step_mend")
        elif self.stands in ("paused", "failed", "cancelled"):
            mend = labels(f"step_mend_{self.stands}")
        return why, f"{tried} {mend}".strip()


def steps(view: PlanView) -> Picture:
    """The list: a row a step, dots and lines for who waits for whom, the critical path heavy, a cycle dashed red."""
    place = {step.step_id: row for row, step in enumerate(view.plan.steps)}
    edges = tuple(Edge(place[one], place[two], view.look((one, two))) for one, two in view.edges)
    gutter, wide = gutters(len(view.plan.steps), edges)
    rows = {step.step_id: _row(view, step, row, wide) for step, row in zip(view.plan.steps, gutter, strict=True)}
    return Picture(draw("plan.steps", view.labels), rows)


def _row(view: PlanView, step: PlanStep, gutter: Row, wide: int) -> Markup:
    status, (why, mend) = view.status(step), view.trouble(step)
    return draw(
        "plan.step",
        view.labels,
        step=step,
        status=status,
        word=view.word(step),
        mark=view.marks.get(step.step_id),
        facts=view.facts(step),
        trouble=f"{cut(why, _LONGEST_ERROR)} {mend}".strip(),
        gutter=gutter_drawn(gutter, wide, hollow=status in _HOLLOW),
        wide=wide,
        chosen=step.step_id == view.chosen,
        movable=step.step_id in view.movable,
    )


def seconds_told(value: float) -> str:
    """Seconds with as many digits as tell something.

    >>> seconds_told(1.234), seconds_told(0.05)
    ('1.2', '0.05')
    """
    return f"{value:.1f}" if value >= 0.095 else f"{value:.2f}"


_MOST_NAMED = 6


def problem_text(problem: Data, labels: Labels) -> str:
    """Return what is wrong and the fix; the English of the problem itself where its kind has no words here.

    >>> from workbench.plans import Plan, PlanStep
    >>> step = PlanStep(step_id="a", objective="", tool="t", depends_on=["a"])
    >>> problem_text(Plan(steps=[step]).problems()[0], Labels("zh"))
    '循环依赖：a → a。请去掉。'
    """
    kind, values = problem.get("kind"), problem.get("values", {})
    if kind == "cycle":
        size = len(values["path"]) - 1
        word = {1: "problem_cycle_one", 2: "problem_cycle"}.get(size, "problem_cycle_many")
        return labels(word, path=_cycle(values["path"], labels))
    english = f"{problem['message']} {problem['mend']}".strip()
    if labels.language == "en" or not kind:
        return english
    if kind == "input":
        if values["rule"] in ("missing", "extra_forbidden"):
            words = labels(f"problem_{values['rule']}", **values)
        else:
            words = labels("problem_input", name=values["name"], value=values["value"], rule=_rule(values, labels))
        return f"{problem['step_id']}{labels('colon')}{words}"
    return labels.known(f"problem_{kind}", english, **values, step=problem["step_id"])


def _rule(values: Data, labels: Labels) -> str:
    rule = str(values["rule"])
    wanted = rule.removesuffix("_type").removesuffix("_parsing")
    return labels.known(f"rule_{wanted}", labels("rule_other"), **values["limits"])


def _cycle(path: list[str], labels: Labels) -> str:
    """``a → b → back``; a long one is cut in its middle."""
    named = path[:-1]
    if len(named) > _MOST_NAMED:
        named = [*named[: _MOST_NAMED - 1], labels("and_more", n=len(named) - _MOST_NAMED + 1)]
    return " → ".join([*named, labels("problem_back", first=path[0])])
