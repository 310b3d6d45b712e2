"""Chroma's HNSW over the vectors of an index: in the base's own folder, or on a server (``settings.chroma_url``).

It is made of the index, and follows it after each change: what came, changed and went since is noted in the index, so
that following costs what changed, and a kill in the middle nothing. Where it does not hold what it should (a folder
from elsewhere, a server that lost its files), it is compared with the whole index.
"""

from __future__ import annotations

import ctypes
import math
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from workbench.errors import KnowledgeError
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.indexes.vectors import best, stored
from workbench.models.embeddings import products
from workbench.models.wire import address

if TYPE_CHECKING:
    import numpy as np


# --- Memory that is handed out cleared, for a library that writes what it was given to a file ---

_PERTURB = -6
"""glibc's M_PERTURB: memory is filled with the complement of this byte when it is handed out."""
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
    mallopt(_PERTURB, byte)


_WRITE = 1_000
_NARROW, _FEW = 500, 20_000
"""How many candidates a search keeps among that many vectors; twice as many for each four times as many vectors."""
_HNSW: Any = {"space": "cosine", "ef_construction": 100, "ef_search": _NARROW, "max_neighbors": 16}
"""Looking further pays more than more neighbours: of the exact best ten of 20,000, questions find 98 % (96 % with 200,
200 and 32), and what it takes to be made is two fifths.
"""
_MORE = 50
"""Candidates beyond those asked for, whose cosines are compared exactly: the last ones may be alike to six digits."""
_LOCAL = "passages"
"""The collection of a base that has a folder of its own."""
Told = Callable[[int, int], None]


@dataclass(frozen=True)
class Place:
    """Where the vectors of a base lie: in its folder, or on a server."""

    folder: Path
    url: str = ""
    timeout_s: float = 60

    @property
    def mark(self) -> str:
        """What an index notes, to know later whether it was this place that followed it."""
        return address(self.url)

    def holds(self, index: Index, generation: int) -> bool:
        """Whether this place is up to that generation of the index; a killed ``add`` leaves it behind."""
        return index.meta("chroma_generation") == str(generation) and index.meta("chroma_at") == self.mark

    def followed(self, index: Index) -> None:
        """Note that this place is up to the index, with nothing left to follow."""
        with index.transaction() as connection:
            connection.execute("DELETE FROM unfollowed")
            index.set_meta("chroma_at", self.mark)
            index.set_meta("chroma_generation", str(index.generation))


