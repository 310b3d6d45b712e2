"""The plan as a DAG: layers by dependency, a box a step, the critical path heavy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.figures.paper import COLOURS, DIM, FAMILY, INK, STRONG, paper, safe, short, wrapped
from workbench.labels import SIGNS, Labels, labels_for, milliseconds
from workbench.plans import Plan, last_records
from workbench.state import ExecutionRecord

if TYPE_CHECKING:
    import pandas
    from plotly.graph_objects import Figure

BOX_WIDTH, BOX_HEIGHT = 0.80, 0.62
"""Size of a step's box, where layers and rows are 1 apart."""


def dag_rows(plan: Plan, records: Iterable[ExecutionRecord] = ()) -> list[dict[str, Any]]:
    """One dict a step, in the order of the plan: how it went, its layer and row in the drawing, whether it is critical.

    A step's layer is one more than the deepest step it waits for; the critical path is the chain that took longest, or
    may take longest by time-outs while nothing has run.

    Raises:
        PlanError: the steps form a cycle.
    """
    records = list(records)
    last, layers = last_records(records), dict[str, int]()
    steps = plan.by_id()
    for step_id in plan.topological_order():
        layers[step_id] = max((layers[d] + 1 for d in steps[step_id].dependencies()), default=0)
    seconds = {step_id: record["duration_ms"] / 1000 for step_id, record in last.items()}
    critical = plan.critical_path(seconds or None)
    rows = _rows_in_layers(plan, layers)
    return [
        {
            "step_id": step.step_id,
            "objective": step.objective,
            "tool": step.tool,
            "condition": step.condition,
            "depends_on": step.dependencies(),
            "status": last[step.step_id]["status"] if step.step_id in last else "pending",
            "attempts": last[step.step_id]["attempt"] if step.step_id in last else 0,
            "duration_ms": last[step.step_id]["duration_ms"] if step.step_id in last else None,
            "evidence_count": last[step.step_id]["output_summary"].get("evidence_count")
            if step.step_id in last
            else None,
            "error": last[step.step_id]["error"] if step.step_id in last else None,
            "layer": layers[step.step_id],
            "row": rows[step.step_id],
            "critical": step.step_id in critical and len(critical) > 1,
        }
        for step in plan.steps
    ]


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


def dag_frame(plan: Plan, records: Iterable[ExecutionRecord] = ()) -> pandas.DataFrame:
    """The data of ``dag``."""
    import pandas

    return pandas.DataFrame(dag_rows(plan, records))


def dag(plan: Plan, records: Iterable[ExecutionRecord] = (), title: str = "") -> Figure:
    """The plan, left to right: a box a step, its status, what it found; the critical path is drawn heavy."""
    from plotly.graph_objects import Figure

    labels, rows = labels_for(plan.problem_statement), dag_rows(plan, records)
    place = {row["step_id"]: (row["layer"], -row["row"]) for row in rows}
    depth, height = 1 + max((r["layer"] for r in rows), default=0), 1 + 2 * max((r["row"] for r in rows), default=0)
    edges = [_edge(rows, place, source, row) for row in rows for source in row["depends_on"]]
    figure = Figure(data=[_hover_points(rows, place, labels), *_dag_legend(rows, labels)])
    figure.update_layout(
        **paper(title or plan.problem_statement, width=max(560, 230 * depth + 60), height=round(130 + 84 * height)),
        shapes=[*sorted(edges, key=lambda e: e["line"]["width"]), *(_box(row, place) for row in rows)],
        annotations=[note for row in rows for note in _box_text(row, place, labels)],
        xaxis={"visible": False, "range": [-0.5, depth - 0.5], "fixedrange": True},
        yaxis={"visible": False, "range": [-height / 2 - 0.1, height / 2 + 0.1], "fixedrange": True},
    )
    return figure


