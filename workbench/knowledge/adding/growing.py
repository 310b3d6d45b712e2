"""The graph of an index as documents come and go: made anew of all of them, or grown by what is new.

Grown means: what some documents give by themselves is joined to what is there. A name that both sides know becomes one
entity, whichever said more of it; new texts are looked through for known names, and old texts for new ones. What only
all documents together can say (the most frequent spelling, which names are ordinary words) is said when it is made
anew. What is made anew and has no room in memory goes part by part through three steps: what titles, fields and triples
state, what texts name besides, where the texts hold all those names.
"""

from __future__ import annotations

import gc
import json
import os
import sqlite3
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from workbench.errors import WorkspaceFull
from workbench.knowledge.graph import graph as communities
from workbench.knowledge.graph import view
from workbench.knowledge.indexes import keywords
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.names import entities
from workbench.knowledge.names.entities import Extracted, Source, document_entity
from workbench.knowledge.names.linking import Linker, nearest
from workbench.knowledge.names.surfaces import Bearer, Beginnings, Surface, candidates, compiled
from workbench.knowledge.reading import triples
from workbench.knowledge.reading.corpus import Document, Place
from workbench.knowledge.vocabulary import GROUPING, Vocabulary
from workbench.plans import canonical_json
from workbench.ports import Entity, Relation
from workbench.records.sqlite import FULL, named
from workbench.text import closed_up, sentences


@contextmanager
def made_beside(connection: sqlite3.Connection, tables: Sequence[str], memory_kb: int) -> Iterator[None]:
    """Inside the block these tables are empty ones beside those of the index, which they replace when it ends.

    Args:
        connection: inside a transaction; what is read and written through it finds the tables by their names.
        tables: with a primary key and without row ids.
        memory_kb: of the pages of the temporary file that stay in memory.

    Raises:
        WorkspaceFull: there is no room in the index's folder or in that of the temporary file.
    """
    marks = ", ".join("?" * len(tables))
    sql = f"SELECT name, tbl_name, sql FROM main.sqlite_master WHERE type = ? AND tbl_name IN ({marks}) AND sql != ''"
    made = connection.execute(sql, ("table", *tables)).fetchall()
    indexes = connection.execute(sql, ("index", *tables)).fetchall()
    connection.execute(f"PRAGMA temp.cache_size = -{memory_kb}")
    for _, _, create in made:
        connection.execute(create.replace("CREATE TABLE ", "CREATE TEMP TABLE ", 1))
    for _, _, create in indexes:
        connection.execute(create.replace("CREATE INDEX ", "CREATE INDEX temp.", 1))
    with _naming_both():
        yield
    for name, _, _ in indexes:
        connection.execute(f"DROP INDEX main.{name}")
    for name, _, _ in made:
        connection.execute(f"DELETE FROM main.{name}")
        connection.execute(f"INSERT INTO main.{name} SELECT * FROM temp.{name}")
        connection.execute(f"DROP TABLE temp.{name}")
    for _, _, create in indexes:
        connection.execute(create)


@contextmanager
def _naming_both() -> Iterator[None]:
    """Where there is no room, SQLite does not say in which of the two files."""
    try:
        yield
    except (sqlite3.Error, WorkspaceFull) as error:
        code = getattr(error, "sqlite_errorcode", None) or 0
        if isinstance(error, WorkspaceFull) or code & 0xFF in FULL:
            also = f"It may be {temporary_folder()}, where the graph is made (SQLITE_TMPDIR names another folder)."
            raise WorkspaceFull(f"{error}. {also}".replace("..", ".")) from error
        raise


@cache
def temporary_folder() -> str:
    """Where SQLite keeps temporary tables: in the first of these folders that can be written."""
    folders = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp")
    usable = (folder for folder in folders if folder and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK))
    return next(usable, tempfile.gettempdir())


# --- What files gave, on disk until it is written, so that no corpus is held in memory ---

