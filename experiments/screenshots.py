"""Take the pictures of the bench in a real JupyterLab: ``make screenshots``; the fixtures are those of its tests."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.browser.bench_page import OPEN, QUESTION, BenchPage
from tests.browser.lab import Browser
from workbench.session import Workbench

WHERE = Path(os.environ.get("SCREENSHOTS", "notebooks/images")).resolve()
HEIGHT = 900
expect.set_options(timeout=20_000)


def test_bench_in_pictures(notebook: Callable[..., Any], workspace: Path) -> None:
    nb = notebook([OPEN, 'wb.bench(kb="film")'])
    nb.run_all()
    bench = BenchPage(nb.page)
    bench.root.wait_for()
    nb.default_window(height=HEIGHT)
    bench.ask(QUESTION)
    bench.band.wait_for()
    first = bench.steps.first.get_attribute("data-key")
    bench.press("Add step")
    expect(bench.steps).to_have_count(4)
    new = bench.steps.last.get_attribute("data-key")
    bench.fill("Objective", "The fathers in both films")
    bench.depends(first, new)
    bench.depends(new, first)
    expect(bench.alert.first).to_contain_text("Cycle")
    shot(bench, "bench-plan.png")
    bench.fix()
    expect(bench.primary).to_be_enabled()
    bench.press("Run as edited")
    expect(bench.band).to_contain_text("evidence")
    shot(bench, "bench-reflect.png")
    bench.press("Keep searching")
    bench.fill("Rewritten query", "Zhu family, tradition and modernity")
    bench.press("Run as edited")
    expect(bench.band).to_contain_text("evidence")
    bench.press("Approve")
    nb.page.locator(".wb-answer").wait_for()
    shot(bench, "bench-done.png")
    bench.view("Knowledge graph")
    nb.page.locator(".wb-entity").first.wait_for()
    shot(bench, "bench-knowledge.png")
    bench.view("Work")
    bench.fork("reflect", "edited by you")
    bench.band.wait_for()
    bench.press("Approve")
    nb.page.locator(".wb-answer").wait_for()
    bench.view("Compare")
    nb.page.locator(".wb-columns .wb-letter").first.wait_for()
    shot(bench, "bench-compare.png")
    bench.view("Runs")
    shot(bench, "bench-runs.png")


def test_memory_in_pictures(notebook: Callable[..., Any], workspace: Path) -> None:
    said = ["My name is Ann.", "I don't like horror films.", "Recommend some films from 1999"]
    asked = f'for message in {said!r}:\n    run = wb.ask(message, kb="film", session="s")'
    opened = "from workbench import Workbench\nwb = Workbench.open('workspace', memory_core=True)"
    nb = notebook([opened, asked, 'wb.bench(run, session="s")'], name="memory")
    nb.run_all()
    nb.resize(1460, 2600)
    panel = nb.page.locator(".wb-knew")
    panel.locator("summary").first.click()
    panel.screenshot(path=WHERE / "bench-memory.png")


def test_report_in_a_picture(browser: Browser, workspace: Path, tmp_path: Path) -> None:
    topic = "The films of Ang Lee: families, food and exile"
    with Workbench.open(workspace) as wb:
        place = wb.report(topic, kb="film", cached=False).report.write(tmp_path / "report.html")
    page = browser.context.new_page()
    page.set_viewport_size({"width": 860, "height": 1100})
    page.goto(place.as_uri())
    page.screenshot(path=WHERE / "report.png")


def test_bench_in_chinese_and_dark(notebook: Callable[..., Any], workspace: Path) -> None:
    nb = notebook([OPEN, 'wb.bench(kb="film", lang="zh")'], name="zh")
    nb.run_all()
    nb.theme(dark=True)
    bench = BenchPage(nb.page)
    bench.root.wait_for()
    nb.default_window(height=HEIGHT)
    bench.ask("《喜宴》和《饮食男女》有什么不同？", field="问题", button="提问")
    bench.band.wait_for()
    shot(bench, "bench-zh.png")


def shot(bench: BenchPage, name: str) -> None:
    """What of the bench is in the window, where nothing moves any more."""
    WHERE.mkdir(parents=True, exist_ok=True)
    bench.page.mouse.move(0, 0)
    bench.root.evaluate("bench => bench.scrollIntoView({ block: 'start' })")
    bench.page.wait_for_timeout(1000)  # until it has scrolled
    box = bench.root.bounding_box()
    assert box
    box["height"] = min(box["height"], HEIGHT - 30 - box["y"])  # JupyterLab's own line is below
    bench.page.screenshot(path=WHERE / name, clip=box)  # type: ignore[arg-type]
