"""A base made anew: from the files that were given, and where those are gone from the documents that its index kept.

The paths of every ``add`` are remembered in ``sources.json`` beside the index, so that a base whose index is destroyed
can be made again. The new one is made beside the old one and takes its place at once; a damaged one is kept.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from workbench.errors import KnowledgeError, WorkspaceError
from workbench.knowledge import corpus
from workbench.knowledge.adding import Addition, AddReport, Progress
from workbench.knowledge.index import Index
from workbench.models.embeddings import text_model
from workbench.salvage import Rows, faults, readable
from workbench.settings import Settings
from workbench.sqlite import named

SOURCES = "sources.json"
READY = ".ready"
"""How the folder of a base ends that is made and not yet in its place."""
_COLUMNS = ["doc_id", "title", "text", "url", "licence", "type", "fields", "aliases", "names", "source"]


@dataclass
class RebuildReport(AddReport):
    """What a rebuild did: ``added`` is all that the new index holds.

    Attributes:
        stored: documents whose files are gone; they came from the old index.
        missing: paths that were given once and are not there.
        kept: where the damaged base lies; empty when the old one was whole.
        lost: documents that could not be read, and whose files are not there either.
    """

    stored: int = 0
    missing: list[str] = field(default_factory=list)
    kept: str = ""
    lost: int = 0


@dataclass
class _Old:
    """What is left of the old index."""

    documents: list[corpus.Document] = field(default_factory=list)
    model: str = ""
    generation: int = 0
    lost: int = 0


def remember(folder: Path, given: Sequence[Path]) -> None:
    """Note what was given to an ``add``, beside what was given before."""
    paths = sorted({*remembered(folder), *(path.resolve().as_posix() for path in given)})
    if paths == remembered(folder):
        return
    new = folder / f".{SOURCES}.{uuid.uuid4().hex[:8]}"
    with named(folder):
        new.write_text(json.dumps({"paths": paths}, ensure_ascii=False, indent=1), encoding="utf-8")
        os.replace(new, folder / SOURCES)


def remembered(folder: Path) -> list[str]:
    """Every path that was ever given; none where nobody noted it or the note cannot be read."""
    try:
        return [str(path) for path in json.loads((folder / SOURCES).read_text(encoding="utf-8"))["paths"]]
    except (OSError, ValueError, KeyError, TypeError):  # a base of an older version has no note
        return []


def rebuild(name: str, folder: Path, settings: Settings, tell: Progress) -> RebuildReport:
    """Make the base in this folder anew, while it is held for writing.

    Raises:
        KnowledgeError: neither its files nor its documents can be read; it stays as it is.
    """
    paths = [Path(path) for path in remembered(folder)]
    report = RebuildReport(name, missing=[str(path) for path in paths if not path.exists()])
    whole = (folder / "index.db").exists() and not faults(folder / "index.db")
    old = _read(folder / "index.db", settings)
    tell("read", 0, 1)
    loaded = corpus.load([path for path in paths if path.exists()])
    tell("read", 1, 1)
    broken = {Path(p["file"]).resolve().as_posix() for p in loaded.problems if p["line"] == 0}
    read, here = {*loaded.sources} - broken, {d.doc_id for d in loaded.documents}
    kept = [d for d in old.documents if d.doc_id not in here and d.source not in read]
    loaded.documents += kept
    report.stored, report.lost = len(kept), 0 if not report.missing and paths else old.lost
    if not loaded.documents and not paths:
        raise KnowledgeError(
            f"The index of {name!r} cannot be read, and nobody noted its files. "
            f"Add them again: `workbench kb remove {name}`, then `workbench kb add {name} PATH...`."
        )
    if not loaded.documents and report.missing:
        raise KnowledgeError(
            f"The index of {name!r} cannot be read, and its files are gone: {', '.join(report.missing)}. "
            "Put them back, and run this again."
        )
    made = Path(tempfile.mkdtemp(prefix=f".{name}.rebuild-", dir=folder.parent))
    try:
        _make(made, name, settings, tell, loaded, old, report)
        if paths:
            remember(made, paths)
        report.kept = _swap(folder, made, whole)
    finally:
        shutil.rmtree(made, ignore_errors=True)  # gone already, unless it was not finished
    return report


def _make(
    folder: Path,
    name: str,
    settings: Settings,
    tell: Progress,
    loaded: corpus.Loaded,
    old: _Old,
    report: RebuildReport,
) -> None:
    index = Index(folder / "index.db", create=True)
    try:
        index.set_meta("generation", str(old.generation))  # so that who has the old one open sees a newer one
        if old.model:
            index.set_meta("embedding_model", old.model)
        did = Addition(index, folder, name, settings, tell).run(loaded.documents, loaded, [])
    finally:
        index.close()
    report.added, report.problems = did.added, did.problems


def _swap(folder: Path, made: Path, whole: bool) -> str:
    """Put the new base in the place of the old one; where the damaged one is kept, or nothing."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    aside = folder.with_name(f".{folder.name}.{'replaced' if whole else 'broken'}-{stamp}")
    made.rename(folder.with_name(f".{folder.name}{READY}"))
    folder.rename(aside)
    settle(folder)
    if not whole:
        return str(aside)
    if aside.is_symlink():  # what it points at is somebody else's
        aside.unlink()
    else:
        shutil.rmtree(aside)
    return ""


def settle(folder: Path) -> None:
    """End a swap that was killed, while the base is held for writing: what was ready takes the empty place.

    Where the old base still stands, the kill came before anything was moved; the next rebuild makes it again.
    """
    ready = folder.with_name(f".{folder.name}{READY}")
    if not ready.exists():
        return
    if folder.exists():
        shutil.rmtree(ready)
    else:
        ready.rename(folder)


def _read(path: Path, settings: Settings) -> _Old:
    """What can be read of the old index, damaged or not."""
    old = _Old()
    if not path.exists() or not path.stat().st_size:
        return old
    with tempfile.TemporaryDirectory(dir=path.parent.parent, prefix=f".{path.parent.name}.fresh-") as temporary:
        fresh = Path(temporary) / "index.db"
        Index(fresh, create=True).close()
        try:
            with named(path), readable(path, fresh) as connection:
                rows = Rows(connection, "documents", _COLUMNS)
                for row in rows:
                    _keep(old, row[1:])
                old.lost += rows.lost
                meta = {row[1]: row[2] for row in Rows(connection, "meta", ["key", "value"])}
        except (KnowledgeError, WorkspaceError) as error:
            if not isinstance(error.__cause__, sqlite3.DatabaseError):
                raise
            return old  # nothing of it can be read
    old.generation = int(meta.get("generation", "0")) if meta.get("generation", "0").isdigit() else 0
    model = meta.get("embedding_model", "")
    if model and text_model(settings, model).name == model:  # else the settings name another one, which is meant
        old.model = model
    return old


def _keep(old: _Old, row: Sequence[str]) -> None:
    try:
        i, title, text, url, licence, kind, fields, aliases, names, source = row
        lists = json.loads(fields), tuple(json.loads(aliases)), json.loads(names)
        old.documents.append(corpus.Document(i, title, text, url, licence, kind, *lists, source))
    except (ValueError, TypeError):
        old.lost += 1
