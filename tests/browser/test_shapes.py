"""The bench in every width, theme and language: named, readable, in the window that people have, and its keys."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from playwright.sync_api import expect

from tests.browser.bench_page import OPEN, QUESTION, BenchPage
from tests.browser.lab import PANEL
from tests.browser.test_hostile_bench import WIDER
from workbench.session import Workbench

ASKED = f'wb.ask({QUESTION!r}, kb="film"); run = wb.ask({QUESTION!r}, kb="film", review={{"plan", "reflect"}})'
UNNAMED = Path(__file__).with_name("unnamed.js").read_text("utf-8")
TOP = "selector => document.querySelector(selector).getBoundingClientRect().top"


def test_every_shape(notebook: Callable[..., Any], store: Workbench) -> None:
    nb = notebook([OPEN, ASKED, "wb.bench(run)", 'wb.bench(run, lang="zh")'])
    nb.run_all()
    page = nb.page
    expect(page.locator(".wb-bench")).to_have_count(2)
    page.locator(".wb-bench .wb-plan [role=option]").first.click()
    for width, dark in ((1460, False), (1000, True), (675, False)):
        nb.theme(dark=dark)
        nb.resize(width, 2600)
        for view in range(4):
            for tab in page.locator(".wb-bench .wb-tabs").all():
                tab.locator("button").nth(view).click()
            expect(page.locator(".wb-bench .wb-tabs [aria-pressed=true]")).to_have_count(2)
            nb.kernel("None")
            assert page.evaluate(WIDER) == [], (width, view)
            assert page.evaluate(UNNAMED) == [], (width, view)
        for tab in page.locator(".wb-bench .wb-tabs").all():
            tab.locator("button").first.click()
        expect(page.locator(".wb-region-plan").first).to_be_visible()
        form, plan = page.evaluate(TOP, ".wb-region-form"), page.evaluate(TOP, ".wb-region-plan")
        assert form < plan if width == 675 else abs(form - plan) <= 1, width


CONTROLS = {"button", "textbox", "combobox", "searchbox", "checkbox", "radio", "link", "switch", "option"}
ASK = f'wb.ask({QUESTION!r}, kb="film", review={{review!r}}, session={{session!r}})'
BENCHES = [
    "plan = wb.bench(" + ASK.format(review=["plan"], session="a") + "); plan",
    "reflect = wb.bench(" + ASK.format(review=["reflect"], session="b") + "); reflect",
    "done = wb.bench(" + ASK.format(review=[], session="c") + "); done",
    'runs = wb.bench(session="d"); runs.view = "runs"; runs',
    "wb.inbox()",
]
POOR = Path(__file__).with_name("poor.js").read_text("utf-8")


def faults_of_axe(page):
    page.evaluate((Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text())
    found = page.evaluate("axe.run('.wb-root', {resultTypes: ['violations']})")["violations"]
    serious = [fault for fault in found if fault["impact"] in ("serious", "critical")]
    return [(fault["id"], node["html"][:160]) for fault in serious for node in fault["nodes"][:5]]


def test_every_control_has_a_name_and_every_word_can_be_read(notebook, workspace):
    nb = notebook([OPEN, *BENCHES])
    nb.run_all()
    poor = []
    for dark in (False, True):
        nb.theme(dark=dark)
        for root in nb.page.locator(".wb-root").all():
            if root.is_visible():
                poor += [f"{dark}: {words}" for words in root.evaluate(POOR)]
        poor += [f"{dark}: {fault}" for fault in faults_of_axe(nb.page)]
    session = nb.page.context.new_cdp_session(nb.page)
    tree = session.send("Accessibility.getFullAXTree")["nodes"]
    for node in tree:
        role, name = (str(node.get(part, {}).get("value", "")) for part in ("role", "name"))
        if role not in CONTROLS or name.strip() or node.get("ignored"):
            continue
        place = session.send("DOM.resolveNode", {"backendNodeId": node["backendDOMNodeId"]})["object"]["objectId"]
        own = "function() { return this.closest('.wb-root') && this.outerHTML; }"
        asked = {"objectId": place, "functionDeclaration": own, "returnByValue": True}
        html = session.send("Runtime.callFunctionOn", asked)["result"].get("value")
        poor += [f"no name: {role} {html[:160]}"] if html else []
    assert not poor, "\n".join(poor)


WHOLE = 780  # of a bench of 848 pixels
RELEASED = "When was The Wedding Banquet released, and who directed it?"


def test_a_citation_brings_its_evidence_into_view(notebook, workspace):
    run = f'run = wb.ask({RELEASED!r}, kb="film", session="cite"); wb.bench(run)'
    nb = notebook([OPEN, run])
    nb.run_all()
    nb.default_window()
    nb.page.locator(".wb-cite:visible").first.click()
    marked = nb.page.locator(".wb-piece[aria-selected=true] mark").last
    marked.wait_for()
    nb.wait("""(() => { const box = document.querySelector('.wb-piece mark').getBoundingClientRect();
        return box.top >= 0 && box.bottom <= innerHeight; })()""")
    assert "1993" in marked.inner_text()
    nb.wait(f"{IN_WINDOW}('.wb-piece-acts')")
    assert min(nb.page.locator(part).bounding_box()["width"] for part in (".wb-answer", ".wb-pieces")) > WHOLE
    link = nb.page.locator(".wb-piece[aria-selected=true] a")
    assert link.get_attribute("href").startswith("https://") and "noopener" in link.get_attribute("rel")
    nb.page.locator('.wb-time-lane[data-key="executor"]').click()
    nb.wait(f"{IN_WINDOW}('.wb-detail > summary')")


def test_after_run_all_no_view_asks_for_what_is_decided(notebook, workspace):
    ask = f'run = wb.ask({RELEASED!r}, kb="film", review={{"plan", "reflect"}}, session="moved")'
    nb = notebook([OPEN, ask, "wb.bench(run)", "wb.inbox()", "run", "run.approve()\nrun.approve()"])
    nb.default_window()
    nb.run_all()
    for cell, says in ((2, "done"), (3, "Nothing is waiting"), (4, "done")):
        nb.eval(f"{PANEL}.content.scrollToItem({cell}, 'start')")
        nb.wait(f"""(() => {{ const node = {PANEL}.content.widgets[{cell}].node;
            const live = [...node.querySelectorAll('button:enabled')].filter(b => b.checkVisibility());
            return node.querySelector('.wb-root')?.innerText.includes({says!r})
                && !live.some(b => b.textContent.startsWith('Approve')); }})()""")
    kept = f"JSON.stringify({PANEL}.content.model.toJSON()).replaceAll('Nothing is waiting for you', '')"
    nb.wait(f"!{kept}.includes('waiting for you')")  # as it would be saved


IN_WINDOW = """(selector => { const box = [...document.querySelectorAll(selector)].find(e => e.checkVisibility())
    ?.getBoundingClientRect(); return box?.height && box.top >= 0 && box.bottom <= innerHeight; })"""


def test_from_the_question_to_the_answer_by_keys_without_scrolling_and_then_without_a_kernel(notebook, workspace):
    nb = notebook([OPEN, 'wb.bench(kb="film")'])
    nb.run_all()
    nb.default_window()
    nb.page.get_by_label("Question", exact=True).fill(RELEASED)
    nb.page.keyboard.press("Control+Enter")
    title = nb.page.locator(".wb-head-top")
    for asks, point in (("run this plan", "plan"), ("evidence", "reflect")):
        nb.wait(f"document.querySelector('.wb-decision .wb-band')?.innerText.includes({asks!r})")
        nb.wait(f"{IN_WINDOW}('.wb-decision .wb-primary:enabled')")
        expect(title).to_have_text(re.compile(rf"waiting for you · {point}\s*{re.escape(RELEASED)}"))
        nb.wait("document.activeElement.closest('.wb-dock')")  # where the last button went
        if asks == "evidence":  # which is read next to the decision on it, and covers none of it
            nb.page.locator(".wb-piece [data-text]").first.click()
            nb.wait("""(([piece, form]) => piece && piece.right <= form.left && form.top >= 0 && form.top < 400)(
                ['.wb-piece[aria-selected=true]', '.wb-region-form > :last-child'].map(
                    part => document.querySelector(part)?.getBoundingClientRect()))""")
            nb.wait(f"{IN_WINDOW}('.wb-piece-acts') && {IN_WINDOW}('.wb-decision .wb-primary:enabled')")
        nb.page.locator(".wb-bench").evaluate("bench => bench.scrollIntoView()")
        head = nb.page.evaluate(TOP, ".wb-bench")
        nb.page.keyboard.press("Control+Enter")
    nb.page.locator(".wb-answer").wait_for()
    nb.wait(f"{IN_WINDOW}('.wb-answer p')")
    expect(title).to_have_text(re.compile(rf"● done\s*{re.escape(RELEASED)}"))
    nb.page.locator(".wb-ask-keys").focus()
    nb.page.keyboard.press("Shift+Tab")
    nb.page.keyboard.press("Tab")  # what is reached by keys is seen to be
    ring = "(style => [style.outlineStyle, style.outlineWidth])(getComputedStyle(document.activeElement))"
    assert nb.eval(ring) == ["solid", "2px"]
    nb.page.keyboard.press("Enter")
    nb.wait(f"{IN_WINDOW}('.wb-keys')")
    expect(nb.page.locator(".wb-keys")).to_contain_text("Ctrl+Enter")
    nb.page.keyboard.press("Enter")
    BenchPage(nb.page).view("Runs")
    nb.page.keyboard.press("?")
    nb.wait(f"{IN_WINDOW}('.wb-keys')")
    nb.page.keyboard.press("?")
    expect(nb.page.locator(".wb-keys")).to_be_hidden()
    nb.page.locator(".wb-runs").wait_for()
    assert nb.page.evaluate(TOP, ".wb-bench") == head, "the head stays where the pointer is"
    BenchPage(nb.page).view("Work")
    nb.wait("document.activeElement.closest('.wb-bench')")
    nb.page.locator(".wb-past [data-do=fork]").last.click()  # far below
    nb.wait(f"{IN_WINDOW}('.wb-bench .wb-question') && {IN_WINDOW}('.wb-decision .wb-primary:enabled')")
    nb.restart_kernel()
    nb.wait("document.querySelector('.wb-bench').dataset.dead?.startsWith('Run this cell')")
    assert not nb.eval("document.querySelectorAll('.wb-bench button:enabled').length")


KEYS = ("a", "m", "d", "d", "x", "b", "y", "Shift+Enter")
FOCUSABLE = "button, input, select, textarea, summary, [tabindex], [contenteditable=true]"
EVERY_KIND = """
import ipywidgets as w
from workbench.views.markup import Picture
from workbench.widgets.panel import Pick, Root

