"""The note in a corner of the window, on a page of its own: no notebook is needed for it."""

from __future__ import annotations

from pathlib import Path

from tests.browser.lab import Browser

PAGE = """
    <div class="jp-Cell"><div style="height: 10px"></div>
    <div class="wb-root"><div id="sheet"></div><div id="state"><span class="wb-status">running</span></div></div></div>
    <div style="height: 5000px"></div>
"""
RENDER = """async (code) => {
    const sheet = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
    const widget_manager = { get_model: async () => ({ get: () => "" }) };
    const model = { get: (name) => (name === "shared" ? "IPY_MODEL_shared" : "en"), widget_manager };
    sheet.default.render({ model, el: document.getElementById("sheet") });
}"""
SHOW = """([status, going]) => {
    const glyph = `<span class="${going ? "wb-going" : ""}"></span>`;
    document.getElementById("state").innerHTML = `<span class="wb-status">${glyph}${status}</span>`;
}"""
REMOVE = """setTimeout(() => {
    const root = document.querySelector(".wb-root");
    root.innerHTML = "";
    root.remove();
}, 0)"""


def test_what_waits_fails_or_ends_out_of_view_is_told_also_by_a_root_that_is_removed_at_once(
    browser: Browser, project: Path
) -> None:
    page = browser.context.new_page()
    page.set_content(PAGE)
    page.evaluate(RENDER, (project / "workbench" / "widgets" / "sheet.js").read_text(encoding="utf-8"))
    page.wait_for_timeout(200)
    told = []
    for status, going, place in [
        ("failed", False, 0), ("running", True, 3000), ("paused", False, 3000), ("running", True, 3000),
    ]:  # fmt: skip
        page.evaluate("(y) => scrollTo(0, y)", place)
        page.evaluate(SHOW, [status, going])
        page.wait_for_timeout(100)
        told.append(page.locator(".wb-toast").all_inner_texts())
    assert told == [[], [], ["paused"], ["paused"]]
    page.evaluate(SHOW, ["done", False])
    page.evaluate(REMOVE)
    page.locator(".wb-toast", has_text="done").click()
    page.wait_for_function("scrollY < 100")  # where it was
    page.close()
