"""An answer that an evaluation wants judged: read, judged and kept in a notebook's inbox."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.browser.bench_page import OPEN

ASK = """for answer in ("<b>1993</b> [1].", "Nobody knows."):
    wb.labels.ask({"question": "When was the kiln built?", "gold": "1993", "answer": answer,
                  "evidence": "[1] Kiln\\nThe kiln was built in 1993."})"""


def test_an_answer_is_judged_in_the_inbox(notebook: Callable[..., Any], workspace: Path, tmp_path: Path) -> None:
    nb = notebook([OPEN, ASK, 'wb.inbox(user="ann")'])
    nb.run_all()
    inbox = nb.page.locator(".wb-inbox")
    card = inbox.locator(".wb-judge")
    expect(card).to_contain_text("<b>1993</b> [1].")
    expect(card.locator("b")).to_have_count(0)
    keep = card.get_by_role("button", name="Save, next answer")
    expect(keep).to_be_disabled()
    card.get_by_role("group", name="Does it say what the reference says?").get_by_text("yes", exact=True).click()
    expect(card.locator("[aria-pressed=true]")).to_have_count(1)
    card.get_by_role("group", name="Does the evidence support").get_by_text("no", exact=True).click()
    place = Path(os.environ.get("SCREENSHOTS", tmp_path))
    place.mkdir(parents=True, exist_ok=True)
    inbox.screenshot(path=place / "inbox-labels.png")
    keep.click()
    expect(card).to_contain_text("Nobody knows.")
    expect(card).to_contain_text("1 left")
    expect(keep).to_be_disabled()
    said = "[(row['label'], row['labelled_by']) for row in wb.labels.list()]"
    assert nb.kernel(said) == [({"correct": True, "faithful": False}, "ann"), (None, None)]
