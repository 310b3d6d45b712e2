"""Events of the stream: what a run tells while it runs, the log of its nodes, and the wrapper that writes it.

Events for chat clients have a ``status``; all others go to the debug collector, stored under the run's id.
"""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from workbench.models.wire import hearing
from workbench.state import Data, Json, pick

Event = Json
Node = TypeVar("Node", bound=Callable[..., Awaitable[Json]])


def progress(stage: str, *, completed: int = 0, total: int = 0, **more: Any) -> Event:
    """Return how far a stage is; ``more`` may hold ``error``, ``agent_type``, ``retrieval_count`` and a ``note``."""
    content = {"stage": stage, "completed": completed, "total": total, "error": None}
    return {
        "status": "progress",
        "content": {**content, "agent_type": "", "retrieval_count": None, **more},
    }


def token(text: str) -> Event:
    """Return a chunk of the answer, as the model sent it."""
    return {"status": "token", "content": text}


def review(request: Data) -> Event:
    """Return a pause at a review point."""
    return {"status": "review", "content": dict(request)}


def enrichment(content: Data) -> Event:
    """Return what a source outside the corpus was asked for at merge, and what came of it."""
    return {"status": "enrichment", "content": dict(content)}


def failed(message: str) -> Event:
    """Return the event of a run that failed."""
    return {"status": "error", "message": message}


def done(**content: Any) -> Event:
    """Return the event of a run that ended; ``content`` holds ``run_id``, ``conversation_id`` and ``answer``."""
    return {"status": "done", "content": content}


def for_client(event: Data) -> bool:
    """Check whether a chat client should see the event.

    >>> for_client(token("Ang")), for_client({"execution_log": {}})
    (True, False)
    """
    return "status" in event


def normalize_stream_event(event: Any) -> Event:
    """Return an event of any kind in the shape of those for clients: what it is as ``status``, the rest as ``content``.

    >>> normalize_stream_event({"execution_log": {"node": "planner"}}), normalize_stream_event(token("Ang"))
    ({'status': 'execution_log', 'content': {'node': 'planner'}}, {'status': 'token', 'content': 'Ang'})
    >>> normalize_stream_event("Lee")
    {'status': 'token', 'content': 'Lee'}
    """
    if not isinstance(event, Mapping):
        return token(str(event))
    if for_client(event):
        return dict(event)
    return next(
        ({"status": name, "content": content} for name, content in event.items()),
        {"status": "unknown"},
    )


def nested(log: Iterable[Data]) -> list[Json]:
    """Return the log in levels: a subgraph holds its nodes, the executor its steps, a step what its tool did.

    >>> [(one["node"], [inner["node"] for inner in one["sub_steps"]]) for one in nested([
    ...     {"node": "planner", "node_type": "plan", "timestamp": "t", "duration_ms": 1.0, "sub_steps": []},
    ...     {"node": "persist", "node_type": "persist", "timestamp": "t", "duration_ms": 1.0, "sub_steps": []}])]
    [('retrieval', ['planner']), ('persist', [])]
    """
    levels: list[Json] = []
    for entry in log:
        graph = next(
            (name for name, types in _SUBGRAPHS.items() if entry["node_type"] in types), ""
        )
        if not graph:
            levels.append(dict(entry))
            continue
        if not levels or levels[-1]["node"] != graph:
            about = {
                "timestamp": entry["timestamp"],
                "duration_ms": 0.0,
                "input": {},
                "output": {},
                "sub_steps": [],
            }
            levels.append({"node": graph, "node_type": "subgraph", **about})
        subgraph = levels[-1]
        subgraph["duration_ms"] = round(subgraph["duration_ms"] + entry["duration_ms"], 3)
        subgraph["input"], subgraph["output"] = (
            subgraph["input"] or entry.get("input", {}),
            entry.get("output", {}),
        )
        subgraph["sub_steps"].append(dict(entry))
        if entry["node_type"] == "merge":
            subgraph["event"] = "rag_retrieval_done"
    return levels


