"""Add documents to an index: they become its next generation in one transaction.

Documents are compared by content, and are read a few at a time. New texts are embedded, and their vectors stored by
content at once; only then everything is written together. The graph is built from all documents
again, so that it never depends on the order in which they came. Chroma follows.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from workbench.knowledge import vocabulary
from workbench.knowledge.adding import spool
from workbench.knowledge.graph import graph as communities
from workbench.knowledge.indexes import keywords, stores, vectors
from workbench.knowledge.indexes.index import Index, fingerprint
from workbench.knowledge.knowledge_base import open_model
from workbench.knowledge.names import entities, phrases, schema, surfaces
from workbench.knowledge.reading import corpus
from workbench.knowledge.reading.corpus import Document, Problem, Reading
from workbench.knowledge.reading.files import EMPTY, Note
from workbench.knowledge.vocabulary import Vocabulary
from workbench.models import rerank
from workbench.models.embeddings import TextModel, word_vectors
from workbench.plans import canonical_json
from workbench.settings import Settings


def insert(
    connection: sqlite3.Connection,
    document: Document,
    texts: Sequence[str],
    model: str,
    vocabulary: Vocabulary,
) -> None:
    """Store a document whose passages are these texts."""
    content = document.content()
    row = (
        document.doc_id,
        document.digest(),
        *(content[name] for name in ("title", "text", "url", "licence", "type")),
        *(canonical_json(content[name]) for name in ("fields", "aliases", "names")),
        document.source,
        entities.read_year(document.fields),
    )
    connection.execute(f"INSERT INTO documents VALUES ({', '.join('?' * len(row))})", row)
    schema.insert(connection, document.doc_id, document.fields)
    has_title = document.title != corpus.made_title(document.text)
    titles = [document.title] * has_title
    title = keywords.stored(" | ".join([*titles, *document.aliases]))
    # each name separately: terms never run over the border between two names
    names = " ".join(
        map(
            keywords.stored, entities.names_in_fields(document.fields, document.names, vocabulary)
        )
    )
    title_keys = {key for name in [*titles, *document.aliases] for key in surfaces.writings(name)}
    for position, text in enumerate(texts):
        key = vectors.vector_key(model, vectors.titled(document.title, document.aliases, text))
        passage = (
            f"{document.doc_id}#{position}",
            document.doc_id,
            position,
            text,
            vectors.vector_key("", text),
            key,
        )
        number = (
            connection.execute(
                "INSERT INTO passages VALUES (NULL, ?, ?, ?, ?, ?, ?)", passage
            ).lastrowid
            or 0
        )
        keywords.insert(connection, number, title, names, text)
        phrases.insert(connection, number, title_keys, text)


def delete(connection: sqlite3.Connection, doc_id: str) -> None:
    """Delete a document; its vectors and names are stored by content, and go with the last text that has them."""
    numbers = "SELECT number FROM passages WHERE doc_id = ?"
    connection.execute(f"DELETE FROM terms WHERE rowid IN ({numbers})", (doc_id,))
    connection.execute(f"DELETE FROM phrases WHERE number IN ({numbers})", (doc_id,))
    for table in ("passages", "documents", "facts"):
        connection.execute(f"DELETE FROM {table} WHERE doc_id = ?", (doc_id,))


Progress = Callable[[str, int, int], None]
"""``progress(stage, done, total)``; stages: read, vectors, words, write, graph, chroma.

