"""What is wrong with the files of a workspace, and its mend. Nothing is deleted: what was damaged is kept beside.

A damaged database is read row by row into a new one, a damaged index is made anew from its sources; a run whose
checkpoint is lost begins again from what it had stored. A repair that is killed leaves the file as it was, or a new one
that is ready, which the next who opens the workspace puts in its place.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

from workbench.errors import KnowledgeError, WorkbenchError, WorkspaceBusy, WorkspaceError
from workbench.knowledge.library import Library
from workbench.maintenance.prune import held, left_behind
from workbench.memory import open_conversations
from workbench.records.lease import Lease, taken
from workbench.records.sqlite import REPAIR, Rows, faults, named, readable, tables
from workbench.records.store import RunStore, runs_are_gone
from workbench.settings import Settings

_JSON = {
    *("options", "result", "plan", "record", "body", "decision", "event", "citations", "debug", "metadata"),
    *("said", "asked"),
}
_LEDGERS = {"run_migrations", "conversation_migrations", "sqlite_sequence"}


_READY = ".ready-"


class Fault(TypedDict):
    """One thing that is wrong, and what to do; after a repair, what was done."""

    what: str
    detail: str
    mend: str


def examine(path: Path, settings: Settings) -> Iterator[Fault]:
    """Every fault of the workspace's files."""
    for name in ("workbench.db", "checkpoints.db"):
        if ready := [*path.glob(f".{name}{_READY}*")]:
            size = sum(map(held, ready)) / 1e6
            detail = f"a repair was killed when the new file was ready: {ready[0].name} ({size:,.2f} MB)"
            yield Fault(what=name, detail=detail, mend=f"{REPAIR} So does whoever opens the workspace.")
        elif said := _damage(path, name):
            yield Fault(what=name, detail=f"{path / name} is damaged: {said}", mend=REPAIR)
    library = Library(path / "knowledge", settings)
    try:
        for name in _bases(library):
            if said := _index_damage(library, name):
                mend = f"workbench kb rebuild {name}, or workbench doctor --repair"
                yield Fault(what=f"knowledge {name}", detail=said, mend=mend)
    finally:
        library.close()


def repair(path: Path, settings: Settings) -> Iterator[Fault]:
    """Mend what is wrong, and say what was done: ``mend`` is empty where nothing is left to do.

    Raises:
        WorkspaceBusy: another process has the workspace open.
        WorkspaceFull: there is no room for the new files; everything is as it was.
    """
    lease = Lease(path / "leases", repair=True)
    library = Library(path / "knowledge", settings)
    try:
        for other in lease.others():
            raise WorkspaceBusy(f"{path} is open in {lease.holder(other)}. Close it there first.")
        settle(path)
        for found in left_behind(path, library, delete=True):
            yield Fault(what=found["kind"], detail=f"removed {found['detail']}", mend="")
        makers: dict[str, Callable[[Path], None]] = {
            "workbench.db": lambda fresh: _fresh_runs(fresh, settings),
            "checkpoints.db": _fresh_checkpoints,
        }
        for name, make in makers.items():
            if _damage(path, name):
                yield from _salvaged(path / name, make)
        if (path / "workbench.db").exists():
            yield from _begun_again(path)
        yield from _rebuilt(library)
    finally:
        library.close()
        lease.release()


def settle(path: Path) -> None:
    """End a repair that was killed when a new file was ready: it takes the place of the damaged one, which is kept.

    Whoever calls holds a lease, and no repair is at work.
    """
    for ready in sorted(path.glob(f".*{_READY}*")):
        with named(path), taken(ready, wait=True):
            name, _, stamp = ready.name[1:].partition(_READY)
            file, aside = path / name, path / f"{name}.broken-{stamp}"
            if (ready / name).exists():  # otherwise it is in its place, or another process has just put it there
                Path(f"{file}-shm").unlink(missing_ok=True)
                for suffix in ("-wal", ""):
                    if (old := Path(f"{file}{suffix}")).exists():
                        os.replace(old, f"{aside}{suffix}")
                os.replace(ready / name, file)
            shutil.rmtree(ready, ignore_errors=True)


def _damage(path: Path, name: str) -> str:
    if name == "workbench.db" and runs_are_gone(path):
        return "it is empty or not there, though there are checkpoints of runs"
    file = path / name
    if not file.exists() or not file.stat().st_size:
        return ""
    return "; ".join(faults(file)) or (_torn_rows(file) if name == "workbench.db" else "")