BATCH = 32
"""Documents that are read or looked up at once."""
MANY, _LONG = 128, 1 << 18
"""Documents, and their characters, that are worked on at once: fewer, longer transactions."""
_SPOOL_TABLES = """
    CREATE TEMP TABLE loaded (
        doc_id TEXT PRIMARY KEY, digest TEXT NOT NULL, source TEXT NOT NULL, content TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TEMP TABLE places (
        doc_id TEXT PRIMARY KEY, file TEXT NOT NULL, line INTEGER NOT NULL, digest TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TEMP TABLE work (doc_id TEXT PRIMARY KEY, kind TEXT NOT NULL) WITHOUT ROWID;
"""
COLUMNS = ("doc_id", "title", "text", "url", "licence", "type", "fields", "aliases", "names", "source")
"""In which an index keeps a document."""


class Places:
    """Where each id was read, for ``corpus.Reading``: on disk, as the documents are.

    Attributes:
        before: the index whose documents keep their ids; None where they are replaced.
    """

    def __init__(self, index: Index, *, replace: bool):
        self._index = index
        self.before: sqlite3.Connection | None = None if replace else index.connection()

    def __contains__(self, doc_id: object) -> bool:
        return bool(self._index.rows("SELECT 1 FROM places WHERE doc_id = ?", (doc_id,)))

    def get(self, doc_id: str) -> Place | None:
        """Return where a document was read, now or before."""
        rows = self._index.rows("SELECT file, line, digest FROM places WHERE doc_id = ?", (doc_id,))
        if not rows and self.before is not None:
            rows = self.before.execute("SELECT source, 0, digest FROM documents WHERE doc_id = ?", (doc_id,)).fetchall()
        return Place(*rows[0]) if rows else None

    def __setitem__(self, doc_id: str, place: Place) -> None:
        with named(_where()):
            self._index.connection().execute("INSERT INTO places VALUES (?, ?, ?, ?)", (doc_id, *place))


class Spool:
    """Documents on their way into an index, and what is to be done with them."""

    def __init__(self, index: Index, replace: bool):
        self._index = index
        self._begin()
        self.places = Places(index, replace=replace)

    def _begin(self) -> None:
        connection = self._index.connection()
        with self._index.named():
            connection.execute("PRAGMA temp_store = FILE")
            for table in ("loaded", "places", "work"):
                connection.execute(f"DROP TABLE IF EXISTS temp.{table}")
            connection.executescript(_SPOOL_TABLES)

    def take(self, documents: Iterable[Document]) -> Iterator[int]:
        """Lay them down; how many there are so far, after each handful."""
        count = 0
        for batch in _handfuls(documents):
            with named(_where()):
                connection = self._index.connection()
                connection.executemany("INSERT OR REPLACE INTO loaded VALUES (?, ?, ?, ?)", map(_row, batch))
            count += len(batch)
            yield count

    def __len__(self) -> int:
        return int(self._index.rows("SELECT count(*) FROM loaded")[0][0])

    def compare(self, lost: Collection[str]) -> dict[str, int]:
        """Mark what is new and changed, and what is gone from the sources that have ``lost`` it; the counts by kind."""
        with self._index.transaction() as connection:
            connection.execute("DELETE FROM work")
            connection.execute(
                "INSERT INTO work SELECT loaded.doc_id, CASE WHEN documents.doc_id IS NULL THEN 'new' ELSE 'changed' "
                "END FROM loaded LEFT JOIN documents USING (doc_id) "
                "WHERE documents.doc_id IS NULL OR documents.digest != loaded.digest"
            )
            connection.execute(  # a file that was moved
                "UPDATE documents SET source = loaded.source FROM loaded "
                "WHERE loaded.doc_id = documents.doc_id AND loaded.digest = documents.digest"
            )
            connection.executemany(
                "INSERT INTO work SELECT doc_id, 'gone' FROM documents "
                "WHERE source = ? AND doc_id NOT IN (SELECT doc_id FROM loaded)",
                ((source,) for source in lost),
            )
        return self._counts()

    def everything(self) -> None:
        """Mark every other document of the index as well: it is to be made anew."""
        with self._index.transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO work SELECT doc_id, 'again' FROM documents "
                "WHERE doc_id NOT IN (SELECT doc_id FROM loaded)"
            )
            connection.execute("INSERT OR IGNORE INTO work SELECT doc_id, 'again' FROM loaded")
        rows = self._index.rows(
            "SELECT doc_id FROM work WHERE kind = 'again' AND doc_id NOT IN (SELECT doc_id FROM loaded)"
        )
        deque(self.take(stored(self._index, [row[0] for row in rows])), maxlen=0)  # to its end, and nothing is held

    def _counts(self) -> dict[str, int]:
        return dict(self._index.rows("SELECT kind, count(*) FROM work GROUP BY kind"))

    def ids(self, *kinds: str) -> Iterator[list[str]]:
        """Ids of what is marked so, in their order, in handfuls."""
        marks = ", ".join("?" * len(kinds))
        sql = f"SELECT doc_id FROM work WHERE kind IN ({marks}) AND doc_id > ? ORDER BY doc_id LIMIT {BATCH}"
        last = ""
        while found := [row[0] for row in self._index.rows(sql, (*kinds, last))]:
            yield found
            last = found[-1]

    def documents(self) -> Iterator[list[Document]]:
        """Everything that is to be written, by id, in handfuls."""
        batch: list[Document] = []
        characters = 0
        for ids in self.ids("new", "changed", "again"):
            batch += (found := self.these(ids))
            characters += sum(len(document.text) for document in found)
            if len(batch) >= MANY or characters >= _LONG:
                yield batch
                batch, characters = [], 0
        if batch:
            yield batch

    def these(self, doc_ids: Sequence[str]) -> list[Document]:
        """Those of these documents that were loaded, by id."""
        sql = "SELECT doc_id, source, content FROM loaded WHERE doc_id IN ({})"
        return [_document(*row) for row in sorted(self._index.rows_in(sql, doc_ids))]


