"""Tables to records: delimiter, header and the writing of a column are decided once for a table. Triples to heads."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from workbench.errors import shown
from workbench.knowledge.reading.files import LONGEST, Note, Unreadable, lines
from workbench.state import Json
from workbench.text import amount, clean

_SENTENCE = re.compile(r"[。！？]|[.!?](\s+[A-Z]|$)")
_SAMPLE = 100
_MOSTLY = 0.95
_NO_VALUE = "- – — n/a na nan null none nil ? #n/a n.a. unknown 无 未知 不详 ."
MISSING = frozenset(_NO_VALUE.split()) | {""}
"""Cells that say that there is no value."""
_PEOPLE = re.compile(
    r"(?:author|editor|translator|creator|written[ _]by)s?|作者|编者|译者|负责人|成员",
    re.IGNORECASE,
)
"""Names of columns whose cells are names of people."""
_SURNAME_FIRST = re.compile(
    r"((?:[a-z]+ )*[A-Z][\w'’-]*(?: [A-Z][\w'’-]+)?),\s*([A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,3})"
)
_DAY = re.compile(r"(\d{1,2})([./-])\s?(\d{1,2})\2\s?(\d{4})\b(.*)")
_COMMA_DECIMAL = re.compile(r"[^.]*\d,\d{1,2}(?!\d)|.*\d[.' ]\d{3},\d")
_POINT_DECIMAL = re.compile(r"[^,]*\d\.\d{1,2}(?!\d)|.*\d[,' ]\d{3}\.\d")
_SWAPPED = str.maketrans(",.", ".,")

Row = tuple[int, list[str] | Unreadable]
"""A line, and the cells or what is wrong with them."""
Records = Iterator[tuple[int, Any]]
"""``(line, record)``, ``(line, Unreadable)`` why it cannot be read, or a ``Note`` on the table."""


def records(path: Path, untyped: Collection[str]) -> Records:
    """Yield the record of each row; the file is read twice.

    Args:
        path: of a CSV file, whatever its delimiter.
        untyped: names of columns that are text whatever is written.
    """
    csv.field_size_limit(LONGEST)
    sample = [line for _, line in islice(lines(path), _SAMPLE) if isinstance(line, str)]
    delimiter = max(
        ",;\t|",
        key=lambda sign: (sum(sign in line for line in sample), "".join(sample[:1]).count(sign)),
    )
    yield from _typed(lambda: _rows(path, delimiter), untyped, comma=delimiter == ";")


def sheet(cells: Sequence[Sequence[str]], untyped: Collection[str]) -> Records:
    """Yield the records of a sheet of a spreadsheet, with the numbers of their rows."""
    rows = [
        (n, [cell.strip().removesuffix(" 00:00:00") for cell in row])
        for n, row in enumerate(cells, 1)
    ]
    yield from _typed(lambda: iter(rows), untyped, comma=False)


def _rows(path: Path, delimiter: str) -> Iterator[Row]:
    """Yield the rows; behind a quote that is never closed each line is a row, and quotes mean nothing."""
    faults = {}

    def text(begin: int) -> Iterator[str]:
        for number, line in lines(path):
            if isinstance(line, Unreadable):
                faults[number] = line
            elif number > begin:
                yield line

    begin = 0
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
        rows = csv.reader(text(begin), delimiter=delimiter, quoting=quoting, strict=True)
        last = begin
        try:
            for row in rows:
                last = begin + rows.line_num
                yield last, [cell.strip() for cell in row]
        except csv.Error as error:
            begin = last + 1
            why = f"not CSV: {error}; the lines behind it are read without quotes"
            yield begin, Unreadable(why)
        else:
            break
    yield from faults.items()


def _typed(
    rows: Callable[[], Iterator[Row]], untyped: Collection[str], *, comma: bool
) -> Records:
    """Yield the records of rows, which ``rows`` returns as often unchanged called."""
    wide = max((_filled(row) for _, row in islice(rows(), _SAMPLE)), default=0)
    begin = 0
    columns = list[Column]()
    unnamed = False
    for line, row in rows():
        if isinstance(row, Unreadable):
            continue
        if columns:
            for column, cell in zip(columns, row, strict=False):
                column.see(cell)
        elif row and 2 * _filled(row) >= wide:
            begin = line
            columns = [Column(name, comma) for name in _names(row)]
            unnamed = not row[0]
        elif any(row):
            yield (
                line,
                Note(
                    f"a title above the table, and not a record: {shown(' '.join(row).strip())}"
                ),
            )
    if unnamed and columns[0].counts:  # an index, which only counts the rows
        columns[0].name = ""
    for column in columns:
        if note := column.note():
            yield begin, Note(note)
    for line, row in rows():
        if isinstance(row, Unreadable):
            yield line, row
        elif line > begin and any(row):
            yield line, _record(columns, row, untyped)


def _filled(row: Sequence[str] | Unreadable) -> int:
    return 0 if isinstance(row, Unreadable) else sum(map(bool, row))


def _names(header: Sequence[str]) -> list[str]:
    """Return a name for each column, so that no two have the same."""
    names = []
    for place, title in enumerate(header):
        name = title or (
            "name" if not place and not {"name", "title"} & set(header) else f"column {place + 1}"
        )
        names.append(name if name not in names else f"{name} {place + 1}")
    return names


class Column:
    """A column while its cells are seen; then it reads them.

    1,200 is twelve hundred or one and a fifth, 03/04/2024 is in March or in April: other cells of the column may say.
    """

    def __init__(self, name: str, comma: bool):
        self.name = name
        self._comma = comma
        self._count = self._numbers = self._swapped = self._dates = 0
        self._marks = set[str]()
        self._orders = set[str]()
        self._example = ""
        self._codes = False
        self.counts = True

    def see(self, cell: str) -> None:
        """Take a cell into account."""
        if cell.lower() in MISSING:
            return
        self.counts = self.counts and cell in (str(self._count), str(self._count + 1))
        self._count += 1
        self._codes = self._codes or bool(re.match(r"0\d", cell))
        self._numbers += amount(cell) is not None
        self._swapped += amount(cell.translate(_SWAPPED)) is not None
        self._marks |= {
            mark
            for mark, proof in ((",", _COMMA_DECIMAL), (".", _POINT_DECIMAL))
            if proof.match(cell)
        }
        if day := _DAY.fullmatch(cell):
            self._dates = self._dates + 1
            self._example = cell
            first = int(day[1])
            second = int(day[3])
            proofs = {"day": first > 12 or day[2] == ".", "month": second > 12}
            self._orders |= {order for order, proof in proofs.items() if proof}

    @property
    def _is_date(self) -> bool:
        return self._dates > 0 and self._dates >= _MOSTLY * self._count

    def note(self) -> str:
        """Return why a column of dates stays text; "" where there is nothing to say."""
        if not self._is_date or len(self._orders) == 1:
            return ""
        return f"column {shown(self.name)} stays text: {shown(self._example)} may be read in two ways"

    def read(self, cell: str) -> Any:
        """Return the value of a cell; None where it says that there is none."""
        comma = self._marks == {","} or (self._comma and not self._marks)
        numbers = self._swapped if comma else self._numbers
        if self._is_date:
            day = _DAY.fullmatch(cell)
            if day and len(self._orders) == 1:
                month, number = (day[1], day[3]) if "month" in self._orders else (day[3], day[1])
                return f"{day[4]}-{int(month):02}-{int(number):02}{day[5]}"
        elif (
            numbers
            and numbers >= _MOSTLY * self._count
            and not self._codes
            and len(self._marks) < 2
        ):
            if cell.lower() in MISSING:
                return None
            number, unit = amount(cell.translate(_SWAPPED) if comma else cell) or (None, "")
            if number is not None and not unit:
                return int(number) if number.is_integer() and "e" not in cell.lower() else number
            if number is None or amount(cell) == (number, unit):
                return cell
            return f"{number:.15g} {unit}"
        return cell


def _record(
    columns: Sequence[Column], row: Sequence[str], untyped: Collection[str]
) -> Json | Unreadable:
    if any(row[len(columns) :]):
        return Unreadable(f"more cells than the {len(columns)} columns of the header")
    record = Json()
    other_names = dict[str, list[str]]()
    for column, cell in zip(columns, row, strict=False):
        name = column.name
        if not name or not cell:
            continue
        is_text = name.lower() in untyped
        value = cell if is_text else column.read(cell)
        if isinstance(value, str) and not is_text:
            value = _people(cell, other_names) if _PEOPLE.fullmatch(name) else typed(value)
        if value is not None:
            record[name] = value
    return {**record, "names": other_names} if other_names else record


def _people(cell: str, other_names: dict[str, list[str]]) -> Any:
    """Return the names of a cell, given name first; ``other_names`` gets how they are written."""
    people = []
    for name in re.split(r"\s*[;；|、]\s*|\s+(?:&|and)\s+(?=[A-Z])", cell.strip(" ;；|、")):
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
    # Characters of a cell that may be a list.
    if len(cell) < 300 and re.search(r"[|；]|; ", cell) and not _SENTENCE.search(cell):
        return [part.strip() for part in re.split(r"[|；;]", cell) if part.strip()]
    return cell


# --- Triples: ``head<TAB>relation<TAB>tail``, a line each, one document for each head ---
#
# Relations are the fields of a document, and its text says them, a line a relation, so that words and vectors find it.
# The order of the lines changes nothing.

TRIPLES = (".tsv", ".tsv.gz")
NODE = "Node"
"""The type of a document that is a head."""
_HEADER = ({"head", "subject"}, {"relation", "predicate"}, {"tail", "object"})

Tails = dict[str, list[str]]
"""Relation -> the tails of one head."""


def are_triples(path: Path) -> bool:
    """Check that a file holds triples; a table of another width does not."""
    sample = [
        line.rstrip("\r\n").count("\t")
        for _, line in islice(lines(path), 20)
        if isinstance(line, str)
    ]
    return 2 in sample or not any(sample)


def heads(path: Path) -> Iterator[tuple[int, str | tuple[str, Tails]]]:
    """Yield ``(line, reason)`` for a line that is no triple, then ``(line, (name, tails))`` of each head, by name."""
    by_head: dict[str, tuple[int, set[tuple[str, str]]]] = {}
    for number, line in lines(path):
        cells = _cells(line)
        if isinstance(cells, str):
            yield number, cells
            continue
        is_header = number == 1 and all(
            c.lower() in names for c, names in zip(cells, _HEADER, strict=False)
        )
        if cells and not is_header:
            head, relation, tail = cells
            by_head.setdefault(head, (number, set()))[1].add((relation, tail))
    for head, (number, pairs) in sorted(by_head.items()):
        tails: Tails = {}
        for relation, tail in sorted(pairs):
            tails.setdefault(relation, []).append(tail)
        yield number, (head, tails)


def _cells(line: str | Unreadable) -> list[str] | str:
    """Return the three names of a line, none for an empty one, or why it has no three."""
    longest = 500
    if isinstance(line, Unreadable):
        return str(line)
    cells = [cell.strip() for cell in clean(line).strip("\r\n").split("\t")]
    if not any(cells):
        return []
    if len(cells) != 3:
        return f"{len(cells)} cells: a triple is head, relation and tail, with a tab between them"
    if not all(cells):
        return "one of the three is empty: write it, or leave the line out"
    if max(map(len, cells)) > longest:
        return f"one of the three has more than {longest} characters: shorten it"
    return cells


def head_text(name: str, tails: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a head, a line for each relation.

    >>> head_text("Tampopo", {"written_by": ["Jûzô Itami"], "has_tags": ["food", "ramen"]})
    'Tampopo — written by: Jûzô Itami.\\nTampopo — has tags: food, ramen.'
    """
    lines = (in_words(name, relation, ", ".join(several)) for relation, several in tails.items())
    return "\n".join(f"{line.removesuffix('.')}." for line in lines)


def in_words(head: str, relation: str, tail: str) -> str:
    """Return one triple in words.

    >>> in_words("Tampopo", "written_by", "Jûzô Itami")
    'Tampopo — written by: Jûzô Itami'
    """
    return f"{head} — {relation.replace('_', ' ')}: {tail}"
