"""A run as a canvas: the question, the steps of its plan, the evidence that is cited, the answer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from workbench.knowledge.reading.canvas import Canvas
from workbench.plans import PlanStep, last_records
from workbench.views.labels import labels_for
from workbench.views.layout import layered
from workbench.views.page import cut

if TYPE_CHECKING:
    from workbench.runs.run import Run

_WIDTH, _COLUMN_GAP, _ROW_GAP = 380, 140, 40
_COLORS = {"success": "4", "partial": "3", "failed": "1", "timeout": "1"}
"""Status of a step -> one of the six colours of JSON Canvas."""
_QUESTION_COLOR, _ANSWER_COLOR = "6", "5"


def canvas_text(run: Run) -> str:
    """Return the run as the text of a canvas file: columns from left to right, and no node covers another."""
    nodes, edges = _elements(run)
    canvas, column_ends = Canvas(), Counter[int]()
    places = layered(nodes, [edge[:2] for edge in edges]).places
    for node_id in sorted(nodes, key=places.__getitem__):
        (text, color), column = nodes[node_id], places[node_id][0]
        place = {"x": column * (_WIDTH + _COLUMN_GAP), "y": column_ends[column]}
        canvas.add("text", text, id=node_id, width=_WIDTH, **place, **({"color": color} if color else {}))
        column_ends[column] += canvas.nodes[node_id]["height"] + _ROW_GAP
    for edge in edges:
        canvas.connect(*edge)
    return canvas.written()


def _elements(run: Run) -> tuple[dict[str, tuple[str, str]], list[tuple[str, str, str]]]:
    """Return text and colour by node id, and the edges with their labels."""
    labels = labels_for(run.message)
    plan = run.plan.steps if run.plan else []
    statuses = {step_id: record["status"] for step_id, record in last_records(run.records).items()}
    steps = {
        f"step-{step.step_id}": (_step_text(step), _COLORS.get(statuses.get(step.step_id, ""), "")) for step in plan
    }
    pieces = {f"piece-{piece['n']}": piece for piece in run.pieces if piece["fate"] == "cited"}

    edges = [
        (f"step-{source}", f"step-{step.step_id}", _inputs(step, source))
        for step in plan
        for source in step.dependencies()
    ]
    found_by = [(f"step-{step_id}", piece_id, "") for piece_id, piece in pieces.items() for step_id in piece["scores"]]
    found_by = [edge for edge in found_by if edge[0] in steps]
    later, earlier = {edge[1] for edge in edges}, {edge[0] for edge in [*edges, *found_by]}
    first = [("question", step, "") for step in steps if step not in later]
    cited = [(piece_id, "answer", labels("canvas_evidence")) for piece_id in pieces]
    last = [(step, "answer", "") for step in steps if step not in earlier] if steps else [("question", "answer", "")]

    nodes = {"question": (f"**{labels('question')}**\n{run.message}", _QUESTION_COLOR), **steps}
    for piece_id, piece in pieces.items():
        text = f"**[{piece['n']}] {piece['title']}**\n{cut(piece['text'], 600)}\n{piece['url']}"
        nodes[piece_id] = (text.strip(), "")
    nodes["answer"] = (f"**{labels('answer')}**\n{run.answer or labels('no_answer')}", _ANSWER_COLOR)
    return nodes, [*edges, *first, *found_by, *cited, *last]


def _step_text(step: PlanStep) -> str:
    query = step.tool_input.get("query")
    lines = [f"**{step.step_id}** · {step.tool}", step.objective]
    return "\n".join([*lines, f"query: {query}"] if isinstance(query, str) else lines)


def _inputs(step: PlanStep, dependency: str) -> str:
    references = step.references().items()
    return ", ".join(f"{name} ← {field}" for name, (source, field) in references if source == dependency)
