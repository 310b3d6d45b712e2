"""The vector index: exact cosine by one matrix while the base is small, Chroma's HNSW above that.

Vectors are kept by content in the SQLite file, so that an unchanged text is never embedded again, and in Chroma, which
is brought up to the SQLite file after each change. Up to ``settings.exact_search_limit`` passages a query is one
product with a matrix in memory: complete, and the same twice. Above it Chroma gives candidates, and their cosines are
exact again.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import KnowledgeError, ModelError
from workbench.knowledge.cleared import cleared
from workbench.knowledge.index import Index
from workbench.models.embeddings import products

if TYPE_CHECKING:
    import numpy as np

    from workbench.models.embeddings import TextModel

_WRITE = 1_000
_LARGEST = 1e6
"""More than any model gives in a place of a vector."""
_HNSW: Any = {"space": "cosine", "ef_construction": 200, "ef_search": 200, "max_neighbors": 32}


def key_of(model: str, text: str) -> str:
    """What a text's vector is kept under."""
    return hashlib.sha256(f"{model}\0{text}".encode()).hexdigest()[:32]


def titled(title: str, aliases: Sequence[str], text: str) -> str:
    """What is embedded for a passage: its document's titles count, so that 喜宴 finds The Wedding Banquet.

    >>> titled("Memento", ["记忆碎片"], "A man forgets."), titled("Memento", [], "Memento is a film.")
    ('Memento (记忆碎片). A man forgets.', 'Memento is a film.')
    """
    if aliases:
        return f"{title} ({', '.join(aliases)}). {text}"
    return text if text.startswith(title) else f"{title}. {text}"


def ensure(index: Index, model: TextModel, texts: Sequence[str], on_done: Callable[[int, int], None]) -> None:
    """Embed and keep the texts that have no vector yet; ``on_done(done, total)`` after each handful."""
    wanted = {key_of(model.name, text): text for text in texts}
    known = dict(index.rows_in("SELECT key, length(vector) / 4 FROM vectors WHERE key IN ({})", list(wanted)))
    missing = [(key, text) for key, text in wanted.items() if key not in known]
    lengths = set(known.values())
    for start in range(0, len(missing), 32):
        part = missing[start : start + 32]
        rows = model.array([text for _, text in part])
        lengths.add(rows.shape[1])
        if len(lengths) > 1:
            raise ModelError(
                f"The embedding model {model.name!r} gave vectors of {' and '.join(map(str, sorted(lengths)))} "
                "numbers. Nothing of this was added: give the server one model, and add it again."
            )
        index.keep("vectors", ((key, row.tobytes()) for (key, _), row in zip(part, rows, strict=True)))
        on_done(min(start + 32, len(missing)), len(missing))


@dataclass(frozen=True)
class Matrix:
    """All passages' vectors, rows in the order of the ids, so that equal content gives equal bits."""

    chunk_ids: list[str]
    rows: np.ndarray
    place: dict[str, int]

    @classmethod
    def load(cls, index: Index) -> Matrix:
        """Read ``(passages, dimensions)`` float32 from the index."""
        import numpy as np

        sql = "SELECT chunk_id, vectors.vector FROM passages JOIN vectors ON key = passages.vector ORDER BY chunk_id"
        found = index.rows(sql)
        dimensions = len(found[0][1]) // 4 if found else 0
        rows = np.frombuffer(b"".join(blob for _, blob in found), np.float32).reshape(len(found), dimensions)
        if len(rows) and not (np.isfinite(rows).all() and np.abs(rows).max() < _LARGEST):  # SQLite cannot know
            raise KnowledgeError(
                f"{index.path} is damaged: a vector is not what was written. "
                f"Run `workbench kb rebuild {index.path.parent.name}`."
            )
        ids = [chunk_id for chunk_id, _ in found]
        return cls(ids, rows, {chunk_id: place for place, chunk_id in enumerate(ids)})

    def search(self, query: np.ndarray, top_k: int) -> list[tuple[str, float]]:
        """``(chunk_id, cosine)``, best first, ties by id."""
        return best(self.chunk_ids, products(self.rows, query), top_k) if self.chunk_ids else []


def best(chunk_ids: Sequence[str], scores: np.ndarray, top_k: int) -> list[tuple[str, float]]:
    """The ``top_k`` best to six digits, ties by id, and never one of a tie at the end by chance.

    >>> import numpy as np
    >>> best(["b", "a", "c"], np.array([0.5, 0.5, 0.9]), 2)
    [('c', 0.9), ('a', 0.5)]
    """
    import numpy as np

    if top_k < 1:
        return []
    rounded = np.round(scores.astype(np.float64), 6) + 0.0
    if top_k < len(rounded):
        edge = np.partition(rounded, -top_k)[-top_k]
        places = np.flatnonzero(rounded >= edge).tolist()
    else:
        places = list(range(len(rounded)))
    ranked = sorted((-float(rounded[place]), chunk_ids[place]) for place in places)
    return [(chunk_id, -score) for score, chunk_id in ranked[:top_k]]