class Chroma:
    """The Chroma collection of one base. Hold it shortly, or close it when the generation changes.

    An open client serves stale vectors after another process wrote; a new one does not. What it does with its files it
    does on cleared memory, which it would write down as it comes.
    """

    @cleared()
    def __init__(self, place: Place, collection: str = _LOCAL, *, make: bool = True):
        import chromadb.errors

        self._place = place
        with self._answering():
            self._client: Any = _server(place) if place.url else _files(place.folder)
            try:
                self._collection: Any = (
                    self._client.get_or_create_collection(
                        collection, embedding_function=None, configuration={"hnsw": _HNSW}
                    )
                    if make
                    else self._client.get_collection(collection, embedding_function=None)
                )
                self._count: int = self._collection.count()
            except (chromadb.errors.ChromaError, OSError):
                self.close()
                raise

    @classmethod
    def of(cls, place: Place, index: Index, *, make: bool = False) -> Chroma:
        """The collection of this index; on a server, which many workspaces share, by a name that the index keeps.

        A server that does not have it is an error, unless it may be made there.
        """
        return cls(place, index.meta("chroma_collection"), make=make) if place.url else cls(place)

    def __enter__(self) -> Chroma:
        """Itself; closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    @cleared()
    def close(self) -> None:
        """Let go of the files, or of the connection."""
        self._client.close()
        if self._place.url:
            self._client._server._session.close()  # which chromadb leaves open

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """What a server refuses is an error of ours; what files refuse is told by their own errors."""
        import chromadb.errors
        import httpx

        if not self._place.url:
            yield
            return
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL, chromadb.errors.ChromaError, ValueError, OSError) as error:
            why = " ".join(str(error).split())[:300] or type(error).__name__
            raise KnowledgeError(
                f"The Chroma server at {self._place.mark} cannot be used: {why}. The index itself is whole and keeps "
                "every vector. Start the server again (`chroma run`) and repeat, or unset WORKBENCH_CHROMA_URL; if "
                "the server has lost its files, run the `workbench kb add` again."
            ) from error

    def count(self) -> int:
        """Vectors kept."""
        with self._answering():
            return self._collection.count()

    @cleared()
    def follow(self, index: Index, tell: Told | None = None) -> None:
        """Bring the collection up to the index: what it lacks, what changed, what is gone. Any state before will do."""
        with self._answering():
            known = index.meta("chroma_at", "nowhere") == self._place.mark
            if known or not self._collection.count():
                self._catch_up(index, tell or _nobody)
            (passages,) = index.rows("SELECT count(*) FROM passages")[0]
            if not known or self._collection.count() != passages:
                self._compare(index)
            self._count = self._collection.count()
            self._widen()

    def _widen(self) -> None:
        """Let searches keep as many candidates as so many vectors ask for; who opens the collection next does."""
        wanted = candidates(self._count)
        if self._collection.configuration["hnsw"]["ef_search"] != wanted:
            self._collection.modify(configuration={"hnsw": {"ef_search": wanted}})

    def _catch_up(self, index: Index, tell: Told) -> None:
        """Follow what the index has noted since it was followed."""
        (total,) = index.rows("SELECT count(*) FROM unfollowed")[0]
        sql = (
            "SELECT unfollowed.chunk_id, vector FROM unfollowed LEFT JOIN passages USING (chunk_id) "
            f"WHERE unfollowed.chunk_id > ? ORDER BY 1 LIMIT {_WRITE}"
        )
        last, done = "", 0
        while rows := index.rows(sql, (last,)):
            tell(done, total)
            self._delete([chunk_id for chunk_id, key in rows if key is None])
            self._upsert(index, {chunk_id: key for chunk_id, key in rows if key is not None})
            last, done = rows[-1][0], done + len(rows)

    def _compare(self, index: Index) -> None:
        """Look through the whole collection and the whole index."""
        wanted = dict(index.rows("SELECT chunk_id, vector FROM passages ORDER BY chunk_id"))
        held = dict(self._held())
        gone = sorted(set(held) - set(wanted))
        changed = [chunk_id for chunk_id, key in wanted.items() if held.get(chunk_id) != key]
        for start in range(0, len(gone), _WRITE):
            self._delete(gone[start : start + _WRITE])
        for start in range(0, len(changed), _WRITE):
            self._upsert(index, {chunk_id: wanted[chunk_id] for chunk_id in changed[start : start + _WRITE]})

    def _delete(self, ids: Sequence[str]) -> None:
        if ids:
            self._collection.delete(ids=list(ids))

    def _upsert(self, index: Index, keys: Mapping[str, str]) -> None:
        if keys:
            self._collection.upsert(
                ids=list(keys),
                embeddings=stored(index, list(keys.values())),
                metadatas=[{"key": key} for key in keys.values()],
            )

    def _held(self) -> Iterator[tuple[str, str]]:
        total = self._collection.count()
        for start in range(0, total, 10_000):
            page = self._collection.get(include=["metadatas"], limit=10_000, offset=start)
            yield from zip(page["ids"], (str((m or {}).get("key")) for m in page["metadatas"] or []), strict=True)

    @cleared()
    def search(self, index: Index, query: np.ndarray, top_k: int) -> list[tuple[str, float]]:
        """As ``Matrix.search``, over the candidates that HNSW finds: nearly all of the best, not certainly."""
        wanted = min(top_k + _MORE, self._count)
        if not wanted or top_k < 1:
            return []
        with self._answering():
            found = self._collection.query(query_embeddings=[query], n_results=wanted, include=[])
        ids = sorted(found["ids"][0])
        keys = dict(index.rows_in("SELECT chunk_id, vector FROM passages WHERE chunk_id IN ({})", ids))
        ids = [chunk_id for chunk_id in ids if chunk_id in keys]
        return best(ids, products(stored(index, [keys[chunk_id] for chunk_id in ids]), query), top_k) if ids else []

    def remove(self) -> None:
        """Delete the collection."""
        with self._answering():
            self._client.delete_collection(self._collection.name)


def candidates(vectors: int) -> int:
    """How many candidates a search keeps among so many vectors: with 500, of 100,000 it finds 90 %, with 2,000 98 %.

    Of 1,000,000 it finds 94 % of the best ten with 4,000, in 24 ms; with 2,000 it would be 90 %, in 14.

    >>> [candidates(n) for n in (10, 20_000, 20_001, 100_000, 1_000_000)]
    [500, 500, 1000, 2000, 4000]
    """
    return _NARROW * 2 ** max(0, math.ceil(math.log(max(vectors, 1) / _FEW, 4)))


def _files(folder: Path) -> Any:
    import chromadb
    import chromadb.config

    return chromadb.PersistentClient(str(folder), settings=chromadb.config.Settings(anonymized_telemetry=False))


def _server(place: Place) -> Any:
    """A client of the server, which is asked whether it is there; a server that hangs is not waited for for ever."""
    import chromadb
    import chromadb.config

    parts = urlsplit(place.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("its address must be like http://localhost:8000")
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 8000)
    client: Any = chromadb.HttpClient(parts.hostname, port, ssl=secure, settings=settings)
    client._server._session.timeout = place.timeout_s  # chromadb sets none, and has no setting for it
    return client


def _nobody(done: int, total: int) -> None:
    """Nobody watches."""


def follow(place: Place, index: Index, tell: Told = _nobody) -> bool:
    """Bring the Chroma at this place up to the index, and make one in a folder anew when it is damaged.

    Returns:
        Whether it was damaged.

    Raises:
        KnowledgeError: it cannot be written; the index itself is whole.
    """
    from chromadb.errors import ChromaError

    if place.url and not index.meta("chroma_collection"):
        index.set_meta("chroma_collection", f"{index.path.parent.name.strip('.')}-{uuid.uuid4().hex[:12]}")
    damaged = False
    try:
        with Chroma.of(place, index, make=True) as chroma:
            chroma.follow(index, tell)
    except ChromaError:  # made of the index, so nothing is lost with it; the caller says that it was made anew
        shutil.rmtree(place.folder)
        damaged = True
    try:
        if damaged:
            with Chroma.of(place, index) as chroma:
                chroma._compare(index)
    except ChromaError as error:
        raise KnowledgeError(
            f"The vectors in {place.folder} cannot be written: {error}. The disk may be full. The index itself is "
            "whole: free some space and run the `workbench kb add` again."
        ) from error
    place.followed(index)
    return damaged


def forget(place: Place, path: Path) -> None:
    """Delete what a server holds of the index in this file, which is about to be removed.

    Raises:
        KnowledgeError: the server cannot be asked.
    """
    if not place.url or not path.exists():
        return
    index = Index(path)
    try:
        if index.meta("chroma_at") == place.mark:
            with Chroma.of(place, index, make=True) as chroma:
                chroma.remove()
    finally:
        index.close()
