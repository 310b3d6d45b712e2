"""What a workspace no longer needs: counted, and with ``yes`` freed. What runs, waits or can be gone on with is kept.

Every kind is found and deleted inside one transaction a file, so a process that works on the workspace meanwhile loses
nothing, and a prune that is killed leaves what it had not come to for the next one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

from workbench.errors import WorkspaceBusy
from workbench.knowledge.leftovers import half_done, held, leftovers, remove
from workbench.knowledge.library import Library
from workbench.lease import dead, taken
from workbench.runs import TABLES
from workbench.sqlite import named

BUSY_S = 5.0
_ENDED = "status IN ('done', 'failed', 'cancelled') AND owner IS NULL"
_SIZES = {
    "plans": "length(plan)",
    "records": "length(record)",
    "bodies": "length(body)",
    "decisions": "length(decision)",
    "events": "length(event)",
    "tapes": "length(effects)",
    "drafts": "length(text)",
    "runs": "length(message) + length(options) + ifnull(length(result), 0)",
}


class Freed(TypedDict):
    """One kind of what is no longer needed."""

    kind: str
    count: int
    bytes: int
    detail: str


def prune(
    path: Path, library: Library, *, older_than: float | None, keep: int | None, yes: bool, tapes: bool = False
) -> list[Freed]:
    """Count what can go, and with ``yes`` let it go.

    Args:
        path: the workspace.
        library: its knowledge bases.
        older_than: runs that ended before so many days go; None lets none go for its age.
        keep: the newest so many ended runs stay, the others go; None lets none go for its place.
        yes: do it.
        tapes: the tapes of ended runs go too; what they did stays, and they can no longer be replayed.

    Returns:
        One entry a kind, in the order in which it was done.

    Raises:
        WorkspaceError: a file of the workspace is damaged, full or read-only.
    """
    runs, checkpoints = path / "workbench.db", path / "checkpoints.db"
    freed = [_runs(runs, older_than, keep, yes), _bodies(runs, yes)]
    if tapes:
        freed.append(_tapes(runs, yes))
    if checkpoints.exists():
        freed += _checkpoints(runs, checkpoints, {} if yes else _chosen(runs, older_than, keep), yes)
    freed += left_behind(path, library, delete=yes)
    freed += kept(path, library)
    for name in library.names():
        freed.append(_index(library, name, yes))
    files = [runs, checkpoints, *(library.root / name / "index.db" for name in library.names())]
    freed += [_compacted(file, yes) for file in files if file.exists()]
    return [found for found in freed if found["count"] or found["bytes"] or found["detail"]]


def _chosen(path: Path, older_than: float | None, keep: int | None) -> dict[str, None]:
    with _transaction(path, write=False) as connection:
        return dict.fromkeys(_goners(connection, older_than, keep))


def _goners(connection: sqlite3.Connection, older_than: float | None, keep: int | None) -> list[str]:
    """Ended runs that are too old, or too many."""
    ended = connection.execute(
        f"SELECT run_id, ifnull(ended_at, created_at) FROM runs WHERE {_ENDED} ORDER BY created_at DESC, run_id"
    ).fetchall()
    limit = None if older_than is None else (datetime.now(UTC) - timedelta(days=older_than)).isoformat()
    return [
        run_id
        for place, (run_id, at) in enumerate(ended)
        if (limit is not None and at < limit) or (keep is not None and place >= keep)
    ]


def _tapes(path: Path, yes: bool) -> Freed:
    ended = f"run_id IN (SELECT run_id FROM runs WHERE {_ENDED})"
    with _transaction(path, write=yes) as connection:
        count = _sum(connection, f"SELECT count(DISTINCT run_id) FROM tapes WHERE {ended}")
        size = _sum(connection, f"SELECT sum({_SIZES['tapes']}) FROM tapes WHERE {ended}")
        if yes:
            connection.execute(f"DELETE FROM tapes WHERE {ended}")
    return Freed(kind="tapes of ended runs", count=count, bytes=size, detail="")


def _runs(path: Path, older_than: float | None, keep: int | None, yes: bool) -> Freed:
    with _transaction(path, write=yes) as connection:
        goners, size = _goners(connection, older_than, keep), 0
        for run_id in goners:
            for table in TABLES:
                size += _sum(connection, f"SELECT sum({_SIZES[table]}) FROM {table} WHERE run_id = ?", run_id)
                if yes:
                    connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
    return Freed(kind="runs", count=len(goners), bytes=size, detail="")


def _bodies(path: Path, yes: bool) -> Freed:
    """Rows of runs that are no longer there."""
    count = size = 0
    with _transaction(path, write=yes) as connection:
        for table in TABLES[:-1]:
            where = f"FROM {table} WHERE run_id NOT IN (SELECT run_id FROM runs)"
            size += _sum(connection, f"SELECT sum({_SIZES[table]}) {where}")
            count += _sum(connection, f"SELECT count(*) {where}")
            if yes:
                connection.execute(f"DELETE {where}")
    return Freed(kind="rows without a run", count=count, bytes=size, detail="")


def _checkpoints(runs: Path, path: Path, going: dict[str, None], yes: bool) -> list[Freed]:
    """Checkpoints that nobody goes on from: of finished runs, of cancelled ones all but the last, of unknown runs.

    The threads are read before the runs: a run has its row before its first checkpoint, so no new one is unknown.
    """
    freed = []
    with _transaction(path, write=yes) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if not {"checkpoints", "writes"} <= tables:
            return []
        threads = {row[0] for row in connection.execute("SELECT DISTINCT thread_id FROM checkpoints")}
        threads |= {row[0] for row in connection.execute("SELECT DISTINCT thread_id FROM writes")}
        with _transaction(runs, write=False) as known:
            rows = known.execute("SELECT run_id, status, owner, result IS NOT NULL FROM runs").fetchall()
        done = {i for i, status, owner, result in rows if status == "done" and owner is None and result}
        cancelled = {i for i, status, owner, _ in rows if status == "cancelled" and owner is None}
        unknown = threads - {row[0] for row in rows} | threads & set(going)
        for kind, found, where in (
            ("checkpoints of finished runs", threads & done - unknown, "thread_id = ?"),
            ("checkpoints of cancelled runs", threads & cancelled - unknown, f"thread_id = ? AND {_NOT_LAST}"),
            ("checkpoints of removed runs", unknown, "thread_id = ?"),
        ):
            freed.append(_drop(connection, kind, sorted(found), where, yes))
    return freed


_NOT_LAST = (
    "checkpoint_id NOT IN (SELECT max(checkpoint_id) FROM checkpoints AS last "
    "WHERE last.thread_id = {table}.thread_id AND last.checkpoint_ns = {table}.checkpoint_ns)"
)


def _drop(connection: sqlite3.Connection, kind: str, threads: list[str], where: str, yes: bool) -> Freed:
    count = size = 0
    sizes = {"writes": "length(value)", "checkpoints": "length(checkpoint) + length(metadata)"}
    for thread in threads:
        for table, length in sizes.items():
            which = f"FROM {table} WHERE {where.format(table=table)}"
            size += _sum(connection, f"SELECT sum({length}) {which}", thread)
            if table == "checkpoints":
                count += _sum(connection, f"SELECT count(*) {which}", thread)
        for table in sizes if yes else ():
            connection.execute(f"DELETE FROM {table} WHERE {where.format(table=table)}", (thread,))
    return Freed(kind=kind, count=count, bytes=size, detail="")


def left_behind(path: Path, library: Library, *, delete: bool) -> list[Freed]:
    """What killed processes have left, each by name, and with ``delete`` it is gone; the files of live ones are not."""
    leases = {file: held(file) for file in dead(path / "leases")}
    if delete:
        dead(path / "leases", bury=True)
    half = {}
    for found in sorted([*path.glob(".repair-*"), *path.glob(".salvage-*")]):
        with taken(found, shared=not delete) as mine:
            if mine:
                half[found] = held(found)
            if mine and delete:
                remove(found)
    half |= half_done(library, delete=delete)
    return [
        Freed(kind=kind, count=len(files), bytes=sum(files.values()), detail=", ".join(_sized(path, files)))
        for kind, files in (("leases of dead processes", leases), ("half of a repair, a rebuild or a removal", half))
        if files
    ]


def _sized(path: Path, files: dict[Path, int]) -> Iterator[str]:
    return (f"{file.relative_to(path)} ({size / 1e6:,.2f} MB)" for file, size in files.items())


def _index(library: Library, name: str, yes: bool) -> Freed:
    kind = f"index leftovers of {name}"
    try:
        count, size = leftovers(library, name, delete=yes)
    except WorkspaceBusy as busy:
        return Freed(kind=kind, count=0, bytes=0, detail=str(busy))
    return Freed(kind=kind, count=count, bytes=size, detail="")


def kept(path: Path, library: Library) -> Iterator[Freed]:
    """What repairs have kept of damaged files: told, and never deleted, for it may be all that there is."""
    for file in sorted([*path.glob("*.db.broken-*"), *library.root.glob(".*.broken-*")]):
        detail = f"{file}, {held(file) / 1e6:,.2f} MB: delete it yourself when nothing is missing"
        yield Freed(kind="damaged, kept by a repair", count=0, bytes=0, detail=detail)


def _compacted(path: Path, yes: bool) -> Freed:
    """Pages that hold nothing, and a log that is longer than it need be."""
    log = Path(f"{path}-wal")
    kind = f"free pages of {path.parent.name + '/' if path.name == 'index.db' else ''}{path.name}"
    with _connected(path) as connection:
        (pages,) = connection.execute("PRAGMA freelist_count").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        before = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
        if not yes:
            return Freed(kind=kind, count=pages, bytes=pages * size, detail="")
        try:
            with named(path):
                if pages:
                    connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except WorkspaceBusy as busy:
            return Freed(kind=kind, count=0, bytes=0, detail=str(busy))
        after = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
        return Freed(kind=kind, count=pages, bytes=max(0, before - after), detail="")


@contextmanager
def _transaction(path: Path, *, write: bool) -> Iterator[sqlite3.Connection]:
    with _connected(path) as connection:
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    with named(path), closing(sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = NORMAL")
        yield connection


def _sum(connection: sqlite3.Connection, sql: str, *values: Any) -> int:
    return int(connection.execute(sql, values).fetchone()[0] or 0)
