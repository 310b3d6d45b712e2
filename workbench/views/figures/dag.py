"""The plan as a DAG: layers by dependency, a box a step, the critical path heavy; 200 steps are small boxes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from workbench.plans import Plan, last_records
from workbench.state import ExecutionRecord
from workbench.views.figures.paper import (
    CLEAR,
    COLOURS,
    DIM,
    FAINT,
    FAMILY,
    GROUND,
    INK,
    STRONG,
    box,
    entry,
    hidden,
    lines,
    paper,
    points,
    safe,
    short,
    words,
    wrapped,
)
from workbench.views.labels import SIGNS, Labels, labels_for, milliseconds
from workbench.views.labels.told import reason_told

if TYPE_CHECKING:
    from workbench.views.figures.picture import Picture


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
    last, layers = last_records(records), dict[str, int]()
    steps = plan.by_id()
    for step_id in plan.topological_order():
        layers[step_id] = max((layers[d] + 1 for d in steps[step_id].dependencies()), default=0)
    seconds = {step_id: record["duration_ms"] / 1000 for step_id, record in last.items()}
    critical = plan.critical_path(seconds or None)
    places = _rows_in_layers(plan, layers)
    added, changed = _since(plan, versions)
    rows = []
    for step in plan.steps:
        record: Mapping[str, Any] = last.get(step.step_id) or {}
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
                layer=layers[step.step_id],
                row=places[step.step_id],
                critical=step.step_id in critical and len(critical) > 1,
                added_in=added.get(step.step_id),
                changed_in=changed.get(step.step_id),
            )
        )
    return rows


def _rows_in_layers(plan: Plan, layers: Mapping[str, int]) -> dict[str, float]:
    """Rows, centred on 0: a step stands near the middle of what it waits for, so that few edges cross."""
    rows, steps = dict[str, float](), plan.by_id()
    for layer in range(max(layers.values(), default=-1) + 1):
        here = [step.step_id for step in plan.steps if layers[step.step_id] == layer]

        def middle(step_id: str) -> float:
            above = [rows[d] for d in steps[step_id].dependencies()]
            return sum(above) / len(above) if above else 0.0

        for index, step_id in enumerate(sorted(here, key=middle)):
            rows[step_id] = index - (len(here) - 1) / 2
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
    from workbench.views.figures.picture import Picture

    labels, rows = labels_for(plan.problem_statement), dag_rows(plan, records, versions, running)
    looks = _ROOMY if len(rows) <= _ROOM_FOR else _SMALL
    place, across, down = _places(rows, looks)
    by_id = {row["step_id"]: row for row in rows}
    edges = [(by_id[source], row) for row in rows for source in row["depends_on"]]
    layout = {
        **paper(
            title or plan.problem_statement,
            width=max(620, looks.wide * across + 60),
            height=round(128 + looks.high * max(down, 1)),
            under=_under(plan, rows, versions, labels),
        ),
        "shapes": [*_edges(edges, place, looks), *_boxes(rows, place, looks)],
        "xaxis": hidden() | {"range": [-0.5, max(across, 560 / looks.wide) - 0.5]},
        "yaxis": hidden() | {"range": [-max(down, 1) + 0.5, 0.5]},
    }
    text = _text(rows, place, looks, labels)
    said = points(((*place[row["step_id"]], _hover(row, labels)) for row in rows), size=0.5 * looks.high)
    return Picture.of(rows, [*text, said, *_legend(rows, labels)], layout)


Places = Mapping[str, tuple[float, float]]


def _places(rows: Sequence[Row], looks: Looks) -> tuple[Places, int, float]:
    """Where each step stands, how many columns there are and how many lines, in cells; y runs downwards from 0."""
    columns: list[list[Row]] = []
    for layer in range(max((row["layer"] for row in rows), default=-1) + 1):
        here = sorted((row for row in rows if row["layer"] == layer), key=lambda row: row["row"])
        parts = -(-len(here) // looks.deep)
        size = -(-len(here) // parts)
        columns += [here[at : at + size] for at in range(0, len(here), size)]
    place, top = dict[str, tuple[float, float]](), 0.0
    bands = [columns[at : at + looks.across] for at in range(0, len(columns), looks.across)]
    for band in bands:
        high = max(len(column) for column in band)
        for x, column in enumerate(band):
            for number, row in enumerate(column):
                place[row["step_id"]] = (float(x), -(top + number + (high - len(column)) / 2))
        top += high + 0.4
    return place, max((len(band) for band in bands), default=1), top - 0.4


def _under(plan: Plan, rows: Sequence[Row], versions: Sequence[Plan], labels: Labels) -> str:
    """Below the title: version, steps, how long the critical path took, what earlier versions had and this has not."""
    known = {step.step_id for one in versions for step in one.steps}
    gone = len(known - {row["step_id"] for row in rows})
    took = sum(row["duration_ms"] or 0 for row in rows if row["critical"])
    told = [labels("version", n=plan.version), labels("steps", n=len(rows))]
    told += [f"{labels('critical')} {milliseconds(took)}"] if took else []
    return " · ".join([*told, *([labels("count_removed", n=gone)] if gone else [])])


def _edges(edges: Iterable[tuple[Row, Row]], place: Places, looks: Looks) -> list[dict[str, Any]]:
    """All edges of one look together: ordinary ones thin, conditional ones dotted, the critical path heavy."""
    kinds: dict[tuple[bool, bool], list[str]] = {}
    for source, target in edges:
        heavy = source["critical"] and target["critical"]
        path = _edge(place[source["step_id"]], place[target["step_id"]], looks)
        kinds.setdefault((heavy, target["condition"] != "always"), []).append(path)
    return [
        lines(
            paths,
            color=STRONG if heavy else FAINT,
            width=(3 if heavy else 1.3) * (1 if looks is _ROOMY else 0.6),
            dash="dot" if dotted else "solid",
        )
        for (heavy, dotted), paths in sorted(kinds.items())
    ]


def _edge(start: tuple[float, float], end: tuple[float, float], looks: Looks) -> str:
    (x0, y0), (x1, y1), half = start, end, looks.box[0] / 2
    x0, x1 = x0 + half, x1 - half
    bend = (x1 - x0) / 2 if x1 > x0 else 0.35
    return f"M{x0:.4g},{y0:.4g}C{x0 + bend:.4g},{y0:.4g} {x1 - bend:.4g},{y1:.4g} {x1:.4g},{y1:.4g}"


def _look(row: Row) -> str:
    return "recorded" if row["replayed"] and row["status"] in ("success", "partial") else row["status"]


def _boxes(rows: Iterable[Row], place: Places, looks: Looks) -> list[dict[str, Any]]:
    """Solid and tinted what ran here; dashed and empty what is recorded, or has not run."""
    kinds: dict[str, list[str]] = {}
    for row in rows:
        (x, y), (wide, high) = place[row["step_id"]], looks.box
        kinds.setdefault(_look(row), []).append(box(x - wide / 2, x + wide / 2, y - high / 2, y + high / 2))
    shapes = []
    for look, paths in kinds.items():
        _, fill, tint = _colours(look)
        hollow = look in ("pending", "skipped", "cancelled", "recorded")
        line = {"color": fill, "width": 1.4, "dash": "dash" if hollow else "solid"}
        shapes.append(lines(paths, **line) | {"fillcolor": GROUND if hollow else tint})
    return shapes


def _colours(look: str) -> tuple[str, str, str]:
    return COLOURS["done" if look == "recorded" else FAMILY.get(look, "idle")]


def _text(rows: Sequence[Row], place: Places, looks: Looks, labels: Labels) -> list[Any]:
    left, right = 0.04 - looks.box[0] / 2, looks.box[0] / 2 - 0.03
    at = {row["step_id"]: place[row["step_id"]] for row in rows}
    badges = [
        (at[row["step_id"]][0] + right, at[row["step_id"]][1] + (0.17 if looks is _ROOMY else 0), safe(badge))
        for row in rows
        if (badge := _badge(row))
    ]
    marks = [words(badges, 11 if looks is _ROOMY else 9, COLOURS["running"][0], "middle left")] if badges else []
    if looks is _SMALL:
        return [*_by_family(rows, at, lambda row: _small(row, looks), left, 0, 9.5), *marks]
    names = ((at[row["step_id"]], f"<b>{safe(short(row['step_id'], _letters(row, looks)))}</b>") for row in rows)
    tools = ((at[row["step_id"]], safe(short(row["tool"], 30))) for row in rows)
    return [
        words(((x + left, y + 0.17, text) for (x, y), text in names), 13, INK),
        words(((x + left, y - 0.01, text) for (x, y), text in tools), 11, DIM),
        *_by_family(rows, at, lambda row: _facts(row, labels), left, -0.18, 11),
        *marks,
    ]


def _letters(row: Row, looks: Looks) -> int:
    return looks.letters - (4 if _badge(row) else 0)


def _by_family(rows: Iterable[Row], at: Places, told: Any, left: float, down: float, size: float) -> list[Any]:
    """Texts in the ink of each row's status."""
    inks: dict[str, list[tuple[float, float, str]]] = {}
    for row in rows:
        x, y = at[row["step_id"]]
        inks.setdefault(_colours(_look(row))[0], []).append((x + left, y + down, safe(told(row))))
    return [words(texts, size, ink) for ink, texts in inks.items()]


