"""What models saw and said, on the bench: folded, in order, as text; edited there, and a fork made of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.browser.bench_page import OPEN, QUESTION, BenchPage

MODEL = """from langchain_core.language_models import FakeListChatModel
wb.close()
wb = Workbench.open(wb.path, chat_model=FakeListChatModel(responses=["<b>nothing</b> is of use [1]."]))"""


def test_a_reply_is_edited_and_the_fork_answers_with_it(
    notebook: Callable[..., Any], workspace: Path, tmp_path: Path
) -> None:
    nb, bench = asked(notebook)
    opened(bench, "writer")
    expect(bench.root.get_by_role("button", name="Run again from here: nothing edited yet")).to_be_disabled()
    bench.root.get_by_label("Reply", exact=True).fill("Ang Lee made both films [1].")
    button = bench.root.get_by_role("button", name="Run again from here with 1 edit")
    expect(button).to_be_enabled()
    shot(bench, tmp_path, "bench-call-edited")
    before = bench.root.inner_text()
    assert "(fork" not in before
    bench.root.get_by_label("Reply", exact=True).press("Control+Enter")
    expect(nb.page.locator(".wb-answer")).to_contain_text("Ang Lee made both films")
    expect(nb.page.locator(".wb-call-form")).to_be_hidden()
    nb.page.locator(".wb-calls summary").first.click()
    expect(nb.page.locator(".wb-calls")).to_contain_text("reply edited")
    expect(nb.page.locator(".wb-calls")).to_contain_text("from the tape")


def asked(notebook: Callable[..., Any]) -> tuple[Any, BenchPage]:
    """A bench on which a question was answered by a model."""
    nb = notebook([OPEN, MODEL, 'wb.bench(kb="film", review=None)'])
    nb.run_all()
    bench = BenchPage(nb.page)
    bench.root.wait_for()
    nb.resize(1000)
    bench.ask(QUESTION)
    nb.page.locator(".wb-answer").wait_for()
    return nb, bench


def opened(bench: BenchPage, role: str) -> None:
    """The form of the first call of a role."""
    calls = bench.page.locator(".wb-calls")
    calls.locator("summary").first.click()
    one = calls.locator(".wb-call").filter(has_text=f"{role}.en").first
    one.locator("summary").first.click()
    one.get_by_role("button", name="Edit and run again from here").click()
    bench.page.locator(".wb-call-form").wait_for()


def shot(bench: BenchPage, tmp_path: Path, name: str) -> None:
    place = Path(os.environ.get("SCREENSHOTS", tmp_path))
    place.mkdir(parents=True, exist_ok=True)
    bench.root.screenshot(path=place / f"{name}.png")
