"""The fusion graph: two sources, five strategies, asked again; canvases: read, shown, worked on and copied."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver

from tests import forked
from tests.cases import HERE, load
from tests.servers import Reply, scripted_server
from tests.shelves import CORE, noted, workbench
from workbench.errors import ToolError, WorkbenchError
from workbench.knowledge.reading.files import Unreadable
from workbench.parts.fusion import canvas as reading
from workbench.parts.fusion import graph as fusion
from workbench.parts.fusion.graph import build_fusion, read_config
from workbench.parts.fusion.graphiti import GraphitiInput, graphiti
from workbench.parts.fusion.strategies import STRATEGIES
from workbench.ports import Context
from workbench.runs.stored import live_steps
from workbench.session import Workbench
from workbench.settings import Settings
from workbench.tools.tool import StepLog

HARD = "Where was the director of The Wedding Banquet born?"
ASKED = {"session_id": "s", "canvas_path": "", "operation": "explanation", "messages": []}
RANKING = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 9), max_size=8).map(
    lambda scores: sorted(((i, float(s)) for i, s in scores.items()), key=lambda pair: (-pair[1], pair[0]))
)


async def ask(wb: Any, query: str, context: Context | None = None, **options: Any) -> dict[str, Any]:
    graph = build_fusion().compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": uuid.uuid4().hex, "kb_prefix": "film", **options}}
    return await graph.ainvoke({**ASKED, "query": query}, config, context=context or wb.ports())


@pytest.mark.parametrize("name", STRATEGIES)
@given(words=RANKING, meaning=RANKING)
def test_a_fusion_keeps_everything_once_and_is_the_same_again(name, words, meaning):
    fused = STRATEGIES[name]({"words": words, "meaning": meaning})
    assert sorted(i for i, _ in fused) == sorted({i for i, _ in [*words, *meaning]})
    assert fused == sorted(fused, key=lambda pair: (-pair[1], pair[0]))
    assert STRATEGIES[name]({}) == []


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != "cascade"])
@given(words=RANKING, meaning=RANKING)
def test_found_by_both_never_ranks_below_found_by_one_that_no_source_puts_before_it(name, words, meaning):
    scores = dict(STRATEGIES[name]({"words": words, "meaning": meaning}))
    place = [{i: n for n, (i, _) in enumerate(ranking)} for ranking in (words, meaning)]
    for both in set(place[0]) & set(place[1]):
        for source, other in ((place[0], place[1]), (place[1], place[0])):
            for one in set(source) - set(other):
                assert source[one] < source[both] or scores[one] <= scores[both]


async def test_both_sources_work_at_once(wb, monkeypatch):
    both = threading.Barrier(2, timeout=30)
    retrieve = fusion._retrieve

    def meeting(*args: Any) -> Any:
        both.wait()
        return retrieve(*args)

    monkeypatch.setattr(fusion, "_retrieve", meeting)
    assert (await ask(wb, "Who directed Memento?"))["vector_results"]


def test_its_input_has_a_published_schema(project):
    published = (project / "workbench/parts/fusion/fusion.schema.json").read_text("utf-8")
    assert published == fusion.schema_text(), "write fusion.schema_text() there anew"
    schema = json.loads(published)
    assert set(schema["required"]) == {"session_id", "canvas_path", "operation"} and "messages" in schema["properties"]
    names = ["decomposition", "scoring", "explanation", "verification", "review"]
    assert schema["properties"]["operation"]["enum"] == names


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"fusion_strategy": "best"}, "'rrf', 'weighted', 'cascade'"),
        ({"quality_threshold": 2}, "quality_threshold cannot be 2"),
        ({"graphiti_endpoint": "bolt://localhost:7687"}, r"graphiti_endpoint cannot be 'bolt.*REST service"),
        ({"lancedb_path": "~/.lancedb"}, "WORKBENCH_VECTOR_STORE=lancedb and WORKBENCH_LANCEDB_PATH"),
    ],
)
def test_a_wrong_option_is_named(options, told):
    with pytest.raises(WorkbenchError, match=told):
        read_config({"configurable": options})


CANVASES = Path(__file__).resolve().parents[3] / "data/canvases"
MATHS, LEAF = CANVASES / "离散数学.canvas", CANVASES / "photosynthesis.canvas"


async def ask_elsewhere(wb: Any, given: dict[str, Any], **options: Any) -> dict[str, Any]:
    config: Any = {"configurable": {"thread_id": uuid.uuid4().hex, **options}}
    return await fusion.build_canvas_rag_graph().ainvoke({"session_id": "s", **given}, config, context=wb.ports())


async def test_scenario_1_found_at_once_on_a_canvas(wb):
    wb.add_knowledge("math", [MATHS], lambda *_: None)
    state = await ask_elsewhere(wb, {"canvas_path": "离散数学.canvas", "operation": "explanation"})
    assert state["quality_score"] >= 0.7 and state["retry_count"] == 0 and not state["best_effort"]
    assert state["graphiti_results"] == state["graph_results"] and state["lancedb_results"] == state["vector_results"]
    assert {"retrieve_graphiti", "retrieve_lancedb"} <= set(fusion.build_canvas_rag_graph().nodes)


@pytest.mark.parametrize(("qualities", "retries", "best_effort"), [([0.5, 0.8], 1, False), ([0.4] * 9, 3, True)])
async def test_scenarios_2_and_3_better_on_a_retry_and_at_the_limit(wb, monkeypatch, qualities, retries, best_effort):
    measured = iter(qualities)
    monkeypatch.setattr(fusion, "measure_quality", lambda *_: next(measured))
    asked = {"canvas_path": "", "operation": "review", "query": HARD}
    state = await ask_elsewhere(wb, asked, kb_prefix="film")
    assert (state["retry_count"], state["best_effort"]) == (retries, best_effort) and state["reranked_results"]


async def test_a_thread_takes_one_question_after_another(wb):
    graph, config = build_fusion().compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "t"}}
    config["configurable"] |= {"kb_prefix": "film", "quality_threshold": 1.0, "max_retries": 1}
    await graph.ainvoke({**ASKED, "query": "Where was Ang Lee born?"}, config, context=wb.ports())
    config["configurable"] |= {"fusion_strategy": "cascade", "max_retries": 0}
    state = await graph.ainvoke({**ASKED, "query": "Memento"}, config, context=wb.ports())
    assert state["asked"] == ["Memento"] and state["retry_count"] == 0
    assert {hit["pass"] for hit in state["vector_results"]} == {1}
    assert {line["pass"] for line in state["log"]} == {1} and len(state["passes"]) == 1
    assert state["reranked_results"] == (await ask(wb, "Memento", fusion_strategy="cascade"))["reranked_results"]


@pytest.fixture(scope="module")
def canvases(tmp_path_factory):
    """A folder with two indexed canvases."""
    folder = tmp_path_factory.mktemp("canvases")
    with Workbench.open(folder) as opened:
        opened.add_knowledge("math", [MATHS], lambda *_: None)
        opened.add_knowledge("leaves", [LEAF], lambda *_: None)
    return folder / "knowledge"


@pytest.fixture
def math(wb, workspace, canvases):
    for name in ("math", "leaves"):
        (workspace / "knowledge" / name).symlink_to(canvases / name, target_is_directory=True)
    return wb


@pytest.mark.parametrize(
    ("operation", "nodes", "asked", "first"),
    [
        ("explanation", ["mi-ji"], "什么是“幂集”？", {"幂集"}),
        ("decomposition", ["deng-jia", "hua-fen"], "“等价关系、划分”由什么组成？", {"等价关系", "划分"}),
        ("verification", ["du"], "顶点的度是与它相连的边的条数。所有顶点的度之和等于边数的两倍，这叫做握手定理。",
         {"图"}),
    ],
)  # fmt: skip
@pytest.mark.few(2)
def test_operation_and_nodes_ask_and_rank(math, operation, nodes, asked, first):
    run = math.fusion(canvas=MATHS, operation=operation, nodes=nodes)
    assert run.message == asked and run.state["kb_prefix"] == "math" and run.status == "done"
    assert first <= {piece["metadata"]["title"] for piece in run.evidence[:2]}
    judged = operation == "verification"  # no text is evidence for itself
    assert not judged or "度" not in {piece["metadata"]["title"] for piece in run.evidence}
    found = run.fusion["operation_results"]
    assert [entry["node"] for entry in found] == ([] if operation == "explanation" else nodes)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"canvas": "nosuch.canvas"}, "No canvas 'nosuch.canvas' in film, leaves, math"),
        ({"canvas": "离散数学.canvas", "nodes": ["nosuch"]}, "no node 'nosuch'.*da-deng-jia"),
        ({"canvas": "离散数学.canvas", "operation": "drawing"}, "no operation 'drawing'.*decomposition"),
        ({"question": "", "kb": "film"}, "Nothing is asked|empty"),
    ],
)
@pytest.mark.few(3)
def test_what_is_not_there_is_named(math, given, told):
    with pytest.raises(WorkbenchError, match=told):
        math.fusion(**given)


def test_a_run_shows_its_passes_and_a_replay_asks_nothing(wb):
    run = wb.fusion(HARD, kb="film", quality_threshold=1.0, max_retries=2)
    told = run.fusion
    assert run.status == "done" and run.answer and told["retry_count"] == 2 and told["best_effort"]
    assert told["passes"][0]["asked"] == [HARD] and len(told["passes"]) == 3
    assert told["quality_score"] == max(one["quality_score"] for one in told["passes"])
    nodes = [sub["name"] for sub in run.records[0]["sub_steps"]]
    assert nodes.count("check_quality") == 3 and len(run.records) == 1
    again = wb.replay(run.run_id)
    assert again.fusion == told and again.answer == run.answer and not live_steps(again)
    given = {**run.plan.step("fusion").tool_input, "fusion_strategy": "weighted"}
    fork = run.fork(plan=run.plan.replace("fusion", tool_input=given))
    assert live_steps(fork) == ["fusion"] and "weighted" in str(wb.compare(run, fork))
    assert wb.ask("Memento", kb="film").fusion == {}


KILLED = """
import sys, time
from workbench import Workbench
from workbench.parts.fusion import graph as fusion

