"""Tables of an index that are made anew: in SQLite's temporary file, and brought in at the end as they are ordered.

Rows come in the order of the texts, keys in no order, so that a page of a large table is written many times. In the
temporary file that costs no log and no search in one; what is brought in is written once, page after page. Until then
the index is as it was: everything happens in the transaction of who calls.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from workbench.errors import WorkspaceFull
from workbench.sqlite import FULL


@contextmanager
def made_beside(connection: sqlite3.Connection, tables: Sequence[str], memory_kb: int) -> Iterator[None]:
    """Inside the block these tables are empty ones beside those of the index, which they replace when it ends.

    Args:
        connection: inside a transaction; what is read and written through it finds the tables by their names.
        tables: with a primary key and without row ids.
        memory_kb: of the pages of the temporary file that stay in memory.

    Raises:
        WorkspaceFull: there is no room in the index's folder or in that of the temporary file.
    """
    marks = ", ".join("?" * len(tables))
    sql = f"SELECT name, tbl_name, sql FROM main.sqlite_master WHERE type = ? AND tbl_name IN ({marks}) AND sql != ''"
    made = connection.execute(sql, ("table", *tables)).fetchall()
    indexes = connection.execute(sql, ("index", *tables)).fetchall()
    connection.execute(f"PRAGMA temp.cache_size = -{memory_kb}")
    for _, _, create in made:
        connection.execute(create.replace("CREATE TABLE ", "CREATE TEMP TABLE ", 1))
    for _, _, create in indexes:
        connection.execute(create.replace("CREATE INDEX ", "CREATE INDEX temp.", 1))
    with _naming_both():
        yield
    for name, _, _ in indexes:
        connection.execute(f"DROP INDEX main.{name}")
    for name, _, _ in made:
        connection.execute(f"DELETE FROM main.{name}")
        connection.execute(f"INSERT INTO main.{name} SELECT * FROM temp.{name}")
        connection.execute(f"DROP TABLE temp.{name}")
    for _, _, create in indexes:
        connection.execute(create)


@contextmanager
def _naming_both() -> Iterator[None]:
    """Where there is no room, SQLite does not say in which of the two files."""
    try:
        yield
    except (sqlite3.Error, WorkspaceFull) as error:
        code = getattr(error, "sqlite_errorcode", None) or 0
        if isinstance(error, WorkspaceFull) or code & 0xFF in FULL:
            also = f"It may be {temporary_folder()}, where the graph is made (SQLITE_TMPDIR names another folder)."
            raise WorkspaceFull(f"{error}. {also}".replace("..", ".")) from error
        raise


@cache
def temporary_folder() -> str:
    """Where SQLite keeps temporary tables: in the first of these folders that can be written."""
    folders = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp")
    usable = (folder for folder in folders if folder and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK))
    return next(usable, tempfile.gettempdir())
