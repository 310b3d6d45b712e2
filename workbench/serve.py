"""The graphs for a LangGraph server (``langgraph.json``): factories that bind the ports of ``WORKBENCH_WORKSPACE``.

A client of the server sends ``{"message": ..., "requested_kb_prefixes": ["papers"]}`` to ``conversation``, or
``{"query": ..., "kb_prefix": "papers"}`` to ``retrieval``; what the session would fill in is filled in here.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from workbench.graphs.conversation import build_conversation, initial_state
from workbench.graphs.fusion import build_fusion, fusion_options
from workbench.graphs.retrieval import build_retrieval
from workbench.graphs.route import build_router, make_worker_name, read_question
from workbench.ports import Context
from workbench.records.store import new_run_id
from workbench.session import Workbench


class BoundGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph with its ports: who runs it needs to pass no context."""

    ports: Context
    prepare: Callable[[Mapping[str, Any], str], Mapping[str, Any]]

    def astream(self, input: Any, config: Any = None, *, context: Any = None, **options: Any) -> Any:
        """Stream as the graph does, with the ports bound and the input made whole."""
        if isinstance(input, Mapping):
            thread = str(((config or {}).get("configurable") or {}).get("thread_id") or uuid.uuid4().hex)
            input = self.prepare(input, thread)
        return super().astream(input, config, context=context or self.ports, **options)


@asynccontextmanager
async def conversation() -> AsyncIterator[CompiledStateGraph[Any, Any, Any, Any]]:
    """The conversation graph on the workspace of ``WORKBENCH_WORKSPACE`` (default ``.workbench``)."""
    with _workspace() as wb:
        ports = wb.ports()

        def prepare(given: Mapping[str, Any], thread: str) -> Mapping[str, Any]:
            session, user = given.get("session_id", thread), given.get("user_id", "default")
            options = {
                "kb": given.get("requested_kb_prefixes", []),
                "review": given.get("review", []),
                "session": session,
                "user": user,
                "worker": given.get("worker_name", ""),
                "thresholds": given.get("thresholds", {}),
                "incognito": False,
                "debug": given.get("debug", False),
            }
            conversation_id = ports.conversations.get_or_create_conversation_id(user, session)
            run_id = new_run_id()
            message_id = ports.conversations.append_message(
                conversation_id, "user", given["message"], message_key=f"{run_id}:user"
            )
            return initial_state(
                run_id,
                given["message"],
                conversation_id=conversation_id,
                user_message_id=message_id,
                options=options,
            )

        yield _bound(build_conversation(), ports, prepare)


@asynccontextmanager
async def router() -> AsyncIterator[CompiledStateGraph[Any, Any, Any, Any]]:
    """The router alone: ``{"message": ...}`` gives ``route_decision``, ``kb_prefix`` and ``worker_name``."""
    with _workspace() as wb:
        yield _bound(build_router(), wb.ports(), lambda given, thread: given)


@asynccontextmanager
async def retrieval() -> AsyncIterator[CompiledStateGraph[Any, Any, Any, Any]]:
    """The retrieval graph alone, on the same workspace."""
    with _workspace() as wb:
        ports = wb.ports()

        def prepare(given: Mapping[str, Any], thread: str) -> Mapping[str, Any]:
            kb = given["kb_prefix"]
            worker = make_worker_name(kb, "fusion_agent")
            decision = {
                "requested_kb_prefix": kb,
                "routed_kb_prefix": kb,
                "kb_prefix": kb,
                "confidence": 1.0,
                "method": "override",
                "reason": "asked for",
                "worker_name": worker,
                "media_type_hint": "",
                **read_question(given["query"], ports.bases([kb]), ports.today),
            }
            filled = {"review": [], "thresholds": {}, "iteration": 1, "session_id": thread, "debug": False}
            return {**filled, "route_decision": decision, "kb_prefixes": [kb], "run_id": thread, **given}

        yield _bound(build_retrieval().compile(), ports, prepare)


@asynccontextmanager
async def fusion() -> AsyncIterator[CompiledStateGraph[Any, Any, Any, Any]]:
    """The fusion graph on the same workspace; ``config["configurable"]`` has ``kb_prefix`` and its options."""
    with _workspace() as wb:
        ports, options = wb.ports(), fusion_options(wb.settings)

        def prepare(given: Mapping[str, Any], thread: str) -> Mapping[str, Any]:
            return {
                "session_id": thread,
                "canvas_path": "",
                "operation": "explanation",
                "messages": [],
                "query": "",
                **given,
            }

        yield _bound(build_fusion().compile().with_config({"configurable": options}), ports, prepare)


def _workspace() -> Workbench:
    return Workbench.open(os.environ.get("WORKBENCH_WORKSPACE", ".workbench"))


def _bound(graph: Any, ports: Context, prepare: Any) -> BoundGraph:
    attributes = {name: value for name, value in vars(graph).items() if name != "__orig_class__"}
    bound = BoundGraph(**attributes)
    bound.ports, bound.prepare = ports, prepare
    return bound
