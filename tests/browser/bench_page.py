"""The bench on a page, as people name its parts: what the browser's tests click."""

import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page

from workbench.session import Workbench

QUESTION = "Compare The Wedding Banquet and Eat Drink Man Woman"
OPEN = "from workbench import Workbench\nwb = Workbench.open('workspace')"
KERNEL = "jupyterapp.shell.currentWidget.sessionContext.session.kernel.status"


class BenchPage:
    def __init__(self, page: Page):
        self.page, self.root = page, page.locator(".wb-bench")
        self.band = page.locator(".wb-bench .wb-band:visible").first
        self.steps = page.locator(".wb-plan [role=option]")
        self.alert = page.locator(".wb-step-form [role=alert]:visible")
        self.primary = page.locator(".wb-dock .wb-buttons .wb-primary:visible")

    def ask(self, question: str, field: str = "Question", button: str = "Ask") -> None:
        self.page.get_by_label(field, exact=True).fill(question)
        self.page.get_by_role("button", name=button, exact=True).click()

    def press(self, name: str) -> None:
        self.root.get_by_role("button", name=name).and_(self.page.locator(":visible")).first.click()

    def view(self, name: str) -> None:
        self.root.get_by_role("button", name=name, exact=True).click()

    def fill(self, label: str, text: str) -> None:
        field = self.root.get_by_label(label, exact=True).and_(self.page.locator(":visible")).first
        field.fill(text)
        field.press("Tab")

    def note(self, text: str) -> None:
        self.fill("Note", text)

    def choose(self, step_id: str) -> None:
        self.page.locator(f'.wb-plan [data-key="{step_id}"]').click()

    def depends(self, step_id: str, on: str) -> None:
        """Let a step wait for another one."""
        self.choose(step_id)
        self.page.wait_for_function("id => document.querySelector('.wb-step-form').innerHTML.includes(id)", arg=step_id)
        self.page.wait_for_function(f"{KERNEL} === 'idle'")  # every field of the form has come
        field = self.page.locator(".wb-step-form .jupyter-widget-tagsinput input").last
        field.fill(on)
        field.press("Enter")

    def fix(self) -> None:
        self.page.locator(".wb-step-form [data-do=fix]:visible").first.click()

    def fork(self, *words: str) -> None:
        """Fork at a decision, from the list of decisions."""
        rows = self.page.locator(".wb-past [role=listitem]")
        for word in words:
            rows = rows.filter(has_text=word)
        rows.first.locator("[data-do=fork]").click()


def newest(store: Workbench, status: str, decided: int, runs: int = 1, seconds: float = 30) -> Any:
    """The newest run, once there are so many, it stands so, and so many decisions are kept."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = store.runs.list()
        if len(found) == runs and found[0].status == status and len(found[0].decisions) == decided:
            return found[0]
        time.sleep(0.05)
    there = [
        (run.status, [d["review_id"] for d in run.decisions], [(r["tool"], r["status"]) for r in run.records])
        for run in store.runs.list()
    ]
    raise AssertionError(f"no run that is {status} after {decided} decisions: {there}")


def until(condition: Callable[[], Any], what: str, seconds: float = 30) -> float:
    """Wait until it holds; how long that took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds} s: {what}"
        time.sleep(0.01)
    return time.monotonic() - began
