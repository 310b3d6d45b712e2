"""The bench in the window that people have: a laptop's, JupyterLab's file browser open, in both themes."""

from __future__ import annotations

import pytest

QUESTION = "When was The Wedding Banquet released, and who directed it?"
# The contrast of a button's words with what is behind them, as WCAG 2 has it.
CONTRAST = """button => {
  const numbers = colour => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = c => c / 255 <= .03928 ? c / 255 / 12.92 : ((c / 255 + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map(linear).reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  let behind = button;
  while (behind && numbers(getComputedStyle(behind).backgroundColor)[3] < 255) behind = behind.parentElement;
  const colours = [getComputedStyle(button).color, getComputedStyle(behind ?? document.body).backgroundColor];
  const [a, b] = colours.map(numbers).map(light);
  return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
}"""
READABLE, DIMMED = 4.5, 3.0


def kinds(page):
    """One button of each kind that is to be seen: its classes and states make its kind."""
    found = {}
    for button in page.locator(".wb-root button:visible").all():
        kind = button.evaluate("b => [b.className, b.disabled, b.getAttribute('aria-pressed')].join(' | ')")
        found.setdefault(kind, button)
    return found


def unreadable(page):
    """What cannot be read: the kind of a button, in which state, and its contrast."""
    for kind, button in kinds(page).items():
        enabled = button.is_enabled()
        states = {"rest": None}
        if enabled:
            states |= {"hover": button.hover, "pressed": page.mouse.down, "focus": button.focus}
        for name, bring in states.items():
            if bring:
                bring()
            ratio = button.evaluate(CONTRAST)
            if ratio < (READABLE if enabled else DIMMED):
                yield f"{name}: {kind}: {ratio:.2f}"
        if enabled:
            page.mouse.move(2, 2)
            page.mouse.up()


@pytest.mark.slow
def test_every_button_can_be_read_in_every_state(notebook, workspace):
    run = f'run = wb.ask({QUESTION!r}, kb="film", review={{"reflect"}}, session="read"); wb.bench(run)'
    nb = notebook(["from workbench import Workbench", 'wb = Workbench.open("workspace")', run])
    nb.run_all()
    nb.default_window()
    nb.wait("document.querySelector('.wb-band')?.checkVisibility()")
    poor = []
    for dark in (False, True):
        nb.theme(dark=dark)
        poor += [f"{'dark' if dark else 'light'}, {said}" for said in unreadable(nb.page)]
    nb.page.locator("[data-do=new_question]:visible").click()
    nb.wait("document.querySelector('.wb-ask')?.checkVisibility()")
    poor += [f"asking, dark, {said}" for said in unreadable(nb.page)]
    nb.theme(dark=False)
    poor += [f"asking, light, {said}" for said in unreadable(nb.page)]
    assert not poor, "\n".join(poor)


def test_a_citation_brings_its_evidence_into_view(notebook, workspace):
    run = f'run = wb.ask({QUESTION!r}, kb="film", session="cite"); wb.bench(run)'
    nb = notebook(["from workbench import Workbench", 'wb = Workbench.open("workspace")', run])
    nb.run_all()
    nb.default_window()
    nb.page.locator(".wb-cite:visible").first.click()
    marked = nb.page.locator(".wb-piece[aria-selected=true] mark")
    marked.wait_for()
    nb.wait("""(() => { const box = document.querySelector('.wb-piece mark').getBoundingClientRect();
        return box.top >= 0 && box.bottom <= innerHeight; })()""")
    assert "1993" in marked.inner_text()
    link = nb.page.locator(".wb-piece[aria-selected=true] a")
    assert link.get_attribute("href").startswith("https://") and "noopener" in link.get_attribute("rel")
