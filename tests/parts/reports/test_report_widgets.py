"""The faces of a report: its review points as forms and in a terminal; the report on the bench and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ipywidgets
import pytest

from tests.harbour import harbour
from tests.test_review_panel import field, panel
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.widgets.review import Review

TOPIC = "The harbour: bridge, ferry, fish"
HOSTILE = "<img src=x onerror=alert(1)> [x](javascript:alert(1)) <script>"


@pytest.fixture(scope="module")
def wb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """A workspace with a few documents of a made-up harbour."""
    with Workbench.open(tmp_path_factory.mktemp("workspace"), embedding_model="hashing") as opened:
        opened.add_knowledge("harbour", [harbour(tmp_path_factory.mktemp("harbour"))])
        yield opened


@pytest.fixture
def asked(wb: Workbench, request: pytest.FixtureRequest) -> Run:
    """A report that waits at its outline."""
    return wb.report(TOPIC, kb="harbour", review={"outline"}, cached=False)


def form(review: Review) -> Any:
    return review._form


def titles(review: Review) -> list[tuple[str, str]]:
    return [(one["section_id"], one["title"]) for one in form(review)._fields.value["sections"]]


def lines(review: Review) -> ipywidgets.Textarea:
    return field(review, "Sections, one per line; indent the parts of one by two spaces")


def test_sections_are_renamed_moved_put_below_one_another_removed_and_added(asked: Run) -> None:
    review = panel(asked)
    proposed = asked.report.outline["sections"]
    before = [title for _, title in titles(review)]
    lines(review).value = f"2 {before[1]}\n1 Stone\n  The ferry's tickets\n"
    assert review.primary.description == "Write as edited"
    assert titles(review) == [("1", before[1]), ("2", "Stone"), ("2.1", "The ferry's tickets")]
    lines(review).value += "3 "
    assert review.primary.disabled and "problem" in review.band.html
    lines(review).value = lines(review).value.removesuffix("3 ")
    assert not review.primary.disabled
    wanted = titles(review)
    review.primary.click()
    kept = asked.decisions[0]
    assert kept["action"] == "edit" and [one["title"] for one in kept["edits"]["sections"]] == [t for _, t in wanted]
    outlined = asked.report.outline["sections"]
    assert [(s["section_id"], s["title"]) for s in outlined] == wanted
    assert outlined[1]["evidence_ids"] == proposed[0]["evidence_ids"] and outlined[2]["evidence_ids"] == []


def finish(run: Run) -> Run:
    while run.status == "paused":
        run.approve()
    return run


def test_a_report_shows_itself_on_a_page_and_nothing_in_it_is_markup(asked: Run) -> None:
    asked.edit(title=HOSTILE)
    report = finish(asked).report
    shown = report._repr_mimebundle_()
    assert shown["text/plain"] == report.text
    page = shown["text/html"]
    assert "<img" not in page and "<script" not in page and 'href="javascript' not in page
    assert f'id="{asked.run_id}-ref-1"' in page and f'href="#{asked.run_id}-ref-1"' in page
    assert "score" in page and "<h2>" in page
