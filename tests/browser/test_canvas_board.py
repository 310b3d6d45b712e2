"""A canvas in a cell: nodes chosen by mouse and keys, an operation, what it found in the drawing, a copy of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.test_hostile_bench import WIDER
from tests.browser.test_memory_panel import shot
from tests.browser.test_restart import until
from tests.browser.test_shapes import UNNAMED

OPEN = "from workbench import Workbench\nwb = Workbench.open('workspace')"
CANVASES = Path(__file__).resolve().parents[2] / "data" / "canvases"
SAID = {
    "en": ("photosynthesis", "Calvin cycle", "Scoring", "Work on it", "Copy", "Write into the copy", "contradicted"),
    "zh": ("离散数学", "二元关系", "评分", "执行", "副本", "写入副本", "与来源矛盾"),
}


@pytest.mark.full
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_nodes_are_chosen_worked_on_and_written(notebook: Callable[..., Any], tmp_path: Path, lang: str) -> None:
    name, card, operation, work, copy, write, found = SAID[lang]
    copytree(CANVASES, tmp_path / "notes")
    nb = notebook([OPEN, f"wb.canvas('notes/{name}.canvas')"])
    nb.run_all()
    page, board = nb.page, nb.page.locator(".wb-board")
    board.wait_for()
    option = board.locator(".wb-card", has_text=card).and_(page.get_by_role("option", name=card, exact=True)).last
    option.click()
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")  # chosen no more
    expect(option).to_have_attribute("aria-selected", "false")
    expect(option).to_be_focused()
    board.get_by_role("button", name=operation).focus()
    page.keyboard.press("Enter")
    expect(board.get_by_role("button", name=work)).to_be_enabled()  # the kernel has heard what is chosen
    board.get_by_role("button", name=work).focus()
    page.keyboard.press("Enter")
    expect(board.locator(".wb-worked")).to_contain_text(found)
    expect(board.locator(".wb-card", has_text=found)).not_to_have_count(0)  # in the drawing
    board.get_by_label(copy, exact=True).fill("mine.canvas")
    board.get_by_role("button", name=write).click()
    until(lambda: (tmp_path / "notes" / "mine.canvas").exists(), "the copy")
    assert operation in json.dumps(
        json.loads((tmp_path / "notes" / "mine.canvas").read_text("utf-8")), ensure_ascii=False
    )
    option.click()
    for width, dark in ((1460, False), (1000, True), (320, False)):
        nb.theme(dark=dark)
        nb.resize(width, 2600)
        assert page.evaluate(WIDER) == [], width
        assert page.evaluate(UNNAMED) == [], width
        shot(board, tmp_path, f"canvas-{lang}-{width}-{'dark' if dark else 'light'}")