class Chroma:
    """The Chroma collection of one base. Hold it shortly, or close it when the generation changes.

    An open client serves stale vectors after another process wrote; a new one does not. What it does with its files it
    does on cleared memory, which it would write down as it comes.
    """

    @cleared()
    def __init__(self, folder: Path):
        import chromadb
        import chromadb.config
        import chromadb.errors

        settings = chromadb.config.Settings(anonymized_telemetry=False)
        self._client: Any = chromadb.PersistentClient(path=str(folder), settings=settings)
        try:
            self._collection: Any = self._client.get_or_create_collection(
                "passages", embedding_function=None, configuration={"hnsw": _HNSW}
            )
        except chromadb.errors.ChromaError:
            self.close()
            raise

    def __enter__(self) -> Chroma:
        """Itself; closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    @cleared()
    def close(self) -> None:
        """Let go of the files."""
        self._client.close()

    def count(self) -> int:
        """Vectors kept."""
        return self._collection.count()

    @cleared()
    def follow(self, index: Index) -> None:
        """Bring the collection up to the index: what it lacks, what changed, what is gone. Any state before will do."""
        wanted = dict(index.rows("SELECT chunk_id, vector FROM passages ORDER BY chunk_id"))
        held = dict(self._held())
        gone = sorted(set(held) - set(wanted))
        changed = [chunk_id for chunk_id, key in wanted.items() if held.get(chunk_id) != key]
        for start in range(0, len(gone), _WRITE):
            self._collection.delete(ids=gone[start : start + _WRITE])
        for start in range(0, len(changed), _WRITE):
            part = changed[start : start + _WRITE]
            self._collection.upsert(
                ids=part,
                embeddings=_stored(index, [wanted[chunk_id] for chunk_id in part]),
                metadatas=[{"key": wanted[chunk_id]} for chunk_id in part],
            )

    def _held(self) -> Iterator[tuple[str, str]]:
        total = self._collection.count()
        for start in range(0, total, 10_000):
            page = self._collection.get(include=["metadatas"], limit=10_000, offset=start)
            yield from zip(page["ids"], (str((m or {}).get("key")) for m in page["metadatas"] or []), strict=True)

    @cleared()
    def search(self, index: Index, query: np.ndarray, top_k: int) -> list[tuple[str, float]]:
        """As ``Matrix.search``, over the candidates that HNSW finds: nearly all of the best, not certainly."""
        wanted = min(max(2 * top_k, 50), self.count())
        if not wanted or top_k < 1:
            return []
        ids = sorted(self._collection.query(query_embeddings=[query], n_results=wanted, include=[])["ids"][0])
        keys = dict(index.rows_in("SELECT chunk_id, vector FROM passages WHERE chunk_id IN ({})", ids))
        ids = [chunk_id for chunk_id in ids if chunk_id in keys]
        return best(ids, products(_stored(index, [keys[chunk_id] for chunk_id in ids]), query), top_k) if ids else []


def follow(folder: Path, index: Index) -> bool:
    """Bring the Chroma in this folder up to the index, and make it anew when it is damaged.

    Returns:
        Whether it was damaged.

    Raises:
        KnowledgeError: it cannot be written; the index itself is whole.
    """
    from chromadb.errors import ChromaError

    try:
        with Chroma(folder) as chroma:
            chroma.follow(index)
        return False
    except ChromaError:  # made of the index, so nothing is lost with it; the caller says that it was made anew
        shutil.rmtree(folder)
    try:
        with Chroma(folder) as chroma:
            chroma.follow(index)
        return True
    except ChromaError as error:
        raise KnowledgeError(
            f"The vectors in {folder} cannot be written: {error}. The disk may be full. The index itself is whole: "
            "free some space and run the `workbench kb add` again."
        ) from error


def _stored(index: Index, keys: Sequence[str]) -> np.ndarray:
    import numpy as np

    blobs: dict[str, Any] = dict(index.rows_in("SELECT key, vector FROM vectors WHERE key IN ({})", list(keys)))
    return np.array([np.frombuffer(blobs[key], np.float32) for key in keys])


def recall(exact: Sequence[Sequence[tuple[str, float]]], found: Sequence[Sequence[tuple[str, float]]]) -> float:
    """The share of the exact results that were found, over several queries.

    >>> recall([[("a", 0.9), ("b", 0.8)]], [[("a", 0.9), ("c", 0.7)]])
    0.5
    """
    pairs = [({i for i, _ in e}, {i for i, _ in f}) for e, f in zip(exact, found, strict=True)]
    return sum(len(e & f) for e, f in pairs) / max(sum(len(e) for e, _ in pairs), 1)
