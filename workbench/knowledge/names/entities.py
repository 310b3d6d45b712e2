"""Documents to entities and typed relations: from their fields, and from the names in their texts.

Every document is an entity of its type (``Paper``); every value of a field is one too, and the field's name gives the
relation: ``authors`` gives ``written_by`` a ``Person``, an unknown field ``studios`` gives ``has_studio`` a
``Studio``. A relation keeps the sentence that states it, or the field itself where no sentence does. Everything here
is a function of the documents alone: their order and history change nothing.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.knowledge.names.names import names_in
from workbench.knowledge.names.surfaces import (
    LONGEST_NAME,
    Bearer,
    Matcher,
    compiled,
    mentions_in,
    nearest,
    subtitled,
    surface_key,
    surnames,
    writings,
)
from workbench.knowledge.reading.corpus import Document, made_title
from workbench.knowledge.reading.files import LOOKS, STRUCTURE
from workbench.knowledge.reading.tables import NODE
from workbench.knowledge.vocabulary import (
    FieldMeaning,
    Vocabulary,
    says_names,
    short_texts,
    unit_in,
)
from workbench.plans import canonical_json
from workbench.ports import Entity
from workbench.state import Data, as_list
from workbench.text import iso, sentences


@dataclass(frozen=True)
class Source(Document):
    """The input of the graph: one document with its passages."""

    passages: Sequence[tuple[str, str]] = ()
    """Of each its chunk id, and its text."""

    @property
    def entity_id(self) -> str:
        """Return the entity that the document is about."""
        return f"doc:{self.doc_id}"

    @property
    def first_chunk(self) -> str:
        """Return the id of its first passage; "" where it has none."""
        return self.passages[0][0] if self.passages else ""


def values(name: str, value: Any) -> list[str]:
    """Return the names in a field: short strings, and a year; other numbers are amounts, not names.

    >>> values("genres", ["Drama", " "]), values("year", 1993), values("rating", 7.5)
    (['Drama'], ['1993'], [])
    """
    if isinstance(value, bool) or (isinstance(value, int | float) and name.lower() != "year"):
        return []
    texts = [str(v) if type(v) is int else v for v in as_list(value)]
    names = short_texts(texts, LONGEST_NAME)
    # a line of a Chinese text is not a name
    return [name for name in dict.fromkeys(names) if not name.endswith("。")]


def read_year(fields: Data) -> int | None:
    """Return the year of a document: of its ``year`` or ``date``, else of the first field that is a date.

    >>> read_year({"year": 1993}), read_year({"budget": 20, "joined": "2024年3月"}), read_year({"budget": 2000})
    (1993, 2024, None)
    """
    preferred = [fields[name] for name in ("year", "date") if name in fields]
    texts = [value for _, value in sorted(fields.items()) if isinstance(value, str)]
    return next((int(day[:4]) for day in map(iso, [*preferred, *texts]) if day), None)


Read = Callable[[], Iterable[Source]]
"""Yields every document, by id, each time it is called."""


class GraphBuilder:
    """Write the graph of documents into the empty tables of an index; only names are held in memory.

    Documents come first, since what a field says of a name beats what a text does; of two statements of one relation
    the first is kept.
    """

    def __init__(self, connection: sqlite3.Connection, vocabulary: Vocabulary) -> None:
        self._connection = connection
        self._vocabulary = vocabulary
        self.entities: dict[str, Entity] = {}
        self.categories: set[str] = set()
        self.leads: dict[str, str] = {}
        self._by_key: dict[str, str] = {}
        self._related: dict[str, set[str]] = defaultdict(set)
        self._titles: dict[str, set[str]] = defaultdict(set)
        self._surnames: set[str] = set()
        self._years: dict[str, int] = {}
        self._untitled: set[str] = set()

    def build(self, read: Read) -> None:
        """Write entities, names, relations and mentions."""
        for source in read():
            self._add_document(source)
        for doc, key in subtitled(self.entities.values()).items():
            self._titles[key].add(doc)
        for source in read():
            self._add_fields(source)
        for source in read():
            self._add_links(source)
            self._add_names(source)
        self._add_mentions(read)
        rows = (
            (e["entity_id"], e["name"], e["type"], canonical_json(e["aliases"]), e["doc_id"])
            for e in self.entities.values()
        )
        self._write("entities", rows)

    def _write(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        rows = list(rows)
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)

    def _add_document(self, source: Source) -> None:
        doc = source.entity_id
        self._enter(doc, source.title, source.type, source.aliases, source.doc_id)
        for key in {key for name in [source.title, *source.aliases] for key in writings(name)}:
            self._titles[key].add(doc)
        begins = sentences(source.passages[0][1]) if source.passages else ()
        self.leads[source.doc_id] = next(iter(begins), "")
        if source.passages and made_title(source.passages[0][1]) == source.title:
            self._untitled.add(doc)
        self._write("mentions", ((doc, chunk_id) for chunk_id, _ in source.passages))
        if year := read_year(source.fields):
            self._years[doc] = year

    def _add_fields(self, source: Source) -> None:
        """Relate a document to the values of its fields; a tail of a triple that is a head is that head."""
        doc = source.entity_id
        aliases_by_key = {surface_key(name): aliases for name, aliases in source.names.items()}
        for name, value in sorted(source.fields.items()):
            if says_names(name, source.fields) or (STRUCTURE in source.fields and name in LOOKS):
                continue
            says = self._vocabulary.meaning(name)
            for text in values(name, value):
                key = surface_key(text)
                if self._titles.get(key) == {doc}:  # the field that names it
                    continue
                heads = self._titles.get(key, ()) if source.type == NODE else ()
                more = aliases_by_key.get(key, [])
                entity_id = (
                    next(iter(heads)) if len(heads) == 1 else self._entity(name, says, text, more)
                )
                ends = (entity_id, doc) if says.reverse else (doc, entity_id)
                self._relate(ends[0], says.relation, ends[1], *_statement(source, name, text))
                self._join(doc, entity_id)

    def _entity(
        self, field_name: str, says: FieldMeaning, name: str, aliases: Iterable[str]
    ) -> str:
        kind = says.type.lower()
        name = self._vocabulary.canonical(field_name, name)
        aliases = [*aliases, *self._vocabulary.synonyms(field_name, name)]
        entity_id = f"{kind}:{surface_key(name) or name}"
        self._by_key.setdefault(surface_key(name), entity_id)
        entity = self._enter(entity_id, name, says.type)
        entity["aliases"] = sorted({*entity["aliases"], *aliases} - {entity["name"]})
        if says.category:
            self.categories.add(entity_id)
        if says.type == "Person" and " " in name:
            self._surnames.update(surnames(name))
        return entity_id

    def _add_links(self, source: Source) -> None:
        """Add where the edges of a canvas lead from a node, and the group that it is in."""
        doc = source.entity_id
        node = source.fields.get(STRUCTURE, {"id": "", "links": ()})
        for relation, node_id, sentence in node["links"]:
            target = f"{doc.removesuffix(node['id'])}{node_id}"
            if target in self.entities:
                holds = (chunk_id for chunk_id, text in source.passages if sentence in text)
                self._relate(doc, relation, target, sentence, next(holds, source.first_chunk))
                self._join(doc, target)

    def _enter(
        self,
        entity_id: str,
        name: str,
        kind: str,
        aliases: Iterable[str] = (),
        doc_id: str | None = None,
    ) -> Entity:
        entity = Entity(
            entity_id=entity_id, name=name, type=kind, aliases=list(aliases), doc_id=doc_id
        )
        return self.entities.setdefault(entity_id, entity)

    def _add_names(self, source: Source) -> None:
        """Add the names in the texts. Titles and surnames are left to the linker, which resolves them."""
        doc = source.entity_id
        # the text of a record without one is its fields, and what they are called is not a name
        called = {surface_key(unit_in(name)[0]) for name in source.fields}
        for chunk_id, text in source.passages:
            for surface, sentence in names_in(text):
                key = surface_key(surface)
                if key and not any(
                    key in keys for keys in (called, self._titles, self._surnames)
                ):
                    entity_id = self._by_key.setdefault(key, f"name:{key}")
                    self._enter(entity_id, surface, "Name")
                    self._mention(doc, entity_id, sentence, chunk_id)

    def _add_mentions(self, read: Read) -> None:
        """Store who has which name, and find every known name in every text."""
        entities = [e for i, e in self.entities.items() if i not in self._untitled]
        ends = "SELECT source AS entity FROM relations UNION ALL SELECT target FROM relations"
        counts = f"SELECT entity, count(*) FROM ({ends}) GROUP BY 1"
        degrees = dict(self._connection.execute(counts))
        names = compiled(entities, degrees, self.categories, self._years)
        bearers_by_key = {}
        for key, bearers in names.items():
            self._write("names", ((key, place, *bearer) for place, bearer in enumerate(bearers)))
            if individuals := [bearer for bearer in bearers if not bearer.category]:
                bearers_by_key[key] = individuals
        matcher = Matcher(bearers_by_key)
        for source in read():
            self._link(source, bearers_by_key, matcher)

    def _link(
        self, source: Source, names: Mapping[str, Sequence[Bearer]], matcher: Matcher
    ) -> None:
        doc = source.entity_id
        for chunk_id, text in source.passages:
            for sentence in sentences(text):
                mentions = mentions_in(sentence, names, matcher, doc)
                for mention in nearest(
                    mentions, doc, lambda entity_id: self._related.get(entity_id, ())
                ):
                    self._mention(doc, mention["entity_id"], sentence, chunk_id)

    def _mention(self, doc: str, entity_id: str, sentence: str, chunk_id: str) -> None:
        self._write("mentions", [(entity_id, chunk_id)])
        if entity_id != doc and entity_id not in self._related[doc]:
            self._relate(doc, "mentions", entity_id, sentence, chunk_id)

    def _join(self, first: str, second: str) -> None:
        self._related[first].add(second)
        self._related[second].add(first)

    def _relate(self, source: str, kind: str, target: str, sentence: str, chunk_id: str) -> None:
        relation_id = f"{source}|{kind}|{target}"
        self._write("relations", [(relation_id, source, kind, target, sentence, chunk_id)])


def _statement(source: Source, field_name: str, value: str) -> tuple[str, str]:
    """Return the first sentence that has a value of a field, and its chunk id; else the field in words."""
    key = f" {surface_key(value)} "
    for chunk_id, text in source.passages:
        if key in f" {surface_key(text)} ":
            for sentence in sentences(text):
                if key in f" {surface_key(sentence)} ":
                    return sentence, chunk_id
    return f"{source.title} — {field_name}: {value}", source.first_chunk


def names_in_fields(
    fields: Data, names: Mapping[str, list[str]], vocabulary: Vocabulary
) -> Iterator[str]:
    """Every name in the fields with its other names, in both languages: what the keyword index knows a document by."""
    aliases_by_key = {surface_key(name): aliases for name, aliases in names.items()}
    for name, value in sorted(fields.items()):
        for text in values(name, value):
            yield text
            yield from aliases_by_key.get(surface_key(text), [])
            yield from vocabulary.synonyms(name, vocabulary.canonical(name, text))