def hang(*given):
    print("reranking", flush=True)
    time.sleep(600)

fusion.hybrid.rerank = hang
wb = Workbench.open(sys.argv[1])
print(wb.fusion(sys.argv[2], kb="film", quality_threshold=0.0, wait=False).run_id, flush=True)
time.sleep(600)
"""


def test_killed_between_nodes_it_goes_on_and_repeats_none(workspace, monkeypatch):
    process = forked.Popen([sys.executable, "-c", KILLED, workspace, HARD], stdout=subprocess.PIPE, text=True)
    [run_id] = {process.stdout.readline().strip() for _ in range(2)} - {"reranking"}
    process.kill()
    process.wait()
    process.stdout.close()

    def never(*_: Any) -> Any:
        raise AssertionError("the sources had answered")

    monkeypatch.setattr(fusion, "_retrieve", never)
    with Workbench.open(workspace) as wb:
        run = wb.run(run_id)
        assert run.status == "interrupted" and run.resume().status == "done", run.error
        assert [s["name"] for s in run.records[0]["sub_steps"]][-1] == "check_quality" and run.fusion["passes"]


def test_at_the_terminal(workspace):
    full, words = (
        {"WORKBENCH_EMBEDDING_MODEL": "auto"},
        ("fusion", "Who directed Memento?", "--kb", "film", "--strategy"),
    )
    asked = workbench(workspace, *words, "weighted", **full)
    assert asked.returncode == 0 and "Nolan" in asked.stdout
    wrong = workbench(workspace, *words, "best", **full)
    assert wrong.returncode == 1 and "percentile" in wrong.stderr


FOUND = (HERE / "facts.json").read_bytes()
FACTS = json.loads(FOUND)["facts"]
"""As ``FactResult`` of graph_service (graphiti-core 0.29.3) has them."""


@contextlib.contextmanager
def server(reply=None):
    """A Graphiti with these facts, and what it was asked."""
    with scripted_server(reply or Reply(body=FOUND)) as one:
        yield one.url.replace("http://", "http://me:hush-hush@").removesuffix("/v1"), one.requests


@pytest.fixture
def kilns(tmp_path):
    with Workbench.open(noted(tmp_path / "w", {"d1": "Mei Lan works and kilns are hot."}), **CORE) as opened:
        yield opened


async def ask_server(wb, url, timeout_s=30.0, **given):
    tool = graphiti(Settings.load(graphiti_endpoint=url, graphiti_timeout_s=timeout_s))
    return await tool(GraphitiInput(query="Where does Mei Lan work?", **given), wb.knowledge.get("notes"), StepLog())


async def test_facts_come_with_their_times_and_only_those_that_held_then(kilns):
    with server() as (url, asked):
        found = (await ask_server(kilns, url, group_ids=["kilns"])).results
        assert {one["source_id"] for one in found} == {"graphiti:u1", "graphiti:u2"}
        assert asked == [{"query": "Where does Mei Lan work?", "max_facts": 10, "group_ids": ["kilns"]}]
        (before,) = (await ask_server(kilns, url, as_of="2004-12-31T00:00:00Z")).results
        assert before["evidence"] == FACTS[0]["fact"] and before["metadata"]["transient"]
        assert before["metadata"]["invalid_at"].startswith("2005-01-01")
        (after,) = (await ask_server(kilns, url, as_of="2005-01-01T00:00:00Z")).results
        assert after["source_id"] == "graphiti:u2"
        assert (await ask_server(kilns, url, as_of="1990-01-01T00:00:00")).results == []


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (Reply(status=500), "status 500"),
        (Reply(status=302, headers={"Location": "http://127.0.0.1:1/"}), "status 302"),
        (Reply(body=b"<html>"), "not as expected"),
        (Reply(body=b'{"facts": [{"uuid": 3}]}'), "not as expected"),
        (Reply(hang=True), "within 0.5 s; raise WORKBENCH_GRAPHITI_TIMEOUT_S"),
    ],
)
async def test_a_server_that_fails_is_named_without_its_password(kilns, bad, why):
    with server(bad) as (url, _), pytest.raises(ToolError) as told:
        await ask_server(kilns, url, timeout_s=0.5 if bad.hang else 30.0)
    assert why in str(told.value) and "hush-hush" not in str(told.value) and "http://127.0.0.1:" in str(told.value)


@pytest.mark.parametrize("url", ["", "bolt://neo4j:hush-hush@localhost:7687", "localhost:8000", "file:///etc"])
def test_an_address_of_something_else_is_refused(url):
    with pytest.raises(ToolError, match="REST service") as told:
        graphiti(Settings.load(graphiti_endpoint=url))
    assert "hush-hush" not in str(told.value) and ("database behind it" in str(told.value)) is url.startswith("bolt")


@pytest.mark.parametrize(("as_of", "known"), [("", {"graphiti:u1", "graphiti:u2"}), ("2004", {"graphiti:u1"})])
def test_it_is_a_source_of_the_fusion_as_of_the_date_that_is_asked(kilns, as_of, known):
    settings, place = {**CORE, "graphiti_timeout_s": 30.0}, kilns.path
    kilns.close()
    with server() as (url, asked), Workbench.open(place, graphiti_endpoint=url, **settings) as wb:
        run = wb.fusion("Where does Mei Lan work?", kb="notes", as_of=as_of)
        assert run.status == "done" and len(asked) == 1, run.error
        assert {result["source_id"] for result in run.state["merged"]["retrieval_results"]} == {"d1.md#0", *known}
        assert "hush-hush" not in json.dumps(run.to_dict()) + json.dumps([dict(e.parts) for e in run.tape()])
    with Workbench.open(place, graphiti_endpoint="http://127.0.0.1:9", **settings) as wb:
        (record,) = wb.fusion("Where does Mei Lan work?", kb="notes").records
        assert record["status"] == "partial" and "Graphiti" in record["error"]
        assert record["output_summary"]["evidence_count"] == 1


def node(node_id, text="", x=0, y=0, width=200, height=80, **more):
    kind = more.pop("type", "text")
    content = {reading.CONTENT[kind] or "label": text}
    return {"id": node_id, "type": kind, **content, "x": x, "y": y, "width": width, "height": height, **more}


def edge(start, end, label="", **more):
    said = {"label": label} if label else {}
    return {"id": more.pop("id", f"{start}-{end}"), "fromNode": start, "toNode": end, **said, **more}


NOTES = json.loads((HERE / "notes.canvas").read_text("utf-8"))


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "vault" / "notes"
    place.mkdir(parents=True)
    (place / "a.md").write_text("# Truth tables\n\nA truth table lists the value of a formula in every case.")
    (place.parent / "secret.md").write_text("The password is tulip.")
    (place / "notes.canvas").write_text(json.dumps(NOTES, ensure_ascii=False), "utf-8")
    return place


def write(folder, nodes, edges=(), name="notes.canvas"):
    path = folder / name
    path.write_text(json.dumps({"nodes": list(nodes), "edges": list(edges)}), "utf-8")
    return path


def test_nodes_are_documents_and_edges_and_groups_relations(folder, tmp_path):
    with Workbench.open(tmp_path / "ws") as wb:
        assert wb.add_knowledge("math", [folder / "notes.canvas"], lambda *_: None).problems == []
        base = wb.knowledge.get("math")
        related = {
            (r["source"], r["type"], r["target"])
            for entity in base.graph().nodes
            for r in base.around("relations", [entity])
            if r["type"] != "mentions"
        }
        answer = wb.ask("What is a proposition needed for?", kb="math").answer
    doc = "doc:notes.canvas#{}".format
    assert related == {
        (doc("a"), "is_needed_for", doc("b")),
        (doc("b"), "leads_to", doc("c")),  # its arrow is at the beginning
        (doc("d"), "explains", doc("logic")),
        (doc("logic"), "explains", doc("d")),  # it has two arrows
        *((doc(one), "in_group", doc("logic")) for one in "abc"),
        (doc("d"), "in_group", doc("all")),
        (doc("logic"), "in_group", doc("all")),
    }
    assert "Implication" in answer
    with Workbench.open(tmp_path / "ws") as wb:
        wb.add_knowledge("math", [folder / "notes.canvas"], lambda *_: None)
        write(folder, [one for one in NOTES["nodes"] if one["id"] != "b"])
        report = wb.add_knowledge("math", [folder / "notes.canvas"], lambda *_: None)
        assert (report.deleted, report.problems) == (1, [])
        assert wb.knowledge.get("math").around("relations", ["doc:notes.canvas#b"]) == []


def holds(outer, inner) -> bool:
    (a, b, c, d), (e, f, g, h) = ((n["x"], n["y"], n["x"] + n["width"], n["y"] + n["height"]) for n in (outer, inner))
    return a <= e and b <= f and c >= g and d >= h


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 4, st.booleans()), max_size=14))
def test_each_node_is_in_the_smallest_group_that_holds_it_and_no_group_is_around_itself(boxes):
    nodes = [
        node(str(n), "", x, y, w, h, type="group" if group else "text") for n, (x, y, w, h, group) in enumerate(boxes)
    ]
    canvas = reading.Canvas(json.dumps({"nodes": nodes}))
    sizes = {str(n): (w * h, -n) for n, (_, _, w, h, group) in enumerate(boxes) if group}
    for one, inner in canvas.nodes.items():
        larger = [i for i in sizes if i != one and sizes[i] > sizes.get(one, (-1, 0))]
        around = [i for i in larger if holds(canvas.nodes[i], inner)]
        assert canvas.parents.get(one) == min(around, key=sizes.get, default=None)
        assert one not in canvas.around(one)


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("../secret.md", "leads out of the folder"), ("x/../../secret.md", "leads out of the folder"),
        ("..\\secret.md", "leads out of the folder"), ("{}/secret.md", "leads out of the folder"),
        ("file:///etc/passwd", "leads out of the folder"),
        ("a\0.md", "leads out of the folder"), ("out.md", "is a link out of the folder"),
        ("under/secret.md", "is a link out of the folder"), (".hidden.md", "is hidden"),
        ("gone.md", "is not next to the canvas"), ("b" * 5000, "is not next to the canvas"),
        ("pipe.md", "a pipe, a device or a folder"), ("rows.csv", "holds many records"),
        ("notes.canvas", "holds many records"),
    ],
)  # fmt: skip
def test_nothing_outside_the_folder_is_read(folder, file, why):
    (folder / "out.md").symlink_to(folder.parent / "secret.md")
    (folder / "under").symlink_to(folder.parent)
    (folder / ".hidden.md").write_text("The password is tulip.")
    (folder / "rows.csv").write_text("title,text\na,b\n")
    os.mkfifo(folder / "pipe.md")
    loaded = load([write(folder, [node("f", file.format(folder.parent), type="file"), node("g", "here")])])
    [problem] = loaded.problems
    assert why in problem["reason"] and "'f'" in problem["reason"] and ":" in problem["reason"]
    assert len(loaded.documents) == 2 and not any("tulip" in document.text for document in loaded.documents)


def test_links_and_hostile_text_are_only_text(folder, monkeypatch):
    import socket

    monkeypatch.setattr(socket, "socket", None)
    links = ["http://a.b/c", "javascript:alert(1)", "file:///etc/passwd", "data:text/html,<b>", "ftp://x"]
    found = load([write(folder, [node(f"l{n}", url, type="link") for n, url in enumerate(links)])])
    assert [document.url for document in found.documents] == ["http://a.b/c", *[""] * 4]
    assert not found.problems
    text = "\ud800\u202e<script>alert(1)</script>\x00" + "((" * 50_000
    loaded = load([write(folder, [node("a\ud800", text), node("g", text, type="group")], [edge("a\ud800", "g", text)])])
    assert loaded.problems == []
    assert all(document.digest() for document in loaded.documents)  # it can be kept


@pytest.mark.parametrize(
    ("nodes", "edges", "why", "left"),
    [
        ([node("a", "x")], [edge("a", "zz")], "edge 'a-zz' has toNode 'zz', which is no usable node", 1),
        ([node("a", "x"), node("a", "y")], [], "node 'a' is there twice, and the first is kept", 1),
        ([7, node("a", "x")], [], "node number 1 has no id", 1),
        ([node("a" * 500, "x")], [], "more than 400 characters", 0),
        ([{**node("a"), "type": "video"}], [], "has type 'video': use one of text, file, link, group", 0),
        ([node("a", "x", x="1")], [], "has x '1': a number of pixels is needed", 0),
        ([node("a", "x", x=float("nan"))], [], "has x nan", 0),
        ([node("a", "x", color="mauve")], [], "has color 'mauve', which is ignored: use 1 to 6", 1),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_id_and_mend_and_the_rest_is_used(folder, nodes, edges, why, left):
    loaded = load([write(folder, nodes, edges)])
    [problem] = loaded.problems
    assert why in problem["reason"] and problem["line"] == 1
    assert len(loaded.documents) == left


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"[]", "a canvas is {"),
        (b"{", "not JSON: .* at line 1, column 2"),
        (b'{"nodes": {}}', "nodes is {}: it must be a list"),
        (b"[" * 100_000, "make it flatter"),
        (b'{"nodes": [' + b"9" * 5000 + b"]}", "its numbers shorter"),
        ('{"nodes": "集合"}'.encode("gb18030"), "save it as UTF-8"),
    ],
)
def test_a_file_that_is_no_canvas_says_why(folder, raw, why):
    path = folder / "no.canvas"
    path.write_bytes(raw)
    with pytest.raises(Unreadable, match=why):
        reading.Canvas(reading.Canvas.read_text(path))
    assert load([path]).documents == []


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    with Workbench.open(tmp_path_factory.mktemp("desk")) as opened:
        yield opened


def test_a_canvas_is_drawn_with_everything_escaped(desk, folder):
    bad = "<img src=x onerror=alert(1)>\u202e"
    nodes = [
        node("<b>", bad),
        node("g", bad, -9, -9, 900, 300, type="group", color="#abcdef"),
        node("l", bad, 300, type="link"),
    ]
    shown = desk.canvas(write(folder, nodes, [edge("<b>", "l", bad, fromSide="bottom"), edge("l", "zz")]))
    page = shown._repr_html_()
    assert "<img" not in page and "<b>" not in page and "\u202e" not in page
    assert page.count("&lt;img src=x") >= 4 and "border-color:#abcdef" in page and "marker-end" in page
    assert "edge 'l-zz' has toNode 'zz'" in str(shown) and "Nodes: 3" in str(shown)


def found(desk, path, operation, *nodes):
    entries = desk.canvas(path).work(operation, nodes).entries
    return {entry["node"]: entry for entry in entries}


def kinds(entry):
    return {row["text"]: row["kind"] for row in entry["rows"]}


def test_decomposition_and_explanation_go_along_the_edges(desk):
    entry = found(desk, MATHS, "decomposition", "shuang-she")
    rows = entry["shuang-she"]["rows"]
    before = [row["node"] for row in rows if row["kind"] == "presupposes"]
    assert before == ["ji-he", "di-ka-er", "guan-xi", "han-shu", "dan-she", "man-she"]  # 函数 —是一种→ 二元关系
    assert rows[0]["text"] == "什么是“集合”？" and rows[0]["because"].endswith("函数 —性质→ 单射 —用于定义→ 双射")
    calvin = {row["node"]: row["kind"] for row in found(desk, LEAF, "decomposition", "calvin")["calvin"]["rows"]}
    # «depends on» leads to what comes first
    assert calvin["light"] == calvin["rubisco"] == "presupposes" and "sugar" not in calvin
    entry = found(desk, MATHS, "explanation", "shu", "ren-wu-2")
    rows = entry["shu"]["rows"]
    assert "没有回路" in rows[0]["text"] and ("evidence", "shu") in {(row["kind"], row["node"]) for row in rows}
    assert desk.run(entry["shu"]["run_id"]).status == "done"
    assert any("双射有反函数，反函数也是双射" in text for text in kinds(entry["ren-wu-2"]))


def test_without_a_model_nothing_is_judged_and_what_differs_is_shown(desk):
    entries = found(desk, LEAF, "scoring")  # without nodes: the learner's answers
    assert list(entries) == ["answer-light", "answer-calvin"] and entries["answer-light"]["score"] is None
    worked = found(desk, LEAF, "verification", "answer-light", "answer-calvin")
    rows = {row["text"]: row for entry in worked.values() for row in entry["rows"]}
    assert {row["kind"] for row in rows.values()} == {"unjudged"}
    oxygen = rows["The oxygen that is released comes from carbon dioxide."]
    assert oxygen["node"] == "split" and "the oxygen is released" in oxygen["because"], "the best by the ranking"
    assert "words found: 44% · not found: carbon, dioxide" in oxygen["because"]
    assert "not found: never" in rows["The Calvin cycle never uses ATP."]["because"]
    assert kinds(found(desk, LEAF, "verification", "site")["site"]) == {}


def test_the_model_of_the_checker_judges(desk, tmp_path):
    verdicts = ["supported", "unsupported", "partly"]
    reply = json.dumps({"sentences": [{"sentence": n, "verdict": v} for n, v in enumerate(verdicts, 1)]})
    with Workbench.open(tmp_path / "w", models={"checker": FakeListChatModel(responses=[reply])}) as wb:
        entry = found(wb, LEAF, "verification", "answer-light")["answer-light"]
        assert sorted(row["kind"] for row in entry["rows"]) == sorted(verdicts) and entry["score"] == 0.5
        assert entry["rows"][0]["kind"] == "unsupported", "the worst comes first"
        copied = wb.canvas(LEAF).work("verification", ["answer-light"]).copy()
        assert {n["color"] for i, n in copied.nodes.items() if i.startswith("wb-text")} == {"1"}
        scored = found(wb, LEAF, "scoring", "answer-calvin")["answer-calvin"]
        assert [row["kind"] for row in scored["rows"]] == ["missing", "partly", "covered"]
    with Workbench.open(tmp_path / "mute", models={"checker": FakeListChatModel(responses=["no"])}) as wb:
        entry = found(wb, LEAF, "verification", "answer-light")["answer-light"]
        assert {row["kind"] for row in entry["rows"]} == {"unjudged"}
        assert entry["note"].startswith("The checker's model gave no verdict: ")


def test_a_canvas_that_is_worked_on_makes_no_base_that_lasts(folder, tmp_path):
    (tmp_path / "kiln.md").write_text("# Kiln\n\nThe kiln was built in 1911.")
    with Workbench.open(tmp_path / "w", embedding_model="hashing") as wb:
        wb.add_knowledge("site", [tmp_path / "kiln.md"])
        canvas = wb.canvas(folder / "notes.canvas")
        for operation in ("verification", "explanation"):
            assert canvas.work(operation, ["a"]).entries
            assert wb.knowledge.names() == ["site"] and not list((wb.path / "knowledge").glob("canvas-*"))
        with pytest.raises(reading.CanvasError):
            canvas.work("review", ["nobody"])
        assert wb.knowledge.names() == ["site"]
        run = wb.ask("What is an implication?")
        assert run.state["kb_prefix"] == "site", "no other question goes there"
        wb.add_knowledge("board", [folder / "notes.canvas"])
        assert canvas.work("explanation", ["a"], "board").kb == "board" and "board" in wb.knowledge.names()


def test_a_copy_keeps_what_stands_there(desk, folder):
    before, copy = LEAF.read_bytes(), folder / "copy.canvas"
    worked = desk.canvas(LEAF).work("verification", ["answer-light", "answer-calvin"])
    written = worked.save(copy)
    assert LEAF.read_bytes() == before and not written.problems
    old, new = desk.canvas(LEAF), [i for i in written.nodes if i.startswith("wb-text-")]
    assert {i: n for i, n in written.nodes.items() if i not in new} == old.nodes and len(new) == 2
    assert "Verification" in written.nodes[new[0]]["text"] and "words found: 100%" in written.nodes[new[1]]["text"]
    edges = {(e["fromNode"], e["toNode"]): e["label"] for i, e in written.edges.items() if i not in old.edges}
    assert edges["answer-light", new[0]] == "Verification" and edges["calvin", new[1]]
    assert worked.save(copy).raw == written.raw  # the same once more
    for wrong, why in ((folder / "there.txt", "end it in .canvas"), (copy / "x.canvas", "Not a directory")):
        with pytest.raises(reading.CanvasError, match=why):
            worked.save(wrong)
    with pytest.raises(reading.CanvasError, match="is there already"):
        desk.canvas(LEAF).work("scoring").save(copy)
    odd = [node("a", "Tea\nTea is a drink."), {"id": "wb-text-7", "type": "odd", "mine": "\ud800"}, 1e3]
    worked = desk.canvas(write(folder, odd)).work("review", ["a"])
    copy = json.loads(worked.save(folder / "second.canvas").path.read_text("utf-8"))
    assert copy["nodes"][:3] == odd and [one["id"] for one in copy["nodes"][3:]] == ["wb-text-8"]
    (folder / "notes.canvas").write_text(json.dumps({"nodes": odd[:1], "mine": 7}).replace(": 7}", ": 1e400}"))
    with pytest.raises(reading.CanvasError, match="too large"):
        desk.canvas(folder / "notes.canvas").work("review", ["a"]).save(folder / "big.canvas")


def test_canvas_from_the_terminal(workspace, tmp_path):
    def run(*words):
        return workbench(workspace, "canvas", *map(str, words), WORKBENCH_EMBEDDING_MODEL="auto")

    assert "Calvin cycle" in run(LEAF).stdout and json.loads(run(LEAF, "--json").stdout)["problems"] == []
    copy = tmp_path / "copy.canvas"
    done = run(LEAF, "--operation", "scoring", "--nodes", "answer-light", "--write", copy)
    assert done.returncode == 0 and "not judged" in done.stdout and "copy.canvas" in done.stderr
    assert "Scoring" in copy.read_text("utf-8")
    done = run(LEAF, "--operation", "decomposition", "--nodes", "calvin, light", "--json", "--kb", "film")
    assert [one["node"] for one in json.loads(done.stdout)["results"]] == ["calvin", "light"]
    assert run(LEAF, "--write", copy).returncode == 2
    assert run(tmp_path / "no.canvas").returncode == 1
