"""What people read of a run: in both languages, in every status, and whatever a document or a model wrote."""

import pytest

from tests import handmade
from tests.test_hostile import read
from workbench.records.document import run_document
from workbench.records.timeline import bars
from workbench.views.outline import run_html, run_text

STATIC_TAGS = {
    "div", "p", "strong", "code", "a", "br", "details", "summary", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip


def show(form, **changes):
    return form(run_document(handmade.run(**changes)))


def test_a_page_says_everything_that_was_done():
    page = show(run_html)
    for piece in [
        "对比《喜宴》和《饮食男女》的风格",
        "7f3a",
        "✓ 完成",
        "《喜宴》于 1993 年上映 [1]。",
        "The Wedding Banquet",
    ]:
        assert piece in page
    for piece in ["CC BY-SA 4.0", "https://en.wikipedia.org/wiki/1", "step_2_compare", "饮食男女 家庭 传统", "批准"]:
        assert piece in page
    assert 'lang="zh-Hans"' in page
    assert read(page).tags == STATIC_TAGS


@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_keeps_to_its_width_and_chinese_counts_double(width):
    from rich.cells import cell_len

    assert max(cell_len(line) for line in show(lambda d: run_text(d, width)).splitlines()) <= width


def test_a_megabyte_is_cut_and_said_so():
    page = show(run_html, answer="a" * 1_000_000)
    assert len(page) < 70_000
    assert "… +950000" in page


def test_waiting_is_folded_and_charged_to_nobody():
    found = bars(handmade.log(), handmade.records(), handmade.run().decisions)
    waits = [bar for bar in found if bar.kind == "waiting"]
    assert [round(bar.duration_ms) for bar in waits] == [42_035]
    assert waits[0].end_ms - waits[0].start_ms < 200
    unanswered = bars(handmade.log(), handmade.records())
    assert [bar.kind for bar in unanswered if bar.kind in ("waiting", "stopped")] == ["stopped"]
    assert bars([], []) == []
