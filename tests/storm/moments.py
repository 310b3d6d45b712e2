"""When a process is killed, and how it finds that moment in itself.

A process counts its own writes by SQLite's trace of statements, so a kill can fall between any two of them, whichever
database they go to: the runs, the conversations, the checkpoints, the index. Chroma's writes, the small files of
leases and holders, and files and folders that are made, copied, moved or removed are counted by their calls.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

_WRITE = re.compile(
    r"\s*(INSERT|UPDATE|DELETE|REPLACE|COMMIT|CREATE|ALTER|VACUUM|PRAGMA user_version\s*=)", re.IGNORECASE
)
_TABLE = re.compile(
    r"(?:INTO|UPDATE|FROM|TABLE|INDEX)\s+(?:IF NOT EXISTS\s+)?(?:OR \w+\s+)?[\"'`\[]?(\w+)", re.IGNORECASE
)


@dataclass(frozen=True)
class Moment:
    """A moment to be killed at.

    Attributes:
        kind: ``write`` (before the ``at``-th write), ``event`` (when the ``at``-th event of that name is heard),
            or ``time`` (``at`` seconds after the work began).
        name: of the event.
    """

    kind: Literal["write", "event", "time"]
    at: float
    name: str = ""


class Failpoints:
    """Counts the writes of this process, and kills it before the one that was drawn.

    Args:
        tell: takes a line for the process that watches.
        moment: when; None only counts and tells every write.
    """

    def __init__(self, tell: Callable[[dict[str, Any]], None], moment: Moment | None):
        self._tell, self._moment = tell, moment
        self._lock, self._count, self._last = threading.Lock(), 0, "the beginning"
        self._events: dict[str, int] = {}

    def install(self) -> None:
        """Watch every connection and file that is opened from now on."""
        connect = sqlite3.connect

        def traced(database: Any, *args: Any, **more: Any) -> sqlite3.Connection:
            connection = connect(database, *args, **more)
            place = Path(str(database)).name
            connection.set_trace_callback(lambda sql: self._statement(place, sql))
            return connection

        sqlite3.connect = traced  # type: ignore[assignment]
        import chromadb.api.models.Collection as chroma

        for name in ("upsert", "delete"):
            self._watch(chroma.Collection, name, f"chroma {name}")
        self._watch(Path, "write_text", "file")
        self._watch(os, "replace", "file in its place")
        self._watch(Path, "rename", "folder in its place")
        self._watch(shutil, "rmtree", "folder away")
        self._watch(shutil, "copyfile", "file copied")
        self._watch(os, "mkdir", "folder")
        self._watch(os, "unlink", "file away")
        self._watch(os, "rmdir", "empty folder away")

    def _watch(self, owner: Any, name: str, label: str) -> None:
        done = getattr(owner, name)

        def counted(*args: Any, **more: Any) -> Any:
            self._write(label)
            return done(*args, **more)

        setattr(owner, name, counted)

    def _statement(self, place: str, sql: str) -> None:
        if not _WRITE.match(sql):
            return
        verb = sql.split(None, 1)[0].upper()
        table = _TABLE.search(sql)
        self._write(f"{place} {verb.lower()}" + (f" {table[1]}" if table and verb != "COMMIT" else ""))

    def _write(self, label: str) -> None:
        with self._lock:
            before, self._last = self._last, label
            self._count += 1
            if self._moment is None:
                self._tell({"write": self._count, "gap": f"{before} | {label}"})
            elif self._moment.kind == "write" and self._count == self._moment.at:
                self._kill(f"{before} | {label}")

    def heard(self, event: str) -> None:
        """An event came; it may be the one at which this process ends."""
        with self._lock:
            self._tell({"heard": event})
            self._events[event] = self._events.get(event, 0) + 1
            moment = self._moment
            if moment and moment.kind == "event" and (moment.name, moment.at) == (event, self._events[event]):
                self._kill(f"at {event}")

    def _kill(self, where: str) -> None:
        self._tell({"killed": where, "moment": asdict(self._moment) if self._moment else None})
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()  # the signal comes before anything else is done


def line(message: dict[str, Any]) -> bytes:
    """A message as it goes through a pipe."""
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


class Told:
    """Where a process of its own tells: its standard output."""

    def fileno(self) -> int:
        return 1
