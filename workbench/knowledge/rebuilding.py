"""Rebuild a base from the files that were given, and where those are gone from the documents in its index.

The paths of every ``add`` are noted in ``sources.json`` next to the index, so that a base whose index is destroyed can
be rebuilt. The new base is made next to the old one and takes its place at once; a damaged one is kept. Files and old
documents are read a few at a time, so that no corpus is in memory.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from workbench.errors import KnowledgeError, WorkspaceError
from workbench.knowledge import vocabulary
from workbench.knowledge.adding import COLUMNS, Addition, AddReport, from_row
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.reading import corpus
from workbench.knowledge.reading.files import Note
from workbench.models.embeddings import text_model
from workbench.records.sqlite import faults
from workbench.records.writing import write_file
from workbench.settings import Settings
from workbench.state import Progress

SOURCES = "sources.json"
READY = ".ready"
"""How the folder of a base ends that is made and not yet in its place."""


@dataclass
class RebuildReport(AddReport):
    """The result of a rebuild: ``added`` counts all documents of the new index.

    Attributes:
        stored: documents whose files are gone; they came from the old index.
        missing: paths that were given once and are not there.
        kept: where the damaged base lies; empty when the old one was whole.
    """

    stored: int = 0
    missing: list[str] = field(default_factory=list)
    kept: str = ""


def remember(folder: Path, new_paths: Sequence[Path]) -> None:
    """Note the paths of an ``add``, next to those of before."""
    paths = sorted({*remembered(folder), *(path.resolve().as_posix() for path in new_paths)})
    note = json.dumps({"paths": paths}, ensure_ascii=False, indent=1)
    write_file(folder / SOURCES, note.encode(), replace=True, kind=WorkspaceError)


def remembered(folder: Path) -> list[str]:
    """Return every path that was ever given; none where the note is missing or cannot be read."""
    try:
        return [str(path) for path in json.loads((folder / SOURCES).read_text("utf-8"))["paths"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def rebuild(name: str, folder: Path, settings: Settings, progress: Progress) -> RebuildReport:
    """Make the base in this folder again, while it is held for writing.

    Raises:
        KnowledgeError: neither its files nor its documents can be read; it stays unchanged.
    """
    paths = [Path(path) for path in remembered(folder)]
    report = RebuildReport(name, missing=[str(path) for path in paths if not path.exists()])
    old_file = folder / "index.db"
    intact = old_file.exists() and not faults(old_file)
    new = Path(tempfile.mkdtemp(prefix=f".{name}.rebuild-", dir=folder.parent))
    try:
        if (folder / vocabulary.FILE).exists():
            vocabulary.keep(new, folder / vocabulary.FILE)
        # a damaged index has nothing to give, as an empty one
        with closing(sqlite3.connect(old_file if intact else ":memory:")) as old:
            index = Index(new / "index.db", create=True)
            try:
                if intact:
                    _copy_state(old, index, settings)
                addition = Addition(index, new, name, settings, progress, old if intact else None)
                reading = corpus.Reading([path for path in paths if path.exists()])
                documents = chain(reading, _remaining(reading, old, report) if intact else ())
                added = addition.run(_checked(documents, report, paths), reading, [])
            finally:
                index.close()
        report.added, report.problems = added.added, added.problems
        if paths:
            remember(new, paths)
        report.kept = _swap(folder, new, intact)
    finally:
        shutil.rmtree(new, ignore_errors=True)  # gone already, unless it was not finished
    return report


def _copy_state(old: sqlite3.Connection, index: Index, settings: Settings) -> None:
    """Copy the generation and the model."""
    meta = dict(old.execute("SELECT key, value FROM meta"))
    # so that who has the old one open sees a newer one
    index.set_meta("generation", meta.get("generation", "0"))
    model = meta.get("embedding_model", "")
    if (
        model and text_model(settings, model).name == model
    ):  # another one in the settings is meant
        index.set_meta("embedding_model", model)


def _checked(
    documents: Iterable[corpus.Document], report: RebuildReport, paths: Sequence[Path]
) -> Iterator[corpus.Document]:
    """Yield the documents; none at all is an error unless the files are there and have none."""
    empty = True
    for document in documents:
        empty = False
        yield document
    if empty and (report.missing or not paths):
        where = (
            f"gone: {', '.join(report.missing)}. Put them back"
            if paths
            else "not noted. Remove it, add them again"
        )
        raise KnowledgeError(
            f"The index of {report.name!r} cannot be read, and its files are {where}, and run this."
        )


def _remaining(
    reading: corpus.Reading, old: sqlite3.Connection, report: RebuildReport
) -> Iterator[corpus.Document]:
    """Yield the old documents whose file is gone or cannot be read, after the files have been read."""
    broken = {
        Path(p["file"]).resolve().as_posix()
        for p in reading.problems
        if p["line"] == 0 and not isinstance(p["reason"], Note)
    }
    read = {*reading.sources} - broken
    rows = old.execute(f"SELECT {COLUMNS} FROM documents ORDER BY rowid")
    for document in map(from_row, rows):
        if document.doc_id not in reading.places and document.source not in read:
            report.stored += 1
            yield document


def _swap(folder: Path, new: Path, intact: bool) -> str:
    """Put the new base in the place of the old one; return where a damaged one is kept."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    aside = folder.with_name(f".{folder.name}.{'replaced' if intact else 'broken'}-{stamp}")
    new.rename(folder.with_name(f".{folder.name}{READY}"))
    folder.rename(aside)
    settle(folder)
    if not intact:
        return str(aside)
    if aside.is_symlink():  # its target belongs to somebody else
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
