"""A knowledge base narrowed to some of its documents: one conversation of many, one language of two.

Weights of words stay those of the whole base; what is found, linked and told is of these documents alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from workbench.context import Community, Entity, KnowledgeBase, Passage, Relation
from workbench.errors import UnknownKnowledge
from workbench.state import Filters

_AT_ONCE = 2_000


def documents_by(knowledge: KnowledgeBase, field: str) -> dict[str, set[str]]:
    """Ids of the documents by what they hold in a field, as text; a list stands under each of its values."""
    found: dict[str, set[str]] = {}
    ids = knowledge.select({})
    for start in range(0, len(ids), _AT_ONCE):
        for passage in knowledge.passages_of(ids[start : start + _AT_ONCE]):
            value = passage["fields"].get(field)
            for one in value if isinstance(value, list) else [] if value is None else [value]:
                found.setdefault(str(one), set()).add(passage["doc_id"])
    return found


class Narrowed:
    """``KnowledgeBase`` over a part of another one's documents."""

    def __init__(self, whole: KnowledgeBase, documents: Collection[str]):
        self.name, self._whole, self._documents = whole.name, whole, frozenset(documents)
        self._passages = frozenset(p["chunk_id"] for p in whole.passages_of(sorted(self._documents)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def within(self, doc_ids: Iterable[str]) -> list[str]:
        """Those of these documents, in their order: for what a tool found past this narrowing."""
        return [doc_id for doc_id in doc_ids if doc_id in self._documents]

    def fingerprint(self) -> str:
        """Of the whole one and of which documents are left: no call of a tool is taken for one on another part."""
        told = "\n".join([self._whole.fingerprint(), *sorted(self._documents)])
        return hashlib.sha256(told.encode()).hexdigest()

    def keyword_search(self, query: str, top_k: int) -> list[tuple[str, float]]:
        """As the whole one's, of these documents."""
        return self._searched(self._whole.keyword_search, query, top_k)

    def vector_search(self, query: str, top_k: int) -> list[tuple[str, float]]:
        """As the whole one's, of these documents."""
        return self._searched(self._whole.vector_search, query, top_k)

    def _searched(
        self, search: Callable[[str, int], list[tuple[str, float]]], query: str, top_k: int
    ) -> list[tuple[str, float]]:
        """Ask for more until enough of these documents are among what was found."""
        wanted = 4 * top_k
        while True:
            hits = search(query, wanted)
            kept = [hit for hit in hits if hit[0] in self._passages]
            if len(kept) >= top_k or len(hits) < wanted:
                return kept[:top_k]
            wanted *= 4

    def passages(self, chunk_ids: Sequence[str]) -> list[Passage]:
        """The passages of these ids that are of these documents."""
        return self._whole.passages([chunk_id for chunk_id in chunk_ids if chunk_id in self._passages])

    def passages_of(self, doc_ids: Sequence[str]) -> list[Passage]:
        """The passages of those of these documents."""
        return self._whole.passages_of([doc_id for doc_id in doc_ids if doc_id in self._documents])

    def select(self, filters: Filters) -> list[str]:
        """As the whole one's, of these documents."""
        return [doc_id for doc_id in self._whole.select(filters) if doc_id in self._documents]

    def entity(self, entity_id: str) -> Entity | None:
        """The entity; a document outside is not there."""
        found = self._whole.entity(entity_id)
        return None if found and found["doc_id"] and found["doc_id"] not in self._documents else found

    def mentions_of(self, entity_id: str) -> list[str]:
        """The passages of these documents that name the entity."""
        return [chunk_id for chunk_id in self._whole.mentions_of(entity_id) if chunk_id in self._passages]

    def relations_of(self, entity_id: str) -> list[Relation]:
        """The relations that these documents state."""
        return [r for r in self._whole.relations_of(entity_id) if r["chunk_id"] in self._passages]

    def communities(self) -> list[Community]:
        """The communities, without the documents outside."""
        found: list[Community] = []
        for community in self._whole.communities():
            inside = [doc_id for doc_id in community["doc_ids"] if doc_id in self._documents]
            if inside:
                found.append({**community, "doc_ids": inside})
        return found


class OneBase:
    """``KnowledgeBases`` of which the base that is measured is the only one."""

    def __init__(self, base: KnowledgeBase):
        self._base = base

    def names(self) -> list[str]:
        """Its name."""
        return [self._base.name]

    def get(self, name: str) -> KnowledgeBase:
        """The base."""
        if name != self._base.name:
            raise UnknownKnowledge(name, self.names())
        return self._base