``total`` is 0 while it is not known. An exception in it ends the ``add``: the base stays unchanged, and what was
computed is there for the next one.
"""


_VERSION = 19
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
    """One ``add``, while the base is held for writing."""

    def __init__(
        self,
        index: Index,
        folder: Path,
        name: str,
        settings: Settings,
        progress: Progress,
        *,
        replace: bool = False,
    ):
        self._index = index
        self._folder = folder
        self._settings = settings
        self._progress = progress
        self._report = AddReport(name)
        self._model: TextModel = open_model(index, name, settings)
        self._dimensions = set[int]()
        self._vocabulary = vocabulary.stored(folder)
        self._spool = spool.Spool(index, replace)

    @property
    def _recipe(self) -> str:
        recipe = {
            "version": _VERSION,
            "chunk_characters": self._settings.chunk_characters,
            "vocabulary": asdict(self._vocabulary),
        }
        return canonical_json(recipe)

    @property
    def places(self) -> spool.Places:
        """Return where each id was read first, on disk."""
        return self._spool.places

    def run(
        self, documents: Iterable[Document], reading: Reading, paths: Sequence[Path]
    ) -> AddReport:
        """Add these documents, which were read from these paths."""
        # of pages that SQLite caches: names come in no order, and each goes to a page of its own
        cache_mb = 128
        self._index.write_much(cache_mb)
        count = 0
        for count in self._spool.take(documents):
            self._progress("read", count, 0)
        self._progress("read", count, count)
        changes = self._spool.compare(self._lost(reading, paths))
        new_recipe = self._index.meta("recipe", self._recipe) != self._recipe
        if new_recipe:
            self._spool.everything()
        if new_recipe or changes or not self._index.generation:
            self._write()
        self._follow()
        new, changed, deleted = (changes.get(kind, 0) for kind in ("new", "changed", "gone"))
        report = self._report
        report.problems = [*reading.problems, *report.problems]
        report.added, report.changed, report.deleted, report.unchanged = (
            new,
            changed,
            deleted,
            count - new - changed,
        )
        return report

    def _lost(self, reading: Reading, paths: Sequence[Path]) -> list[str]:
        """Return the sources that lost documents: files read to their end, or gone from a folder that was given.

        A file with a line that cannot be read deletes nothing: the line may be the document.
        """
        unread = (
            p
            for p in reading.problems
            if not isinstance(p["reason"], Note) and p["reason"] != EMPTY
        )
        broken = {Path(os.path.realpath(p["file"])).as_posix() for p in unread}
        read = set(reading.sources) - broken
        folders = tuple(f"{path.resolve().as_posix()}/" for path in paths if path.is_dir())
        sources = (
            row[0] for row in self._index.rows("SELECT DISTINCT source FROM documents ORDER BY 1")
        )
        return [
            s
            for s in sources
            if s in read or (folders and s.startswith(folders) and not Path(s).exists())
        ]

    def _write(self) -> None:
        total = sum(map(len, self._spool.ids("new", "changed", "again")))
        done = 0
        for batch in self._spool.documents():
            self._compute(batch, done, total)
            done += len(batch)
        with self._index.transaction() as connection:
            for ids in self._spool.ids("gone", "changed", "again"):
                for doc_id in ids:
                    delete(connection, doc_id)
            done = 0
            for batch in self._spool.documents():
                self._progress("write", done, total)
                for document in batch:
                    insert(
                        connection,
                        document,
                        self._cut(document),
                        self._model.name,
                        self._vocabulary,
                    )
                done += len(batch)
            self._progress("write", total, total)
            self._write_graph(connection)
            self._clean(connection)
            self._index.set_meta("embedding_model", self._model.name)
            self._index.set_meta("recipe", self._recipe)
            self._index.set_meta("generation", str(self._index.generation + 1))
            self._index.set_meta(
                "fingerprint", f"{self._index.generation} {fingerprint(self._index)}"
            )

    def _write_graph(self, connection: sqlite3.Connection) -> None:
        """Build the graph from all documents, which are read a few at a time."""
        for table in _GRAPH:
            connection.execute(f"DELETE FROM {table}")
        (documents,) = connection.execute("SELECT count(*) FROM documents").fetchone()
        done = 0

        def read() -> Iterator[entities.Source]:
            nonlocal done
            sql = f"SELECT doc_id FROM documents WHERE doc_id > ? ORDER BY doc_id LIMIT {spool.BATCH}"
            last = ""
            while ids := [row[0] for row in self._index.rows(sql, (last,))]:
                # How many times the graph reads every document.
                self._progress("graph", done, 4 * documents)
                yield from self._sources(ids)
                done += len(ids)
                last = ids[-1]

        builder = entities.GraphBuilder(connection, self._vocabulary)
        builder.build(read)
        relations = connection.execute("SELECT source, type, target FROM relations")
        groups = communities.communities(
            builder.entities, relations, builder.categories, builder.leads
        )
        communities.keep(connection, groups)
        self._progress("graph", done, done)

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
            self._ensure_words(texts, progress("words"))

    def _cut(self, document: Document) -> list[str]:
        return corpus.chunks(document.text, self._settings.chunk_characters, document.title)

    def _ensure_words(self, texts: Sequence[str], on_done: Callable[[int, int], None]) -> None:
        """Store the vector of every word that a reranker will need."""
        words_at_once = 512
        words = sorted({word for text in texts for word in rerank.words(text)})
        stored = {
            row[0]
            for row in self._index.rows_in("SELECT word FROM words WHERE word IN ({})", words)
        }
        missing = [word for word in words if word not in stored]
        for start in range(0, len(missing), words_at_once):
            batch = missing[start : start + words_at_once]
            rows = word_vectors(self._model, batch)
            self._index.keep(
                "words", ((word, row.tobytes()) for word, row in zip(batch, rows, strict=True))
            )
            on_done(start + len(batch), len(missing))

    def _sources(self, doc_ids: Sequence[str]) -> Iterator[entities.Source]:
        """Yield these documents with the names in their passages."""
        passages: dict[str, list[entities.NamedPassage]] = {}
        rows = self._index.rows_in(
            "SELECT doc_id, position, chunk_id, text FROM passages WHERE doc_id IN ({})", doc_ids
        )
        for doc_id, _, chunk_id, text in sorted(rows):
            passages.setdefault(doc_id, []).append((chunk_id, text, phrases.names_in(text)))
        for d in spool.stored(self._index, doc_ids):
            own = passages.get(d.doc_id, [])
            yield entities.Source(d.doc_id, d.title, d.type, d.fields, d.aliases, d.names, own)

    def _clean(self, connection: Any) -> None:
        """Delete what was computed for texts that are gone."""
        connection.execute("DELETE FROM vectors WHERE key NOT IN (SELECT vector FROM passages)")

    def _follow(self) -> None:
        """Update the store of vectors."""
        place = stores.vector_place(self._folder, self._settings)
        if not stores.is_up_to(place, self._index):
            self._progress("chroma", 0, 1)
            if stores.follow(
                place, self._index, lambda done, total: self._progress("chroma", done, total)
            ):
                reason = "was damaged, and has been rebuilt from the index"
                self._report.problems.append(
                    {"file": str(place.folder), "line": 0, "reason": reason}
                )
            self._progress("chroma", 1, 1)
