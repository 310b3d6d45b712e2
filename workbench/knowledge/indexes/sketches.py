"""Passages that say nearly the same: a sketch of each (MinHash, Broder 1997), by which they are found without reading.

Two sketches agree in about as many places as the two texts share of their terms. Pairs that agree in one of four
quarters are looked at, and are nearly the same where 13 of the 16 places agree.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from workbench.knowledge.indexes.index import Index

if TYPE_CHECKING:
    import numpy as np


PLACES, ALIKE, _QUARTER = 16, 13, 4
_FEWEST = 8
"""Distinct terms of a text that has a sketch: of fewer, many are alike by chance."""
_MOST = 64
"""Passages with one quarter in common that are looked at, each beside the first ones: a template has thousands."""


def insert(connection: sqlite3.Connection, number: int, terms: Iterable[str]) -> None:
    """Keep the sketch of passage ``number``, which has these terms."""
    found = sketch(terms)
    if found is not None:
        connection.execute("INSERT OR REPLACE INTO sketches VALUES (?, ?)", (number, found.tobytes()))


def sketch(terms: Iterable[str]) -> np.ndarray | None:
    """16 numbers; None for a text of few terms.

    >>> a, b = sketch("abcdefghijklmnopqrstuvwxyz"), sketch("abcdefghijklmnopqrstuvwxy")
    >>> bool((a == b).mean() > 0.8), sketch("few")
    (True, None)
    """
    import numpy as np

    codes = {zlib.crc32(term.encode()) for term in terms}
    if len(codes) < _FEWEST:
        return None
    factors, shifts = _mixers()
    return (np.fromiter(codes, np.uint64, len(codes))[:, None] * factors + shifts).min(axis=0).astype(np.uint64)


@lru_cache(maxsize=1)
def _mixers() -> tuple[np.ndarray, np.ndarray]:
    """Multipliers and shifts modulo 2^64, the same for ever: sketches are kept."""
    import numpy as np

    drawn = np.random.default_rng(16)
    factors = drawn.integers(1, 2**63, PLACES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return factors, drawn.integers(0, 2**63, PLACES, dtype=np.uint64)


def alike(index: Index) -> list[tuple[int, int]]:
    """Numbers of passages that are the same or nearly so, the earlier one first, sorted."""
    import numpy as np

    rows = index.rows("SELECT number, sketch FROM sketches ORDER BY number")
    if not rows:
        return []
    numbers = np.array([number for number, _ in rows])
    held = np.frombuffer(b"".join(blob for _, blob in rows), np.uint64).reshape(len(rows), PLACES)
    found: set[tuple[int, int]] = set()
    for start in range(0, PLACES, _QUARTER):
        for group in _groups(held[:, start : start + _QUARTER]):
            first = group[0]
            for one in group[1:_MOST]:
                if (held[one] == held[first]).sum() >= ALIKE:
                    found.add((int(numbers[first]), int(numbers[one])))
    return sorted(found)


def _groups(rows: np.ndarray) -> list[np.ndarray]:
    """Places of equal rows, each group in order."""
    import numpy as np

    mixed = rows @ _mixers()[0][: rows.shape[1]]  # modulo 2^64: what meets by chance is looked at and found unlike
    order = np.argsort(mixed, kind="stable")
    ends = np.flatnonzero(mixed[order][1:] != mixed[order][:-1]) + 1
    return [group for group in np.split(order, ends) if len(group) > 1]
