"""The writing of a column, decided once from all of its cells: numbers, units and dates; else it stays text.

1,200 is twelve hundred or one and a fifth, 03/04/2024 is in March or in April: a cell alone does not say, other cells
of its column, or of its table, may. What none says stays text, and ``note`` reports it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Any, NamedTuple

from workbench.errors import shown
from workbench.text import MONTH_NAMES, SIZES, amount, iso, month_number

_NO_VALUE = "- – — n/a na nan null none nil ? #n/a n.a. unknown 无 未知 不详 ."
MISSING = frozenset(_NO_VALUE.split()) | {""}
"""Cells that say that there is no value."""
_MOSTLY = 0.95
_DIGITS = 15
"""Digits of a number; what has more is a name of something."""
_OPEN = "?"
"""The mark of a number, or the order of a day, that another cell has to prove."""
_NUMBER = re.compile(
    r"(?P<open>\()?\s*(?P<sign>[-+])?\s*(?P<before>[^\w\s.,'()+-]|[A-Z]{2,3}|[A-Z]{1,3}\$)?\s*(?P<inner>-)?\s*"
    r"(?P<digits>\d[\d.,' ]*(?<=\d)|[.,]\d+)(?P<power>[eE][-+]?\d{1,2}(?!\d))?\s*(?P<unit>[^\d\s()-][^\d()]{0,19}?)?\s*"
    r"(?P<after>-)?\s*(?P<close>\))?"
)
_GROUPED = re.compile(r"\d{1,3}(?:(?P<mark>[., '])\d{3})(?:(?P=mark)\d{3})*|\d{1,2}(?:,\d\d)+,\d{3}")
_PARTS = re.compile(r"(\d+(?:\.\d+)?)\s*([^\W\d]+)[\s,]*")
_DAY = re.compile(r"(\d{1,2})(\.|/|-)\s?(\d{1,2})\2\s?(\d{4}|\d\d)(?:[ T,]+(\d{1,2}:\d\d.*))?")
_NAMED_DAY = re.compile(rf"(\d{{1,2}})[ -]({MONTH_NAMES})\.?[ -](\d\d)", re.IGNORECASE)


class _Number(NamedTuple):
    digits: str
    decimal: str
    factor: float
    unit: str


class _Day(NamedTuple):
    year: int
    first: int
    second: int
    order: str
    time: str


class Column:
    """A column while its cells are seen; then it reads them.

    Attributes:
        marks: the decimal marks that cells prove; where there is none, what the caller adds from other columns.
        orders: ``day`` or ``month``, whichever cells prove to be written first.
        separators: marks of which no cell alone says what they separate.
    """

    def __init__(self, name: str):
        self.name = name
        self.marks, self.orders = set[str](), set[str]()
        self._count, self._dates, self._zeros = 0, 0, False
        self._units = Counter[str]()
        self.separators = set[str]()
        self._examples = dict[str, str]()
        self._open = self._odd = self._unusual = ""

    def see(self, cell: str) -> None:
        """Take a cell into account."""
        if cell.lower() in MISSING:
            return
        self._count += 1
        if day := _day(cell):
            self._dates += 1
            proof = day.order if isinstance(day, _Day) else ""
            self.orders |= {proof} - {"", _OPEN}
        elif number := _number(cell):
            proof = number.decimal
            self._units[number.unit] += 1
            self._zeros = self._zeros or bool(re.match(r"0\d", number.digits))
            self.marks |= {proof} - {"", _OPEN}
            self._examples.setdefault(number.unit, cell)
            if proof == "," or amount(cell) is None:
                self._unusual = self._unusual or cell
            if proof == _OPEN:
                self.separators |= set(number.digits) & {",", "."}
        else:
            proof, self._odd = "", self._odd or cell
        self._open = cell if proof == _OPEN else self._open

    @property
    def kind(self) -> str:
        """number, date, text, or unsure: its cells look like one of them, and contradict each other."""
        numbers = self._units.total()
        if self._dates and self._dates >= _MOSTLY * self._count:
            return "unsure" if self._open and len(self.orders) != 1 else "date"
        if self._zeros or numbers < _MOSTLY * self._count or not numbers:
            return "unsure" if 2 * numbers > self._count and not self._zeros else "text"
        kinds = {_size(unit)[0] for unit in self._units}
        if len(kinds) > 1:
            return "unsure" if all(_size(unit)[0] != unit for unit in self._units if unit) else "text"
        return "unsure" if self._open and len(self.marks) != 1 else "number"

    @property
    def mixed(self) -> bool:
        """Check for cells that are numbers that cannot be compared: codes, units of several kinds, two writings."""
        return self.kind != "number" and self._count > 0 and self._units.total() >= _MOSTLY * self._count

    def note(self) -> str:
        """Return how an unusual writing is read, or why the column stays text; "" where there is nothing to say."""
        kind, name = self.kind, f"column {shown(self.name)}"
        rare = self._examples[self._units.most_common()[-1][0]] if len(self._units) > 1 else ""
        example = self._open or self._unusual or rare or self._odd
        if kind == "unsure":
            why = f"{shown(self._open)} may be read in two ways" if self._open else ""
            units = ", ".join(unit or "none" for unit in self._units)
            why = why or (f"{shown(self._odd)} is not a number" if self._odd else f"its units are {units}")
            return f"{name} stays text: {why}"
        if kind == "text" or not example:
            return ""
        odd = f"; {shown(self._odd)} stays text" if self._odd else ""
        return f"{name}: {shown(example)} is read as {shown(self.read(example))}{odd}"

    def read(self, cell: str) -> Any:
        """Return the value of a cell; None where it says that there is none."""
        kind = self.kind
        if kind in ("number", "date") and cell.lower() in MISSING:
            return None
        if kind == "date" and (day := _day(cell)):
            return day if isinstance(day, str) else _iso(day, "".join(self.orders))
        number = _number(cell) if kind == "number" else None
        if number is None:
            return cell
        unit = self._units.most_common(1)[0][0]
        value = _read_value(number, self.marks, unit)
        return value if not unit else cell if amount(cell) == (value, unit) else f"{value:.15g} {unit}"


def settle(columns: list[Column], comma: bool) -> None:
    """Let columns that prove nothing follow the others of their table; ``comma``: else a comma marks decimals."""
    for proofs, default in (("marks", {","} if comma else {"."}), ("orders", set[str]())):
        agreed = set[str]().union(*(getattr(column, proofs) for column in columns)) or default
        for column in columns:
            if not getattr(column, proofs) and len(agreed) == 1 and len(column.separators) < 2:
                setattr(column, proofs, agreed)


def _read_value(number: _Number, marks: set[str], unit: str) -> Any:
    mantissa, _, power = number.digits.lower().partition("e")
    mark = "".join(marks) if number.decimal == _OPEN else number.decimal
    integer, _, fraction = mantissa.partition(mark or ".")
    value = float(f"{re.sub('[^0-9]', '', integer)}.{fraction}e{power or 0}") * number.factor
    if number.unit != unit:
        value *= _size(number.unit)[1] / _size(unit)[1]
    return int(value) if value.is_integer() and not fraction and not power else float(f"{value:.15g}")


def _iso(day: _Day, order: str) -> str:
    month_first = (day.order if day.order in ("day", "month") else order) == "month"
    month, number = (day.first, day.second) if month_first else (day.second, day.first)
    return f"{day.year}-{month:02}-{number:02}{day.time and ' '}{day.time}"


def _size(unit: str) -> tuple[str, float]:
    """Return the kind of a unit and its size; an unknown unit is a kind of its own."""
    name = unit.lower()
    return SIZES.get(name) or SIZES.get(name.removesuffix("s")) or (unit, 1.0)


@lru_cache(maxsize=65_536)
def _number(cell: str) -> _Number | None:
    text = unicodedata.normalize("NFKC", cell.replace("’", "'")).replace("−", "-").strip()
    match = _NUMBER.fullmatch(text)
    if not match or bool(match["open"]) != bool(match["close"]):
        return _compound(text)
    digits, power = match["digits"], match["power"] or ""
    unit = f"{match['before'] or ''}{match['unit'] or ''}".strip()
    factor = amount(f"1 {unit}") if unit else (1.0, "")
    decimal = _decimal(digits, bool(power))
    odd = match["before"] and match["unit"]
    if decimal is None or factor is None or odd or len(re.sub(r"\D", "", digits)) > _DIGITS:
        return None
    negative = bool(match["open"] or match["inner"] or match["after"] or match["sign"] == "-")
    return _Number(digits + power, decimal, -factor[0] if negative else factor[0], factor[1])


def _compound(text: str) -> _Number | None:
    """Read 1 h 30 min: parts of one kind."""
    parts = _PARTS.findall(text)
    kinds = {_size(unit)[0] for _, unit in parts}
    if len(parts) < 2 or _PARTS.sub("", text) or len(kinds) > 1 or kinds & {unit for _, unit in parts}:
        return None
    total = sum(float(number) * _size(unit)[1] for number, unit in parts)
    return _Number(f"{total / _size(parts[-1][1])[1]:.12g}", ".", 1.0, parts[-1][1])


def _decimal(digits: str, power: bool) -> str | None:
    """Return the decimal mark that these digits prove, ``?`` where they may mean either, None for no number.

    >>> _decimal("1.200,5", False), _decimal("1'200", False), _decimal("1,200", False), _decimal("1.2.3", False)
    (',', '', '?', None)
    """
    grouped = _GROUPED.fullmatch(digits)
    if digits.isdigit() or (grouped and grouped["mark"] in (" ", "'")):
        return ""
    head, mark, tail = digits.rpartition("," if digits.rfind(",") > digits.rfind(".") else ".")
    if grouped and not head.isdigit():
        return "." if mark == "," else ","
    if not tail.isdigit() or not (head.isdigit() or not head or (_GROUPED.fullmatch(head) and mark not in head)):
        return None
    return mark if len(tail) != 3 or head in ("", "0") or len(head) > 3 or power else _OPEN


@lru_cache(maxsize=65_536)
def _day(cell: str) -> _Day | str | None:
    """Return a day, or its ISO form where only one reading is possible."""
    text = unicodedata.normalize("NFKC", cell)
    if match := _NAMED_DAY.fullmatch(text):
        return f"{_century(match[3])}-{month_number(match[2]):02}-{int(match[1]):02}"
    if match := _DAY.fullmatch(text):
        first, second, short = int(match[1]), int(match[3]), len(match[4]) == 2
        if not first or not second or max(first, second) > 31 or min(first, second) > 12:
            return None
        if short and (len(match[1]), len(match[3])) != (2, 2):  # a version, as 1.10.24
            return None
        dotted = "day" if match[2] == "." else _OPEN
        order = "day" if first > 12 else "month" if second > 12 else "" if first == second else dotted
        return _Day(_century(match[4]), first, second, order, match[5] or "")
    day = iso(text) if not text.isdigit() else ""
    return None if len(day) <= len("2024") else text if re.search(r"\d:\d\d|_", text) else day


def _century(year: str) -> int:
    return int(year) if len(year) == 4 else 2000 + int(year) - 100 * (int(year) > 68)
