"""The retrieval graph of a workspace as a LangGraph graph, to stand as a node in any other."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from workbench.errors import RunError
from workbench.tools.langchain import as_document


class RetrievalMessages(TypedDict, total=False):
    """What the graph reads and writes: a query, or else the last message; and documents, best first."""

    query: str
    messages: Annotated[list[AnyMessage], add_messages]
    documents: list[Document]


def retrieval_graph(wb: Any, kb: str, worker: str = "hybrid_agent") -> Any:
    """Return a compiled graph that plans, executes, reflects and merges over a knowledge base.

    It reads ``query`` (or the last of ``messages``) and writes ``documents``: LangChain documents with ``id``,
    ``doc_id``, ``title`` and ``score``, best first. Models are asked where the settings name some.

    Args:
        kb: the knowledge base.
        worker: the agent type that searches.

    Raises:
        UnknownKnowledge: lists the known bases.
    """
    agent, corpus = wb.agents.get(f"{kb}:{worker}:retrieve_only"), wb.knowledge.get(kb).fingerprint()

    async def retrieve(state: RetrievalMessages) -> RetrievalMessages:
        messages = state.get("messages") or []
        query = state.get("query") or (messages[-1].text if messages else "")
        if not query:
            raise RunError("Nothing is asked. Give a `query`, or `messages`.")
        state_found, _ = await agent.walk(str(query), corpus)
        return {"documents": [as_document(result) for result in state_found["merged"]["retrieval_results"]]}

    graph = StateGraph(RetrievalMessages).add_node("retrieve", retrieve).add_edge(START, "retrieve")
    return graph.compile(name=f"retrieval {kb}")
