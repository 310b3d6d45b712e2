"""Figures are data: equal runs give equal JSON, hostile words stay words, and a status is told without colour."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from tests import handmade
from workbench.errors import KnowledgeError
from workbench.graphs.conversation import build_conversation
from workbench.session import Workbench
from workbench.views.drawing import Drawing
from workbench.views.graph import graph, walked
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
    found = ElementTree.fromstring(drawing.svg).iter(f"{{http://www.w3.org/2000/svg}}{tag}")
    return [one for one in found if all(one.get(key.replace("_", "-")) == value for key, value in attributes.items())]


@pytest.mark.parametrize("status", ["success", "partial", "failed", "timeout", "cancelled", "skipped"])
def test_each_status_has_its_sign_and_word(status):
    record = handmade.record("step_0_喜宴", "hybrid_search", 0, 10, 3, status=status)
    sign = {"success": "✓", "partial": "◐", "failed": "✗", "timeout": "◷", "cancelled": "⊖", "skipped": "⊘"}[status]
    assert any(text.startswith(sign) for text in words(dag(handmade.plan("Compare"), [record])))


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
    assert len(near.to_frame()) > 2 and "Ang Lee" in words(near)


def test_a_run_without_its_corpus_says_so(workspace):
    with Workbench.open(workspace) as wb:
        run_id = wb.ask("喜宴哪一年上映？", kb="film").run_id
    (workspace / "knowledge" / "film").unlink()
    with Workbench.open(workspace) as wb, pytest.raises(KnowledgeError, match="without its corpus"):
        wb.run(run_id).knowledge()
