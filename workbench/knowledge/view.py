"""One generation of an index in memory: vectors, graph, names and typed fields. Each part is read when first asked for."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.context import Community, Entity, Relation
from workbench.knowledge import graph, keywords, vectors, vocabulary
from workbench.knowledge.entities import degrees_of, document_entity, meaning, values, year_of
from workbench.knowledge.index import Index
from workbench.knowledge.linking import Linker, key_of

if TYPE_CHECKING:
    import networkx

_Part = TypeVar("_Part")


class View:
    """What a reader holds of one generation. Any thread may ask; a part is made once."""

    def __init__(self, index: Index, folder: Path, generation: int):
        self.generation, self._index, self._folder = generation, index, folder
        self.passages: int = index.rows("SELECT count(*) FROM passages")[0][0]
        self._lock = threading.RLock()
        self._parts: dict[str, Any] = {}
        self._weights: dict[str, float] = {}

    def _part(self, name: str, make: Callable[[], _Part]) -> _Part:
        if name not in self._parts:
            with self._lock:
                if name not in self._parts:
                    self._parts[name] = make()
        return self._parts[name]

    def close(self) -> None:
        """Let go of Chroma; everything else is left to who still reads it."""
        with self._lock:
            chroma = self._parts.pop("chroma", None)
        if chroma:
            chroma.close()

    @property
    def matrix(self) -> vectors.Matrix:
        """Every passage's vector."""
        return self._part("matrix", lambda: vectors.Matrix.load(self._index))

    @property
    def chroma(self) -> vectors.Chroma | None:
        """The Chroma collection, or None when a killed ``add`` left it behind this generation."""
        if self._index.meta("chroma_generation") != str(self.generation):
            return None
        return self._part("chroma", lambda: vectors.Chroma(self._folder / "chroma"))

    @property
    def entities(self) -> dict[str, Entity]:
        """Every entity by id."""
        return self._part("entities", self._load_entities)

    def _load_entities(self) -> dict[str, Entity]:
        rows = self._index.rows("SELECT entity_id, name, type, aliases, doc_id FROM entities ORDER BY entity_id")
        return {
            i: {"entity_id": i, "name": name, "type": kind, "aliases": json.loads(aliases), "doc_id": doc_id}
            for i, name, kind, aliases, doc_id in rows
        }

    @property
    def relations(self) -> list[Relation]:
        """Every relation, by id."""
        return self._part("relations", self._load_relations)

    def _load_relations(self) -> list[Relation]:
        columns = ("relation_id", "source", "type", "target", "sentence", "chunk_id")
        rows = self._index.rows(f"SELECT {', '.join(columns)} FROM relations ORDER BY relation_id")
        return [dict(zip(columns, row, strict=True)) for row in rows]  # type: ignore[misc]

    @property
    def relations_by_entity(self) -> dict[str, list[Relation]]:
        """Relations on either side of each entity, by id."""
        return self._part("relations_by_entity", self._by_entity)

    def _by_entity(self) -> dict[str, list[Relation]]:
        found: dict[str, list[Relation]] = defaultdict(list)
        for relation in self.relations:
            for end in dict.fromkeys((relation["source"], relation["target"])):
                found[end].append(relation)
        return dict(found)

    @property
    def communities(self) -> list[Community]:
        """Every community, largest first."""
        return self._part("communities", self._load_communities)

    def _load_communities(self) -> list[Community]:
        rows = self._index.rows("SELECT community_id, title, members, summary, doc_ids FROM communities ORDER BY 1")
        return [
            {
                "community_id": community_id,
                "title": title,
                "members": json.loads(members),
                "summary": summary,
                "doc_ids": json.loads(doc_ids),
            }
            for community_id, title, members, summary, doc_ids in rows
        ]

    @property
    def graph(self) -> networkx.MultiDiGraph:
        """Entities and relations for networkx."""
        return self._part("graph", lambda: graph.build(self.entities.values(), self.relations))

    @property
    def linker(self) -> Linker:
        """The matcher over every name that is no category."""
        return self._part("linker", lambda: self._linker(categories=False))

    @property
    def _finder(self) -> Linker:
        return self._part("finder", lambda: self._linker(categories=True))

    def _linker(self, *, categories: bool) -> Linker:
        skipped = (
            set() if categories else {r[0] for r in self._index.rows("SELECT entity_id FROM entities WHERE category")}
        )
        named = [entity for entity_id, entity in self.entities.items() if entity_id not in skipped]
        years = {document_entity(doc_id): year for doc_id, year, _ in self.documents if year is not None}
        common = json.loads(self._index.meta("common_names", "[]"))
        return Linker(named, degrees_of(self.relations), common, years)

    def find(self, name: str) -> Entity | None:
        """The entity of this name or alias, in any case; the best connected of several."""
        found = self._finder.find(name)
        return self.entities[found] if found else None

    @property
    def documents(self) -> list[tuple[str, int | None, dict[str, frozenset[str]]]]:
        """``(doc_id, year, {relation: keys of the values})`` of each document, by id."""
        return self._part("documents", self._load_documents)

    def _load_documents(self) -> list[tuple[str, int | None, dict[str, frozenset[str]]]]:
        found = []
        for doc_id, text in self._index.rows("SELECT doc_id, fields FROM documents ORDER BY doc_id"):
            fields, held = json.loads(text), dict[str, frozenset[str]]()
            for name, value in fields.items():
                says = meaning(name)
                keys = {key_of(_canonical(says.relation, v)) for v in values(name, value)}
                held[says.relation] = held.get(says.relation, frozenset()) | keys
            found.append((doc_id, year_of(fields), held))
        return found

    def meant(self, relation: str, value: str) -> frozenset[str]:
        """Keys of everything that a filter's value may stand for: itself, its canonical name, the entity of that name."""
        names = [value, _canonical(relation, value)]
        entity = self.find(value)
        if entity and (entity["type"] == "Person" or relation not in _PEOPLE):
            names += [entity["name"], *entity["aliases"]]
        return frozenset(key for key in map(key_of, names) if key)

    def weight(self, term: str) -> float:
        """Inverse document frequency of a term."""
        if term not in self._weights:
            self._weights[term] = keywords.weight(self._index, term, self.passages)
        return self._weights[term]


_PEOPLE = ("directed_by", "acted_in")


def _canonical(relation: str, value: str) -> str:
    if relation == "has_genre":
        return vocabulary.canonical("genre", value) or value
    if relation == "from_country":
        return vocabulary.canonical("country", value) or value
    return value
