"""The phrases that passages share: words with capitals and what is in 《》, whether or not they name an entity."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

from workbench.knowledge.names.surfaces import LONGEST, SAYS_LITTLE, ordinary_words, surface_key
from workbench.text import MONTHS, STOP_WORDS, sentences

_CAPITAL = r"(?:[A-Z][\w’'-]*\.?|\d{4})"
_PHRASE = re.compile(rf"{_CAPITAL}(?:\s+(?:(?:of|de|von|van|the|and|la|du|al|for|in|&)\s+){{0,2}}{_CAPITAL})*")
_DATE = re.compile(rf"\s+(?:(?:for|in|of|and)\s+)(?:(?:{'|'.join(MONTHS).title()})\b.*|\d{{4}})$")
_BOOK = re.compile(r"[《「『]([^《》「」『』\n]{1,40})[》」』]")
_POSSESSIVE = re.compile(r"['’][sS]\b")


def phrases(sentence: str) -> set[str]:
    """Return keys of the capitalised phrases and of what is in 《》; an ordinary word alone is not a phrase.

    >>> sorted(phrases("After the war he met Lao She's wife at New York University in 1990."))
    ['lao she', 'new york university']
    >>> phrases("老舍写了《茶馆》。")
    {'茶 馆'}
    """
    keys = {surface_key(title) for title in _BOOK.findall(sentence)}
    for match in _PHRASE.finditer(_POSSESSIVE.sub(" ,", sentence)):
        words = surface_key(_DATE.sub("", match.group())).split(" ")
        keys.add(" ".join(words[1:] if words[0] in STOP_WORDS else words))
    return {key for key in keys if _is_phrase(key)}


def _is_phrase(key: str) -> bool:
    words = key.split(" ")
    if len(words) > 1:
        return len(words) <= LONGEST
    return len(key) > 2 and not key.isdigit() and key not in ordinary_words() and key not in SAYS_LITTLE


def insert(connection: sqlite3.Connection, number: int, titles: Iterable[str], text: str) -> None:
    """Store the phrases of passage ``number``, with the keys of its document's titles."""
    keys = {key for sentence in sentences(text) for key in phrases(sentence)}
    keys.update(filter(_is_phrase, titles))
    connection.executemany("INSERT INTO phrases VALUES (?, ?)", ((key, number) for key in sorted(keys)))
