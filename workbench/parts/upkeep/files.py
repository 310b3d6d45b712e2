"""The files of a workspace: what is damaged, with what to do about it; a copy of the whole; and what can be freed.

Runs that can still continue are never freed. Everything in one file is found and deleted in one transaction, so a
process that works on the workspace meanwhile loses nothing, and one that is killed leaves the rest to the next one.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from workbench.errors import KnowledgeError, WorkspaceBusy, WorkspaceError
from workbench.knowledge.library import READY, Library
from workbench.records.checkpoints import FIX as FIX_CHECKPOINTS
from workbench.records.lease import locked, stale
from workbench.records.sqlite import REPAIR, faults, translate_errors
from workbench.records.store import TABLES, runs_are_gone
from workbench.session import Workbench
from workbench.settings import Settings
from workbench.state import Json

_FIXES = {
    "workbench.db": REPAIR,
    "checkpoints.db": FIX_CHECKPOINTS,
    "graphs.db": REPAIR,
    "experiments.db": REPAIR,
}
_PASSING = (".lock", ".holder.json", "-wal", "-shm", "-journal")
"""Files that mean something only while a process has them open."""


def faults_in(path: Path, settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield every fault in the workspace's files: where it is, what is wrong, and what to do."""
    for name, fix in _FIXES.items():
        if damage := _damage(path, name):
            yield name, f"{path / name} is damaged: {damage}", fix
    library = Library(path / "knowledge", settings)
    sources = library.root.glob("[a-z0-9]*/sources.json")
    try:
        for name in sorted({*library.names(), *(file.parent.name for file in sources)}):
            if damage := _index_damage(library, name):
                yield f"knowledge {name}", damage, f"workbench kb rebuild {name}"
    finally:
        library.close()


def backup(wb: Workbench, path: str | Path) -> Path:
    """Copy the whole workspace, which may be in use, into a new folder; return the folder, which opens unchanged.

    Databases are copied by SQLite's backup. Checkpoints come first: a run whose rows are newer than its checkpoint only
    repeats what its tape answers.

    Raises:
        WorkspaceError: the folder is there already, or cannot be written.
    """
    wb._must_be_open()
    target = Path(path).expanduser()
    if target.exists():
        raise WorkspaceError(f"{target} is there already. Name a new folder.")
    with translate_errors(target), _new_folder(target) as folder:
        part = Path(folder)
        part.chmod(0o755)
        for file in sorted(wb.path.rglob("*")):
            inside = file.relative_to(wb.path)
            hidden = any(name.startswith(".") for name in inside.parts)
            if (
                hidden
                or not file.is_file()
                or inside.parts[0] == "leases"
                or file.name.endswith(_PASSING)
            ):
                continue
            (part / inside).parent.mkdir(parents=True, exist_ok=True)
            if file.suffix in (".db", ".sqlite3"):
                with (
                    closing(sqlite3.connect(file)) as source,
                    closing(sqlite3.connect(part / inside)) as copy,
                ):
                    source.backup(copy)
            else:
                shutil.copy2(file, part / inside)
        part.rename(target)
    return target


def _new_folder(target: Path) -> tempfile.TemporaryDirectory[str]:
    """Make a new folder next to a target; it is deleted at the end, unless it was renamed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent)


def _damage(path: Path, name: str) -> str:
    if name == "workbench.db" and runs_are_gone(path):
        return "it is empty or not there, though there are checkpoints of runs"
    file = path / name
    if not file.exists() or not file.stat().st_size:
        return ""
    return "; ".join(faults(file))


def _index_damage(library: Library, name: str) -> str:
    file = library.root / name / "index.db"
    if not file.exists():
        return f"{file} is not there"
    if damage := faults(file):
        return f"{file} is damaged: {'; '.join(damage)}"
    try:
        base = library.get(name).inspect()
    except KnowledgeError as error:
        return str(error)
    chroma = file.parent / "chroma" / "chroma.sqlite3"
    if damage := faults(chroma) if chroma.exists() else []:
        return f"{chroma} is damaged: {'; '.join(damage)}"
    if not base["chroma"] or not (base["chroma_at"] or chroma.exists()):
        return f"the vectors of {name} in {base['vector_store']} are behind its index"
    return library.damage(name)


_HALF = re.compile(
    r"\.([a-z0-9][a-z0-9_-]{0,63})\.(?:(?:rebuild|replaced|removed)-.*|ready|holder\.json|lock)"
)
_FILE = re.compile(r"\..+\.[0-9a-f]{8}")
_OUTDATED = """
    SELECT run_id FROM (
        SELECT run_id, ifnull(ended_at, created_at) AS at, row_number() OVER (ORDER BY created_at DESC, run_id) AS place
        FROM runs WHERE status IN ('done', 'failed', 'cancelled') AND owner IS NULL ORDER BY place
    ) WHERE at < ? OR place > ?
