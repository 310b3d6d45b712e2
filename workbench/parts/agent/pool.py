"""Retrieve-only agents by worker name: the retrieval graph without a person, a conversation or a checkpoint.

They offer ``retrieve_with_trace`` and nothing that chats. Agents are stateless, so one of a name serves every session.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import cached_property
from typing import Any

from workbench.graphs.retrieval import build_retrieval
from workbench.graphs.route import decide, parse_worker_name
from workbench.ports import Context
from workbench.records.store import RunStore, new_run_id
from workbench.state import Json, RetrievalState

Call = Callable[[Coroutine[Any, Any, Json]], Json]


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
        return self._call(self.aretrieve_with_trace(query, thread_id))

    async def aretrieve_with_trace(self, query: str, thread_id: str) -> Json:
        """Return ``retrieve_with_trace`` for a caller with a loop."""
        state, log = await self.walk(query, thread_id)
        merged = state["merged"]
        return {
            "context": merged["context"],
            "retrieval_results": merged["retrieval_results"],
            "reference": merged["reference"],
            "execution_log": [{**entry, "thread_id": thread_id} for entry in log],
        }

    async def walk(self, query: str, thread_id: str) -> tuple[Json, list[Json]]:
        """Return the last state of the retrieval graph over a question, and the log of its nodes."""
        runs = RunStore(":memory:")
        run_id = new_run_id()
        try:
            state = await self._graph.ainvoke(
                self.input(query, thread_id, run_id), context=replace(self.context, runs=runs)
            )
            log = [
                event["execution_log"]
                for event in runs.events(run_id)
                if "execution_log" in event
            ]
        finally:
            runs.close()
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
    pool: AgentPool = vars(wb).setdefault("_agents", AgentPool(wb.ports, wb._work.loop.call))
    return pool
