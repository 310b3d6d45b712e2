"""Who is alive: each open workspace holds a locked file, and the kernel releases it when the process dies.

A lock says more than a heartbeat: a laptop that slept keeps its runs, and a killed process loses them at once.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock

from workbench.records.sqlite import translate_errors


class Lease:
    """The lease of one open workspace.

    Args:
        folder: of the leases.

    Attributes:
        owner: the name under which runs are held.

    Raises:
        WorkspaceError: the folder cannot be written.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.owner = uuid.uuid4().hex[:12]
        self._lock = FileLock(folder / f"{self.owner}.lock")
        with translate_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            # A process that asks whether a lock is held, or removes what a dead process left, holds
            # it for a moment too.
            self._lock.acquire(timeout=5.0)
            try:
                note_holder(folder / f"{self.owner}.json")
            except OSError:  # a full disk; leave no lock without its holder
                self.release()
                raise
            stale(folder, remove=True)

    def alive(self, owner: str | None) -> bool:
        """Return whether the process that took this lease still lives."""
        return bool(owner) and (owner == self.owner or locked(self.folder / f"{owner}.lock"))

    def holder(self, owner: str) -> str:
        """Describe the holder, for a message."""
        return holder_in(self.folder / f"{owner}.json") or f"another process (lease {owner})"

    def release(self) -> None:
        """Let go; safe to call twice."""
        self._lock.release()
        for suffix in (".json", ".lock"):
            (self.folder / f"{self.owner}{suffix}").unlink(missing_ok=True)


def note_holder(path: Path) -> None:
    """Write next to a lock which process holds it."""
    since = datetime.now(UTC).isoformat("T", "seconds")
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
    path.write_text(json.dumps(holder), encoding="utf-8")


def holder_in(path: Path) -> str:
    """Describe the process that a file names, or return "".

    The file is written right after the lock is taken, so it may be missing for a moment.
    """
    with suppress(OSError, ValueError, KeyError, TypeError):
        holder = json.loads(path.read_text("utf-8"))
        return f"process {holder['pid']} on {holder['host']} (since {holder['since']})"
    return ""


def stale(folder: Path, *, remove: bool = False) -> list[Path]:
    """Return the files that processes have left which no longer live, sorted; with ``remove`` they are gone.

    They go while their lock is held, so that one who is about to take it sees that, and makes a new one.
    """
    leftovers = []
    for lock in sorted(folder.glob("*.lock")):
        with taken(lock, shared=not remove) as mine:
            files = [path for path in (lock.with_suffix(".json"), lock) if mine and path.exists()]
            for path in files if remove else ():
                path.unlink(missing_ok=True)
        leftovers += files
    lone = sorted(
        path for path in folder.glob("*.json") if not path.with_suffix(".lock").exists()
    )
    for path in lone if remove else ():
        path.unlink(missing_ok=True)
    return leftovers + lone


def locked(path: Path) -> bool:
    """Check whether a process holds the lock of a file or folder that is there."""
    # a shared one, so that two who ask at once do not see each other
    with taken(path, shared=True) as mine:
        return not mine and path.exists()


@contextmanager
def taken(path: Path, *, shared: bool = False, wait: bool = False) -> Iterator[bool]:
    """Hold the lock of a file or folder inside the block; whether that can be had.

    Args:
        path: what is locked; the kernel releases it when the process dies.
        shared: others may hold it too who share it.
        wait: until it can be had.
    """
    import fcntl

    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # released just now
        yield False
        return
    try:
        fcntl.flock(
            handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
        )
        mine = True
    except BlockingIOError:
        mine = False
    try:
        yield mine
    finally:
        os.close(handle)
