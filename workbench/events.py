"""The stream's vocabulary (contracts, 8), and the wrapper that makes every node leave a line in the run's log.

What a chat client reads has a ``status``; everything else is for the debug collector, kept under the run's id.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

from langgraph.runtime import Runtime

from workbench.context import Context
from workbench.models.patience import hearing

Event = dict[str, Any]
Node = TypeVar("Node", bound=Callable[..., Awaitable[dict[str, Any]]])


def progress(stage: str, *, completed: int = 0, total: int = 0, **more: Any) -> Event:
    """How far a stage is; ``more`` may hold ``error``, ``agent_type``, ``retrieval_count`` and a ``note``."""
    content = {"stage": stage, "completed": completed, "total": total, "error": None}
    return {"status": "progress", "content": {**content, "agent_type": "", "retrieval_count": None, **more}}


def token(text: str) -> Event:
    """A chunk of the answer, as the model sent it."""
    return {"status": "token", "content": text}


def review(request: Mapping[str, Any]) -> Event:
    """A pause at a review point."""
    return {"status": "review", "content": dict(request)}


def enrichment(content: Mapping[str, Any]) -> Event:
    """What a source outside the corpus was asked for at merge, and what came of it."""
    return {"status": "enrichment", "content": dict(content)}


def failed(message: str) -> Event:
    """The run failed."""
    return {"status": "error", "message": message}


def done(**content: Any) -> Event:
    """The run ended; ``content`` holds ``run_id``, ``conversation_id`` and ``answer``."""
    return {"status": "done", "content": content}


def for_client(event: Mapping[str, Any]) -> bool:
    """Whether a chat client should see the event.

    >>> for_client(token("Ang")), for_client({"execution_log": {}})
    (True, False)
    """
    return "status" in event


def logged(name: str, node_type: str, node: Node) -> Node:
    """The node, timed: after it returns, an ``execution_log`` goes to the run's log and to the stream.

    The log's key is the LangGraph task, so a node that runs again after a crash leaves one line, not two.
    """

    @functools.wraps(node)
    async def timed(state: Any, runtime: Runtime[Context]) -> dict[str, Any]:
        context, began = runtime.context, runtime.context.clock.monotonic()
        timestamp = context.clock.now().isoformat()
        with hearing(lambda note: runtime.stream_writer(progress("waiting", note=note))):
            change = await node(state, runtime)
        entry = {
            "node": name,
            "node_type": node_type,
            "duration_ms": round((context.clock.monotonic() - began) * 1000, 3),
            "timestamp": timestamp,
            "input": {"keys": sorted(state)},
            "output": {key: brief(value) for key, value in change.items()},
            "sub_steps": [],
        }
        event = {"execution_log": entry}
        if runtime.execution_info:
            context.tape.flush(runtime.execution_info.task_id)
        if state.get("run_id") and runtime.execution_info:
            context.runs.save_event(state["run_id"], runtime.execution_info.task_id, event)
        runtime.stream_writer(event)
        return change

    return cast(Node, timed)


def brief(value: Any) -> Any:
    """A value as a log shows it: short scalars whole, long text cut, collections counted.

    >>> brief("x" * 300)[-3:], brief([1, 2]), brief({"b": 1, "a": 2}), brief(True)
    ('...', '2 items', ['a', 'b'], True)
    """
    if isinstance(value, str):
        return value if len(value) <= 200 else value[:197] + "..."
    if isinstance(value, Mapping):
        return sorted(value)
    if isinstance(value, list):
        return f"{len(value)} items"
    return value if value is None or isinstance(value, (bool, int, float)) else type(value).__name__
