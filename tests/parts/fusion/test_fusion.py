"""The fusion graph: two sources at once, five strategies, asked again where that falls short, the best kept."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from tests import forked
from tests.servers import Reply, scripted_server
from tests.shelves import CORE, noted, workbench
from workbench.errors import ToolError, WorkbenchError
from workbench.parts.fusion import graph as fusion
from workbench.parts.fusion.graph import build_fusion, read_config
from workbench.parts.fusion.graphiti import GraphitiInput, graphiti
from workbench.parts.fusion.strategies import STRATEGIES
from workbench.ports import Context
from workbench.runs.recording import live_steps
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
    monkeypatch.setattr(fusion, "_retrieve", retrieve)
    cascade = await ask(wb, "Memento", fusion_strategy="cascade")
    assert cascade["reranked_results"][0]["metadata"]["title"] == "Memento"


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
        ({"fusion_strategy": "best"}, "rrf, weighted, cascade"),
        ({"quality_threshold": 2}, "quality_threshold cannot be 2"),
        ({"graphiti_endpoint": "bolt://localhost:7687"}, r"graphiti_endpoint cannot be 'bolt.*REST service"),
        ({"lancedb_path": "~/.lancedb"}, "WORKBENCH_VECTOR_STORE=lancedb and WORKBENCH_LANCEDB_PATH"),
    ],
)
def test_a_wrong_option_is_named(options, told):
    with pytest.raises(WorkbenchError, match=told):
        read_config({"configurable": options})


CANVASES = Path(__file__).parents[3] / "data/canvases"


async def ask_elsewhere(wb: Any, given: dict[str, Any], **options: Any) -> dict[str, Any]:
    config: Any = {"configurable": {"thread_id": uuid.uuid4().hex, **options}}
    return await fusion.build_canvas_rag_graph().ainvoke({"session_id": "s", **given}, config, context=wb.ports())


async def test_scenario_1_found_at_once_on_a_canvas(wb):
    wb.add_knowledge("math", [CANVASES / "离散数学.canvas"], lambda *_: None)
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
    assert state["asked"] == [{"pass": 1, "query": "Memento"}] and state["retry_count"] == 0
    assert {hit["ask"] for hit in state["vector_results"]} == {0}
    assert {line["pass"] for line in state["log"]} == {1} and len(state["passes"]) == 1
    assert state["reranked_results"] == (await ask(wb, "Memento", fusion_strategy="cascade"))["reranked_results"]


@pytest.fixture(scope="module")
def canvases(tmp_path_factory):
    """A folder with two indexed canvases."""
    folder = tmp_path_factory.mktemp("canvases")
    with Workbench.open(folder) as opened:
        opened.add_knowledge("math", [CANVASES / "离散数学.canvas"], lambda *_: None)
        opened.add_knowledge("leaves", [CANVASES / "photosynthesis.canvas"], lambda *_: None)
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
    run = math.fusion(canvas=CANVASES / "离散数学.canvas", operation=operation, nodes=nodes)
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


def fact(number: int, text: str, begun: str | None = None, ended: str | None = None) -> dict:
    """As ``FactResult`` of graph_service (graphiti-core 0.29.3) has it."""
    ends = {"source_node_uuid": "a", "target_node_uuid": "b", "episodes": []}
    dates = {"valid_at": begun, "invalid_at": ended, "created_at": "2024-05-01T00:00:00Z", "expired_at": None}
    return {"uuid": f"u{number}", "name": "WORKS_AT", "fact": text, **dates, **ends}


FACTS = [
    fact(1, "Mei Lan works at the east kiln.", "1999-01-01T00:00:00Z", "2005-01-01T00:00:00Z"),
    fact(2, "Mei Lan works at the west kiln.", "2005-01-01T00:00:00+00:00"),
]


FOUND = json.dumps({"facts": FACTS}).encode()


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
