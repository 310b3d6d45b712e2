"""The plan as a list of steps with its DAG in the gutter, and the problems of a plan in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from workbench.errors import PlanError
from workbench.plans import ENDED_WELL, SIGNS, Plan, PlanStep, format_condition, last_records
from workbench.records import proposals
from workbench.state import Data, ExecutionRecord, Json
from workbench.text import visible
from workbench.views.drawing import short
from workbench.views.labels import Labels
from workbench.views.layout import Edge, Pair, gutter_svg, gutters
from workbench.views.markup import Picture, cut, draw, step_name

_HOLLOW = ("proposed", "waiting", "held")
"""Statuses of steps that may never run."""
_LINES = {"heavy": "━", "cycle": "╌", "dashed": "┄"}


@dataclass(frozen=True)
class PlanView:
    """A plan and its state, for a picture.

    Attributes:
        plan: the steps.
        labels: the words.
        titles: of the steps, by id (``step_titles``).
        records: the records of the steps that did not change since they ran.
        proposed: ids of the steps that await approval.
        live: seconds since the call began, for each running step.
        expected: expected seconds of a step, by id.
        problems: the problems of the plan (``plans.problem`` each).
        marks: ``new`` or ``edited``, by id.
        chosen: the id of the chosen step.
    """

    plan: Plan
    labels: Labels
    titles: Mapping[str, str]
    records: Iterable[Any] = ()
    proposed: Collection[str] = ()
    live: Mapping[str, float] = field(default_factory=dict)
    expected: Mapping[str, float] = field(default_factory=dict)
    problems: Sequence[Data] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    chosen: str = ""

    @cached_property
    def last(self) -> dict[str, ExecutionRecord]:
        """Return the newest attempt of each step."""
        return last_records(self.records)

    @cached_property
    def edges(self) -> list[Pair]:
        """Return each dependency as (step, dependent step)."""
        steps = self.plan.by_id()
        return [
            (source, step.step_id)
            for step in steps.values()
            for source in step.dependencies()
            if source in steps
        ]

    @cached_property
    def cycle(self) -> set[Pair]:
        """Return the edges of a cycle."""
        paths = (p["values"]["path"] for p in self.problems if p.get("kind") == "cycle")
        return {(source, waiting) for path in paths for waiting, source in pairwise(path)}

    @cached_property
    def faults(self) -> Counter[str]:
        """Return how many problems each step has of its own; a cycle is one problem of several steps."""
        results = Counter[str]()
        for problem in self.problems:
            cycle = problem["values"]["path"] if problem.get("kind") == "cycle" else ()
            results.update(dict.fromkeys(cycle, 0) if cycle else [problem["step_id"]])
        return results

    @cached_property
    def critical(self) -> set[Pair]:
        """Return the edges of the chain that took longest, or will; of a plan that can run."""
        measured = {
            step_id: record["duration_ms"] / 1000 for step_id, record in self.last.items()
        }
        seconds = {**self.expected, **measured}
        try:
            return set(pairwise(self.plan.critical_path(seconds))) if seconds else set()
        except PlanError:
            return set()

    def look(self, edge: Pair) -> str:
        """Return how the line between two steps is drawn (``layout.Edge``)."""
        if edge in self.cycle:
            return "cycle"
        if edge in self.critical:
            return "heavy"
        return "dashed" if self.status(self.plan.step(edge[1])) in _HOLLOW else "plain"

    def legend(self) -> list[tuple[str, str, str]]:
        """Return the lines that are drawn, and what each means."""
        looks = {*map(self.look, self.edges)}
        return [
            (sign, "fail" if look == "cycle" else "text", self.labels(f"line_{look}"))
            for look, sign in _LINES.items()
            if look in looks
        ]

    def status(self, step: PlanStep) -> str:
        """Return the status whose glyph the step carries."""
        if step.step_id in self.faults:
            return "invalid"
        if step.step_id in self.live:
            return "running"
        if record := self.last.get(step.step_id):
            if record.get("replayed") and record["status"] in ENDED_WELL:
                return "recorded"
            return record["status"]
        if step.step_id in self.proposed:
            return "proposed"
        return {"if_insufficient": "waiting", "held": "held"}.get(step.condition, "pending")

    def word(self, step: PlanStep) -> str:
        """Return the status in a word."""
        status = self.status(step)
        return self.labels(f"step_{step.condition}" if status in ("waiting", "held") else status)

    def facts(self, step: PlanStep) -> tuple[str, ...]:
        """Return the two most important facts of a step in its state, in a few words each."""
        drawn = (
            draw(f"plan.{name}", self.labels, view=self, step=step) for name in ("result", "span")
        )
        return tuple(each.striptags() for each in drawn)


def steps(view: PlanView) -> Picture:
    """Return the list: one row per step, with dots and lines for its dependencies."""
    index = {step.step_id: row for row, step in enumerate(view.plan.steps)}
    edges = [
        Edge(index[source], index[target], view.look((source, target)))
        for source, target in view.edges
    ]
    gutter, wide = gutters(len(view.plan.steps), edges)
    rows = {}
    for step, lines in zip(view.plan.steps, gutter, strict=True):
        rows[step.step_id] = draw(
            "plan.step",
            view.labels,
            view=view,
            step=step,
            n=index[step.step_id] + 1,
            title=view.titles[step.step_id],
            gutter=gutter_svg(lines, wide, hollow=view.status(step) in _HOLLOW),
            wide=wide,
        )
    return Picture(draw("plan.steps", view.labels, arrows=edges, legend=view.legend()), rows)


def step_titles(*plans: Plan, asked: Mapping[str, str] = {}) -> dict[str, str]:
    """Return the title of each step, by id; each differs, and the last plan that has a step names it.

    Args:
        plans: the plans.
        asked: the question's own words for what is searched (``words_asked``).
    """
    titles = dict[str, str]()
    same = Counter[str]()
    for step in {step.step_id: step for plan in plans for step in plan.steps}.values():
        title = " ".join((query_text(step.tool_input, asked) or step.objective).split())
        title = short(visible(asked.get(title, title)), 100) or step_name(step.step_id)
        key = title.casefold()
        same[key] += 1
        titles[step.step_id] = f"{title} ({same[key]})" if same[key] > 1 else title
    return titles


def words_asked(document: Data) -> dict[str, str]:
    """Return the words of a question for each name that it writes otherwise, and for itself with these names behind it.

    Its conditions have the words that ``document`` gives them (``conditions``).

    >>> names = [{"name": "The Teahouse", "surface": "茶馆"}]
    >>> words_asked({"route_decision": {"question": {"text": "茶馆哪一年出版？", "names": names}}})
    {'The Teahouse': '茶馆', '茶馆哪一年出版？ The Teahouse': '茶馆哪一年出版？'}
    """
    question = (document.get("route_decision") or {}).get("question")
    if not question:
        return {}
    text = question["text"]
    words = {name["name"]: name["surface"] for name in question["names"]}
    return {
        **words,
        **document.get("conditions", {}),
        " ".join([text, *(name for name in words if name not in text)]): text,
    }


def needs_in_words(document: Data) -> list[Data]:
    """Return the needs of a run (``proposals.ledger``), with names as the question writes them."""
    needs = proposals.ledger(document)
    for name, words in words_asked(document).items():
        needs = [
            {**need, "need": need["need"].replace(name, words)}
            if need["kind"] in ("name", "field")
            else need
            for need in needs
        ]
    return needs


def document_titles(document: Data) -> dict[str, str]:
    """Return the titles of the steps of a run, by id."""
    return step_titles(Plan.load(document["plan"] or {}), asked=words_asked(document))


def quoted(titles: Mapping[str, str]) -> dict[str, str]:
    """Return the beginnings of titles in quotation marks."""
    return {step_id: f"“{short(title, 40)}”" for step_id, title in titles.items()}


def titled_diff(before: Plan, after: Plan, asked: Mapping[str, str] = {}) -> Json:
    """Return the changes from one plan to another (``Plan.diff``), with the ``titles`` of their steps."""
    return {**before.diff(after), "titles": quoted(step_titles(after, before, asked=asked))}


def query_text(tool_input: Data, words: Mapping[str, str] = {}) -> str:
    """Return what a step asks: its query and its conditions; empty where it takes them from another step.

    ``words`` has other words for them.

    >>> query_text({"query": "heist", "conditions": [{"field": "year", "op": "gt", "value": "2005"}]})
    'heist · year > 2005'
    """
    query = tool_input.get("query")
    conditions = tool_input.get("conditions")
    texts = [query if isinstance(query, str) else ""]
    texts += map(item_text, conditions if isinstance(conditions, list) else ())
    return " · ".join(words.get(text, text) for text in texts if text)


def item_text(value: Any) -> str:
    """Return an item of a list as text; a condition in one line."""
    if isinstance(value, Mapping) and value.get("op") in SIGNS.values():
        return format_condition({"field": "", **value})
    return cut(value)


def problem_text(problem: Data, labels: Labels, titles: Mapping[str, str] = {}) -> str:
    """Return the problem and its fix; in English where its kind has no Chinese words.

    Steps have their ``titles``, by id.

    >>> from workbench.plans import Plan, PlanStep
    >>> step = PlanStep(step_id="a", objective="", tool="t", depends_on=["a"])
    >>> problem_text(Plan(steps=[step]).problems()[0], Labels("zh"))
    '步骤不能等待它自己。'
    """
    kind = problem.get("kind")
    values = problem.get("values", {})
    if kind == "cycle":
        return labels("problem_cycle" if values["path"][2:] else "problem_self")
    english = step_name(f"{problem['message']} {problem['fix']}".strip(), titles)
    if labels.language == "en" or not kind:
        return english
    if kind != "input":
        return step_name(
            labels.get(f"problem_{kind}", english, **values, step=problem["step_id"]), titles
        )
    if values["rule"] in ("missing", "extra_forbidden"):
        words = labels(f"problem_{values['rule']}", **values)
    else:
        rule = str(values["rule"]).removesuffix("_type").removesuffix("_parsing")
        expected = labels.get(f"rule_{rule}", labels("rule_other"), **values["limits"])
        words = labels("problem_input", name=values["name"], value=values["value"], rule=expected)
    return step_name(f"{problem['step_id']}{labels('colon')}{words}", titles)
