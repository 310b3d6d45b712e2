"""A small workspace that is made in a moment, for tests that break, fill, prune or carry away one of their own."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tests import forked
from workbench.cli import main
from workbench.session import Workbench
from workbench.settings import Settings

PROJECT = Path(__file__).resolve().parent.parent
CORPORA = PROJECT / "tests" / "corpora"
"""Small ones, a file each."""
CORE = {"embedding_model": "hashing", "rerank_model": "none"}
QUESTION = "Who are the directors of Film 7?"
ANSWER = "Film 7: directors Ang Lee [1]."


def jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write each row on a line of its own, and return the path."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def corpus(path: Path, count: int = 30) -> Path:
    """A file of films, of which each says its number, its year and Ang Lee."""
    said = {"type": "Film", "directors": ["Ang Lee"]}
    films = (
        {
            "id": f"f{n}", "title": f"Film {n}", "year": 1980 + n, **said,
            "overview": f"Film {n} is a film of {1980 + n} about number {n}.",
        }
        for n in range(count)
    )  # fmt: skip
    return jsonl(path, films)


def hills(path: Path, count: int, notes: int = 0) -> Path:
    """A file of hills, each with its sheep and so many letters of notes."""
    rows = ({"id": f"d{n}", "text": f"Hill {n} has {n} sheep.", "notes": "z" * notes} for n in range(count))
    return jsonl(path, rows)


def opened(folder: Path) -> Workbench:
    return Workbench.open(folder, Settings.load(**CORE))


@cache
def _indexed(films: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="shelf-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "films.jsonl").write_text(films, encoding="utf-8")
    with opened(folder / "w") as wb:
        wb.add_knowledge("film", [folder / "films.jsonl"])
    return folder / "w" / "knowledge"


def shelved(folder: Path, films: Path) -> Path:
    """Put the knowledge base "film" of this file, which is indexed once, into a workspace that is not there yet."""
    if not folder.exists():
        shutil.copytree(_indexed(films.read_text(encoding="utf-8")), folder / "knowledge")
    return folder


def fill(wb: Workbench, notes: Mapping[str, str], base: str = "notes") -> None:
    """Add notes by their names, a file each."""
    (folder := wb.path / base).mkdir(exist_ok=True)
    for name, text in notes.items():
        (folder / f"{name}.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    wb.add_knowledge(base, [folder])


@cache
def _noted(notes: tuple[tuple[str, str], ...]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="notes-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with opened(folder) as wb:
        fill(wb, dict(notes))
    return folder / "knowledge"


def noted(folder: Path, notes: Mapping[str, str]) -> Path:
    """A workspace that is not there yet, with the knowledge base "notes" of these: they are indexed once."""
    shutil.copytree(_noted(tuple(notes.items())), folder / "knowledge")
    return folder


def environment() -> dict[str, str]:
    """For a process of its own: the same models, this project's package."""
    settings = {f"WORKBENCH_{name.upper()}": value for name, value in CORE.items()}
    return {**os.environ, **settings, "PYTHONPATH": str(PROJECT), "COLUMNS": "400"}


_LIMITED = """
import resource, sys; from workbench.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
main()
"""


def workbench(folder: Path, *words: str, kib: int | None = None, **own: str) -> subprocess.CompletedProcess[str]:
    """The command line: in this process, or in one of its own that writes no file larger than ``kib``."""
    words = (*words, "--workspace", str(folder))
    if kib is not None:
        command = [sys.executable, "-c", _LIMITED, str(kib * 1024), *words]
        how = {"capture_output": True, "text": True, "timeout": 120}
        return forked.run(command, env={**environment(), **own}, cwd=folder.parent, **how)
    with chdir(folder.parent):
        done = CliRunner().invoke(main, words, prog_name="workbench", env={**environment(), **own})
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)
