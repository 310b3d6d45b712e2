"""The retrieval graph of a workspace as a LangGraph graph, to stand as a node in any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, cast

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from typing_extensions import TypedDict

from workbench.errors import RunError
from workbench.graphs.retrieval import build_retrieval
from workbench.ports import RunLog
from workbench.records.store import new_run_id
from workbench.runs.asking import checked_points
from workbench.state import ExecutionRecord, Json, RetrievalState
from workbench.tools.langchain import as_document


class RetrievalMessages(TypedDict, total=False):
    """What the graph reads and writes: a query, or else the last message; and documents, best first."""

    query: str
    messages: Annotated[list[AnyMessage], add_messages]
    documents: list[Document]


class _State(RetrievalState, RetrievalMessages):
    """The state within: that of every retrieval, and what comes and goes in messages."""


class StoreLog(RunLog):
    """What steps have found, in the store of a LangGraph graph."""

    def __init__(self, store: BaseStore):
        self._store = store

    def save_record(
        self, run_id: str, record: ExecutionRecord, body: Mapping[str, Any] | None
    ) -> None:
        """Store the results of a step; its record is in the state."""
        if body is not None:
            self._store.put((run_id,), str(record["raw_output_ref"]), dict(body))

    def body(self, run_id: str, ref: str) -> Json:
        """Return what ``raw_output_ref`` names."""
        return cast(Any, self._store.get((run_id,), ref)).value


def retrieval_graph(
    wb: Any, kb: str, worker: str = "hybrid_agent", *, review: str | Iterable[str] = ()
) -> Any:
    """Return a compiled graph that plans, executes, reflects and merges over a knowledge base.

    It reads ``query`` (or the last of ``messages``) and writes ``documents``: LangChain documents with ``id``,
    ``doc_id``, ``title`` and ``score``, best first. Models are asked where the settings name some.

    Args:
        kb: the knowledge base.
        worker: the agent type that searches.
        review: where it asks a person: ``plan``, ``step``, ``reflect``, or several.

    Raises:
        UnknownKnowledge: lists the known bases.
    """
    agent = wb.agents.get(f"{kb}:{worker}:retrieve_only")
    memory = InMemoryStore()
    points = checked_points(review)
    corpus = wb.knowledge.get(kb).fingerprint()

    def bound(node: Any) -> Any:
        # the corpus is a default, so that it is a part of the version of the node's code
        async def call(state: Any, runtime: Runtime, corpus: str = corpus) -> Any:
            ports = replace(agent.context, runs=StoreLog(runtime.store or memory))
            return await node(state, runtime.override(context=ports))

        call.__name__ = node.__name__
        return call

    async def begin(state: RetrievalMessages) -> Any:
        messages = state.get("messages") or []
        query = state.get("query") or (messages[-1].text if messages else "")
        if not query:
            raise RunError("Nothing is asked. Give a `query`, or `messages`.")
        return {**agent.input(str(query), "", new_run_id()), "review": points}

    async def end(state: RetrievalState) -> Any:
        for item in memory.search((state["run_id"],)):
            memory.delete(item.namespace, item.key)
        return {
            "documents": [as_document(result) for result in state["merged"]["retrieval_results"]]
        }

    graph = StateGraph(_State, input_schema=RetrievalMessages, output_schema=RetrievalMessages)
    graph.add_node("begin", begin).add_node(
        "retrieve", build_retrieval(bound).compile()
    ).add_node("end", end)
    graph.add_edge(START, "begin").add_edge("begin", "retrieve").add_edge("retrieve", "end")
    return graph.compile(name=f"retrieval {kb}")
