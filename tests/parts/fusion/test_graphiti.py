"""The tool for a Graphiti server, against one on loopback that answers in the shapes of its REST service."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from tests.servers import serving
from tests.shelves import CORE, noted
from workbench.errors import ToolError
from workbench.parts.fusion.graphiti import GraphitiInput, graphiti
from workbench.plans import Plan, PlanStep
from workbench.session import Workbench
from workbench.settings import Settings
from workbench.tools.tool import StepLog


def fact(number: int, text: str, begun: str | None = None, ended: str | None = None) -> dict:
    """As ``FactResult`` of graph_service (graphiti-core 0.29.3) has it."""
    ends = {"source_node_uuid": "a", "target_node_uuid": "b", "episodes": []}
    dates = {"valid_at": begun, "invalid_at": ended, "created_at": "2024-05-01T00:00:00Z", "expired_at": None}
    return {"uuid": f"u{number}", "name": "WORKS_AT", "fact": text, **dates, **ends}


FACTS = [
    fact(1, "Mei Lan works at the east kiln.", "1999-01-01T00:00:00Z", "2005-01-01T00:00:00Z"),
    fact(2, "Mei Lan works at the west kiln.", "2005-01-01T00:00:00+00:00"),
]


@contextlib.contextmanager
def server(status=200, body=None, headers=(), hang=False):
    asked, closing = [], threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):
            asked.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            if hang:
                closing.wait(30)
                return
            told = json.dumps({"facts": FACTS}).encode() if body is None else body
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(told)

    with serving(Handler) as one:
        try:
            yield f"http://me:hush-hush@127.0.0.1:{one.server_port}", asked
        finally:
            closing.set()


@pytest.fixture
def wb(tmp_path):
    with Workbench.open(noted(tmp_path / "w", {"d1": "Mei Lan works and kilns are hot."}), **CORE) as opened:
        yield opened


async def ask(wb, url, timeout_s=30.0, **given):
    tool = graphiti(Settings.load(graphiti_endpoint=url, graphiti_timeout_s=timeout_s))
    return await tool(GraphitiInput(query="Where does Mei Lan work?", **given), wb.knowledge.get("notes"), StepLog())


async def test_facts_come_with_their_times_and_only_those_that_held_then(wb):
    with server() as (url, asked):
        found = (await ask(wb, url, group_ids=["kilns"])).results
        assert {one["source_id"] for one in found} == {"graphiti:u1", "graphiti:u2"}
        assert asked == [("/search", {"query": "Where does Mei Lan work?", "max_facts": 10, "group_ids": ["kilns"]})]
        (before,) = (await ask(wb, url, as_of="2004-12-31T00:00:00Z")).results
        assert before["evidence"] == FACTS[0]["fact"] and before["metadata"]["transient"]
        assert before["metadata"]["invalid_at"].startswith("2005-01-01")
        (after,) = (await ask(wb, url, as_of="2005-01-01T00:00:00Z")).results
        assert after["source_id"] == "graphiti:u2"
        assert (await ask(wb, url, as_of="1990-01-01T00:00:00")).results == []


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"status": 500}, "status 500"),
        ({"status": 302, "headers": [("Location", "http://127.0.0.1:1/")]}, "status 302"),
        ({"body": b"<html>"}, "not as expected"),
        ({"body": b'{"facts": [{"uuid": 3}]}'}, "not as expected"),
        ({"hang": True}, "within 0.5 s; raise WORKBENCH_GRAPHITI_TIMEOUT_S"),
    ],
)
async def test_a_server_that_fails_is_named_without_its_password(wb, bad, why):
    with server(**bad) as (url, _), pytest.raises(ToolError) as told:
        await ask(wb, url, timeout_s=0.5 if "hang" in bad else 30.0)
    assert why in str(told.value) and "hush-hush" not in str(told.value) and "http://127.0.0.1:" in str(told.value)


@pytest.mark.parametrize("url", ["", "bolt://neo4j:hush-hush@localhost:7687", "localhost:8000", "file:///etc"])
def test_an_address_of_something_else_is_refused(url):
    with pytest.raises(ToolError, match="REST service") as told:
        graphiti(Settings.load(graphiti_endpoint=url))
    assert "hush-hush" not in str(told.value) and ("database behind it" in str(told.value)) is url.startswith("bolt")


def test_a_run_asks_once_and_its_replay_nobody(wb):
    with server() as (url, asked):
        wb.tools.register(graphiti(Settings.load(graphiti_endpoint=url)), intents=["qa"])

        async def planner(query, decision, knowledge, tools):
            step = PlanStep(step_id="s1", objective="look", tool="graphiti", tool_input={"query": query})
            return Plan(steps=[step])

        wb.register("planner", planner)
        run = wb.ask("Where does Mei Lan work?", kb="notes")
        assert run.status == "done" and len(asked) == 1, run.error
        assert "graphiti:u2" in json.dumps(run.to_dict())
    assert wb.replay(run.run_id).answer == run.answer and len(asked) == 1
    assert "hush-hush" not in json.dumps(run.to_dict())


@pytest.mark.parametrize(("as_of", "known"), [("", {"graphiti:u1", "graphiti:u2"}), ("2004", {"graphiti:u1"})])
def test_it_is_a_source_of_the_fusion_as_of_the_date_that_is_asked(wb, as_of, known):
    settings, place = {**CORE, "graphiti_timeout_s": 30.0}, wb.path
    wb.close()
    with server() as (url, asked), Workbench.open(place, graphiti_endpoint=url, **settings) as wb:
        run = wb.fusion("Where does Mei Lan work?", kb="notes", as_of=as_of)
        assert run.status == "done" and len(asked) == 1, run.error
        assert {result["source_id"] for result in run.state["merged"]["retrieval_results"]} == {"d1.md#0", *known}
        assert "hush-hush" not in json.dumps(run.to_dict()) + json.dumps([dict(e.parts) for e in run.tape()])
    with Workbench.open(place, graphiti_endpoint="http://127.0.0.1:9", **settings) as wb:
        (record,) = wb.fusion("Where does Mei Lan work?", kb="notes").records
        assert record["status"] == "partial" and "Graphiti" in record["error"]
        assert record["output_summary"]["evidence_count"] == 1
