"""The SQLite file of one knowledge base: its schema, one connection a thread, and its generation.

It is the truth about the base: everything else (the matrix in memory, Chroma, the graph in memory) is made from it. One
``add`` is one transaction, and the transaction raises the generation, by which an open reader sees that it has to look
again. Vectors and word vectors are kept by content, outside that transaction: what an interrupted ``add``
computed is there for the next one, and cannot be wrong.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from workbench.errors import KnowledgeError
from workbench.ports import Entity, Relation
from workbench.records.sqlite import PATIENCE_S, begin_with_log, create_tables, translate_errors

VERSION = 13
"""Of the tables: a file of another version is built again."""
TABLES = """
    CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
    INSERT OR IGNORE INTO meta VALUES ('generation', '0');
    CREATE TABLE IF NOT EXISTS documents (
        doc_id TEXT PRIMARY KEY, digest TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL, url TEXT NOT NULL,
        licence TEXT NOT NULL, type TEXT NOT NULL, fields TEXT NOT NULL, aliases TEXT NOT NULL, names TEXT NOT NULL,
        source TEXT NOT NULL, year INTEGER
    );
    CREATE INDEX IF NOT EXISTS documents_by_source ON documents (source);
    CREATE TABLE IF NOT EXISTS passages (
        number INTEGER PRIMARY KEY, chunk_id TEXT NOT NULL UNIQUE, doc_id TEXT NOT NULL, position INTEGER NOT NULL,
        text TEXT NOT NULL, digest TEXT NOT NULL, vector TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS passages_by_document ON passages (doc_id, position);
    CREATE INDEX IF NOT EXISTS passages_by_text ON passages (digest);
    CREATE VIRTUAL TABLE IF NOT EXISTS terms USING fts5 (
        title, names, body, tokenize = 'unicode61 remove_diacritics 0'
    );
    CREATE VIRTUAL TABLE IF NOT EXISTS term_counts USING fts5vocab (terms, row);
    CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS words (word TEXT PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
    -- what typed fields hold, whatever they are called
    CREATE TABLE IF NOT EXISTS facts (
        field TEXT NOT NULL, key TEXT NOT NULL, doc_id TEXT NOT NULL, value TEXT NOT NULL, number REAL, day TEXT,
        PRIMARY KEY (field, key, doc_id)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS facts_by_document ON facts (doc_id, field);
    CREATE TABLE IF NOT EXISTS entities (
        entity_id TEXT PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, aliases TEXT NOT NULL, doc_id TEXT
    ) WITHOUT ROWID;
    -- who has which name, however it is written
    CREATE TABLE IF NOT EXISTS names (
        key TEXT NOT NULL, place INTEGER NOT NULL, rank INTEGER NOT NULL, lead INTEGER NOT NULL,
        entity_id TEXT NOT NULL, year INTEGER, category INTEGER NOT NULL, PRIMARY KEY (key, place)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS names_by_entity ON names (entity_id);
    CREATE TABLE IF NOT EXISTS phrases (
        key TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS phrases_by_passage ON phrases (number);
    CREATE TABLE IF NOT EXISTS relations (
        relation_id TEXT PRIMARY KEY, source TEXT NOT NULL, type TEXT NOT NULL, target TEXT NOT NULL,
        sentence TEXT NOT NULL, chunk_id TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS relations_by_source ON relations (source);
    CREATE INDEX IF NOT EXISTS relations_by_target ON relations (target);
    CREATE TABLE IF NOT EXISTS mentions (
        entity_id TEXT NOT NULL, chunk_id TEXT NOT NULL, PRIMARY KEY (entity_id, chunk_id)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS mentions_by_passage ON mentions (chunk_id);
    CREATE TABLE IF NOT EXISTS communities (community_id TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS homes (entity_id TEXT PRIMARY KEY, community_id TEXT NOT NULL) WITHOUT ROWID;
"""


class Index:
    """An open index file. Reading is for any thread; writing is for who holds the base's lock."""

    def __init__(self, path: Path, *, create: bool = False):
        if not create and not path.exists():
            raise KnowledgeError(
                f"There is no index at {path}. Add documents with `workbench kb add`."
            )
        self.path = path
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: dict[threading.Thread, sqlite3.Connection] = {}
        self._closed = False
        try:
            with self.translated_errors():
                self._begin(create)
        except BaseException:
            self.close()
            raise

    def translated_errors(self) -> AbstractContextManager[None]:
        """Around SQL on a connection of the user: what SQLite refuses is an error of ours."""
        return translate_errors(
            self.path, KnowledgeError, f"Run `workbench kb rebuild {self.path.parent.name}`."
        )

    def connection(self) -> sqlite3.Connection:
        """Return this thread's connection."""
        if self._closed:
            raise KnowledgeError(f"The index {self.path} is closed. Open the workspace again.")
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = sqlite3.connect(
                self.path, timeout=PATIENCE_S, check_same_thread=False, isolation_level=None
            )
            connection.execute("PRAGMA synchronous = NORMAL")
            self._local.connection = connection
            with self._lock:
                for thread in [t for t in self._open if not t.is_alive()]:
                    self._open.pop(thread).close()
                self._open[threading.current_thread()] = connection
        return connection

    def write_much(self, memory_mb: float) -> None:
        """Make this thread's connection one for long writing.

        Keys are hashes and names, which come in no order: pages that stay in memory, and a log that is long before it
        goes into the file, let a page be written once for many rows.
        """
        # Of the log of who writes much: 64 MB.
        log_pages = 16_384
        for pragma in (
            f"cache_size = -{int(memory_mb * 1024)}",
            f"wal_autocheckpoint = {log_pages}",
        ):
            self.rows(f"PRAGMA {pragma}")

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return every row of a query."""
        with self.translated_errors():
            return self.connection().execute(sql, parameters).fetchall()

    def rows_in(self, sql: str, values: Sequence[Any], *more: Any) -> Iterator[tuple[Any, ...]]:
        """Yield rows of ``... IN ({})`` for any number of values, in no order; ``more`` is what stands behind them."""
        for start in range(0, len(values), 500):
            part = values[start : start + 500]
            yield from self.rows(sql.format(", ".join("?" * len(part))), [*part, *more])

    def meta(self, key: str, default: str = "") -> str:
        """Return one remembered value."""
        rows = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return rows[0][0] if rows else default

    def set_meta(self, key: str, value: str) -> None:
        """Remember a value."""
        with self.translated_errors():
            self.connection().execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @property
    def generation(self) -> int:
        """Return how many times the content has changed."""
        return int(self.meta("generation", "0"))

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield all of the block or nothing of it."""
        connection = self.connection()
        with self.translated_errors():
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()  # where a full disk has not undone it already
                raise

    def keep(self, table: str, rows: Iterable[tuple[str, Any]]) -> None:
        """Keep computed values by content in ``vectors`` or ``words``, at once."""
        with self.transaction() as connection:
            connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?, ?)", rows)

    def close(self) -> None:
        """Close, for every thread; a thread in the middle of a query keeps its connection until the query ends.

        Closing it under its feet would crash the process: a tool that is late may still read when a workspace closes.
        """
        with self._lock:
            self._closed = True
            for thread, connection in self._open.items():
                if thread is threading.current_thread() or not thread.is_alive():
                    connection.close()
            self._open.clear()
        self._local = threading.local()

    def _begin(self, create: bool) -> None:
        connection = self.connection()
        rebuild = f"`workbench kb rebuild {self.path.parent.name}`"
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0 and not create:
            raise KnowledgeError(
                f"{self.path} is no finished index. Run the `workbench kb add` again, or {rebuild}."
            )
        if version not in (0, VERSION):
            raise KnowledgeError(
                f"{self.path} was written by another version of workbench (tables {version}, here {VERSION}). "
                f"Run {rebuild}."
            )
        if version == 0:
            begin_with_log(connection)
            create_tables(connection, TABLES, VERSION)


def fingerprint(index: Index) -> str:
    """Return hex digest of the documents' digests, in an order of their own."""
    digest_of_all = hashlib.sha256()
    rows = index.connection().execute("SELECT digest FROM documents ORDER BY digest")
    for place, (digest,) in enumerate(rows):
        digest_of_all.update(f"\n{digest}".encode() if place else digest.encode())
    return digest_of_all.hexdigest()


def entities(index: Index, column: str = "", values: Sequence[str] = ()) -> list[Entity]:
    """Return the entities that have one of these values in a column, or all, by id."""
    return [
        {
            "entity_id": i,
            "name": name,
            "type": kind,
            "aliases": json.loads(aliases),
            "doc_id": doc_id,
        }
        for i, name, kind, aliases, doc_id in _rows(
            index, "SELECT entity_id, name, type, aliases, doc_id FROM entities", column, values
        )
    ]


def relations(index: Index, column: str = "", values: Sequence[str] = ()) -> list[Relation]:
    """Return the relations that have one of these values in a column, or all, by id."""
    return [
        {
            "relation_id": i,
            "source": source,
            "type": kind,
            "target": target,
            "sentence": sentence,
            "chunk_id": chunk_id,
        }
        for i, source, kind, target, sentence, chunk_id in _rows(
            index,
            "SELECT relation_id, source, type, target, sentence, chunk_id FROM relations",
            column,
            values,
        )
    ]


def _rows(index: Index, sql: str, column: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
    if not column:
        return index.rows(f"{sql} ORDER BY 1")
    return sorted(
        index.rows_in(f"{sql} WHERE {column} IN ({{}})", values), key=lambda row: row[0]
    )
