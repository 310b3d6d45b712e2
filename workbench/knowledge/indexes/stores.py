"""The stores in which the vectors of a base are searched when they are many (``settings.vector_store``).

A store is made of the index, and follows it after each change: the keys that it holds are compared with those of the
index, and only the difference is written, so that a kill in the middle costs nothing. A new one is a subclass of
``Store`` with the methods that are abstract here, and a line in ``opened``. By default it is Chroma's HNSW: in the
base's own folder, or on a server (``settings.chroma_url``).
"""

from __future__ import annotations

import ctypes
import shutil
import threading
import uuid
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from workbench.errors import KnowledgeError, MissingExtra, ModelError, reason
from workbench.extensions import importing_without, required
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.indexes.vectors import best, stored
from workbench.models.embeddings import products
from workbench.models.wire import address
from workbench.settings import Settings
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


# --- Chroma ---


_HNSW: Any = {"space": "cosine", "ef_construction": 100, "ef_search": 2_000, "max_neighbors": 16}
"""Searching further pays more than more neighbours: 2,000 candidates find 98 % of the exact best ten of 100,000, and
90 % of those of 1,000,000 in 14 ms.
"""


class Chroma(Store):
    """The Chroma collection of one base. Hold it shortly, or close it when the generation changes.

    An open client serves stale vectors after another process wrote; a new one does not. What it does with its files it
    does on cleared memory, which it would write down as it comes.
    """

    @cleared()
    def __init__(self, place: Place, collection: str = LOCAL, *, make: bool = True):
        # whose grammars take half the time to compile
        with importing_without("rfc3987_syntax", "jsonschema"):
            import chromadb.errors

        self.place = place
        with self._answering():
            self._client: Any = _open_client(place)
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

    @cleared()
    def close(self) -> None:
        """Release the files, or of the connection."""
        self._client.close()
        if self.place.url:
            self._client._server._session.close()  # which chromadb leaves open

    @contextmanager
    def _answering(self) -> Iterator[None]:
        import httpx
        from chromadb.errors import ChromaError

        refused = (
            (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) if self.place.url else ()
        )
        try:
            yield
        except (ChromaError, *refused) as error:
            if not self.place.url:
                raise Damaged(self.place, error) from error
            raise KnowledgeError(
                f"The Chroma server at {self.place.mark} cannot be used: {reason(error)}. The index itself is whole "
                "and keeps every vector. Start the server again (`chroma run`) and repeat, or unset "
                "WORKBENCH_CHROMA_URL; if the server has lost its files, run `workbench kb rebuild` with the name of "
                "the base."
            ) from error

    def count(self) -> int:
        """Return vectors kept."""
        with self._answering():
            return self._collection.count()

    def delete(self, ids: Sequence[str]) -> None:
        """Keep nothing under these ids."""
        self._collection.delete(ids=list(ids))

    def put(self, ids: Sequence[str], keys: Sequence[str], rows: np.ndarray) -> None:
        """Keep these vectors under these ids."""
        self._collection.upsert(
            ids=list(ids), embeddings=rows, metadatas=[{"key": key} for key in keys]
        )

    def stored_keys(self) -> Iterator[tuple[str, str]]:
        """Yield every id, with the key of its vector."""
        total = self._collection.count()
        for start in range(0, total, 10_000):
            page = self._collection.get(include=["metadatas"], limit=10_000, offset=start)
            yield from zip(
                page["ids"],
                (str((m or {}).get("key")) for m in page["metadatas"] or []),
                strict=True,
            )

    def nearest(self, query: np.ndarray, wanted: int) -> Sequence[str]:
        """Return what HNSW finds: nearly all of the best, not certainly.

        Raises:
            ModelError: the vector has another length than those that are kept: it is of another model.
        """
        from chromadb.errors import InvalidArgumentError, InvalidDimensionException

        try:
            hits = self._collection.query(query_embeddings=[query], n_results=wanted, include=[])
        except (InvalidArgumentError, InvalidDimensionException) as error:
            raise ModelError(
                f"The embedding model gave a vector of {len(query)} numbers ({error}): the server has another model "
                "now. Give it the old one, or `workbench kb rebuild` the knowledge base."
            ) from None
        return hits["ids"][0]

    def remove(self) -> None:
        """Delete the collection."""
        with self._answering():
            self._client.delete_collection(self._collection.name)


