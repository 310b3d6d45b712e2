"""Runs, graphs and knowledge bases shown: as a page, as text, as a drawing."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from tests import handmade
from tests.test_hostile import read
from workbench.cli import main
from workbench.errors import KnowledgeError
from workbench.graphs.conversation import build_conversation
from workbench.records.document import run_document
from workbench.records.timeline import bars
from workbench.runs.run import _drawable
from workbench.session import Workbench
from workbench.views.drawing import Drawing
from workbench.views.graph import graph, walked
from workbench.views.outline import run_html, run_text
from workbench.views.plan_graph import dag

STATIC_TAGS = {
    "div", "p", "strong", "code", "a", "br", "details", "summary", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip


def show(form, **changes):
    return form(run_document(handmade.run(**changes)))


def test_a_page_says_everything_that_was_done():
    page = show(run_html)
    for piece in [
        "对比《喜宴》和《饮食男女》的风格",
        "7f3a",
        "✓ 完成",
        "《喜宴》于 1993 年上映 [1]。",
        "The Wedding Banquet",
    ]:
        assert piece in page
    for piece in ["CC BY-SA 4.0", "https://en.wikipedia.org/wiki/1", "compare 2", "饮食男女 家庭 传统", "批准"]:
        assert piece in page
    assert 'lang="zh-Hans"' in page
    assert read(page).tags == STATIC_TAGS


@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_keeps_to_its_width_and_chinese_counts_double(width):
    from rich.cells import cell_len

    assert max(cell_len(line) for line in show(lambda d: run_text(d, width)).splitlines()) <= width


def test_a_megabyte_is_cut_and_said_so():
    page = show(run_html, answer="a" * 1_000_000)
    assert len(page) < 70_000
    assert "… +950000" in page


def test_waiting_is_folded_and_charged_to_nobody():
    found = bars(handmade.log(), handmade.records(), handmade.run().decisions)
    waits = [bar for bar in found if bar.kind == "waiting"]
    assert [round(bar.duration_ms) for bar in waits] == [42_035]
    assert waits[0].end_ms - waits[0].start_ms < 200
    unanswered = bars(handmade.log(), handmade.records())
    assert [bar.kind for bar in unanswered if bar.kind in ("waiting", "stopped")] == ["stopped"]
    assert bars([], []) == []


SAYS = "She grew tea in the hills above the old town for thirty years and sold it on the market every Sunday"
NOTES = [
    {"id": "a", "title": "Ann Tea", "text": f"Ann Tea was a farmer. {SAYS}."},
    {"id": "b", "title": "Bob Bee", "text": f"Bob Bee was no farmer. {SAYS}, with Ann Tea."},
    {"id": "c", "text": "nothing of note was ever seen here."},
    {"id": "d</b>", "text": "nothing of note was ever seen here."},
    {"id": "e", "title": "采茶人", "text": "采茶人住在山上。他每天早上去采茶，晚上喝茶。", "farmers": ["Zoe Hill"]},
    {"id": "<b>f</b>", "title": "<script>alert(1)</script>", "text": f"Ann Tea was a farmer. {SAYS} morning."},
]
CORE = {"embedding_model": "hashing", "rerank_model": "none"}


@pytest.fixture
def notes(tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(f"{json.dumps(note)}\n" for note in NOTES))
    with Workbench.open(tmp_path / "ws", **CORE) as wb:
        wb.add_knowledge("notes", [path])
        yield wb


@pytest.mark.parametrize(("lang", "words"), [("zh", "文档"), ("en", "documents")])
def test_as_a_page_and_as_text_in_both_languages(notes, monkeypatch, lang, words):
    monkeypatch.setattr("workbench.views.labels._spoken", lang)
    found = notes.inspect_knowledge("notes")
    assert words in found._repr_html_() and words in str(found)


def test_by_the_command(notes, tmp_path):
    notes.close()
    asked = ["kb", "inspect", "notes", "--workspace", str(tmp_path / "ws")]
    told = CliRunner().invoke(main, asked)
    assert told.exit_code == 0 and "documents" in told.output
    assert json.loads(CliRunner().invoke(main, [*asked, "--json"]).output)["counts"]["documents"] == 6


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
    assert kept <= ways
    assert ways - kept == {
        ("prepare_retrieval", "retrieval:planner"),
        ("review_clarify", "retrieval:planner"),
    }
    boxes = drawn(graph(found, ""), "g", role="img")
    assert len({box.get("transform") for box in boxes}) == len(found.nodes)


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
