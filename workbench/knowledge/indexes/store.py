"""The stores in which the vectors of a base are searched when they are many (``settings.vector_store``).

A store is made of the index, and follows it after each change: the keys that it holds are compared with those of the
index, and only the difference is written, so that a kill in the middle costs nothing. A new one is a subclass of
``Store`` with the methods that are abstract here, and a line in ``stores.opened``.
"""

from __future__ import annotations

import ctypes
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import KnowledgeError, reason
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.indexes.vectors import best, stored
from workbench.models.embeddings import products
from workbench.models.wire import address
from workbench.state import Hits

if TYPE_CHECKING:
    import numpy as np


# --- Memory that is handed out cleared, for a library that writes what it was given to a file ---

_lock, _inside = threading.Lock(), 0


@contextmanager
def cleared() -> Iterator[None]:
    """Hand out zeroes in this block, in every thread; blocks may overlap."""
    global _inside
    with _lock:
        _inside += 1
        if _inside == 1:
            _perturb(0xFF)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _perturb(0)


def _perturb(byte: int) -> None:
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # no glibc here
        return
    # glibc's M_PERTURB: memory is filled with the complement of this byte when it is handed out.
    mallopt(-6, byte)


WRITE = 1_000
LOCAL = "passages"
"""The collection of a base that has a folder of its own."""
OnDone = Callable[[int, int], None]


@dataclass(frozen=True)
class Place:
    """The place of a base's vectors: its folder, a folder that many bases share, or a server."""

    folder: Path
    url: str = ""
    timeout_s: float = 60
    kind: str = "chroma"
    shared: bool = False

    @property
    def mark(self) -> str:
        """Return what an index notes, to know later whether it was this place that followed it."""
        if self.kind == "chroma":
            return address(self.url)
        return f"{self.kind} {self.folder}" if self.shared else self.kind

    def holds(self, index: Index, generation: int) -> bool:
        """Check whether this place is up to that generation of the index; a killed ``add`` leaves it behind."""
        available = bool(self.url) or self.folder.exists()
        return (
            available
            and index.meta("chroma_generation") == str(generation)
            and index.meta("chroma_at") == self.mark
        )

    def followed(self, index: Index) -> None:
        """Note that this place is up to the index."""
        with index.transaction():
            index.set_meta("chroma_at", self.mark)
            index.set_meta("chroma_generation", str(index.generation))


class Damaged(KnowledgeError):
    """The files of a store are not what was written."""

    def __init__(self, place: Place, error: Exception | str, name: str = ""):
        base = name or place.folder.parent.name
        where = place.mark if place.url else place.folder
        super().__init__(
            f"The vectors in {where} cannot be used: {reason(error)}. The index itself is whole and keeps every "
            f"vector: free some space if the disk is full, and run `workbench kb rebuild {base}`."
        )


class Store(AbstractContextManager["Store"]):
    """The vectors of one base. Hold it shortly, or close it when the generation changes: it may show what was."""

    place: Place
    _count: int

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Release the files, or of the connection."""

    @abstractmethod
    def count(self) -> int:
        """Return vectors kept."""

    @abstractmethod
    def put(self, ids: Sequence[str], keys: Sequence[str], rows: np.ndarray) -> None:
        """Keep these vectors under these ids, in place of what is there."""

    @abstractmethod
    def delete(self, ids: Sequence[str]) -> None:
        """Keep nothing under these ids."""

    @abstractmethod
    def stored_keys(self) -> Iterator[tuple[str, str]]:
        """Return every id, with the key of its vector."""

    @abstractmethod
    def nearest(self, query: np.ndarray, wanted: int) -> Sequence[str]:
        """Return the ids of so many vectors that are nearest by cosine."""

    @abstractmethod
    def remove(self) -> None:
        """Delete everything of this base."""

    def compact(self) -> None:
        """Make searches quick, after a change."""
        return

    @abstractmethod
    def _answering(self) -> AbstractContextManager[None]:
        """Return a block whose errors become ours: ``Damaged`` where the files are."""

    @cleared()
    def follow(self, index: Index, tell: OnDone = lambda *_: None) -> None:
        """Bring the collection up to the index: add what it lacks, delete what is gone. Any state before will do."""
        with self._answering():
            wanted = dict(index.rows("SELECT chunk_id, vector FROM passages ORDER BY chunk_id"))
            stored_keys = dict(self.stored_keys())
            gone = sorted(stored_keys.keys() - wanted.keys())
            for start in range(0, len(gone), WRITE):
                self.delete(gone[start : start + WRITE])
            new = [i for i, key in wanted.items() if stored_keys.get(i) != key]
            for start in range(0, len(new), WRITE):
                tell(start, len(new))
                ids = new[start : start + WRITE]
                keys = [wanted[i] for i in ids]
                self.put(ids, keys, stored(index, keys))
            self._count = self.count()
            self.compact()

    @cleared()
    def search(self, index: Index, query: np.ndarray, top_k: int) -> Hits:
        """As ``Matrix.search``, over the candidates that the store finds, compared exactly."""
        # Candidates beyond those asked for, whose cosines are compared exactly: the last ones may be alike to six
        # digits.
        wanted = min(top_k + 50, self._count)
        if not wanted or top_k < 1:
            return []
        with self._answering():
            nearest = self.nearest(query, wanted)
        sql = "SELECT chunk_id, vector FROM passages WHERE chunk_id IN ({})"
        rows = sorted(index.rows_in(sql, nearest))
        if not rows:
            return []
        chunk_ids, keys = zip(*rows, strict=True)
        return best(chunk_ids, products(stored(index, keys), query), top_k)
