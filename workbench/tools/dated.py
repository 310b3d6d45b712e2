"""The documents of a day that a question names: those with a typed value on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from workbench.context import KnowledgeBase
from workbench.days import Day, day_of, days

LOOKED_AT = 30
"""Passages that hold the words of a day, among which those of the day are looked for."""


class Dated(NamedTuple):
    """A day in a question, ``text[start:end]``, and the documents of that day that its words find."""

    start: int
    end: int
    day: Day
    doc_ids: frozenset[str]


def dated(question: str, knowledge: KnowledgeBase) -> tuple[Dated, ...]:
    """Every day that a question names and that documents are of; any other is told by its words."""
    found = (Dated(start, end, day, _documents(day, knowledge)) for start, end, day in days(question))
    return tuple(one for one in found if one.doc_ids)


def _documents(day: Day, knowledge: KnowledgeBase) -> frozenset[str]:
    hits = [chunk_id for chunk_id, _ in knowledge.keyword_search(day.written(), LOOKED_AT)]
    return frozenset(p["doc_id"] for p in knowledge.passages(hits) if on_day(p["fields"], day))


def on_day(fields: Mapping[str, Any], day: Day) -> bool:
    """Whether a typed value is of this day.

    >>> on_day({"time": "20260810_18:00"}, Day(2026, 8, 10)), on_day({"year": 2026}, Day(2026, 8, 10))
    (True, False)
    """
    found = (day_of(value) for value in fields.values() if isinstance(value, str))
    return any(one is not None and one.is_(day) for one in found)
