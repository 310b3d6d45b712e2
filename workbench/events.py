"""Events of the stream: what a run tells while it runs, and the log of its nodes in levels.

Events for chat clients have a ``status``; all others go to the debug collector, stored under the run's id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.state import Data, Json

Event = Json


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
