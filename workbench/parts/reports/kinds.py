"""The kinds of report: how many sections, how long, with which parts. ``short`` and ``long`` are there; add your own.

register_report_type(ReportType("brief", sections=3, statements=3, parts=frozenset()))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.errors import WorkbenchError, shown
from workbench.state import SectionOutline

PARTS = ("abstract", "introduction", "conclusion", "glossary", "appendix")


@dataclass(frozen=True)
class ReportType:
    """A kind of report.

    Attributes:
        name: as ``report_type`` names it.
        sections: how many sections at most.
        statements: how many statements a section has at most, where no model writes.
        of_one: how many of them from one document.
        parts: which of ``PARTS`` it has besides its sections.
        wanted: titles of sections that it always has, each a question of its own; empty: those that fit the topic.
    """

    name: str
    sections: int = 8
    statements: int = 15
    of_one: int = 3
    parts: frozenset[str] = frozenset(PARTS)
    wanted: tuple[str, ...] = ()

    def shaped(self, sections: Sequence[SectionOutline]) -> list[SectionOutline]:
        """The sections that fit; override it to order or drop them otherwise."""
        return list(sections[: self.sections])


_TYPES = {
    "short": ReportType("short", 4, 5, 1, frozenset({"introduction", "appendix"})),
    "long": ReportType("long"),
}
_OLDER = {"long_document": "long", "short_answer": "short"}


def register_report_type(kind: ReportType) -> ReportType:
    """Make a kind of report known under its name; one of the same name is replaced."""
    _TYPES[kind.name] = kind
    return kind


def report_type(name: str) -> ReportType:
    """The kind of that name.

    Raises:
        WorkbenchError: lists the known ones.
    """
    kind = _TYPES.get(_OLDER.get(name, name)) if isinstance(name, str) else None
    if kind is None:
        raise WorkbenchError(
            f"There is no report type {shown(name)}. Known: {', '.join(_TYPES)}. "
            "Add one with workbench.parts.reports.kinds.register_report_type."
        )
    return kind
