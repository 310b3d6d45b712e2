"""A knowledge base narrowed to some of its documents: one conversation of many, one language of two.

Weights of words stay those of the whole base; what is found, linked and told is of these documents alone.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from workbench.context import (
    Community,
    Entity,
    KnowledgeBase,
    Link,
    Passage,
    Reached,
    Relation,
    Shared,
    Titled,
    TypedGraph,
    Ways,
)
from workbench.errors import UnknownKnowledge
from workbench.state import Condition, Sort

_AT_ONCE = 2_000


def documents_by(knowledge: KnowledgeBase, field: str) -> dict[str, set[str]]:
    """Ids of the documents by what they hold in a field, as text; a list stands under each of its values."""
    found: dict[str, set[str]] = {}
    ids = knowledge.select()
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
        self.typed = NarrowedTyped(whole.typed, self._passages)
        self.ways = NarrowedWays(whole.ways, self._documents, self._passages)

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

    def select(
        self, conditions: Sequence[Condition] = (), sort: Sort | None = None, limit: int | None = None
    ) -> list[str]:
        """As the whole one's, of these documents."""
        return [doc_id for doc_id in self._whole.select(conditions, sort) if doc_id in self._documents][:limit]

    def tally(self, field: str, conditions: Sequence[Condition] = ()) -> list[tuple[str, int]]:
        """Counted over these documents."""
        held = Counter[str]()
        for passage in self.passages_of(self.select(conditions)):
            if passage["position"] == 0:
                value = passage["fields"].get(field)
                held.update(str(one) for one in (value if isinstance(value, list) else [value]) if one is not None)
        return sorted(held.items(), key=lambda pair: (-pair[1], pair[0]))

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

    def spread(
        self, passages: Mapping[str, float], entities: Mapping[str, float], damping: float, most: int
    ) -> list[Reached]:
        """A walk over the whole base, of which these documents are told."""
        begins, wanted = {i: w for i, w in passages.items() if i in self._passages}, 4 * most
        while True:
            found = self._whole.spread(begins, entities, damping, wanted)
            kept = [one for one in found if one["chunk_id"] in self._passages]
            if len(kept) >= most or len(found) < wanted:
                return kept[:most]
            wanted *= 4

    def communities(self) -> list[Community]:
        """The communities, without the documents outside."""
        return self._inside(self._whole.communities())

    def communities_of(self, entity_ids: Sequence[str]) -> list[Community]:
        """The communities of these entities, without the documents outside."""
        return self._inside(self._whole.communities_of(entity_ids))

    def _inside(self, communities: Iterable[Community]) -> list[Community]:
        found: list[Community] = []
        for community in communities:
            inside = [doc_id for doc_id in community["doc_ids"] if doc_id in self._documents]
            if inside:
                found.append({**community, "doc_ids": inside})
        return found


class NarrowedTyped:
    """``TypedGraph`` of what these passages state; names and types are those of the whole base."""

    def __init__(self, whole: TypedGraph, passages: Collection[str]):
        self._whole, self._passages = whole, passages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def follow(self, entity_ids: Sequence[str], relation: str, forward: bool) -> list[Relation]:
        """The relations that these passages state."""
        return [r for r in self._whole.follow(entity_ids, relation, forward) if r["chunk_id"] in self._passages]


class NarrowedWays:
    """``Ways`` between these documents alone; what is too common in the whole one stays so."""

    def __init__(self, whole: Ways, documents: Collection[str], passages: Collection[str]):
        self._whole, self._documents, self._passages = whole, documents, passages

    def titles_in(self, text: str) -> list[Titled]:
        """The titles of these documents."""
        named = [
            Titled(start=t["start"], end=t["end"], doc_ids=[i for i in t["doc_ids"] if i in self._documents])
            for t in self._whole.titles_in(text)
        ]
        return [title for title in named if title["doc_ids"]]

    def links_from(self, chunk_ids: Sequence[str]) -> list[Link]:
        """The links to these documents."""
        return [link for link in self._whole.links_from(self._inside(chunk_ids)) if link["doc_id"] in self._documents]

    def naming(self, doc_id: str, most: int) -> list[str]:
        """The passages of these documents that name one."""
        return self._inside(self._whole.naming(doc_id, most))

    def links_to(self, doc_id: str, chunk_ids: Sequence[str]) -> list[Link]:
        """The sentences of these documents."""
        return self._whole.links_to(doc_id, self._inside(chunk_ids))

    def shared(self, chunk_ids: Sequence[str], most: int) -> list[Shared]:
        """What passages of these documents share."""
        met = [
            Shared(**{**one, "chunk_ids": self._inside(one["chunk_ids"])})
            for one in self._whole.shared(self._inside(chunk_ids), most)
        ]
        return [one for one in met if one["chunk_ids"]]

    def holding(self, text: str, most: int) -> dict[str, list[str]]:
        """The passages of these documents that hold a phrase of the text."""
        met = {phrase: self._inside(ids) for phrase, ids in self._whole.holding(text, most).items()}
        return {phrase: ids for phrase, ids in met.items() if ids}

    def stems(self, chunk_ids: Sequence[str]) -> dict[str, frozenset[str]]:
        """The terms of these passages."""
        return self._whole.stems(self._inside(chunk_ids))

    def _inside(self, chunk_ids: Sequence[str]) -> list[str]:
        return [chunk_id for chunk_id in chunk_ids if chunk_id in self._passages]


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
