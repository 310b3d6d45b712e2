"""A notebook with every widget in it, saved with the widgets' state: small, and readable without a kernel."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.bench_page import OPEN, QUESTION
from tests.browser.lab import PANEL

MOST = 1_200_000
ASKED = f"""
done = wb.ask({QUESTION!r}, kb="film")
fork = done.fork(review=["plan"], wait=False).wait()
"""
CELLS = [
    OPEN,
    ASKED,
    "bench = wb.bench(done)\nbench",
    "wb.inbox()",
    "wb.compare(done, wb.ask('List films directed by Ang Lee', kb='film'))",
    "wb.runs",
    "done",
    "wb.bench(fork)",
    "done.dag()",
    "done.timeline()",
    "done.graph()",
]
ERRORS = ("model not found", "Error displaying widget", "Error creating widget")
UNKEPT = {"autoStartDefault": False, "canStart": False, "shouldStart": False}


def test_saved_small_and_read_without_a_kernel(notebook: Callable[..., Any], workspace: Path) -> None:
    nb = notebook(CELLS)
    nb.run_all()
    bench = nb.page.locator(".wb-bench").first
    for view in ("Runs", "Compare", "Knowledge graph", "Work"):  # whatever a person has looked at is saved
        bench.get_by_role("button", name=view, exact=True).click()
    expect(bench.locator(".wb-answer")).to_be_visible()
    nb.keep_widget_state()
    saved = nb.save()
    assert nb.file.stat().st_size < MOST

    nb.clean()
    read: dict[str, str] = {}
    for name in ("with", "without"):
        if name == "without":
            del saved["metadata"]["widgets"]
        file = nb.file.with_name(f"{name}.ipynb")  # written by hand: JupyterLab does not trust it
        file.write_text(json.dumps(saved), encoding="utf-8")
        path = file.relative_to(nb.lab.root).as_posix()
        nb.command("docmanager:open", path=path, factory="Notebook", kernelPreference=UNKEPT)
        nb.wait(f"{PANEL}.context.path === {path!r} && {PANEL}.content.widgets.length === {len(CELLS)}")
        nb.wait(f"{PANEL}.node.querySelectorAll('.jp-OutputArea-output').length >= {len(CELLS) - 2}")
        assert nb.eval(f"{PANEL}.node.querySelector('.wb-static').checkVisibility()")
        read[name] = page_of(nb)
    for text in read.values():
        for told in ("Sources", "Waiting for you", "They first differ in the question", "Reflection 1 of 3"):
            assert told in text, told
        assert not [error for error in ERRORS if error in text]
    nb.seen.errors[:] = [error for error in nb.seen.errors if "(reading 'kernel')" not in error]  # ipywidgets' own


def page_of(nb: Any) -> str:
    """What can be read on the page, once nothing more comes."""
    before, text = "", nb.eval(f"{PANEL}.node.innerText")
    while text != before:
        nb.page.wait_for_timeout(1000)
        before, text = text, nb.eval(f"{PANEL}.node.innerText")
    return text


ROWS = """
from workbench.views.markup import Picture, el
from workbench.widgets.panel import Pick
rows = lambda *said: Picture(rows={str(n): el("p.wb-row", one, data_key=str(n)) for n, one in enumerate(said)})
pick = Pick(rows("one", "two"))
pick
"""


@pytest.mark.full
def test_rows_sent_alone_are_in_every_view_and_in_what_is_saved(notebook):
    nb = notebook([ROWS, "pick"])
    nb.run_cell(0)
    first = nb.page.locator(".jp-Cell >> nth=0 >> .wb-row")
    expect(first).to_have_text(["one", "two"])
    nb.kernel("pick.show(rows('one', 'three < four'))")
    expect(first).to_have_text(["one", "three < four"])
    nb.run_cell(1)
    second = nb.page.locator(".jp-Cell >> nth=1 >> .wb-row")
    expect(second).to_have_text(["one", "three < four"])
    nb.kernel("pick.show(rows('five', 'three < four'))")
    for view in (first, second):
        expect(view).to_have_text(["five", "three < four"])
    nb.keep_widget_state()
    state = nb.save()["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    (kept,) = [one["state"]["html"] for one in state.values() if "html" in one["state"]]
    assert "five" in kept and "three &lt; four" in kept and "one" not in kept
    nb.kernel("pick.show(rows('six'))")
    for view in (first, second):
        expect(view).to_have_text(["six"])
    nb.clean()
