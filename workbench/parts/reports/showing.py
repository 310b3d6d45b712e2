"""A report on the bench: how it stands, its sections folded with their statements, and its marks as buttons."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from workbench.parts.reports.markdown import chapters, html
from workbench.views.labels import Labels
from workbench.views.outline import standing_told
from workbench.views.page import Picture, el, glyph
from workbench.views.render import CLASSES
from workbench.views.review import statements
from workbench.views.run import Marks

Report = Any
"""``workbench.parts.reports.report.Report``, which this room may not import."""
_SECTION = re.compile(r"(\d+)\. ")
_UNSURE = ("unsupported", "uncited")


def finished(report: Report, citations: Sequence[Mapping[str, Any]], labels: Labels) -> Picture:
    """A report that is written.

    Args:
        report: the report.
        citations: of its run; a mark is a button whose key is the citation's place.
        labels: the words.
    """
    first, *rest = chapters(report.text, Marks(citations, labels))
    title = el("div.wb-bar", el("h3.wb-title", labels("report_title")), el("span.wb-dim", _standing(report, labels)))
    folds = [_chapter(heading, Markup(below), report.sections, labels) for heading, below in rest]
    inside = el("div.wb-answer.wb-report", Markup(first[1]), folds, lang=labels.html_lang)
    return Picture(el("section.wb-section", title, inside))


def fragment(report: Report, of: str, labels: Labels) -> str:
    """The same as static HTML for a cell; ``of`` is the name of its run, before those of its anchors."""
    body = Markup(html(report.text, labels("ref_back"), f"{of}-"))
    return el("div", el("p", el("small", _standing(report, labels))), body, cls=CLASSES, lang=labels.html_lang)


def preview(text: str, labels: Labels) -> Picture:
    """The text of a report as it will be, its marks as they stand."""
    told = [
        [el("h3", heading) if heading else None, Markup(below)] for heading, below in chapters(text, "[{}]{}".format)
    ]
    body = el("div.wb-answer.wb-report", told, lang=labels.html_lang, data_scroll="preview")
    return Picture(el("details.wb-preview", el("summary", labels("preview")), body, open=True, data_fold="preview"))


def written_so_far(report: Report, heard: Collection[str], labels: Labels) -> Picture:
    """A report that is being written: its sections, and which of them are there; ``heard`` are titles of more."""
    sections, there = report.outline.get("sections") or [], {*heard, *(one["title"] for one in report.sections)}
    count = labels("report_written", n=sum(s["title"] in there for s in sections), of=len(sections)) if sections else ""
    title = el("div.wb-bar", el("h3.wb-title", labels("report_title")), el("span.wb-dim", count))
    rows = [
        el("li", glyph("done" if s["title"] in there else "running", labels), " ", el("span", _named(s)))
        for s in sections
    ]
    told = el("ul.wb-claims", rows) if rows else el("p.wb-dim", labels("report_outlining"))
    return Picture(el("section.wb-section", title, told))


def _standing(report: Report, labels: Labels) -> str:
    """How it ended, its score, how much of it is supported."""
    status, check = report.status, report.consistency
    told = [labels.known(f"report_{status}", labels(status))]
    told += [labels("report_scored", n=f"{check['score']:.2f}")] if check else []
    told += standing_told(check, labels)
    told += [labels("report_taken_over")] if report.cache_hit else []
    return " · ".join(told)


def _chapter(heading: str, below: Markup, sections: Sequence[Mapping[str, Any]], labels: Labels) -> Markup:
    """A chapter, folded; below a section how its statements stand, which is open where one has no support."""
    number = match[1] if (match := _SECTION.match(heading)) else ""
    own = [one for one in sections if number and one["section_id"].partition(".")[0] == number]
    claims = [claim for one in own for claim in one["claims"]]
    unsure = sum(claim["verdict"] in _UNSURE for claim in claims)
    whole = sum(claim["verdict"] == "supported" for claim in claims)
    count = labels("answer_supported", n=whole, of=len(claims)) if claims else ""
    sign = glyph("warning" if unsure else "done", labels, said=False) if claims else None
    checked = el(
        "details",
        el("summary.wb-dim", labels("claims"), " · ", count),
        statements(claims, labels),
        open=unsure > 0,
        data_fold=f"claims {number}",
    )
    summary = el("summary", el("b", heading), " ", sign)
    return el("details.wb-chapter", summary, below, checked if claims else None, data_fold=heading, open=number == "1")


def _named(section: Mapping[str, Any]) -> str:
    return f"{section['section_id']} {section['title']}"
