"""Recall: what an answer has of the conversation and of the person, in the order of the contract and within a budget.

Core memory, summary, earlier exchanges, and the last messages before the one that is answered. What did not fit, or was
switched off, is listed with its reason. The message itself is read too: what it says that is worth remembering, whether
it asks what was said before, and what of it is to be searched.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from langgraph.runtime import Runtime
from pydantic import BaseModel, Field

from workbench.graphs.roles import ask_model, history_text, numbered, window
from workbench.parts.memory.answer import question_to_memory
from workbench.parts.memory.preferences import read_preferences, same_thing
from workbench.parts.memory.store import Memory, as_statement, core_memory
from workbench.ports import Context
from workbench.records.prompts import fenced
from workbench.records.tape import estimated_tokens
from workbench.state import ConversationState, Data, Json, MemoryQuestion, Message, Noted, Remembered
from workbench.text import STOP_WORDS, clean, content_stems, detect_language, sentences, terms
from workbench.views.labels import Labels

_PERSONAL = re.compile(r"\b(?:i|me|my|mine|we|us|our|you|your)\b|[我咱你您]|刚才|刚刚", re.IGNORECASE)
"""Who speaks: a message that names neither of the two says nothing of a person, and asks nothing of a conversation."""
_EXCERPT = 24
"""Tokens of a message of an earlier exchange."""
MOST_NOTED = 8
"""Notes of one message."""


async def recall(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Load what is remembered; the current message, stored already, is never among it."""
    context, message = runtime.context, state.get("message", "")
    conversation, stored = state.get("conversation_id", ""), window(state, context)
    history = [Message(role=m["role"], content=m["content"], created_at=m["created_at"]) for m in stored]
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
    text = str(recalled["summary"]["summary"]) if recalled["summary"] else ""
    summary = text if "summary" not in left_out else ""
    parts = assembled({**recalled, "summary_text": text}, stored, left_out, context, message)
    in_prompt = {(p["part"], p["id"]) for p in parts if p["kept"]}
    zh, counted = detect_language(message) == "zh", Counter(part for part, _ in in_prompt)
    told_of = {"history_count": len(history), "has_memory_context": bool(counted["core"])}
    told_of |= {"has_summary": bool(counted["summary"]), "episodic_count": counted["episode"]}
    runtime.stream_writer({"history": told_of})
    return {
        "history": history,
        "memory_context": told_core([m for m in memories if ("core", m["id"]) in in_prompt], zh),
        "conversation_summary": summary if ("summary", "summary") in in_prompt else "",
        "episodic_memory": [e for e in recalled["episodes"] if ("episode", e["id"]) in in_prompt],
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
    to the summary, and to exchanges by how well they fit. What was archived, and shares no word with the message, has
    what is left then.
    """
    settings, zh = context.settings, detect_language(message) == "zh"
    core = [("core", m["id"], told_memory(m, zh), m["created_at"], 1.0) for m in recalled["memories"]]
    text = recalled["summary_text"]
    summary = [("summary", "summary", text, recalled["summary"]["updated_at"], 1.0)] if text else []
    fitting = [e for e in recalled["episodes"] if not e["shown"]]
    episodes = [("episode", e["id"], told_episode(e, message), e["created_at"], e["similarity"]) for e in fitting]
    history = [("history", m["id"], m["content"], m["created_at"], 1.0) for m in stored]
    left, parts = settings.memory_token_budget, dict[tuple[str, str], Remembered]()
    spare = [c for c, m in zip(core, recalled["memories"], strict=True) if _only_archived(m, message)]
    always = [c for c in reversed(core) if c not in spare]
    by_need = [*always, *reversed(history), *summary, *episodes, *reversed(spare)]
    shown = 0
    for part, part_id, text, at, score in by_need:
        tokens = estimated_tokens(text)
        why = "left_out" if part_id in left_out else "budget" if tokens > left else ""
        if part == "episode" and not why:
            # Earlier exchanges that a prompt includes.
            why, shown = ("enough", shown) if shown >= 2 else ("", shown + 1)
        left -= 0 if why else tokens
        parts[part, part_id] = Remembered(
            part=part, id=part_id, text=text, tokens=tokens, kept=not why, why=why, at=at, score=round(score, 3)
        )
    return [parts[part, part_id] for part, part_id, *_ in (*core, *summary, *episodes, *history)]


def _only_archived(memory: Memory, message: str) -> bool:
    wanted, words = (content_stems(text) for text in (message, memory["content"]))
    return memory["section"] == "archival" and not wanted & words


def told_memory(memory: Memory, zh: bool) -> str:
    """Return a memory in a line."""
    return _line(memory["section"], memory["content"], zh)


def _line(section: str, text: str, zh: bool) -> str:
    labels = Labels("zh" if zh else "en")
    return labels(f"core_{section}") + labels("colon") + text


def told_core(memories: Sequence[Memory], zh: bool) -> str:
    """Return core memory for a prompt: one line per section."""
    core = core_memory(memories)
    archived = [m["content"] for m in memories if m["section"] == "archival"]
    lines = []
    for section, value in {"persona": core["persona"], **core["human"], "archival": archived}.items():
        text = ("；" if zh else "; ").join(value) if isinstance(value, list) else value
        lines += [_line(section, text, zh)] if text else []
    return "\n".join(lines)


def prompt_text(state: Data, zh: bool) -> str:
    """Return what is remembered for the prompt, in the order of the contract; "" for nothing."""
    core = state.get("memory_context")
    if struck := state.get("struck"):  # what is not to count is not told either
        ids = {part["id"] for part in state.get("remembered") or [] if part["kept"]} - set(struck)
        core = told_core([m for m in state.get("known") or [] if m["id"] in ids], zh)
    parts = {
        "prompt_core": core,
        "prompt_summary": state.get("conversation_summary"),
        "prompt_episodes": episodes(state.get("episodic_memory") or [], state["message"]),
    }
    say = Labels("zh" if zh else "en")
    return "\n\n".join(f"{say(heading)}\n{clean(text)}" for heading, text in parts.items() if text)


def episodes(results: Sequence[Data], message: str, limit: int = 2) -> str:
    """At most two earlier exchanges, one a line."""
    return "\n".join(told_episode(episode, message) for episode in results[:limit])


def told_episode(episode: Data, message: str) -> str:
    """Return an exchange in a line, as the requirement has it: of what is long, the sentences that fit the message."""
    question, answer = (" ".join(clean(str(episode.get(k, ""))).split()) for k in ("user_message", "assistant_message"))
    return f"- {_fitting(question, message)} → {_fitting(answer, message)}"


def _fitting(text: str, message: str) -> str:
    """Return the sentences with most of the message's words, as they come, up to ``_EXCERPT`` tokens."""
    wanted, texts = set(terms(message)) - STOP_WORDS, sentences(text) or [text]
    left, chosen = _EXCERPT, set[int]()
    for number in sorted(range(len(texts)), key=lambda n: (-len(wanted & set(terms(texts[n]))), n)):
        if (size := estimated_tokens(texts[number])) <= left:
            chosen.add(number)
            left -= size
    return " ".join(texts[n] for n in sorted(chosen)) or text[:_EXCERPT] + "…"


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


async def noticed(context: Context, message: str, history: Sequence[Message], memories: Sequence[Memory]) -> Json:
    """Return what of the message is to be remembered, what it asks memory, and what is left to search."""
    if not context.settings.memory_core:
        return {"noted": [], "recalls": None, "to_search": message}
    speaks_of_person = "memory" in context.models and _PERSONAL.search(
        message
    )  # a model is not asked about every question
    if speaks_of_person and (read := await _by_model(context, message, history, memories)):
        return read
    return by_rules(message, memories)


def by_rules(message: str, memories: Sequence[Memory] = ()) -> Json:
    """Return what ``noticed`` does, without a model."""
    statements, rest = read_preferences(message)
    if not statements:
        return {"noted": [], "recalls": question_to_memory(message, memories), "to_search": message}
    noted = [
        Noted(
            section=statement.section,
            content=statement.content,
            about=statement.about,
            polarity=statement.polarity,
            replaces=[m["id"] for m in memories if same_thing(statement, as_statement(m))],
        )
        for statement in statements[:MOST_NOTED]
    ]
    # only what is disliked leaves the question: its words would be searched for
    cut = not rest or any(note["polarity"] == "dislike" for note in noted)
    return {"noted": noted, "recalls": None, "to_search": rest if cut else message}


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
    noted = [
        Noted(
            section=note.section,
            content=note.content.strip(),
            about=note.about.strip(),
            polarity=note.polarity,
            replaces=[memories[n - 1]["id"] for n in note.replaces if 1 <= n <= len(memories)],
        )
        for note in reply.form.notes
    ]
    recalls = MemoryQuestion(about=reply.form.about, whose="", notes=None) if reply.form.asks_what_was_said else None
    return {"noted": noted, "recalls": recalls, "to_search": reply.form.question.strip() if noted else message}
