"""Who a question may be about: every known name in it, by how surely the writer means a name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.context import Entity, KnowledgeBase, Mention
from workbench.knowledge.surfaces import STOP, key_of, ordinary_words
from workbench.text import CJK
from workbench.tools.signals import claimed_names

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_QUOTED = re.compile(r"[《〈“\"「『]([^》〉”\"」』]+)[》〉”\"」』]")
_FIRST_WORDS = "and who what which when where how list name describe can the in is are was were did do does give"
_FIRST = frozenset(_FIRST_WORDS.split())
"""Words whose capital at the head of a question says nothing."""
_CAPITAL, _RARE, _PLAIN = 1.0, 0.5, -0.1
"""What a word of the name speaks for it: with a capital or digit; in small letters, and no ordinary one; ordinary."""
_LOST_CAPITAL, _LOST_RARE = -1.5, -0.8
"""What a word beside the name speaks against it: the name should have been longer."""
_AS_WRITTEN, _QUOTES, _LETTER = 0.6, 4.0, 0.05
_BEHIND = 4.0
"""Names that much worse than the best are nobody's topic."""
MOST_TOPICS = 50
"""Distinct names that are weighed; a question that names more asks for no one path."""


@dataclass(frozen=True)
class Topic:
    """Whom ``text[start:end]`` may name, and how surely; ``whole``: by a name that leaves no other beside it."""

    start: int
    end: int
    entity: Entity
    score: float
    whole: bool


def topics(text: str, given: Sequence[str], knowledge: KnowledgeBase) -> list[Topic]:
    """Whom a question may be about, best first.

    Args:
        text: the question.
        given: names that it is about, when they are known: no other is looked at, if one of them stands there.
        knowledge: where the names are.
    """
    readings, found = knowledge.typed.readings(text), []
    surnames = [mention for mention in knowledge.link(text) if mention not in readings]
    first: dict[str, Mention] = {}  # a name that stands there a thousand times is one topic
    for mention in [*readings, *surnames]:
        first.setdefault(mention["entity_id"], mention)
    for mention in list(first.values())[:MOST_TOPICS]:
        entity = knowledge.entity(mention["entity_id"])
        if entity:
            place = mention["start"], mention["end"]
            found.append(Topic(*place, entity, _surely(text, *place, entity), _whole(text, *place)))
    keys = {key_of(name) for name in given}
    named = [t for t in found if keys & {key_of(text[t.start : t.end]), key_of(t.entity["name"])}]
    found = sorted(named or found, key=lambda t: (-round(t.score, 6), t.start, t.entity["entity_id"]))
    return [topic for topic in found if topic.score > found[0].score - _BEHIND]


def _surely(text: str, start: int, end: int, entity: Entity) -> float:
    """How surely a name is meant: by its capitals, its length, its quotation marks, and what it leaves unexplained."""
    total = _LETTER * (end - start)
    for match in _WORD.finditer(text):
        word, inside = match.group(), start <= match.start() < end
        if CJK.search(word):
            continue
        key = key_of(word)
        capital = any(c.isupper() or c.isdigit() for c in word) and not (match.start() == 0 and key in _FIRST)
        plain = key in STOP or key in ordinary_words()
        if capital:
            total += _CAPITAL if inside else _LOST_CAPITAL
        elif inside:
            total += _PLAIN if plain else _RARE
        elif not plain:
            total += _LOST_RARE
    total += sum(_LETTER * 10 for _ in CJK.findall(text[start:end]))
    if any(abs(m.start(1) - start) + abs(m.end(1) - end) <= 2 for m in _QUOTED.finditer(text)):
        total += _QUOTES
    return total + (_AS_WRITTEN if _as_written(text, start, end, entity["name"]) else 0.0)


def _whole(text: str, start: int, end: int) -> bool:
    """Whether it is written like a name, and nothing else in the question is."""
    inside = text[start:end]
    named = (len(CJK.findall(inside)) > 1) or any(c.isupper() or c.isdigit() for c in inside)
    return named and not claimed_names(f"{text[:start]} / {text[end:]}")


def _as_written(text: str, start: int, end: int, name: str) -> bool:
    """Whether the name stands there sign for sign; marks at its ends belong to no word: "Moulin Rouge!"."""
    place = text.find(name, max(0, start - 3), end + 3)
    return 0 <= place <= start and place + len(name) >= end
