"""What the graphs ask of the memory part, and what they do without it: the messages are kept, nothing is recalled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langgraph.runtime import Runtime

from workbench.extensions import missing, provided
from workbench.graphs.route import Route
from workbench.language.words import is_small_talk
from workbench.ports import Context, KnowledgeBase
from workbench.state import AppliedPreference, ConversationState, Data, Json, Message

MISSING = missing("memory", "memory")


async def recall(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Load what is remembered for a message; without the part the last messages, and a note that this is all.

    A greeting that the rules answer needs no more than the last messages either.
    """
    part, context = provided("nodes", "recall"), runtime.context
    greeted = is_small_talk(state.get("message", "")) and "writer" not in context.models
    if part and not greeted:
        return dict(await part(state, runtime))
    history = read_history(state, context)
    counts = {"history_count": len(history), "has_memory_context": False, "has_summary": False, "episodic_count": 0}
    runtime.stream_writer({"history": counts if part else {**counts, "note": MISSING}})
    return {"history": history, "remembered": [], "noted": [], "recalls": None, "to_search": state["message"]}


def window(state: Data, context: Context) -> list[Json]:
    """Return the last messages before the one that is answered, as they are stored."""
    size, conversation = context.settings.history_window, state.get("conversation_id", "")
    if not size or not conversation:
        return []
    return context.conversations.list_messages(conversation, size, before=state.get("user_message_id") or None)


def read_history(state: Data, context: Context) -> list[Message]:
    """Return the last messages before the one that is answered."""
    return [Message(role=m["role"], content=m["content"], created_at=m["created_at"]) for m in window(state, context)]


def with_preferences(
    state: Data, route: Route, bases: Sequence[KnowledgeBase], struck: Iterable[str] = ()
) -> tuple[Route, list[AppliedPreference]]:
    """Return the route with preferences of the person as conditions, and these."""
    part = provided("nodes", "with_preferences") if bases else None
    return part(state, route, bases, struck) if part else (route, [])
