"""What is wrong with a plan, in the words of a language, from its kind and its values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, NamedTuple

from workbench.plans import Plan, PlanStep, last_records
from workbench.state import ExecutionRecord
from workbench.views.labels import Labels, milliseconds
from workbench.views.labels.told import reason_told
from workbench.views.page import Markup, Picture, closed, code, el, glyph, opened, safe

# --- The lines between the steps of a list, as in a git log: who is joined to whom, in few lanes ---

MOST_LANES = 8
"""Lines beyond these share the last lane."""
_MID, _LOW, _FAR, _FIRST, _APART = 26, 52, 999, 9, 13
_STRENGTH = ("dashed", "plain", "heavy", "cycle")


class Edge(NamedTuple):
    """From one row to another; ``look`` is ``plain``, ``heavy``, ``dashed`` or ``cycle``."""

    source: int
    target: int
    look: str = "plain"

    @property
    def rows(self) -> tuple[int, int]:
        """Its rows, the upper one first."""
        return min(self.source, self.target), max(self.source, self.target)


@dataclass
class _Bus:
    """Edges that share a line: all that leave one row, or all that come to one."""

    owner: int
    lane: int = 0
    first: int = 0
    last: int = 0
    reach: dict[str, tuple[int, int]] = field(default_factory=dict)
    at: dict[int, list[Edge]] = field(default_factory=dict)

    def add(self, edge: Edge) -> None:
        """Take an edge in."""
        self.first, self.last = self._wider((self.first, self.last) if self.at else edge.rows, edge)
        self.reach[edge.look] = self._wider(self.reach.get(edge.look, edge.rows), edge)
        for row in edge.rows:
            self.at.setdefault(row, []).append(edge)

    def look(self, row: int) -> str:
        """Of the piece between the middle of a row and the middle of the next: all its edges meet in one row."""
        looks = (look for look, (first, last) in self.reach.items() if first <= row < last)
        return max(looks, key=_STRENGTH.index, default="")

    @staticmethod
    def _wider(known: tuple[int, int], edge: Edge) -> tuple[int, int]:
        return min(known[0], edge.rows[0]), max(known[1], edge.rows[1])


class Row(NamedTuple):
    """The gutter of one row: the lane of its dot, and the lines through it."""

    lane: int
    lines: tuple[tuple[str, str], ...]


def lanes(count: int, edges: Iterable[Edge]) -> list[Row]:
    """The gutter of each row. Two rows that feed a third share its line; so do those that one row feeds.

    >>> [row.lane for row in lanes(3, [Edge(0, 2), Edge(1, 2)])], len(lanes(1, []))
    ([0, 1, 0], 1)
    """
    buses = _buses(edges)
    starting: dict[int, list[_Bus]] = {}
    for bus in buses:
        starting.setdefault(bus.first, []).append(bus)
    active: list[_Bus] = []
    rows = []
    for row in range(count):
        lane = _lane_of(row, active)
        going = {bus.lane for bus in active if bus.last > row}
        for bus in sorted(starting.get(row, ()), key=lambda b: (b.owner != row, b.last)):
            bus.lane = lane if lane not in going else _free(going | {lane})
            going.add(bus.lane)
            active.append(bus)
        rows.append(Row(lane, tuple(line for bus in active for line in _lines(bus, row, lane))))
        active = [bus for bus in active if bus.last > row]
    return rows


def drawn(row: Row, hollow: bool, width: int) -> Markup:
    """The gutter of one row as SVG; its lines go on as far down as the row is high."""
    by_look: dict[str, str] = {}
    for look, path in row.lines:
        by_look[look] = by_look.get(look, "") + path
    paths = [el(f"path.wb-dag.wb-dag-{look}", d=by_look[look]) for look in (*_STRENGTH, "arrow") if look in by_look]
    dot = el("circle", cx=_x(row.lane), cy=_MID, r=4, cls="wb-dot wb-hollow" if hollow else "wb-dot")
    return el("svg.wb-gutter", paths, dot, width=width, aria_hidden="true")


@lru_cache(8)
def gutters(count: int, edges: tuple[Edge, ...]) -> tuple[tuple[Row, ...], int]:
    """The gutter of each row, and its width in pixels; kept, since a list is drawn many times while a run goes on."""
    rows = lanes(count, edges)
    reached = max(
        (int(piece.split()[0]) for row in rows for _, path in row.lines for piece in path.split("M")[1:]), default=0
    )
    return tuple(rows), max(reached, *(_x(row.lane) for row in rows), 0) + _FIRST


def _buses(edges: Iterable[Edge]) -> list[_Bus]:
    edges = [edge for edge in dict.fromkeys(edges) if edge.source != edge.target]
    feeds, fed = dict[int, int](), dict[int, int]()
    for edge in edges:
        feeds[edge.source] = feeds.get(edge.source, 0) + 1
        fed[edge.target] = fed.get(edge.target, 0) + 1
    made: dict[tuple[str, int, int], _Bus] = {}
    for place, edge in enumerate(edges):
        if edge.look == "cycle":
            key = ("cycle", -1, place)
        elif fed[edge.target] >= feeds[edge.source]:
            key = ("to", edge.target, 0)
        else:
            key = ("from", edge.source, 0)
        made.setdefault(key, _Bus(key[1])).add(edge)
    return list(made.values())


def _lane_of(row: int, active: Sequence[_Bus]) -> int:
    ending = [bus.lane for bus in active if bus.last == row]
    owned = [bus.lane for bus in active if bus.owner == row]
    return min(ending or owned, default=_free({bus.lane for bus in active}))


def _free(used: set[int]) -> int:
    return next((lane for lane in range(MOST_LANES) if lane not in used), MOST_LANES - 1)


def _lines(bus: _Bus, row: int, lane: int) -> Iterable[tuple[str, str]]:
    x, here, on = _x(bus.lane), _x(lane), bus.lane == lane
    above, below = bus.look(row - 1), bus.look(row)
    by_strength = sorted(bus.at.get(row, ()), key=lambda edge: _STRENGTH.index(edge.look))
    joined = {edge.rows[0] == row: edge for edge in by_strength}
    if above and (on or below):
        yield (below if not on and False in joined else above), f"M{x} 0V{_MID}"
    if below and (on or above):
        yield (above if not on and True in joined else below), f"M{x} {_MID}V{_LOW}"
    if below:
        yield below, f"M{x} {_LOW}V{_FAR}"
    for down, edge in joined.items():
        if not on:
            yield edge.look, _bend(x, here, down, edge.look == "cycle")
        if edge.look == "cycle" and edge.target == row:
            yield "arrow", _arrow(here, on, down)


def _bend(x: int, here: int, down: bool, square: bool) -> str:
    end = _LOW if down else 0
    if square:
        return f"M{x} {end}V{_MID + (8 if down else -8)}Q{x} {_MID} {x + (-8 if x > here else 8)} {_MID}H{here}"
    return f"M{x} {end}C{x} {(end + _MID) // 2} {here} {(end + _MID) // 2} {here} {_MID}"


def _arrow(here: int, on: bool, down: bool) -> str:
    if not on:
        return f"M{here + 5} {_MID}l7 -4v8z"
    return f"M{here} {_MID + 5}l-4 7h8z" if down else f"M{here} {_MID - 5}l-4 -7h8z"


def _x(lane: int) -> int:
    return _FIRST + _APART * lane


# --- The plan as a list of steps with its DAG as the gutter; what the list and the graph know of a step ---

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
        opened("div.wb-list.wb-scroll.wb-steps", role="listbox", aria_label=name, data_scroll="steps"),
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
    tags = [el(f"span.wb-tag.wb-{ink}", word) for ink, word in said.tags]
    name = el("span.wb-strong.wb-id", safe(said.step_id, 120))
    lines = [el("div.wb-name", name, " ", code(safe(said.tool, 120)), tags)]
    lines.append(el("div.wb-dim.wb-cut", safe(said.objective, _OBJECTIVE)))
    if said.why:
        lines.append(el("div", said.why, cls="wb-why" if said.status == "skipped" else "wb-why wb-bad"))
    bad = " wb-bad" if said.status == "invalid" else ""
    return el(
        "div",
        drawn(gutter, said.status in ("proposed", "waiting", "held"), wide),
        el("span.wb-sign", glyph(said.status, labels, said=False), el("span.wb-said", said.word)),
        el("div.wb-main", lines),
        el("div.wb-side", el(f"div.wb-small{bad}", said.facts[0]), el("div.wb-dim", said.facts[1])),
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


# --- What is wrong with a plan, in the words of a language, from its kind and its values ---

_MOST_NAMED = 6
_RULES = {
    "greater_than_equal": ("rule_least", "ge"),
    "greater_than": ("rule_more", "gt"),
    "less_than_equal": ("rule_most", "le"),
    "less_than": ("rule_less", "lt"),
    "string_too_short": ("rule_short", "min_length"),
    "too_short": ("rule_short", "min_length"),
    "string_too_long": ("rule_long", "max_length"),
    "too_long": ("rule_long", "max_length"),
    "literal_error": ("rule_one_of", "expected"),
    "enum": ("rule_one_of", "expected"),
}


def problem_text(problem: Mapping[str, Any], labels: Labels) -> str:
    """What is wrong and the mend; the English of the problem itself where its kind has no words here.

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
        told = labels(f"problem_{values['rule']}", **values)
        if f"problem_{values['rule']}" in ("problem_missing", "problem_extra_forbidden"):
            return f"{problem['step_id']}{labels('colon')}{told}"
        told = labels("problem_input", name=values["name"], value=values["value"], rule=_rule(values, labels))
        return f"{problem['step_id']}{labels('colon')}{told}"
    told = labels(f"problem_{kind}", **values, step=problem["step_id"])
    return english if told == f"problem {kind}".replace("_", " ") else told


def _rule(values: Mapping[str, Any], labels: Labels) -> str:
    rule = str(values["rule"])
    if rule in _RULES:
        word, limit = _RULES[rule]
        return labels(word, limit=values["limits"].get(limit, ""))
    wanted = rule.removesuffix("_type").removesuffix("_parsing")
    word = f"rule_{wanted}"
    told = labels(word)
    return labels("rule_other") if told == word.replace("_", " ") else told


def _cycle(path: list[str], labels: Labels) -> str:
    """``a → b → back``; a long one is cut in its middle."""
    named = path[:-1]
    if len(named) > _MOST_NAMED:
        named = [*named[: _MOST_NAMED - 1], labels("and_more", n=len(named) - _MOST_NAMED + 1)]
    return " → ".join([*named, labels("problem_back", first=path[0])])
