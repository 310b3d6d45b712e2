"""What a person does with an answer on the bench: its evidence, calls, memory and report, and a verdict."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.bench_page import OPEN, QUESTION, BenchPage, until
from tests.browser.test_hostile_bench import WIDER
from tests.browser.test_shapes import UNNAMED, WHOLE
from workbench.runs.stored import origin_of
from workbench.session import Workbench

MODEL = """from langchain_core.language_models import FakeListChatModel
wb.close()
wb = Workbench.open(wb.path, chat_model=FakeListChatModel(responses=["<b>nothing</b> is of use [1]."]))"""


def test_evidence_is_sorted_labelled_and_struck_out(notebook, workspace):
    nb = notebook([OPEN, f'run = wb.ask({QUESTION!r}, kb="film", session="e"); wb.bench(run)'])
    nb.run_all()
    nb.default_window()
    bench, rows = BenchPage(nb.page), nb.page.locator(".wb-region-evidence .wb-piece")
    first = rows.first.get_attribute("data-title")
    expect(nb.page.locator(".wb-unused:visible")).to_have_count(0)
    nb.page.locator("[data-filter]").fill("spider")
    expect(nb.page.locator(".wb-unused:visible")).not_to_have_count(0)
    nb.page.locator("[data-filter]").fill("")
    nb.page.locator(".wb-rest summary").click()
    nb.wait("[...document.querySelectorAll('.wb-piece')].every(row => row.checkVisibility())")
    nb.page.get_by_label("Sort", exact=True).select_option("title")
    nb.wait("""(all => all.length > 9 && all.every((title, at) => !at || all[at - 1].localeCompare(title) <= 0))(
        [...document.querySelectorAll('.wb-region-evidence .wb-piece')].map(row => row.dataset.title))""")
    nb.page.get_by_label("Sort", exact=True).select_option("place")
    nb.wait(f"document.querySelector('.wb-piece').dataset.title === {first!r}")
    rows.first.click()
    rows.first.locator("summary").click()  # opens the table, and does not close the row
    expect(rows.first.get_by_role("row", name="same words (BM25)")).to_be_visible()
    bench.press("✓ Relevant")
    expect(nb.page.get_by_role("button", name="✓ Relevant")).to_have_attribute("aria-pressed", "true")
    assert nb.kernel("[(v['good'], 'piece' in v['labels']) for v in wb.feedback(run=run.run_id)]") == [(True, True)]
    bench.press("Strike out")
    expect(nb.page.locator(".wb-facts")).to_contain_text("1 struck out")
    expect(nb.page.locator(".wb-piece", has_text="struck out by a person")).to_have_count(1)
    expect(nb.page.locator(".wb-piece").first).not_to_have_attribute("data-title", first)
    bench.view("Knowledge graph")
    size = (graph := nb.page.locator(".wb-futures svg[data-zoom]")).bounding_box()
    nb.page.locator(".wb-entity").nth(1).click()
    nb.page.locator(".wb-detail:visible").wait_for()
    assert {**graph.bounding_box(), "y": 0} == {**size, "y": 0}, "what is read below it leaves the graph as large"
    nb.page.get_by_label("Find a name or a kind").fill("ang lee")
    expect(nb.page.locator(".wb-entity:not(.wb-off)")).to_have_count(1)
    nb.page.keyboard.press("Enter")
    expect(nb.page.locator(".wb-entity:focus")).to_have_attribute("aria-label", "Ang Lee")
    expect(nb.page.locator(".wb-relation-words.wb-lit:visible").first).to_contain_text("director")
    nb.page.keyboard.press("Enter")
    nb.page.get_by_label("Find a name or a kind").fill("")
    shown = nb.page.locator(".wb-entity").count()
    bench.press("Show neighbours")
    expect(nb.page.locator(".wb-entity")).not_to_have_count(shown)
    bench.press("Hide neighbours")
    expect(nb.page.locator(".wb-entity")).to_have_count(shown)
    bench.press("Zoom in")
    expect(graph).not_to_have_attribute("viewBox", re.compile("^0 0 "))
    bench.press("Fit to the window")
    expect(graph).to_have_attribute("viewBox", re.compile("^0 0 "))


def test_a_reply_is_edited_and_the_fork_answers_with_it(notebook: Callable[..., Any], workspace: object) -> None:
    nb = notebook([OPEN, MODEL, 'wb.bench(kb="film", review=None)'])
    nb.run_all()
    nb.default_window()
    bench, calls = BenchPage(nb.page), nb.page.locator(".wb-calls")
    bench.ask(QUESTION)
    nb.page.locator(".wb-answer").wait_for()
    calls.locator("summary").first.click()
    assert calls.bounding_box()["width"] > WHOLE
    one = calls.locator(".wb-call").filter(has_text="writer.en").first
    one.locator("summary").first.click()
    one.get_by_role("button", name="Edit and run again from here").click()
    expect(bench.root.get_by_role("button", name="Run again from here: nothing edited yet")).to_be_disabled()
    reply = bench.root.get_by_label("Reply", exact=True)
    reply.fill("Ang Lee made both films [1].")
    expect(bench.root.get_by_role("button", name="Run again from here with 1 edit")).to_be_enabled()
    assert "(fork" not in bench.root.inner_text()
    reply.press("Control+Enter")
    expect(nb.page.locator(".wb-answer")).to_contain_text("Ang Lee made both films")
    expect(nb.page.locator(".wb-call-form")).to_be_hidden()
    calls.locator("summary").first.click()
    expect(calls).to_contain_text("reply edited")
    expect(calls).to_contain_text("from the tape")


@pytest.mark.full
def test_a_verdict_is_pressed_noted_kept_over_a_restart_and_taken_back(notebook, store):
    good, bad, why = "✓ Good", "✗ Bad", "Why?"
    nb = notebook([OPEN, 'wb.bench(next(iter(wb.runs.list(1)), None), kb="film", review=None)'])
    nb.run_all()
    nb.resize(1000)
    BenchPage(nb.page).ask(QUESTION)
    nb.page.locator(".wb-answer").wait_for()
    verdict = nb.page.locator(".wb-thought")

    def button(name: str) -> Any:
        return verdict.get_by_role("button", name=name, exact=True)

    def kept() -> list[tuple[bool, str]]:
        return [(one["good"], one["note"]) for one in store.feedback()]

    expect(button(good)).to_have_attribute("aria-pressed", "false")
    expect(verdict.get_by_label(why)).to_be_hidden()
    button(bad).focus()
    nb.page.keyboard.press("Enter")
    expect(button(bad)).to_have_attribute("aria-pressed", "true")
    expect(button(bad)).to_be_focused()
    assert kept() == [(False, "")]
    verdict.get_by_label(why).fill("<b>too</b> short")
    nb.page.keyboard.press("Enter")
    until(lambda: kept() == [(False, "<b>too</b> short")], "the note is kept")
    button(good).click()
    expect(button(good)).to_have_attribute("aria-pressed", "true")
    expect(button(bad)).to_have_attribute("aria-pressed", "false")
    assert kept() == [(True, "<b>too</b> short")]
    nb.restart_kernel()
    nb.run_all()
    expect(button(good)).to_have_attribute("aria-pressed", "true")
    expect(verdict.get_by_label(why)).to_have_value("<b>too</b> short")
    button(good).click()
    expect(button(good)).to_have_attribute("aria-pressed", "false")
    expect(verdict.get_by_label(why)).to_be_hidden()
    assert kept() == []


SAID = {
    "en": (
        ["My name is Ann.", "I don't like horror films.", "Recommend some films from 1999"],
        ("Memory", "Correct…", "Correction", "Undo the last change"),
    ),
    "zh": (["我叫小安", "我不喜欢恐怖片", "推荐几部1999年的电影"], ("记忆", "更正…", "更正为", "撤销上一次更改")),
}


@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.full)])
def test_memory_is_seen_corrected_and_switched_off(notebook: Callable[..., Any], store: Workbench, lang: str) -> None:
    messages, (title, correct, correction, undo) = SAID[lang]
    asked = f'for message in {messages!r}:\n    run = wb.ask(message, kb="film", session="s")'
    opened = OPEN.replace("workspace')", "workspace', memory_core=True)")
    nb = notebook([opened, asked, f'wb.bench(run, session="s", lang="{lang}")'])
    nb.run_all()
    page, bench = nb.page, BenchPage(nb.page)
    panel = page.locator(".wb-knew")
    panel.locator(".wb-mem > summary", has_text=title).focus()
    page.keyboard.press("Enter")
    expect(panel.locator(".wb-mem-rows").first).to_contain_text(
        "I don't like horror" if lang == "en" else "我不喜欢恐怖片"
    )
    for width, dark in ((1460, False), (1000, True), (320, False)):
        nb.theme(dark=dark)
        nb.resize(width, 2600)
        assert page.evaluate(WIDER) == [], width
        assert page.evaluate(UNNAMED) == [], width
    nb.resize(1000, 2600)

    held = [row["content"] for row in store.memory.view().memories]
    panel.locator("summary", has_text=correct).first.focus()
    page.keyboard.press("Enter")
    field = panel.get_by_label(correction).first
    expect(field).to_be_focused()
    assert field.bounding_box()["y"] - panel.locator("summary", has_text=correct).first.bounding_box()["y"] < 60
    field.fill("<b>Anna</b>")
    page.keyboard.press("Enter")
    until(lambda: "<b>Anna</b>" in [row["content"] for row in store.memory.view().memories], "the new version")
    panel.get_by_role("button", name=undo).click()
    until(lambda: [row["content"] for row in store.memory.view().memories] == held, "it is taken back")
    expect(field).not_to_have_value("<b>Anna</b>")  # the rows are drawn again

    run = store.runs.list()[0]
    without = panel.locator("[data-do=without]").first  # a memory that was used
    noted = next(m for m in store.memory.view().memories if m["id"] == without.get_attribute("data-of"))
    without.focus()
    page.keyboard.press("Enter")
    until(lambda: len(store.runs.list()) == 4 and store.runs.list()[0].status == "done", "a fork")
    fork = store.runs.list()[0]
    assert origin_of(fork) == run.run_id and noted["content"] not in fork.state["memory_context"]
    expect(bench.root.locator(".wb-head")).to_contain_text(fork.run_id)


TOPIC = "The films of Ang Lee: families, food and exile"


def test_a_report_from_its_outline_to_its_references(notebook: Callable[..., Any], workspace: Path) -> None:
    nb = notebook([OPEN, 'wb.bench(kb="film", review=())'])
    nb.run_all()
    nb.resize(1460, 2400)
    bench, page = BenchPage(nb.page), nb.page
    page.get_by_label("as a report").check()
    page.get_by_label("outline", exact=True).check()
    bench.ask(TOPIC)
    expect(bench.band).to_contain_text("write this outline?")
    sections = page.get_by_label("Sections, one per line")
    first, second, *rest = sections.input_value().splitlines()
    sections.fill("\n".join([second, f"  {first}", *rest]))
    picture(bench, "outline")
    expect(bench.primary).to_contain_text("Write as edited")
    nb.default_window()
    page.locator(".jp-WindowedPanel-outer").evaluate("notebook => notebook.scrollBy(0, 700)")
    bench.primary.click()
    expect(page.locator(".wb-report .wb-chapter").first).to_be_visible()
    expect(page.locator(".wb-report > :first-child")).to_be_in_viewport()  # not the middle of a chapter
    nb.resize(1460, 2400)
    picture(bench, "report")
    page.locator(".wb-report .wb-cite:visible").first.click()
    expect(page.locator(".wb-piece[aria-selected=true]")).to_have_count(1)
    assert nb.kernel("wb.runs.list()[0].report.status") == "completed"
    for form, begins in (("HTML", "<!doctype html>"), ("Markdown", f"# {TOPIC}")):
        with page.expect_download() as download:
            page.get_by_role("link", name=form).click()
        assert Path(download.value.path()).read_text(encoding="utf-8").startswith(begins)


def picture(bench: BenchPage, name: str) -> None:
    """Where somebody wants to look at it: the bench alone."""
    if where := os.environ.get("SCREENSHOTS"):
        bench.page.wait_for_timeout(800)
        bench.root.screenshot(path=Path(where) / f"{name}.png")
