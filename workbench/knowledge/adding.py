"""Add documents to an index: they become its next generation in one transaction.

Documents are compared by content, and are read a few at a time: until they are written they are on disk. New texts are
embedded, and their vectors stored by content at once; only then everything is written together. The graph is built from
all documents again, so that it never depends on the order in which they came. Chroma follows.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from workbench.knowledge import communities
from workbench.knowledge.indexes import stores, vectors
from workbench.knowledge.indexes.index import Index, fingerprint, index_terms, join_terms
from workbench.knowledge.knowledge_base import open_model
from workbench.knowledge.names import entities, schema, surfaces
from workbench.knowledge.names.names import insert_phrases
from workbench.knowledge.reading import corpus
from workbench.knowledge.reading.corpus import Document, Place, Problem, Reading
from workbench.knowledge.reading.files import EMPTY, Note
from workbench.knowledge.vocabulary import Vocabulary, stored_vocabulary
from workbench.models import rerank
from workbench.models.embeddings import TextModel, word_vectors
from workbench.plans import canonical_json
from workbench.records.sqlite import translate_errors
from workbench.settings import Settings
from workbench.state import Progress

BATCH = 32
"""Documents that are read or looked up at once."""
MANY, _LONG = 128, 1 << 18
"""Documents, and their characters, that are worked on at once: fewer, longer transactions."""
_SPOOL_TABLES = """
    DROP TABLE IF EXISTS temp.loaded; DROP TABLE IF EXISTS temp.places; DROP TABLE IF EXISTS temp.work;
    CREATE TEMP TABLE loaded AS SELECT * FROM documents WHERE 0;
    CREATE UNIQUE INDEX temp.loaded_by_id ON loaded (doc_id);
    CREATE TEMP TABLE places (
        doc_id TEXT PRIMARY KEY, file TEXT NOT NULL, line INTEGER NOT NULL, digest TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TEMP TABLE work (doc_id TEXT PRIMARY KEY, kind TEXT NOT NULL) WITHOUT ROWID;
"""
_TEMPORARY = "the folder for what is read and not yet added (SQLITE_TMPDIR names another one)"
COLUMNS = "doc_id, title, text, url, licence, type, fields, aliases, names, source"
"""In which an index keeps a document."""
_MARKS = ", ".join("?" * 12)


# --- Documents on disk ---


def from_row(row: Sequence[Any]) -> Document:
    """Return a document of its ``COLUMNS``."""
    *texts, fields, aliases, names, source = row
    parsed = [json.loads(fields), tuple(json.loads(aliases)), json.loads(names)]
    values = [*texts, *parsed, source]
    return Document(*values)


def _row(document: Document) -> tuple[Any, ...]:
    """Return a document as a row of ``documents``."""
    return (
        document.doc_id,
        document.digest(),
        document.title,
        document.text,
        document.url,
        document.licence,
        document.type,
        *map(canonical_json, (document.fields, document.aliases, document.names)),
        document.source,
        entities.read_year(document.fields),
    )


def _read(index: Index, table: str, doc_ids: Sequence[str]) -> Iterator[Document]:
    """Yield these documents of a table by id."""
    sql = f"SELECT {COLUMNS} FROM {table} WHERE doc_id IN ({{}}) ORDER BY doc_id"
    yield from map(from_row, index.rows_in(sql, doc_ids))


def _ids(index: Index, rows: str) -> Iterator[list[str]]:
    """Yield the ids in these rows by id, in batches."""
    sql = f"SELECT doc_id FROM {rows} AND doc_id > ? ORDER BY doc_id LIMIT {BATCH}"
    last = ""
    while ids := [row[0] for row in index.rows(sql, (last,))]:
        yield ids
        last = ids[-1]


class Spool:
    """Documents on their way into an index, each marked with what is to be done with it.

    Args:
        index: in whose temporary tables they are.
        before: the index whose documents keep their ids; None where they are replaced.
    """

    def __init__(self, index: Index, before: sqlite3.Connection | None):
        self._index = index
        self._before = before
        with index.translated_errors():
            index.connection().execute("PRAGMA temp_store = FILE")
            index.connection().executescript(_SPOOL_TABLES)

    # the place where each id was read, for ``Reading.places``

    def __contains__(self, doc_id: object) -> bool:
        return bool(self._index.rows("SELECT 1 FROM places WHERE doc_id = ?", (doc_id,)))

    def get(self, doc_id: str) -> Place | None:
        """Return where a document was read, now or before."""
        rows = self._index.rows(
            "SELECT file, line, digest FROM places WHERE doc_id = ?", (doc_id,)
        )
        if not rows and self._before is not None:
            rows = self._before.execute(
                "SELECT source, 0, digest FROM documents WHERE doc_id = ?", (doc_id,)
            ).fetchall()
        return Place(*rows[0]) if rows else None

    def __setitem__(self, doc_id: str, place: Place) -> None:
        with translate_errors(_TEMPORARY):
            self._index.connection().execute(
                "INSERT INTO places VALUES (?, ?, ?, ?)", (doc_id, *place)
            )

    def take(self, documents: Iterable[Document]) -> Iterator[int]:
        """Store documents, and yield how many there are so far after each batch."""
        remaining = iter(documents)
        count = 0
        while batch := list(islice(remaining, BATCH)):
            with translate_errors(_TEMPORARY):
                self._index.connection().executemany(
                    f"INSERT OR REPLACE INTO loaded VALUES ({_MARKS})", map(_row, batch)
                )
            count += len(batch)
            yield count

    def compare(self, lost: Collection[str]) -> dict[str, int]:
        """Mark what is new and changed, and what is gone from the ``lost`` sources; return the counts by mark."""
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
        return dict(self._index.rows("SELECT kind, count(*) FROM work GROUP BY kind"))

    def everything(self) -> None:
        """Mark every other document, those of the index too: it is to be written again."""
        with self._index.transaction() as connection:
            for table in ("documents", "loaded"):
                connection.execute(
                    f"INSERT OR IGNORE INTO work SELECT doc_id, 'again' FROM {table}"
                )
            connection.execute(
                "INSERT OR IGNORE INTO loaded SELECT documents.* FROM documents JOIN work USING (doc_id) "
                "WHERE kind = 'again'"
            )

    def documents(self) -> Iterator[list[Document]]:
        """Yield everything that is to be written by id, in batches of limited size."""
        batch: list[Document] = []
        for ids in _ids(self._index, "work WHERE kind != 'gone'"):
            batch += _read(self._index, "loaded", ids)
            if len(batch) >= MANY or sum(len(document.text) for document in batch) >= _LONG:
                yield batch
                batch = []
        if batch:
            yield batch


# --- Documents in the index ---


def insert(
    connection: sqlite3.Connection,
    document: Document,
    texts: Sequence[str],
    model: str,
    vocabulary: Vocabulary,
) -> None:
    """Store a document whose passages are these texts."""
    connection.execute(f"INSERT INTO documents VALUES ({_MARKS})", _row(document))
    schema.insert(connection, document.doc_id, document.fields)
    has_title = document.title != corpus.made_title(document.text)
    titles = [*[document.title] * has_title, *document.aliases]
    title = join_terms(" | ".join(titles))
    # each name separately: terms never run over the border between two names
    in_fields = entities.names_in_fields(document.fields, document.names, vocabulary)
    names = " ".join(map(join_terms, in_fields))
    title_keys = {key for name in titles for key in surfaces.writings(name)}
    for position, text in enumerate(texts):
        key = vectors.vector_key(model, vectors.titled(document.title, document.aliases, text))
        chunk_id = f"{document.doc_id}#{position}"
        passage = (chunk_id, document.doc_id, position, text, vectors.vector_key("", text), key)
        sql = "INSERT INTO passages VALUES (NULL, ?, ?, ?, ?, ?, ?)"
        number = connection.execute(sql, passage).lastrowid or 0
        index_terms(connection, number, title, names, text)
        insert_phrases(connection, number, title_keys, text)


def delete(connection: sqlite3.Connection, doc_id: str) -> None:
    """Delete a document; its vectors and names are stored by content, and go with the last text that has them."""
    numbers = "SELECT number FROM passages WHERE doc_id = ?"
    connection.execute(f"DELETE FROM terms WHERE rowid IN ({numbers})", (doc_id,))
    connection.execute(f"DELETE FROM phrases WHERE number IN ({numbers})", (doc_id,))
    for table in ("passages", "documents", "facts"):
        connection.execute(f"DELETE FROM {table} WHERE doc_id = ?", (doc_id,))


_VERSION = 23
"""Version of what is derived from a document; when it is raised, the next ``add`` derives everything again."""
_GRAPH = ("entities", "relations", "mentions", "names", "communities", "homes")


@dataclass
class AddReport:
    """The result of one ``add``. Counts are documents; ``problems`` are lines and files that were left out."""

    name: str
    added: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    problems: list[Problem] = field(default_factory=list)
    seconds: float = 0.0


class Addition:
    """One ``add``, while the base is held for writing.

    Args:
        index: that is written.
        folder: of the base.
        name: of the base.
        settings: the embedding model, and how long a passage is.
        progress: hears of the stages read, vectors, words, write, graph, chroma. An exception in it ends the
            ``add``: the base stays unchanged, and what was computed is there for the next one.
        before: the index whose documents keep their ids; None where they are replaced.
    """

    def __init__(
        self,
        index: Index,
        folder: Path,
        name: str,
        settings: Settings,
        progress: Progress,
        before: sqlite3.Connection | None,
    ):
        self._index = index
        self._folder = folder
        self._settings = settings
        self._progress = progress
        self._name = name
        self._model: TextModel = open_model(index, name, settings)
        self._dimensions = set[int]()
        self._vocabulary = stored_vocabulary(folder)
        self._spool = Spool(index, before)
        recipe = {
            "version": _VERSION,
            "chunk_characters": settings.chunk_characters,
            "vocabulary": self._vocabulary.model_dump(),
        }
        self._recipe = canonical_json(recipe)

    def run(self, documents: Iterable[Document], reading: Reading) -> AddReport:
        """Add these documents: those of the reading, and others after them."""
        reading.places = self._spool
        # Names come in no order, and each goes to a page of its own: pages that stay in memory (128 MB), and a log
        # that is long before it goes into the file (64 MB), let a page be written once for many rows.
        for pragma in ("cache_size = -131072", "wal_autocheckpoint = 16384"):
            self._index.rows(f"PRAGMA {pragma}")
        count = 0
        for count in self._spool.take(documents):
            self._progress("read", count, 0)
        self._progress("read", count, count)
        changes = self._spool.compare(self._lost(reading))
        new_recipe = self._index.meta("recipe") != self._recipe
        if new_recipe:
            self._spool.everything()
        if new_recipe or changes:
            self._write()
        added, changed, deleted = (changes.get(kind, 0) for kind in ("new", "changed", "gone"))
        problems = [*reading.problems, *self._follow()]
        return AddReport(self._name, added, changed, deleted, count - added - changed, problems)

    def _lost(self, reading: Reading) -> list[str]:
        """Return the sources that lost documents: files read to their end, or gone from a folder that was given.

        A file with a line that cannot be read deletes nothing: the line may be the document.
        """
        read = reading.sources - {
            Path(os.path.realpath(problem["file"])).as_posix()
            for problem in reading.problems
            if not isinstance(problem["reason"], Note) and problem["reason"] != EMPTY
        }
        rows = self._index.rows("SELECT DISTINCT source FROM documents ORDER BY 1")
        return [source for (source,) in rows if source in read or reading.has_lost(source)]

    def _write(self) -> None:
        """Compute what is new, then write everything together."""
        ((total,),) = self._index.rows("SELECT count(*) FROM work WHERE kind != 'gone'")
        done = 0
        for batch in self._spool.documents():
            self._compute(batch, done, total)
            done += len(batch)
        with self._index.transaction() as connection:
            for ids in _ids(self._index, "work WHERE kind != 'new'"):
                for doc_id in ids:
                    delete(connection, doc_id)
            done = 0
            for batch in self._spool.documents():
                self._progress("write", done, total)
                for document in batch:
                    texts = self._cut(document)
                    insert(connection, document, texts, self._model.name, self._vocabulary)
                done += len(batch)
            self._progress("write", total, total)
            self._write_graph(connection)
            # what was computed for texts that are gone
            connection.execute(
                "DELETE FROM vectors WHERE key NOT IN (SELECT vector FROM passages)"
            )
            generation = self._index.generation + 1
            meta = {
                "embedding_model": self._model.name,
                "recipe": self._recipe,
                "generation": str(generation),
                "fingerprint": f"{generation} {fingerprint(self._index)}",
            }
            for key, value in meta.items():
                self._index.set_meta(key, value)

    def _write_graph(self, connection: sqlite3.Connection) -> None:
        """Build the graph from all documents, which are read a few at a time."""
        for table in _GRAPH:
            connection.execute(f"DELETE FROM {table}")
        (documents,) = connection.execute("SELECT count(*) FROM documents").fetchone()
        done = 0

        def read() -> Iterator[entities.Source]:
            nonlocal done
            for ids in _ids(self._index, "documents WHERE 1"):
                # the graph reads every document four times
                self._progress("graph", done, 4 * documents)
                yield from self._sources(ids)
                done += len(ids)

        builder = entities.GraphBuilder(connection, self._vocabulary)
        builder.build(read)
        communities.write(connection, builder.entities, builder.categories, builder.leads)
        self._progress("graph", done, done)

    def _sources(self, doc_ids: Sequence[str]) -> Iterator[entities.Source]:
        """Yield these documents with the names in their passages."""
        passages: dict[str, list[tuple[str, str]]] = {}
        sql = "SELECT doc_id, position, chunk_id, text FROM passages WHERE doc_id IN ({})"
        for doc_id, _, chunk_id, text in sorted(self._index.rows_in(sql, doc_ids)):
            passages.setdefault(doc_id, []).append((chunk_id, text))
        for d in _read(self._index, "documents", doc_ids):
            yield entities.Source(**vars(d), passages=passages.get(d.doc_id, []))

    def _compute(self, documents: Sequence[Document], done: int, total: int) -> None:
        """Store vectors and words of some documents by content at once."""

        def progress(stage: str) -> Callable[[int, int], None]:
            return lambda part, size: self._progress(
                stage, done + len(documents) * part // size, total
            )

        texts = [
            vectors.titled(d.title, d.aliases, text) for d in documents for text in self._cut(d)
        ]
        progress("vectors")(0, 1)
        vectors.ensure(self._index, self._model, texts, self._dimensions, progress("vectors"))
        if rerank.available(self._settings, self._model.name):
            words = {word: word for word in sorted({*chain(*map(rerank.words, texts))})}
            embed = partial(word_vectors, self._model)
            vectors.keep_missing(self._index, "words", words, embed, 512, progress("words"))

    def _cut(self, document: Document) -> list[str]:
        return corpus.chunks(document.text, self._settings.chunk_characters, document.title)

    def _follow(self) -> list[Problem]:
        """Update the store of vectors, and return what was wrong with it."""
        place = stores.vector_place(self._folder, self._settings)
        if not stores.follow(place, self._index, partial(self._progress, "chroma")):
            return []
        reason = "was damaged, and has been rebuilt from the index"
        return [{"file": str(place.folder), "line": 0, "reason": reason}]
