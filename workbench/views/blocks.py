"""Paragraphs and tables as plain data: ``render`` turns them into HTML, ``terminal`` into text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from workbench.text import unmarked
from workbench.views.labels import Labels
from workbench.views.markup import cut

Span = tuple[str, str]
"""A text and its look: ``""``, ``strong``, ``dim``, ``code``, ``status``."""
Paragraph = str | Span | Sequence[str | Span]
INSET = "\u00a0\u00a0"
_LONGEST = 50_000
"""Characters of an answer that are shown."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: its heading.
        kind: ``text``, ``number``, ``code``, ``status``, ``change``, ``url``, or ``bar`` for a share of 1.
        whole: whether its texts are never broken over lines.
    """

    name: str
    kind: str = "text"
    whole: bool = False


def columns(labels: Labels, *names: str) -> tuple[Column, ...]:
    """Return columns headed by labels, each as ``label:kind``; the default kind is text.

    >>> [(c.name, c.kind) for c in columns(Labels("zh"), "step", ":number")]
    [('步骤', 'text'), ('', 'number')]
    """
    return tuple(
        Column(labels(name) if name else "", kind or "text")
        for name, _, kind in (name.partition(":") for name in names)
    )


@dataclass(frozen=True)
class Lines:
    """Paragraphs of text; ``mark`` is the status of a frame around them, ``heading`` names them in a terminal."""

    paragraphs: Sequence[Paragraph]
    mark: str = ""
    heading: str = ""

    def spans(self) -> Iterator[list[Span]]:
        """Yield each paragraph as spans."""
        for paragraph in self.paragraphs:
            single = isinstance(paragraph, str) or isinstance(paragraph[0], str)
            parts: Any = [paragraph] if single else paragraph
            yield [(part, "") if isinstance(part, str) else part for part in parts]


@dataclass(frozen=True)
class Table:
    """Rows under a title, and blocks before them; HTML folds it, unless it is ``opened``."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    opened: bool = True
    notes: tuple[str, ...] = ()
    inside: tuple[Block, ...] = ()


Block = Lines | Table


def clipped(
    title: str,
    heads: Sequence[Column],
    rows: Iterable[Sequence[str]],
    *,
    opened: bool = True,
    notes: Iterable[str] = (),
) -> Table:
    """Return a table with its cells cut and its empty columns left out."""
    cells = [[cut(str(cell), 400) for cell in row] for row in rows]
    filled = [index for index in range(len(heads)) if any(row[index] for row in cells)]
    body = tuple(tuple(row[index] for index in filled) for row in cells)
    return Table(
        title,
        tuple(heads[index] for index in filled),
        body,
        opened,
        tuple(cut(note, 1000) for note in notes),
    )


def one_line(value: Any) -> str:
    """Return a value on one line: tables use the lines below the first for remarks."""
    return " ".join(str(value or "").split())


def split_tables(text: str) -> Iterator[tuple[bool, list[str]]]:
    """Yield the lines of an answer in groups: True with those of a table of Markdown, without its rule.

    >>> list(split_tables("Both:\\n\\n| | Moss |\\n| --- | --- |\\n| year | 1821 |"))
    [(False, ['Both:']), (True, ['| | Moss |', '| year | 1821 |'])]
    """
    lines = (line for line in cut(text, _LONGEST).splitlines() if line.strip("|-: "))
    for is_table, group in groupby(lines, key=lambda line: line.startswith("|")):
        yield is_table, list(group)


def shared_values(cells: Sequence[str]) -> str:
    """Return whether the columns of a row have the ``same`` values, ``partly``, or ``other`` ones; citations aside.

    Lists are open, so that those without a common value have ``none``, rather than other ones. Nothing is said of
    values that are missing, and of those that a cut may hide.

    >>> shared_values(["genre", "Drama and War [1]", "War, Drama [2]"]), shared_values(["year", "1821", "1822"])
    ('same', 'other')
    >>> shared_values(["guests", "Ann and Bo", "Cy"]), shared_values(["guests", "Ann, Bo …", "Cy"])
    ('none', '')
    """
    joints = r", and |, | and |[、，和]"
    texts = [unmarked(cell) for cell in cells[1:]]
    columns = {frozenset(re.split(joints, text)) for text in texts}
    if len(texts) < 2 or any(text[-1:] in "–…" for text in texts):
        return ""
    if len(columns) == 1:
        return "same"
    if frozenset.intersection(*columns):
        return "partly"
    return "none" if max(map(len, columns)) > 1 else "other"


def answer_blocks(answer: str, heading: str, labels: Labels) -> Iterator[Block]:
    """Yield the paragraphs and the tables of an answer below a heading, its rows of equal values marked."""
    for is_table, lines in split_tables(answer):
        if is_table:
            head, *rows = map(split_row, lines)
            for row in rows:
                if shared := shared_values(row):
                    row[0] += f" {labels(f'beside_{shared}')}"
            cells = (tuple(row[: len(head)]) for row in rows)
            yield Table("", tuple(map(Column, head)), tuple(cells))
        else:
            yield Lines(lines, heading=heading)
        heading = ""


def split_row(line: str) -> list[str]:
    """Return the cells of a row of a table of Markdown."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
