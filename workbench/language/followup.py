"""Follow-ups: a message that leans on the conversation is asked together with what it leans on.

Nothing of a message is rewritten. One that only begins like the rest of a sentence ("And after 2005?") stands behind
the question before; one that asks for nothing but more is that question again; one with a pronoun and no name before
it, or with hardly a word of its own, gets the names that were spoken of last behind it, in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from workbench.language.names import names_in
from workbench.language.question import read
from workbench.language.words import is_small_talk
from workbench.ports import Bases
from workbench.state import Data, NameRead, Question
from workbench.text import CJK, detect_language

CARRIED = 3
"""Names or words that are carried over: more would drown the message."""
OWN_WORDS = 3
"""With this many words or fewer and no name a message leans."""
_PERSON = re.compile(r"\b(?:he|him|his|she|hers?)\b|(?<!其)[他她](?!们)", re.I)
_PRONOUN = re.compile(
    r"\b(?:he|him|his|she|hers?|its?|they|them|theirs?|this|that|these|those|there|similar)\b"
    r"|(?<!其)[他她它]|[这那][一两几]?[个部份篇项条款本种位些]|该|[前后两]者|类似",
    re.I,
)
_OPENER = re.compile(
    r"^\W*(?:(?:and )?(?:what|how) about|and|but|or|only|just)\b|^\W*只|呢\W*$", re.I
)
_ONESELF = re.compile(r"\b(?:i|me|my|myself)\b|我(?!们)", re.I)
_MORE = re.compile(r"\b(?:more|others?|another|else)\b|[再还]|别的|其他|更多|继续", re.I)


class Turn(NamedTuple):
    """An earlier question as it stands alone, its names, and those in its answer that a base knows."""

    question: Question
    names: list[NameRead]
    answer: list[NameRead]


def standalone(message: str, history: Sequence[Data], bases: Bases) -> str:
    """Return the message as a question that stands alone.

    Args:
        message: what the user asks now.
        history: the messages before it, oldest first, each with ``role`` and ``content``.
        bases: the knowledge bases whose names and fields are known.
    """
    turns: list[Turn] = []
    for entry in history:
        content = entry["content"]
        if entry["role"] == "user" and not is_small_talk(content):
            text = _joined(content, turns, bases)
            turns.append(Turn(read(text, bases), names_in(text, bases), []))
        elif entry.get("only_noted") and turns:
            turns.pop()
        elif entry["role"] == "assistant" and turns:
            turns[-1].answer.extend(name for name in names_in(content, bases) if name["bases"])
    return _joined(message, turns, bases)


def _joined(message: str, turns: Sequence[Turn], bases: Bases) -> str:
    if not turns or is_small_talk(message):
        return message
    before = turns[-1].question["text"]
    names = names_in(message, bases)
    question = read(_MORE.sub("", message), bases)
    pronoun = _PRONOUN.search(message)
    if not (question["words"] or question["fields"] or pronoun):
        if _OPENER.search(message):
            stop = "。" if CJK.search(before) else ". "
            return f"{before}{' ' if before[-1] in '.!?。！？' else stop}{message}"
        if _MORE.search(message) and not (names or question["conditions"]):
            return before
    known_names = [name for name in names if name["type"] not in ("", "Name")]
    wish = question["conditions"] or question["intent"] == "recommend"
    short = (
        not (wish or names or _ONESELF.search(message)) and len(question["words"]) <= OWN_WORDS
    )
    leans = (
        pronoun and pronoun.start() < known_names[0]["start"] if known_names else pronoun or short
    )
    carried = _carried(message, turns) if leans else []
    brackets = "{}（{}）" if detect_language(message) == "zh" else "{} ({})"
    return brackets.format(message, ", ".join(carried)) if carried else message


def asks_for_more(message: str, question: Question) -> bool:
    """Return True for a message that was joined to more of the question before: what was listed stays out then."""
    return message not in question["text"] and bool(_MORE.search(message))


def _carried(message: str, turns: Sequence[Turn]) -> list[str]:
    """Return names of the question before, of a person for "he"; where it has none, its words."""
    person = bool(_PERSON.search(message))
    for turn in reversed(turns):
        names = [*turn.names, *turn.answer] if person else turn.names
        alike = [name for name in names if (name["type"].lower() == "person") == person]
        surfaces = {name["name"]: name["surface"] for name in alike or names}.values()
        parts = [
            part
            for part in dict.fromkeys(surfaces or turn.question["words"])
            if part not in message
        ]
        if parts:
            return parts[:CARRIED]
    return []
