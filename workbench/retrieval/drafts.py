"""What a recipe of the planner makes: steps without numbers, for one question as one knowledge base is asked it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.state import RouteDecision
from workbench.text import fold

FULL, WIDE, SHORT, NAMES = (15.0, 50), (20.0, 50), (10.0, 30), (10.0, 20)
RANK = (15.0, 30)
"""Budgets of the table: seconds and results, at the default settings; other settings scale them."""


@dataclass(frozen=True)
class Draft:
    """A step without a number. ``after`` and ``take`` (input -> (draft, its output)) point at earlier drafts."""

    label: str
    tool: str
    objective: str
    tool_input: dict[str, Any]
    budget: tuple[float, int] = FULL
    after: tuple[int, ...] = ()
    take: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    condition: Literal["always", "if_insufficient"] = "always"

    @property
    def before(self) -> list[int]:
        """Every earlier draft that must have ended."""
        return sorted({*self.after, *(source for source, _ in self.take.values())})


@dataclass(frozen=True)
class Ask:
    """What one branch of a plan is for: the question, as one knowledge base is asked it."""

    query: str
    decision: RouteDecision
    names: tuple[str, ...]
    most: int

    @property
    def words(self) -> list[str]:
        """What the question asks beside names and fields."""
        return self.decision["extracted_entities"]["high_level"]

    @property
    def selection(self) -> dict[str, Any]:
        """What ``discover`` is given: conditions, order, by which field to count; nothing where none is read."""
        given: dict[str, Any] = {"conditions": list(self.decision["filters"])} if self.decision["filters"] else {}
        reading = self.decision.get("reading")
        if reading and reading["sort"]:
            given["sort"] = dict(reading["sort"])
        if reading and reading["count"] and (reading["group"] or not self.words):
            given["count_by"] = reading["group"]
        return given

    @property
    def grounded(self) -> str:
        """The question, with the knowledge base's own spelling of names that it writes otherwise."""
        return _with_names(self.query, self.names)


def _with_names(query: str, names: Iterable[str]) -> str:
    """The query and the names that it does not hold.

    >>> _with_names("茶馆哪一年出版？", ["The Teahouse"]), _with_names("Who is Lao She?", ["Lao She"])
    ('茶馆哪一年出版？ The Teahouse', 'Who is Lao She?')
    """
    return " ".join([query, *(name for name in names if fold(name) not in fold(query))])
