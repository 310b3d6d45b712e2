"""What is answered from memory alone: what was said earlier, what is noted of the person, and what was just noted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from workbench.language.words import is_small_talk
from workbench.parts.memory.reading import (
    IS_QUESTION,
    LONGEST,
    MOST_NOTES,
    SHARE,
    question_to_memory,
    subject_stems,
)
from workbench.state import Data, MemoryQuestion, Noted
from workbench.text import sentences, unmarked
from workbench.views.labels import Labels
from workbench.views.markup import cut


class _Exchange(NamedTuple):
    at: str
    user: str
    assistant: str
    similarity: float


def acknowledge(noted: Sequence[Noted], zh: bool, user: str) -> str:
    """Return what is noted of a message, and how to take it back."""
    labels = Labels("zh" if zh else "en")
    text = labels("semicolon").join(note["content"].rstrip(" .。！!") for note in noted)
    undo = f"wb.memory.undo({'' if user == 'default' else f'user={user!r}'})"
    return labels("ack_noted", text=text, undo=undo) if noted else ""


def answer_from_memory(request: MemoryQuestion, state: Data, zh: bool) -> str:
    """Return what was said or noted, quoted with its day; or that nothing was."""
    labels = Labels("zh" if zh else "en")
    about = request["about"]
    if request["notes"] is None:
        quotations = _from_conversation(request, state, labels)
        return "\n".join(quotations) or labels(
            "said_nothing_about" if about else "said_nothing", about=about
        )
    notes = {note["id"]: note for note in state.get("known") or []}
    quoted = [notes[note_id] for note_id in request["notes"] if note_id in notes]
    if quoted:
        return "\n".join(
            _quoted("user_say", note["created_at"], note["content"], labels) for note in quoted
        )
    return labels("noted_nothing") + (
        labels("noted_nothing_search", about=about) if about else ""
    )


def _from_conversation(request: MemoryQuestion, state: Data, labels: Labels) -> list[str]:
    """Quote the exchanges that have most of the words asked for, of equal ones the newest.

    The person's own question is never the answer to a question of what was said: then it is what answered it.
    """
    exchanges = _exchanges(state)
    wanted = subject_stems(request["about"])
    of_user = request["whose"] == "user"
    shares = {
        exchange: len(
            wanted
            & subject_stems(exchange.user if of_user else f"{exchange.user} {exchange.assistant}")
        )
        / (len(wanted) or 1)
        for exchange in exchanges
    }
    best = sorted(exchanges, key=lambda exchange: (shares[exchange], exchange.at), reverse=True)
    if wanted:
        # The similarity at which an exchange counts without sharing a word.
        best = [
            exchange
            for exchange in best
            if shares[exchange] >= SHARE or exchange.similarity >= 0.5
        ]
    statements = [
        exchange for exchange in best if of_user and not IS_QUESTION.search(exchange.user)
    ]
    count = MOST_NOTES if statements and wanted else 1
    return [
        _side(exchange, request["whose"], wanted, labels)
        for exchange in (statements or best)[:count]
    ]


def _side(exchange: _Exchange, whose: str, wanted: set[str], labels: Labels) -> str:
    role = whose or (
        "assistant" if IS_QUESTION.search(exchange.user) and exchange.assistant else "user"
    )
    text = exchange.user if role == "user" else exchange.assistant
    also = subject_stems(exchange.user)
    best = max(
        sentences(text) or [text],
        key=lambda s: (len(wanted & subject_stems(s)), len(also & subject_stems(s))),
    )
    verb = "ask" if role == "user" and IS_QUESTION.search(best) else "say"
    return _quoted(f"{role}_{verb}", exchange.at, best, labels)


def _exchanges(state: Data) -> list[_Exchange]:
    """Return the earlier exchanges that were recalled, oldest first; without those that asked what was said."""
    by_texts = {
        (episode["user_message"], episode["assistant_message"]): (
            episode["created_at"],
            episode["similarity"],
        )
        for episode in state.get("recalled_episodes") or []
    }
    for question, reply in pairwise(state.get("history") or []):
        if (question["role"], reply["role"]) == ("user", "assistant"):
            by_texts.setdefault(
                (question["content"], reply["content"]), (reply["created_at"], 0.0)
            )
    exchanges = [
        _Exchange(at, *texts, similarity) for texts, (at, similarity) in by_texts.items()
    ]
    ordinary = [
        e for e in exchanges if not is_small_talk(e.user) and not question_to_memory(e.user, [])
    ]
    return sorted(ordinary, key=lambda exchange: exchange.at)


def _quoted(who: str, at: str, text: str, labels: Labels) -> str:
    quoted = cut(unmarked(" ".join(text.split())), LONGEST)
    return labels(f"quoted_{who}", day=at[:10], text=quoted)
