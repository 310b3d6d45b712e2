"""The keyword index: BM25 of SQLite's FTS5 over stemmed words and Chinese bigrams.

Score: Okapi BM25 with k1 1.2 and b 0.75 (fixed in FTS5), summed over three columns: the document's titles, the names
and values of its fields in both languages, and the passage itself.
"""

from __future__ import annotations

import math
import sqlite3

from workbench.knowledge.indexes.index import Index
from workbench.text import is_stop_word, stem, terms


def stored(text: str) -> str:
    """Return the terms of a text as the index keeps them, with spaces between."""
    return " ".join(stem(term) for term in terms(text))


def insert(
    connection: sqlite3.Connection, number: int, title: str, names: str, body: str
) -> None:
    """Index passage ``number`` by the ``stored`` title and names of its document."""
    row = (number, title, names, stored(body))
    connection.execute("INSERT INTO terms (rowid, title, names, body) VALUES (?, ?, ?, ?)", row)


def search(index: Index, query: str, top_k: int) -> list[tuple[str, float]]:
    """Return ``(chunk_id, score > 0)``, best first, ties by id. Function words count only without any other."""
    weights = (3.0, 1.0, 1.0)
    every = list(dict.fromkeys(terms(query)))
    stems = dict.fromkeys(
        stem(term) for term in [t for t in every if not is_stop_word(t)] or every
    )
    if not stems or top_k < 1:
        return []
    sql = (
        "SELECT chunk_id, round(-bm25(terms, ?, ?, ?), 6) AS score FROM terms JOIN passages ON number = terms.rowid "
        "WHERE terms MATCH ? ORDER BY score DESC, chunk_id LIMIT ?"
    )
    match = " OR ".join(f'"{stem}"' for stem in stems)
    return [
        (chunk_id, score)
        for chunk_id, score in index.rows(sql, (*weights, match, top_k))
        if score > 0
    ]


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
