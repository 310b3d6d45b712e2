"""A base made again: from the files that were given, and where those are gone from the documents that its index kept.

The paths of every ``add`` are remembered in ``sources.json`` next to the index, so that a base whose index is destroyed
can be made again. The new one is made next to the old one and takes its place at once; a damaged one is kept. Files and
old documents are read a few at a time, so that no corpus is held in memory.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from workbench.errors import KnowledgeError
from workbench.knowledge import vocabulary
from workbench.knowledge.adding.adding import Addition, AddReport, Progress
from workbench.knowledge.adding.extraction import Extractor
from workbench.knowledge.adding.spool import COLUMNS, of_row
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.reading import corpus
from workbench.knowledge.reading.files import Note
from workbench.models.embeddings import text_model
from workbench.records.sqlite import faults, named
from workbench.settings import Settings

SOURCES = "sources.json"
READY = ".ready"
"""How the folder of a base ends that is made and not yet in its place."""


@dataclass
class RebuildReport(AddReport):
    """What a rebuild did: ``added`` is all that the new index holds.

    Attributes:
        stored: documents whose files are gone; they came from the old index.
        missing: paths that were given once and are not there.
        kept: where the damaged base lies; empty when the old one was whole.
    """

    stored: int = 0
    missing: list[str] = field(default_factory=list)
    kept: str = ""


@dataclass
class _Old:
    """What is left of the old index.

    Attributes:
        connection: None where nothing is.
    """

    connection: sqlite3.Connection | None = None
    model: str = ""
    generation: int = 0
    extractor: str = ""

    def documents(self) -> Iterator[corpus.Document]:
        """Yield each document."""
        if self.connection is not None:
            rows = self.connection.execute(f"SELECT {', '.join(COLUMNS)} FROM documents ORDER BY rowid")
            yield from map(of_row, rows)

    def hand_on(self, index: Index) -> None:
        """Give the new index what a model said of the texts of this one: nobody pays for that twice."""
        if self.connection is None or not self.extractor:
            return
        with index.transaction() as connection:
            rows = self.connection.execute("SELECT key, digest, value FROM said")
            connection.executemany("INSERT OR IGNORE INTO said VALUES (?, ?, ?)", rows)
        index.set_meta("extractor", self.extractor)


def remember(folder: Path, given: Sequence[Path]) -> None:
    """Note what was given to an ``add``, next to what was given before."""
    paths = sorted({*remembered(folder), *(path.resolve().as_posix() for path in given)})
    if paths == remembered(folder):
        return
    new = folder / f".{SOURCES}.{uuid.uuid4().hex[:8]}"
    with named(folder):
        new.write_text(json.dumps({"paths": paths}, ensure_ascii=False, indent=1), encoding="utf-8")
        os.replace(new, folder / SOURCES)


def remembered(folder: Path) -> list[str]:
    """Return every path that was ever given; none where nobody noted it or the note cannot be read."""
    try:
        return [str(path) for path in json.loads((folder / SOURCES).read_text(encoding="utf-8"))["paths"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def rebuild(
    name: str, folder: Path, settings: Settings, tell: Progress, extractor: Extractor | None = None
) -> RebuildReport:
    """Make the base in this folder again, while it is held for writing.

    Raises:
        KnowledgeError: neither its files nor its documents can be read; it stays unchanged.
    """
    paths = [Path(path) for path in remembered(folder)]
    report = RebuildReport(name, missing=[str(path) for path in paths if not path.exists()])
    whole = (folder / "index.db").exists() and not faults(folder / "index.db")
    made = Path(tempfile.mkdtemp(prefix=f".{name}.rebuild-", dir=folder.parent))
    try:
        with _old(folder / "index.db", whole, settings) as old:
            if (folder / vocabulary.FILE).exists():
                vocabulary.keep(made, folder / vocabulary.FILE)
            did = _make(made, settings, tell, paths, old, report, extractor)
            report.added, report.problems, report.model = did.added, did.problems, did.model
        if paths:
            remember(made, paths)
        report.kept = _swap(folder, made, whole)
    finally:
        shutil.rmtree(made, ignore_errors=True)  # gone already, unless it was not finished
    return report


def _make(
    folder: Path,
    settings: Settings,
    tell: Progress,
    paths: Sequence[Path],
    old: _Old,
    report: RebuildReport,
    extractor: Extractor | None,
) -> AddReport:
    reading = corpus.Reading([path for path in paths if path.exists()])
    index = Index(folder / "index.db", create=True)
    try:
        index.set_meta("generation", str(old.generation))  # so that who has the old one open sees a newer one
        if old.model:
            index.set_meta("embedding_model", old.model)
        old.hand_on(index)
        addition = Addition(index, folder, report.name, settings, tell, extractor)
        addition.places.before = old.connection
        reading.places = addition.places
        documents = _documents(reading, old, report, bool(paths))
        return addition.run(map(addition.joined, documents), reading, [])
    finally:
        index.close()


def _documents(reading: corpus.Reading, old: _Old, report: RebuildReport, noted: bool) -> Iterator[corpus.Document]:
    """Yield what the files give, and then what only the old index has."""
    empty = True
    for document in chain(reading, _kept(reading, old, report)):
        empty = False
        yield document
    if not empty:
        return
    if not noted:
        raise KnowledgeError(
            f"The index of {report.name!r} cannot be read, and nobody noted its files. Add them again: "
            f"`workbench kb remove {report.name}`, then `workbench kb add {report.name} PATH...`."
        )
    if report.missing:
        raise KnowledgeError(
            f"The index of {report.name!r} cannot be read, and its files are gone: {', '.join(report.missing)}. "
            "Put them back, and run this again."
        )


def _kept(reading: corpus.Reading, old: _Old, report: RebuildReport) -> Iterator[corpus.Document]:
    """Old documents whose file is gone or cannot be read, once the files that are there have been read."""
    broken = {
        Path(p["file"]).resolve().as_posix()
        for p in reading.problems
        if p["line"] == 0 and not isinstance(p["reason"], Note)
    }
    read = {*reading.sources} - broken
    for document in old.documents():
        if document.doc_id not in reading.places and document.source not in read:
            report.stored += 1
            yield document


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


@contextmanager
def _old(path: Path, whole: bool, settings: Settings) -> Iterator[_Old]:
    """Yield the old index, open for reading where it is whole; a damaged one says nothing, and is kept."""
    if not whole:
        yield _Old()
        return
    with closing(sqlite3.connect(path)) as connection:
        meta = dict(connection.execute("SELECT key, value FROM meta"))
        model = meta.get("embedding_model", "")
        if model and text_model(settings, model).name != model:  # the settings name another one, which is meant
            model = ""
        yield _Old(connection, model, int(meta.get("generation", 0)), meta.get("extractor", ""))