_SUBGRAPHS = {
    "route": ("route",),
    "retrieval": ("plan", "review", "dispatch", "execute", "reflect", "merge"),
    "reporter": ("outline", "write", "decide", "research", "check", "assemble"),
}
"""Types of the nodes of each."""


# --- The wrapper that times every node of a run, and logs it ---

MERGE_EVENTS = frozenset({"rag_runs", "combined_context", "retrieval_merged"})
"""Events that say what was merged; it is kept with the run's result, so they are not kept once more."""


class DebugCollector:
    """Sends every event of a stream on, and caches those that are not for clients."""

    def __init__(self, send: Callable[[Event], object]):
        self._send = send
        self.cached = list[Event]()

    def __call__(self, event: Event) -> None:
        """Take an event."""
        if not for_client(event):
            self.cached.append(event)
        self._send(event)


def logged(node_type: str, node: Node) -> Node:
    """Return the node, timed: after it returns, an ``execution_log`` goes to the run's log and to the stream.

    The log's key is the LangGraph task, so a node that runs again after a crash leaves one line, not two. What the node
    wrote for the debug collector is kept in the same line.
    """

    @functools.wraps(node)
    async def timed(state: Any, runtime: Any) -> Json:
        context = runtime.context
        began = context.clock.monotonic()
        timestamp = context.clock.now().isoformat()
        collector = DebugCollector(runtime.stream_writer)
        with hearing(lambda note: collector(progress("waiting", note=note))):
            change = await node(state, runtime.override(stream_writer=collector))
        entry = {
            "node": timed.__name__,
            "node_type": node_type,
            "duration_ms": round((context.clock.monotonic() - began) * 1000, 3),
            "timestamp": timestamp,
            "input": {key: brief(state[key]) for key in _TELLING if state.get(key)},
            "output": {key: brief(value) for key, value in change.items()},
            "sub_steps": [_step(record) for record in change.get("records", [])]
            if node_type == "execute"
            else [],
        }
        event: Event = {"execution_log": entry}
        debug = [each for each in collector.cached if not MERGE_EVENTS & set(each)]
        # First the tape, then the log: a line in the log means that the effects of its node are durable. LangGraph
        # gives a node that runs again after a crash the same task id, so both writes keep their keys.
        if runtime.execution_info:
            context.tape.flush(runtime.execution_info.task_id)
        if state.get("run_id") and runtime.execution_info:
            line = {**event, "debug": debug} if debug else event
            context.runs.save_event(state["run_id"], runtime.execution_info.task_id, line)
        runtime.stream_writer(event)
        return change

    return cast(Node, timed)


_NAMES = """
    message query kb_prefix worker_name iteration attempt step plan wave records reflections stop_reason merged answer
"""
_TELLING = _NAMES.split()
"""State keys that the log shows as a node's input; the others are names and options, the same for every node."""


def _step(record: Data) -> Json:
    """Return an attempt at a step as the log has it, with what happened inside its tool below it."""
    return {
        "node": record["step_id"],
        "node_type": "step",
        **pick(record, "step_id", "attempt", "tool", "status", "error", "duration_ms"),
        "timestamp": record["started_at"],
        "input": record["input_summary"],
        "output": record["output_summary"],
        "sub_steps": record["sub_steps"],
    }


def brief(value: Any) -> Any:
    """Return a value as a log shows it: short scalars whole, long text cut, collections counted and begun.

    >>> brief("x" * 300)[-3:], brief([1, 2]), brief({"b": 1, "a": []}), brief(True)
    ('...', '2 items: [1, 2]', "{'a': [], 'b': 1}", True)
    """
    if isinstance(value, str):
        return value if len(value) <= 200 else value[:197] + "..."
    if isinstance(value, Mapping):
        return _short.repr(dict(value))
    if isinstance(value, list):
        return f"{len(value)} items: {_short.repr(value)}" if value else "0 items"
    return (
        value if value is None or isinstance(value, (bool, int, float)) else type(value).__name__
    )


_short = reprlib.Repr()
_short.maxlevel, _short.maxdict, _short.maxlist, _short.maxstring = 2, 4, 2, 40
