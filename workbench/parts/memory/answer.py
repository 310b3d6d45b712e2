"""What is answered from memory alone: what was said earlier, what is noted of the person, and what was just noted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from workbench.language.words import is_small_talk
from workbench.parts.memory.store import Memory
from workbench.state import Data, MemoryQuestion, Noted
from workbench.text import CJK, STOP_WORDS, content_stems, fold, sentences
from workbench.views.labels import Labels

_LIMIT, _LONGEST, _SHARE = 3, 300, 0.5
"""Quotations of an answer; characters of one; the least share of the question's words in a note or an exchange."""


# --- Which questions memory answers ---

_SPEAK = (
    "say|said|tell|told|mention(?:ed)?|ask(?:ed)?|recommend(?:ed)?|suggest(?:ed)?|discuss(?:ed)?"
)
_SPEAK_ZH = "说|问|提|讲|推荐|聊|告诉|谈"
_EARLIER = re.compile(
    rf"\b(?:did|have) (i|you|we) (?:just |already |ever )?(?:{_SPEAK})\b"
    rf"|\b(i|you|we)(?: have|'ve| had)? (?:just |already )?(?:said|told|mentioned|asked|recommended|suggested)\b"
    rf"|([我你])们?(?:刚才|刚刚|之前|先前)?(?:{_SPEAK_ZH})过|([我你])们?(?:刚才|刚刚|之前|先前)"
    r"|刚才|\bjust now\b|\b(?:i|my|you|your|we)\b.*\bearlier(?! than)",
    re.IGNORECASE,
)
_PERSON = re.compile(r"\b(?:i|my|me)\b|我(?!们)", re.I)
_IS_QUESTION = re.compile(r"[?？]\W*$|[吗呢]\W*$|什么|谁|哪|几|多少")
_NAME = re.compile(
    r"\bmy name\b|\bwho am i\b|我(?:的名字)?(?:叫|是)(?:什么|谁|啥)|我的?(?:名字|姓名)", re.I
)
_WHOLE = re.compile(
    r"\b(?:know|remember|noted|stored?) about me\b|关于我(?!们)|(?:了解|记得|知道)我(?:什么|哪些|多少)",
    re.I,
)
"""Everything noted is asked for."""
_LIKING = re.compile(
    r"\bdo(?: not|n't)? i (?:not )?(?:like|love|enjoy)\b|我不?(?:最|很)?(?:喜欢|爱)(?![^，；什哪谁]*[，；])",
    re.I,
)
"""A liking that is asked for; in Chinese not one that is stated in a clause before the question."""
_DISLIKING = re.compile(r"\bi not\b|n't i\b|\bi (?:hate|dislike)\b|我(?:不喜欢|讨厌|不爱)", re.I)
_OPEN = re.compile(r"^\W*(?:what|which|who)\b|什么|哪|谁", re.I)
_EMPTY = re.compile(
    rf"\b(?:{_SPEAK}|earlier|before|just|now|about|again|kind|sort|type|like|love|enjoy|hate|dislike|am|not|don't)\b"
    rf"|刚才|刚刚|之前|先前|{_SPEAK_ZH}|什么|哪[里儿个部些]?|谁|多少|几|类型|那[个部些]?|这[个部些]?|怎么|关于|喜欢|讨厌"
    r"|[我你他她们的了是在过吗呢啊不最有得到]",
    re.IGNORECASE,
)


