"""What a run remembered, on the bench: seen, corrected, switched off in a fork."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.bench_page import BenchPage
from tests.browser.test_hostile_bench import WIDER
from tests.browser.test_journey import store  # noqa: F401 - a fixture
from tests.browser.test_restart import until
from tests.browser.test_shapes import UNNAMED
from workbench.runs.recording import origin_of
from workbench.session import Workbench

OPEN = "from workbench import Workbench\nwb = Workbench.open('workspace', memory_core=True)"
ASKED = """
for message in {messages!r}:
    run = wb.ask(message, kb="film", session="s")
"""
SAID = {
    "en": (
        ["My name is Ann.", "I don't like horror films.", "Recommend some films from 1999"],
        ("Memory", "Correct…", "Correction", "Undo the last change"),
    ),
    "zh": (
        ["我叫小安", "我不喜欢恐怖片", "推荐几部1999年的电影"],
        ("记忆", "更正…", "更正为", "撤销上一次更改"),
    ),
}


@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.full)])
def test_memory_is_seen_corrected_and_switched_off(
    notebook: Callable[..., Any],
    store: Workbench,  # noqa: F811
    tmp_path: Path,
    lang: str,
) -> None:
    messages, (title, correct, correction, undo) = SAID[lang]
    nb = notebook([OPEN, ASKED.format(messages=messages), f'wb.bench(run, session="s", lang="{lang}")'])
    nb.run_all()
    page, bench = nb.page, BenchPage(nb.page)
    bench.root.wait_for()
    panel = page.locator(".wb-knew")
    summary = panel.locator(".wb-mem > summary", has_text=title)
    summary.focus()
    page.keyboard.press("Enter")
    expect(panel.locator(".wb-mem-rows")).to_contain_text("I don't like horror" if lang == "en" else "我不喜欢恐怖片")
    for width, dark in ((1460, False), (1000, True), (320, False)):
        nb.theme(dark=dark)
        nb.resize(width, 2600)
        assert page.evaluate(WIDER) == [], width
        assert page.evaluate(UNNAMED) == [], width
        shot(panel, tmp_path, f"memory-{lang}-{width}-{'dark' if dark else 'light'}")
    nb.resize(1000, 2600)

    held = [row["content"] for row in store.memory.view().memories]
    panel.get_by_role("button", name=correct).first.focus()
    page.keyboard.press("Enter")
    field = panel.get_by_label(correction)
    expect(field).to_be_focused()
    field.fill("<b>Anna</b>")
    page.keyboard.press("Enter")
    until(lambda: "<b>Anna</b>" in [row["content"] for row in store.memory.view().memories], "the new version")
    panel.get_by_role("button", name=undo).click()
    until(lambda: [row["content"] for row in store.memory.view().memories] == held, "it is taken back")
    expect(panel.get_by_role("button", name=undo)).to_be_hidden()  # the rows are drawn again

    run = store.runs.list()[0]
    noted = store.memory.view().memories[0]
    panel.locator(f'[data-do=without][data-of="{noted["id"]}"]').focus()
    page.keyboard.press("Enter")
    until(lambda: len(store.runs.list()) == 4 and store.runs.list()[0].status == "done", "a fork")
    fork = store.runs.list()[0]
    assert origin_of(fork) == run.run_id and noted["content"] not in fork.state["memory_context"]
    expect(bench.root.locator(".wb-head")).to_contain_text(fork.run_id)


def shot(part: Any, tmp_path: Path, name: str) -> None:
    place = Path(os.environ.get("SCREENSHOTS", tmp_path))
    place.mkdir(parents=True, exist_ok=True)
    part.screenshot(path=place / f"{name}.png")
