"""The whole reading of a question, as the part of a route decision that depends on nothing but its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TypedDict

from workbench.context import KnowledgeBase
from workbench.question.filters import asked_fields, blank, extract_filters
from workbench.question.intent import detect_intent, media_type
from workbench.question.language import language_file
from workbench.question.names import Named, names_in
from workbench.state import ExtractedEntities, Filters, QueryIntent


class Reading(TypedDict):
    """What a question wants and names."""

    query_intent: QueryIntent
    media_type_hint: str
    filters: Filters
    extracted_entities: ExtractedEntities


@cache
def _stop_words() -> tuple[frozenset[str], re.Pattern[str]]:
    words = " ".join(language_file("stop_words.txt")).split()
    chinese = sorted((word for word in words if not word.isascii()), key=lambda word: (-len(word), word))
    return frozenset(word for word in words if word.isascii()), re.compile("|".join(chinese))


_WORD = re.compile(r"(?<=[\w,;] )[A-Z][\w'’-]+(?: [A-Z][\w'’-]*)+|[A-Za-z][A-Za-z'’-]+|[\u3400-\u4dbf\u4e00-\u9fff]+")
"""A phrase in capitals past the first word ("World War II"), an English word, a run of Chinese."""


def read_question(question: str, bases: Sequence[KnowledgeBase]) -> Reading:
    """Read a question against the names of these knowledge bases."""
    return reading(question, names_in(question, bases))


def reading(question: str, names: Sequence[Named]) -> Reading:
    """The reading of a question whose names are known."""
    return {
        "query_intent": detect_intent(question, names)[0],
        "media_type_hint": media_type(question, names),
        "filters": extract_filters(question, names),
        "extracted_entities": {
            "low_level": list(dict.fromkeys(named["name"] for named in names)),
            "high_level": themes(question, names),
        },
    }


def themes(question: str, names: Iterable[Named] = ()) -> list[str]:
    """The content words that are neither names nor times nor the way of asking, in their order.

    >>> themes("Recommend some films about family and cooking from the 1990s")
    ['family', 'cooking']
    >>> themes("推荐几部关于家庭和美食的电影"), themes("Any films set in New York?")
    (['家庭', '美食'], ['New York'])
    """
    names = list(names)
    plain = blank(question, names)
    for ask in asked_fields(question, names):
        if ask.field == "years":
            plain = plain[: ask.start] + "_" * (ask.end - ask.start) + plain[ask.end :]
    found: list[str] = []
    english, chinese = _stop_words()
    for word in _WORD.findall(plain.replace("’", "'")):
        if word[0].isascii():
            found += [word] if re.sub(r"'(?:s|m|d|re|ve|ll)$", "", word.lower()) not in english else []
        else:
            found += [part for part in chinese.split(word) if len(part) > 1]
    return list(dict.fromkeys(found))