def question_to_memory(message: str, notes: Sequence[Memory]) -> MemoryQuestion | None:
    """Return what a message asks of the conversation or of the notes; None where it is a question like any other.

    >>> asked = question_to_memory("What did I say about opera?", [])
    >>> asked["about"], asked["whose"], question_to_memory("What was agreed on 3 May?", [])
    ('opera', 'user', None)
    >>> question_to_memory("What do you know about me?", [])["notes"], question_to_memory("你了解我什么？", [])["notes"]
    ([], [])
    """
    plain = message.replace("’", "'")
    if len(message) > _LONGEST or not _IS_QUESTION.search(plain):
        return None
    if match := _EARLIER.search(plain):
        who = next(filter(None, match.groups()), "").lower()
        whose = {"i": "user", "我": "user", "you": "assistant", "你": "assistant"}.get(who, "")
        return MemoryQuestion(about=_about(plain), whose=whose, notes=None)
    if _WHOLE.search(plain):
        return MemoryQuestion(about="", whose="", notes=[note["id"] for note in reversed(notes)])
    fitting = _notes_for(plain, notes) if _PERSON.search(plain) else []
    if fitting or _NAME.search(plain) or (_LIKING.search(plain) and _OPEN.search(plain)):
        return MemoryQuestion(
            about=_about(plain), whose="", notes=[note["id"] for note in fitting]
        )
    return None


def _about(message: str) -> str:
    """Return the words of a question that say what it is about."""
    words = [
        word
        for word in re.findall(r"[\w'-]+", _EMPTY.sub(" ", message))
        if fold(word) not in STOP_WORDS
    ]
    return " ".join(words)


def _words(text: str, characters: bool = False) -> set[str]:
    spaced = CJK.sub(lambda match: f" {match[0]} ", text) if characters else text
    stems = content_stems(_EMPTY.sub(" ", spaced))
    # Letters of a stem that are compared.
    return {word[:6] for word in stems}


def _notes_for(message: str, notes: Sequence[Memory]) -> list[Memory]:
    """Return the notes that answer a question about the person, best first."""
    if _NAME.search(message):
        return [note for note in notes if note["section"] == "name"][-1:]
    wanted = _words(message, characters=True)
    newest = list(reversed(notes))
    liking = bool(_LIKING.search(message))
    if liking:
        newest = [note for note in newest if note["section"] == "preferences"]
    shared = {
        n["id"]: len(wanted & _words(f"{n['content']} {n['about']}", characters=True))
        for n in newest
    }
    fitting = [n for n in newest if wanted and shared[n["id"]] / len(wanted) >= _SHARE]
    if fitting or not liking or not _OPEN.search(message):
        return sorted(fitting, key=lambda n: -shared[n["id"]])[:1]
    polarity = "dislike" if _DISLIKING.search(message) else "like"
    return [note for note in newest if note["polarity"] == polarity][:_LIMIT]


# --- What they are answered with ---


class _Exchange(NamedTuple):
    at: str
    user: str
    assistant: str
    similarity: float


def acknowledge(noted: Sequence[Noted], zh: bool, user: str = "default") -> str:
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
    wanted = _words(request["about"])
    of_user = request["whose"] == "user"
    shares = {
        exchange: len(
            wanted & _words(exchange.user if of_user else f"{exchange.user} {exchange.assistant}")
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
            if shares[exchange] >= _SHARE or exchange.similarity >= 0.5
        ]
    statements = [
        exchange for exchange in best if of_user and not _IS_QUESTION.search(exchange.user)
    ]
    count = _LIMIT if statements and wanted else 1
    return [
        _side(exchange, request["whose"], wanted, labels)
        for exchange in (statements or best)[:count]
    ]


def _side(exchange: _Exchange, whose: str, wanted: set[str], labels: Labels) -> str:
    role = whose or (
        "assistant" if _IS_QUESTION.search(exchange.user) and exchange.assistant else "user"
    )
    text = exchange.user if role == "user" else exchange.assistant
    also = _words(exchange.user)
    best = max(
        sentences(text) or [text], key=lambda s: (len(wanted & _words(s)), len(also & _words(s)))
    )
    verb = "ask" if role == "user" and _IS_QUESTION.search(best) else "say"
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
    text = re.sub(r"\s?\[\d+\]", "", " ".join(text.split()))
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return labels(f"quoted_{who}", day=at[:10], text=text)