def _torn_rows(path: Path) -> str:
    """Rows that SQLite finds whole and that do not hold what was written."""
    with named(path), closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        for table in sorted(tables(path) - _LEDGERS):
            columns = [row[1].decode() for row in connection.execute(f"PRAGMA table_info({table})")]
            for column in sorted(_JSON & {*columns}):
                torn = sum(not _is_json(value) for (value,) in connection.execute(f"SELECT {column} FROM {table}"))
                if torn:
                    return f"{torn:,} rows of {table} do not hold what was written"
    return ""


def _bases(library: Library) -> list[str]:
    return sorted({*library.names(), *(p.parent.name for p in library.root.glob("[a-z0-9]*/sources.json"))})


def _index_damage(library: Library, name: str) -> str:
    file = library.root / name / "index.db"
    if not file.exists():
        return f"{file} is not there"
    if said := faults(file):
        return f"{file} is damaged: {'; '.join(said)}"
    try:
        base = library.inspect(name)
    except KnowledgeError as error:
        return str(error)
    chroma = faults(sqlite) if (sqlite := file.parent / "chroma" / "chroma.sqlite3").exists() else []
    if chroma:
        return f"{sqlite} is damaged: {'; '.join(chroma)}"
    up_to_date = base["chroma"] and (base["chroma_at"] or sqlite.exists())
    if not up_to_date:
        return f"the vectors of {name} in {base['vector_store']} are behind its index"
    return library.damage(name)


