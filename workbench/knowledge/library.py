"""The knowledge bases of a workspace: add to them, read them, remove them. One folder a base.

Adding is one transaction: documents are compared by content, what is new is embedded, the graph is built anew from all
of them, and only then everything is written at once. So a killed ``add`` leaves the base as it was, and the next one
goes on with the vectors that are already there. One process writes at a time; readers go on, and see the new state
with their next call.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.context import Community
from workbench.errors import KnowledgeError, UnknownKnowledge, WorkspaceBusy
from workbench.knowledge import corpus, entities, graph, keywords, names, vectors
from workbench.knowledge.corpus import Document, Problem
from workbench.knowledge.index import Index
from workbench.knowledge.knowledge_base import CorpusKnowledge, open_model
from workbench.models import rerank
from workbench.models.embeddings import TextModel, word_vectors
from workbench.plans import canonical_json
from workbench.settings import Settings
from workbench.text import sentences

Progress = Callable[[str, int, int], None]
"""``progress(stage, done, total)``; stages: read, vectors, words, names, graph, write, chroma."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_RESERVED = ("general",)


@dataclass
class AddReport:
    """What one ``add`` did. Counts are documents; ``problems`` are lines that were left out."""

    name: str
    added: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    problems: list[Problem] = field(default_factory=list)
    seconds: float = 0.0