def _edge(rows: Sequence[dict[str, Any]], place: Mapping[str, tuple[float, float]], source: str, target: Any) -> Any:
    (x0, y0), (x1, y1) = place[source], place[target["step_id"]]
    x0, x1 = x0 + BOX_WIDTH / 2, x1 - BOX_WIDTH / 2
    bend, origin = (x0 + x1) / 2, next(row for row in rows if row["step_id"] == source)
    heavy = origin["critical"] and target["critical"]
    line = {"color": STRONG if heavy else "#9A9A9A", "width": 3 if heavy else 1.3}
    if target["condition"] != "always":
        line["dash"] = "dot"
    path = f"M {x0:g},{y0:g} C {bend:g},{y0:g} {bend:g},{y1:g} {x1:g},{y1:g}"
    return {"type": "path", "path": path, "line": line, "layer": "below"}


def _box(row: Mapping[str, Any], place: Mapping[str, tuple[float, float]]) -> dict[str, Any]:
    x, y = place[row["step_id"]]
    _, fill, tint = COLOURS[FAMILY.get(row["status"], "idle")]
    waits = row["status"] in ("pending", "skipped", "cancelled")
    return {
        "type": "rect",
        "x0": x - BOX_WIDTH / 2,
        "x1": x + BOX_WIDTH / 2,
        "y0": y - BOX_HEIGHT / 2,
        "y1": y + BOX_HEIGHT / 2,
        "line": {"color": fill, "width": 1.4, "dash": "dash" if waits else "solid"},
        "fillcolor": "#FFFFFF" if waits else tint,
        "layer": "below",
    }


def _box_text(row: Mapping[str, Any], place: Mapping[str, tuple[float, float]], labels: Labels) -> list[dict[str, Any]]:
    x, y = place[row["step_id"]]
    ink = COLOURS[FAMILY.get(row["status"], "idle")][0]
    facts = [SIGNS[row["status"]] if row["status"] == "success" else labels.status(row["status"])]
    if row["status"] in ("success", "partial"):
        facts.append(f"{labels('n_found', n=row['evidence_count'])} · {milliseconds(row['duration_ms'])}")
    lines = (
        (short(row["step_id"], 24), 13, INK, 0.17),
        (row["tool"], 11, DIM, -0.01),
        (" ".join(facts), 11, ink, -0.18),
    )
    return [
        {
            "x": x - BOX_WIDTH / 2 + 0.04,
            "y": y + offset,
            "text": f"<b>{safe(text)}</b>" if size == 13 else safe(text),
            "font": {"size": size, "color": colour},
            "showarrow": False,
            "xanchor": "left",
            "yanchor": "middle",
        }
        for text, size, colour, offset in lines
    ]


def _hover_points(rows: Sequence[dict[str, Any]], place: Mapping[str, tuple[float, float]], labels: Labels) -> Any:
    """Points without ink in the middle of the boxes: they carry the whole objective, the tool and the error."""
    from plotly.graph_objects import Scatter

    said = []
    for row in rows:
        lines = [f"<b>{safe(row['step_id'])}</b>", wrapped(row["objective"]), safe(row["tool"])]
        lines += [safe(labels.status(row["status"])), *([wrapped(row["error"])] if row["error"] else [])]
        said.append("<br>".join(line for line in lines if line))
    return Scatter(
        x=[place[row["step_id"]][0] for row in rows],
        y=[place[row["step_id"]][1] for row in rows],
        mode="markers",
        marker={"size": 44, "opacity": 0, "symbol": "square"},
        hoverinfo="text",
        hovertext=said,
        showlegend=False,
    )


def _dag_legend(rows: Sequence[dict[str, Any]], labels: Labels) -> list[Any]:
    from plotly.graph_objects import Scatter

    def entry(name: str, **look: Any) -> Any:
        return Scatter(x=[None], y=[None], name=name, hoverinfo="skip", **look)

    entries = []
    for status in dict.fromkeys(row["status"] for row in rows):
        _, fill, tint = COLOURS[FAMILY.get(status, "idle")]
        marker = {"symbol": "square", "size": 11, "color": tint, "line": {"color": fill, "width": 1.4}}
        entries.append(entry(labels.status(status), mode="markers", marker=marker))
    if any(row["critical"] for row in rows):
        entries.append(entry(labels("critical"), mode="lines", line={"color": STRONG, "width": 3}))
    return entries
