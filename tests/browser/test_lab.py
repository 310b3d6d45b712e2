"""The harness itself: a click reaches the kernel and comes back, and what must not happen is seen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

ROWS = """
from workbench.views.markup import Picture, el
from workbench.widgets.panel import Pick
rows = lambda *said: Picture(rows={str(n): el("p", one, data_key=str(n), cls="wb-row") for n, one in enumerate(said)})
pick = Pick(rows("one", "two"))
pick
"""


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
