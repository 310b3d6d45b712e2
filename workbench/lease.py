"""Who is alive: each open workspace holds a locked file, and the kernel lets go of it when the process dies.

A lock says more than a heartbeat: a laptop that slept keeps its runs, and a killed process loses them at once.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock

from workbench.sqlite import named

_YOUNG_S = 60.0


class Lease:
    """The lease of one open workspace.

    Attributes:
        owner: the name under which runs are held.

    Raises:
        WorkspaceError: the folder cannot be written.
    """

    def __init__(self, folder: Path):
        self.folder, self.owner = folder, uuid.uuid4().hex[:12]
        self._lock = FileLock(folder / f"{self.owner}.lock")
        with named(folder):
            self._take()

    def _take(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock.acquire(timeout=0)
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now(UTC).isoformat("T", "seconds"),
        }
        try:
            (self.folder / f"{self.owner}.json").write_text(json.dumps(holder), encoding="utf-8")
        except OSError:  # a full disk; leave no lock that nobody explains
            self.release()
            raise
        self._sweep()

    def alive(self, owner: str | None) -> bool:
        """Whether the process that took this lease still lives."""
        if not owner:
            return False
        if owner == self.owner:
            return True
        path = self.folder / f"{owner}.lock"
        return path.exists() and _locked(path)

    def holder(self, owner: str) -> str:
        """The holder in words, for a message.

        The file is written right after the lock is taken, so it may be missing for a moment.
        """
        with suppress(FileNotFoundError, ValueError):
            known = json.loads((self.folder / f"{owner}.json").read_text(encoding="utf-8"))
            return f"process {known['pid']} on {known['host']} (since {known['since']})"
        return f"another process (lease {owner})"

    def release(self) -> None:
        """Let go; safe to call twice."""
        self._lock.release()
        self._remove(self.owner)

    def _sweep(self) -> None:
        for path in self.folder.glob("*.json"):
            if not self.alive(path.stem):
                self._remove(path.stem)

    def _remove(self, owner: str) -> None:
        for suffix in (".json", ".lock"):
            (self.folder / f"{owner}{suffix}").unlink(missing_ok=True)


def dead(folder: Path) -> list[Path]:
    """The files that processes have left which no longer live, sorted.

    A lock is taken before it is explained, so one without its explanation may be just about to be taken: it counts as
    dead after ``_YOUNG_S``.
    """
    found = []
    for lock in sorted(folder.glob("*.lock")):
        explained = lock.with_suffix(".json")
        young = not explained.exists() and time.time() - lock.stat().st_mtime < _YOUNG_S
        if not young and not _locked(lock):
            found += [path for path in (explained, lock) if path.exists()]
    return found + sorted(path for path in folder.glob("*.json") if not path.with_suffix(".lock").exists())


def _locked(path: Path) -> bool:
    """Whether somebody holds the lock; asked by a shared one, so that two who ask at once do not see each other."""
    import fcntl

    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:  # let go of just now
        return False
    except BlockingIOError:
        return True
    return False
