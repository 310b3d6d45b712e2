"""Follow-ups: a message that leans on the conversation is asked together with what it leans on.

It leans when it has a pronoun and no name of its own, begins like the rest of a sentence ("And Apollo?"),
or has hardly a word of its own. A name or a year alone goes into the question before, in the place of its like; any
other gets the names that were spoken of last behind it, in brackets. What stands alone is left letter by letter.
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
from workbench.text import detect_language

CARRIED = 3
"""Names or words that are carried over: more would drown the message (``experiments/followups.py``)."""
OWN_WORDS = 3
"""With this many words or fewer and no name a message leans."""
_PERSON = re.compile(r"\b(?:he|him|his|she|hers?)\b|(?<!其)[他她](?!们)", re.I)
_PRONOUN = re.compile(
    r"\b(?:he|him|his|she|hers?|its?|they|them|theirs?|this|that|these|those|there|similar)\b"
    r"|(?<!其)[他她它]|[这那][一两几]?[个部份篇项条款本种位些]|该|[前后两]者|类似",
    re.I,
)
_OPENER = re.compile(
    r"^\W*(?:(?:and )?(?:what|how) about|and|but|or|so|then|if|since|no|yes|(?:\w+\W+)?i meant?)\b"
    r"|^\W*(?:那么?|还有|以及|换成)(?![个部份篇些位两])(?=.*呢)",
    re.I,
)
_ONLY = re.compile(r"^\W*(?:only|just)\b|^\W*只", re.I)
_MORE = re.compile(r"\b(?:more|others?|another|else)\b|[再还]|别的|其他|更多|继续", re.I)
_YEAR = re.compile(r"(?:\b(?:in|after|before|since|until) )?(?<!\d)(?:1\d|20)\d\d(?!\d)(?:年(?:[以之][前后])?)?", re.I)


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
        elif entry["role"] == "assistant" and turns:
            turns[-1].answer.extend(name for name in names_in(content, bases) if name["bases"])
    return _joined(message, turns, bases)


def _joined(message: str, turns: Sequence[Turn], bases: Bases) -> str:
    if not turns or is_small_talk(message):
        return message
    last, names = turns[-1], names_in(message, bases)
    question = read(_YEAR.sub("", _MORE.sub("", message)), bases)
    words = [*question["words"], *question["fields"]]
    bare = not (words or question["conditions"] or _PRONOUN.search(message))
    if _MORE.search(message) and bare and not names:
        return last.question["text"]
    if _ONLY.match(message):
        return f"{last.question['text']} {message}"
    opened = _OPENER.match(message) or message.rstrip("？?").endswith("呢")
    if opened and bare:
        return _in_place(message, names, turns)
    if not _leans(message, question, names, bool(opened)):
        return message
    carried = _carried(message, turns, bases)
    brackets = "{}（{}）" if detect_language(message) == "zh" else "{} ({})"
    return brackets.format(message, ", ".join(carried)) if carried else message


def asks_for_more(message: str, question: Question) -> bool:
    """Return True for a message that was joined to more of the question before: what was listed stays out then."""
    return message not in question["text"] and bool(_MORE.search(message))


def _leans(message: str, question: Question, names: Sequence[NameRead], opened: bool) -> bool:
    """Return whether a message needs what was spoken of; one about a known thing only for a pronoun before it."""
    pronoun = _PRONOUN.search(message)
    if any(name["type"] not in ("", "Name") for name in names):
        return pronoun is not None and pronoun.start() < names[0]["start"]
    wish = question["conditions"] or question["intent"] == "recommend"
    short = len(question["words"]) + len(names) <= OWN_WORDS
    return bool(pronoun or opened or (short and not wish))


def _in_place(message: str, names: Sequence[NameRead], turns: Sequence[Turn]) -> str:
    """Put a year into the question before, a name into the last question with one of its kind; else behind it.

    Where all names before are of other kinds, the message is asked as it stands.
    """
    text = turns[-1].question["text"]
    years = [match.span() for match in _YEAR.finditer(text)]
    if names:
        name = names[-1]
        part = name["surface"]
        alike = [(turn, [n for n in turn.names if n["type"] == name["type"] or not name["bases"]]) for turn in turns]
        turn, kind = next((pair for pair in reversed(alike) if pair[1]), (turns[-1], []))
        if turns[-1].names and not kind:
            return message
        text, places = turn.question["text"], [(n["start"], n["end"]) for n in kind]
    elif year := _YEAR.search(message):
        part, places = year[0], years
    else:
        part, places = message, []
    if not places:
        return f"{text} {part}"
    start, end = places[-1]
    return text[:start] + part + text[end:]


def _carried(message: str, turns: Sequence[Turn], bases: Bases) -> list[str]:
    """Return names of the question before, of a person for "he"; where it has none, its rarest words."""
    person = bool(_PERSON.search(message))
    for turn in reversed(turns):
        names = [*turn.names, *turn.answer] if person else turn.names
        alike = [name for name in names if (name["type"].lower() == "person") == person]
        surfaces = {name["name"]: name["surface"] for name in alike or names}.values()
        words = sorted(
            turn.question["words"], key=lambda w: -max([base.term_weight(w.lower()) for base in bases], default=0)
        )
        parts = [part for part in dict.fromkeys(surfaces or words) if part not in message]
        if parts:
            return parts[:CARRIED]
    return []
