"""Recall: the window of messages before the one that is being answered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph

from workbench.graphs.conversation import recall
from workbench.ports import Context
from workbench.state import ConversationState
from workbench.testing import memory_context


def recalled(context: Context, **state: Any) -> dict[str, Any]:
    graph: StateGraph[Any, Context, Any, Any] = StateGraph(ConversationState, context_schema=Context)
    graph.add_node("recall", recall)
    graph.add_edge(START, "recall")
    graph.add_edge("recall", END)
    return asyncio.run(graph.compile().ainvoke({"message": "the question now", **state}, context=context))


def conversation(context: Context, turns: int) -> tuple[str, str]:
    """A conversation of so many answered turns and one question that waits: its id and the question's."""
    store = context.conversations
    conversation_id = store.get_or_create_conversation_id("ann", "monday")
    for turn in range(turns):
        store.append_message(conversation_id, "user", f"question {turn}")
        store.append_message(conversation_id, "assistant", f"answer {turn}")
    return conversation_id, store.append_message(conversation_id, "user", "the question now")


@pytest.mark.parametrize(("turns", "window", "first"), [(5, 6, "question 2"), (1, 6, "question 0"), (5, 3, "answer 3")])
def test_the_last_messages_oldest_first_without_the_current_one(turns: int, window: int, first: str) -> None:
    context = memory_context(history_window=window)
    conversation_id, message_id = conversation(context, turns)
    history = recalled(context, conversation_id=conversation_id, user_message_id=message_id)["history"]
    assert len(history) == min(window, 2 * turns)
    assert [history[0]["content"], history[-1]["content"]] == [first, f"answer {turns - 1}"]
    assert set(history[0]) == {"role", "content", "created_at"}


@pytest.mark.parametrize("window", [0, 6])
def test_nothing_to_recall(window: int) -> None:
    context = memory_context(history_window=window)
    conversation_id, message_id = conversation(context, 0)
    state = recalled(context, conversation_id=conversation_id, user_message_id=message_id)
    assert state["history"] == [] and state["memory_context"] == state["conversation_summary"] == ""
    assert state["episodic_memory"] == []
    assert recalled(context)["history"] == []
