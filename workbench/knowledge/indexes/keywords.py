"""The keyword index: BM25 of SQLite's FTS5 over stemmed words and Chinese bigrams.

Score: Okapi BM25 with k1 1.2 and b 0.75 (fixed in FTS5), summed over three columns: the document's titles, the names
and values of its fields in both languages, and the passage itself.
"""

from __future__ import annotations

import math
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, combinations

from workbench.knowledge.indexes.index import Index
from workbench.text import STOP_WORDS, stem, terms

WEIGHTS = (3.0, 1.0, 1.0)
LOOKED_AT = 10_000
"""Passages that hold a word of the question, above which only those that hold its rarest words are scored."""
_SCORED = 3
"""How many times as many as asked for are scored then, at least 300."""
_SKIPPED = STOP_WORDS | frozenset("的了是在和与吗呢哪谁有")


def stored(text: str) -> str:
    """Return the terms of a text as the index keeps them, with spaces between."""
    return " ".join(stem(term) for term in terms(text))


def insert(connection: sqlite3.Connection, number: int, title: str, names: str, body: str) -> None:
    """Index passage ``number`` by the ``stored`` title and names of its document."""
    row = (number, title, names, stored(body))
    connection.execute("INSERT INTO terms (rowid, title, names, body) VALUES (?, ?, ?, ?)", row)


def search(
    index: Index, query: str, top_k: int, frequency: Callable[[str], int] | None = None
) -> list[tuple[str, float]]:
    """``(chunk_id, score > 0)``, best first, ties by id. Function words count only when there is nothing else.

    With ``frequency`` (in how many passages a stem stands), a question with common words scores by all its words only
    the passages that are best by the rarest ones: of 100,000 passages in a quarter of the time.
    """
    asked = list(dict.fromkeys(terms(query)))
    wanted = list(dict.fromkeys(stem(term) for term in ([t for t in asked if t not in _SKIPPED] or asked)))
    if not wanted or top_k < 1:
        return []
    sql = (
        "SELECT chunk_id, round(-bm25(terms, ?, ?, ?), 6) AS score FROM terms JOIN passages ON number = terms.rowid "
        "WHERE terms MATCH ? {} ORDER BY score DESC, chunk_id LIMIT ?"
    )
    match, among, numbers = _either(wanted), "", list[int]()
    if frequency and sum(map(frequency, wanted)) > LOOKED_AT:
        numbers = _best_by_rarest(index, wanted, frequency, max(_SCORED * top_k, 300))
        among = f"AND +terms.rowid IN ({', '.join('?' * len(numbers))})"
    rows = index.rows(sql.format(among), (*WEIGHTS, match, *numbers, top_k))
    return [(chunk, score) for chunk, score in rows if score > 0]


def _either(stems: Iterable[str]) -> str:
    return " OR ".join(f'"{stem}"' for stem in stems)


def _best_by_rarest(index: Index, stems: Sequence[str], frequency: Callable[[str], int], most: int) -> list[int]:
    """Numbers of the passages that are best by the rarest words alone, or by two rare ones where each is common."""
    counts = {stem: count for stem in stems if (count := frequency(stem))}
    rarest = sorted(counts, key=lambda stem: (counts[stem], stem))
    if counts[rarest[0]] > LOOKED_AT and len(rarest) > 1:
        pairs = [f'("{one}" AND "{other}")' for one, other in combinations(rarest[:3], 2)]
        found = _best(index, " OR ".join(pairs), most)
        if len(found) >= most // _SCORED:
            return found
    totals = list(accumulate(counts[stem] for stem in rarest))
    return _best(index, _either(rarest[: max(1, bisect_right(totals, LOOKED_AT))]), most)


def _best(index: Index, match: str, most: int) -> list[int]:
    sql = "SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY bm25(terms, ?, ?, ?), rowid LIMIT ?"
    return [row[0] for row in index.rows(sql, (match, *WEIGHTS, most))]


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
