"""One ``add``: what the files gave becomes the next generation of an index, in one transaction.

Documents are compared by content, and are available a few at a time. What is new is embedded and looked through for
names, which is kept by content at once; only then everything is written together. The graph is made of all documents
again, so that it never depends on the order in which they came. Chroma follows.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.knowledge import vocabulary
from workbench.knowledge.adding import spool
from workbench.knowledge.adding.extraction import Extractor, Modelled, Titled
from workbench.knowledge.graph import graph as communities
from workbench.knowledge.indexes import keywords, stores, vectors
from workbench.knowledge.indexes.index import Index, fingerprint
from workbench.knowledge.knowledge_base import open_model
from workbench.knowledge.names import entities, names, schema, title_links
from workbench.knowledge.reading import corpus, triples
from workbench.knowledge.reading.corpus import Document, Problem, Reading
from workbench.knowledge.reading.files import EMPTY, Note
from workbench.knowledge.vocabulary import Vocabulary
from workbench.models import rerank
from workbench.models.embeddings import TextModel, word_vectors
from workbench.plans import canonical_json
from workbench.settings import RULES, Settings
from workbench.state import Json


def insert(
    connection: sqlite3.Connection,
    document: Document,
    texts: Sequence[str],
    model: str,
    vocabulary: Vocabulary,
) -> None:
    """Keep a document that is cut into these texts."""
    content = document.content()
    connection.execute(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            document.doc_id,
            document.digest(),
            document.title,
            document.text,
            document.url,
            document.licence,
            document.type,
            *(canonical_json(content[name]) for name in ("fields", "aliases", "names")),
            document.source,
            entities.year_of(document.fields),
        ),
    )
    schema.insert(connection, document.doc_id, document.fields)
    given = [] if document.title == corpus.made_title(document.text) else [document.title]
    title = keywords.stored(" | ".join([*given, *document.aliases]))
    # each by itself: terms never run over the border between two names
    names = " ".join(map(keywords.stored, entities.names_in_fields(document.fields, document.names, vocabulary)))
    keys = title_links.title_keys(document.title, document.aliases, document.text) if given else {}
    title_links.insert(connection, document.doc_id, keys)
    for position, text in enumerate(texts):
        key = vectors.key_of(model, vectors.titled(document.title, document.aliases, text))
        chunk_id = f"{document.doc_id}#{position}"
        row = (chunk_id, document.doc_id, position, text, vectors.key_of("", text), key)
        number = (
            connection.execute(
                "INSERT INTO passages (chunk_id, doc_id, position, text, digest, vector) VALUES (?, ?, ?, ?, ?, ?)", row
            ).lastrowid
            or 0
        )
        keywords.insert(connection, number, title, names, text)
        title_links.insert_phrases(connection, number, keys, text)


def delete(connection: sqlite3.Connection, doc_id: str) -> None:
    """Forget a document; its vectors and names are kept by content, and go with the last text that has them."""
    title_links.delete(connection, doc_id)
    mine = "SELECT number FROM passages WHERE doc_id = ?"
    connection.execute(f"DELETE FROM terms WHERE rowid IN ({mine})", (doc_id,))
    connection.execute("DELETE FROM passages WHERE doc_id = ?", (doc_id,))
    connection.execute("DELETE FROM documents WHERE doc_id = ?", (doc_id,))
    connection.execute("DELETE FROM facts WHERE doc_id = ?", (doc_id,))


# --- One ``add``: what the files gave becomes the next generation of an index, in one transaction ---

Progress = Callable[[str, int, int], None]
"""``progress(stage, done, total)``; stages: read, vectors, words, names, model, write, graph, chroma.

