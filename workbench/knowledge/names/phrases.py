"""What is written like a name, without a model: what is in 《》, and words with capitals.

One rule for all readers: the names in a text that no field has, the phrases that passages share, and the names in a
question that no base knows.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator

from workbench.knowledge import vocabulary
from workbench.knowledge.names.entities import LONGEST_NAME
from workbench.knowledge.names.surfaces import (
    LONGEST,
    SAYS_LITTLE,
    is_ordinary,
    ordinary_words,
    surface_key,
)
from workbench.text import MONTHS, sentences

_WORD = r"(?:[A-Z](?:[\w.-]|['’](?!s\b))*\w|[A-Z]\b\.?|\d+(?:st|nd|rd|th)?(?=\s[A-Z]))"
_JOIN = r"(?:of|the|de|del|der|van|von|da|di|du|la|le|&)"
_WRITTEN = re.compile(
    rf"[《「『]([^《》「」『』\n]{{1,40}})[》」』]|(?<![\w'’]){_WORD}(?:\s+(?:{_JOIN}\s+){{0,2}}{_WORD})*"
)
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_NO_NAMES = frozenset(["the", "a", "an", "i", "i'm", *MONTHS, *_DAYS.split()])


def capitalised(sentence: str) -> Iterator[tuple[int, int]]:
    """Yield where a sentence has a name: without dates, articles, and an ordinary word at its beginning.

    >>> text = "Did Zhang Yimou direct 《蛙》 with Kristin Hunter's son in May?"
    >>> [text[start:end] for start, end in capitalised(text)]
    ['Zhang Yimou', '蛙', 'Kristin Hunter']
    """
    for match in _WRITTEN.finditer(sentence):
        if match[1]:
            yield match.span(1)
            continue
        begins = not sentence[: match.start()].strip(" \"'“‘(*_-")
        words = list(re.finditer(r"\S+", match[0]))
        while words and _is_no_name(words[0][0], begins):
            words = words[1:]
            begins = False
        while words and (words[-1][0].lower() in _NO_NAMES or words[-1][0].isdigit()):
            words = words[:-1]
        start, end = (words[0].start(), words[-1].end()) if words else (0, 0)
        if end - start > 1 and not (begins and len(words) == 1):
            yield match.start() + start, match.start() + end


def _is_no_name(word: str, begins: bool) -> bool:
    joins = word.isalpha() and word.islower()  # "of" of what stood before it
    return joins or word.lower() in _NO_NAMES or (begins and word.lower() in ordinary_words())


def names_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names in a text with their sentences, in its order; ordinary words and countries are no entities."""
    for sentence in sentences(text):
        for start, end in capitalised(sentence):
            surface = sentence[start:end]
            titled = sentence[start - 1 : start] in ("《", "「", "『")
            plain = (
                is_ordinary(surface_key(surface))
                or vocabulary.country(surface)
                or len(surface) > LONGEST_NAME
            )
            if titled or not plain:
                yield surface, sentence


def phrases(sentence: str) -> set[str]:
    """Return the keys of the names in a sentence; an ordinary word alone is not a phrase.

    >>> sorted(phrases("After the war he met Lao She's wife at New York University in 1990."))
    ['lao she', 'new york university']
    """
    keys = {surface_key(sentence[start:end]) for start, end in capitalised(sentence)}
    return set(filter(_is_phrase, keys))


def _is_phrase(key: str) -> bool:
    words = key.split(" ")
    if len(words) > 1:
        return len(words) <= LONGEST
    return (
        len(key) > 2
        and not key.isdigit()
        and key not in ordinary_words()
        and key not in SAYS_LITTLE
    )


def insert(connection: sqlite3.Connection, number: int, titles: Iterable[str], text: str) -> None:
    """Store the phrases of passage ``number``, with the keys of its document's titles."""
    keys = {key for sentence in sentences(text) for key in phrases(sentence)}
    keys.update(filter(_is_phrase, titles))
    connection.executemany(
        "INSERT INTO phrases VALUES (?, ?)", ((key, number) for key in sorted(keys))
    )
