"""The plan as a DAG: layers by dependency, a box a step, the critical path heavy; 200 steps are small boxes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple, TypedDict

from workbench.plans import ENDED_WELL, Plan, last_records
from workbench.state import ExecutionRecord
from workbench.views.figures.paper import (
    COLOURS,
    DIM,
    INK,
    STRONG,
    Point,
    box,
    boxes,
    curve,
    edges,
    hidden,
    hover,
    inks,
    paper,
    points,
    safe,
    short,
    statuses,
    stroke,
    swatch,
    words,
)
from workbench.views.figures.picture import Picture
from workbench.views.labels import SIGNS, Labels, labels_for, milliseconds
from workbench.views.labels.sentences import reason_told
from workbench.views.layout import layered


class Row(TypedDict):
    """A step: how it went, its layer and row in the drawing, whether it is critical, and since which version it is.

    ``added_in`` and ``changed_in`` are versions of the plan, None for the first one; ``duration_ms`` is that of the
    last attempt.
    """

    step_id: str
    objective: str
    tool: str
    condition: str
    depends_on: list[str]
    status: str
    replayed: bool
    attempts: int
    duration_ms: float | None
    evidence_count: int | None
    error: str | None
    layer: int
    row: float
    critical: bool
    added_in: int | None
    changed_in: int | None


def dag_rows(
    plan: Plan,
    records: Iterable[ExecutionRecord] = (),
    versions: Sequence[Plan] = (),
    running: Collection[str] = (),
) -> list[Row]:
    """One row a step, in the order of the plan.

    A step's layer is one more than the deepest step it waits for; the critical path is the chain that took longest, or
    may take longest by time-outs while nothing has run.

    Args:
        plan: what is drawn.
        records: what its steps did.
        versions: every version of the plan, oldest first.
        running: the steps that are at work.

    Raises:
        PlanError: the steps form a cycle.
    """
    last = last_records(records)
    seconds = {step_id: record["duration_ms"] / 1000 for step_id, record in last.items()}
    critical = plan.critical_path(seconds or None)
    places = layered(plan.by_id(), [(d, step.step_id) for step in plan.steps for d in step.dependencies()]).places
    added, changed = _since(plan, versions)
    rows = []
    for step in plan.steps:
        record: Mapping[str, Any] = last.get(step.step_id) or {}
        layer, row = places[step.step_id]
        rows.append(
            Row(
                step_id=step.step_id,
                objective=step.objective,
                tool=step.tool,
                condition=step.condition,
                depends_on=step.dependencies(),
                status="running" if step.step_id in running else record.get("status", "pending"),
                replayed=bool(record.get("replayed")),
                attempts=record.get("attempt", 0),
                duration_ms=record.get("duration_ms"),
                evidence_count=record.get("output_summary", {}).get("evidence_count"),
                error=record.get("error"),
                layer=layer,
                row=row,
                critical=step.step_id in critical and len(critical) > 1,
                added_in=added.get(step.step_id),
                changed_in=changed.get(step.step_id),
            )
        )
    return rows


def _since(plan: Plan, versions: Sequence[Plan]) -> tuple[dict[str, int], dict[str, int]]:
    """Step -> the version that added it, and the last one that changed it; what the first version had is not told."""
    added, changed = dict[str, int](), dict[str, int]()
    known = [*(one for one in versions if one.version < plan.version), plan]
    for before, after in pairwise(known):
        difference = before.diff(after)
        added |= dict.fromkeys(difference["added"], after.version)
        changed |= dict.fromkeys(difference["changed"], after.version)
    return added, changed


class Looks(NamedTuple):
    """How large steps are drawn: a cell in pixels, a box as a share of it, and how many fill a column and a line."""

    wide: int
    high: int
    box: tuple[float, float]
    deep: int
    across: int
    letters: int


_ROOMY = Looks(wide=230, high=84, box=(0.80, 0.62), deep=14, across=6, letters=24)
_SMALL = Looks(wide=118, high=30, box=(0.88, 0.74), deep=16, across=11, letters=13)
_ROOM_FOR = 40
"""Up to so many steps each has its tool and its times written; of more they stand in the label under the pointer."""


def dag(
    plan: Plan,
    records: Iterable[ExecutionRecord] = (),
    title: str = "",
    versions: Sequence[Plan] = (),
    running: Collection[str] = (),
) -> Picture:
    """The plan, left to right: a box a step, its status, what it found; the critical path is drawn heavy.

    Long plans go on in a line below, wide layers in a column beside.
    """
    labels, rows = labels_for(plan.problem_statement), dag_rows(plan, records, versions, running)
    looks = _ROOMY if len(rows) <= _ROOM_FOR else _SMALL
    place, across, down = _places(rows, looks)
    by_id, (wide, high) = {row["step_id"]: row for row in rows}, looks.box
    drawn = [
        (
            row["critical"] and by_id[source]["critical"],
            row["condition"] != "always",
            _edge(place[source], place[row["step_id"]], wide / 2),
        )
        for row in rows
        for source in row["depends_on"]
    ]
    framed = [
        (_look(row), box(x - wide / 2, x + wide / 2, y - high / 2, y + high / 2))
        for row in rows
        for x, y in (place[row["step_id"]],)
    ]
    layout = paper(
        title or plan.problem_statement,
        width=max(620, looks.wide * across + 60),
        height=128 + looks.high * max(down, 1),
        under=_under(plan, rows, versions, labels),
        shapes=[*edges(drawn, 1 if looks is _ROOMY else 0.6), *boxes(framed)],
        xaxis=hidden(-0.5, max(across, 560 / looks.wide) - 0.5),
        yaxis=hidden(-max(down, 1) + 0.5, 0.5),
    )
    said = points(((*place[row["step_id"]], _hover(row, labels)) for row in rows), size=0.5 * looks.high)
    return Picture.of(rows, [*_text(rows, place, looks, labels), said, *_legend(rows, labels)], layout)


def _places(rows: Iterable[Row], looks: Looks) -> tuple[dict[str, Point], int, float]:
    """Where each step stands, how many columns there are and how many lines, in cells; y runs downwards from 0."""
    columns: list[list[Row]] = []
    ordered = sorted(rows, key=lambda row: (row["layer"], row["row"]))
    for here in (list(layer) for _, layer in groupby(ordered, key=lambda row: row["layer"])):
        size = -(-len(here) // -(-len(here) // looks.deep))
        columns += [here[at : at + size] for at in range(0, len(here), size)]
    place, top = dict[str, Point](), 0.0
    for at in range(0, len(columns), looks.across):
        band = columns[at : at + looks.across]
        high = max(map(len, band))
        for x, column in enumerate(band):
            for number, row in enumerate(column):
                place[row["step_id"]] = (float(x), -(top + number + (high - len(column)) / 2))
        top += high + 0.4
    return place, min(max(len(columns), 1), looks.across), top - 0.4


def _under(plan: Plan, rows: Sequence[Row], versions: Sequence[Plan], labels: Labels) -> str:
    """Below the title: version, steps, how long the critical path took, what earlier versions had and this has not."""
    gone = len({step.step_id for one in versions for step in one.steps} - {row["step_id"] for row in rows})
    took = sum(row["duration_ms"] or 0 for row in rows if row["critical"])
    told = [labels("version", n=plan.version), labels("steps", n=len(rows))]
    told += [f"{labels('critical')} {milliseconds(took)}"] if took else []
    return " · ".join([*told, *([labels("count_removed", n=gone)] if gone else [])])


def _edge(start: Point, end: Point, half: float) -> str:
    (x0, y0), (x1, y1) = (start[0] + half, start[1]), (end[0] - half, end[1])
    bend = (x1 - x0) / 2 if x1 > x0 else 0.35
    return curve((x0, y0), (x0 + bend, y0), (x1 - bend, y1), (x1, y1))


def _look(row: Row) -> str:
    return "recorded" if row["replayed"] and row["status"] in ENDED_WELL else row["status"]


def _text(rows: Sequence[Row], place: Mapping[str, Point], looks: Looks, labels: Labels) -> list[Any]:
    left, right, roomy = 0.04 - looks.box[0] / 2, looks.box[0] / 2 - 0.03, looks is _ROOMY
    names, tools, facts, marks = [], [], [], []
    for row in rows:
        x, y = place[row["step_id"]]
        badge = _badge(row)
        name = safe(short(row["step_id"], looks.letters - (4 if badge else 0)))
        names.append((x + left, y + 0.17, f"<b>{name}</b>"))
        tools.append((x + left, y - 0.01, safe(short(row["tool"], 30))))
        told = safe(_facts(row, labels)) if roomy else f"{SIGNS.get(row['status'], '·')} {name}"
        facts.append((x + left, y - 0.18 if roomy else y, told))
        marks += [(x + right, y + 0.17 if roomy else y, badge)] if badge else []
    traces = [words(names, 13, INK), words(tools, 11, DIM)] if roomy else []
    traces.append(words(facts, 11 if roomy else 9.5, [inks(_look(row))[0] for row in rows]))
    return [*traces, words(marks, 11 if roomy else 9, COLOURS["running"][0], "middle left")] if marks else traces


def _facts(row: Row, labels: Labels) -> str:
    """The third line of a box: sign, what was found, how long it took; the word where it did not end well."""
    sign = SIGNS["success"] if row["status"] == "success" else labels.status(row["status"])
    took = labels("beside_recorded") if row["replayed"] else milliseconds(row["duration_ms"] or 0)
    return f"{sign} {labels('n_found', n=row['evidence_count'])} · {took}" if row["status"] in ENDED_WELL else sign


def _badge(row: Row) -> str:
    """Since which version the step is there, or is as it is: ``+ v2``, ``~ v3``."""
    if row["added_in"] is not None:
        return f"+v{row['added_in']}"
    return f"~v{row['changed_in']}" if row["changed_in"] is not None else ""


def _hover(row: Row, labels: Labels) -> str:
    facts = _facts(row, labels)
    if row["status"] == "success":
        found, took = labels("n_found", n=row["evidence_count"]), milliseconds(row["duration_ms"] or 0)
        facts = f"{labels.status('success')} · {found} · {took}"
    since = [labels(key, n=n) for key, n in (("added_in", row["added_in"]), ("changed_in", row["changed_in"])) if n]
    recorded = labels("step_recorded") if row["replayed"] else ""
    error = reason_told(row["error"], labels) if row["error"] else ""
    return hover(row["step_id"], row["objective"], row["tool"], facts, recorded, *since, error)


def _legend(rows: Sequence[Row], labels: Labels) -> list[Any]:
    entries = statuses(map(_look, rows), labels)
    if any(row["critical"] for row in rows):
        entries.append(stroke(labels("critical"), color=STRONG, width=3))
    for sign, key in (("+v", "added_in"), ("~v", "changed_in")):
        found = [int(badge[2:]) for row in rows if (badge := _badge(row)).startswith(sign)]
        if found:
            entries.append(swatch(f"{sign}{min(found)} = {labels(key, n=min(found))}"))
    return entries
