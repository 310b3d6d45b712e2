"""A report on the bench: how it stands, its sections folded with their statements, and its marks as buttons."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from markupsafe import Markup

from workbench.parts.reports.markdown import chapters, html
from workbench.state import Data, Json
from workbench.views.labels import Labels
from workbench.views.markup import draw
from workbench.views.render import CLASSES
from workbench.views.review import support_text
from workbench.views.run import Marks

Report = Any
"""``workbench.parts.reports.report.Report``, which this room may not import."""
_SECTION = re.compile(r"(\d+)\. ")


def finished(report: Report, citations: Sequence[Data], labels: Labels) -> Markup:
    """Return a report that is written.

    Args:
        report: the report.
        citations: of its run; a mark is a button whose key is the citation's place.
        labels: the words.
    """
    (_, first), *rest = chapters(report.text, Marks(citations, labels))
    folds = [_chapter(heading, Markup(below), report.sections, labels) for heading, below in rest]
    status = _status_line(report, labels)
    return draw("report.finished", labels, standing=status, first=Markup(first), chapters=folds)


def fragment(report: Report, run_id: str, labels: Labels) -> str:
    """Return the same as static HTML for a cell; ``run_id`` stands before the names of its anchors."""
    body = Markup(html(report.text, labels("ref_back"), f"{run_id}-"))
    return draw("report.fragment", labels, standing=_status_line(report, labels), body=body, classes=CLASSES)


def written_so_far(report: Report, heard: Collection[str], labels: Labels) -> Markup:
    """Return the sections of a report that is being written, ticked if done; ``heard`` are titles of more."""
    sections = report.outline.get("sections") or []
    titles = {*heard, *(section["title"] for section in report.sections)}
    return draw("report.written", labels, sections=sections, there=titles)


def _status_line(report: Report, labels: Labels) -> str:
    """Return how it ended, its score, how much of it is supported."""
    status, check = report.status, report.consistency
    words = [labels.get(f"report_{status}", labels(status))]
    words += [labels("report_scored", n=f"{check['score']:.2f}")] if check else []
    words += consistency_texts(check, labels)
    words += [labels("report_taken_over")] if report.cache_hit else []
    return " · ".join(words)


def _chapter(heading: str, below: Markup, sections: Sequence[Data], labels: Labels) -> Json:
    """Return a chapter, folded; below a section how its statements stand, which is open where one has no support."""
    number = match[1] if (match := _SECTION.match(heading)) else ""
    own = [section for section in sections if number and section["section_id"].partition(".")[0] == number]
    claims = [claim for section in own for claim in section["claims"]]
    unsure = any(claim["verdict"] in ("unsupported", "uncited") for claim in claims)
    count = support_text(claims, labels) if claims else ""
    shown = {"heading": heading, "below": below, "number": number, "unsure": unsure, "count": count}
    return {**shown, "claims": statements(claims, labels)}


def statements(claims: Sequence[Data], labels: Labels) -> Markup:
    """Return one row per statement of a report, those without support first."""
    unsure_first = sorted(claims, key=lambda claim: claim["verdict"] == "supported")
    rows = [(claim["verdict"], claim_text(claim, labels), plain_sentence(claim["text"])) for claim in unsure_first]
    return draw("report.statements", labels, claims=rows) if claims else Markup()


def claim_text(claim: Data, labels: Labels) -> str:
    """Return the verdict on a statement, and its reason.

    >>> claim_text({"verdict": "unsupported", "why": "1877"}, Labels("en"))
    'not in its sources (1877)'
    """
    verdict = labels(f"claim_{claim['verdict']}")
    return labels("aside", said=verdict, more=claim["why"]) if claim.get("why") else verdict


def plain_sentence(text: str) -> str:
    r"""Return a sentence of Markdown without its emphasis and its backslashes.

    >>> print(plain_sentence(r"**Kiln \& Sons**: it is *red*"))
    Kiln & Sons: it is red
    """
    return re.sub(r"\\([!-/:-@\[-`{-~])|\*+", r"\1", text)


def consistency_texts(check: Data, labels: Labels) -> list[str]:
    """Return a sentence each on the support and the contradictions of a report; nothing where it was not checked."""
    if not check:
        return []
    lines = [labels("answer_supported", n=check["supported"], of=check["statements"])]
    contradictions = len(check.get("contradictions") or ())
    return [*lines, labels("report_contradicts", n=contradictions)] if contradictions else lines
