"""Speed, in a real browser: the way of a newcomer to a compared fork by clicks alone, and clicks while a run works."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser.bench_page import QUESTION, BenchPage
from tests.browser.test_journey import newest, store  # noqa: F401 - a fixture
from tests.browser.test_restart import until
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
    """By clicks alone: nothing is typed, not even the question."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / ".workbench").symlink_to(tmp_path / "workspace")
    (tmp_path / "data").symlink_to(REPOSITORY / "data")
    began = time.monotonic()
    marks: dict[str, float] = {}

    def reached(name: str) -> None:
        marks[name] = time.monotonic() - began

    nb = notebook(cells_up_to_the_bench(), name="notebooks/first")
    reached("open")
    nb.run_all()
    bench = BenchPage(nb.page)
    nb.page.locator(".wb-ask-last .wb-quiet").first.click()
    reached("usable")
    bench.press("Ask")
    newest(store, "paused", decided=0)
    bench.press("Approve")
    newest(store, "paused", decided=1)
    reached("at the reflection")
    bench.press("Approve")
    done = newest(store, "done", decided=2)
    expect(bench.root.locator(".wb-answer")).to_contain_text(done.answer[:40])
    reached("answered")
    bench.press("Fork and decide again")
    newest(store, "paused", decided=1, runs=2)
    bench.press("Stop here")
    fork = newest(store, "done", decided=2, runs=2)
    reached("forked")
    bench.view("Compare")
    expect(nb.page.locator(".wb-futures")).to_contain_text(fork.run_id)
    reached("compared")
    print("\nseconds since the notebook was opened: " + ", ".join(f"{name} {s:.1f}" for name, s in marks.items()))
    assert marks["compared"] < MOST_S
    nb.clean()


OPENED = """
import asyncio, pathlib
from workbench import Workbench
wb = Workbench.open("workspace", step_timeout_s=300, time_budget_s=300)
"""
# What a step does while somebody clicks: it waits, as for a server, or it computes in a thread beside the kernel's own.
STEPS = {
    "waits": """
@wb.tools.tool(intents={"compare"})
async def waits(query: str, log) -> list[str]:
    "Waits."
    pathlib.Path("calls").touch()
    while not pathlib.Path("go").exists():
        await asyncio.sleep(0.05)
    return ["waited"]
""",
    "computes": """
@wb.tools.tool(intents={"compare"})
def computes(query: str) -> list[str]:
    "Computes in pure Python, so that it holds the interpreter as often as it may."
    pathlib.Path("calls").touch()
    while not pathlib.Path("go").exists():
        sum(i * i for i in range(20_000))
    return ["computed"]
""",
}
# From a click to the first change under a place: in the page itself, so that nothing of the test's own is counted.
LATENCY = """
window.latency = (target, place) => new Promise((done, late) => {
    const began = performance.now();
    const seen = new MutationObserver(() => { seen.disconnect(); done(performance.now() - began); });
    seen.observe(document.querySelector(place), { childList: true, subtree: true });
    setTimeout(() => { seen.disconnect(); late(new Error('nothing changed: ' + target)); }, 60000);
    const found = typeof target === 'string' ? document.querySelector(target) : target;
    found.click();
})
"""


# What a click costs in any notebook here, with nothing of ours in it.
BARE = """
import ipywidgets
button, label = ipywidgets.Button(description="Bare").add_class("bare"), ipywidgets.HTML().add_class("bare-label")
button.on_click(lambda _: setattr(label, "value", label.value + "."))
ipywidgets.VBox([button, label])
"""
CLICKS = {
    "bare": [(".bare", ".bare-label")] * 2,
    "step": [(f".wb-plan [role=option]:nth-of-type({n})", ".wb-step-form") for n in (1, 2)],
    "evidence": [(f".wb-region-evidence [role=row]:nth-of-type({n})", ".wb-region-evidence") for n in (1, 2)],
    "view": [(f".wb-head [data-do='view:{name}']", ".wb-head") for name in ("runs", "work")],
}


@pytest.mark.full
@pytest.mark.parametrize("step", STEPS)
def test_a_click_is_answered_while_a_run_works(
    notebook: Callable[..., Any],
    store: Workbench,  # noqa: F811
    tmp_path: Path,
    step: str,
) -> None:
    """A click costs little more than one on a button of ipywidgets with nothing behind it; the times are printed."""
    nb = notebook([OPENED + STEPS[step], BARE, 'wb.bench(kb="film", review=None)'])
    nb.run_all()
    bench = BenchPage(nb.page)
    bench.ask(QUESTION)
    until((tmp_path / "calls").exists, "the slow tool is called")
    expect(bench.root.locator(".wb-region-evidence [role=row]").first).to_be_visible(timeout=120_000)
    nb.eval(f"void ({LATENCY})")
    taken: dict[str, list[float]] = {kind: [] for kind in CLICKS}
    for kind in [*CLICKS] * 5:
        taken[kind] += [nb.page.evaluate("([click, place]) => latency(click, place)", pair) for pair in CLICKS[kind]]
    ours = [ms for kind, every in taken.items() for ms in every if kind != "bare"]
    crowded = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    print(f"\nfrom a click to its answer while a step {step}, {crowded:.1f} processes a core:")
    for kind, every in {**taken, "ours": ours}.items():
        print(f"{kind:>9}: p50 {statistics.median(every):.0f} ms, p95 {p95(every):.0f} ms of {len(every)}")
    assert statistics.median(ours) < 3 * statistics.median(taken["bare"])
    (tmp_path / "go").touch()
    newest(store, "done", decided=0)


def p95(taken: list[float]) -> float:
    return statistics.quantiles(taken, n=20)[-1]
