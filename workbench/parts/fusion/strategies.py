"""Five ways of fusing the rankings of several sources into one.

A ranking is best first, each id once; a fusion is the same. Ties go by id. Being found by one more source never costs a
place: what a source did not find gets nothing from it, and what it found gets no less.
"""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import wraps

from workbench.state import Hits
from workbench.tools.scoring import Ranking, Strategy, rrf, summed


def _summed(worth: Callable[[Sequence[float]], Sequence[float]]) -> Strategy:
    """Return the fusion that adds up what a function makes of the scores of each source."""

    @wraps(worth)
    def fuse(rankings: Mapping[str, Ranking]) -> Hits:
        return summed(rankings, lambda ranking: worth([score for _, score in ranking]))

    return fuse


@_summed
def weighted(scores: Sequence[float]) -> list[float]:
    """Return scores, each source's spread over 0 to 1.

    >>> weighted({"words": [("a", 9.0), ("b", 5.0)], "graph": [("b", 0.9)]})
    [('a', 1.0), ('b', 1.0)]
    """
    low = min(scores, default=0.0)
    high = max(scores, default=0.0)
    return [(s - low) / (high - low) if high > low else 1.0 for s in scores]


@_summed
def zscore(scores: Sequence[float]) -> list[float]:
    """Return standard deviations above each source's lowest hit: a lead counts by how rare such leads are.

    >>> zscore({"words": [("a", 3.0), ("b", 1.0)]})
    [('a', 2.0), ('b', 0.0)]
    """
    wide = statistics.pstdev(scores) if len(scores) > 1 else 0.0
    return [(s - min(scores)) / wide if wide else 0.0 for s in scores]


@_summed
def percentile(scores: Sequence[float]) -> list[float]:
    """Return the shares of each source's hits that score no higher.

    >>> percentile({"words": [("a", 3.0), ("b", 1.0)], "meaning": [("b", 0.4)]})
    [('b', 1.5), ('a', 1.0)]
    """
    ordered = sorted(scores)
    return [bisect.bisect_right(ordered, s) / len(scores) for s in scores]


def cascade(rankings: Mapping[str, Ranking]) -> Hits:
    """Return one source after the other, in the order of the mapping: a later one only adds.

    >>> cascade({"graph": [("a", 1.0)], "words": [("b", 9.0), ("a", 5.0)]})
    [('a', 1.0), ('b', 0.5)]
    """
    ids = dict.fromkeys(i for ranking in rankings.values() for i, _ in ranking)
    return [(i, round(1 / place, 9)) for place, i in enumerate(ids, start=1)]


STRATEGIES: Mapping[str, Strategy] = {
    "rrf": rrf,
    "weighted": weighted,
    "cascade": cascade,
    "zscore": zscore,
    "percentile": percentile,
}
"""By name; a custom one is added here, and its name in ``settings.py``."""
