"""What an index holds that it does not need: computed for passages that are gone, or by an ``add`` that was killed."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import suppress
from pathlib import Path

from workbench.errors import WorkspaceBusy
from workbench.knowledge import vectors
from workbench.knowledge.index import Index
from workbench.knowledge.library import Library
from workbench.knowledge.rebuilding import READY
from workbench.lease import locked
from workbench.models import rerank

_HALF = re.compile(r"\.([a-z0-9][a-z0-9_-]{0,63})\.(?:(?:rebuild|fresh|replaced|removed)-.*|ready|holder\.json|lock)")
_FILE = re.compile(r"\.(?:salvage-.*|.+\.[0-9a-f]{8})")
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
    """What a killed writer has left beside a base and in it, and its bytes; with ``delete`` it is gone.

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
