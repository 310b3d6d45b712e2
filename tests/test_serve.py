"""The factories of langgraph.json: what a LangGraph server would load, with its own checkpointer and no context."""

from __future__ import annotations

import importlib.util
import json

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command


def factory(project, graph: str):
    path, _, name = json.loads((project / "langgraph.json").read_text())["graphs"][graph].partition(":")
    spec = importlib.util.spec_from_file_location("served", project / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.fixture(autouse=True)
def served(workspace, monkeypatch):
    monkeypatch.setenv("WORKBENCH_WORKSPACE", str(workspace))


async def test_the_conversation_graph_pauses_and_answers(project):
    async with factory(project, "conversation")() as graph:
        graph.checkpointer = InMemorySaver()
        config = {"configurable": {"thread_id": "t1"}}
        given = {"message": "喜宴哪一年上映？", "requested_kb_prefixes": ["film"], "review": ["plan"]}
        paused = await graph.ainvoke(given, config)
        assert paused["__interrupt__"][0].value["point"] == "plan"
        done = await graph.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
        assert "1993" in done["answer"] and done["citations"]
        again = await graph.ainvoke({"message": "谁导演的？", "requested_kb_prefixes": ["film"]}, config)
        assert again["message"] == "谁导演的？" and "李安" in again["answer"]
        assert len(again["records"]) == len(again["plan"]["steps"]), "nothing of the first question"


async def test_the_retrieval_graph_alone(project):
    async with factory(project, "retrieval")() as graph:
        state = await graph.ainvoke({"query": "Who directed Memento?", "kb_prefix": "film"})
        assert "Nolan" in state["merged"]["context"]


@pytest.mark.parametrize(
    ("given", "kb", "worker"),
    [
        ({"message": "喜宴哪一年上映？"}, "film", "film:fusion_agent:retrieve_only"),
        ({"message": "Who?", "worker_name": "film:graph_agent"}, "film", "film:graph_agent:retrieve_only"),
        ({"message": "Who?", "requested_kb_prefixes": ["general"]}, "general", ""),
        ({"message": "你好"}, "general", ""),
    ],
)
async def test_the_router_alone(project, given, kb, worker):
    async with factory(project, "router")() as graph:
        state = await graph.ainvoke(given)
        assert (state["kb_prefix"], state["worker_name"]) == (kb, worker)
        assert state["route_decision"]["worker_name"] == worker and state["route_decision"]["reason"]


async def test_the_fusion_graph_with_the_settings_of_the_workspace(project, monkeypatch):
    monkeypatch.setenv("WORKBENCH_FUSION_STRATEGY", "cascade")
    async with factory(project, "fusion")() as graph:
        state = await graph.ainvoke({"query": "Memento"}, {"configurable": {"kb_prefix": "film"}})
        assert state["reranked_results"][0]["metadata"]["title"] == "Memento" and not state["vector_results"]
