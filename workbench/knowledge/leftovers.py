"""What an index holds that it does not need: computed for passages that are gone, or by an ``add`` that was killed."""

from __future__ import annotations

import json

from workbench.knowledge import vectors
from workbench.knowledge.index import Index
from workbench.knowledge.library import Library
from workbench.models import rerank

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
