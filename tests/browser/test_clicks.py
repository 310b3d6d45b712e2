"""How long a click takes in a real browser, in a large workspace with a large run.

The times are printed: ``pytest -m full -s tests/browser/test_clicks.py``.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pytest

from tests.browser.bench_page import KERNEL, QUESTION
from tests.browser.test_journey import newest, store  # noqa: F401 - a fixture
from workbench.session import Workbench
from workbench.views.runs import PAGE

pytestmark = pytest.mark.full


def p95(taken: Sequence[float]) -> float:
    return statistics.quantiles(taken, n=20)[-1]


RUNS, STEPS_OF_A_RUN, PIECES = 2_000, 200, 5
LARGE = f"""
from workbench import Plan, PlanStep, Workbench
wb = Workbench.open("workspace", step_timeout_s=300, time_budget_s=600)

@wb.tools.tool(intents={{"compare"}})
def several(query: str) -> list[str]:
    "Finds as many texts as it is asked for."
    return [f"{{query}}, piece {{n}}: both films are of a father and of what he cannot say." for n in range({PIECES})]

@wb.register("planner")
async def large(query, decision, knowledge, tools):
    def step(n):
        before = [f"step_{{n - 10}}"] if n >= 10 else []
        name, asked = f"step_{{n}}", {{"query": f"{{query}} {{n}}"}}
        return PlanStep(step_id=name, objective="Look", tool="several", tool_input=asked, depends_on=before)
    return Plan(problem_statement=query, steps=[step(n) for n in range({STEPS_OF_A_RUN})])
"""
COPIES = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO runs (run_id, {columns}) SELECT printf('copy%08d', i), {columns} FROM runs, n WHERE run_id = ?"""
COLUMNS = "conversation_id, user_id, session_id, message, options, status, result, created_at, ended_at, query"
# From a click to the first change of the bench, and to what was asked for; nothing of the test's own is counted.
CLICK = """([button, asked]) => new Promise((done, late) => {
    const bench = document.querySelector('.wb-bench');
    const there = new Function(`return (${asked})`);
    const began = performance.now();
    let sign = 0;
    const look = () => {
        sign ||= performance.now() - began;
        if (!there()) return;
        seen.disconnect();
        done([sign, performance.now() - began]);
    };
    const seen = new MutationObserver(look);
    seen.observe(bench, { childList: true, subtree: true, attributes: true, characterData: true });
    setTimeout(() => late(new Error(`no ${asked} after ${button}`)), 30000);
    const found = [...bench.querySelectorAll(button)].find(each => each.checkVisibility());
    found.click();
})"""
SEEN = "[...document.querySelectorAll('{}')].some(each => each.checkVisibility() && each.innerText.includes('{}'))"


def test_a_click_is_answered_in_a_large_workspace(
    notebook: Callable[..., Any],
    store: Workbench,  # noqa: F811
) -> None:
    """With 2,000 runs, 200 steps and 1,000 pieces of evidence a click shows within 100 ms that it is heard."""
    ended = store.ask(QUESTION, kb="film")
    with closing(sqlite3.connect(store.path / "workbench.db")) as database, database:
        database.execute(COPIES.format(columns=COLUMNS), (RUNS - 2, ended.run_id))
    paused = f'run = wb.ask({QUESTION!r}, kb="film", session="large", review=["plan", "reflect"]); wb.bench(run)'
    nb = notebook([LARGE, paused])
    nb.run_all()
    nb.default_window()
    nb.page.locator(".wb-plan [role=option]").last.wait_for()
    taken: dict[str, list[list[float]]] = {}

    def click(name: str, button: str, place: str, says: str = "") -> None:
        nb.page.wait_for_function(f"{KERNEL} === 'idle'")
        taken.setdefault(name, []).append(nb.page.evaluate(CLICK, [button, SEEN.format(place, says)]))

    def view(name: str, place: str) -> None:
        click(f"view {name}", f"[data-do='view:{name}']", place)

    for n in range(1, 200, 20):
        click("step", f".wb-plan [data-key=step_{n}]", ".wb-step-form", f"step_{n}")
    click("approve plan", ".wb-decision .wb-primary", ".wb-decision .wb-band", "evidence")
    for n in range(1, 11):
        row = f".wb-region-evidence [role=row]:nth-of-type({n})"
        click("evidence", row, f"{row} .wb-kept")
    click("approve evidence", ".wb-decision .wb-primary", ".wb-answer p")
    for _ in range(3):
        view("runs", ".wb-mark")
        click("next page", "[data-do='page:1']", ".wb-runs", f"{PAGE + 1}–")
        click("mark", "[data-do=mark][aria-pressed=false]", ".wb-mark[aria-pressed=true]")
        click("page before", "[data-do='page:-1']", ".wb-runs", f"1–{PAGE}")
        view("knowledge", ".wb-futures [data-filter]")
        view("work", ".wb-plan [role=option]")
    click("fork", ".wb-head [data-do=fork]", ".wb-decision .wb-band", "evidence")
    click("stop here", ".wb-decision button:nth-of-type(2)", ".wb-answer p")
    for _ in range(3):
        view("compare", ".wb-columns table")
        view("work", ".wb-plan [role=option]")
    print(f"\n{RUNS:,} runs, {STEPS_OF_A_RUN} steps, {STEPS_OF_A_RUN * PIECES:,} pieces, load {os.getloadavg()[0]:.1f}")
    print("ms from a click to a sign that it was heard, and to what was asked for; medians")
    for name, pairs in taken.items():
        medians = " ".join(f"{statistics.median(part):6.0f}" for part in zip(*pairs, strict=True))
        print(f"{name:>17}: {medians}, of {len(pairs)}")
    signs, answers = zip(*(pair for pairs in taken.values() for pair in pairs), strict=True)
    print(f"p95 of {len(signs)}: sign {p95(signs):.0f} ms, what was asked for {p95(answers):.0f} ms")
    assert p95(signs) < 100
