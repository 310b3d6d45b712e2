"""The keyword index: BM25 of SQLite's FTS5 over stemmed words and Chinese bigrams.

Score: Okapi BM25 with k1 1.2 and b 0.75 (fixed in FTS5), summed over three columns: the document's titles, the names
and values of its fields in both languages, and the passage itself.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from workbench.knowledge.indexes.index import Index
from workbench.text import CJK, terms

# --- BM25 where a common word stands in so many passages that scoring each of them would take seconds ---

LOOKED_AT = 10_000
"""Passages that are looked at for a question."""
_SPARE = 3
"""How many times as many as asked for are scored by all words."""
_K1, _B = 1.2, 0.75  # of FTS5
_COLUMNS = 3


def search_rare(
    index: Index, stems: Sequence[str], top_k: int, weights: Sequence[float], frequency: Callable[[str], int]
) -> list[tuple[str, float]]:
    """``(chunk_id, score > 0)``, best first, ties by id.

    Args:
        index: the index.
        stems: the words of a question, as the index keeps them, each once.
        top_k: how many.
        weights: of the three columns.
        frequency: in how many passages a word stands.
    """
    counts = {stem: frequency(stem) for stem in stems}
    known = sorted((stem for stem in stems if counts[stem]), key=lambda stem: (counts[stem], stem))
    if not known:
        return []
    numbers = _candidates(index, known, counts, max(_SPARE * top_k, 300), weights)
    rows, average = _averages(index)
    idf = {stem: max(math.log((rows - counts[stem] + 0.5) / (counts[stem] + 0.5)), 1e-6) for stem in known}
    scores = {}
    sql = "SELECT rowid, title, names, body FROM terms WHERE rowid IN ({})"
    for number, *columns in index.rows_in(sql, numbers):
        words = [column.split() for column in columns]
        length = _K1 * (1 - _B + _B * sum(map(len, words)) / average)
        held: Counter[str] = Counter()
        for weight, column in zip(weights, words, strict=True):
            for word in column:
                if word in idf:
                    held[word] += weight  # type: ignore[assignment]  # weights are whole or not
        scores[number] = sum(idf[word] * n * (_K1 + 1) / (n + length) for word, n in held.items())
    names = dict(index.rows_in("SELECT number, chunk_id FROM passages WHERE number IN ({})", list(scores)))
    found = sorted(((names[n], round(score, 6)) for n, score in scores.items()), key=lambda pair: (-pair[1], pair[0]))
    return [pair for pair in found[:top_k] if pair[1] > 0]


def _candidates(
    index: Index, known: Sequence[str], counts: dict[str, int], most: int, weights: Sequence[float]
) -> list[int]:
    """Numbers of the passages that are best by the rarest words alone."""
    rare, total = [known[0]], counts[known[0]]
    for stem in known[1:]:
        total += counts[stem]
        if total > LOOKED_AT:
            break
        rare.append(stem)
    if counts[known[0]] > LOOKED_AT and len(known) > 1:  # no word is rare: two of the rarest together may be
        a, b, *rest = [f'"{stem}"' for stem in known[:3]]
        pairs = [(a, b), *((one, other) for other in rest for one in (a, b))]
        found = _matching(index, " OR ".join(f"({one} AND {other})" for one, other in pairs), most, weights)
        if len(found) >= most // _SPARE:
            return found
    return _matching(index, " OR ".join(f'"{stem}"' for stem in rare), most, weights)


def _matching(index: Index, match: str, most: int, weights: Sequence[float]) -> list[int]:
    sql = "SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY bm25(terms, ?, ?, ?), rowid LIMIT ?"
    return [row[0] for row in index.rows(sql, (match, *weights, most))]


def _averages(index: Index) -> tuple[int, float]:
    """(passages, words of a passage on average), from the record in which FTS5 keeps them: variable-length numbers."""
    (block,) = index.rows("SELECT block FROM terms_data WHERE id = 1")[0]
    numbers, value = list[int](), 0
    for byte in block:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    rows = numbers[0] if numbers else 0
    return rows, sum(numbers[1 : _COLUMNS + 1]) / max(rows, 1) or 1.0


# --- The keyword index: BM25 of SQLite's FTS5 over stemmed words and Chinese bigrams ---

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
    if frequency and sum(map(frequency, wanted)) > LOOKED_AT:
        return search_rare(index, list(wanted), top_k, WEIGHTS, frequency)
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
