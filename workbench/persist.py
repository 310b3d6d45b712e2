"""The last node: what is kept of a finished run. The answer and the result, each under a key of the run.

The user's message was stored before the run began.
"""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from workbench.context import Context
from workbench.counted import retrieval_seconds
from workbench.state import ConversationState

RESULT_KEYS = (
    "query",
    "kb_prefix",
    "kb_prefixes",
    "worker_name",
    "route_decision",
    "use_retrieval",
    "history",
    "reflections",
    "thresholds",
    "merged",
    "runs",
    "stop_reason",
    "answer",
    "citations",
    "partial",
    "routing_ms",
    "retrieval_ms",
    "generation_ms",
)


async def persist(state: ConversationState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Keep the answer and the result; running again keeps them once."""
    conversations, runs, run_id = runtime.context.conversations, runtime.context.runs, state["run_id"]
    change = {"retrieval_ms": round(retrieval_seconds(state.get("records", [])) * 1000, 3)}
    conversations.append_message(
        state["conversation_id"],
        "assistant",
        state["answer"],
        message_key=f"{run_id}:assistant",
        citations=state.get("citations", []),
        debug={"run_id": run_id},
        partial=state.get("partial", False),
    )
    kept = {**state, **change}
    runs.save_result(run_id, {key: kept[key] for key in RESULT_KEYS if key in kept})
    return change