``total`` is 0 while nobody knows. What it raises ends the ``add``: the base stays as it was, and what was computed is
there for the next one.
"""


_VERSION = 13
"""Of what is made of a document; raised when that changes, so that the next ``add`` makes all anew."""
_CACHE_MB = 128
"""Pages that SQLite keeps in memory: names come in no order, and each goes to a page of its own."""
_GRAPH = ("entities", "relations", "mentions", "surfaces", "communities", "homes")
_READINGS = 5
"""How often the graph reads every document."""


@dataclass
class AddReport:
    """What one ``add`` did. Counts are documents; ``problems`` are lines and files that were left out.

    ``model`` says what a model was asked: passages ``read`` and those left to rules (``by_rules``), ``summaries`` of
    communities, ``tokens``, ``money``, and a ``note`` of why no more was; it is empty where none was to be asked.
    """

    name: str
    added: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    problems: list[Problem] = field(default_factory=list)
    seconds: float = 0.0
    model: Json = field(default_factory=dict)


class Addition:
    """One ``add``, while the base is held for writing."""

    def __init__(
        self,
        index: Index,
        folder: Path,
        name: str,
        settings: Settings,
        tell: Progress,
        extractor: Extractor | None = None,
        *,
        replace: bool = False,
    ):
        self._index, self._folder, self._settings, self._tell = index, folder, settings, tell
        self._report = AddReport(name)
        self._model: TextModel = open_model(index, name, settings)
        self._lengths = set[int]()
        self._finder = names.finder_name(settings)
        self._vocabulary = vocabulary.kept(folder)
        self._spool = spool.Spool(index, replace)
        self._modelled = Modelled(index, extractor, forget=settings.extractor_model == RULES)

    @property
    def _recipe(self) -> str:
        told = {
            "version": _VERSION,
            "chunk_characters": self._settings.chunk_characters,
            "names": self._finder,
            "vocabulary": asdict(self._vocabulary),
        }
        return canonical_json(told | ({"model": self._modelled.recipe} if self._modelled.recipe else {}))

    @property
    def places(self) -> spool.Places:
        """Where each id was read first, on disk."""
        return self._spool.places

    def joined(self, document: Document) -> Document:
        """Return a document whose fields go by the names that the vocabulary knows."""
        fields = self._vocabulary.joined(document.fields)
        return document if fields == document.fields else replace(document, fields=fields)

    def run(self, documents: Iterable[Document], reading: Reading, paths: Sequence[Path]) -> AddReport:
        """Bring in these documents, which were read from these paths."""
        self._index.write_much(_CACHE_MB)
        count = 0
        for count in self._spool.take(documents):
            self._tell("read", count, 0)
        self._tell("read", count, count)
        self._report.problems = reading.problems
        did = self._spool.compare(self._lost(reading, paths))
        unread = self._allow()
        self._report.added, self._report.changed = did.get("new", 0), did.get("changed", 0)
        self._report.deleted = did.get("gone", 0)
        self._report.unchanged = count - self._report.added - self._report.changed
        if other := self._index.meta("recipe", self._recipe) != self._recipe or unread:
            self._spool.everything()
        if other or did or not self._index.generation:
            self._write()
        self._describe()
        self._follow()
        self._report.model = self._modelled.report()
        return self._report

    def _allow(self) -> bool:
        """Check whether a model may read, and has something left to read of documents that stay as they are."""
        forecast = self._modelled.forecast(self._unread())
        if forecast and forecast.tokens > forecast.budget:
            self._modelled.withdraw(f"{forecast}. WORKBENCH_INDEX_TOKEN_BUDGET is {forecast.budget:,}: raise it to ask")
        asking = None if self._modelled.whole else self._modelled.forecast(self._staying())
        return bool(asking and asking.passages)

    def _unread(self) -> Iterator[Titled]:
        """Yield every passage that the base will have, and that a model may not have read yet."""
        for batch in self._spool.documents():
            yield from (passage for document in batch for passage in self._titled(document))
        yield from () if self._modelled.whole else self._staying()

    def _staying(self) -> Iterator[Titled]:
        sql = (
            "SELECT title, passages.text, passages.digest FROM passages JOIN documents USING (doc_id) "
            "WHERE type != ? AND doc_id NOT IN (SELECT doc_id FROM work) ORDER BY number"
        )
        yield from (Titled(*row) for row in self._index.rows(sql, (triples.NODE,)))

    def _titled(self, document: Document) -> list[Titled]:
        if document.type == triples.NODE:  # triples say what they name
            return []
        return [Titled(document.title, text, vectors.key_of("", text)) for text in self._cut(document)]

    def _describe(self) -> None:
        """Let a model say what communities are about; a reader sees it with the next generation."""
        if self._modelled.describe(lambda done, total: self._tell("model", done, total)):
            self._index.set_meta("generation", str(self._index.generation + 1))
            self._index.set_meta("fingerprint", f"{self._index.generation} {fingerprint(self._index)}")

    def _lost(self, reading: Reading, paths: Sequence[Path]) -> list[str]:
        """Files that were read to their end, or are no longer in a folder that was given: what they lack is gone.

        A file with a line that cannot be read deletes nothing: the line may be the document.
        """
        unread = (p for p in reading.problems if not isinstance(p["reason"], Note) and p["reason"] != EMPTY)
        broken = {Path(os.path.realpath(p["file"])).as_posix() for p in unread}
        read = set(reading.sources) - broken
        folders = tuple(f"{path.resolve().as_posix()}/" for path in paths if path.is_dir())
        known = (row[0] for row in self._index.rows("SELECT DISTINCT source FROM documents ORDER BY 1"))
        return [s for s in known if s in read or (folders and s.startswith(folders) and not Path(s).exists())]

    def _write(self) -> None:
        total, done = sum(map(len, self._spool.ids("new", "changed", "again"))), 0
        for batch in self._spool.documents():
            self._compute(batch, done, total)
            done += len(batch)
        with self._index.transaction() as connection:
            for ids in self._spool.ids("gone", "changed", "again"):
                for doc_id in ids:
                    delete(connection, doc_id)
            self._insert(connection, total)
            self._write_graph(connection)
            self._clean(connection)
            for key, value in {
                "embedding_model": self._model.name,
                "recipe": self._recipe,
                "generation": str(self._index.generation + 1),
            }.items():
                self._index.set_meta(key, value)
            self._modelled.remember()
            self._index.set_meta("fingerprint", f"{self._index.generation} {fingerprint(self._index)}")

    def _write_graph(self, connection: sqlite3.Connection) -> None:
        """Make the graph of all documents, which are read a few at a time."""
        for table in _GRAPH:
            connection.execute(f"DELETE FROM {table}")
        (documents,) = connection.execute("SELECT count(*) FROM documents").fetchone()
        done = 0

        def read() -> Iterator[entities.Source]:
            nonlocal done
            for ids in self._all_ids():
                self._tell("graph", done, _READINGS * documents)
                yield from self._sources(ids)
                done += len(ids)

        builder = entities.GraphBuilder(connection, self._vocabulary)
        builder.build(read)
        relations = connection.execute("SELECT source, type, target FROM relations")
        found = communities.communities(builder.entities, relations, builder.categories, builder.leads)
        communities.keep(connection, found)
        self._tell("graph", done, done)

    def _compute(self, documents: Sequence[Document], done: int, total: int) -> None:
        """Keep vectors, words and names of some documents by content at once."""

        def tell(stage: str) -> Callable[[int, int], None]:
            return lambda had, of: self._tell(stage, done + len(documents) * had // of, total)

        cut = [(d, self._cut(d)) for d in documents]
        titled = [vectors.titled(d.title, d.aliases, text) for d, texts in cut for text in texts]
        tell("vectors")(0, 1)
        vectors.ensure(self._index, self._model, titled, self._lengths, tell("vectors"))
        self._ensure_words(titled, tell("words"))
        read = [passage for document in documents for passage in self._titled(document)]
        names.ensure(self._index, self._finder, [(passage.digest, passage.text) for passage in read], tell("names"))
        self._modelled.ensure(read, tell("model"))

    def _cut(self, document: Document) -> list[str]:
        return corpus.chunks(document.text, self._settings.chunk_characters, document.title)

    def _ensure_words(self, texts: Sequence[str], on_done: Callable[[int, int], None]) -> None:
        """Keep the vector of every word that a reranker will ask for."""
        if not rerank.available(self._settings, self._model.name):
            return
        wanted = sorted({word for text in texts for word in rerank.words(text)})
        known = {row[0] for row in self._index.rows_in("SELECT word FROM words WHERE word IN ({})", wanted)}
        asked = [word for word in wanted if word not in known]
        for start in range(0, len(asked), 512):
            part = asked[start : start + 512]
            rows = word_vectors(self._model, part)
            self._index.keep("words", ((word, row.tobytes()) for word, row in zip(part, rows, strict=True)))
            on_done(min(start + 512, len(asked)), len(asked))

    def _insert(self, connection: Any, total: int) -> None:
        done = 0
        for batch in self._spool.documents():
            self._tell("write", done, total)
            for document in batch:
                insert(connection, document, self._cut(document), self._model.name, self._vocabulary)
            done += len(batch)
        self._tell("write", total, total)

    def _all_ids(self) -> Iterator[list[str]]:
        """Yield ids of all documents in their order, in handfuls."""
        sql, last = f"SELECT doc_id FROM documents WHERE doc_id > ? ORDER BY doc_id LIMIT {spool.BATCH}", ""
        while found := [row[0] for row in self._index.rows(sql, (last,))]:
            yield found
            last = found[-1]

    def _sources(self, doc_ids: Sequence[str]) -> list[entities.Source]:
        """What the graph is made of: these documents as they are stored, and the names that were found in them."""
        passages: dict[str, list[tuple[str, str, str]]] = {}
        columns = "doc_id, position, chunk_id, text, digest"
        rows = self._index.rows_in(f"SELECT {columns} FROM passages WHERE doc_id IN ({{}})", doc_ids)
        for doc_id, _, *passage in sorted(rows):
            passages.setdefault(doc_id, []).append(tuple(passage))
        found = names.kept(self._index, self._finder, [p[2] for held in passages.values() for p in held])
        sources = []
        for d in spool.stored(self._index, doc_ids):
            mine = {chunk_id: Titled(d.title, text, digest) for chunk_id, text, digest in passages.get(d.doc_id, [])}
            read = self._modelled.kept(list(mine.values()))
            told = [(i, p.text, read[p].names if p in read else found.get(p.digest, [])) for i, p in mine.items()]
            stated = {i: read[p].relations for i, p in mine.items() if p in read}
            sources.append(entities.Source(d.doc_id, d.title, d.type, d.fields, d.aliases, d.names, told, stated))
        return sources

    def _clean(self, connection: Any) -> None:
        """Drop what was computed for texts that are gone."""
        if not any(self._spool.ids("gone", "changed", "again")):
            return
        connection.execute("DELETE FROM vectors WHERE key NOT IN (SELECT vector FROM passages)")
        kept = "SELECT ? || ':' || digest FROM passages"
        connection.execute(f"DELETE FROM found_names WHERE key NOT IN ({kept})", (self._finder,))
        connection.execute("DELETE FROM said WHERE digest != '' AND digest NOT IN (SELECT digest FROM passages)")

    def _follow(self) -> None:
        """Bring the store of vectors up to the index."""
        place = stores.place_of(self._folder, self._settings)
        if not stores.is_up_to(place, self._index):
            self._tell("chroma", 0, 1)
            if stores.follow(place, self._index, lambda done, total: self._tell("chroma", done, total)):
                reason = "was damaged, and has been made anew from the index"
                self._report.problems.append({"file": str(place.folder), "line": 0, "reason": reason})
            self._tell("chroma", 1, 1)
