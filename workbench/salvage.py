"""What can still be read of a damaged SQLite file, row by row. The file itself is never written to."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from workbench.sqlite import named

_HEAD = 4096
_MISSES = 100_000
"""How far to look on behind the last row that was read, where the file does not say how many there are."""
_FURTHEST = 1_000_000
"""How far to look on where it does: a damaged file may say 2**62."""


def faults(path: Path) -> list[str]:
    """What SQLite finds wrong with a file; nothing when it is whole. A file without a byte is not whole.

    Raises:
        WorkspaceBusy: another process holds it.
        WorkspaceError: it cannot be opened at all.
    """
    if path.stat().st_size == 0:
        return ["it is empty"]
    try:
        with named(path), closing(sqlite3.connect(path, timeout=5)) as connection:
            said = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
            return [] if said == ["ok"] else said
    except Exception as error:
        if isinstance(error.__cause__, sqlite3.DatabaseError) and "damaged" in str(error):
            return [str(error.__cause__)]
        raise


@contextmanager
def readable(path: Path, fresh: Path) -> Iterator[sqlite3.Connection]:
    """A copy of the file that opens, if need be with the first page of a fresh file of the same tables.

    The first page says where each table begins, and that is the same in every file that was made by the same steps; so
    a file whose first page is lost can be read as long as its others are there. The copy lies beside the fresh file.
    """
    with tempfile.TemporaryDirectory(dir=fresh.parent) as folder:
        copy = Path(folder) / path.name
        for suffix in ("", "-wal"):
            if Path(f"{path}{suffix}").exists():
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        if not tables(fresh) <= tables(copy):
            _with_head(copy, fresh)
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            yield connection


def tables(path: Path) -> set[str]:
    """The tables that the file says it has; none when it says nothing."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            return {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    except sqlite3.DatabaseError:  # that it cannot even say this is the answer
        return set()


def _with_head(copy: Path, fresh: Path) -> None:
    pages = max(fresh.stat().st_size, copy.stat().st_size) // _HEAD  # a table that begins behind the end stops all
    head = bytearray(fresh.read_bytes()[:_HEAD])
    head[28:32] = pages.to_bytes(4, "big")
    head[32:40] = bytes(8)  # no list of free pages
    with copy.open("r+b") as file:
        file.write(head)
        file.truncate(pages * _HEAD)


class Rows:
    """The rows of one table, oldest first, and how many could not be read.

    Attributes:
        lost: known after the last row.
    """

    def __init__(self, connection: sqlite3.Connection, table: str, columns: list[str]):
        self._connection, self.lost = connection, 0
        self._select = f"SELECT rowid, {', '.join(columns)} FROM {table} WHERE rowid"
        self._newest = f"SELECT max(rowid) FROM {table}"

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """``(rowid, *columns)``."""
        last = 0
        while True:
            try:
                for row in self._connection.execute(f"{self._select} > ? ORDER BY rowid", (last,)):
                    if row[0] > last:  # damaged pages may be out of order, and would be read again and again
                        last = row[0]
                        yield row
                return
            except sqlite3.DatabaseError:  # a damaged page: go around it, one row at a time, and count
                found = self._next(last)
            if found is None:
                return
            last = found[0]
            yield found

    def _next(self, last: int) -> tuple[Any, ...] | None:
        try:
            end = self._connection.execute(self._newest).fetchone()[0] or last
        except sqlite3.DatabaseError:  # then nobody knows
            end = last + _MISSES
        end, missed = min(end, last + _FURTHEST), 0
        for rowid in range(last + 1, end + 1):
            try:
                row = self._connection.execute(f"{self._select} = ?", (rowid,)).fetchone()
            except sqlite3.DatabaseError:
                missed += 1
                continue
            if row:
                self.lost += missed
                return row
        self.lost += missed if end - last < _MISSES else 1
        return None