def _small(row: Row, looks: Looks) -> str:
    sign = SIGNS.get(row["status"], "·")
    return f"{sign} {short(row['step_id'], _letters(row, looks))}"


def _facts(row: Row, labels: Labels) -> str:
    """The third line of a box: sign, what was found, how long it took; the word where it did not end well."""
    status = row["status"]
    told = [SIGNS[status] if status == "success" else labels.status(status)]
    if status in ("success", "partial"):
        told.append(labels("n_found", n=row["evidence_count"]))
        told.append(labels("beside_recorded") if row["replayed"] else milliseconds(row["duration_ms"] or 0))
    return " · ".join(told).replace(" · ", " ", 1)


def _badge(row: Row) -> str:
    """Since which version the step is there, or is as it is: ``+ v2``, ``~ v3``."""
    if row["added_in"] is not None:
        return f"+v{row['added_in']}"
    return f"~v{row['changed_in']}" if row["changed_in"] is not None else ""


def _hover(row: Row, labels: Labels) -> str:
    told = [
        f"<b>{safe(short(row['step_id'], 60))}</b>",
        wrapped(row["objective"], most=3),
        safe(short(row["tool"], 60)),
    ]
    told.append(
        safe(
            _facts(row, labels) if row["status"] != "success" else f"{labels.status('success')} · {_found(row, labels)}"
        )
    )
    if row["replayed"]:
        told.append(safe(labels("step_recorded")))
    for key, version in (("added_in", row["added_in"]), ("changed_in", row["changed_in"])):
        told += [safe(labels(key, n=version))] if version is not None else []
    told += [wrapped(reason_told(row["error"], labels), most=3)] if row["error"] else []
    return "<br>".join(line for line in told if line)


