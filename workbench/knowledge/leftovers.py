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
from workbench.models import rerank

_HALF = re.compile(r"\.([a-z0-9][a-z0-9_-]{0,63})\.(?:rebuild|fresh|replaced|removed)-")
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


def half_done(library: Library, *, delete: bool) -> tuple[int, int]:
    """Folders that a killed rebuild or removal has left, and their bytes; with ``delete`` they go.

    What a process is at work on is not counted.
    """
    count = size = 0
    for folder in sorted(library.root.glob(".*")):
        if not (name := _HALF.match(folder.name)):
            continue
        with suppress(WorkspaceBusy), library.writing(name[1], make=False):
            count, size = count + 1, size + held(folder)
            if delete and folder.is_symlink():
                folder.unlink()
            elif delete:
                shutil.rmtree(folder, ignore_errors=True)
    return count, size


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
