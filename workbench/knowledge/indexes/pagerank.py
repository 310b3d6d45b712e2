"""Personalised PageRank over passages and the names in them: a sparse matrix, made of the index when it is first asked.

A passage is linked with every entity that it names or states something of, and with every phrase that another passage
holds too; a rare name binds more than a common one (its inverse document frequency). A walk begins at what a question
names and at the passages that are like it, and returns there again and again: where it is found most often is near to
all of them at once. After HippoRAG 2 (Gutiérrez et al. 2025), with the corpus' own names in the place of triples.
"""

from __future__ import annotations

import logging
import os
import uuid
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from workbench.knowledge.indexes.index import Index
from workbench.ports import Reached
from workbench.records.lease import taken
from workbench.text import closed_up

if TYPE_CHECKING:
    import numpy as np


_log = logging.getLogger(__name__)


def keep(path: Path, content: str, arrays: Mapping[str, np.ndarray]) -> bool:
    """Write the arrays; False, and a line in the log, where the folder cannot be written: nothing is lost by that."""
    import numpy as np

    new = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with open(new, "wb") as file, taken(new):
            np.savez(file, allow_pickle=False, content=np.frombuffer(content.encode(), np.uint8), **arrays)
            file.flush()
            os.fsync(file.fileno())
            os.replace(new, path)
    except OSError as error:
        new.unlink(missing_ok=True)
        _log.warning("%s cannot be kept (%s): it is made anew in every process.", path, error.strerror or error)
        return False
    return True


def kept(path: Path, content: str) -> dict[str, np.ndarray] | None:
    """The arrays that were made of this content; None when there are none, or not whole (NumPy's zip has checksums)."""
    import numpy as np

    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as held:
            if held["content"].tobytes() == content.encode():
                return {name: held[name] for name in held.files if name != "content"}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):  # no file, or not one of ours: it is made anew
        pass
    return None


# --- Walks over a sparse graph: personalised PageRank, and by which way a walk came to where it is found ---

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


FILE = "ranks.bin"
_VERSION = 1
"""Of what the arrays are made of and how."""
_PHRASE = "\x00"
"""Before a phrase, so that it is no entity's id."""
_STATED = """
    SELECT entity_id AS id, number FROM mentions JOIN passages USING (chunk_id)
    UNION SELECT source, number FROM relations JOIN passages USING (chunk_id) WHERE type != 'mentions'
    UNION SELECT target, number FROM relations JOIN passages USING (chunk_id) WHERE type != 'mentions'
    ORDER BY 1, 2
"""
_HELD = """
    SELECT key, number FROM phrases WHERE key IN (SELECT key FROM phrases GROUP BY key HAVING count(*) > 1)
    ORDER BY 1, 2
"""


class _Labels:
    """Strings in the order of their bytes, as arrays: found by halving, so that none of them is held."""

    def __init__(self, letters: np.ndarray, ends: np.ndarray):
        self._letters, self._ends = letters, ends

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: int) -> bytes:
        start = int(self._ends[place - 1]) if place else 0
        return self._letters[start : int(self._ends[place])].tobytes()

    def place(self, label: str) -> int:
        """The place of a label, -1 for none."""
        wanted = label.encode()
        found = bisect_left(range(len(self)), wanted, key=self.__getitem__)
        return found if found < len(self) and self[found] == wanted else -1