class Library:
    """Every knowledge base under one folder.

    Args:
        root: made when missing, at the first ``add``.
        settings: for every base opened here.
    """

    def __init__(self, root: Path, settings: Settings):
        self.root, self._settings = Path(root), settings
        self._open: dict[str, CorpusKnowledge] = {}
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Known names, sorted."""
        return sorted(p.parent.name for p in self.root.glob("*/index.db") if _NAME.fullmatch(p.parent.name))

    def get(self, name: str) -> CorpusKnowledge:
        """The knowledge base of that name.

        Raises:
            UnknownKnowledge: with the known names.
            KnowledgeError: it was made with another embedding model, or cannot be read.
        """
        with self._lock:
            if name not in self._open:
                if name not in self.names():
                    raise UnknownKnowledge(name, self.names())
                self._open[name] = CorpusKnowledge(name, self.root / name, self._settings)
            return self._open[name]

    def add(self, name: str, paths: Iterable[str | Path], *, progress: Progress | None = None) -> AddReport:
        """Bring the documents of these files and folders into a base, which is made when it is not there.

        Again with the same files it follows what changed: a document that a given file no longer has is deleted, and so
        is one whose file is gone from a given folder. What did not change costs nothing.

        Raises:
            KnowledgeError: the name is not allowed, or the base was made with another embedding model.
            CorpusError: a path cannot be loaded.
            WorkspaceBusy: another process is writing to this base.
        """
        begun, tell = time.monotonic(), progress or _silent
        given = [Path(path) for path in paths]
        with self._writing(check_name(name)) as folder:
            tell("read", 0, 1)
            loaded = corpus.load(given)
            tell("read", 1, 1)
            index = Index(folder / "index.db", create=True)
            try:
                report = _Addition(index, folder, name, self._settings, tell).run(loaded, given)
            finally:
                index.close()
        report.seconds = round(time.monotonic() - begun, 3)
        return report

    def remove(self, name: str) -> None:
        """Delete a base with everything in it.

        Raises:
            UnknownKnowledge: with the known names.
            WorkspaceBusy: another process is writing to it.
        """
        if name not in self.names():
            raise UnknownKnowledge(name, self.names())
        with self._writing(name) as folder:
            self._forget(name)
            shutil.rmtree(folder)

    def inspect(self, name: str) -> dict[str, Any]:
        """What is known of a base: its counts, its model, its files, its fields, and whether Chroma is up to it."""
        base = self.get(name)
        return {"name": name, **base.describe()}

    def close(self) -> None:
        """Close every base."""
        with self._lock:
            for base in self._open.values():
                base.close()
            self._open.clear()

    def _forget(self, name: str) -> None:
        with self._lock:
            base = self._open.pop(name, None)
        if base:
            base.close()

    @contextmanager
    def _writing(self, name: str) -> Iterator[Path]:
        """Hold the base for writing. The lock lies beside its folder, so that the folder can be removed under it."""
        from filelock import FileLock, Timeout

        self.root.mkdir(parents=True, exist_ok=True)
        lock, holder = FileLock(self.root / f".{name}.lock"), self.root / f".{name}.holder.json"
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise WorkspaceBusy(
                f"Knowledge base {name!r} is being written by {_holder(holder)}. Wait for it to end, or end it."
            ) from None
        try:
            since = datetime.now(UTC).isoformat("T", "seconds")
            holder.write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}))
            folder = self.root / name
            folder.mkdir(exist_ok=True)
            yield folder
        finally:
            holder.unlink(missing_ok=True)
            lock.release()


def check_name(name: str) -> str:
    """The name, if a base may have it.

    >>> check_name("film")
    'film'

    Raises:
        KnowledgeError: with what is allowed.
    """
    if name in _RESERVED or not _NAME.fullmatch(name):
        raise KnowledgeError(
            f"A knowledge base cannot be named {name!r}. Use up to 64 of a-z, 0-9, - and _, beginning with a letter or "
            "digit; 'general' means: no retrieval."
        )
    return name


def _silent(stage: str, done: int, total: int) -> None:
    pass


def _holder(path: Path) -> str:
    try:
        known = json.loads(path.read_text())
        return f"process {known['pid']} on {known['host']} (since {known['since']})"
    except (OSError, ValueError, KeyError):  # written right after the lock is taken, so it may be missing for a moment
        return "another process"


class _Addition:
    """One ``add``, while the base is held for writing."""

    def __init__(self, index: Index, folder: Path, name: str, settings: Settings, tell: Progress):
        self._index, self._folder, self._settings, self._tell = index, folder, settings, tell
        self._report = AddReport(name)
        self._model: TextModel = open_model(index, name, settings)
        self._finder = names.finder_name(settings)
        self._recipe = canonical_json(
            {"version": 6, "chunk_characters": settings.chunk_characters, "names": self._finder}
        )

    def run(self, loaded: corpus.Loaded, paths: Sequence[Path]) -> AddReport:
        self._report.problems = loaded.problems
        known = {row[0]: (row[1], row[2]) for row in self._index.rows("SELECT doc_id, digest, source FROM documents")}
        new = [d for d in loaded.documents if d.doc_id not in known]
        changed = [d for d in loaded.documents if d.doc_id in known and known[d.doc_id][0] != d.digest()]
        gone = self._gone(known, loaded, paths)
        self._report.added, self._report.changed, self._report.deleted = len(new), len(changed), len(gone)
        self._report.unchanged = len(loaded.documents) - len(new) - len(changed)
        if self._index.meta("recipe", self._recipe) != self._recipe:
            here = {d.doc_id for d in [*new, *changed]}
            self._write([*new, *changed, *(d for d in self._stored() if d.doc_id not in {*here, *gone})], gone)
        elif new or changed or gone or not self._index.generation:
            self._write([*new, *changed], gone)
        self._follow()
        return self._report

    def _gone(self, known: dict[str, tuple[str, str]], loaded: corpus.Loaded, paths: Sequence[Path]) -> list[str]:
        """Documents whose file was read to its end without them, or is no longer in a folder that was given."""
        here = {document.doc_id for document in loaded.documents}
        broken = {Path(p["file"]).resolve().as_posix() for p in loaded.problems if p["line"] == 0}
        read = set(loaded.sources) - broken
        folders = tuple(f"{path.resolve().as_posix()}/" for path in paths if path.is_dir())
        return sorted(
            doc_id
            for doc_id, (_, source) in known.items()
            if doc_id not in here
            and (source in read or (folders and source.startswith(folders) and not Path(source).exists()))
        )

    def _write(self, documents: Sequence[Document], gone: Sequence[str]) -> None:
        cut = {d.doc_id: corpus.chunks(d.text, self._settings.chunk_characters) for d in documents}
        titled = [vectors.titled(d.title, d.aliases, text) for d in documents for text in cut[d.doc_id]]
        vectors.ensure(self._index, self._model, titled, lambda done, total: self._tell("vectors", done, total))
        self._ensure_words(titled)
        texts = [(vectors.key_of("", text), text) for pieces in cut.values() for text in pieces]
        names.ensure(self._index, self._finder, texts, lambda done, total: self._tell("names", done, total))
        dropped = {*gone, *cut}
        sources = self._sources(documents, cut, dropped)
        self._tell("graph", 0, 1)
        extracted = entities.extract(sources)
        leads = {s.doc_id: _lead(s) for s in sources}
        groups = graph.communities(extracted.entities, extracted.relations, extracted.categories, leads)
        self._tell("graph", 1, 1)
        self._tell("write", 0, 1)
        with self._index.transaction() as connection:
            for doc_id in sorted(dropped):
                _delete(connection, doc_id)
            for document in documents:
                self._insert(connection, document, cut[document.doc_id])
            _replace_graph(connection, extracted, groups)
            connection.execute("DELETE FROM vectors WHERE key NOT IN (SELECT vector FROM passages)")
            kept = "SELECT ? || ':' || digest FROM passages"
            connection.execute(f"DELETE FROM found_names WHERE key NOT IN ({kept})", (self._finder,))
            self._index.set_meta("embedding_model", self._model.name)
            self._index.set_meta("recipe", self._recipe)
            self._index.set_meta("generation", str(self._index.generation + 1))
        self._tell("write", 1, 1)

    def _ensure_words(self, texts: Sequence[str]) -> None:
        """Keep the vector of every word that a reranker will ask for."""
        if not rerank.available(self._settings, self._model.name):
            return
        wanted = sorted({word for text in texts for word in rerank.words(text)})
        known = {row[0] for row in self._index.rows_in("SELECT word FROM words WHERE word IN ({})", wanted)}
        missing = [word for word in wanted if word not in known]
        for start in range(0, len(missing), 512):
            part = missing[start : start + 512]
            rows = word_vectors(self._model, part)
            self._index.keep("words", ((word, row.tobytes()) for word, row in zip(part, rows, strict=True)))
            self._tell("words", min(start + 512, len(missing)), len(missing))

    def _stored(self) -> list[Document]:
        """The documents of the base, as they were loaded."""
        columns = "doc_id, title, text, url, licence, type, fields, aliases, names, source"
        return [
            Document(
                i,
                title,
                text,
                url,
                licence,
                kind,
                json.loads(fields),
                tuple(json.loads(aliases)),
                json.loads(names),
                source,
            )
            for i, title, text, url, licence, kind, fields, aliases, names, source in self._index.rows(
                f"SELECT {columns} FROM documents ORDER BY doc_id"
            )
        ]

    def _sources(
        self, documents: Sequence[Document], cut: dict[str, list[str]], dropped: set[str]
    ) -> list[entities.Source]:
        """What the graph is made of: the documents that stay as they are, and the new ones."""
        found = names.kept(self._index, self._finder)
        stay = [d for d in self._stored() if d.doc_id not in dropped]
        passages = {d.doc_id: [(f"{d.doc_id}#{i}", text) for i, text in enumerate(cut[d.doc_id])] for d in documents}
        for doc_id, chunk_id, text in self._index.rows(
            "SELECT doc_id, chunk_id, text FROM passages ORDER BY doc_id, position"
        ):
            if doc_id not in dropped:
                passages.setdefault(doc_id, []).append((chunk_id, text))
        return [
            entities.Source(
                d.doc_id,
                d.title,
                d.type,
                d.fields,
                d.aliases,
                d.names,
                [(chunk_id, text, found[vectors.key_of("", text)]) for chunk_id, text in passages.get(d.doc_id, [])],
            )
            for d in [*stay, *documents]
        ]

    def _insert(self, connection: Any, document: Document, texts: Sequence[str]) -> None:
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
        pairs = entities.field_values(document.fields)
        connection.executemany(
            "INSERT INTO field_values VALUES (?, ?, ?)", ((*pair, document.doc_id) for pair in pairs)
        )
        title = " | ".join([document.title, *document.aliases])
        names = list(entities.names_in_fields(document.fields, document.names))
        for position, text in enumerate(texts):
            key = vectors.key_of(self._model.name, vectors.titled(document.title, document.aliases, text))
            row = (f"{document.doc_id}#{position}", document.doc_id, position, text, vectors.key_of("", text), key)
            number = connection.execute(
                "INSERT INTO passages (chunk_id, doc_id, position, text, digest, vector) VALUES (?, ?, ?, ?, ?, ?)", row
            ).lastrowid
            keywords.insert(connection, number, title, names, text)

    def _follow(self) -> None:
        """Bring Chroma up to the index."""
        generation = str(self._index.generation)
        if self._index.meta("chroma_generation") != generation:
            self._tell("chroma", 0, 1)
            with vectors.Chroma(self._folder / "chroma") as chroma:
                chroma.follow(self._index)
            self._index.set_meta("chroma_generation", generation)
            self._tell("chroma", 1, 1)


def _lead(source: entities.Source) -> str:
    return next(iter(sentences(source.passages[0][1])), "") if source.passages else ""


def _delete(connection: Any, doc_id: str) -> None:
    connection.execute("DELETE FROM terms WHERE rowid IN (SELECT number FROM passages WHERE doc_id = ?)", (doc_id,))
    connection.execute("DELETE FROM passages WHERE doc_id = ?", (doc_id,))
    connection.execute("DELETE FROM documents WHERE doc_id = ?", (doc_id,))
    connection.execute("DELETE FROM field_values WHERE doc_id = ?", (doc_id,))


def _replace_graph(connection: Any, extracted: entities.Extracted, groups: Sequence[Community]) -> None:
    rows: dict[str, Iterable[tuple[Any, ...]]] = {
        "entities": (
            (e["entity_id"], e["name"], e["type"], canonical_json(e["aliases"]), e["doc_id"])
            for e in extracted.entities
        ),
        "relations": (tuple(relation.values()) for relation in extracted.relations),
        "mentions": extracted.mentions,
        "surfaces": (
            (key, place, surface.kind, *bearer)
            for key, surface in extracted.surfaces.items()
            for place, bearer in enumerate(surface.bearers)
        ),
        "communities": (
            (g["community_id"], g["title"], canonical_json(g["members"]), g["summary"], canonical_json(g["doc_ids"]))
            for g in groups
        ),
    }
    for table, values in rows.items():
        connection.execute(f"DELETE FROM {table}")
        _insert_all(connection, table, values)


def _insert_all(connection: Any, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    ordered = sorted(rows, key=lambda row: row[:2])
    if ordered:
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(ordered[0]))})", ordered)
