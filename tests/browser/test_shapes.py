"""The bench in every width, theme and language: nothing wider, what waits first, everything named, and its keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from tests.browser.bench_page import OPEN, QUESTION
from tests.browser.test_hostile_bench import WIDER
from tests.browser.test_journey import newest, store  # noqa: F401 - a fixture
from workbench.session import Workbench

ASKED = f'wb.ask({QUESTION!r}, kb="film"); run = wb.ask({QUESTION!r}, kb="film", review={{"plan", "reflect"}})'
# Every control has a name that a screen reader can say: the browser's own computation, by label, text or attribute.
UNNAMED = """() => [...document.querySelectorAll('.wb-root :is(button, input, select, textarea, [role=option])')]
    .filter(e => e.checkVisibility() && !(e.ariaLabel || e.innerText?.trim() || e.title || e.placeholder?.trim()
        || [...(e.labels ?? [])].some(l => l.innerText.trim())
        || document.getElementById(e.getAttribute('aria-labelledby') ?? '')?.innerText.trim()))
    .map(e => e.outerHTML.slice(0, 200))"""
TOP = "selector => document.querySelector(selector).getBoundingClientRect().top"


def test_every_shape(notebook: Callable[..., Any], store: Workbench) -> None:  # noqa: F811
    nb = notebook([OPEN, ASKED, "wb.bench(run)", 'wb.bench(run, lang="zh")'])
    nb.run_all()
    page = nb.page
    expect(page.locator(".wb-bench")).to_have_count(2)
    page.locator(".wb-bench .wb-plan [role=option]").first.click()
    for width, dark in ((1460, False), (1000, True), (675, False)):
        nb.theme(dark=dark)
        nb.resize(width, 2600)
        for view in range(4):
            for tab in page.locator(".wb-bench .wb-tabs").all():
                tab.locator("button").nth(view).click()
            expect(page.locator(".wb-bench .wb-tabs [aria-pressed=true]")).to_have_count(2)
            nb.kernel("None")
            assert page.evaluate(WIDER) == [], (width, view)
            assert page.evaluate(UNNAMED) == [], (width, view)
        for tab in page.locator(".wb-bench .wb-tabs").all():
            tab.locator("button").first.click()
        expect(page.locator(".wb-region-plan").first).to_be_visible()
        side, plan = page.evaluate(TOP, ".wb-region-side"), page.evaluate(TOP, ".wb-region-plan")
        assert side < plan if width == 675 else side == plan, width
