"""Evidence on the bench: sorted, labelled, struck out in a fork; a name found in the graph around it."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.bench_page import OPEN, QUESTION, BenchPage


def test_evidence_is_sorted_labelled_and_struck_out(notebook, workspace):
    nb = notebook([OPEN, f'run = wb.ask({QUESTION!r}, kb="film", session="e"); wb.bench(run)'])
    nb.run_all()
    nb.default_window()
    bench, rows = BenchPage(nb.page), nb.page.locator(".wb-region-evidence .wb-piece")
    first = rows.first.get_attribute("data-title")
    nb.page.get_by_label("Sort", exact=True).select_option("title")
    nb.wait("""(all => all.length > 9 && all.every((title, at) => !at || all[at - 1].localeCompare(title) <= 0))(
        [...document.querySelectorAll('.wb-region-evidence .wb-piece')].map(row => row.dataset.title))""")
    nb.page.get_by_label("Sort", exact=True).select_option("place")
    nb.wait(f"document.querySelector('.wb-piece').dataset.title === {first!r}")
    rows.first.click()
    rows.first.locator("summary").click()  # opens the table, and does not close the row
    expect(rows.first.get_by_role("row", name="same words (BM25)")).to_be_visible()
    bench.press("✓ Relevant")
    expect(nb.page.get_by_role("button", name="✓ Relevant")).to_have_attribute("aria-pressed", "true")
    assert nb.kernel("[(v['good'], 'piece' in v['labels']) for v in wb.feedback(run=run.run_id)]") == [(True, True)]
    bench.press("Strike out")
    expect(nb.page.locator(".wb-facts")).to_contain_text("forked from")
    expect(nb.page.locator(".wb-piece", has_text="struck out by a person")).to_have_count(1)
    expect(nb.page.locator(".wb-piece").first).not_to_have_attribute("data-title", first)
    bench.view("Knowledge graph")
    nb.page.get_by_label("Find a name or a kind").fill("ang lee")
    expect(nb.page.locator(".wb-entity:not(.wb-off)")).to_have_count(1)
