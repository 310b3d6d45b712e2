"""The knowledge bases of a workspace: add to them, read them, remove them. One folder a base.

One process writes to a base at a time; readers continue, and see the new state with their next call. A killed ``add``
leaves the base as it was, and the next one continues with what is already computed.
"""

from __future__ import annotations

import re
import shutil
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from workbench.errors import KnowledgeError, UnknownKnowledge, WorkspaceBusy, shown
from workbench.knowledge import vocabulary as vocabularies
from workbench.knowledge.adding import Addition, AddReport
from workbench.knowledge.indexes import stores
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.knowledge_base import CorpusKnowledge
from workbench.knowledge.reading.corpus import Reading
from workbench.knowledge.reading.files import given_paths
from workbench.knowledge.rebuilding import READY, RebuildReport, rebuild, remember, settle
from workbench.records.lease import holder_in, locked, note_holder
from workbench.records.sqlite import translate_errors
from workbench.settings import Settings
from workbench.state import Progress

# without folders that Windows cannot have: a workspace may be copied there
_NAME = re.compile(r"(?!(?:general|con|nul|prn|aux|com[1-9]|lpt[1-9])\Z)[a-z0-9][a-z0-9_-]{0,63}")


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
        base: CorpusKnowledge | None = None
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
            remember(folder, files)
            if words := Path(vocabulary) if vocabulary else vocabularies.beside(files):
                vocabularies.keep(folder, words)
            index = Index(folder / "index.db", create=True)
            try:
                before = None if replace else index.connection()
                addition = Addition(index, folder, name, self._settings, tell, before)
                report = addition.run(reading, reading, files)
            finally:
                index.close()
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
            report = rebuild(name, folder, self._settings, lambda *_: None)
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
                settle(folder)
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
