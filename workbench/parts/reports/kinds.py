"""What a report is asked for: its topic, with the aspects behind its colon, and its kind.

``short`` and ``long`` are there; add your own: how many sections, how long, with which parts.

register_report_type(ReportType("brief", sections=3, statements=3, parts=frozenset()))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, Field

from workbench.errors import WorkbenchError, shown
from workbench.state import Data, Json
from workbench.text import clean


class ReportSettings(BaseModel, use_attribute_docstrings=True):
    """How reports are clarified, written and checked."""

    report_type: str = "long"
    """'short', 'long', or own"""
    citation_style: Literal["default", "apa", "ieee", "gb7714", "bibtex"] = "default"
    allow_unclarified_plan: bool = True
    stop_on_clarification: bool = True
    auto_generate_report: bool = True
    strict_plan_signal: bool = True
    reflection_allow_retry: bool = False
    reflection_max_retries: int = Field(1, ge=0, le=10)
    default_domain: str = "通用"
    consistency_check: bool = True
    mapreduce: bool = True
    mapreduce_threshold: int = Field(20, ge=1)
    reduce_strategy: Literal["collapse", "refine", "tree"] = "tree"
    max_tokens_per_reduce: int = Field(4_000, ge=200)
    parallel_map: bool = True
    section_max_evidence: int = Field(8, ge=1)
    section_max_context_characters: int = Field(800, ge=0)


PARTS = ("abstract", "introduction", "conclusion", "glossary", "appendix")


class ReportType(NamedTuple):
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


_TYPES = {
    "short": ReportType("short", 4, 5, 1, frozenset({"introduction", "appendix"})),
    "long": ReportType("long"),
}
_NAMES = {"long_document": "long", "short_answer": "short"}
"""Names of the requirement."""


def register_report_type(kind: ReportType) -> ReportType:
    """Make a kind of report known under its name; one of the same name is replaced."""
    _TYPES[kind.name] = kind
    return kind


def report_type(name: str) -> ReportType:
    """Return the kind of that name.

    Raises:
        WorkbenchError: lists the known ones.
    """
    kind = _TYPES.get(_NAMES.get(name, name))
    if kind is None:
        raise WorkbenchError(
            f"There is no report type {shown(name)}. Known: {', '.join(_TYPES)}. "
            "Add one with workbench.parts.reports.kinds.register_report_type."
        )
    return kind


_COLON = re.compile(r"\s*[:：]\s*")
_ITEMS = re.compile(
    r"(?:\s*[,，、;；]\s*(?:and\s+)?|\s+and\s+|(?<=[\u4e00-\u9fff])(?:以及|[和与與及])(?=[\u4e00-\u9fff]{2}))"
    r"(?![^(（]*[)）])"
)
"""What stands between aspects, outside brackets."""
_ASPECT = re.compile(r"([^(（]*)(?:[(（]([^)）]*)[)）])?(.*)", re.DOTALL)


Aspect = tuple[str, tuple[str, ...]]
"""What is wanted of a topic, and the parts of that."""


def split(topic: str, names: Sequence[tuple[int, int]] = ()) -> tuple[str, list[Aspect]]:
    """Return the subject of a topic, and its aspects. A colon inside one of ``names`` (spans in the topic) divides
    nothing.

    >>> split("Tides: causes, records and power")
    ('Tides', [('causes', ()), ('records', ()), ('power', ())])
    >>> split("开封：历史（起源、发展）；经济和交通")[1]
    [('历史', ('起源', '发展')), ('经济', ()), ('交通', ())]
    >>> split("Tarn: a field guide", [(0, 19)])
    ('Tarn: a field guide', [])
    """
    text = clean(topic).strip()
    colon = next(
        (
            m
            for m in _COLON.finditer(text)
            if not any(a < m.start() and m.end() <= b for a, b in names)
        ),
        None,
    )
    subject = text[: colon.start()].strip() if colon else ""
    items = text[colon.end() :].strip(" .。?？") if colon else ""
    if not subject or not items:
        return text, []
    aspects = map(_aspect, _ITEMS.split(items))
    distinct = dict.fromkeys(aspect for aspect in aspects if aspect[0])
    return subject, [*distinct][:12]


def _aspect(item: str) -> Aspect:
    title, inside, rest = _ASPECT.fullmatch(item).groups("")  # type: ignore[union-attr]
    parts = [part.strip() for part in _ITEMS.split(inside)]
    return " ".join(f"{title} {rest}".split()), tuple(filter(None, parts))


def split_topic(state: Data) -> Json:
    """Return what of a report's topic is searched as its question, and the aspects that are searched besides."""
    names = (state["route_decision"].get("question") or {}).get("names", ())
    subject, titled = split(state["message"], [(name["start"], name["end"]) for name in names])
    aspects = [[title, list(parts)] for title, parts in titled]
    preferences = state.get("memory_context", "")
    return {
        "to_search": subject,
        "report": {**state["report"], "aspects": aspects, "preferences": preferences},
    }