def _open_client(place: Place) -> Any:
    """Return a client; a server is asked whether it answers, and the wait for one that hangs has a limit."""
    import chromadb
    import chromadb.config

    settings = chromadb.config.Settings(anonymized_telemetry=False)
    if not place.url:
        return chromadb.PersistentClient(str(place.folder), settings=settings)
    parts = urlsplit(place.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("its address must be like http://localhost:8000")
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 8000)
    client: Any = chromadb.HttpClient(parts.hostname, port, ssl=secure, settings=settings)
    # chromadb sets none, and has no setting for it
    client._server._session.timeout = place.timeout_s
    return client


# --- The store of one base: opened, kept up with the index, forgotten ---


def vector_place(folder: Path, settings: Settings) -> Place:
    """Where the base in this folder has its vectors.

    Raises:
        MissingExtra: LanceDB is asked for and cannot be had.
    """
    kind = settings.vector_store
    if kind == "lancedb" and find_spec(kind) is None:
        raise MissingExtra("WORKBENCH_VECTOR_STORE=lancedb", kind)
    if kind == "lancedb" and settings.lancedb_path:
        shared_folder = Path(settings.lancedb_path).expanduser().absolute()
        return Place(shared_folder, kind=kind, shared=True)
    url = settings.chroma_url if kind == "chroma" else ""
    return Place(folder / kind, url, kind=kind, shared=bool(url))


def opened(place: Place, index: Index, *, make: bool = False) -> Store:
    """Return the store of this index; where many workspaces share one, by a name that the index keeps.

    One that many share and that does not have it is an error, unless it may be made there.
    """
    name = index.meta("chroma_collection") if place.shared else LOCAL
    if place.kind == "lancedb":
        lance = required("stores", "lancedb", "sources")(place, name, make=make)
        return lance
    return Chroma(place, name, make=make or not place.url)


def checked(place: Place, index: Index) -> Store:
    """Open the store of an index that it is said to be up to, and compare their counts.

    Raises:
        Damaged: the store does not hold a vector of each passage.
    """
    store = opened(place, index)
    ((passages,),), count = index.rows("SELECT count(*) FROM passages"), store.count()
    if count != passages:
        store.close()
        raise Damaged(place, f"there are {count:,} of {passages:,}", index.path.parent.name)
    return store


def _is_up_to(place: Place, index: Index) -> bool:
    """Check that a place holds what the index does now; what a server says is raised when it is searched."""
    if not place.holds(index, index.generation):
        return False
    try:
        if not place.url:
            checked(place, index).close()
    except Damaged:
        return False
    return True


def follow(place: Place, index: Index, tell: OnDone) -> bool:
    """Bring the store at this place up to the index, and make one in a folder again when it is damaged.

    Returns:
        Whether it was damaged.

    Raises:
        KnowledgeError: it cannot be written; the index itself is whole.
    """
    if _is_up_to(place, index):
        return False
    tell(0, 1)
    if place.shared and not index.meta("chroma_collection"):
        name = f"{index.path.parent.name.strip('.')}-{uuid.uuid4().hex[:12]}"
        index.set_meta("chroma_collection", name)
    for damaged in (False, True):
        try:
            with opened(place, index, make=True) as store:
                store.follow(index, tell)
            break
        except Damaged:
            # made of the index, so nothing is lost with it; the caller says that it was made anew
            if damaged:
                raise
            table = f"{index.meta('chroma_collection')}.lance" if place.shared else ""
            shutil.rmtree(place.folder / table)
    place.followed(index)
    tell(1, 1)
    return damaged


def damage(place: Place, path: Path) -> str:
    """Return what is wrong with the files of the store that follows the index in this file; "" where nothing is."""
    with closing(Index(path)) as index:
        try:
            if not place.url and place.holds(index, index.generation):
                with checked(place, index) as store:
                    deque(store.stored_keys(), maxlen=0)
        except KnowledgeError as error:
            return str(error)
    return ""


def forget(place: Place, path: Path) -> None:
    """Delete what a server or a shared folder holds of the index in this file, which is about to be removed.

    Raises:
        KnowledgeError: the server cannot be asked.
    """
    if not place.shared or not path.exists():
        return
    with closing(Index(path)) as index:
        if index.meta("chroma_at") == place.mark:
            with opened(place, index, make=True) as store:
                store.remove()