def _salvaged(path: Path, make: Callable[[Path], None]) -> Iterator[Fault]:
    """A new file with every row that can be read; the damaged one is kept under another name."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    aside, source = path.with_name(f"{path.name}.broken-{stamp}"), _source(path)
    with (
        named(path),
        tempfile.TemporaryDirectory(prefix=".repair-", dir=path.parent) as folder,
        taken(Path(folder)),
    ):
        new = Path(folder) / "ready" / path.name
        new.parent.mkdir()
        make(new)
        fresh = Path(folder) / "fresh.db"
        shutil.copyfile(new, fresh)
        saved, lost = _copied(source, fresh, new) if source else ({}, {})
        new.parent.rename(path.with_name(f".{path.name}{_READY}{stamp}"))
    settle(path.parent)
    counts = ", ".join(f"{count:,} {table}" for table, count in saved.items() if count) or "nothing"
    missing = ", ".join(f"{count:,} {table}" for table, count in lost.items() if count)
    detail = f"made anew with {counts}" + (f"; could not be read: at least {missing}" if missing else "")
    kept = f"; the damaged file is kept as {aside.name}" if aside.exists() else ""
    older = f"; read from {source.name}, which an earlier repair kept" if source not in (None, path) else ""
    yield Fault(what=path.name, detail=detail + older + kept, mend="")


def _source(path: Path) -> Path | None:
    """The file to read from: the damaged one, or, where a repair was killed between two names, the one it kept."""
    if path.exists() and path.stat().st_size:
        return path
    kept = [p for p in sorted(path.parent.glob(f"{path.name}.broken-*")) if not p.name.endswith(("-wal", "-shm"))]
    return kept[-1] if kept else None


def _copied(source: Path, fresh: Path, new: Path) -> tuple[dict[str, int], dict[str, int]]:
    saved, lost = dict[str, int](), dict[str, int]()
    with readable(source, fresh) as old, closing(sqlite3.connect(new, isolation_level=None)) as target:
        target.execute("PRAGMA foreign_keys = OFF")
        target.execute("BEGIN")
        for table in sorted(tables(fresh) - _LEDGERS):
            info = target.execute(f"PRAGMA table_info({table})").fetchall()
            columns = [row[1] for row in info]
            own = any(row[2].upper() == "INTEGER" and row[5] == 1 for row in info)  # that column is the rowid
            rows = Rows(old, table, columns)
            saved[table], refused = _insert(target, table, columns, rows, with_rowid=not own)
            lost[table] = rows.lost + refused
        if "conversations" in saved:
            _conversations(target)
        target.execute("COMMIT")
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return saved, lost


def _insert(
    target: sqlite3.Connection, table: str, columns: list[str], rows: Rows, *, with_rowid: bool
) -> tuple[int, int]:
    """Rows kept and refused: what is not what was written, which SQLite itself does not see."""
    names = (["rowid"] if with_rowid else []) + columns
    sql = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    kept = refused = 0
    for row in rows:
        values = row if with_rowid else row[1:]
        good = all(_is_json(value) for name, value in zip(columns, row[1:], strict=True) if name in _JSON)
        done = target.execute(sql, values).rowcount if good else 0
        kept, refused = kept + done, refused + 1 - done
    return kept, refused


def _is_json(value: Any) -> bool:
    try:
        return value is None or json.loads(value) is not value
    except (ValueError, TypeError, RecursionError):
        return False


def _conversations(target: sqlite3.Connection) -> None:
    """Conversations that were lost are known from their runs."""
    target.execute(
        "INSERT OR IGNORE INTO conversations (id, user_id, session_id, created_at, updated_at) "
        "SELECT conversation_id, user_id, session_id, min(created_at), max(created_at) FROM runs "
        "WHERE conversation_id <> '' GROUP BY conversation_id"
    )


def _begun_again(path: Path) -> Iterator[Fault]:
    """Runs whose checkpoint is lost or cannot be read go on from what they have stored; those that wait ask again."""
    checkpoints, sql = path / "checkpoints.db", "SELECT run_id, status FROM runs WHERE status IN (?, ?, ?, ?)"
    open_ends = ("paused", "interrupted", "running", "failed")
    with named(path / "workbench.db"), closing(sqlite3.connect(path / "workbench.db", isolation_level=None)) as runs:
        rows = runs.execute(f"{sql} ORDER BY run_id", open_ends).fetchall()
        waits, torn = (
            asyncio.run(_looked_at(checkpoints, [i for i, _ in rows])) if checkpoints.exists() else (set(), {})
        )
        for run_id, status in rows:
            if run_id not in torn and (status != "paused" or run_id in waits):
                continue
            if run_id in torn:
                _set_aside(checkpoints, run_id)
            if status == "paused":
                runs.execute("UPDATE runs SET status = 'interrupted' WHERE run_id = ?", (run_id,))
            lost = "its question to a person is lost" if status == "paused" else f"torn: {torn[run_id]}"
            mend = f"workbench resume {run_id} goes on from what it has stored" + ", and asks again" * (
                status == "paused"
            )
            yield Fault(what=f"run {run_id}", detail=lost, mend=mend)


async def _looked_at(path: Path, run_ids: list[str]) -> tuple[set[str], dict[str, str]]:
    """The runs whose checkpoint holds what they ask, and those of which one cannot be read, with the reason."""
    from workbench.records.checkpoints import Checkpoints

    saver, waits, torn = Checkpoints.open(path), set[str](), dict[str, str]()
    try:
        for run_id in run_ids:
            config = {"configurable": {"thread_id": run_id}}
            try:
                async for _ in saver.alist(config):
                    pass
                last = await saver.aget_tuple({"configurable": {"thread_id": run_id, "checkpoint_ns": ""}})
            except WorkspaceError as error:
                torn[run_id] = str(error.__cause__)
                continue
            if last and any(channel == "__interrupt__" and _asks(v) for _, channel, v in last.pending_writes or ()):
                waits.add(run_id)
            elif last and any(channel == "__interrupt__" for _, channel, _ in last.pending_writes or ()):
                torn[run_id] = "what it asks does not hold what was written"
    finally:
        saver.conn.close()
    return waits, torn


def _asks(interrupts: Any) -> bool:
    values = [getattr(found, "value", None) for found in interrupts] if isinstance(interrupts, list | tuple) else []
    return bool(values) and all(isinstance(value, dict) and "review_id" in value for value in values)


def _set_aside(path: Path, run_id: str) -> None:
    """Checkpoints that cannot be read are kept under another name, until ``gc``."""
    with named(path), closing(sqlite3.connect(path)) as connection, connection:
        for table in ("checkpoints", "writes"):
            connection.execute(f"UPDATE {table} SET thread_id = thread_id || ? WHERE thread_id = ?", (".torn", run_id))


def _rebuilt(library: Library) -> Iterator[Fault]:
    for name in _bases(library):
        said = _index_damage(library, name)
        if not said:
            continue
        try:
            report = library.rebuild(name)
        except WorkbenchError as error:  # this base cannot be mended here, and the others can
            yield Fault(what=f"knowledge {name}", detail=said, mend=str(error))
            continue
        kept = f"; the damaged one is kept in {report.kept}" if report.kept else ""
        lost = f"; {report.lost:,} documents could not be read" if report.lost else ""
        yield Fault(what=f"knowledge {name}", detail=f"made anew: {report.added:,} documents{lost}{kept}", mend="")


def _fresh_runs(path: Path, settings: Settings) -> None:
    if not (settings.postgres_dsn.get_secret_value() or settings.postgres_host):
        open_conversations(path, settings).close()
    RunStore(path).close()


def _fresh_checkpoints(path: Path) -> None:
    from workbench.records.checkpoints import Checkpoints

    Checkpoints.open(path).conn.close()
