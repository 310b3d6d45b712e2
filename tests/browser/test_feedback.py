"""What a person thinks of an answer, said on the bench: two buttons and a note, kept in the store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.bench_page import OPEN, QUESTION, BenchPage
from tests.browser.test_journey import store  # noqa: F401 - a fixture
from tests.browser.test_restart import until
from workbench.session import Workbench

SAID = {
    "en": ("Question", "Ask", "✓ Good", "✗ Bad", "Why?"),
    "zh": ("问题", "提问", "✓ 好", "✗ 不好", "为什么？"),
}


@pytest.mark.full
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_verdict_is_pressed_noted_kept_over_a_restart_and_taken_back(
    notebook: Callable[..., Any],
    store: Workbench,  # noqa: F811
    tmp_path: Path,
    lang: str,
) -> None:
    field, ask, good, bad, why = SAID[lang]
    cell = f'wb.bench(next(iter(wb.runs.list(1)), None), kb="film", review=None, lang="{lang}")'
    nb = notebook([OPEN, cell])
    nb.run_all()
    bench = BenchPage(nb.page)
    bench.root.wait_for()
    nb.resize(1000)
    bench.ask(QUESTION, field, ask)
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
    shot(bench, tmp_path, f"bench-feedback-{lang}")

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


def shot(bench: BenchPage, tmp_path: Path, name: str) -> None:
    place = Path(os.environ.get("SCREENSHOTS", tmp_path))
    place.mkdir(parents=True, exist_ok=True)
    bench.root.screenshot(path=place / f"{name}.png")
