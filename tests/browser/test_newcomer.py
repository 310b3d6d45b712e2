"""The way of a newcomer to a compared fork, in a real browser, by clicks alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Locator, expect

from tests.browser.bench_page import BenchPage
from tests.browser.test_journey import newest, store  # noqa: F401 - a fixture
from workbench.session import Workbench

MOST_S = 180.0
REPOSITORY = Path(__file__).parents[2]
FIRST = REPOSITORY / "notebooks" / "01_ask.ipynb"


# A step that a busy machine cuts short is proposed again, which would be another path.
PATIENT = "import os\nos.environ |= {'WORKBENCH_STEP_TIMEOUT_S': '120', 'WORKBENCH_TIME_BUDGET_S': '240'}"


def cells_up_to_the_bench() -> list[str]:
    """The code of the first notebook, as it stands there, up to the cell that shows the bench."""
    code = [cell.source for cell in nbformat.read(FIRST, as_version=4).cells if cell.cell_type == "code"]
    return [PATIENT, *code[: next(n for n, source in enumerate(code) if "wb.bench(" in source) + 1]]


def test_from_the_first_notebook_to_a_compared_fork(
    notebook: Callable[..., Any],
    store: Workbench,  # noqa: F811
    tmp_path: Path,
) -> None:
    """By clicks alone, in a laptop's window: nothing is typed, not even the question, and nobody scrolls."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / ".workbench").symlink_to(tmp_path / "workspace")
    (tmp_path / "data").symlink_to(REPOSITORY / "data")
    began = time.monotonic()
    marks: dict[str, float] = {}

    clicks: list[str] = []

    def reached(name: str) -> None:
        marks[name] = time.monotonic() - began

    def press(button: Locator) -> None:
        expect(button).to_be_in_viewport(ratio=1)  # nobody scrolls
        clicks.append(button.inner_text())
        button.click()

    def named(name: str) -> Locator:
        return bench.root.get_by_role("button", name=name).and_(nb.page.locator(":visible")).first

    nb = notebook(cells_up_to_the_bench(), name="notebooks/first")
    reached("open")
    nb.run_all()
    nb.default_window()
    bench = BenchPage(nb.page)
    press(nb.page.locator(".wb-examples .wb-quiet").first)
    reached("usable")
    press(named("Ask"))
    newest(store, "paused", decided=0)
    press(named("Approve"))
    newest(store, "paused", decided=1)
    reached("at the reflection")
    press(named("Approve"))
    done = newest(store, "done", decided=2)
    expect(bench.root.locator(".wb-answer")).to_contain_text(done.answer[2:40])
    expect(bench.root.locator(".wb-answer p").first).to_be_in_viewport(ratio=1)
    reached("answered")
    assert len(clicks) == 4, "an example taken, asked, and approved twice"
    press(named("Fork and decide again"))
    newest(store, "paused", decided=1, runs=2)
    press(named("Stop here"))
    fork = newest(store, "done", decided=2, runs=2)
    reached("forked")
    press(named("Compare"))
    expect(nb.page.locator(".wb-futures")).to_contain_text(fork.run_id)
    reached("compared")
    assert len(clicks) <= 8, clicks
    print("\nseconds since the notebook was opened: " + ", ".join(f"{name} {s:.1f}" for name, s in marks.items()))
    assert marks["compared"] < MOST_S
    nb.clean()
