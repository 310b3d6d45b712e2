"""Recall: the conversation so far, as the last messages before the one that is being answered.

``conversation_summary``, ``episodic_memory`` and ``memory_context`` are the seams of longer memory: state keys that the
answer already reads, empty until something is kept to fill them with.
"""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from workbench.context import Context
from workbench.state import ConversationState, Message


async def recall(state: ConversationState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Load the window of the last messages, oldest first; the current one, stored already, is never among them."""
    window, conversation = runtime.context.settings.history_window, state.get("conversation_id", "")
    stored = (
        runtime.context.conversations.list_messages(conversation, window, before=state.get("user_message_id") or None)
        if window and conversation
        else []
    )
    history = [Message(role=m["role"], content=m["content"], created_at=m["created_at"]) for m in stored]
    return {"history": history, "conversation_summary": "", "episodic_memory": [], "memory_context": ""}