"""
_REMOVED = "checkpoints of removed runs"
_KINDS = """
    SELECT run_id, CASE WHEN owner IS NOT NULL OR status NOT IN ('done', 'cancelled') THEN ''
    WHEN status = 'done' AND graph = '' AND result IS NOT NULL THEN 'checkpoints of finished runs'
    ELSE 'earlier checkpoints of ended runs' END FROM runs
"""
"""What is not needed any more of the checkpoints of each run."""
_NOT_LAST = (
    " AND checkpoint_id NOT IN (SELECT max(checkpoint_id) FROM checkpoints AS last "
    "WHERE last.thread_id = {table}.thread_id AND last.checkpoint_ns = {table}.checkpoint_ns)"
)


@dataclass(frozen=True)
class Freed:
    """One kind of data that is not needed any more."""

    kind: str
    count: int = 0
    bytes: int = 0
    detail: str = ""


def gc(
    wb: Workbench,
    *,
    older_than: float | None = None,
    keep: int | None = None,
    tapes: bool = False,
    yes: bool = False,
) -> list[Json]:
    """List unneeded files and rows, by kind: ``{"kind", "count", "bytes", "detail"}``; ``yes`` deletes them.

    Checkpoints of runs that are done (their result stays), rows and leases that no one owns, what indexes have left
    over, free pages. Runs that run, wait or were interrupted are never touched.

    Args:
        wb: the workspace.
        older_than: runs that ended before so many days go too.
        keep: only the newest so many ended runs stay.
        tapes: the tapes of ended runs go too: these can no longer be replayed.
        yes: do it; without it nothing changes.

    Raises:
        WorkspaceError: a file of the workspace is damaged, full or read-only.
    """
    wb._must_be_open()
    path = wb.path
    library = wb.knowledge
    runs = path / "workbench.db"
    checkpoints = path / "checkpoints.db"
    with _transaction(runs, write=yes) as connection:
        outdated = _outdated(connection, older_than, keep)
        size = sum(_drop(connection, table, "run_id", outdated, yes)[1] for table in TABLES)
        freed = [Freed("runs", len(outdated), size)]
        if tapes:
            ended = _outdated(connection, None, keep=0)
            dropped = _drop(connection, "tapes", "run_id", ended, yes)
            freed.append(Freed("tapes of ended runs", *dropped))
    if checkpoints.exists():
        freed += _checkpoints(runs, checkpoints, outdated, yes)
    freed += left_behind(path, library, delete=yes)
    freed += to_inspect(library)
    indexes = (library.root / name / "index.db" for name in library.names())
    files = [*(path / name for name in _FIXES), *indexes]
    freed += [_compacted(file, yes) for file in files if file.exists()]
    return [vars(entry) for entry in freed if entry.count or entry.bytes or entry.detail]


def _outdated(
    connection: sqlite3.Connection, older_than: float | None, keep: int | None
) -> list[str]:
    """Return the ended runs that are too old, or too many."""
    since = None
    if older_than is not None:
        since = (datetime.now(UTC) - timedelta(days=older_than)).isoformat()
    # neither holds where it is compared with NULL
    return [run_id for (run_id,) in connection.execute(_OUTDATED, (since, keep))]


def _drop(
    connection: sqlite3.Connection,
    table: str,
    key: str,
    runs: Iterable[str],
    yes: bool,
    more: str = "",
) -> tuple[int, int]:
    """Return how many of these runs have rows in a table, by the column ``key``, and their bytes; with ``yes`` delete
    the rows.
    """
    columns = [column for _, column, *_ in connection.execute(f"PRAGMA table_info({table})")]
    size_of_row = " + ".join(f"ifnull(length({column}), 0)" for column in columns)
    rows = f"FROM {table} WHERE {key} IN (SELECT value FROM json_each(?)){more}"
    values = [json.dumps([*runs])]
    sql = f"SELECT count(DISTINCT {key}), ifnull(sum({size_of_row}), 0) {rows}"
    count, size = connection.execute(sql, values).fetchone()
    if yes:
        connection.execute(f"DELETE {rows}", values)
    return count, size


def _checkpoints(runs: Path, path: Path, outdated: Iterable[str], yes: bool) -> list[Freed]:
    """Delete the checkpoints of finished runs, of cancelled ones all but the last, and of unknown runs.

    Of a recorded graph the last one stays: the next run of its thread continues there.
    The threads are read before the runs: a run has its row before its first checkpoint, so no new run is unknown.
    """
    freed = []
    with _transaction(path, write=yes) as connection:
        sql = "SELECT count(*) FROM sqlite_schema WHERE name IN ('checkpoints', 'writes')"
        if connection.execute(sql).fetchone() != (2,):
            return []
        select = "SELECT thread_id FROM checkpoints UNION SELECT thread_id FROM writes"
        threads = {row[0] for row in connection.execute(select)}
        with _transaction(runs, write=False) as store:
            kinds = dict(store.execute(_KINDS).fetchall())
        kinds |= dict.fromkeys(outdated, _REMOVED)
        for kind, more in (
            ("checkpoints of finished runs", ""),
            ("earlier checkpoints of ended runs", _NOT_LAST),
            (_REMOVED, ""),
        ):
            chosen = [thread for thread in threads if kinds.get(thread, _REMOVED) == kind]
            (_, writes), (count, size) = (
                _drop(connection, table, "thread_id", chosen, yes, more.format(table=table))
                for table in ("writes", "checkpoints")
            )
            freed.append(Freed(kind, count, writes + size))
    return freed


def left_behind(path: Path, library: Library, *, delete: bool) -> list[Freed]:
    """Return what killed processes have left, by file, and with ``delete`` remove it; files of live ones stay."""
    leases = {file: folder_size(file) for file in stale(path / "leases")}
    if delete:
        stale(path / "leases", remove=True)
    half = _half_done(library, delete=delete)
    kinds = {"leases of dead processes": leases, "half of a rebuild or a removal": half}
    return [
        Freed(
            kind,
            len(files),
            sum(files.values()),
            ", ".join(
                f"{file.relative_to(path)} ({size / 1e6:,.2f} MB)" for file, size in files.items()
            ),
        )
        for kind, files in kinds.items()
        if files
    ]


def _half_done(library: Library, *, delete: bool) -> dict[Path, int]:
    """Return what a killed writer has left in a base and next to it, with its bytes; with ``delete`` remove it.

    Files that a process is using are not counted.
    """
    sizes = {}
    inside = (
        path
        for path in library.root.glob("[a-z0-9]*/.*")
        if not path.parent.is_symlink() and _FILE.fullmatch(path.name)
    )
    for path in sorted([*library.root.glob(".*"), *inside]):
        half = _HALF.fullmatch(path.name)
        name = half[1] if half else ""
        if path.parent != library.root:
            name = path.parent.name
        lock = library.root / f".{name}.lock"
        exists = (library.root / name).exists()
        # in use, the lock of an existing base, or a finished rebuild that is to take the place of its base
        in_use = (
            locked(path)
            or locked(lock)
            or (path == lock and exists)
            or (path.suffix == READY and not exists)
        )
        if not name or in_use:
            continue
        sizes[path] = folder_size(path)
        if delete:
            with suppress(WorkspaceBusy), library.writing(name, make=False):
                if path != lock:  # the lock is removed when it is released
                    _remove(path)
    return sizes


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def folder_size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder; the target of a link is not counted."""
    files = path.rglob("*") if path.is_dir() and not path.is_symlink() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def to_inspect(library: Library) -> Iterator[Freed]:
    """Yield what needs a person: damaged bases that a rebuild set aside. They are never deleted."""
    for file in sorted(library.root.glob(".*.broken-*")):
        detail = f"{file}, {folder_size(file) / 1e6:,.2f} MB: delete it yourself when nothing is missing"
        yield Freed("damaged, kept by a rebuild", detail=detail)


def _compacted(path: Path, yes: bool) -> Freed:
    """Count the free pages of a database; with ``yes`` give them and a long write-ahead log back to the disk."""
    log = Path(f"{path}-wal")
    kind = f"free pages of {path.parent.name + '/' if path.name == 'index.db' else ''}{path.name}"
    with _connection(path) as connection:
        (pages,) = connection.execute("PRAGMA freelist_count").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        before = folder_size(path) + folder_size(log)
        if not yes:
            return Freed(kind, pages, pages * size)
        try:
            with translate_errors(path):
                if pages:
                    connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except WorkspaceBusy as busy:
            return Freed(kind, detail=str(busy))
        after = folder_size(path) + folder_size(log)
        return Freed(kind, pages, max(0, before - after))


@contextmanager
def _transaction(path: Path, *, write: bool) -> Iterator[sqlite3.Connection]:
    with _connection(path) as connection:
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        with connection:  # commits, or rolls back
            yield connection


@contextmanager
def _connection(path: Path) -> Iterator[sqlite3.Connection]:
    with (
        translate_errors(path),
        closing(sqlite3.connect(path, timeout=5.0, isolation_level=None)) as connection,
    ):
        connection.execute("PRAGMA synchronous = NORMAL")
        yield connection
