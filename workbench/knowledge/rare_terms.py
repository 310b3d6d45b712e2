"""BM25 where a common word stands in so many passages that scoring each of them would take seconds.

FTS5 looks at every passage that holds any word of a question. Here only those are looked at that hold one of its rarest
words, as many words as together stand in ``LOOKED_AT`` passages; the best of them are then scored by all words, with
the numbers of FTS5. What holds none of the rare words is not found: its score is low, since common words weigh little.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from workbench.knowledge.index import Index

LOOKED_AT = 10_000
"""Passages that are looked at for a question."""
_SPARE = 3
"""How many times as many as asked for are scored by all words."""
_K1, _B = 1.2, 0.75  # of FTS5
_COLUMNS = 3


def search(
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
