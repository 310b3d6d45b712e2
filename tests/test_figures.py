"""Figures are data: equal runs give equal JSON, hostile words stay words, and a status is told without colour."""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tests import handmade
from workbench.errors import KnowledgeError
from workbench.graphs.conversation import build_conversation
from workbench.plans import Plan, PlanStep
from workbench.runs.pictures import _drawable
from workbench.session import Workbench
from workbench.views.drawing import Drawing
from workbench.views.graph import graph, walked
from workbench.views.knowledge import Around, knowledge
from workbench.views.plan_graph import dag

RUN = handmade.run()


def as_data(figure):
    return json.loads(figure.to_json())


def words(figure):
    """Every string of a figure's JSON, or every text of a drawing."""
    if isinstance(figure, Drawing):
        return [part for part in ElementTree.fromstring(figure.svg).itertext() if part]

    def walk(value):
        if isinstance(value, str):
            yield value
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from walk(inner)

    return list(walk(as_data(figure)))


def drawn(drawing, tag, **attributes):
    """The elements of a drawing with these attributes."""
    found = ElementTree.fromstring(drawing.svg).iter(f"{{http://www.w3.org/2000/svg}}{tag}")
    return [one for one in found if all(one.get(key.replace("_", "-")) == value for key, value in attributes.items())]


@pytest.mark.parametrize("status", ["success", "partial", "failed", "timeout", "cancelled", "skipped"])
def test_each_status_has_its_sign_and_word(status):
    record = handmade.record("step_0_喜宴", "hybrid_search", 0, 10, 3, status=status)
    sign = {"success": "✓", "partial": "◐", "failed": "✗", "timeout": "◷", "cancelled": "⊖", "skipped": "⊘"}[status]
    assert any(text.startswith(sign) for text in words(dag(handmade.plan("Compare"), [record])))


def test_a_plan_before_it_runs_and_one_with_a_cycle():
    assert sum("○ not begun" in text for text in words(dag(handmade.plan("Compare")))) >= 3
    assert ElementTree.fromstring(dag(Plan()).svg) is not None
    steps = [PlanStep(step_id=a, objective="", tool="t", depends_on=[b]) for a, b in ("ab", "ba")]
    assert len(drawn(dag(Plan(steps=steps)), "g", role="img")) == 2


GRAPH = build_conversation().get_graph(xray=True)
LOG = [{**entry, "node": "worker_select"} if entry["node"] == "route" else entry for entry in RUN.log]


def test_the_graph_is_the_one_that_runs():
    """Every node and every edge of LangGraph's own, but for the beginnings and ends of the graphs inside."""
    found = walked(GRAPH)
    names = {node["name"] for node in found.nodes}
    assert names == {node.name for node in GRAPH.nodes.values()}
    assert {node["graph"] for node in found.nodes} == {"", "route", "retrieval", "reporter"}
    inner = ("__start__", "__end__")
    kept = {
        (e.source, e.target)
        for e in GRAPH.edges
        if not any(":" in i and i.endswith(inner) for i in (e.source, e.target))
    }
    ways = {(edge["source"], edge["target"]) for edge in found.edges}
    assert kept <= ways and ways - kept == {
        ("prepare_retrieval", "retrieval:planner"),
        ("review_clarify", "retrieval:planner"),
    }
    boxes = drawn(graph(found, ""), "g", role="img")
    assert len({box.get("transform") for box in boxes}) == len(found.nodes)


def test_where_a_run_went_and_how_often():
    found = walked(GRAPH, LOG, "done")
    nodes = {node["name"]: node for node in found.nodes}
    assert nodes["executor"]["times"] == 4 and nodes["executor"]["status"] == "done"
    assert nodes["executor"]["duration_ms"] == 894 + 410 + 470  # side by side counts once
    assert nodes["kb_handler"]["status"] == "pending"
    taken = {(edge["source"], edge["target"]): edge["times"] for edge in found.edges if edge["times"]}
    assert taken == {("retrieval:merger", "generate"): 1, ("generate", "persist"): 1, ("persist", "__end__"): 1}


@pytest.mark.parametrize("status", ["running", "paused", "failed", "interrupted", "cancelled"])
def test_the_node_where_a_run_stands_is_marked(status):
    found = walked(GRAPH, LOG[:1], status, ["retrieval:review_plan"])
    assert [node["name"] for node in found.nodes if node["status"] == status] == ["review_plan"]
    assert walked(GRAPH, LOG[:1], status, ["retrieval"]).rows()[12]["status"] == status  # its first node
    said = words(graph(found, "Where", "zh"))
    assert any("审阅计划" in text and {*text} & {*"▸‖✗↻⊖"} for text in said)
    assert len(drawn(graph(found, ""), "rect", stroke_width="3")) == 1


def entity(name, kind="Film", aliases=()):
    return {"entity_id": name, "name": name, "type": kind, "aliases": list(aliases), "doc_id": None}


def relation(source, kind, target):
    return {
        "relation_id": f"{source}|{kind}|{target}",
        "source": source,
        "type": kind,
        "target": target,
        "sentence": f"{source} and {target}.",
        "chunk_id": "",
    }


NEAR = Around(
    {
        e["name"]: e
        for e in (entity("喜宴"), entity("Ang Lee", "Person", ["李安"]), entity("Hulk"), entity("x", "Studio"))
    },
    (
        relation("喜宴", "directed_by", "Ang Lee"),
        relation("Hulk", "directed_by", "Ang Lee"),
        relation("x", "made_it", "Hulk"),
    ),
    seeds=("喜宴", "Ang Lee"),
)


def test_what_relates_the_entities_of_the_answer_has_its_words():
    picture = knowledge(NEAR, language="zh")
    assert len(drawn(picture, "line", stroke_width="1.5")) == 1 and len(drawn(picture, "line")) == 3
    texts = [one.text for one in drawn(picture, "text")]
    assert "李安" in texts
    assert any("made it" in text for text in words(picture)) and "Hulk, Film" in words(picture)
    assert "x, Studio" in words(picture)  # a corpus may bring types of its own


def test_a_run_draws_itself(wb):
    run = wb.ask("Compare The Wedding Banquet and Eat Drink Man Woman", kb="film", review="reflect")
    frame = run.graph().to_frame()
    assert list(frame[frame.status == "paused"].name) == ["review_reflect"]
    run.approve()
    assert run.status == "done"
    frame = run.graph().to_frame()
    executor = frame[frame.name == "executor"].iloc[0]
    assert executor.times == len(run.records) and not set(frame.status) - {"done", "pending"}
    near = run.knowledge()
    assert {"Ang Lee", "Yu-wen Wang", "Sihung Lung"} <= {*words(near)}, "who is named in the answer is in its figure"
    assert "检索：审阅反思" in words(graph(walked(_drawable(), run.log, "done"), "", "zh")), "no name is cut"


def test_a_run_without_its_corpus_says_so(workspace):
    with Workbench.open(workspace) as wb:
        run_id = wb.ask("喜宴哪一年上映？", kb="film").run_id
    (workspace / "knowledge" / "film").unlink()
    with Workbench.open(workspace) as wb, pytest.raises(KnowledgeError, match="without its corpus"):
        wb.run(run_id).knowledge()


def test_what_is_drawn_in_a_bench_needs_no_plotly():
    drawn = "import workbench.views.plan_graph, workbench.views.timeline, workbench.views.decisions"
    check = f"import sys; {drawn}; print({{'plotly', 'pandas', 'networkx'}} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout.strip() == "set()"
