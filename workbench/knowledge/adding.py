"""One ``add``: what the files gave becomes the next generation of an index, in one transaction.

Documents are compared by content. What is new is embedded and looked through for names, which is kept by content at
once; the graph is built anew from all documents, so that it never depends on the order in which they came; and only
then everything is written together. Chroma follows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.context import Community
from workbench.knowledge import corpus, entities, graph, keywords, names, title_links, triples, vectors
from workbench.knowledge.corpus import Document, Problem
from workbench.knowledge.index import Index
from workbench.knowledge.knowledge_base import open_model
from workbench.models import rerank
from workbench.models.embeddings import TextModel, word_vectors
from workbench.plans import canonical_json
from workbench.settings import Settings
from workbench.text import sentences

Progress = Callable[[str, int, int], None]
"""``progress(stage, done, total)``; stages: read, vectors, words, names, graph, write, chroma."""


_VERSION = 8
"""Of what is made of a document; raised when that changes, so that the next ``add`` makes all anew."""


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


class Addition:
    """One ``add``, while the base is held for writing."""

    def __init__(self, index: Index, folder: Path, name: str, settings: Settings, tell: Progress):
        self._index, self._folder, self._settings, self._tell = index, folder, settings, tell
        self._report = AddReport(name)
        self._model: TextModel = open_model(index, name, settings)
        self._finder = names.finder_name(settings)
        self._recipe = canonical_json(
            {"version": _VERSION, "chunk_characters": settings.chunk_characters, "names": self._finder}
        )

    def run(self, loaded: corpus.Loaded, paths: Sequence[Path]) -> AddReport:
        """Bring in what was loaded from these paths."""
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
        """Documents whose file was read to its end without them, or is no longer in a folder that was given.

        A file with a line that cannot be read deletes nothing: the line may be the document.
        """
        here = {document.doc_id for document in loaded.documents}
        unread = (p for p in loaded.problems if corpus.USED_BEFORE not in p["reason"])
        broken = {Path(os.path.realpath(p["file"])).as_posix() for p in unread}
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
        written = [d.doc_id for d in documents if d.type != triples.NODE]  # triples say themselves what they name
        texts = [(vectors.key_of("", text), text) for doc_id in written for text in cut[doc_id]]
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
                [
                    (chunk_id, text, found.get(vectors.key_of("", text), []))
                    for chunk_id, text in passages.get(d.doc_id, [])
                ],
            )
            for d in [*stay, *documents]
        ]

    def _insert(self, connection: Any, document: Document, texts: Sequence[str]) -> None:
        content = document.content()
        connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '')",
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
        given = [] if document.title == corpus.made_title(document.text) else [document.title]
        title = " | ".join([*given, *document.aliases])
        names = list(entities.names_in_fields(document.fields, document.names))
        keys = title_links.title_keys(document.title, document.aliases, document.text) if given else {}
        title_links.insert(connection, document.doc_id, keys)
        for position, text in enumerate(texts):
            key = vectors.key_of(self._model.name, vectors.titled(document.title, document.aliases, text))
            row = (f"{document.doc_id}#{position}", document.doc_id, position, text, vectors.key_of("", text), key)
            number = connection.execute(
                "INSERT INTO passages (chunk_id, doc_id, position, text, digest, vector) VALUES (?, ?, ?, ?, ?, ?)", row
            ).lastrowid
            keywords.insert(connection, number, title, names, text)
            title_links.insert_phrases(connection, number, keys, text)

    def _follow(self) -> None:
        """Bring Chroma up to the index."""
        generation = str(self._index.generation)
        if self._index.meta("chroma_generation") != generation:
            self._tell("chroma", 0, 1)
            if vectors.follow(self._folder / "chroma", self._index):
                reason = "was damaged, and has been made anew from the index"
                self._report.problems.append({"file": str(self._folder / "chroma"), "line": 0, "reason": reason})
            self._index.set_meta("chroma_generation", generation)
            self._tell("chroma", 1, 1)


def _lead(source: entities.Source) -> str:
    return next(iter(sentences(source.passages[0][1])), "") if source.passages else ""


def _delete(connection: Any, doc_id: str) -> None:
    title_links.delete(connection, doc_id)
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
