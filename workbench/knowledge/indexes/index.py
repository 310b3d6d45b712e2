"""The SQLite file of one knowledge base: its schema, one connection a thread, its generation, and its keywords.

It is the truth about the base: everything else (the matrix in memory, Chroma, the graph in memory) is made from it. One
``add`` is one transaction, and the transaction raises the generation, by which an open reader sees that it has to look
again. Vectors and word vectors are kept by content, outside that transaction: what an interrupted ``add``
computed is there for the next one, and cannot be wrong.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from workbench.errors import KnowledgeError
from workbench.ports import Entity, Relation
from workbench.records.sqlite import PATIENCE_S, begin_with_log, create_tables, translate_errors
from workbench.state import Hits, unique
from workbench.text import is_stop_word, stem, terms

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
        connection = self._open.get(threading.current_thread())
        if connection is None:
            connection = sqlite3.connect(
                self.path, timeout=PATIENCE_S, check_same_thread=False, isolation_level=None
            )
            connection.execute("PRAGMA synchronous = NORMAL")
            with self._lock:
                for thread in [t for t in self._open if not t.is_alive()]:
                    self._open.pop(thread).close()
                self._open[threading.current_thread()] = connection
        return connection

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return every row of a query."""
        with self.translated_errors():
            return self.connection().execute(sql, parameters).fetchall()

    def rows_in(self, sql: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield rows of ``... IN ({})`` for any number of values, in no order."""
        for start in range(0, len(values), 500):
            part = values[start : start + 500]
            yield from self.rows(sql.format(", ".join("?" * len(part))), part)

    def meta(self, key: str) -> str:
        """Return one remembered value; "" where there is none."""
        rows = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return rows[0][0] if rows else ""

    def set_meta(self, key: str, value: str) -> None:
        """Remember a value."""
        with self.translated_errors():
            self.connection().execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @property
    def generation(self) -> int:
        """Return how many times the content has changed."""
        return int(self.meta("generation"))

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
    rows = _rows(index, "entities", Entity, column, values)
    for row in rows:
        row["aliases"] = json.loads(str(row["aliases"]))
    return rows


def relations(index: Index, column: str = "", values: Sequence[str] = ()) -> list[Relation]:
    """Return the relations that have one of these values in a column, or all, by id."""
    rows = _rows(index, "relations", Relation, column, values)
    return rows


def _rows(index: Index, table: str, kind: type, column: str, values: Sequence[str]) -> Any:
    """Return the rows of a table whose columns are the fields of this kind."""
    names = list(kind.__annotations__)
    sql = f"SELECT {', '.join(names)} FROM {table}"
    if column:
        rows = sorted(index.rows_in(f"{sql} WHERE {column} IN ({{}})", values))
    else:
        rows = index.rows(f"{sql} ORDER BY 1")
    return [dict(zip(names, row, strict=True)) for row in rows]


# --- Keywords: BM25 of SQLite's FTS5 over stemmed words and Chinese bigrams. The score is Okapi BM25 with k1 1.2 and b
# 0.75 (fixed in FTS5), summed over three columns: the titles of the document, the names and values of its fields in
# both languages, and the passage itself. ---


def join_terms(text: str) -> str:
    """Return the terms of a text as the index keeps them, with spaces between."""
    return " ".join(stem(term) for term in terms(text))


def index_terms(
    connection: sqlite3.Connection, number: int, title: str, names: str, body: str
) -> None:
    """Index passage ``number`` by the joined title and names of its document."""
    row = (number, title, names, join_terms(body))
    connection.execute("INSERT INTO terms (rowid, title, names, body) VALUES (?, ?, ?, ?)", row)


def search_words(index: Index, query: str, top_k: int) -> Hits:
    """Return ``(chunk_id, score > 0)``, best first, ties by id. Function words count only without any other."""
    weights = (3.0, 1.0, 1.0)
    every = unique(terms(query))
    stems = dict.fromkeys(
        stem(term) for term in [t for t in every if not is_stop_word(t)] or every
    )
    if not stems or top_k < 1:
        return []
    sql = (
        "SELECT chunk_id, round(-bm25(terms, ?, ?, ?), 6) AS score FROM terms JOIN passages ON number = terms.rowid "
        "WHERE terms MATCH ? ORDER BY score DESC, chunk_id LIMIT ?"
    )
    match = " OR ".join(f'"{stem}"' for stem in stems)
    return [
        (chunk_id, score)
        for chunk_id, score in index.rows(sql, (*weights, match, top_k))
        if score > 0
    ]


def term_weight(frequency: int, passages: int) -> float:
    """ln((passages + 1) / (passages with the term + 1)): 0 for what is everywhere, most for what is nowhere.

    >>> term_weight(9, 9), term_weight(0, 9)
    (0.0, 2.302585)
    """
    return round(math.log((passages + 1) / (min(frequency, passages) + 1)), 6)


def term_frequency(index: Index, stemmed: str) -> int:
    """In how many passages a stem stands."""
    row = index.rows("SELECT doc FROM term_counts WHERE term = ?", (stemmed,))
    return int(row[0][0]) if row else 0
