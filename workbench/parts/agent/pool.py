"""Retrieve-only agents by worker name: the retrieval graph without a person, a conversation or a checkpoint.

They offer ``retrieve_with_trace`` and nothing that chats. Agents are stateless, so one of a name serves every session.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from contextlib import closing
from dataclasses import replace
from functools import cached_property
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
from workbench.graphs.route import decide, parse_worker_name
from workbench.ports import Context, RunLog
from workbench.records.store import RunStore, new_run_id
from workbench.runs.asking import checked_points
from workbench.state import Data, ExecutionRecord, Json, RetrievalState, pick
from workbench.tools.langchain import as_document

Call = Callable[[Coroutine[Any, Any, Any]], Any]


class RetrieveAgent:
    """One worker: a knowledge base and a way of searching it.

    Args:
        worker_name: ``{kb_prefix}:{agent_type}:{agent_mode}``.
        context: the ports.
        call: runs a coroutine for a caller that has no loop.

    Raises:
        ValueError: the name is not a worker's, or names no knowledge base.
    """

    def __init__(self, worker_name: str, context: Context, call: Call):
        self.worker = parse_worker_name(worker_name)
        if not self.worker.kb_prefix:
            raise ValueError(
                f"Worker {worker_name!r} names no knowledge base, so there is nothing to retrieve from."
            )
        self.worker_name = worker_name
        self.context = context
        self._call = call

    def retrieve_with_trace(self, query: str, thread_id: str) -> Json:
        """Search, and say how: ``{"context", "retrieval_results", "reference", "execution_log"}``.

        Args:
            query: the question.
            thread_id: the session; it is written into the trace and changes nothing else.
        """
        state, log = self._call(self.walk(query, thread_id))
        trace = pick(state["merged"], "context", "retrieval_results", "reference")
        return {**trace, "execution_log": [{**entry, "thread_id": thread_id} for entry in log]}

    async def walk(self, query: str, thread_id: str) -> tuple[Json, list[Json]]:
        """Return the last state of the retrieval graph over a question, and the log of its nodes."""
        run_id = new_run_id()
        with closing(RunStore(":memory:")) as runs:
            state = await self._graph.ainvoke(
                self.input(query, thread_id, run_id), context=replace(self.context, runs=runs)
            )
            log = [
                event["execution_log"]
                for event in runs.events(run_id)
                if "execution_log" in event
            ]
        return state, log

    @cached_property
    def _graph(self) -> Any:
        return build_retrieval().compile()

    def input(self, query: str, thread_id: str, run_id: str) -> RetrievalState:
        """Return what the retrieval graph begins with."""
        kb = self.worker.kb_prefix
        context = self.context
        decision = decide(
            query, [], self.worker_name, context.knowledge, today=context.today
        ).decision
        return RetrievalState(
            run_id=run_id,
            query=query,
            kb_prefix=kb,
            kb_prefixes=[kb],
            route_decision=decision,
            resolved_agent_type=self.worker.agent_type,
            session_id=thread_id,
            debug=True,
            review=[],
            thresholds={},
            iteration=1,
        )


class AgentPool:
    """Agents by their whole worker name, ``{kb}:{agent}:{mode}``; the session is never part of it."""

    def __init__(self, context: Callable[[], Context], call: Call):
        self._context = context
        self._call = call
        self._agents: dict[str, RetrieveAgent] = {}

    def get(self, worker_name: str) -> RetrieveAgent:
        """Return the agent of that name, made when first asked for.

        Raises:
            ValueError: the name is not a worker's.
            UnknownKnowledge: there is no such knowledge base.
        """
        key = ":".join(parse_worker_name(worker_name))
        if key not in self._agents:
            agent = RetrieveAgent(key, self._context(), self._call)
            self._context().knowledge.get(agent.worker.kb_prefix)
            self._agents[key] = agent
        return self._agents[key]


@property  # type: ignore[misc]
def agents(wb: Any) -> AgentPool:
    """Return retrieve-only agents by worker name, made when first asked for."""
    return vars(wb).setdefault("_agents", AgentPool(wb.ports, wb._work.loop.call))


# as a LangGraph graph, to stand as a node in any other


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

    def save_record(self, run_id: str, record: ExecutionRecord, body: Data | None) -> None:
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