def stored(index: Index, doc_ids: Sequence[str]) -> Iterator[Document]:
    """The documents of an index as they were loaded, in the order of these ids, read a few at a time."""
    sql = f"SELECT {', '.join(COLUMNS)} FROM documents WHERE doc_id IN ({{}})"
    for start in range(0, len(doc_ids), BATCH):
        part = doc_ids[start : start + BATCH]
        rows = {row[0]: row for row in index.rows_in(sql, part)}
        yield from (of_row(rows[doc_id]) for doc_id in part if doc_id in rows)


def of_row(row: Sequence[Any]) -> Document:
    """A document of the columns in which an index keeps it."""
    doc_id, title, text, url, licence, kind, fields, aliases, names, source = row
    lists = json.loads(fields), tuple(json.loads(aliases)), json.loads(names)
    return Document(doc_id, title, text, url, licence, kind, *lists, source)


def _where() -> str:
    return f"{temporary_folder()} (for what is read and not yet added; SQLITE_TMPDIR names another folder)"


def _row(document: Document) -> tuple[str, str, str, str]:
    content = json.dumps(document.content(), ensure_ascii=False)
    return document.doc_id, document.digest(), document.source, content


def _document(doc_id: str, source: str, content: str) -> Document:
    given = json.loads(content)
    return Document(doc_id, **{**given, "aliases": tuple(given["aliases"])}, source=source)


