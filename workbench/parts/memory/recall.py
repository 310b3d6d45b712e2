"""Recall: what an answer has of the conversation and of the person, in the order of the contract and within a budget.

Core memory, summary, earlier exchanges, and the last messages before the one that is answered. What did not fit, or was
switched off, is listed with its reason. The message itself is read too: what it says that is worth remembering, whether
it asks what was said before, and what of it is to be searched.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Literal

from langgraph.runtime import Runtime
from pydantic import BaseModel, Field

from workbench.graphs.roles import ask_model
from workbench.graphs.slots import history_messages, history_text, numbered, window
from workbench.parts.memory.reading import question_to_memory, read_preferences
from workbench.parts.memory.store import Memory
from workbench.ports import Context
from workbench.records.prompts import fenced
from workbench.records.tape import estimated_tokens
from workbench.state import ConversationState, Data, Json, MemoryQuestion, Message, Remembered
from workbench.text import clean, closest, content_stems, detect_language, sentences
from workbench.views.labels import Labels
from workbench.views.markup import cut

_PERSONAL = re.compile(
    r"\b(?:i|me|my|mine|we|us|our|you|your)\b|[我咱你您]|刚才|刚刚", re.IGNORECASE
)
"""Who speaks: a message that names neither of the two says nothing of a person, and asks nothing of a conversation."""
MOST_NOTED = 8
"""Notes of one message."""


async def recall(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Load what is remembered; the current message, stored already, is never among it."""
    context = runtime.context
    message = state.get("message", "")
    conversation = state.get("conversation_id", "")
    stored = window(state, context)
    history = history_messages(stored)
    recalled = await asyncio.to_thread(
        context.memory.recall,
        _sought(context, message),
        user_id=state.get("user_id", ""),
        conversation_id=conversation,
        before=state.get("user_message_id") or None,
    )
    left_out = set(state.get("without", []))
    memories = [m for m in recalled["memories"] if m["id"] not in left_out]
    read = await noticed(context, message, history, memories)
    parts = assembled(recalled, stored, left_out, context, message)
    texts = prompt_lines(parts)
    episode_ids = {part["id"] for part in parts if part["kept"]}
    counts = {"history_count": len(history), "has_memory_context": bool(texts["core"])}
    counts |= {"has_summary": bool(texts["summary"]), "episodic_count": len(texts["episode"])}
    runtime.stream_writer({"history": counts})
    return {
        "history": history,
        "memory_context": "\n".join(texts["core"]),
        "conversation_summary": "\n".join(texts["summary"]),
        "episodic_memory": [e for e in recalled["episodes"] if e["id"] in episode_ids],
        "recalled_episodes": [e for e in recalled["episodes"] if e["id"] not in left_out],
        "known": memories,
        "remembered": parts,
        **read,
    }


def _sought(context: Context, message: str) -> str:
    """Return what exchanges are to fit: the message, or what it asks about where it asks what was said before.

    By its own words it would fit the earlier questions of that kind best, of whatever they were.
    """
    request = question_to_memory(message, []) if context.settings.memory_core else None
    return request["about"] if request and request["about"] else message


def assembled(
    recalled: Data, stored: Sequence[Data], left_out: set[str], context: Context, message: str
) -> list[Remembered]:
    """Return all that was recalled, in the order of a prompt, with what is in it and why the rest is not.

    The budget goes to core memory first, the newest before what is older, then to the last messages from the newest on,
    to the summary, and to exchanges by how well they fit. Of what was archived only that is recalled which shares a
    word with the message.
    """
    # Earlier exchanges that a prompt includes.
    most_episodes = 2
    labels = Labels(detect_language(message))
    core = []
    words = content_stems(message)
    for memory in recalled["memories"]:
        if memory["section"] != "archival" or words & content_stems(memory["content"]):
            text = labels(f"core_{memory['section']}") + labels("colon") + memory["content"]
            core.append(prompt_part("core", text, memory, message_id=memory["message_id"]))
    row = recalled["summary"]
    summary = [prompt_part("summary", row["summary"], {**row, "id": "summary"})] if row else []
    episodes = [
        prompt_part(
            "episode",
            told_episode(episode, message),
            episode,
            message_id=episode["user_message_id"],
        )
        for episode in recalled["episodes"]
        if not episode["shown"]
    ]
    history = [
        prompt_part("history", row["content"], row, message_id=row["id"]) for row in stored
    ]
    left = context.settings.memory_token_budget
    shown = 0
    for entry in [*reversed(core), *reversed(history), *summary, *episodes]:
        why = "budget" if entry["tokens"] > left else ""
        if entry["id"] in left_out:
            why = "left_out"
        if entry["part"] == "episode" and not why:
            why = "enough" if shown >= most_episodes else ""
            shown += 1
        left -= 0 if why else entry["tokens"]
        entry["kept"], entry["why"] = not why, why
    return [*core, *summary, *episodes, *history]


