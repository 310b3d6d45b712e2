"""A notebook with every widget in it, saved with the widgets' state: small, and readable without a kernel."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.browser.bench_page import OPEN, QUESTION
from tests.browser.lab import PANEL

MOST = 1_150_000
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
ANSWER = "Eat Drink Man Woman"


def test_saved_small_and_read_without_a_kernel(notebook: Callable[..., Any], workspace: Path) -> None:
    nb = notebook(CELLS)
    nb.run_all()
    bench = nb.page.locator(".wb-bench").first
    for view in ("Runs", "Compare", "Knowledge graph", "Work"):  # whatever a person has looked at is saved
        bench.get_by_role("button", name=view, exact=True).click()
    expect(bench.locator(".wb-answer")).to_be_visible()
    nb.keep_widget_state()
    saved = nb.save()
    size = nb.file.stat().st_size
    state = saved["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    outputs = sum(len(json.dumps(cell["outputs"])) for cell in saved["cells"])
    print(f"\nsaved: {size:,} bytes, of which outputs {outputs:,}, the state of {len(state)} widgets {fattest(state)}")
    assert size < MOST

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
        for told in (
            "Sources",
            "Waiting for you",
            "They first differ in the question",
            "Reflection 1 of 3",
        ):
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


def fattest(state: dict[str, Any]) -> list[tuple[str, int]]:
    """What of the state takes most bytes."""
    found: Counter[str] = Counter()
    for model in state.values():
        for name, value in model["state"].items():
            found[f"{model['model_name']}.{name}"] += len(json.dumps(value))
    return found.most_common(4)
