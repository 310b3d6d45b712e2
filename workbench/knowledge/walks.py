"""Walks over a sparse graph: personalised PageRank, and by which way a walk came to where it is found.

A walk over a large graph is one over the surroundings of its beginnings: as far as the rarest names lead within bounds,
so that a question costs the same however many passages there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

LARGE = 1_000_000
"""Links of a graph that is walked as a whole."""
ROUNDS, ROOM = 2, 5_000
"""How often a large graph is gone on from passages to names to passages, and to how many places at most each time."""
CLOSE = 1e-7
"""How far all probabilities together may be from where they tend: ranks need no more."""
LONGEST_WAY = 3
"""Passages on a way that is told."""


def pagerank(links: Any, begins: np.ndarray, damping: float = 0.85, tolerance: float = 1e-9) -> np.ndarray:
    """Where a walk is found that follows a link with probability ``damping``, and else begins anew: sums to 1.

    Equal to ``networkx.pagerank(graph, alpha=damping, personalization=begins)``: parallel links add up, a node without
    links leads to the beginnings, and where nothing begins every node does.

    Args:
        links: scipy sparse matrix ``(n, n)`` of weights, from row to column, none below 0.
        begins: how often the walk begins at each node, none below 0.
        damping: above 0, below 1.
        tolerance: how far all probabilities together may still be from where they tend.
    """
    import numpy as np

    count = links.shape[0]
    if not count:
        return np.zeros(0)
    total = begins.sum()
    start = begins / total if total > 0 else np.full(count, 1 / count)
    out = np.asarray(links.sum(axis=1)).ravel()
    share = np.divide(1.0, out, out=np.zeros(count), where=out > 0)
    ends, onward = out == 0, links.T
    found = start
    while True:
        new = damping * (onward @ (found * share) + found[ends].sum() * start) + (1 - damping) * start
        moved, found = np.abs(new - found).sum(), new
        if moved * damping < tolerance * (1 - damping):
            return found / found.sum()


@dataclass(frozen=True)
class Spread:
    """Where a walk is found in the part of a graph that was walked.

    Attributes:
        nodes: of the whole graph, sorted; every other array is by their places here.
        links: between them.
        found: the probability of each.
        leaves: what goes along a link of weight 1.
        begun: what begins at each.
    """

    nodes: np.ndarray
    links: Any
    found: np.ndarray
    leaves: np.ndarray
    begun: np.ndarray

    @classmethod
    def of(cls, links: Any, passages: int, begins: Mapping[int, float], damping: float) -> Spread | None:
        """A walk from these nodes, by their weights; None where it begins nowhere.

        Args:
            links: symmetric, scipy sparse, between passages (the first nodes) and names.
            passages: how many passages there are.
            begins: node -> weight.
            damping: how often the walk goes on.
        """
        import numpy as np

        if not any(weight > 0 for weight in begins.values()):
            return None
        nodes = np.arange(links.shape[0])
        if links.nnz > LARGE:
            nodes = surroundings(links, passages, sorted(begins))
            links = _within(links, nodes)
        start = np.zeros(len(nodes))
        start[np.searchsorted(nodes, list(begins))] = list(begins.values())
        found = np.round(pagerank(links, start, damping, CLOSE), 12)
        out = np.asarray(links.sum(axis=1)).ravel()
        leaves = np.divide(damping * found, out, out=np.zeros(len(out)), where=out > 0)
        return cls(nodes, links, found, leaves, (1 - damping) * start / start.sum())

    def best(self, passages: int, most: int) -> dict[int, float]:
        """At least ``most`` of the first passages, if so many are reached, and all of a tie at the end."""
        import numpy as np

        held = self.found[: np.searchsorted(self.nodes, passages)]
        edge = np.partition(held, -most)[-most] if most < len(held) else 0.0
        places = np.flatnonzero((held >= edge) & (held > 0))
        return dict(zip(self.nodes[places].tolist(), held[places].tolist(), strict=True))

    def way(self, node: int) -> list[int]:
        """The nodes by which most came to a passage, each from one where the walk is found more often.

        The first one is a name at which the walk begins, or a passage to which no better one leads.
        """
        import numpy as np

        place = int(np.searchsorted(self.nodes, node))
        if place == len(self.nodes) or self.nodes[place] != node:
            return []
        way = [place]
        while len(way) < 2 * LONGEST_WAY and (before := self._before(way[-1], way)):
            way += before
            if len(before) == 1:
                break
        return self.nodes[way[::-1]].tolist() if len(way) > 1 else []

    def _before(self, at: int, way: Sequence[int]) -> list[int]:
        """The name that led to a passage, and the better passage that led to the name if it does not begin there."""
        import numpy as np

        links, row = self.links, slice(self.links.indptr[at], self.links.indptr[at + 1])
        names, weights = links.indices[row], links.data[row]
        if not len(names) or not self.found[at]:
            return []
        passed = weights * self.leaves[names] / np.maximum(self.found[names], 1e-12)
        rows = [slice(links.indptr[name], links.indptr[name + 1]) for name in names.tolist()]
        near = np.concatenate([links.indices[one] for one in rows])
        by = np.repeat(np.arange(len(names)), [one.stop - one.start for one in rows])
        came = (self.leaves[near] * (weights * passed)[by]) * (self.found[near] > self.found[at])
        begun = self.begun[names] * passed
        came[np.isin(names, way)[by]] = 0
        if came.max() > begun.max():
            best = int(came.argmax())
            return [int(names[by[best]]), int(near[best])]
        return [int(names[begun.argmax()])] if begun.max() > 0 else []


def surroundings(links: Any, passages: int, begins: Sequence[int]) -> np.ndarray:
    """The nodes around these, sorted: on from passages to names, rare ones first, and to the passages of those."""
    import numpy as np

    seen = np.array(begins)
    here, names = seen[seen < passages], seen[seen >= passages]
    for _ in range(ROUNDS):
        near = np.setdiff1d(np.concatenate([names, _near(links, here)]), seen[seen < passages])
        counts = links.indptr[near + 1] - links.indptr[near]
        rare = np.argsort(counts, kind="stable")
        kept = near[rare[np.cumsum(counts[rare]) <= ROOM]]
        here = np.setdiff1d(_near(links, kept), seen)
        seen, names = np.unique(np.concatenate([seen, kept, here])), np.zeros(0, seen.dtype)
    return seen


def _rows(links: Any, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of these nodes' links, and how many each has."""
    import numpy as np

    starts = np.asarray(links.indptr[nodes], np.int64)
    lengths = np.asarray(links.indptr[nodes + 1], np.int64) - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum()), lengths


def _near(links: Any, nodes: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.unique(links.indices[_rows(links, nodes)[0]])


def _within(links: Any, nodes: np.ndarray) -> Any:
    """The links between these nodes, by their places."""
    import numpy as np
    from scipy.sparse import coo_array

    places, lengths = _rows(links, nodes)
    ends = links.indices[places]
    at = np.minimum(np.searchsorted(nodes, ends), len(nodes) - 1)
    inside = nodes[at] == ends
    rows = np.repeat(np.arange(len(nodes)), lengths)[inside]
    return coo_array((links.data[places[inside]], (rows, at[inside])), (len(nodes), len(nodes))).tocsr()
