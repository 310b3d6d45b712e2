"""JupyterLab takes no key from the bench: with focus on any control, the cells stay and the bench stays."""

from __future__ import annotations

import pytest

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
