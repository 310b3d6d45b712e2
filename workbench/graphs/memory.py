"""What the graphs ask of the memory part, and what they do without it: the messages are kept, nothing is recalled."""

from __future__ import annotations

import asyncio

from langgraph.runtime import Runtime
from pydantic import Field

from workbench.extensions import call_node, missing, provided
from workbench.graphs.roles import ModelForm, ask_model
from workbench.graphs.route import requested_bases
from workbench.graphs.slots import history_text, read_history
from workbench.language.words import is_small_talk
from workbench.ports import Bases, Context
from workbench.state import ConversationState, Data, Json, RouteDecision

MISSING = missing("memory", "memory")


async def recall(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Load what is remembered for a message, and resolve a follow-up at the same time."""
    change, question = await asyncio.gather(
        _recalled(state, runtime), standing_alone(state, runtime.context)
    )
    return {**change, "stands_alone": question}


class StandsAlone(ModelForm):
    """The form of the follow-up's model."""

    question: str = Field(min_length=1, max_length=500)


async def standing_alone(state: Data, context: Context, message: str = "") -> str:
    """Return the message with what it refers to, by the model; "" where none is asked, or it says nothing of use."""
    message = message or state["message"]
    history = read_history(state, context)
    if (
        "follow_up" not in context.models
        or not history
        or is_small_talk(message)
        or requested_bases(state) == []
    ):
        return ""
    slots = {
        "history": history_text(history, context.settings.history_window),
        "message": message,
    }
    reply = await ask_model(context, "follow_up", StandsAlone, slots, question=message)
    return " ".join(reply.form.question.split()) if reply.form else ""


async def _recalled(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Load what is remembered for a message; without the part the last messages, and a note that this is all.

    A greeting that the rules answer needs no more than the last messages either.
    """
    part = provided("nodes", "recall")
    context = runtime.context
    greeted = is_small_talk(state.get("message", "")) and "writer" not in context.models
    if part and not greeted:
        return dict(await part(state, runtime))
    history = read_history(state, context)
    counts = {
        "history_count": len(history),
        "has_memory_context": False,
        "has_summary": False,
        "episodic_count": 0,
    }
    runtime.stream_writer({"history": counts if part else {**counts, "note": MISSING}})
    return {
        "history": history,
        "remembered": [],
        "noted": [],
        "recalls": None,
        "to_search": state["message"],
    }


def only_noted(state: Data) -> bool:
    """Check whether the message was only to be remembered."""
    return bool(state.get("noted") and not state.get("to_search"))


def with_preferences(state: Data, decision: RouteDecision, bases: Bases) -> RouteDecision:
    """Return the decision with preferences of the person as conditions."""
    return call_node("with_preferences", decision, state, decision, bases) if bases else decision
