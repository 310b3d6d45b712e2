"""The knowledge bases of a workspace: add to them, read them, rebuild them, remove them. One folder a base.

One process writes to a base at a time; readers continue, and see the new state with their next call. A killed ``add``
leaves the base as it was, and the next one continues with what is already computed. The paths of every ``add`` are
noted in ``sources.json`` next to the index, so that a base whose index is destroyed can be rebuilt.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from workbench.errors import (
    KnowledgeError,
    UnknownKnowledge,
    WorkspaceBusy,
    WorkspaceError,
    shown,
)
from workbench.knowledge import vocabulary as vocabularies
from workbench.knowledge.adding import COLUMNS, Addition, AddReport, from_row
from workbench.knowledge.indexes import stores
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.knowledge_base import CorpusKnowledge
from workbench.knowledge.reading.corpus import Document, Reading
from workbench.knowledge.reading.files import Note, given_paths
from workbench.models.embeddings import text_model
from workbench.records.lease import holder_in, locked, note_holder
from workbench.records.sqlite import faults, translate_errors
from workbench.records.writing import write_file
from workbench.settings import Settings
from workbench.state import Progress

SOURCES = "sources.json"
READY = ".ready"
"""How the folder of a base ends that is made and not yet in its place."""
# without folders that Windows cannot have: a workspace may be copied there
_NAME = re.compile(r"(?!(?:general|con|nul|prn|aux|com[1-9]|lpt[1-9])\Z)[a-z0-9][a-z0-9_-]{0,63}")


@dataclass
class RebuildReport(AddReport):
    """The result of a rebuild: ``added`` counts all documents of the new index.

    Attributes:
        stored: documents whose files are gone; they came from the old index.
        missing: paths that were given once and are not there.
        kept: where the damaged base lies; empty when the old one was whole.
    """

    stored: int = 0
    missing: list[str] = field(default_factory=list)
    kept: str = ""


class Library:
    """Every knowledge base under one folder.

    Args:
        root: made when missing, at the first ``add``.
        settings: for every base opened here.
    """

    def __init__(self, root: Path, settings: Settings):
        self.root = Path(root)
        self._settings = settings
        self._open: dict[str, CorpusKnowledge] = {}
        self.reranker: Any = None
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Known names, sorted."""
        for ready in self.root.glob(f".*{READY}"):  # a rebuild was killed, or is just at it
            name = ready.name[1 : -len(READY)]
            if not (self.root / name).exists():
                with suppress(WorkspaceBusy), self.writing(name, make=False):
                    pass  # who holds it for writing finds it settled
        return sorted(
            p.parent.name for p in self.root.glob("*/index.db") if _NAME.fullmatch(p.parent.name)
        )

    def get(self, name: str) -> CorpusKnowledge:
        """Return the knowledge base of that name.

        Raises:
            UnknownKnowledge: with the known names.
            KnowledgeError: it was made with another embedding model, or cannot be read.
        """
        if not isinstance(name, str):
            raise UnknownKnowledge(name, self.names())
        with self._lock:
            if name in self._open and self._open[name].replaced:
                self._open.pop(name).close()
            if name not in self._open:
                self._open[name] = self._opened(name)
            self._open[name].reranker = self.reranker
            return self._open[name]

    def _opened(self, name: str) -> CorpusKnowledge:
        try:
            if name in self.names():
                base = CorpusKnowledge(name, self.root / name, self._settings)
                if base.generation:
                    return base
                base.close()
        except KnowledgeError:
            if name in self.names() and not self._is_held(name):
                raise
        if name not in self.names():  # never there, or removed while it was opened
            raise UnknownKnowledge(name, self.names())
        if self._is_held(name):
            raise WorkspaceBusy(
                f"Knowledge base {name!r} is being made by {self._holder(name)}. Ask when that is done."
            )
        raise KnowledgeError(
            f"Knowledge base {name!r} was never finished: its first `workbench kb add` was stopped. Run it again."
        )

    def _is_held(self, name: str) -> bool:
        return locked(self.root / f".{name}.lock")

    def _holder(self, name: str) -> str:
        return holder_in(self.root / f".{name}.holder.json") or "another process"

    def add(
        self,
        name: str,
        paths: Iterable[str | Path],
        *,
        vocabulary: str | Path | None = None,
        replace: bool = False,
        progress: Progress | None = None,
    ) -> AddReport:
        """Bring the documents of these files and folders into a base, which is made when it is not there.

        Again with the same files it follows what changed: a document that a given file no longer has is deleted, and so
        is one whose file is gone from a given folder. What did not change costs nothing.

        Args:
            name: of the base.
            paths: files and folders.
            vocabulary: a file that says what the words of their fields mean; None for the one that lies next to them,
                else the one that the base has.
            replace: put documents in the place of those that have the same ids and are of other files; else both are
                kept, and the id of the later ones begins with the name of their file.
            progress: is called with the progress.

        Raises:
            KnowledgeError: the name is not allowed, or the base was made with another embedding model.
            CorpusError: a path cannot be loaded.
            WorkspaceBusy: another process is writing to this base.
        """
        begun = time.monotonic()
        tell = progress or (lambda *_: None)
        files = given_paths(paths)
        with self.writing(check_name(name)) as folder:
            tell("read", 0, 0)
            reading = Reading(files)
            _remember(folder, files)
            if words := Path(vocabulary) if vocabulary else vocabularies.beside(files):
                vocabularies.keep(folder, words)
            with closing(Index(folder / "index.db", create=True)) as index:
                before = None if replace else index.connection()
                addition = Addition(index, folder, name, self._settings, tell, before)
                report = addition.run(reading, reading)
        report.seconds = round(time.monotonic() - begun, 3)
        return report

    def rebuild(self, name: str) -> RebuildReport:
        """Make a base again, from its files and, where those are gone, from the documents that its index kept.

        Raises:
            UnknownKnowledge: with the known names.
            KnowledgeError: neither its files nor its documents can be read; the base stays unchanged.
            WorkspaceBusy: another process is writing to it.
        """
        begun = time.monotonic()
        names = self.names()  # which settles what was killed
        if not (self.root / check_name(name)).is_dir():
            raise UnknownKnowledge(name, names)
        with self.writing(name) as folder:
            self._forget(name)
            report = _rebuild(name, folder, self._settings)
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
        with self.writing(name) as folder:
            self._forget(name)
            if folder.is_symlink():  # what it points at is somebody else's
                folder.unlink()
                return
            stores.forget(stores.vector_place(folder, self._settings), folder / "index.db")
            aside = folder.with_name(f".{name}.removed-{uuid.uuid4().hex[:8]}")
            folder.rename(aside)  # at once, so that nobody opens what is half removed
            shutil.rmtree(aside)

    def damage(self, name: str) -> str:
        """Return what is wrong with the files in which the vectors of a base are searched; "" where nothing is."""
        folder = self.root / name
        return stores.damage(stores.vector_place(folder, self._settings), folder / "index.db")

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
    def writing(self, name: str, *, make: bool = True) -> Iterator[Path]:
        """Hold the base for writing; its folder. The lock lies next to it, so that the folder can be removed under it.

        Args:
            name: of the base.
            make: the folder, when it is not there.

        Raises:
            WorkspaceBusy: another process is writing to it.
            WorkspaceError: the folder cannot be written.
        """
        from filelock import FileLock, Timeout

        lock = FileLock(self.root / f".{name}.lock")
        holder = self.root / f".{name}.holder.json"
        with translate_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            try:
                # A process that checks the lock holds it for a moment.
                lock.acquire(timeout=0.2)
            except Timeout:
                raise WorkspaceBusy(
                    f"Knowledge base {name!r} is being written by {self._holder(name)}. Wait for it to end, or end it."
                ) from None
        folder = self.root / name
        try:
            with translate_errors(self.root):
                note_holder(holder)
                _settle(folder)
                if make:
                    folder.mkdir(exist_ok=True)
            yield folder
        finally:
            holder.unlink(missing_ok=True)
            # nothing is done under this lock any more; who waits for it makes a new one
            if not folder.exists():
                Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()


