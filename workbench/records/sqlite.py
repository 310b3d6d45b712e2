"""SQLite files: opened, their tables made, their errors in words, and what is wrong with a damaged one."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError, WorkspaceBusy, WorkspaceError, WorkspaceFull
from workbench.extensions import importing_without
from workbench.state import Json

FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
READ_ONLY = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}

REPAIR = "Put back a copy that `workbench backup` made, or save what can be read with SQLite's own `.recover`."
_FREE = "Free some space and try again; what was stored before is kept."
_ELSEWHERE = "Make the folder writable, or name another place for the workspace."
PATIENCE_S = 30.0
"""How long a writer waits for another."""
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def translate_errors(
    path: Path | str, kind: type[WorkbenchError] = WorkspaceError, fix: str = REPAIR
) -> Iterator[None]:
    """Raise what SQLite or the system refuses in the block as an error of ours.

    Args:
        path: the file that the block works on.
        kind: of the error for a file that is damaged or cannot be opened.
        fix: what to do about a damaged file.

    Raises:
        WorkspaceFull: there is no room to write.
        WorkspaceBusy: another process holds the file.
        WorkspaceError: the file or its folder is read-only.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise explained(error, path, kind, fix) from error
    except OSError as error:
        raise refused(error, path) from error
    except (json.JSONDecodeError, UnicodeDecodeError, zlib.error) as error:
        raise kind(
            f"{path} is damaged: it does not hold what was written ({error}). {fix}"
        ) from error


def explained(
    error: sqlite3.Error,
    path: Path | str,
    kind: type[WorkbenchError] = WorkspaceError,
    fix: str = REPAIR,
) -> WorkbenchError:
    """Return an error of SQLite as one of ours.

    >>> explained(sqlite3.DatabaseError("file is not a database"), "a.db").args[0][:28]
    'a.db: file is not a database'
    """
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if code is not None else None
    if primary in FULL:
        return WorkspaceFull(
            f"{path} cannot be written or read: {error}. The disk may be full. {_FREE}"
        )
    folder = Path(path).parent  # one that is gone was removed, not locked
    if primary in READ_ONLY or (
        primary == sqlite3.SQLITE_CANTOPEN and folder.is_dir() and not os.access(folder, os.W_OK)
    ):
        return WorkspaceError(f"{path} is read-only ({error}). {_ELSEWHERE}")
    if primary in BUSY:
        return WorkspaceBusy(
            f"{path} is held by another process ({error}). Wait for it to end, or end it."
        )
    if primary == sqlite3.SQLITE_CANTOPEN:
        return kind(
            f"{path} cannot be opened: {error}. Look whether its folder is there and can be written."
        )
    if primary in DAMAGED:
        return kind(f"{path} is damaged: {error}. {fix}")
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return kind(f"{path} is closed. Open the workspace again.")
    return kind(f"{path}: {error}. {fix}")


def refused(error: OSError, path: Path | str) -> WorkbenchError:
    """Return an error of the file system as one of ours.

    >>> str(refused(OSError(errno.EROFS, "Read-only file system"), "ws")).split(".")[0]
    'ws cannot be written: Read-only file system'
    """
    message = f"{error.filename or path} cannot be written: {error.strerror or error}."
    if error.errno in _NO_ROOM:
        return WorkspaceFull(f"{message} {_FREE}")
    return WorkspaceError(f"{message} {_ELSEWHERE}")


def begin_with_log(connection: sqlite3.Connection) -> None:
    """Give the file a write-ahead log, in which readers do not stop the writer, and syncs that a kill needs; what is
    deleted is overwritten.

    SQLite does not wait for its lock here alone: two processes may make a workspace at the same moment.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA secure_delete = ON")


def create_tables(connection: sqlite3.Connection, script: str, version: int) -> None:
    """Make the tables of a new file, all or none; of two processes at once the second one finds them made.

    Args:
        connection: with nothing begun.
        script: the statements, each of which changes nothing when it is executed again.
        version: of the tables; ``PRAGMA user_version`` is 0 before they are there.
    """
    if not connection.execute("PRAGMA user_version").fetchone()[0]:
        with connection:
            connection.executescript(
                f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {version}; COMMIT;"
            )


@cache
def _database() -> Any:
    """Return the class of sqlite-utils, without pandas: that takes longer than all of the rest."""
    with importing_without("pandas", "sqlite_utils"):
        from sqlite_utils import Database
    return Database


class Tables:
    """A file of tables as sqlite-utils opens it; one connection behind a lock, each write its own transaction.

    Args:
        path: the file.
        script: makes the tables, where they are not made elsewhere.
        version: of the tables.
    """

    def __init__(self, path: Path | str, script: str = "", version: int = 0):
        self._path = path
        self._lock = threading.RLock()
        with translate_errors(path):
            connection = sqlite3.connect(
                path, check_same_thread=False, timeout=PATIENCE_S, isolation_level=None
            )
            connection.row_factory = sqlite3.Row
            try:
                connection.execute("PRAGMA foreign_keys = ON")
                begin_with_log(connection)
                if script:
                    create_tables(connection, script, version)
                self._db = _database()(connection)
            except BaseException:
                connection.close()
                raise

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._db.conn.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection; what was written is undone where the block raises.

        The write lock is taken at once, so that two processes wait for each other instead of failing.
        """
        connection = self._db.conn
        with self._lock, translate_errors(self._path):
            connection.execute("BEGIN IMMEDIATE")
            with connection:  # commits, or rolls back
                yield connection

    def write(self, sql: str, values: Iterable[Any]) -> int:
        """Execute one statement, and return how many rows it changed."""
        with self.transaction() as connection:
            return connection.execute(sql, tuple(values)).rowcount

    def rows(self, sql: str, values: Iterable[Any] = ()) -> list[Json]:
        """Return the rows of a query."""
        with (
            self._lock,
            translate_errors(self._path),
            closing(self._db.execute(sql, tuple(values))) as cursor,
        ):
            return [dict(row) for row in cursor.fetchall()]


def faults(path: Path) -> list[str]:
    """Return what SQLite finds wrong with a file; nothing when it is whole. A file without a byte is not whole.

    Raises:
        WorkspaceBusy: another process holds it.
        WorkspaceError: it cannot be opened at all.
    """
    if path.stat().st_size == 0:
        return ["it is empty"]
    try:
        with translate_errors(path), closing(sqlite3.connect(path, timeout=5)) as connection:
            problems = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
            return [] if problems == ["ok"] else problems
    except Exception as error:  # by its cause: it may be of a locked or a missing file too
        if isinstance(error.__cause__, sqlite3.DatabaseError) and "damaged" in str(error):
            return [str(error.__cause__)]
        raise