rows = "".join(f'<div role="option" data-key="{key}" aria-selected="false">{key}</div>' for key in ("one", "two"))
folded = "<details><summary>more</summary>x</details>"
markup = f'<div role="listbox">{rows}</div><button data-do="open">open</button>{folded}'
pressed = []
button = w.Button(description="press")
button.on_click(lambda _: pressed.append(1))
going = w.Button(description="going").add_class("wb-going")
going.on_click(lambda _: setattr(going.layout, "display", "none"))
Root([
    Pick(Picture(markup)), button, going, w.Text(), w.Textarea(), w.IntText(), w.FloatText(),
    w.Dropdown(options=["a", "m"]), w.Select(options=["a", "m"]), w.TagsInput(value=["a"]),
    w.ToggleButton(description="on"), w.ToggleButtons(options=["a", "m"]),
    w.Checkbox(), w.RadioButtons(options=["a", "m"]), w.IntSlider(),
    w.Accordion([w.Text()], titles=["fold"]), w.Tab([w.Text()], titles=["tab"]),
])
"""


def cells(nb):
    return [(cell["cell_type"], cell["source"], cell.get("execution_count")) for cell in nb.cells()]


def press_all(nb, keys=KEYS, controls=None):
    """Press the keys on every control in sight, where cells and bench must stay; gives what kinds there were."""
    controls = controls or nb.page.locator(".wb-root").locator(FOCUSABLE)
    before, kinds = cells(nb), []
    for index in range(controls.count()):
        control = controls.nth(index)
        if not control.is_visible():
            continue
        control.focus()
        kind = control.evaluate("e => `${e.tagName} ${e.type ?? ''} ${e.getAttribute('role') ?? ''}`.trim()")
        for key in keys:
            nb.page.keyboard.press(key)
        nb.kernel("None")  # what a key had begun is done
        assert cells(nb) == before, f"a key of {keys} on {kind} changed the notebook"
        assert nb.page.locator(".wb-root").is_visible(), f"a key of {keys} on {kind} took the bench away"
        kinds.append(kind)
    return kinds


def test_no_key_of_the_bench_reaches_the_notebook(notebook):
    nb = notebook(["1", EVERY_KIND])
    nb.run_all()
    nb.wait("document.querySelectorAll('.wb-root [role=tab]').length > 0")
    kinds = press_all(nb)
    assert {kind.split()[0] for kind in kinds} >= {"BUTTON", "INPUT", "SELECT", "TEXTAREA", "SUMMARY", "DIV"}, kinds
    assert nb.kernel("len(pressed)") == 1, "Enter still presses a button"


@pytest.mark.full
def test_a_control_that_goes_away_leaves_no_key_to_the_notebook(notebook):
    nb = notebook(["1", EVERY_KIND])
    nb.run_all()
    before = cells(nb)
    going = nb.page.locator(".wb-going")
    going.click()
    going.wait_for(state="hidden")
    for key in KEYS:
        nb.page.keyboard.press(key)
    nb.kernel("None")
    assert cells(nb) == before


def test_no_key_of_a_paused_bench_reaches_the_notebook(notebook, workspace):
    asked = 'run = wb.ask("List films directed by Ang Lee", kb="film", review={"plan"}); wb.bench(run)'
    nb = notebook(["from workbench import Workbench", 'wb = Workbench.open("workspace")', asked])
    nb.run_all()
    nb.wait("document.querySelectorAll('.wb-root [role=option]').length > 0")
    press_all(nb, KEYS[:-1])
    assert nb.kernel("run.status") == "paused"
