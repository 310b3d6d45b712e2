"""What is remembered is kept: notes with the answer, summaries after it.

What a message says of the person is noted when it has been answered, by a run of its own alone: forks and replays
write nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from workbench.graphs.roles import ask_model
from workbench.parts.memory.answer import question_to_memory
from workbench.parts.memory.store import outdated
from workbench.parts.memory.summarizing import summarize
from workbench.ports import Context, Remembering
from workbench.records.prompts import fenced
from workbench.state import Data

RULES = "rules"
_REBUILD_EVERY = 10
"""Updates after which a summary is made of all messages again."""


def keep_noted(memory: Remembering, state: Data, author: str) -> None:
    """Write down what the message said of the person; running again writes it once."""
    source = {"conversation_id": state["conversation_id"], "message_id": state["user_message_id"]}
    for number, note in enumerate(state.get("noted") or []):
        memory.remember(
            state["user_id"], author=author, key=f"{state['run_id']}:{number}", **note, **source
        )


# --- The summary of a conversation, brought up to date when an answer is there ---


class SummedUp(BaseModel, extra="forbid"):
    """What the summarizer fills in."""

    summary: str = Field(min_length=1, max_length=2_000)


def due(count: int, covered: int, *, begins: int, window: int, every: int) -> bool:
    """Return whether a summary is due: enough messages have left the window since it was.

    >>> [n for n in range(9, 25) if due(n, 0 if n < 12 else 6, begins=10, window=6, every=5)]
    [10, 11, 17, 18, 19, 20, 21, 22, 23, 24]
    """
    return count >= begins and count - window - covered >= (every if covered else 1)


async def bring_up(context: Context, store: Any, conversation_id: str, user_id: str = "") -> str:
    """Sum up what has left the window of a conversation, if that is due; by whom, or "" where it was not.

    Incremental, and of all messages again at every ``_REBUILD_EVERY``-th time. Where the model fails the rules do it.
    """
    settings = context.settings
    window, old = settings.history_window, store.get_summary(conversation_id)
    count, covered = (
        store.count_messages(conversation_id),
        old["covered_message_count"] if old else 0,
    )
    limits = {"begins": settings.summary_from, "window": window, "every": settings.summary_every}
    of_user = store.memories(user_id, ended=True) if settings.memory_core and user_id else []
    stale = old is not None and outdated(old, of_user)
    if not settings.memory_summary or not (stale or due(count, covered, **limits)):
        return ""
    rebuild = old is None or stale or (old["update_count"] + 1) % _REBUILD_EVERY == 0
    messages = store.list_messages(conversation_id)[: count - window]
    fresh = messages if rebuild else messages[covered:]
    before, author = "" if rebuild else old["summary"], RULES
    if "summarizer" in context.parts:
        text, author = str(await context.parts["summarizer"](before, fresh)).strip(), "summarizer"
    elif text := await _by_model(context, before, fresh) if "summarizer" in context.models else "":
        author = settings.role_model("summarizer")
    if not text:
        text = summarize(_of_the_corpus(messages, of_user))
    store.save_summary(conversation_id, text, len(messages), author, [m["id"] for m in messages])
    return author


async def _by_model(context: Context, old: str, messages: Sequence[Data]) -> str:
    text = "\n".join(f"{m['role']}: {' '.join(m['content'].split())[:1_000]}" for m in messages)
    slots = {"summary": fenced(old) or "—", "messages": fenced(text)}
    reply = await ask_model(
        context, "summarizer", SummedUp, slots, question=messages[-1]["content"], quiet=True
    )
    return reply.form.summary.strip() if reply.form else ""


def _of_the_corpus(messages: Sequence[Data], notes: Sequence[Any]) -> list[Data]:
    """Return messages without what memory was asked and answered: that is in memory, and may not hold any more."""
    to_memory = [
        m["role"] == "user" and question_to_memory(str(m["content"]), notes) is not None
        for m in messages
    ]
    answered = [False, *to_memory][: len(messages)]
    return [
        m
        for m, question, answer in zip(messages, to_memory, answered, strict=True)
        if not (question or answer)
    ]
