"""The measure of reports: a good report and a bad one, made by hand, get the figures that they are worth."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from experiments.score_reports import Scored, Written, judged, of_report, paragraphs, tables, told

GOLD = {
    "topic": "The recorder: power and water",
    "gold": ["power", "board", "leak"],
    "facts": [
        {"text": "Rev A draws 46 mW while it records", "doc": "power"},
        {"text": "The recorder runs for 116 days", "doc": "board"},
        {"text": "The seal of the lid is sound", "doc": "leak", "also": "盖子的密封圈完好"},
    ],
}
TEXTS = {
    "power": "Rev A draws 46 mW while it records, so three D cells last for 48 days.",
    "board": "Rev B draws 19 mW while recording. The recorder runs for 116 days with three D cells.",
    "leak": "The seal of the lid is sound. The water came in through the vent of the microphone.",
}
GOOD = """# The recorder

Rev A draws 46 mW while it records [1].

## Introduction

This report draws on three sources.

## 1. Power

Rev B draws 19 mW while recording [2]. It runs for 116 days with three D cells [2].

| board | mW |
| --- | --- |
| A | 99 |

## 2. Water

- The water came in through the vent of the microphone [3].

## References

[1] power, read in 1999.

[2] board

[3] leak

## Appendix

### How it was checked

Nothing stands here without a source but this.
"""
BAD = """# The recorder

It draws 64 mW while it records [1]. Rev A draws 46 mW while it records [3].

Everybody in Norway likes it. Gulls sit on it (without a source).

Everybody in Norway likes it.

The seal of the lid is not sound [3]. The water came in through the vent of the microphone [9].

## References

[1] power

[3] leak

[7] nothing
"""


def pieces(*names: str) -> dict[int, Any]:
    return {
        n: {
            "result_id": f"low_level:{name}#0",
            "source_id": f"{name}#0",
            "source_type": "chunk",
            "evidence": TEXTS[name],
            "metadata": {"doc_id": name, "title": name},
        }
        for n, name in enumerate(names, 1)
    }


def written(text: str, listed: list[int]) -> Written:
    return Written(text, pieces(*TEXTS), listed, frozenset(["power", "leak"]))


def test_a_good_report_is_worth_what_it_is():
    found = judged(GOLD, written(GOOD, [1, 2, 3]), None)
    assert found["resolve"] == found["precision"] == found["recall"] == found["used"] == 1.0
    assert found["bare"] == found["marked"] == found["repeated"] == found["pronouns"] == 0
    assert found["found"] == pytest.approx(2 / 3)
    assert found["facts"] == pytest.approx(2 / 3)  # nothing on the seal
    assert found["words"] == 9 + 6 + 6 + 9 + 10


def test_a_bad_report_is_found_out():
    found = judged(GOLD, written(BAD, [1, 3, 7]), None)
    assert found["resolve"] == pytest.approx(2 / 4)  # 7 has no passage, 9 has no reference either
    assert (found["bare"], found["marked"], found["repeated"]) == (2, 1, 1)
    assert found["precision"] == found["recall"] == 0.0  # number, other document, negation, mark of nothing
    assert found["used"] == pytest.approx(2 / 3)
    assert found["facts"] == pytest.approx(1 / 3)  # that the seal is not sound says the contrary
    assert found["pronouns"] == pytest.approx(1 / 7)


def test_a_mark_beside_one_that_supports_counts_against_precision_alone():
    found = judged(GOLD, written("Rev A draws 46 mW while it records [1][3].", [1, 3]), None)
    assert (found["precision"], found["recall"]) == (0.5, 1.0)


def test_titles_with_their_marks_state_nothing():
    only = judged(GOLD, written("- **Water**: leak [3], power [1]", [1, 3]), None)
    assert (only["precision"], only["recall"], only["resolve"]) == (None, None, 1.0)
    more = judged(GOLD, written("- **Water**: leak [3], a tin box of the sea [1]", [1, 3]), None)
    assert (more["precision"], more["recall"]) == (0.0, 0.0)


def test_a_fact_stands_in_neighbours_that_cite_its_document_in_either_language():
    def facts(text: str) -> float | None:
        return judged(GOLD, written(text, [1, 2, 3]), None)["facts"]

    assert facts("The recorder has three cells. It runs for 116 days [2].") == pytest.approx(1 / 3)
    assert facts("The recorder has three cells. It runs for 116 days [1].") == 0.0
    assert facts("盖子的密封圈完好 [3]。") == pytest.approx(1 / 3)


def test_a_sentence_on_the_report_must_name_nothing_new():
    def bare(text: str) -> float | None:
        return judged(GOLD, written(text, []), None)["bare"]

    assert bare("本报告依据三份资料写成。") == bare("This report has 4 sections.") == 0
    assert bare("Nothing was found on: Power.") == 0 and bare("Nothing was found on Ada Lovelace.") == 1
    assert bare("This report shows that Ada Lovelace was right.") == 1
    assert bare("盖子是坏的。") == 1 and bare("盖子是坏的（未注明出处）。") == 0


def test_a_body_in_chinese_ends_where_its_references_begin():
    text = "# 录音器\n\n甲版耗电\n46 毫瓦 [1]。\n\n```\n代码 [2]\n```\n\n## 参考文献\n\n[1] 甲\n\n乙\n\n## 附录\n\n丙"
    assert paragraphs(text) == ["甲版耗电 46 毫瓦 [1]。"]


def test_a_report_is_read_from_its_run_by_the_ids_of_pieces():
    citations = [{"n": n, "result_id": f"low_level:{name}#0"} for n, name in enumerate(["power", "gone", "leak"], 1)]
    told_all = {
        "report": {
            "final_report": "Rev A draws 46 mW [1].",
            "references": "[1] *power*, passage 1\n[2] gone\n[3] board",
        },
        "report_context": {"citations": citations},
    }
    run = SimpleNamespace(
        evidence=list(pieces("power", "leak").values()), report=SimpleNamespace(to_dict=lambda: told_all)
    )
    read = of_report(run)
    assert list(read.sources) == [1] and read.listed == [1, 2, 3]
    assert judged(GOLD, read, None)["resolve"] == pytest.approx(1 / 3)


def test_means_have_intervals_over_topics_and_leave_out_what_cannot_be_measured():
    assert told({"a": 1.0, "b": None}, share=True).startswith("100.0% [")
    assert told({"a": None}, share=True) == "-"
    assert told({"a": 2.0, "b": 4.0}, share=False) == "6: 3.0 [2.0, 4.0]"
    worth = judged(GOLD, written(GOOD, [1, 2, 3]), None)
    table = tables(
        [Scored({"corpus": "lab", "lang": "en"}, worth, worth), Scored({"corpus": "lab", "lang": "zh"}, worth, worth)]
    )
    assert "| citation precision | 100.0% [34, 100] | 100.0% [34, 100] |" in table and "| report | topics |" in table
