"""Names, roles and contrast on a bench, as Chromium's accessibility tree and axe-core have it."""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python

from tests.browser.bench_page import OPEN, QUESTION
from tests.browser.test_default_window import CONTRAST

CONTROLS = {"button", "textbox", "combobox", "searchbox", "checkbox", "radio", "link", "switch", "option"}
ASK = f'wb.ask({QUESTION!r}, kb="film", review={{review!r}}, session={{session!r}})'
BENCHES = [
    "plan = wb.bench(" + ASK.format(review=["plan"], session="a") + "); plan",
    "reflect = wb.bench(" + ASK.format(review=["reflect"], session="b") + "); reflect",
    "done = wb.bench(" + ASK.format(review=[], session="c") + "); done",
    'runs = wb.bench(session="d"); runs.view = "runs"; runs',
    "wb.inbox()",
]
# Words of at least 11 pixels that cannot be told from what is behind them, and smaller ones.
POOR = f"""root => {{
  const contrast = {CONTRAST};
  const words = [...root.querySelectorAll(':not(svg, svg *, style)')].filter(node => node.checkVisibility()
    && !node.closest(':disabled, [data-dead]') && [...node.childNodes].some(c => c.nodeType === 3 && c.data.trim()));
  const poor = words.filter(node => contrast(node) < 4.5 || parseFloat(getComputedStyle(node).fontSize) < 11);
  return [...new Set(poor.map(node => `${{node.tagName}}.${{node.className}} ${{node.textContent.slice(0, 40)}}`))];
}}"""


def faults_of_axe(page):
    """Serious faults by axe-core."""
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
