"""CSV to records: a row each, its cells typed; a quote that is never closed loses one row and not the file."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.knowledge.reading.files import LONGEST, text_lines

_SENTENCE = re.compile(r"[。！？]|[.!?](\s+[A-Z]|$)")
_ANEW = 20
"""How often a table is read anew behind a quote that swallowed lines; later ones are reported with their lines."""


def records(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """``(line, record)`` of each row, or ``(line, reason)``.

    Where a quote has swallowed the lines behind it, reading begins anew with the next line.
    """
    csv.field_size_limit(LONGEST)
    header, begin, faults = list[str](), 0, dict[int, str]()
    for left in reversed(range(_ANEW + 1)):
        for first, last, row in _rows(path, begin, faults):
            if isinstance(row, list):
                if not header:
                    header = [name.strip() for name in row]
                elif any(cell.strip() for cell in row):
                    yield last, _record(header, row)
                continue
            yield (0, f"line {first}: {row}") if "never closed" in row else (first, f"not CSV: {row}")
            if last > first and header and left:
                begin = first
                break
        else:
            break
    yield from faults.items()


def _rows(path: Path, begin: int, faults: dict[int, str]) -> Iterator[tuple[int, int, list[str] | str]]:
    """(first line, last line, the row or what is wrong with it), after line ``begin``."""
    rows = csv.reader((line for number, line in text_lines(path, faults) if number > begin), strict=True)
    while True:
        first = begin + rows.line_num + 1
        try:
            row: list[str] | str | None = next(rows, None)
        except csv.Error as error:
            said = str(error)
            row = "a quote is opened and never closed" if "unexpected end" in said else said
            row += f" (to line {begin + rows.line_num})" if begin + rows.line_num > first else ""
        if row is None:
            return
        yield first, begin + rows.line_num, row


def _record(header: list[str], row: list[str]) -> dict[str, Any] | str:
    if len(row) > len(header):
        return f"more cells than the {len(header)} columns of the header"
    return {name: typed(cell) for name, cell in zip(header, row, strict=False) if name and cell.strip()}


def typed(cell: str) -> Any:
    """A cell as the value that it spells; what has a sentence in it is a text and no list.

    >>> typed("1993"), typed("7.5"), typed("Drama | Comedy"), typed("007"), typed("喜剧；爱情")
    (1993, 7.5, ['Drama', 'Comedy'], '007', ['喜剧', '爱情'])
    >>> typed("先洗净；再切块。"), typed("Press Ctrl|C to stop it. Then wait.")
    ('先洗净；再切块。', 'Press Ctrl|C to stop it. Then wait.')
    """
    cell = cell.strip()
    if re.fullmatch(r"-?(0|[1-9]\d{0,15})", cell):
        return int(cell)
    if re.fullmatch(r"-?(0|[1-9]\d{0,15})\.\d{1,15}", cell):
        return float(cell)
    if len(cell) < 300 and re.search(r"[|；]", cell) and not _SENTENCE.search(cell):
        return [part.strip() for part in re.split(r"[|；]", cell) if part.strip()]
    return cell
