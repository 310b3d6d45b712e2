"""Vectors, kept by content in the index, so that an unchanged text is never embedded again; and exact search.

Up to ``settings.exact_search_limit`` passages a query is one product with a matrix in memory: complete, and the same
twice. Above it Chroma gives candidates (``stores.py``), and their cosines are exact again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import KnowledgeError, ModelError
from workbench.knowledge.indexes.index import Index
from workbench.models.embeddings import products
from workbench.state import Hits
from workbench.text import simplified, text_digest

if TYPE_CHECKING:
    import numpy as np

    from workbench.models.embeddings import TextModel


def vector_key(model: str, text: str) -> str:
    """Return what a text's vector is kept under."""
    return text_digest(f"{model}\0{text}", 32)


def titled(title: str, aliases: Sequence[str], text: str) -> str:
    """Return what is embedded for a passage: its document's titles count, so that 茶馆 finds The Teahouse.

    Simplified, as every question is: the encoder takes the two scripts for two languages.

    >>> titled("Tides", ["潮汐"], "A man forgets."), titled("Tides", [], "Tides is a novel.")
    ('Tides (潮汐). A man forgets.', 'Tides is a novel.')
    """
    if aliases:
        return simplified(f"{title} ({', '.join(aliases)}). {text}")
    return simplified(text if text.startswith(title) else f"{title}. {text}")


def ensure(
    index: Index,
    model: TextModel,
    texts: Sequence[str],
    lengths: set[int],
    on_done: Callable[[int, int], None],
) -> None:
    """Keep a vector of each text.

    Args:
        index: where they are kept.
        model: embeds them.
        texts: what is embedded.
        lengths: of the vectors of one add so far, which must all be alike; those of these texts join them.
        on_done: hears of progress.
    """
    wanted = {vector_key(model.name, text): text for text in texts}
    sql = "SELECT DISTINCT length(vector) / 4 FROM vectors WHERE key IN ({})"
    lengths.update(row[0] for row in index.rows_in(sql, list(wanted)))
    _alike(lengths, model)

    def embed(texts: list[str]) -> np.ndarray:
        rows = model.array(texts)
        lengths.add(rows.shape[1])
        _alike(lengths, model)
        return rows

    keep_missing(index, "vectors", wanted, embed, 128, on_done)


def keep_missing(
    index: Index,
    table: str,
    wanted: Mapping[str, str],
    embed: Callable[[list[str]], np.ndarray],
    at_once: int,
    on_done: Callable[[int, int], None],
) -> None:
    """Keep a vector for each key that has none, so many at a time: what a kill loses.

    Args:
        index: where they are kept.
        table: ``vectors`` or ``words``.
        wanted: key -> what is embedded.
        embed: returns a row for each of these texts.
        at_once: how many are embedded and kept at a time.
        on_done: hears of each handful, as ``on_done(done, total)``.
    """
    column = {"vectors": "key", "words": "word"}[table]
    sql = f"SELECT {column} FROM {table} WHERE {column} IN ({{}})"
    stored = {row[0] for row in index.rows_in(sql, list(wanted))}
    missing = [key for key in wanted if key not in stored]
    for start in range(0, len(missing), at_once):
        keys = missing[start : start + at_once]
        rows = embed([wanted[key] for key in keys])
        index.keep(table, ((key, row.tobytes()) for key, row in zip(keys, rows, strict=True)))
        on_done(start + len(keys), len(missing))


def _alike(lengths: set[int], model: TextModel) -> None:
    if len(lengths) > 1:
        raise ModelError(
            f"The embedding model {model.name!r} gave vectors of {' and '.join(map(str, sorted(lengths)))} "
            "numbers. Nothing of this was added: give the server one model, and add it again."
        )


@dataclass(frozen=True)
class Matrix:
    """All passages' vectors, rows in the order of the ids, so that equal content gives equal bits."""

    chunk_ids: list[str]
    rows: np.ndarray

    @classmethod
    def load(cls, index: Index) -> Matrix:
        """Read ``(passages, dimensions)`` float32 from the index."""
        import numpy as np

        sql = "SELECT chunk_id, vectors.vector FROM passages JOIN vectors ON key = passages.vector ORDER BY chunk_id"
        blobs = index.rows(sql)
        dimensions = len(blobs[0][1]) // 4 if blobs else 0
        rows = np.frombuffer(b"".join(blob for _, blob in blobs), np.float32).reshape(
            len(blobs), dimensions
        )
        # More than any model gives in a place of a vector.
        # SQLite cannot know
        if len(rows) and not (np.isfinite(rows).all() and np.abs(rows).max() < 1e6):
            raise KnowledgeError(
                f"{index.path} is damaged: a vector is not what was written. "
                f"Run `workbench kb rebuild {index.path.parent.name}`."
            )
        ids = [chunk_id for chunk_id, _ in blobs]
        return cls(ids, rows)

    def search(self, query: np.ndarray, top_k: int) -> Hits:
        """``(chunk_id, cosine)``, best first, ties by id."""
        return best(self.chunk_ids, products(self.rows, query), top_k) if self.chunk_ids else []


def best(chunk_ids: Sequence[str], scores: np.ndarray, top_k: int) -> Hits:
    """Return the ``top_k`` best to six digits, ties by id, and never one of a tie at the end by chance.

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


def stored(index: Index, keys: Sequence[str]) -> np.ndarray:
    """``(len(keys), dimensions)`` float32: the vectors that are kept under these keys."""
    import numpy as np

    blobs = dict(index.rows_in("SELECT key, vector FROM vectors WHERE key IN ({})", list(keys)))
    return np.array([np.frombuffer(blobs[key], np.float32) for key in keys])
