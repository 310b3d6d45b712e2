"""Runs side by side, their forks and their past, clicked in a browser; what comes of it is read from the kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CELLS = [
    'from workbench import Workbench\nwb = Workbench.open("workspace")',
    'run = wb.ask("Compare The Wedding Banquet and Eat Drink Man Woman", kb="film", review=["reflect"])\n'
    'run.respond("the father", note="he is the point")\n'
    'while run.status == "paused":\n    run.approve()\n'
    'stopped = run.fork(at="0-reflect", decision={"action": "reject"})',
    "wb.compare(stopped, run)",
    "run.tree()",
    "run.checkpoints()",
]


@pytest.mark.full
def test_compare_graft_and_fork_by_clicks(notebook, workspace):
    nb = notebook(CELLS)
    nb.run_all()
    compare, tree, past = (nb.page.locator(".jp-CodeCell").nth(n) for n in (2, 3, 4))
    assert nb.eval("[...document.querySelectorAll('.wb-static')].every((e) => !e.checkVisibility())")
    compare.get_by_role("switch", name="Only differences").click()
    compare.get_by_role("button", name="Graft…").click()
    compare.get_by_role("checkbox").first.click()
    before = nb.kernel("len(wb.runs.list())")
    compare.get_by_role("button", name="Graft: new run from A with 1 step of B").click()
    compare.locator(".wb-graft-made").wait_for()
    assert nb.kernel("(len(wb.runs.list()), wb.runs.list()[0].status)") == (before + 1, "done")
    tree.get_by_role("button", name="Compare run").first.click()
    tree.get_by_role("button", name="Compare A, B").click()
    tree.get_by_role("switch", name="Only differences").wait_for()  # the comparison opens below the tree
    past.get_by_role("option").nth(1).press("Enter")
    past.get_by_role("button", name="Fork from here").click()
    past.locator(".wb-root .wb-root").wait_for()
    fork = 'next(r for r in wb.runs.list() if r.status in ("running", "paused")).wait().review["review_id"]'
    assert nb.kernel(fork) == "0-reflect"
    if where := os.environ.get("SCREENSHOTS"):
        nb.screenshot(Path(where) / "compare.png")
    nb.clean()
