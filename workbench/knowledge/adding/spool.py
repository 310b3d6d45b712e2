"""Documents that were read, on disk until they are written, so that no corpus is in memory."""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from workbench.knowledge.indexes.index import Index
from workbench.knowledge.reading.corpus import Document, Place
from workbench.records.sqlite import translate_errors

BATCH = 32
"""Documents that are read or looked up at once."""
MANY, _LONG = 128, 1 << 18
"""Documents, and their characters, that are worked on at once: fewer, longer transactions."""
_SPOOL_TABLES = """
    DROP TABLE IF EXISTS temp.loaded; DROP TABLE IF EXISTS temp.places; DROP TABLE IF EXISTS temp.work;
    CREATE TEMP TABLE loaded (
        doc_id TEXT PRIMARY KEY, digest TEXT NOT NULL, source TEXT NOT NULL, content TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TEMP TABLE places (
        doc_id TEXT PRIMARY KEY, file TEXT NOT NULL, line INTEGER NOT NULL, digest TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TEMP TABLE work (doc_id TEXT PRIMARY KEY, kind TEXT NOT NULL) WITHOUT ROWID;
"""
_TEMPORARY = "the folder for what is read and not yet added (SQLITE_TMPDIR names another one)"
COLUMNS = (
    "doc_id",
    "title",
    "text",
    "url",
    "licence",
    "type",
    "fields",
    "aliases",
    "names",
    "source",
)
"""In which an index keeps a document."""


class Places:
    """The place where each id was read, for ``corpus.Reading``: on disk, as the documents are.

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
        rows = self._index.rows(
            "SELECT file, line, digest FROM places WHERE doc_id = ?", (doc_id,)
        )
        if not rows and self.before is not None:
            rows = self.before.execute(
                "SELECT source, 0, digest FROM documents WHERE doc_id = ?", (doc_id,)
            ).fetchall()
        return Place(*rows[0]) if rows else None

    def __setitem__(self, doc_id: str, place: Place) -> None:
        with translate_errors(_TEMPORARY):
            self._index.connection().execute(
                "INSERT INTO places VALUES (?, ?, ?, ?)", (doc_id, *place)
            )


class Spool:
    """Documents on their way into an index, each marked with what is to be done with it."""

    def __init__(self, index: Index, replace: bool):
        self._index = index
        connection = index.connection()
        with index.translated_errors():
            connection.execute("PRAGMA temp_store = FILE")
            connection.executescript(_SPOOL_TABLES)
        self.places = Places(index, replace=replace)

    def take(self, documents: Iterable[Document]) -> Iterator[int]:
        """Store documents, and yield how many there are so far after each batch."""
        remaining = iter(documents)
        count = 0
        while batch := list(islice(remaining, BATCH)):
            with translate_errors(_TEMPORARY):
                connection = self._index.connection()
                connection.executemany(
                    "INSERT OR REPLACE INTO loaded VALUES (?, ?, ?, ?)", map(_row, batch)
                )
            count += len(batch)
            yield count

    def __len__(self) -> int:
        return int(self._index.rows("SELECT count(*) FROM loaded")[0][0])

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
            connection.execute("INSERT OR IGNORE INTO work SELECT doc_id, 'again' FROM documents")
            connection.execute("INSERT OR IGNORE INTO work SELECT doc_id, 'again' FROM loaded")
        sql = "SELECT doc_id FROM work WHERE kind = 'again' AND doc_id NOT IN (SELECT doc_id FROM loaded)"
        unloaded = [row[0] for row in self._index.rows(sql)]
        # to its end, and nothing stays in memory
        deque(self.take(stored(self._index, unloaded)), maxlen=0)

    def ids(self, *kinds: str) -> Iterator[list[str]]:
        """Yield the ids with these marks in their order, in batches."""
        marks = ", ".join("?" * len(kinds))
        sql = f"SELECT doc_id FROM work WHERE kind IN ({marks}) AND doc_id > ? ORDER BY doc_id LIMIT {BATCH}"
        last = ""
        while ids := [row[0] for row in self._index.rows(sql, (*kinds, last))]:
            yield ids
            last = ids[-1]

    def documents(self) -> Iterator[list[Document]]:
        """Yield everything that is to be written by id, in batches of limited size."""
        batch: list[Document] = []
        for ids in self.ids("new", "changed", "again"):
            rows = self._index.rows_in(
                "SELECT doc_id, source, content FROM loaded WHERE doc_id IN ({})", ids
            )
            batch += [_document(*row) for row in sorted(rows)]
            if len(batch) >= MANY or sum(len(document.text) for document in batch) >= _LONG:
                yield batch
                batch = []
        if batch:
            yield batch


def stored(index: Index, doc_ids: Sequence[str]) -> Iterator[Document]:
    """Yield these documents of an index by id, read a few at a time."""
    sql = f"SELECT {', '.join(COLUMNS)} FROM documents WHERE doc_id IN ({{}}) ORDER BY doc_id"
    ids = sorted(doc_ids)
    for start in range(0, len(ids), BATCH):
        yield from map(of_row, index.rows_in(sql, ids[start : start + BATCH]))


def of_row(row: Sequence[Any]) -> Document:
    """Return a document of the columns in which an index keeps it."""
    doc_id, title, text, url, licence, kind, fields, aliases, names, source = row
    lists = json.loads(fields), tuple(json.loads(aliases)), json.loads(names)
    return Document(doc_id, title, text, url, licence, kind, *lists, source)


def _row(document: Document) -> tuple[str, str, str, str]:
    content = json.dumps(document.content(), ensure_ascii=False)
    return document.doc_id, document.digest(), document.source, content


def _document(doc_id: str, source: str, content: str) -> Document:
    parts = json.loads(content)
    return Document(doc_id, **{**parts, "aliases": tuple(parts["aliases"])}, source=source)
