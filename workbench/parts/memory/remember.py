"""What is remembered is obeyed, and kept: preferences as conditions, notes with the answer, summaries after it.

A preference becomes a condition of a recommendation where a field of the knowledge base has such a value, unless the
question itself speaks of it; the plan states it, and a person can strike it. What a message says of the person is noted
when it has been answered, by a run of its own alone: forks and replays write nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, Field

from workbench.graphs.roles import ask_model
from workbench.graphs.route import Route
from workbench.language.wording import in_words
from workbench.parts.memory.answer import question_to_memory
from workbench.parts.memory.store import outdated
from workbench.parts.memory.summarizing import summarize
from workbench.ports import Context, KnowledgeBase, Remembering
from workbench.records.prompts import fenced
from workbench.state import AppliedPreference, Condition, Data
from workbench.text import fold

RULES = "rules"
_REBUILD_EVERY = 10
"""Updates after which a summary is made of all messages again."""


def preference_conditions(
    preferences: Iterable[Data], route: Route, bases: Sequence[KnowledgeBase], struck: Iterable[str] = ()
) -> list[AppliedPreference]:
    """Return what preferences come to as conditions on what is recommended.

    What is disliked is left out, of a list too when this message asks for it. What is liked is looked for where the
    question asks for nothing in particular: then the newest like leads, with the others of its field. Of two about one
    value the newest counts; none counts about what the question itself asks for, or that would leave nothing of it;
    and what is liked gives way to what is not.

    Args:
        preferences: memories or notes, oldest first: ``about``, ``polarity``, ``content`` and, if kept, ``id``.
        route: the question as it was read, and where it goes.
        bases: of the route.
        struck: ids of those that are not to count.
    """
    reading = route.decision.get("question")
    if not reading or reading["intent"] not in ("recommend", "list"):
        return []
    question, left_out, newest = fold(reading["text"]), set(struck), dict[tuple[str, str], AppliedPreference]()
    for preference in preferences:
        now = not preference.get("id") and preference["polarity"] == "dislike"
        memory_id = str(preference.get("id") or f"now:{preference['about']}")
        if not preference["polarity"] or memory_id in left_out or not (now or reading["intent"] == "recommend"):
            continue
        for base in bases:
            for field, value in _values(base, preference["about"]):
                newest.pop((field, value), None)
                if fold(value) not in question and fold(preference["about"]) not in question:
                    newest[field, value] = _as_condition(preference, memory_id, base, field, value, reading["language"])
    likes = [preference for preference in newest.values() if preference["condition"]["op"] == "in"]
    dislikes = [preference for preference in newest.values() if preference["condition"]["op"] == "ne"]

    def leaves_any(applied: Sequence[AppliedPreference]) -> bool:
        conditions = with_conditions(route, applied).decision["question"]["conditions"]
        return any(base.select(conditions, limit=1) for base in bases)

    if reading["conditions"]:
        return [preference for preference in dislikes if leaves_any([preference])]
    if reading["names"] or not likes:
        return dislikes
    field = likes[-1]["condition"]["field"]
    leading = [preference for preference in likes if preference["condition"]["field"] == field]
    return [*dislikes, *leading] if leaves_any([*dislikes, *leading]) else dislikes


def _as_condition(
    preference: Data, memory_id: str, base: KnowledgeBase, field: str, value: str, language: str
) -> AppliedPreference:
    likes = preference["polarity"] == "like"
    condition = Condition(field=field, op="in" if likes else "ne", value=[value] if likes else value)
    about = next(f for f in base.about()["fields"] if f["name"] == field)
    because = ("（因为你说过：{}）" if language == "zh" else " (since you said: {})").format(preference["content"])
    return AppliedPreference(
        memory_id=memory_id, condition=condition, told=in_words(condition, about, language) + because
    )


def _values(base: KnowledgeBase, about: str) -> list[tuple[str, str]]:
    """``(field, value)`` of what a knowledge base calls so: values of categories, else names in fields."""
    spoken = [(mention["field"], mention["value"]) for mention in base.link(about, "value")]
    if spoken or not (entity := base.entity(about)):
        return list(dict.fromkeys(spoken))
    names = [field["name"] for field in base.about()["fields"] if field["type"] == "name"]
    matches = ((name, base.select([Condition(field=name, op="eq", value=entity["name"])], limit=1)) for name in names)
    return [(name, entity["name"]) for name, records in matches if records]


def with_conditions(route: Route, conditions: Sequence[AppliedPreference]) -> Route:
    """Return the route with what is obeyed among its conditions: likes of one field together, any of them will do."""
    if not conditions:
        return route
    reading = route.decision["question"]
    merged = list[Condition]()
    for preference in conditions:
        condition = preference["condition"]
        beside = next(
            (c for c in merged if c["op"] == condition["op"] == "in" and c["field"] == condition["field"]), None
        )
        if beside:
            beside["value"] = list(dict.fromkeys([*beside["value"], *condition["value"]]))
        else:
            merged.append(Condition(**condition))
    understood = [*reading["understood"], *dict.fromkeys(preference["told"] for preference in conditions)]
    reading = {**reading, "conditions": [*reading["conditions"], *merged], "understood": understood}
    return Route({**route.decision, "question": reading, "filters": reading["conditions"]}, route.kb_prefixes)


def apply_preferences(
    state: Data, route: Route, bases: Sequence[KnowledgeBase], struck: Iterable[str] = ()
) -> tuple[Route, list[AppliedPreference]]:
    """Return the route with what is known of the person as conditions, and these; without what was struck."""
    out = [*state.get("without", []), *state.get("struck", []), *struck]
    conditions = preference_conditions([*state.get("known", []), *state.get("noted", [])], route, bases, out)
    return with_conditions(route, conditions), conditions


def keep_noted(memory: Remembering, state: Data, author: str) -> None:
    """Write down what the message said of the person; running again writes it once."""
    source = {"conversation_id": state["conversation_id"], "message_id": state["user_message_id"]}
    for number, note in enumerate(state.get("noted") or []):
        memory.remember(state["user_id"], author=author, key=f"{state['run_id']}:{number}", **note, **source)


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
    count, covered = store.count_messages(conversation_id), old["covered_message_count"] if old else 0
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
    reply = await ask_model(context, "summarizer", SummedUp, slots, question=messages[-1]["content"], quiet=True)
    return reply.form.summary.strip() if reply.form else ""


def _of_the_corpus(messages: Sequence[Data], notes: Sequence[Any]) -> list[Data]:
    """Return messages without what memory was asked and answered: that is in memory, and may not hold any more."""
    to_memory = [m["role"] == "user" and question_to_memory(str(m["content"]), notes) is not None for m in messages]
    answered = [False, *to_memory][: len(messages)]
    return [m for m, question, answer in zip(messages, to_memory, answered, strict=True) if not (question or answer)]
