"""Rows of a JSON Lines file: questions with the ids of what answers them, and whatever else a set holds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.errors import CorpusError, shown
from workbench.knowledge.reading import files
from workbench.state import Json, as_list

Row = Json
GROUPS = ("type", "category", "hops", "kind", "split")
"""Fields of a row by which a table is split."""


def read_rows(path: Path, *fields: str) -> list[Row]:
    """Read a JSON Lines file, plain or gzipped, of objects with these fields as strings.

    Raises:
        CorpusError: names the file and the line that cannot be used.
    """
    rows = []
    for number, text in _lines(Path(path)):
        try:
            row = json.loads(text)
            wrong = [name for name in fields if not isinstance(row[name], str)]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorpusError(
                f"{path}:{number} is no row ({type(error).__name__}: {error})."
            ) from None
        if wrong:
            raise CorpusError(f"{path}:{number}: {wrong[0]!r} must be a string.")
        rows.append(row)
    return rows


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        files.must_be_file(path)
        for number, line in files.lines(path):
            if isinstance(line, files.Unreadable):
                raise line
            if line.strip():
                yield number, line
    except (files.Unreadable, *files.BROKEN) as error:
        raise CorpusError(f"{path}:{number}: {error}.") from None


def choose(
    rows: Sequence[Row], where: Mapping[str, str] | None = None, limit: int | None = None
) -> list[Row]:
    """Return the rows with these values, compared as text; with a ``limit`` so many, evenly drawn from the whole file.

    >>> [row["id"] for row in choose([{"id": "a", "hops": 2}, {"id": "b", "hops": 4}], {"hops": "4"})]
    ['b']
    >>> [row["id"] for row in choose([{"id": i} for i in "abcdef"], limit=3)]
    ['a', 'c', 'e']

    Raises:
        CorpusError: no row is left, or two have the same id.
    """
    where = where or {}
    chosen = [
        row for row in rows if all(str(row.get(name)) == value for name, value in where.items())
    ]
    if limit and limit < len(chosen):
        chosen = [chosen[place * len(chosen) // limit] for place in range(limit)]
    if not chosen:
        present = {name: sorted({str(row.get(name)) for row in rows})[:8] for name in where}
        hint = "; ".join(
            f"{name} is one of {', '.join(values)}" for name, values in present.items()
        )
        raise CorpusError(f"No question is left to ask. {hint or 'The file holds none'}.")
    for row_id, count in Counter(row["id"] for row in chosen).items():
        if count > 1:
            raise CorpusError(f"Two questions have the id {shown(row_id)}: give each its own.")
    return chosen


def gold_ids(row: Row, field: str = "gold") -> list[str]:
    """Return the ids in a field that is needed for scoring.

    Raises:
        CorpusError: the field is missing, empty, or something else.
    """
    value = row.get(field)
    ids: list[Any] = as_list(value)
    if not ids or not all(isinstance(name, str) and name for name in ids):
        raise CorpusError(
            f"Question {shown(row['id'])} has {field} {shown(value)}: a list of strings is needed. "
            f"Its fields: {', '.join(row)}."
        )
    return distinct(ids)


def distinct(ids: Iterable[str]) -> list[str]:
    """Return each id at its first appearance, without the empty one.

    >>> distinct(["a", "", "b", "a"])
    ['a', 'b']
    """
    return [name for name in dict.fromkeys(ids) if name]


def groups(rows: Sequence[Row]) -> dict[str, dict[str, list[str]]]:
    """Return the ids of the questions by each value of each field of ``GROUPS`` that the rows have.

    >>> groups([{"id": "a", "hops": 2}, {"id": "b", "hops": 4}, {"id": "c", "hops": 2}])
    {'hops': {'2': ['a', 'c'], '4': ['b']}}
    """
    by_field: dict[str, dict[str, list[str]]] = {}
    for field in GROUPS:
        for row in sorted((row for row in rows if field in row), key=lambda row: str(row[field])):
            by_field.setdefault(field, {}).setdefault(str(row[field]), []).append(row["id"])
    return by_field
