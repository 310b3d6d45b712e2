"""A file of questions, and what of each question may be known when it is asked: its id, its words, its conversation.

Everything else of a row (gold, answer, type, hops, evidence, decomposition) is for scoring. It stays here: what goes to
a tool is an ``Asked``, which has no place for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import CorpusError, shown
from workbench.knowledge import files

Row = dict[str, Any]
BY = ("type", "hops")
"""Fields of a row by which a table is split."""


@dataclass(frozen=True)
class Asked:
    """What may be read of a question at question time."""

    id: str
    question: str
    conv: str = ""


def read_rows(path: Path, *needed: str) -> list[Row]:
    """The rows of a JSON Lines file, plain or gzipped, each an object with these fields as strings.

    Raises:
        CorpusError: names the file and the line that is no such row.
    """
    found = []
    for number, text in _lines(Path(path)):
        try:
            row = json.loads(text)
            missing = [name for name in needed if not isinstance(row[name], str)]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorpusError(f"{path}:{number} is no question ({type(error).__name__}: {error}).") from None
        if missing:
            raise CorpusError(f"{path}:{number}: {missing[0]!r} must be a string.")
        found.append(row)
    return found


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        files.must_be_file(path)
        for number, line in files.lines(path):
            if isinstance(line, files.Unreadable):
                raise line
            if line.strip():
                yield number, files.decoded(line)
    except (files.Unreadable, *files.BROKEN) as error:
        raise CorpusError(f"{path}:{number}: {error}.") from None


def chosen(rows: Sequence[Row], where: Mapping[str, str], limit: int | None) -> list[Row]:
    """The rows that hold every ``field=value``; with a ``limit`` so many of them, evenly drawn from the whole file.

    Values are compared as text.

    >>> [row["id"] for row in chosen([{"id": "a", "hops": 2}, {"id": "b", "hops": 4}], {"hops": "4"}, None)]
    ['b']
    >>> [row["id"] for row in chosen([{"id": i} for i in "abcdef"], {}, 3)]
    ['a', 'c', 'e']

    Raises:
        CorpusError: no row is left, or two have one id.
    """
    kept = [row for row in rows if all(str(row.get(name)) == value for name, value in where.items())]
    if limit and limit < len(kept):
        kept = [kept[place * len(kept) // limit] for place in range(limit)]
    if not kept:
        held = {name: sorted({str(row.get(name)) for row in rows})[:8] for name in where}
        told = "; ".join(f"{name} is one of {', '.join(values)}" for name, values in held.items())
        raise CorpusError(f"No question is left to ask. {told or 'The file holds none'}.")
    seen: set[str] = set()
    for row in kept:
        if row["id"] in seen:
            raise CorpusError(f"Two questions have the id {shown(row['id'])}: give each its own.")
        seen.add(row["id"])
    return kept


def asked_of(row: Row) -> Asked:
    """What may be known of a row when it is asked."""
    return Asked(row["id"], row["question"], str(row.get("conv") or ""))


def listed(row: Row, name: str) -> list[str]:
    """The strings in a field of a row that is needed for scoring: gold ids, or answers.

    Raises:
        CorpusError: the field is missing, empty, or something else.
    """
    value = row.get(name)
    several = value if isinstance(value, list) else [value]
    if not several or not all(isinstance(one, str) and one for one in several):
        raise CorpusError(
            f"Question {shown(row['id'])} has {name} {shown(value)}: a list of strings is needed. "
            f"Its fields: {', '.join(row)}."
        )
    return list(dict.fromkeys(several))


def groups(rows: Sequence[Row]) -> dict[str, dict[str, list[str]]]:
    """Ids of the questions by each value of each field of ``BY`` that the rows have.

    >>> groups([{"id": "a", "hops": 2}, {"id": "b", "hops": 4}, {"id": "c", "hops": 2}])
    {'hops': {'2': ['a', 'c'], '4': ['b']}}
    """
    found: dict[str, dict[str, list[str]]] = {}
    for name in BY:
        for value in sorted({str(row[name]) for row in rows if name in row}):
            ids = [row["id"] for row in rows if name in row and str(row[name]) == value]
            found.setdefault(name, {})[value] = ids
    return found
