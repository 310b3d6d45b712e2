"""What a workspace no longer needs: counted, and with ``yes`` freed. What runs, waits or can be gone on with is kept.

Every kind is found and deleted inside one transaction a file, so a process that works on the workspace meanwhile loses
nothing, and a prune that is killed leaves what it had not come to for the next one.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

from workbench.errors import WorkspaceBusy
from workbench.knowledge.adding.rebuilding import READY
from workbench.knowledge.indexes import vectors
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.library import Library
from workbench.models import rerank
from workbench.records.lease import locked, stale
from workbench.records.sqlite import named
from workbench.records.store import TABLES

_HALF = re.compile(r"\.([a-z0-9][a-z0-9_-]{0,63})\.(?:(?:rebuild|replaced|removed)-.*|ready|holder\.json|lock)")
_FILE = re.compile(r"\..+\.[0-9a-f]{8}")
_UNUSED = {
    "vectors": ("length(vector)", "key NOT IN (SELECT vector FROM passages)"),
    "found_names": (
        "length(names)",
        "substr(key, instr(key, ':') + 1) NOT IN (SELECT digest FROM passages)",
    ),
}


def leftovers(library: Library, name: str, *, delete: bool) -> tuple[int, int]:
    """Rows that nothing refers to, and their bytes; with ``delete`` they go.

    Raises:
        WorkspaceBusy: another process is writing to the base: what looks left over may be on its way in.
        KnowledgeError: the index cannot be read.
    """
    with library.writing(name) as folder:
        index = Index(folder / "index.db")
        try:
            count = size = 0
            with index.transaction() as connection:
                for table, (length, where) in _UNUSED.items():
                    rows, held = connection.execute(
                        f"SELECT count(*), ifnull(sum({length}), 0) FROM {table} WHERE {where}"
                    ).fetchone()
                    count, size = count + rows, size + held
                    if delete:
                        connection.execute(f"DELETE FROM {table} WHERE {where}")
                words = _words(index)
                size += sum(len(blob) for _, blob in words)
                if delete:
                    connection.executemany("DELETE FROM words WHERE word = ?", ((word,) for word, _ in words))
            return count + len(words), size
        finally:
            index.close()


def half_done(library: Library, *, delete: bool) -> dict[Path, int]:
    """Return what a killed writer has left beside a base and in it, and its bytes; with ``delete`` it is gone.

    What a process is at work on is not counted.
    """
    found = {}
    inside = (
        path
        for path in library.root.glob("[a-z0-9]*/.*")
        if not path.parent.is_symlink() and _FILE.fullmatch(path.name)
    )
    for path in sorted([*library.root.glob(".*"), *inside]):
        half = _HALF.fullmatch(path.name)
        name = path.parent.name if path.parent != library.root else half[1] if half else ""
        lock, there = library.root / f".{name}.lock", (library.root / name).exists()
        if not name or locked(path) or locked(lock) or (path == lock and there) or (path.suffix == READY and not there):
            continue  # it is at work, the lock of a base that is there, or a base that is to be put in its place
        found[path] = held(path)
        if delete:
            with suppress(WorkspaceBusy), library.writing(name, make=False):
                if path != lock:  # which goes when it is let go of
                    remove(path)
    return found


def remove(path: Path) -> None:
    """Delete a file, a link or a folder, which may be gone."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def held(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; what a link points at is not counted."""
    files = [path] if path.is_file() else path.rglob("*") if not path.is_symlink() else []
    return sum(file.stat().st_size for file in files if file.is_file())


