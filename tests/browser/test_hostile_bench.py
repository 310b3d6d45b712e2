"""Hostile text on the bench: whatever documents, people, tools and notes say is shown as text, in every view."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.bench_page import BenchPage, newest, until
from tests.shelves import jsonl
from tests.test_hostile import ALL, HASHING, HOSTILE, NAME, STEERING, films
from workbench.session import Workbench

LONG = "word " * 200_000  # 1 MB
WAYS = f"{ALL} {LONG}"
OPEN = """
from workbench import Workbench
wb = Workbench.open("workspace", embedding_model="hashing")

@wb.tools.tool(description=open("said").read(), intents=["qa", "list", "recommend", "compare"])
async def failing(query: str) -> list[str]:
    raise ValueError(open("said").read())
"""
# What no text may bring into the page.
FOREIGN = "script, iframe, object, embed, img, link, form, a[href^='javascript'], [onerror], [onload], [onmouseover]"
WIDER = Path(__file__).with_name("wider.js").read_text("utf-8")


TEXTS = """() => [...document.querySelectorAll('.wb-root, .wb-static')].flatMap(root => [root.textContent,
    ...[...root.querySelectorAll('[aria-label], [title]')].map(e => `${e.ariaLabel ?? ''} ${e.title}`)])"""


def plain(page: Page) -> None:
    """Nothing in the bench but text, all of it visible, and none of it wider."""
    assert page.locator(f".wb-root :is({FOREIGN})").count() == 0
    assert page.evaluate(WIDER) == []
    shown = "\n".join(page.evaluate(TEXTS)).replace("\u200b", "")  # which ipywidgets puts into empty labels
    hidden = STEERING.search(shown.replace("\n", " "))
    assert not hidden, ascii(shown[max(0, hidden.start() - 100) : hidden.end() + 50])


def test_hostile_text_stays_text(notebook: Callable[..., Any], tmp_path: Path) -> None:
    corpus = jsonl(tmp_path / "films.jsonl", films(*HOSTILE, ALL, LONG))
    (tmp_path / "said").write_text(ALL, encoding="utf-8")
    with Workbench.open(tmp_path / "workspace", **HASHING) as store:
        store.add_knowledge("film", [corpus])
        nb = notebook([OPEN, 'wb.bench(kb="film")', "wb.inbox()"])
        nb.run_all()
        page, bench = nb.page, BenchPage(nb.page)
        plain(page)

        bench.ask(f"List comedies about a banquet {ALL}")
        first = newest(store, "paused", decided=0)
        bench.press("Add step")
        bench.fill("Objective", WAYS)
        expect(bench.alert.first).to_contain_text("characters")
        bench.fill("Objective", ALL)
        bench.fill("Query", ALL)
        bench.note(WAYS)
        plain(page)
        bench.press("Run as edited")
        expect(bench.root).to_contain_text("The answer was refused")  # a note of a megabyte
        plain(page)
        bench.note(ALL)
        bench.press("Run as edited")
        newest(store, "paused", decided=1)
        bench.choose(first.plan.steps[0].step_id)
        plain(page)
        page.keyboard.press("Escape")
        bench.press("Respond")
        bench.fill("Say what is missing in your own words; it is added to the plan", ALL)
        bench.note(ALL)
        plain(page)
        bench.press("Send")
        run = newest(store, "paused", decided=2)
        for decided in range(2, 6):
            if run.status == "paused":
                bench.press("Approve")
                until(lambda past=decided: len(run.decisions) > past and run.status != "running", "it goes on")
        assert run.decisions[0]["note"].split() == ALL.split() and run.status == "done", run.error
        expect(bench.root.locator(".wb-answer")).to_be_visible()
        page.locator(".wb-region-evidence [role=row]").first.click()
        plain(page)
        waits = store.ask(f"banquet {ALL}", kb="film", review={"plan"}, session=NAME)
        inbox = page.locator(".wb-inbox")
        waiting = inbox.get_by_role("row").filter(has_text=waits.run_id)  # not the one that goes
        waiting.click()
        for note in (WAYS, ALL):
            waiting.get_by_label("Note").fill(note)
            waiting.get_by_role("button", name="Answer now").click()
            if note == WAYS:
                expect(inbox).to_contain_text("characters")
            plain(page)
        expect(waiting).to_have_count(0)
        until(lambda: waits.decisions, "the answer is kept")  # the inbox says what was pressed, before the run has it
        assert waits.decisions[0]["note"].split() == ALL.split()
        for view in ("Runs", "Compare", "Knowledge graph"):
            bench.view(view)
            plain(page)