def prompt_part(part: str, text: str, row: Data, message_id: str = "") -> Remembered:
    """Return a part of a prompt from the row that it is made of."""
    return Remembered(
        part=part,
        id=row["id"],
        text=text,
        tokens=estimated_tokens(text),
        kept=True,
        why="",
        at=row.get("updated_at") or row["created_at"],
        score=round(row.get("similarity", 1.0), 3),
        author=row.get("author") or row.get("role", ""),
        message_id=message_id,
        content=row.get("content", text),
    )


def prompt_lines(parts: Sequence[Remembered]) -> dict[str, list[str]]:
    """Return what a prompt has of core memory, the summary and earlier exchanges."""
    texts: dict[str, list[str]] = {"core": [], "summary": [], "episode": []}
    for part in parts:
        if part["kept"] and part["part"] in texts:
            texts[part["part"]].append(part["text"])
    return texts


def prompt_text(state: Data, language: str) -> str:
    """Return what is remembered for the prompt, in the order of the contract; "" for nothing."""
    labels = Labels(language)
    texts = prompt_lines(state.get("remembered") or []).items()
    return "\n\n".join(
        "\n".join([labels(f"prompt_{part}"), *map(clean, lines)])
        for part, lines in texts
        if lines
    )


def told_episode(episode: Data, message: str) -> str:
    """Return an exchange in a line, as the requirement has it: of each message the sentence that fits best."""
    # Characters of a message of an earlier exchange.
    excerpt = 120
    messages = (
        " ".join(clean(str(episode[part])).split())
        for part in ("user_message", "assistant_message")
    )
    return "- " + " → ".join(cut(closest(message, sentences(text)), excerpt) for text in messages)


# --- What a message says of the person, and what it asks of the conversation ---


class Note(BaseModel, extra="forbid"):
    """Something to be remembered."""

    section: Literal["name", "preferences", "current_intent", "facts"]
    content: str = Field(min_length=1, max_length=200)
    about: str = Field(min_length=1, max_length=80)
    polarity: Literal["like", "dislike", ""] = ""
    replaces: list[int] = Field(default_factory=list, max_length=5)


class Read(BaseModel, extra="forbid"):
    """What the memory's model fills in."""

    notes: list[Note] = Field(max_length=MOST_NOTED)
    question: str = Field(max_length=500)
    asks_what_was_said: bool
    about: str = Field("", max_length=100)


async def noticed(
    context: Context, message: str, history: Sequence[Message], memories: Sequence[Memory]
) -> Json:
    """Return what of the message is to be remembered, what it asks memory, and what is left to search."""
    if not context.settings.memory_core:
        return {"noted": [], "recalls": None, "to_search": message}
    # a model is not asked about every question
    speaks_of_person = "memory" in context.models and _PERSONAL.search(message)
    if speaks_of_person and (read := await _by_model(context, message, history, memories)):
        return read
    return by_rules(message, memories)


def by_rules(message: str, memories: Sequence[Memory] = ()) -> Json:
    """Return what ``noticed`` does, without a model."""
    notes, rest = read_preferences(message)
    if not notes:
        return {
            "noted": [],
            "recalls": question_to_memory(message, memories),
            "to_search": message,
        }
    return {"noted": notes[:MOST_NOTED], "recalls": None, "to_search": message if rest else ""}


async def _by_model(
    context: Context, message: str, history: Sequence[Message], memories: Sequence[Memory]
) -> Json | None:
    slots = {
        "known": fenced(numbered([f"{m['section']}: {m['content']}" for m in memories])),
        "history": fenced(history_text(history, context.settings.history_window)),
        "message": message,
    }
    reply = await ask_model(context, "memory", Read, slots, question=message)
    if reply.form is None:
        return None
    noted = []
    for note in reply.form.notes:
        replaced = [memories[n - 1]["id"] for n in note.replaces if 1 <= n <= len(memories)]
        noted.append({**note.model_dump(), "replaces": replaced})
    recalls = (
        MemoryQuestion(about=reply.form.about, whose="", notes=None)
        if reply.form.asks_what_was_said
        else None
    )
    return {
        "noted": noted,
        "recalls": recalls,
        "to_search": reply.form.question.strip() if noted else message,
    }
