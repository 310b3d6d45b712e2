"""The files of a workspace: what is damaged, with what to do about it, and a copy of the whole."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from workbench.errors import KnowledgeError, WorkspaceError
from workbench.knowledge.library import Library
from workbench.records.checkpoints import FIX as FIX_CHECKPOINTS
from workbench.records.sqlite import REPAIR, faults, translate_errors
from workbench.records.store import runs_are_gone
from workbench.settings import Settings

if TYPE_CHECKING:
    from workbench.session import Workbench

_OF_PARTS = ("graphs.db", "experiments.db")
_FIXES = {
    "workbench.db": REPAIR,
    "checkpoints.db": FIX_CHECKPOINTS,
    **dict.fromkeys(_OF_PARTS, REPAIR),
}
_PASSING = (".lock", ".holder.json", "-wal", "-shm", "-journal")
"""Files that mean something only while a process has them open."""


class Fault(TypedDict):
    """One thing that is wrong, and what to do."""

    what: str
    detail: str
    fix: str


def examine(path: Path, settings: Settings) -> Iterator[Fault]:
    """Yield every fault in the workspace's files."""
    for name, fix in _FIXES.items():
        if damage := _damage(path, name):
            yield Fault(what=name, detail=f"{path / name} is damaged: {damage}", fix=fix)
    library = Library(path / "knowledge", settings)
    sources = library.root.glob("[a-z0-9]*/sources.json")
    try:
        for name in sorted({*library.names(), *(file.parent.name for file in sources)}):
            if damage := _index_damage(library, name):
                yield Fault(
                    what=f"knowledge {name}", detail=damage, fix=f"workbench kb rebuild {name}"
                )
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
    with translate_errors(target), _new_folder(target) as part:
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


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder next to a target; it is deleted at the end, unless it was renamed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        part.chmod(0o755)
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


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
