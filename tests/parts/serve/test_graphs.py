"""The factories of langgraph.json: as a LangGraph server loads them, and by its own client from the real server."""

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from tests.servers import free_port, until
from tests.shelves import noted
from workbench.errors import InvalidAnswer, RunError, WorkbenchError

CORE = {"WORKBENCH_EMBEDDING_MODEL": "hashing", "WORKBENCH_RERANK_MODEL": "none"}
QUESTION = "Who built the Aldermoor kiln?"
ANSWER = "The Aldermoor kiln was built in 1993 by Rhea Moss [1]."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kiln = "The Aldermoor kiln was built in 1993 by Rhea Moss."
    mill = "The Brackwater mill was sold in 1950 to Tom Field."
    return noted(tmp_path / "w", {"Kiln": kiln, "Mill": mill})


@pytest.fixture
def served(project: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module as a server loads it: by its file."""
    for name, value in {**CORE, "WORKBENCH_WORKSPACE": str(folder)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LANGGRAPH_ALLOW_BLOCKING", "false")
    path = json.loads((project / "langgraph.json").read_text())["graphs"]["conversation"].partition(":")[0]
    spec = importlib.util.spec_from_file_location("served", project / path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "served", module)
    spec.loader.exec_module(module)
    yield module
    for wb in module._workspaces.values():
        wb.close()


def person(text: Any) -> dict[str, Any]:
    return {"messages": [{"role": "human", "content": text}]}


async def test_a_copy_pauses_answers_and_goes_on(served) -> None:
    graph = (await served.conversation()).copy({"checkpointer": InMemorySaver(), "name": "conversation"})
    assert graph.name == "conversation"
    config = {"configurable": {"thread_id": "t1"}}
    paused = await graph.ainvoke({"message": QUESTION, "kb_prefix": "notes", "review": ["plan"]}, config)
    assert paused["__interrupt__"][0].value["point"] == "plan"
    done = await graph.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    assert done["answer"] == ANSWER and done["citations"]
    again = await graph.ainvoke({"message": "When was it built?", "kb_prefix": "notes"}, config)
    assert again["message"] == "When was it built?" and "1993" in again["answer"]
    assert len(again["records"]) == len(again["plan"]["steps"]), "nothing of the first question"
    assert [message.type for message in again["messages"]] == ["human", "ai", "human", "ai"]


@pytest.mark.parametrize(
    "resume",
    ["approve", "accept", [{"type": "accept", "args": None}], {"type": "accept"}, {"decisions": [{"type": "approve"}]}],
    ids=str,
)
async def test_a_pause_is_answered_in_each_shape(served, resume) -> None:
    graph = (await served.conversation()).copy({"checkpointer": InMemorySaver()})
    config = {"configurable": {"thread_id": "t"}}
    await graph.ainvoke({**person(QUESTION), "review": ["reflect"]}, config, context={"kb_prefix": "notes"})
    assert (await graph.ainvoke(Command(resume=resume), config))["answer"] == ANSWER


@pytest.mark.parametrize(
    ("given", "context", "configurable"),
    [
        (person(QUESTION), {"kb_prefix": "notes"}, {}),
        (person(QUESTION), None, {"kb_prefix": "notes"}),
        (person([{"type": "text", "text": QUESTION}]), {"requested_kb_prefixes": ["notes"]}, {}),
        ({**person(QUESTION), "requested_kb_prefix": "notes", "message": "", "plan": None}, None, {}),
    ],
)
async def test_what_is_asked_comes_from_messages_input_context_or_configurable(served, given, context, configurable):
    state = await (await served.conversation()).ainvoke(given, {"configurable": configurable}, context=context)
    assert state["answer"] == ANSWER and state["route_decision"]["method"] == "override"


@pytest.mark.parametrize(
    ("given", "kb", "worker"),
    [
        ({"message": QUESTION}, "notes", "notes:fusion_agent:retrieve_only"),
        (person(QUESTION), "notes", "notes:fusion_agent:retrieve_only"),
        ({"message": "Who?", "requested_kb_prefixes": ["general"]}, "general", ""),
        ({"message": "你好"}, "general", ""),
    ],
)
async def test_the_router_alone(served, given, kb, worker) -> None:
    state = await (await served.router()).ainvoke(given)
    assert (state["kb_prefix"], state["worker_name"]) == (kb, worker)
    assert state["route_decision"]["worker_name"] == worker and state["route_decision"]["reason"]


async def test_a_report_is_written_and_leaving_a_stream_ends_its_work(served, monkeypatch) -> None:
    question = {"message": "Aldermoor kiln: builders", "kb_prefix": "notes", "report": {"report_type": "short"}}
    assert "## References" in (await (await served.conversation()).ainvoke(question))["answer"]
    began, ended = threading.Event(), threading.Event()

    async def never_end(*_: Any) -> None:
        began.set()
        asyncio.current_task().add_done_callback(lambda _: ended.set())
        await asyncio.sleep(60)

    monkeypatch.setattr("workbench.graphs.execute.attempt", never_end)
    graph = await served.conversation()
    stream = graph.astream({"message": QUESTION, "kb_prefix": "notes"}, stream_mode="updates")
    assert {"route", "recall"} & set(await anext(stream))
    assert await asyncio.to_thread(began.wait, 20)
    await stream.aclose()
    assert await asyncio.to_thread(ended.wait, 20)


@pytest.mark.parametrize(
    ("graph", "given", "says"),
    [
        ("conversation", {}, "Nothing is asked"),
        ("conversation", {"message": "x", "colour": 1}, "'colour'.*Known: kb_prefix"),
        ("conversation", {"message": "x", "report": {"colour": 1}}, "'report.colour'. Known: report_type"),
        ("retrieval", {"query": "x"}, "Which knowledge base.*notes"),
        ("fusion", {"query": "x", "operation": "dance"}, "no operation 'dance'"),
    ],
)
async def test_what_cannot_be_asked_is_refused_with_the_reason(served, graph, given, says) -> None:
    with pytest.raises((RunError, WorkbenchError, InvalidAnswer), match=f"(?s){says}"):
        await (await getattr(served, graph)()).ainvoke(given)


@pytest.mark.parametrize("asked", [{"query": QUESTION}, person(QUESTION)], ids=["query", "messages"])
async def test_retrieval_and_fusion_alone(served, asked, monkeypatch) -> None:
    retrieved = await (await served.retrieval()).ainvoke(asked, context={"kb_prefix": "notes"})
    assert "Rhea Moss" in retrieved["merged"]["context"]
    graph = await served.fusion()
    options = {"configurable": {"kb_prefix": "notes", "top_k": 1}}
    for found in (await graph.ainvoke(asked, options), await graph.ainvoke(asked, context=options["configurable"])):
        assert [one["metadata"]["title"] for one in found["reranked_results"]] == ["Kiln"]
    assert set(graph.get_context_jsonschema()["properties"]) >= {"kb_prefix", "top_k", "fusion_strategy"}


@pytest.fixture
def server(project: Path, folder: Path, tmp_path: Path) -> Iterator[str]:
    if not (importlib.util.find_spec("langgraph_cli") and importlib.util.find_spec("langgraph_api")):
        pytest.skip("needs langgraph-cli[inmem], of the extra `test`")
    config = json.loads((project / "langgraph.json").read_text())
    graphs = {name: str(project / path) for name, path in config["graphs"].items()}
    (tmp_path / "langgraph.json").write_text(json.dumps({**config, "graphs": graphs}))
    url = f"http://127.0.0.1:{(port := free_port())}"
    options = f"dev --no-browser --no-reload --port {port}".split()
    command = [sys.executable, "-c", "from langgraph_cli.cli import cli; cli()", *options]
    own = {"WORKBENCH_WORKSPACE": str(folder), "LANGSMITH_TRACING": "false", "PYTHONPATH": str(project)}
    environment = {**os.environ, **CORE, **own, "LANGGRAPH_NO_VERSION_CHECK": "true"}
    log = tmp_path / "log"
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=out, stderr=out)

    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        with suppress(httpx.HTTPError):
            return httpx.get(f"{url}/ok", timeout=1).is_success
        return False

    try:
        until(answers)
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(15)
        process.kill()
        process.wait()


@pytest.mark.slow
async def test_the_real_server_by_its_own_client(server) -> None:
    from langgraph_sdk import get_client

    client = get_client(url=server)
    of = {one["graph_id"]: one["assistant_id"] for one in await client.assistants.search()}
    graphs = {name: await client.assistants.get_graph(one, xray=True) for name, one in of.items()}
    drawn = {name: {node["id"] for node in graph["nodes"]} for name, graph in graphs.items()}
    assert set(drawn) == {"conversation", "retrieval", "fusion", "router"}
    assert "retrieval:reflector" in drawn["conversation"] and "check_quality" in drawn["fusion"]

    thread, asked = (await client.threads.create())["thread_id"], {"kb_prefix": "notes"}
    first = {**person(QUESTION), "review": ["reflect"]}
    paused = await client.runs.wait(thread, "conversation", input=first, context=asked)
    assert paused["__interrupt__"][0]["value"]["point"] == "reflect"
    assert (await client.threads.get(thread))["status"] == "interrupted"
    resume = {"resume": {"decisions": [{"type": "approve"}]}}
    done = await client.runs.wait(thread, "conversation", command=resume, context=asked)
    assert done["answer"] == ANSWER and done["messages"][-1]["content"] == ANSWER
    again = await client.runs.wait(thread, "conversation", input=person("When was it built?"), context=asked)
    assert "1993" in again["answer"] and len(again["messages"]) == 4
    for graph in ("retrieval", "fusion"):
        found = await client.runs.wait(None, graph, input=person(QUESTION), config={"configurable": asked})
        assert "Rhea Moss" in json.dumps(found)
    modes = {"stream_mode": ["updates"], "stream_subgraphs": True}
    stream = client.runs.stream(None, "conversation", input=person(QUESTION), context=asked, **modes)
    parts = [part.event async for part in stream]
    assert any(event.startswith("updates|retrieval") for event in parts) and "error" not in parts, parts