def _found(row: Row, labels: Labels) -> str:
    return f"{labels('n_found', n=row['evidence_count'])} · {milliseconds(row['duration_ms'] or 0)}"


def _legend(rows: Sequence[Row], labels: Labels) -> list[Any]:
    entries = []
    for look in dict.fromkeys(_look(row) for row in rows):
        _, fill, tint = _colours(look)
        hollow = look in ("pending", "skipped", "cancelled", "recorded")
        marker = {"symbol": "square", "size": 11, "color": CLEAR if hollow else tint}
        marker["line"] = {"color": fill, "width": 1.4}
        name = f"┄ {labels('step_recorded')}" if look == "recorded" else labels.status(look)
        entries.append(entry(name, mode="markers", marker=marker))
    if any(row["critical"] for row in rows):
        entries.append(entry(labels("critical"), mode="lines", line={"color": STRONG, "width": 3}))
    for sign, key in (("+v", "added_in"), ("~v", "changed_in")):
        found = sorted({version for row in rows if (version := row[key]) is not None})  # type: ignore[literal-required]
        if found and any(_badge(row).startswith(sign) for row in rows):
            told = f"{sign}{found[0]} = {labels(key, n=found[0])}"
            entries.append(entry(told, mode="markers", marker={"size": 1, "color": CLEAR}))
    return entries
