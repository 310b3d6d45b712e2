"""The bench in the window that people have: a laptop's, JupyterLab's file browser open, in both themes."""

from __future__ import annotations

from tests.browser.lab import PANEL

QUESTION = "When was The Wedding Banquet released, and who directed it?"
OPEN = 'from workbench import Workbench\nwb = Workbench.open("workspace")'
# The least contrast of a control's words with what is behind them, as WCAG 2 has it.
CONTRAST = """control => {
  const numbers = colour => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const over = ([r, g, b, a], [x, y, z]) => [[r, x], [g, y], [b, z]].map(([c, d]) => (c * a + d * (255 - a)) / 255);
  const linear = c => c / 255 <= .03928 ? c / 255 / 12.92 : ((c / 255 + .055) / 1.055) ** 2.4;
  const light = colour => colour.map(linear).reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const behind = node => node ? over(numbers(getComputedStyle(node).backgroundColor), behind(node.parentElement))
    : [255, 255, 255];
  const contrast = node => {
    const under = behind(node), [a, b] = [over(numbers(getComputedStyle(node).color), under), under].map(light);
    return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  };
  const words = [...control.querySelectorAll(':not(svg, svg *)')].filter(node => node.checkVisibility()
    && [...node.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.data.trim()));
  return Math.min(...[control, ...words].map(contrast));
}"""


def test_a_citation_brings_its_evidence_into_view(notebook, workspace):
    run = f'run = wb.ask({QUESTION!r}, kb="film", session="cite"); wb.bench(run)'
    nb = notebook([OPEN, run])
    nb.run_all()
    nb.default_window()
    nb.page.locator(".wb-cite:visible").first.click()
    marked = nb.page.locator(".wb-piece[aria-selected=true] mark").last
    marked.wait_for()
    nb.wait("""(() => { const box = document.querySelector('.wb-piece mark').getBoundingClientRect();
        return box.top >= 0 && box.bottom <= innerHeight; })()""")
    assert "1993" in marked.inner_text()
    link = nb.page.locator(".wb-piece[aria-selected=true] a")
    assert link.get_attribute("href").startswith("https://") and "noopener" in link.get_attribute("rel")


def test_after_run_all_no_view_asks_for_what_is_decided(notebook, workspace):
    ask = f'run = wb.ask({QUESTION!r}, kb="film", review={{"plan", "reflect"}}, session="moved")'
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
    nb.page.get_by_label("Question", exact=True).fill(QUESTION)
    nb.page.keyboard.press("Control+Enter")
    for asks in ("run this plan", "evidence"):
        nb.wait(f"document.querySelector('.wb-decision .wb-band')?.innerText.includes({asks!r})")
        nb.wait(f"{IN_WINDOW}('.wb-decision .wb-primary:enabled')")
        nb.wait("document.activeElement.closest('.wb-dock')")  # where the last button went
        nb.page.keyboard.press("Control+Enter")
    nb.page.locator(".wb-answer").wait_for()
    nb.wait(f"{IN_WINDOW}('.wb-answer p')")
    nb.wait("document.activeElement.closest('.wb-bench')")
    nb.page.locator(".wb-past [data-do=fork]").last.click()  # far below
    nb.wait(f"{IN_WINDOW}('.wb-bench .wb-question') && {IN_WINDOW}('.wb-decision .wb-primary:enabled')")
    nb.restart_kernel()
    nb.wait("document.querySelector('.wb-bench').dataset.dead?.startsWith('Run this cell')")
    assert not nb.eval("document.querySelectorAll('.wb-bench button:enabled').length")