def _words(index: Index) -> list[tuple[str, bytes]]:
    """Word vectors of words that no passage has any more."""
    held = index.rows("SELECT word, vector FROM words")
    if not held:
        return []
    sql = "SELECT title, aliases, passages.text FROM passages JOIN documents USING (doc_id)"
    used = {
        word
        for title, aliases, text in index.rows(sql)
        for word in rerank.words(vectors.titled(title, json.loads(aliases), text))
    }
    return [row for row in held if row[0] not in used]


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
    "past": "length(checkpoints)",
    "runs": "length(message) + length(options) + ifnull(length(result), 0)",
    "messages": "length(content)",
    "episodes": "ifnull(length(vector), 0)",
    "conversation_summaries": "length(summary)",
    "feedback": "length(metadata)",
    "checkpoints": "length(checkpoint) + length(metadata)",
    "writes": "length(value)",
}
_HOMELESS = "conversation_id NOT IN (SELECT id FROM conversations)"
_OF_NONE = {
    "messages": _HOMELESS,
    "episodes": f"{_HOMELESS} OR user_message_id NOT IN (SELECT id FROM messages)"
    " OR assistant_message_id NOT IN (SELECT id FROM messages)",
    "conversation_summaries": _HOMELESS,
    "feedback": "message_id NOT IN (SELECT id FROM messages)",
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
    freed = [_runs(runs, older_than, keep, yes), _ownerless(runs, yes), _of_no_conversation(runs, yes)]
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
        return dict.fromkeys(_outdated(connection, older_than, keep))


def _outdated(connection: sqlite3.Connection, older_than: float | None, keep: int | None) -> list[str]:
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


def _runs(path: Path, older_than: float | None, keep: int | None, yes: bool) -> Freed:
    with _transaction(path, write=yes) as connection:
        outdated, size = _outdated(connection, older_than, keep), 0
        for run_id in outdated:
            size += sum(_drop(connection, table, "run_id = ?", yes, run_id)[1] for table in TABLES)
    return Freed(kind="runs", count=len(outdated), bytes=size, detail="")


def _tapes(path: Path, yes: bool) -> Freed:
    ended = f"run_id IN (SELECT run_id FROM runs WHERE {_ENDED})"
    with _transaction(path, write=yes) as connection:
        (count,) = connection.execute(f"SELECT count(DISTINCT run_id) FROM tapes WHERE {ended}").fetchone()
        _, size = _drop(connection, "tapes", ended, yes)
    return Freed(kind="tapes of ended runs", count=count, bytes=size, detail="")


def _ownerless(path: Path, yes: bool) -> Freed:
    """Rows of runs that are no longer there."""
    with _transaction(path, write=yes) as connection:
        gone = "run_id NOT IN (SELECT run_id FROM runs)"
        dropped = [_drop(connection, table, gone, yes) for table in TABLES[:-1]]
    count, size = map(sum, zip(*dropped, strict=True))
    return Freed(kind="rows without a run", count=count, bytes=size, detail="")


def _of_no_conversation(path: Path, yes: bool) -> Freed:
    """Messages, episodes, summaries and feedback that a damaged file has left; none where PostgreSQL has them."""
    count = size = 0
    with _transaction(path, write=yes) as connection:
        there = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        for table, where in _OF_NONE.items() if "conversations" in there else ():
            if table not in there:  # of a part that is not here
                continue
            dropped = _drop(connection, table, where, yes)
            count, size = count + dropped[0], size + dropped[1]
    return Freed(kind="rows without a conversation", count=count, bytes=size, detail="")


def _drop(connection: sqlite3.Connection, table: str, where: str, yes: bool, *values: Any) -> tuple[int, int]:
    """Return how many rows of a table these are, and their bytes; with ``yes`` they go."""
    count, size = connection.execute(
        f"SELECT count(*), ifnull(sum({_SIZES[table]}), 0) FROM {table} WHERE {where}", values
    ).fetchone()
    if yes:
        connection.execute(f"DELETE FROM {table} WHERE {where}", values)
    return count, size


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
            count = size = 0
            for thread in sorted(found):
                dropped = [_drop(connection, t, where.format(table=t), yes, thread) for t in ("writes", "checkpoints")]
                count, size = count + dropped[1][0], size + dropped[0][1] + dropped[1][1]
            freed.append(Freed(kind=kind, count=count, bytes=size, detail=""))
    return freed


_NOT_LAST = (
    "checkpoint_id NOT IN (SELECT max(checkpoint_id) FROM checkpoints AS last "
    "WHERE last.thread_id = {table}.thread_id AND last.checkpoint_ns = {table}.checkpoint_ns)"
)


def left_behind(path: Path, library: Library, *, delete: bool) -> list[Freed]:
    """What killed processes have left, each by name, and with ``delete`` it is gone; the files of live ones are not."""
    leases = {file: held(file) for file in stale(path / "leases")}
    if delete:
        stale(path / "leases", remove=True)
    half = half_done(library, delete=delete)
    return [
        Freed(
            kind=kind,
            count=len(files),
            bytes=sum(files.values()),
            detail=", ".join(f"{file.relative_to(path)} ({size / 1e6:,.2f} MB)" for file, size in files.items()),
        )
        for kind, files in (("leases of dead processes", leases), ("half of a rebuild or a removal", half))
        if files
    ]


def _index(library: Library, name: str, yes: bool) -> Freed:
    kind = f"index leftovers of {name}"
    try:
        count, size = leftovers(library, name, delete=yes)
    except WorkspaceBusy as busy:
        return Freed(kind=kind, count=0, bytes=0, detail=str(busy))
    return Freed(kind=kind, count=count, bytes=size, detail="")


def kept(path: Path, library: Library) -> Iterator[Freed]:
    """Yield what rebuilds have kept of damaged bases, which is never deleted: it may be all that there is.

    And that a forgetting was not ended.
    """
    for file in sorted(library.root.glob(".*.broken-*")):
        detail = f"{file}, {held(file) / 1e6:,.2f} MB: delete it yourself when nothing is missing"
        yield Freed(kind="damaged, kept by a rebuild", count=0, bytes=0, detail=detail)
    for file in sorted(path.glob(".forgetting-*.json")):
        detail = f"{file.name}: forget the same again, and it goes on from where it was"
        yield Freed(kind="forgetting, not ended", count=0, bytes=0, detail=detail)


def _compacted(path: Path, yes: bool) -> Freed:
    """Pages that hold nothing, and a log that is longer than it need be."""
    log = Path(f"{path}-wal")
    kind = f"free pages of {path.parent.name + '/' if path.name == 'index.db' else ''}{path.name}"
    with _connected(path) as connection:
        (pages,) = connection.execute("PRAGMA freelist_count").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        before = held(path) + held(log)
        if not yes:
            return Freed(kind=kind, count=pages, bytes=pages * size, detail="")
        try:
            with named(path):
                if pages:
                    connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except WorkspaceBusy as busy:
            return Freed(kind=kind, count=0, bytes=0, detail=str(busy))
        after = held(path) + held(log)
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