@dataclass(frozen=True)
class Ranks:
    """The links between passages (by their numbers, sorted) and names (by their labels, sorted), as they are kept."""

    numbers: np.ndarray
    names: _Labels
    links: Any

    @classmethod
    def load(cls, index: Index, folder: Path, content: str) -> Ranks:
        """As kept for this content of the index; else made of it, and kept."""
        content, path = f"{_VERSION} {content}", folder / FILE
        arrays = kept(path, content)
        if arrays is None:
            arrays = made(_numbers(index), _labelled(index))
            keep(path, content, arrays)
        return cls.of(arrays)

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> Ranks:
        """Over these arrays, which are not copied."""
        from scipy.sparse import csr_array

        size = len(arrays["numbers"]) + len(arrays["ends"])
        parts = (arrays["weights"], arrays["targets"], arrays["rows"])
        links = csr_array(parts, shape=(size, size), copy=False)
        return cls(arrays["numbers"], _Labels(arrays["letters"], arrays["ends"]), links)

    def reached(
        self,
        passages: Mapping[int, float],
        entities: Mapping[str, float],
        damping: float,
        most: int,
        ids_of: Callable[[Sequence[int]], Mapping[int, str]],
    ) -> list[Reached]:
        """``KnowledgeBase.spread`` from passages by their numbers; ``ids_of`` gives the ids of numbers."""
        named = {node: weight for i, weight in entities.items() if (node := self.name(i)) >= 0}
        begins = named | {node: w for number, w in passages.items() if (node := self.passage(number)) >= 0}
        count = len(self.numbers)
        spread = Spread.of(self.links, count, begins, damping)
        if spread is None:
            return []
        told = (Spread.of(self.links, count, named, damping) if passages else None) or spread
        found = spread.best(count, most)
        ids = self._ids(list(found), ids_of)
        best = sorted(found, key=lambda node: (-found[node], ids[node]))[:most]
        ways = {node: told.way(node) for node in best}
        ids |= self._ids(sorted({node for way in ways.values() for node in way if node < count}), ids_of)
        return [
            Reached(chunk_id=ids[node], probability=found[node], way=[self._told(stop, ids) for stop in ways[node]])
            for node in best
        ]

    def _ids(self, nodes: Sequence[int], ids_of: Callable[[Sequence[int]], Mapping[int, str]]) -> dict[int, str]:
        numbers = [int(self.numbers[node]) for node in nodes]
        ids = ids_of(numbers)
        return {node: ids[number] for node, number in zip(nodes, numbers, strict=True)}

    def _told(self, node: int, ids: Mapping[int, str]) -> tuple[str, str]:
        if node < len(self.numbers):
            return "passage", ids[node]
        label = self.names[node - len(self.numbers)].decode()
        return ("phrase", closed_up(label[1:])) if label.startswith(_PHRASE) else ("entity", label)

    def passage(self, number: int) -> int:
        """The node of a passage, -1 for none."""
        import numpy as np

        place = int(np.searchsorted(self.numbers, number))
        return place if place < len(self.numbers) and self.numbers[place] == number else -1

    def name(self, label: str) -> int:
        """The node of an entity, -1 for none."""
        place = self.names.place(label)
        return place + len(self.numbers) if place >= 0 else -1


def made(numbers: Sequence[int], labelled: Iterable[tuple[str, Sequence[int]]]) -> dict[str, np.ndarray]:
    """The arrays of ``Ranks``.

    Args:
        numbers: of the passages, sorted.
        labelled: each name with the numbers of the passages that it binds, by the bytes of the name.
    """
    import numpy as np
    from scipy.sparse import coo_array

    letters, ends, counts, places = bytearray(), array("q"), array("q"), array("q")
    for label, held in labelled:
        letters += label.encode()
        ends.append(len(letters))
        counts.append(len(held))
        places.extend(held)
    passages = np.asarray(numbers, np.int64)
    count = np.frombuffer(counts, np.int64) if counts else np.zeros(0, np.int64)
    rarity = np.log1p(len(passages) / np.maximum(count, 1))
    ours = np.searchsorted(passages, np.frombuffer(places, np.int64) if places else np.zeros(0, np.int64))
    theirs = np.repeat(np.arange(len(count)), count)
    weights, names = rarity[theirs], theirs + len(passages)
    size = len(passages) + len(count)
    both = (np.concatenate([ours, names]), np.concatenate([names, ours]))
    links = coo_array((np.concatenate([weights, weights]), both), shape=(size, size)).tocsr()
    return {
        "numbers": passages,
        "letters": np.frombuffer(bytes(letters), np.uint8),
        "ends": np.array(ends, np.int64),
        "rows": links.indptr,
        "targets": links.indices,
        "weights": links.data,
    }


def reached_in(
    index: Index, ranks: Ranks, passages: Mapping[str, float], entities: Mapping[str, float], damping: float, most: int
) -> list[Reached]:
    """``KnowledgeBase.spread`` over an index and what was made of it."""
    rows = index.rows_in("SELECT chunk_id, number FROM passages WHERE chunk_id IN ({})", sorted(passages))
    begins = {number: passages[chunk_id] for chunk_id, number in rows}

    def ids_of(numbers: Sequence[int]) -> dict[int, str]:
        return dict(index.rows_in("SELECT number, chunk_id FROM passages WHERE number IN ({})", numbers))

    return ranks.reached(begins, entities, damping, most, ids_of)


def _numbers(index: Index) -> list[int]:
    return [row[0] for row in index.rows("SELECT number FROM passages ORDER BY number")]


def _labelled(index: Index) -> Iterator[tuple[str, list[int]]]:
    """Phrases and then entities with their passages, as they come from the file: they are never held together."""
    with index.named():
        for before, sql in ((_PHRASE, _HELD), ("", _STATED)):
            for label, rows in groupby(index.connection().execute(sql), key=itemgetter(0)):
                yield before + label, [number for _, number in rows]
