"""A report in a real browser: its outline is edited line by line, and it stands on the bench."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.browser.bench_page import OPEN, BenchPage

TOPIC = "The films of Ang Lee: families, food and exile"


def test_a_report_from_its_outline_to_its_references(notebook: Callable[..., Any], workspace: Path) -> None:
    nb = notebook([OPEN, 'wb.bench(kb="film", review=())'])
    nb.run_all()
    nb.resize(1460, 2400)
    bench = BenchPage(nb.page)
    page = nb.page
    page.get_by_label("as a report").check()
    page.get_by_label("outline", exact=True).check()
    bench.ask(TOPIC)
    expect(bench.band).to_contain_text("write this outline?")
    sections = page.get_by_label("Sections, one per line")
    first, second, *rest = sections.input_value().splitlines()
    sections.fill("\n".join([second, f"  {first}", *rest]))
    picture(bench, "outline")
    expect(bench.primary).to_contain_text("Write as edited")
    bench.primary.click()
    expect(page.locator(".wb-report .wb-chapter").first).to_be_visible()
    picture(bench, "report")
    page.locator(".wb-report .wb-cite:visible").first.click()
    expect(page.locator(".wb-piece[aria-selected=true]")).to_have_count(1)
    assert nb.kernel("wb.runs.list()[0].report.status") == "completed"


def picture(bench: BenchPage, name: str) -> None:
    """Where somebody wants to look at it: the bench alone."""
    if where := os.environ.get("SCREENSHOTS"):
        bench.page.wait_for_timeout(800)
        bench.root.screenshot(path=Path(where) / f"{name}.png")
