"""A report on the bench: how it stands, its sections folded with their statements, and its marks as buttons."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from markupsafe import Markup

from workbench.parts.reports.markdown import (
    Chapter,
    document_style,
    markdown,
    page,
    plain_mark,
    rendered,
)
from workbench.state import Data, Json
from workbench.views.drawing import STYLE
from workbench.views.labels import Labels
from workbench.views.markup import cut, draw
from workbench.views.render import CLASSES
from workbench.views.review import support_text
from workbench.views.run import Marks

Report = Any
"""``workbench.parts.reports.report.Report``, which this room may not import."""


def finished(report: Report, citations: Sequence[Data], labels: Labels) -> Markup:
    """Return a report that is written.

    Args:
        report: the report.
        citations: of its run; a mark is a button whose key is the citation's place.
        labels: the words.
    """
    mark = Marks(citations, labels)
    first, *rest = report.chapters
    # the head of the bench has the topic
    head = first["text"] if report.title == report.run.message else markdown([first])
    head = rendered(head, mark)
    folds: list[Json] = []
    for chapter in rest:
        own = plain_mark if chapter["name"] == "references" else mark
        if "." in chapter["name"]:  # a section below another
            folds[-1]["below"] += rendered(markdown([chapter]), own)
        else:
            folds.append(_fold(chapter, rendered(chapter["text"], own), report.sections, labels))
    return draw(
        "report.finished",
        labels,
        standing=_status_line(report, labels),
        files={"md": report.text, "html": page(report.title, report.html(), labels)},
        first=head,
        chapters=folds,
    )


def fragment(report: Report, labels: Labels) -> str:
    """Return the same as static HTML for a cell; the id of the run stands before the names of its anchors."""
    return draw(
        "report.fragment",
        labels,
        standing=_status_line(report, labels),
        body=report.html(f"{report.run.run_id}-"),
        classes=CLASSES,
        style=Markup(STYLE + document_style()),
    )


def written_so_far(report: Report, heard: Collection[str], labels: Labels) -> Markup:
    """Return the sections of a report that is being written, ticked if done; ``heard`` are titles of more."""
    sections = report.outline.get("sections") or []
    titles = {*heard, *(section["title"] for section in report.sections)}
    return draw("report.written", labels, sections=sections, there=titles)


def _status_line(report: Report, labels: Labels) -> str:
    """Return how it ended, in how many sections something was found, how much of it is supported."""
    status = report.status
    sections = report.sections
    words = [] if status == "completed" else [labels.get(f"report_{status}", labels(status))]
    covered = sum(bool(section["evidence_ids"]) for section in sections)
    words.append(labels("report_found", n=covered, of=len(sections)))
    words += consistency_texts(report.consistency, labels)
    words += [labels("report_taken_over")] if report.cache_hit else []
    return " · ".join(words)


def _fold(chapter: Chapter, below: Markup, sections: Sequence[Data], labels: Labels) -> Json:
    """Return a chapter, folded; below a section how its statements stand, which is open where one has no support."""
    name = chapter["name"]
    own = [section for section in sections if section["section_id"].partition(".")[0] == name]
    claims = [
        {**claim, "shown": _line(claim["text"])} for section in own for claim in section["claims"]
    ]
    return {
        "heading": _line(chapter["heading"].removeprefix("## ")),
        "below": below,
        "number": name,
        "count": support_text(claims, labels),
        "claims": claims,
    }


def _line(text: str) -> Markup:
    return rendered(text, plain_mark, line=True)


def consistency_texts(check: Data, labels: Labels) -> list[str]:
    """Return a sentence each on the support and the contradictions of a report; nothing where it was not checked."""
    if not check:
        return []
    lines = [labels("answer_supported", n=check["supported"], of=check["statements"])]
    pairs = check.get("contradictions") or ()
    which = cut(labels("semicolon").join(pair["first"] for pair in pairs), 200)
    return lines + [labels("report_contradicts", n=len(pairs), which=which)] * bool(pairs)
