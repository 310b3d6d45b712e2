"""The faces of a report: its review points as forms and in a terminal; the report on the bench and in a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import ipywidgets
import jsonschema
import pytest

from tests.harbour import harbour
from tests.test_review_panel import field, panel
from workbench.cli.follow import edited
from workbench.cli.page import Page
from workbench.parts.reports.forms import OutlineForm
from workbench.records import proposals
from workbench.records.document import SCHEMA_FILE
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.views.labels import Labels, labels_for
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


# the outline


def test_an_outline_says_what_it_will_take_and_shows_every_section(asked: Run) -> None:
    review = panel(asked)
    proposed = proposals.proposal(asked.review)
    assert isinstance(form(review), OutlineForm)
    assert titles(review) == [(one["section_id"], one["title"]) for one in proposed["sections"]]
    assert review.primary.description == f"Approve: write {len(proposed['sections'])} sections"
    assert "words" in review.why.html
    assert "write this outline?" in review.band.html
    review.primary.click()
    assert asked.decisions[0]["action"] == "approve" and asked.status == "done"


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


def test_what_was_edited_is_there_after_a_restart(wb: Workbench, asked: Run) -> None:
    review = Review(Labels("en"), wb.runs)
    review.show(asked.to_dict())
    first, second, *_ = lines(review).value.splitlines()
    lines(review).value = f"{second}\n  {first}"
    field(review, "Title").value = "All of it"
    edits = form(review).edits(None)
    again = Review(Labels("en"), wb.runs)
    again.show(asked.to_dict())
    assert form(again).edits(None) == edits and edits["title"] == "All of it"
    field(again, "Title").value = asked.report.title
    assert "title" not in form(again).edits(None)


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


# the terminal


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Page:
    return Page(str(tmp_path), False)


def test_the_editor_opens_what_can_be_changed_and_gives_what_was(
    asked: Run, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[dict[str, Any]] = []

    def edit(shown: str, **_: Any) -> str:
        opened.append(json.loads(shown))
        return json.dumps({**opened[-1], "title": "Edited"})

    monkeypatch.setattr(click, "edit", edit)
    schema = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text("utf-8")))
    while asked.status == "paused":
        schema.validate(json.loads(json.dumps(asked.to_dict())))
        assert edited(page, asked.review, labels_for(TOPIC)) == {"title": "Edited"}
        asked.approve()
    assert [set(one) for one in opened] == [{"title", "sections"}]