def check_name(name: str) -> str:
    """Return the name, if a base may have it.

    >>> check_name("papers")
    'papers'

    Raises:
        KnowledgeError: with what is allowed.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise KnowledgeError(
            f"A knowledge base cannot be named {shown(name)}. Use up to 64 of a-z, 0-9, - and _, beginning with a "
            "letter or digit; 'general' means: no retrieval, and Windows keeps names like 'con' and 'nul' for itself."
        )
    return name


# --- A base is rebuilt: from the files that were given, and where those are gone from its documents ---


def _remember(folder: Path, new_paths: Sequence[Path]) -> None:
    """Note the paths of an ``add``, next to those of before."""
    paths = sorted({*_remembered(folder), *(path.resolve().as_posix() for path in new_paths)})
    note = json.dumps({"paths": paths}, ensure_ascii=False, indent=1)
    write_file(folder / SOURCES, note.encode(), replace=True, kind=WorkspaceError)


def _remembered(folder: Path) -> list[str]:
    """Return every path that was ever given; none where the note is missing or cannot be read."""
    try:
        return [str(path) for path in json.loads((folder / SOURCES).read_text("utf-8"))["paths"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _rebuild(name: str, folder: Path, settings: Settings) -> RebuildReport:
    """Make the base in this folder again, while it is held for writing.

    The new one is made next to the old one and takes its place at once; a damaged one is kept. Files and old documents
    are read a few at a time, so that no corpus is in memory.

    Raises:
        KnowledgeError: neither its files nor its documents can be read; it stays unchanged.
    """
    paths = [Path(path) for path in _remembered(folder)]
    report = RebuildReport(name, missing=[str(path) for path in paths if not path.exists()])
    old_file = folder / "index.db"
    intact = old_file.exists() and not faults(old_file)
    new = Path(tempfile.mkdtemp(prefix=f".{name}.rebuild-", dir=folder.parent))
    try:
        if (folder / vocabularies.FILE).exists():
            vocabularies.keep(new, folder / vocabularies.FILE)
        reading = Reading([path for path in paths if path.exists()])
        # a damaged index has nothing to give, as an empty one
        with (
            closing(sqlite3.connect(old_file if intact else ":memory:")) as old,
            closing(Index(new / "index.db", create=True)) as index,
        ):
            if intact:
                _copy_state(old, index, settings)
            addition = Addition(
                index, new, name, settings, lambda *_: None, old if intact else None
            )
            documents = chain(reading, _remaining(reading, old, report) if intact else ())
            added = addition.run(documents, reading)
        if not added.added and (report.missing or not paths):
            where = (
                f"gone: {', '.join(report.missing)}. Put them back"
                if paths
                else "not noted. Remove it, add them again"
            )
            raise KnowledgeError(
                f"The index of {name!r} cannot be read, and its files are {where}, and run this."
            )
        report.added, report.problems = added.added, added.problems
        if paths:
            _remember(new, paths)
        report.kept = _swap(folder, new, intact)
    finally:
        shutil.rmtree(new, ignore_errors=True)  # gone already, unless it was not finished
    return report


def _copy_state(old: sqlite3.Connection, index: Index, settings: Settings) -> None:
    """Copy the generation and the model."""
    meta = dict(old.execute("SELECT key, value FROM meta"))
    # so that who has the old one open sees a newer one
    index.set_meta("generation", meta.get("generation", "0"))
    model = meta.get("embedding_model", "")
    # another one in the settings is meant
    if model and text_model(settings, model).name == model:
        index.set_meta("embedding_model", model)


def _remaining(
    reading: Reading, old: sqlite3.Connection, report: RebuildReport
) -> Iterator[Document]:
    """Yield the old documents whose file is gone or cannot be read, after the files have been read."""
    broken = {
        Path(p["file"]).resolve().as_posix()
        for p in reading.problems
        if p["line"] == 0 and not isinstance(p["reason"], Note)
    }
    read = reading.sources - broken
    rows = old.execute(f"SELECT {COLUMNS} FROM documents ORDER BY rowid")
    for document in map(from_row, rows):
        if document.doc_id not in reading.places and document.source not in read:
            report.stored += 1
            yield document


def _swap(folder: Path, new: Path, intact: bool) -> str:
    """Put the new base in the place of the old one; return where a damaged one is kept."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    aside = folder.with_name(f".{folder.name}.{'replaced' if intact else 'broken'}-{stamp}")
    new.rename(folder.with_name(f".{folder.name}{READY}"))
    folder.rename(aside)
    _settle(folder)
    if not intact:
        return str(aside)
    if aside.is_symlink():  # its target belongs to somebody else
        aside.unlink()
    else:
        shutil.rmtree(aside)
    return ""


def _settle(folder: Path) -> None:
    """End a swap that was killed, while the base is held for writing: what was ready takes the empty place.

    Where the old base still stands, the kill came before anything was moved; the next rebuild makes it again.
    """
    ready = folder.with_name(f".{folder.name}{READY}")
    if not ready.exists():
        return
    if folder.exists():
        shutil.rmtree(ready)
    else:
        ready.rename(folder)