def _handfuls(documents: Iterable[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    for document in documents:
        batch.append(document)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


# --- The graph of an index as documents come and go: made anew of all of them, or grown by what is new ---

_TABLES = ("entities", "relations", "mentions", "surfaces", "communities", "homes")
_UNSURE = ("name:", "node:")
"""Entities that only texts or triples name: they become what a title or a field says of the name."""
_HUB = 200
"""Passages that hold a new name; a name that more hold is looked for when the graph is made anew."""
_COUNTED = 10_000
"""Relations of an entity that are counted; who has more leads anyway."""
_AT_ONCE = 200
_MANY = 500
"""Documents for which it pays to read the beginnings of all names first."""


class Growth:
    """The graph of an index, inside the transaction that writes its documents."""

    def __init__(self, index: Index, vocabulary: Vocabulary):
        self._index, self._vocabulary = index, vocabulary
        self._beginnings: Beginnings | None = None

    @property
    def _connection(self) -> sqlite3.Connection:
        return self._index.connection()

    def clear(self) -> None:
        """Begin with nothing."""
        for table in _TABLES:
            self._connection.execute(f"DELETE FROM {table}")

    def make_anew(self, sources: Sequence[Source]) -> None:
        """The graph of these documents and nothing else: a function of them alone."""
        found = entities.extract(sources, self._vocabulary)
        self.clear()
        self._insert_missing("entities", map(_entity_row, found.entities))
        self._insert_missing("relations", (tuple(relation.values()) for relation in found.relations))
        self._insert_missing("mentions", found.mentions)
        self._insert_missing(
            "surfaces", (row for key, surface in found.surfaces.items() for row in _surface_rows(key, surface))
        )
        communities.make_anew(self._connection, found, sources)

    def _insert_missing(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert the rows in a fixed order, without those that are already there."""
        ordered = sorted(rows, key=lambda row: row[:2])
        if ordered:
            marks = ", ".join("?" * len(ordered[0]))
            self._connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", ordered)

    def forget(self) -> None:
        """Take out what the documents at work state, before their passages go.

        Who names one of them, or is in a community with it, is read again: it may mean somebody else now.
        """
        for sql in _FORGET:
            self._connection.execute(sql)

    def add(self, sources: Sequence[Source]) -> None:
        """Join what these documents say, whose passages are written, to the graph."""
        if not sources:
            return
        extracted = entities.extract(sources, self._vocabulary, linked=False)
        known = self._join(extracted, len(sources) > _MANY)
        self._link_all(sources)
        self._look_back(extracted, known, {s.doc_id for s in sources})
        self._house(sources)

    def make_anew_in_parts(self, parts: Callable[[bool], Iterable[Sequence[Source]]], memory_mb: float) -> None:
        """The graph of more documents than memory has room for: all names are known before any text is searched.

        Args:
            parts: gives them all in parts, each time it is called; with the names that were found in their texts, or
                without.
            memory_mb: of the tables that stay in memory.
        """
        with made_beside(self._connection, _TABLES, int(memory_mb * 1024)):
            for step, named in ((self._add_stated, False), (self._add_named, True), (self._settle, False)):
                # in a loop the variable would hold a part while the next one is read
                deque(map(_uncollected(step), parts(named)), maxlen=0)

    def _add_stated(self, sources: Sequence[Source]) -> None:
        """What titles, fields and triples say."""
        self._join(entities.extract(sources, self._vocabulary, named=False, linked=False), True)

    def _add_named(self, sources: Sequence[Source]) -> None:
        """What the texts name besides."""
        self._join(_of_texts(entities.extract(sources, self._vocabulary, linked=False)), True)

    def _settle(self, sources: Sequence[Source]) -> None:
        """Where the texts hold the names, and who belongs together."""
        self._link_all(sources)
        self._house(sources)

    def _join(self, extracted: Extracted, many: bool) -> dict[str, Surface]:
        """Keep what was extracted in the ids by which the index knows it; the writings that were known before."""
        if self._beginnings is None and many:
            keys = self._connection.execute("SELECT DISTINCT key FROM surfaces")
            self._beginnings = Beginnings(row[0] for row in keys)
        known = view.surfaces(self._index, list(extracted.surfaces))
        if self._rename_known(extracted, known):
            known = view.surfaces(self._index, list(extracted.surfaces))
        names = _known_ids(extracted, known)
        found = [entity for entity in extracted.entities if entity["entity_id"] not in names]
        self._keep_entities(found)
        relations = {row[0]: row for row in _relation_rows(extracted.relations, names)}
        self._insert_missing("relations", relations.values())
        mentions = ((names.get(i, i), chunk_id) for i, chunk_id in extracted.mentions)
        self._insert_missing("mentions", (mention for mention in mentions if mention[0]))
        self._join_surfaces(extracted, found, known)
        return known

    def _house(self, sources: Sequence[Source]) -> None:
        """Give these documents, and whom they are related to, their communities."""
        mine = [document_entity(source.doc_id) for source in sources]
        stated = view.relations(
            self._index, f"WHERE source IN {_LISTED} OR target IN {_LISTED}", [json.dumps(mine)] * 2
        )
        ends = {end for relation in stated for end in (relation["source"], relation["target"])}
        found = self._entities([*mine, *(end for end in ends if not end.startswith("doc:"))])
        categories = {entity["entity_id"] for entity in found if entity["type"] in GROUPING}
        communities.grow(self._connection, found, stated, categories, sources)

    def finish(self) -> None:
        """Drop whoever nobody names any more."""
        for sql in _UNNAMED:
            self._connection.execute(sql)

    def _entities(self, ids: Sequence[str]) -> list[Entity]:
        return view.entities(self._index, f"WHERE entity_id IN {_LISTED}", [json.dumps(ids)])

    def _rename_known(self, extracted: Extracted, known: Mapping[str, Surface]) -> bool:
        """What was only a name in texts is now what a title or a field of the new documents says it is."""
        renamed = False
        for key, surface in extracted.surfaces.items():
            sure = next((b.entity_id for b in surface.bearers if b.rank < 2 and not _unsure(b.entity_id)), None)
            if sure and surface.kind != "surname" and key in known:
                for bearer in known[key].bearers:
                    if bearer.entity_id in (f"name:{key}", f"node:{key}"):
                        self._rename(bearer.entity_id, sure)
                        renamed = True
        return renamed

    def _rename(self, old: str, new: str) -> None:
        stated = view.relations(self._index, "WHERE source = ? OR target = ?", (old, old))
        mentions = self._index.rows("SELECT ?, chunk_id FROM mentions WHERE entity_id = ?", (new, old))
        home = self._index.rows("SELECT ?, community_id FROM homes WHERE entity_id = ?", (new, old))
        for entity in self._entities([old]):
            keys = ((key, old) for key in compiled([entity], {}))
            self._connection.executemany("DELETE FROM surfaces WHERE key = ? AND entity_id = ?", keys)
        self._connection.execute("DELETE FROM relations WHERE source = ? OR target = ?", (old, old))
        for table in ("mentions", "homes", "entities"):
            self._connection.execute(f"DELETE FROM {table} WHERE entity_id = ?", (old,))
        self._insert_missing("relations", _relation_rows(stated, {old: new}))
        self._insert_missing("mentions", mentions)
        self._insert_missing("homes", home)

    def _keep_entities(self, found: Sequence[Entity]) -> None:
        """New entities as they are; of a known one only other names are added, and a document's is as it is now."""
        ids = [entity["entity_id"] for entity in found if not entity["doc_id"]]
        known = {entity["entity_id"]: entity for entity in self._entities(ids)}
        rows = []
        for entity in found:
            if before := known.get(entity["entity_id"]):
                aliases = sorted({*before["aliases"], *entity["aliases"], entity["name"]} - {before["name"]})
                entity = {**before, "aliases": aliases if entity["aliases"] else before["aliases"]}
                if entity == before:
                    continue
            rows.append(_entity_row(entity))
        self._connection.executemany("INSERT OR REPLACE INTO entities VALUES (?, ?, ?, ?, ?)", rows)

    def _join_surfaces(self, extracted: Extracted, found: Sequence[Entity], known: Mapping[str, Surface]) -> None:
        """The writings of the new documents' names, with all who bear them."""
        mine = {e["entity_id"] for e in found}
        leads = {i: -self._degree(i) for i in mine}
        rows = list[tuple[Any, ...]]()
        for key, surface in extracted.surfaces.items():
            bearers = [b._replace(lead=leads[b.entity_id]) for b in surface.bearers if b.entity_id in mine]
            if bearers and (joined := _together(known.get(key), Surface(tuple(bearers), surface.kind))):
                rows += _surface_rows(key, joined)
        self._connection.executemany("DELETE FROM surfaces WHERE key = ?", {(row[0],) for row in rows})
        self._insert_missing("surfaces", rows)
        if self._beginnings:
            self._beginnings.add(row[0] for row in rows)

    def _degree(self, entity_id: str) -> int:
        counted = f"SELECT count(*) FROM (SELECT 1 FROM relations WHERE {{}} = ? LIMIT {_COUNTED})"
        return sum(self._index.rows(counted.format(end), (entity_id,))[0][0] for end in ("source", "target"))

    def _link_all(self, sources: Iterable[Source]) -> None:
        """Find every known name in the texts of these documents."""
        linked = [s for s in sources if s.type != triples.NODE]
        self._link([(document_entity(s.doc_id), chunk_id, text) for s in linked for chunk_id, text, _ in s.passages])

    def _link(self, passages: Sequence[tuple[str, str, str]]) -> None:
        """Find every known name in these ``(entity of the document, chunk id, text)``."""
        for start in range(0, len(passages), _AT_ONCE):
            part = passages[start : start + _AT_ONCE]
            keys = dict.fromkeys(key for *_, text in part for key in candidates(text, self._beginnings))
            linker = Linker(view.surfaces(self._index, list(keys), "AND NOT category"), self._vocabulary.cues)
            beside = {doc: self._beside(doc) for doc in dict.fromkeys(doc for doc, *_ in part)}
            mentions, relations = [], []
            for doc, chunk_id, text in part:
                for sentence in sentences(text):
                    for near in nearest(linker.link(sentence, doc), doc, self._beside):
                        other = near["entity_id"]
                        mentions.append((other, chunk_id))
                        if other != doc and other not in beside[doc]:
                            row = (f"{doc}|mentions|{other}", doc, "mentions", other, sentence, chunk_id)
                            relations.append(row)
            self._insert_missing("mentions", mentions)
            self._insert_missing("relations", relations)

    def _beside(self, doc: str) -> set[str]:
        """Entities that a field of a document, or a triple, relates to it."""
        sql = "SELECT target FROM relations WHERE source = ? UNION SELECT source FROM relations WHERE target = ? AND "
        return {row[0] for row in self._index.rows(f"{sql} type != 'mentions'", (doc, doc))}

    def _look_back(self, extracted: Extracted, known: Mapping[str, Surface], mine: Collection[str]) -> None:
        """Look through the texts that were there for the titles and fields that are new."""
        sql = (
            "SELECT chunk_id, doc_id, text FROM terms JOIN passages ON number = terms.rowid WHERE terms MATCH ? LIMIT ?"
        )
        found: dict[str, tuple[str, str, str]] = {}
        for key, surface in extracted.surfaces.items():
            said = surface.kind in ("name", "words") and any(not b.category for b in surface.bearers)
            if key in known or not said or all(_unsure(b.entity_id) for b in surface.bearers):
                continue
            words = keywords.stored(closed_up(key))
            rows = self._index.rows(sql, (f'body : "{words}"', _HUB + 1)) if words else []
            if len(rows) <= _HUB:
                found |= {row[0]: (document_entity(row[1]), row[0], row[2]) for row in rows if row[1] not in mine}
        self._link([found[chunk_id] for chunk_id in sorted(found)])


def _uncollected(step: Callable[[Sequence[Source]], None]) -> Callable[[Sequence[Source]], None]:
    """The step without Python's collector of cycles: it would go through a whole part time and again and find none."""

    def run(part: Sequence[Source]) -> None:
        on = gc.isenabled()
        gc.disable()
        try:
            step(part)
        finally:
            if on:
                gc.enable()

    return run


_CHANGED = "SELECT 'doc:' || doc_id FROM work WHERE kind IN ('gone', 'changed')"
_THEIRS = "SELECT chunk_id FROM work JOIN passages USING (doc_id)"
_TOUCHED = f"SELECT community_id FROM communities, json_each(doc_ids) WHERE 'doc:' || value IN ({_CHANGED})"
_FORGET = (
    f"INSERT OR IGNORE INTO work SELECT value, 'beside' FROM communities, json_each(doc_ids) "
    f"WHERE community_id IN ({_TOUCHED})",
    f"DELETE FROM communities WHERE community_id IN ({_TOUCHED})",
    "DELETE FROM homes WHERE community_id NOT IN (SELECT community_id FROM communities)",
    "INSERT OR IGNORE INTO work SELECT DISTINCT substr(source, 5), 'beside' FROM relations "
    f"WHERE target IN ({_CHANGED}) AND source >= 'doc:' AND source < 'doc;'",
    f"DELETE FROM relations WHERE source IN ({_CHANGED}) OR target IN ({_CHANGED}) OR chunk_id IN ({_THEIRS})",
    f"DELETE FROM mentions WHERE entity_id IN ({_CHANGED}) OR chunk_id IN ({_THEIRS})",
    f"DELETE FROM surfaces WHERE entity_id IN ({_CHANGED})",
    f"DELETE FROM entities WHERE entity_id IN ({_CHANGED})",
)
_UNNAMED = (
    "DELETE FROM entities WHERE doc_id IS NULL AND NOT EXISTS (SELECT 1 FROM relations WHERE source = entity_id) "
    "AND NOT EXISTS (SELECT 1 FROM relations WHERE target = entity_id) "
    "AND NOT EXISTS (SELECT 1 FROM mentions WHERE mentions.entity_id = entities.entity_id)",
    "DELETE FROM surfaces WHERE entity_id NOT IN (SELECT entity_id FROM entities)",
    "DELETE FROM homes WHERE entity_id NOT IN (SELECT entity_id FROM entities)",
)
_LISTED = "(SELECT value FROM json_each(?))"


def _known_ids(extracted: Extracted, known: Mapping[str, Surface]) -> dict[str, str]:
    """Return the ids by which the index knows mere names; "" is nobody, for a surname that several may bear."""
    names: dict[str, str] = {}
    for entity in extracted.entities:
        own = entity["entity_id"]
        surface = known.get(own.partition(":")[2]) if _unsure(own) else None
        if surface and own not in (b.entity_id for b in surface.bearers):
            names[own] = "" if surface.kind == "surname" else surface.bearers[0].entity_id
    return names


def _of_texts(extracted: Extracted) -> Extracted:
    """What the texts name, without what titles and fields state."""
    mine = {e["entity_id"] for e in extracted.entities if e["entity_id"].startswith("name:")}
    return Extracted(
        entities=[e for e in extracted.entities if e["entity_id"] in mine],
        relations=[r for r in extracted.relations if r["type"] == "mentions" or r["relation_id"] in extracted.stated],
        mentions=extracted.mentions,
        surfaces={k: s for k, s in extracted.surfaces.items() if any(b.entity_id in mine for b in s.bearers)},
    )


def _unsure(entity_id: str) -> bool:
    return entity_id.startswith(_UNSURE)


def _entity_row(entity: Entity) -> tuple[Any, ...]:
    return entity["entity_id"], entity["name"], entity["type"], canonical_json(entity["aliases"]), entity["doc_id"]


def _relation_rows(relations: Iterable[Relation], names: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Rows of relations under other names for their ends; one whose end has none, or that leads back, is left out."""
    for relation in relations:
        source, kind = names.get(relation["source"], relation["source"]), relation["type"]
        target = names.get(relation["target"], relation["target"])
        if source and target and source != target:
            stated = relation["sentence"], relation["chunk_id"]
            yield f"{source}|{kind}|{target}", source, kind, target, *stated


def _surface_rows(key: str, surface: Surface) -> Iterator[tuple[Any, ...]]:
    return ((key, place, surface.kind, *bearer) for place, bearer in enumerate(surface.bearers))


def _together(known: Surface | None, new: Surface) -> Surface | None:
    """One writing of names on both sides: a name beats a surname, and of two who share a surname the clear one has it.

    None leaves what is known as it is.
    """
    if known is None or (known.kind == "surname" and new.kind != "surname"):
        return new
    if new.kind == "surname" and known.kind != "surname":
        return None
    bearers: dict[str, Bearer] = {b.entity_id: b for b in known.bearers}
    for bearer in new.bearers:
        before = bearers.get(bearer.entity_id, bearer)
        bearers[bearer.entity_id] = bearer._replace(rank=min(before.rank, bearer.rank))
    ranked = sorted(bearers.values(), key=lambda b: (b.rank, b.lead, b.entity_id))
    return Surface(tuple(ranked[:1] if new.kind == "surname" else ranked), known.kind)
