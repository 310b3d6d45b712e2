"""The harness itself: a click reaches the kernel and comes back, and what must not happen is seen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

BUTTON = """
import ipywidgets
clicks = []
button = ipywidgets.Button(description="Press").add_class("wb-button")
button.on_click(lambda _: clicks.append(len(clicks)))
button
"""
COUNTER = """
import anywidget, traitlets
class Counter(anywidget.AnyWidget):
    _esm = '''
    function render({ model, el }) {
        const button = el.appendChild(document.createElement("button"));
        const draw = () => { button.textContent = "count " + model.get("count"); };
        button.onclick = () => { model.set("count", model.get("count") + 1); model.save_changes(); };
        model.on("change:count", draw);
        draw();
    }
    export default { render };
    '''
    count = traitlets.Int(0).tag(sync=True)
counter = Counter()
counter
"""


ROWS = """
from workbench.views.markup import Picture, el
from workbench.widgets.panel import Pick
rows = lambda *said: Picture(rows={str(n): el("p", one, data_key=str(n), cls="wb-row") for n, one in enumerate(said)})
pick = Pick(rows("one", "two"))
pick
"""


def test_clicks_reach_the_kernel_and_its_values_come_back(notebook):
    nb = notebook([BUTTON, COUNTER])
    nb.run_all()
    nb.page.locator(".wb-button").click()
    counter = nb.page.get_by_role("button", name="count")
    counter.click()
    expect(counter).to_have_text("count 1")
    assert nb.kernel("(clicks, counter.count)") == ([0], 1)
    nb.kernel("setattr(counter, 'count', 7)")
    expect(counter).to_have_text("count 7")
    nb.clean()


@pytest.mark.full
def test_rows_sent_alone_are_in_every_view_and_in_what_is_saved(notebook):
    nb = notebook([ROWS, "pick"])
    nb.run_cell(0)
    first = nb.page.locator(".jp-Cell >> nth=0 >> .wb-row")
    expect(first).to_have_text(["one", "two"])
    nb.kernel("pick.show(rows('one', 'three < four'))")
    expect(first).to_have_text(["one", "three < four"])
    nb.run_cell(1)
    second = nb.page.locator(".jp-Cell >> nth=1 >> .wb-row")
    expect(second).to_have_text(["one", "three < four"])
    nb.kernel("pick.show(rows('five', 'three < four'))")
    for view in (first, second):
        expect(view).to_have_text(["five", "three < four"])
    nb.keep_widget_state()
    state = nb.save()["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    (kept,) = [one["state"]["html"] for one in state.values() if "html" in one["state"]]
    assert "five" in kept and "three &lt; four" in kept and "one" not in kept
    nb.kernel("pick.show(rows('six'))")
    for view in (first, second):
        expect(view).to_have_text(["six"])
    nb.clean()


@pytest.mark.full
def test_restart_theme_width_reopen_and_save(notebook):
    nb = notebook([BUTTON, "here = 1\nhere"])
    nb.run_all()
    nb.resize(675)
    assert nb.page.locator(".jp-OutputArea-output").first.bounding_box()["width"] == pytest.approx(675, abs=1)
    nb.theme(dark=True)
    nb.theme(dark=False)
    nb.restart_kernel()
    assert not nb.kernel("'here' in globals()")
    nb.run_cell(1)
    assert [cell["execution_count"] for cell in nb.save()["cells"]][1] == 1
    nb.reopen()
    assert nb.kernel("here") == 1, "the kernel goes on when the page is loaded anew"
    assert nb.cells()[1]["outputs"][0]["data"]["text/plain"] == "1"


@pytest.mark.full
def test_a_failing_cell_fails_the_test(notebook):
    nb = notebook(["1 / 0"])
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        nb.run_all()


@pytest.mark.parametrize(
    ("javascript", "said"),
    [
        ("console.error('broken')", "broken"),
        ("void setTimeout(() => { throw new Error('thrown') })", "thrown"),
        ("fetch('http://elsewhere.example/x').catch(() => 0)", "elsewhere"),
        ("void new WebSocket('ws://elsewhere.example/socket')", "elsewhere"),
        ("document.body.appendChild(Object.assign(new Image(), {src: 'https://10.1.2.3/x.png'})) && 0", "10.1.2.3"),
        ("alert('boo')", "boo"),
    ],
)
def test_what_must_not_happen_is_seen(browser, javascript, said):
    browser.seen.forget()
    page = browser.context.new_page()
    page.evaluate(f"async () => {{ await ({javascript}) }}")
    page.wait_for_timeout(200)
    with pytest.raises(AssertionError, match=said):
        browser.seen.clean()
    page.close()
