"""What the other bases of a workspace keep of the same texts, so that one model need not embed a text twice.

Their indexes are only read, and what is found is copied: every base is complete by itself. One of them may be damaged,
half made, or of another model behind the same name (a server may have changed it): one of its vectors is computed anew
and compared before any is taken, and what cannot be read there is computed here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Table = Literal["vectors", "words"]
_KEY = {"vectors": "key", "words": "word"}
_AT_ONCE = 500
"""Keys in one query."""
_CLOSE = 0.01
"""By how much two vectors of one text may differ in a place: those of a server differ with what was sent along."""


class Siblings:
    """The indexes of the other bases in a folder.

    Args:
        root: the folder of all bases.
        name: of the base that is being made. It is not asked: it may be made anew because it is damaged.
    """

    def __init__(self, root: Path, name: str):
        self._paths = sorted(path for path in root.glob("[!.]*/index.db") if path.parent.name != name)
        self._like: dict[tuple[Path, Table], np.ndarray | None] = {}

    def found(
        self, table: Table, wanted: Mapping[str, str], embed: Callable[[list[str]], np.ndarray]
    ) -> dict[str, bytes]:
        """What they keep in that table of these texts, by key.

        Args:
            table: ``vectors`` or ``words``.
            wanted: the text of each key.
            embed: ``(len(texts), dimensions)`` of some texts, in the type in which the table keeps them.
        """
        found: dict[str, bytes] = {}
        for path in self._paths:
            rows = _read(path, table, [key for key in wanted if key not in found])
            if rows and (path, table) not in self._like:
                key = min(rows)
                like = embed([wanted[key]])[0]
                self._like[path, table] = like if _alike(rows[key], like) else None
            if rows and (known := self._like[path, table]) is not None:
                found |= {key: row for key, row in rows.items() if _sound(row, known)}
        return found


def _alike(row: bytes, like: np.ndarray) -> bool:
    import numpy as np

    return len(row) == like.nbytes and bool(np.abs(np.frombuffer(row, like.dtype) - like).max() < _CLOSE)


def _sound(row: bytes, like: np.ndarray) -> bool:
    """Whether it is a vector of that type and length 1: SQLite cannot know that a row is not what was written."""
    import numpy as np

    if len(row) != like.nbytes:
        return False
    exact = np.frombuffer(row, like.dtype).astype(np.float64)
    return bool(abs(exact @ exact - 1) < _CLOSE)


def _read(path: Path, table: Table, keys: list[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            for start in range(0, len(keys), _AT_ONCE):
                part = keys[start : start + _AT_ONCE]
                where = f"{_KEY[table]} IN ({', '.join('?' * len(part))})"
                found |= dict(connection.execute(f"SELECT {_KEY[table]}, vector FROM {table} WHERE {where}", part))
    except sqlite3.Error:  # damaged, half made or held: to say so is for whoever opens it
        return {}
    return found
