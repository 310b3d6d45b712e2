"""Tables to records: the delimiter, the header and the writing of each column are decided once for a table.

A quote that is never closed loses one row and not the file.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from workbench.errors import shown
from workbench.knowledge.reading import columns
from workbench.knowledge.reading.files import LONGEST, Note, Unreadable, lines
from workbench.state import Json

_SENTENCE = re.compile(r"[。！？]|[.!?](\s+[A-Z]|$)")
_RESTARTS = 20
"""How often a table is read again behind a quote that swallowed lines; later ones are reported with their lines."""
_SAMPLE = 100
_LIST = 300
"""Characters of a cell that may be a list."""
_PERSON = re.compile(
    r"(?:.*[ _])?(?:author|editor|translator|creator|contact|owner|manager|member|teacher|student|speaker|person|people"
    r"|employee|staff|investigator|supervisor|(?:written|made|built|founded|reported)[ _]by)s?"
    r"|作者|编者|译者|负责人|联系人|成员|教师|学生|员工",
    re.IGNORECASE,
)
"""Names of columns whose cells are names of people."""
_FIRST_NAMES = r"[A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,3}"
_FAMILY = r"(?:(?:van|von|de|der|den|la|di|da) )*[A-Z][\w'’-]*(?: [A-Z][\w'’-]+)?"
_SURNAME_FIRST = re.compile(rf"({_FAMILY}),\s*({_FIRST_NAMES})")

Row = tuple[int, int, list[str] | str]
"""First line, last line, and the cells or what is wrong with them."""


def records(path: Path, untyped: Collection[str]) -> Iterator[tuple[int, Json | str]]:
    """Yield ``(line, record)`` of each row, or ``(line, reason)``; the file is read twice.

    Args:
        path: of a CSV file, whatever its delimiter.
        untyped: names of columns that are text whatever is written.
    """
    csv.field_size_limit(LONGEST)
    sample = [line for _, line in islice(lines(path), _SAMPLE) if isinstance(line, str)]
    delimiter, skip = _delimiter(sample)
    yield from _typed(lambda: _rows(path, delimiter, skip), untyped, comma=delimiter == ";")


def sheet(cells: Sequence[Sequence[str]], untyped: Collection[str]) -> Iterator[tuple[int, Json | str]]:
    """Yield ``(row, record)`` of a sheet of a spreadsheet."""
    rows = [(n, n, [cell.strip().removesuffix(" 00:00:00") for cell in row]) for n, row in enumerate(cells, 1)]
    yield from _typed(lambda: iter(rows), untyped, comma=False)


def _typed(
    rows: Callable[[], Iterator[Row]], untyped: Collection[str], *, comma: bool
) -> Iterator[tuple[int, Json | str]]:
    """Yield the records of rows, which ``rows`` returns as often unchanged called."""
    width = Counter(len(_filled(row)) for _, _, row in islice(rows(), _SAMPLE) if isinstance(row, list))
    header, table, index, notes = list[str](), list[columns.Column](), list[str](), list[Note]()
    for _, line, row in rows():
        if isinstance(row, str) or not any(row):
            continue
        if header:
            index.append(row[0]) if len(index) < _SAMPLE else None
            for column, cell in zip(table, row, strict=False):
                column.see(cell)
        elif row[0] and len(_filled(row)) == 1 and width[1] < width.total() / 2:
            yield line, Note(f"a title above the table, and not a record: {shown(row[0])}")
        else:
            begin, header = line, row
            table = [columns.Column(name) for name in row]
    names = _names(header, index, notes)
    typed_columns = [column for column, name in zip(table, names, strict=True) if name and name not in untyped]
    columns.settle(typed_columns, comma)
    for column, name in zip(table, names, strict=True):
        column.name = name
    notes += [Note(text) for column in typed_columns if (text := column.note())]
    yield from ((begin, note) for note in notes)
    for first, last, row in rows():
        if isinstance(row, str):
            yield (0, f"line {first}: {row}") if "never closed" in row else (first, f"not CSV: {row}")
        elif last > begin and any(row):
            yield last, _record(names, table, row, untyped)


def _filled(row: Iterable[str] | str) -> list[str]:
    return [cell for cell in row if cell]


def _delimiter(sample: Sequence[str]) -> tuple[str, int]:
    """Return the delimiter that cuts most rows into as many cells, and how many lines say it."""
    if sample and (match := re.fullmatch(r"\"?sep=(.)\"?\s*", sample[0])):
        return match[1], 1
    score = dict[str, tuple[float, int]]()
    for delimiter in ",;\t|":
        try:
            widths = Counter(len(row) for row in csv.reader(sample, delimiter=delimiter) if any(row))
        except csv.Error:
            continue
        width, count = max(widths.items(), key=lambda item: (item[0] > 1, item[1]), default=(1, 0))
        score[delimiter] = (count / widths.total() if width > 1 else 0.0, width)
    return max(score, key=lambda delimiter: score[delimiter], default=","), 0


def _rows(path: Path, delimiter: str, begin: int) -> Iterator[Row]:
    """Yield the rows; where a quote has swallowed the lines behind it, reading continues with the next line."""
    faults = dict[int, str]()
    for left in reversed(range(_RESTARTS + 1)):
        for first, last, row in _read(path, delimiter, begin, faults):
            yield first, last, row
            if isinstance(row, str) and last > first and left:
                begin = first
                break
        else:
            break
    yield from ((line, line, fault) for line, fault in faults.items())


def _read(path: Path, delimiter: str, begin: int, faults: dict[int, str]) -> Iterator[Row]:
    def text() -> Iterator[str]:
        for number, line in lines(path):
            if isinstance(line, Unreadable):
                faults[number] = str(line)
            elif number > begin:
                yield line

    rows = csv.reader(text(), delimiter=delimiter, strict=True)
    while True:
        first = begin + rows.line_num + 1
        try:
            row: list[str] | str | None = next(rows, None)
        except csv.Error as error:
            row = "a quote is opened and never closed" if "unexpected end" in str(error) else str(error)
            row += f" (to line {begin + rows.line_num})" if begin + rows.line_num > first else ""
        if row is None:
            return
        last = begin + rows.line_num
        yield first, last, row if isinstance(row, str) else [cell.strip() for cell in row]


def _names(header: Sequence[str], first: Sequence[str], notes: list[Note]) -> list[str]:
    """Return a name of its own for each column; an index, which only counts the rows, has none."""
    names = list[str]()
    for place, title in enumerate(header):
        name = title or (
            "name" if not place and "name" not in header and "title" not in header else f"column {place + 1}"
        )
        if not place and not title and first and _counts(first):
            name = ""
            notes.append(Note("the first column has no name and only counts the rows: it is left out"))
        elif name in names:
            name = next(f"{title} {n}" for n in range(2, len(header) + 2) if f"{title} {n}" not in (*names, *header))
            notes.append(Note(f"two columns are named {shown(title)}: the later one is {shown(name)}"))
        names.append(name)
    return names


def _counts(cells: Sequence[str]) -> bool:
    return cells[0] in ("0", "1") and all(cell == str(int(cells[0]) + n) for n, cell in enumerate(cells))


def _record(
    names: Sequence[str], table: Sequence[columns.Column], row: Sequence[str], untyped: Collection[str]
) -> Json | str:
    if any(row[len(names) :]):
        return f"more cells than the {len(names)} columns of the header"
    record, other_names = Json(), dict[str, list[str]]()
    for name, column, cell in zip(names, table, row, strict=False):
        if not name or not cell:
            continue
        value = cell if name in untyped else column.read(cell)
        if isinstance(value, str) and column.kind == "text" and name not in untyped:
            value = _people(cell, other_names) if _PERSON.fullmatch(name) else typed(cell)
        if value is not None:
            record[name] = value
    return {**record, "names": other_names} if other_names else record


def _people(cell: str, other_names: dict[str, list[str]]) -> Any:
    """Return the names of a cell, given name first; ``others`` gets how they are written."""
    people = list[str]()
    for name in re.split(r"\s*[;；|、\n]\s*|\s+(?:&|and)\s+(?=[A-Z])", cell.strip(" ;；|、")):
        turned = _SURNAME_FIRST.fullmatch(name)
        people.append(f"{turned[2]} {turned[1]}" if turned else name)
        if turned:
            other_names[people[-1]] = [name]
    return people if len(people) > 1 else people[0]


def typed(cell: str) -> Any:
    """Return a cell as the value that it spells; what has a sentence in it is a text and not a list.

    >>> typed("1993"), typed("7.5"), typed("1.10"), typed("Drama | Comedy"), typed("007"), typed("喜剧；爱情")
    (1993, 7.5, '1.10', ['Drama', 'Comedy'], '007', ['喜剧', '爱情'])
    >>> typed("先洗净；再切块。"), typed("Press Ctrl|C to stop it. Then wait."), typed("tea; green tea")
    ('先洗净；再切块。', 'Press Ctrl|C to stop it. Then wait.', ['tea', 'green tea'])
    """
    cell = cell.strip()
    if re.fullmatch(r"-?(0|[1-9]\d{0,15})", cell):
        return int(cell)
    if re.fullmatch(r"-?(0|[1-9]\d{0,15})\.\d{1,15}", cell) and str(float(cell)) == cell:
        return float(cell)
    if len(cell) < _LIST and re.search(r"[|；]|; ", cell) and not _SENTENCE.search(cell):
        return [part.strip() for part in re.split(r"[|；;]", cell) if part.strip()]
    return cell
