"""Canvases made of runs: a run, its plan, the knowledge around its answer, its tree of forks; and a plan from one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Literal, get_args

from workbench.errors import shown
from workbench.knowledge.reading.canvas import Canvas, CanvasError
from workbench.plans import Plan, PlanStep, last_records
from workbench.runs.pictures import around_answer
from workbench.state import Json
from workbench.views.labels import labels_for
from workbench.views.layout import layered
from workbench.views.page import cut

if TYPE_CHECKING:
    from workbench.runs.run import Run

Part = Literal["run", "plan", "knowledge", "tree"]
_WIDE, _ACROSS, _DOWN = 380, 140, 40
_INK = {"success": "4", "done": "4", "partial": "3", "failed": "1", "timeout": "1", "running": "5", "paused": "2"}
_STEP = "step-"
_HEAD = re.compile(r"\*\*(?P<step_id>.+?)\*\* · (?P<tool>\S+)$")


Made = tuple[dict[str, tuple[str, str]], list[tuple[str, str, str]]]
"""What a canvas is made of: ``(text, colour)`` by id of its node, and edges with their labels."""


def made_of(run: Run, what: Part) -> str:
    """The canvas of a run, or of a part of it, as a file has it: from left to right, and nothing covers anything.

    Raises:
        CanvasError: there is no such part, or the run has none.
    """
    if what not in get_args(Part):
        raise CanvasError(f"There is no canvas of {shown(what)}. Known: {', '.join(get_args(Part))}.")
    if what == "plan" and run.plan is None:
        raise CanvasError(f"Run {run.run_id} has no plan to put on a canvas: it is {run.status}.")
    nodes, edges = {"run": _run, "plan": _steps, "knowledge": _knowledge, "tree": _tree}[what](run)
    canvas, low = Canvas(), Counter[int]()
    places = layered(nodes, [edge[:2] for edge in edges]).places
    for one in sorted(nodes, key=places.__getitem__):
        (text, color), layer = nodes[one], places[one][0]
        ink = {"color": color} if color else {}
        canvas.add("text", text, id=one, width=_WIDE, x=layer * (_WIDE + _ACROSS), y=low[layer], **ink)
        low[layer] += canvas.nodes[one]["height"] + _DOWN
    for edge in edges:
        canvas.connect(*edge)
    return canvas.written()


def _steps(run: Run) -> Made:
    """Return the steps of the newest plan, by how they ended."""
    ended = {step_id: record["status"] for step_id, record in last_records(run.records).items()}
    steps = run.plan.steps if run.plan else []
    nodes = {_STEP + step.step_id: (_told(step), _INK.get(ended.get(step.step_id, ""), "")) for step in steps}
    edges = [(_STEP + d, _STEP + step.step_id, _why(step, d)) for step in steps for d in step.dependencies()]
    return nodes, edges


def _why(step: PlanStep, dependency: str) -> str:
    return ", ".join(f"{name} ← {field}" for name, (source, field) in step.references().items() if source == dependency)


def _told(step: PlanStep) -> str:
    query = step.tool_input.get("query")
    asked = [f"query: {query}"] if isinstance(query, str) else []
    return "\n".join([f"**{step.step_id}** · {step.tool}", step.objective, *asked])


def _run(run: Run) -> Made:
    """Return the question, the steps, what was cited of what they found, the answer."""
    labels, (nodes, edges) = labels_for(run.message), _steps(run)
    after = {a for a, _, _ in edges}
    behind = {b for _, b, _ in edges}
    cited = [piece for piece in run.pieces if piece["fate"] == "cited"]
    found = {
        f"piece-{piece['n']}": (
            f"**[{piece['n']}] {piece['title']}**\n{cut(piece['text'], 600)}\n{piece['url']}".strip(),
            "",
        )
        for piece in cited
    }
    edges = [*edges, *(("question", one, "") for one in nodes if one not in behind)]
    by = [(f"piece-{piece['n']}", [_STEP + s for s in piece["scores"] if _STEP + s in nodes]) for piece in cited]
    edges += [(step, piece, "") for piece, steps in by for step in steps]
    edges += [(piece, "answer", labels("canvas_evidence")) for piece in found]
    last = [one for one in nodes if one not in after and not any(one in steps for _, steps in by)]
    edges += [(one, "answer", "") for one in last or ([] if nodes else ["question"])]
    told = {"question": (f"**{labels('question')}**\n{run.message}", "6")}
    answer = {"answer": (f"**{labels('answer')}**\n{run.answer or labels('no_answer')}", "5")}
    return {**told, **nodes, **found, **answer}, edges


def _knowledge(run: Run) -> Made:
    around = around_answer(run)
    seeds = set(around.seeds)
    nodes = {i: (f"**{e['name']}**\n{e['type']}", "5" if i in seeds else "") for i, e in around.entities.items()}
    return nodes, [(r["source"], r["target"], r["type"].replace("_", " ")) for r in around.relations]


def _tree(run: Run) -> Made:
    tree, labels = run.tree(), labels_for(run.message)
    nodes = {
        one["run_id"]: (
            f"**{one['run_id']}** · {labels.status(one['status'])}\n{one['message']}",
            _INK.get(one["status"], ""),
        )
        for one in tree.nodes
    }
    edges = [
        (parent, one["run_id"], ", ".join(labels(edit["what"]) for edit in one["edits"]))
        for one in tree.nodes
        for parent in [one["parent"], *one["also"]]
        if parent in nodes
    ]
    return nodes, edges


def plan_of(canvas: Canvas, plan: Plan) -> Plan:
    """The plan as a person left its canvas: steps taken out, added and reworded, and edges as what depends on what.

    A node without the heading of a step is a new step that searches for its text. What was not touched stays as it was.

    Raises:
        CanvasError: a step takes its input from one that no edge leads from any more.
        PlanError: the plan is not valid.
    """
    known, ids = plan.by_id(), dict[str, str]()
    texts = {
        i: node["text"].strip() for i, node in canvas.nodes.items() if node["type"] == "text" and node["text"].strip()
    }
    free = (name for n in count(1) if (name := f"canvas_{n}") not in known)
    for node_id in texts:
        ids[node_id] = node_id.removeprefix(_STEP) if node_id.removeprefix(_STEP) in known else next(free)
    before: dict[str, list[str]] = {one: [] for one in ids.values()}
    for _, start, _, end in canvas.links():
        if start in ids and end in ids:
            before[ids[end]].append(ids[start])
    steps = []
    for node_id, step_id in ids.items():
        step = known.get(step_id) or PlanStep(step_id=step_id, objective="", tool="hybrid_search", tool_input={})
        untouched = step_id in known and texts[node_id] == _told(step).strip()
        fields = {} if untouched else _read(texts[node_id], step)
        if step_id not in known:
            fields["tool_input"] = {"query": fields["tool_input"].get("query") or fields["objective"]}
        steps.append(step.model_copy(update={**fields, "depends_on": _depending(step, before[step_id])}))
    order = {step_id: place for place, step_id in enumerate(known)}
    steps.sort(key=lambda step: order.get(step.step_id, len(order)))
    edited = plan.model_copy(update={"steps": steps})
    edited.topological_order()
    return edited


def _depending(step: PlanStep, before: Iterable[str]) -> list[str]:
    drawn, sources = list(dict.fromkeys(before)), {source for source, _ in step.references().values()}
    if cut_off := sorted(sources - set(drawn)):
        raise CanvasError(
            f"Step {step.step_id!r} takes its input from {cut_off[0]!r}, and no edge leads from there: draw it again."
        )
    stated = [one for one in drawn if one not in sources or one in step.depends_on]
    return step.depends_on if set(stated) == set(step.depends_on) else stated


def _read(text: str, step: PlanStep) -> Json:
    """Return the fields that the text of a node says."""
    lines = text.split("\n")
    if heading := _HEAD.match(lines[0].strip()):
        lines = lines[1:]
    query = next((line.removeprefix("query:").strip() for line in lines if line.startswith("query:")), None)
    objective = "\n".join(line for line in lines if not line.startswith("query:")).strip()
    tool_input = step.tool_input if query is None else {**step.tool_input, "query": query}
    return {"objective": objective, "tool": heading["tool"] if heading else step.tool, "tool_input": tool_input}
