"""Which store holds the vectors of a base (``settings.vector_store``): opened, kept up with the index, forgotten."""

from __future__ import annotations

import shutil
import uuid
from collections import deque
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from workbench.errors import KnowledgeError, MissingExtra
from workbench.extensions import required
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.indexes.store import LOCAL, Damaged, OnDone, Place, Store, ignore
from workbench.settings import Settings


def vector_place(folder: Path, settings: Settings) -> Place:
    """Where the base in this folder has its vectors.

    Raises:
        MissingExtra: LanceDB is asked for and cannot be had.
    """
    if settings.vector_store == "chroma":
        return Place(folder / "chroma", settings.chroma_url)
    if find_spec("lancedb") is None:
        raise MissingExtra("WORKBENCH_VECTOR_STORE=lancedb", "lancedb")
    if settings.lancedb_path:
        return Place(
            Path(settings.lancedb_path).expanduser().absolute(), kind="lancedb", shared=True
        )
    return Place(folder / "lancedb", kind="lancedb")


def opened(place: Place, index: Index, *, make: bool = False) -> Store:
    """Return the store of this index; where many workspaces share one, by a name that the index keeps.

    One that many share and that does not have it is an error, unless it may be made there.
    """
    name = index.meta("chroma_collection") if place.url or place.shared else LOCAL
    if place.kind == "lancedb":
        lance: Store = required("stores", "lancedb", "sources")(place, name, make=make)
        return lance
    from workbench.knowledge.indexes.chroma import Chroma

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


def is_up_to(place: Place, index: Index) -> bool:
    """Check that a place holds what the index does now; what a server says is raised when it is searched."""
    if not place.holds(index, index.generation):
        return False
    try:
        if not place.url:
            checked(place, index).close()
    except Damaged:
        return False
    return True


def follow(place: Place, index: Index, tell: OnDone = ignore) -> bool:
    """Bring the store at this place up to the index, and make one in a folder again when it is damaged.

    Returns:
        Whether it was damaged.

    Raises:
        KnowledgeError: it cannot be written; the index itself is whole.
    """
    if (place.url or place.shared) and not index.meta("chroma_collection"):
        index.set_meta(
            "chroma_collection", f"{index.path.parent.name.strip('.')}-{uuid.uuid4().hex[:12]}"
        )
    for damaged in (False, True):
        try:
            with opened(place, index, make=True) as store:
                store.follow(index, tell)
            break
        except Damaged:
            # made of the index, so nothing is lost with it; the caller says that it was made anew
            if damaged:
                raise
            shutil.rmtree(
                place.folder / f"{index.meta('chroma_collection')}.lance"
                if place.shared
                else place.folder
            )
    place.followed(index)
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
    if not (place.url or place.shared) or not path.exists():
        return
    with closing(Index(path)) as index:
        if index.meta("chroma_at") == place.mark:
            with opened(place, index, make=True) as store:
                store.remove()
