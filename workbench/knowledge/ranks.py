"""Personalised PageRank over passages and the names in them: a sparse matrix, made of the index when it is first asked.

A passage is linked with every entity that it names or states something of, and with every phrase that another passage
holds too; a rare name binds more than a common one (its inverse document frequency). A walk begins at what a question
names and at the passages that are like it, and returns there again and again: where it is found most often is near to
all of them at once. After HippoRAG 2 (Gutiérrez et al. 2025), with the corpus' own names in the place of triples.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.context import Reached
from workbench.knowledge.index import Index
from workbench.knowledge.kept_arrays import keep, kept
from workbench.knowledge.title_links import spelled
from workbench.knowledge.walks import Spread

if TYPE_CHECKING:
    import numpy as np

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
        return ("phrase", spelled(label[1:])) if label.startswith(_PHRASE) else ("entity", label)

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
