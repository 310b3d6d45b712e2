"""The keyword index: BM25 of SQLite's FTS5 over stemmed words and Chinese bigrams.

Score: Okapi BM25 with k1 1.2 and b 0.75 (fixed in FTS5), summed over three columns: the document's titles, the names
and values of its fields in both languages, and the passage itself.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from workbench.knowledge import rare_terms
from workbench.knowledge.index import Index
from workbench.text import CJK, terms

WEIGHTS = (3.0, 1.0, 1.0)
_FUNCTION_WORDS = """
    a an and are as at be been but by did do does for from had has have he her his how i in is it its me my of on or our
    she so that the their them there these they this those to was we were what when where which who whom whose why will
    with you your 的 了 是 在 和 与 吗 呢 哪 谁 有
"""
_SKIPPED = frozenset(_FUNCTION_WORDS.split())
_STEMMING = threading.Lock()
"""Snowball's stemmer holds the word that it works on, so two threads in it at once give nonsense or an IndexError."""


@lru_cache(maxsize=100_000)
def stem(term: str) -> str:
    """A term as it is kept: English words without possessive and ending (Snowball), Chinese as it is.

    >>> stem("invented"), stem("lee's"), stem("茶馆"), stem("1993")
    ('invent', 'lee', '茶馆', '1993')
    """
    if CJK.match(term) or not term.isascii():
        return term
    with _STEMMING:
        return _stemmer().stemWord(term.removesuffix("'s").replace("'", "")) or term.strip("'")


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")


def stored(text: str) -> str:
    """The terms of a text as the index keeps them, with spaces between."""
    return " ".join(stem(term) for term in terms(text))


def insert(connection: sqlite3.Connection, number: int, title: str, names: str, body: str) -> list[str]:
    """Index passage ``number`` by the ``stored`` title and names of its document. The terms of the body."""
    kept = stored(body)
    row = (number, title, names, kept)
    connection.execute("INSERT INTO terms (rowid, title, names, body) VALUES (?, ?, ?, ?)", row)
    return kept.split()


def search(
    index: Index, query: str, top_k: int, frequency: Callable[[str], int] | None = None
) -> list[tuple[str, float]]:
    """``(chunk_id, score > 0)``, best first, ties by id. Function words count only when there is nothing else.

    With ``frequency`` (in how many passages a stem stands) a large corpus is searched by its rare words.
    """
    asked = list(dict.fromkeys(terms(query)))
    wanted = dict.fromkeys(stem(term) for term in ([t for t in asked if t not in _SKIPPED] or asked))
    if not wanted or top_k < 1:
        return []
    if frequency and sum(map(frequency, wanted)) > rare_terms.LOOKED_AT:
        return rare_terms.search(index, list(wanted), top_k, WEIGHTS, frequency)
    match = " OR ".join(f'"{term}"' for term in wanted)
    sql = (
        "SELECT chunk_id, round(-bm25(terms, ?, ?, ?), 6) AS score FROM terms JOIN passages ON number = terms.rowid "
        "WHERE terms MATCH ? ORDER BY score DESC, chunk_id LIMIT ?"
    )
    return [(chunk, score) for chunk, score in index.rows(sql, (*WEIGHTS, match, top_k)) if score > 0]


def weight(frequency: int, passages: int) -> float:
    """ln((passages + 1) / (passages with the term + 1)): 0 for what is everywhere, most for what is nowhere.

    >>> weight(9, 9), weight(0, 9)
    (0.0, 2.302585)
    """
    return round(math.log((passages + 1) / (min(frequency, passages) + 1)), 6)


def frequency(index: Index, stemmed: str) -> int:
    """In how many passages a stem stands."""
    row = index.rows("SELECT doc FROM term_counts WHERE term = ?", (stemmed,))
    return int(row[0][0]) if row else 0
