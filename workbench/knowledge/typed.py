"""Relations by their types: which there are, between what, and where they lead from some entities."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.context import Mention, Relation, RelationKind
from workbench.knowledge.index import Index
from workbench.knowledge.surfaces import LONGEST, units

_AT_ONCE = 500
_NEAR = 4
"""Characters between two words of one name: "Oh, God! You Devil"."""


def runs(text: str) -> list[tuple[int, int, str]]:
    """``(start, end, key)`` of every run of words that could be a name, whatever stands between the words.

    >>> runs("Oh, God!")
    [(0, 2, 'oh'), (0, 7, 'oh god'), (4, 7, 'god')]
    """
    found, all_units = [], units(text)
    for at, first in enumerate(all_units):
        key, end = "", first.start
        for unit in all_units[at : at + LONGEST]:
            if unit.start - end > _NEAR:
                break
            key, end = f"{key} {unit.key}".strip(), unit.end
            found.append((first.start, end, key))
    return found


class IndexTyped:
    """``context.TypedGraph`` over an index."""

    def __init__(self, index: Index):
        self._index = index
        self._kinds: tuple[int, list[RelationKind]] = (-1, [])

    def kinds(self) -> list[RelationKind]:
        """Every type of relation with the types of its ends, sorted; counted once a generation."""
        generation, found = self._kinds
        if generation != self._index.generation:
            found = [RelationKind(type=t, source=a, target=b, count=n) for t, a, b, n in self._index.rows(_KINDS)]
            self._kinds = self._index.generation, found
        return found

    def readings(self, text: str) -> list[Mention]:
        """Every known name at every place of a text, with everybody who bears it, the best bearer first.

        A surname alone names nobody here: a path would begin at the wrong person.
        """
        places = runs(text)
        bearers: dict[str, list[str]] = {}
        for key, _, entity_id in sorted(self._index.rows_in(_BEARERS, list(dict.fromkeys(key for *_, key in places)))):
            bearers.setdefault(key, []).append(entity_id)
        return [
            {"start": start, "end": end, "surface": text[start:end], "entity_id": entity_id}
            for start, end, key in places
            for entity_id in bearers.get(key, ())
        ]

    def sides(self, entity_id: str) -> list[tuple[str, bool, int]]:
        """``(type, whether they leave it, how many)`` of the relations of an entity, sorted."""
        rows = self._index.rows(_SIDES, (entity_id, entity_id))
        return [(kind, bool(leaves), count) for kind, leaves, count in sorted(rows)]

    def follow(self, entity_ids: Sequence[str], relation: str, forward: bool) -> list[Relation]:
        """Relations of this type that leave these entities, or (``forward`` False) reach them, by id."""
        sql = _FOLLOW.format("source" if forward else "target")
        ids, rows = list(dict.fromkeys(entity_ids)), list[tuple[str, ...]]()
        for begin in range(0, len(ids), _AT_ONCE):
            part = ids[begin : begin + _AT_ONCE]
            rows += self._index.rows(sql.format(", ".join("?" * len(part))), [*part, relation])
        return [
            Relation(relation_id=i, source=source, type=relation, target=target, sentence=said, chunk_id=chunk_id)
            for i, source, target, said, chunk_id in sorted(rows)
        ]


_KINDS = (
    "SELECT relations.type, a.type, b.type, count(*) FROM relations JOIN entities AS a ON a.entity_id = source "
    "JOIN entities AS b ON b.entity_id = target GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
)
_BEARERS = "SELECT key, place, entity_id FROM surfaces WHERE key IN ({}) AND kind != 'surname'"
_SIDES = (
    "SELECT type, 1, count(*) FROM relations WHERE source = ? GROUP BY 1 "
    "UNION ALL SELECT type, 0, count(*) FROM relations WHERE target = ? GROUP BY 1"
)
_FOLLOW = (
    "SELECT relation_id, source, target, sentence, chunk_id FROM relations INDEXED BY relations_by_{0} "
    "WHERE {0} IN ({{}}) AND type = ?"
)
