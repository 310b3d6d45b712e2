"""One generation of an index in memory: vectors, graph, communities. Each part is read when it is first asked for."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from contextlib import closing
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.knowledge import vocabulary
from workbench.knowledge.graph import graph
from workbench.knowledge.indexes import keywords, vectors
from workbench.knowledge.indexes.index import Index, entities, fingerprint, relations
from workbench.knowledge.indexes.store import Damaged, Place, Store
from workbench.knowledge.indexes.stores import checked
from workbench.knowledge.names import schema
from workbench.ports import About, Field, RelationKind
from workbench.text import detect_language, stem

if TYPE_CHECKING:
    import networkx
    import numpy as np


_RELATION_KINDS = (
    "SELECT relations.type, a.type, b.type, count(*) FROM relations JOIN entities AS a ON a.entity_id = source "
    "JOIN entities AS b ON b.entity_id = target GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
)
_NOTABLE = (
    "SELECT name FROM entities JOIN relations ON source = entity_id WHERE doc_id IS NOT NULL "
    "GROUP BY entity_id ORDER BY count(*) DESC, entity_id LIMIT 10"
)
_TYPES = "SELECT type, count(*), title, min(doc_id) FROM documents GROUP BY type ORDER BY 2 DESC, type LIMIT 12"


class View:
    """A reader's view of one generation. Any thread may use it; each part is read on first use."""

    def __init__(self, index: Index, folder: Path, generation: int, place: Place):
        self.vocabulary = vocabulary.stored(folder)
        self.generation = generation
        self._index = index
        self._place = place
        self._lock = threading.RLock()
        self._store: Store | None = None
        self._closed = False
        # a cache of limited size, since questions may have any words
        # How many terms' frequencies are cached.
        self._frequency = lru_cache(50_000)(partial(keywords.frequency, index))

    def close(self) -> None:
        """Release the store, after any search in it; readers may keep the rest."""
        with self._lock:
            self._closed = True
            if self._store:
                self._store.close()

    @cached_property
    def fingerprint(self) -> str:
        """Return the digest of the documents: as the last ``add`` stored it, else computed, where that was killed."""
        generation, _, digest = self._index.meta("fingerprint").partition(" ")
        return digest if generation == str(self.generation) else fingerprint(self._index)

    @cached_property
    def passages(self) -> int:
        """Return how many passages there are."""
        return int(self._index.rows("SELECT count(*) FROM passages")[0][0])

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Return the typed fields by their names, those of most documents first."""
        return {field["name"]: field for field in schema.schema(self._index, self.vocabulary)}

    @cached_property
    def about(self) -> About:
        """Return how much there is, and the words of its documents, fields and values."""
        tables = ("documents", "passages", "entities", "relations", "communities")
        rows = self._index.rows("SELECT DISTINCT type FROM documents ORDER BY type LIMIT 50")
        nouns = {language: list(words) for language, words in self.vocabulary.documents.items()}
        single_words = {"measure": self.vocabulary.measure, "source": self.vocabulary.enrichment}
        nouns |= {key: [word] for key, word in single_words.items() if word}
        return About(
            counts={
                table: self._index.rows(f"SELECT count(*) FROM {table}")[0][0] for table in tables
            },
            fields=list(self.fields.values()),
            nouns={**nouns, "types": [row[0] for row in rows], "tables": list(self.tables)},
            relations=[
                RelationKind(type=kind, source=a, target=b, count=count)
                for kind, a, b, count in self._index.rows(_RELATION_KINDS)
            ],
            titles=[row[0] for row in self._index.rows(_NOTABLE)],
            types=[(row[0], row[1], row[2]) for row in self._index.rows(_TYPES)],
            languages=self._languages(),
        )

    def _languages(self) -> list[str]:
        """Return the languages of texts, the most frequent first, by a few of them from everywhere."""
        sample = 50
        every = max(1, self.passages // sample)
        texts = self._index.rows(
            f"SELECT substr(text, 1, 300) FROM passages WHERE rowid % {every} = 0 LIMIT {sample}"
        )
        counts = Counter(detect_language(row[0]) for row in texts)
        return [language for language, _ in counts.most_common()]

    @cached_property
    def tables(self) -> dict[str, list[str]]:
        """Return the names of files with several documents ("members" of members.csv), and of folders, with files."""
        tables: dict[str, list[str]] = {}
        rows = self._index.rows(
            "SELECT source, count(*) FROM documents WHERE source > '' GROUP BY source"
        )
        folders = {Path(source).parent for source, _ in rows}
        for source, count in rows:
            path = Path(source)
            names = {path.stem} if count > 1 else set()
            for name in sorted(names | ({path.parent.name} if len(folders) > 1 else set())):
                tables.setdefault(name, []).append(source)
        # The limit of files and folders that have a name as a table.
        return dict(list(tables.items())[:50])

    @cached_property
    def matrix(self) -> vectors.Matrix:
        """Return every passage's vector."""
        return vectors.Matrix.load(self._index)

    @cached_property
    def graph(self) -> networkx.MultiDiGraph:
        """Return entities and relations for networkx."""
        return graph.build(entities(self._index), relations(self._index))

    @property
    def in_chroma(self) -> bool:
        """Check whether the store of vectors is up to this generation; a killed ``add`` leaves it behind."""
        return self._place.holds(self._index, self.generation)

    def nearest(self, query: np.ndarray, top_k: int) -> list[tuple[str, float]] | None:
        """Return what the store finds, or None when it is not up to this generation, or was changed while it searched.

        A writer raises the generation before it touches the store, so the same generation afterwards means: untouched.
        """
        with self._lock:
            if self._closed or not self.in_chroma:
                return None
            try:
                self._store = self._store or checked(self._place, self._index)
            except Damaged:
                if self._newest() != self.generation:  # it follows a newer one just now
                    return None
                raise
            hits = self._store.search(self._index, query, top_k)
            return hits if self._newest() == self.generation else None

    def _newest(self) -> int:
        """Return the generation in the file now, outside of the snapshot that this thread reads from."""
        with closing(
            sqlite3.connect(
                f"{self._index.path.resolve().as_uri()}?mode=ro", uri=True, timeout=30
            )
        ) as now:
            return int(
                now.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0]
            )

    def weight(self, term: str) -> float:
        """Inverse document frequency of a term."""
        return keywords.weight(self._frequency(stem(term)), self.passages)
