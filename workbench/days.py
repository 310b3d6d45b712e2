"""Days in a text: 20260810, 2026-08-10, 10 August 2026, August 10th, 8月10日. Only days that a calendar has."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from workbench.text import fold

_LONG = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTHS = [month[:3] for month in _LONG]
_NAMES = "|".join([*_LONG, "sept", *_MONTHS])
_YEAR = r"(?:1[5-9]|20)\d\d"
_WRITTEN = [
    rf"(?<!\d)(?P<y>{_YEAR})(?P<m>[01]\d)(?P<d>[0-3]\d)(?!\d)",
    rf"(?<!\d)(?P<y>{_YEAR})([-/.])(?P<m>[01]?\d)\2(?P<d>[0-3]?\d)(?!\d)",
    rf"(?:(?P<y>{_YEAR})年)?(?P<m>[01]?\d)月(?P<d>[0-3]?\d)[日号號]",
    rf"\b(?P<d>[0-3]?\d)(?:st|nd|rd|th)?(?: of)? (?P<m>{_NAMES})\b\.?(?:,? (?P<y>{_YEAR})\b)?",
    rf"\b(?P<m>{_NAMES})\.? (?P<d>[0-3]?\d)(?:st|nd|rd|th)?\b(?:,? (?P<y>{_YEAR})\b)?",
]
_PATTERNS = [re.compile(pattern, re.I) for pattern in _WRITTEN]
_LONGEST = 40
"""A longer value is a text that speaks of a day."""
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Day(NamedTuple):
    """A day; ``year`` is 0 where none is said, and is then any."""

    year: int
    month: int
    day: int

    def is_(self, other: Day) -> bool:
        """Whether they may be one day.

        >>> Day(0, 8, 10).is_(Day(2026, 8, 10)), Day(2025, 8, 10).is_(Day(2026, 8, 10))
        (True, False)
        """
        return self[1:] == other[1:] and (self.year == other.year or 0 in (self.year, other.year))

    def written(self) -> str:
        """The ways in which texts write it, together: what to search for.

        >>> Day(2026, 8, 1).written(), Day(0, 8, 1).written()
        ('20260801 2026 08 01 1 aug august 8月1日', '08 01 1 aug august 8月1日')
        """
        year, month, day = self
        both = f"{month:02} {day:02}"
        numbers = f"{year}{month:02}{day:02} {year} {both}" if year else both
        return f"{numbers} {day} {_MONTHS[month - 1]} {_LONG[month - 1]} {month}月{day}日"


def days(text: str) -> list[tuple[int, int, Day]]:
    """``(start, end, day)`` of each, in the order of the text.

    >>> [day for _, _, day in days("on 20260810, May 8th, 2023 and January 6th")]
    [Day(year=2026, month=8, day=10), Day(year=2023, month=5, day=8), Day(year=0, month=1, day=6)]
    >>> days("2026年8月10日和 1:56 pm on 8 May, 2023")[0], days("20261399, 31 June, in May 2020")
    ((0, 10, Day(year=2026, month=8, day=10)), [])
    """
    found: list[tuple[int, int, Day]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            day = Day(int(match["y"] or 0), _month(match["m"]), int(match["d"]))
            free = all(match.end() <= start or end <= match.start() for start, end, _ in found)
            if free and 1 <= day.month <= 12 and 1 <= day.day <= _LENGTHS[day.month - 1]:
                found.append((match.start(), match.end(), day))
    return sorted(found)


def _month(written: str) -> int:
    return int(written) if written.isdecimal() else _MONTHS.index(fold(written)[:3]) + 1


@lru_cache(maxsize=32_768)
def day_of(value: str) -> Day | None:
    """The day with which a typed value begins or that is all that it says; None where it is none or several.

    >>> day_of("20260810_18:00"), day_of("1993")
    (Day(year=2026, month=8, day=10), None)
    """
    found = days(value)
    return found[0][2] if len(found) == 1 and len(value) <= _LONGEST else None


_YEAR_ALONE = re.compile(rf"({_YEAR})\s*年?")
_MONTH_ALONE = [
    re.compile(rf"(?P<y>{_YEAR})(?:[-/.]|年\s*)(?P<m>0?[1-9]|1[0-2])\s*月?"),
    re.compile(rf"(?P<m>{_NAMES})\.?,? (?P<y>{_YEAR})", re.I),
]


def iso(value: object) -> str:
    """A typed value that is a date, in ISO form of its own precision; "" where it is none.

    >>> iso("10 August 2026"), iso("2024年3月"), iso(1993), iso("20260810_18:00"), iso("1993 papers"), iso(93)
    ('2026-08-10', '2024-03', '1993', '2026-08-10', '', '')
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    text = str(value).strip()
    if len(text) > _LONGEST or not text[:1].isalnum():
        return ""
    if match := _YEAR_ALONE.fullmatch(text):
        return match[1]
    for pattern in _MONTH_ALONE:
        if match := pattern.fullmatch(text):
            return f"{match['y']}-{_month(match['m']):02}"
    day = day_of(text)
    return f"{day.year}-{day.month:02}-{day.day:02}" if day and day.year and _is_date(text) else ""


def _is_date(text: str) -> bool:
    """Whether a text is a day and at most its time, and not a sentence with a day in it."""
    start, end, _ = days(text)[0]
    return not re.search(r"[^\W\d_]{4,}", text[:start] + text[end:])
