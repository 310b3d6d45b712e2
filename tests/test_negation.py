"""Forty questions that say "not", in both languages over four corpora: none is answered as its opposite."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.score import negations
from tests.blind import BLIND, SETS
from tests.shelves import opened

FILMS = Path(__file__).resolve().parent.parent / "data" / "films.jsonl"


@pytest.mark.full
def test_no_question_that_says_not_is_answered_as_its_opposite(tmp_path):
    with opened(tmp_path) as wb:
        for name in SETS:
            if name == "films":
                wb.add_knowledge(name, [FILMS])
            else:
                wb.add_knowledge(name, [BLIND / name / "corpus"], vocabulary=BLIND / name / "vocabulary.toml")
        found = negations(wb)
    assert len(found) == 40 and [one["question"] for one in found if one["inverted"]] == []
    assert sum(one["whole"] for one in found) >= 30
