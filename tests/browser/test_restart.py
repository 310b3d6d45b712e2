"""The bench outlives what it is shown in: the kernel, killed while a run waits or works, and the page, closed."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.bench_page import QUESTION, BenchPage, newest, until
from workbench.session import Workbench

SLOW = """
import asyncio, pathlib
from workbench import Workbench
wb = Workbench.open("workspace", step_timeout_s=300, time_budget_s=300)

@wb.tools.tool(intents={"compare"})
async def slow(query: str) -> list[str]:
    "Takes until there is a file that says go."
    with open("calls", "a") as calls:
        calls.write("begun\\n")
    while not pathlib.Path("go").exists():
        await asyncio.sleep(0.02)
    return [f"What was slow in coming: {query}"]
"""


def ended(run: Any) -> Counter[str]:
    return Counter(record["step_id"] for record in run.records)


def test_the_kernel_restarts_while_the_run_waits(notebook: Callable[..., Any], store: Workbench) -> None:
    nb = notebook(["from workbench import Workbench\nwb = Workbench.open('workspace')", 'wb.bench(kb="film")'])
    nb.run_all()
    bench = BenchPage(nb.page)
    bench.ask(QUESTION)
    newest(store, "paused", decided=0)
    bench.press("Approve")
    paused = newest(store, "paused", decided=1)
    assert paused.review["point"] == "reflect"
    before, called = ended(paused), len(paused.tape())

    nb.restart_kernel()
    nb.run_all()
    expect(bench.root).to_contain_text("This run was still waiting")
    expect(bench.root.locator(".wb-plan [role=option]")).to_have_count(len(paused.plan.steps))
    assert newest(store, "paused", decided=1).run_id == paused.run_id, "opening the bench does nothing to the run"
    bench.press("Approve")
    done = newest(store, "done", decided=2)
    expect(bench.root.locator(".wb-answer")).to_contain_text(done.answer[2:40])
    assert done.run_id == paused.run_id and ended(done) == before, "what had been done is not done again"
    assert len(done.tape()) > called


@pytest.mark.full
def test_the_kernel_dies_while_a_step_runs(notebook: Callable[..., Any], store: Workbench, tmp_path: Path) -> None:
    nb = notebook([SLOW, 'wb.bench(kb="film")'])
    nb.run_all()
    bench = BenchPage(nb.page)
    bench.ask(QUESTION)
    first = newest(store, "paused", decided=0)
    bench.press("Approve")
    calls = tmp_path / "calls"
    until(calls.exists, "the slow tool is called")
    slow = {step.step_id for step in first.plan.steps if step.tool == "slow"}
    others = {step.step_id for step in first.plan.steps if not step.depends_on} - slow
    running = newest(store, "running", decided=1)
    until(lambda: others <= set(ended(running)), "the steps beside it are done")
    begun = len(calls.read_text().split())

    nb.reopen()  # the page goes, the kernel and the run go on
    expect(bench.root.locator(".wb-plan [role=option]")).to_have_count(len(first.plan.steps))
    expect(bench.root.locator("summary", has_text="Cancel")).to_be_visible()

    nb.restart_kernel()
    assert newest(store, "interrupted", decided=1).run_id == first.run_id
    nb.run_all()
    expect(bench.root).to_contain_text("This run was still waiting")
    (tmp_path / "go").touch()
    bench.press("Resume")
    paused = newest(store, "paused", decided=1)
    assert paused.run_id == first.run_id and paused.review["point"] == "reflect"
    counted = ended(paused)
    assert all(counted[step] == 1 for step in others), f"what had been done is not done again: {counted}"
    assert len(calls.read_text().split()) == begun + len(slow), "what was under way is done once more"
    bench.press("Approve")
    done = newest(store, "done", decided=2)
    expect(bench.root.locator(".wb-answer")).to_contain_text(done.answer[2:40])
