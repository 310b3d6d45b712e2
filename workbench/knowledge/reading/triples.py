"""Triples to documents: ``head<TAB>relation<TAB>tail``, a line each, one document for each head.

Its text says what the triples say, a line a relation, so that words and vectors find it; in the graph every triple is a
relation of its own name, and a tail that is a head somewhere is that head. Any number of lines is read in bounded
memory: they are sorted on disk, and their order in the file changes nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from workbench.knowledge.reading.files import Unreadable, lines
from workbench.state import Data
from workbench.text import clean

SUFFIXES = (".tsv", ".tsv.gz")
NODE = "Node"
"""The type of a document that is a head: its fields are relations, and their values nodes."""
_LONGEST = {"head": 500, "relation": 200, "tail": 500}
_HEADER = ({"head", "subject"}, {"relation", "predicate"}, {"tail", "object"})


class Head(NamedTuple):
    """The triples of one head: the line of the first of them, its name, and its tails by relation."""

    line: int
    name: str
    tails: dict[str, list[str]]


def are_in(path: Path) -> bool:
    """Check that a file holds triples; a table of another width does not."""
    sample = [line.rstrip("\r\n").count("\t") for _, line in islice(lines(path), 20) if isinstance(line, str)]
    return 2 in sample or not any(sample)


def heads(path: Path) -> Iterator[tuple[int, Head | str]]:
    """``(line, reason)`` for each line that is no triple, then ``(line, head)`` for each head, sorted by name."""
    with closing(sqlite3.connect("")) as sorter:  # a file of its own, gone when it is closed
        sorter.execute(
            "CREATE TABLE triples (head TEXT, relation TEXT, tail TEXT, line INTEGER, "
            "PRIMARY KEY (head, relation, tail)) WITHOUT ROWID"
        )
        rows: list[tuple[str, str, str, int]] = []
        for number, line in lines(path):
            try:
                cells = _cells(line)
            except Unreadable as error:
                yield number, str(error)
                continue
            heads = number == 1 and cells and all(c.lower() in names for c, names in zip(cells, _HEADER, strict=True))
            if cells and not heads:
                rows.append((*cells, number))
            if len(rows) >= 10_000:
                _keep(sorter, rows)
        _keep(sorter, rows)
        rows_by_head = sorter.execute("SELECT head, relation, tail, line FROM triples ORDER BY head, relation, tail")
        for name, group in groupby(rows_by_head, itemgetter(0)):
            head = _head(name, group)
            yield head.line, head


def _cells(line: str | Unreadable) -> tuple[str, str, str] | None:
    """Return the three names of a line; None for an empty one."""
    if isinstance(line, Unreadable):
        raise line
    text = clean(line).strip("\r\n")
    if not text.strip():
        return None
    cells = [cell.strip() for cell in text.split("\t")]
    if len(cells) != 3:
        raise Unreadable(f"{len(cells)} cells: a triple is head, relation and tail, with a tab between them")
    for cell, (name, longest) in zip(cells, _LONGEST.items(), strict=True):
        if not cell:
            raise Unreadable(f"the {name} is empty: write it, or leave the line out")
        if len(cell) > longest:
            raise Unreadable(f"the {name} has more than {longest} characters: shorten it")
    head, relation, tail = cells
    return head, relation, tail


def _keep(sorter: sqlite3.Connection, rows: list[tuple[str, str, str, int]]) -> None:
    sorter.executemany("INSERT OR IGNORE INTO triples VALUES (?, ?, ?, ?)", rows)
    rows.clear()


def _head(name: str, rows: Iterable[tuple[str, str, str, int]]) -> Head:
    tails: dict[str, list[str]] = {}
    first = 0
    for _, relation, tail, line in rows:
        tails.setdefault(relation, []).append(tail)
        first = min(first or line, line)
    return Head(first, name, tails)


def card(name: str, tails: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a head: a line for each relation, more where it has many tails, so that none is cut in two.

    >>> card("Tampopo", {"written_by": ["Jûzô Itami"], "has_tags": ["food", "ramen"]})
    'Tampopo — written by: Jûzô Itami.\\nTampopo — has tags: food, ramen.'
    """
    lines = []
    for relation, several in tails.items():
        line = ""
        for tail in several:
            # Characters after which a list of tails continues in a new line.
            if line and len(line) + len(tail) > 400:
                lines.append(line)
                line = ""
            line += f", {tail}" if line else in_words(name, relation, tail)
        lines.append(line)
    return "\n".join(f"{line.removesuffix('.')}." for line in lines)


def in_words(head: str, relation: str, tail: str) -> str:
    """Return one triple in words.

    >>> in_words("Tampopo", "written_by", "Jûzô Itami")
    'Tampopo — written by: Jûzô Itami'
    """
    return f"{head} — {relation.replace('_', ' ')}: {tail}"


def statements(head: str, tails: Data, passages: Sequence[tuple[str, str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    """(relation, tail, the triple in words, the passage that holds it) of one head, in the order of its text.

    The passages are gone through once: they are in the same order.
    """
    place = 0
    for relation, several in tails.items():
        for tail in several:
            places = (n for n in range(place, len(passages)) if tail in passages[n][1])
            place = next(places, place)
            yield relation, tail, in_words(head, relation, tail), passages[place][0] if passages else ""
