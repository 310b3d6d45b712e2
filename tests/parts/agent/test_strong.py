"""Hand-written replies of a strong model (``experiments/strong.py``): by a plan and by tools each answer is right."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.strong import DATA, TAPE, Strong, measured, ways

TELLING = [entry for n, entry in enumerate(TAPE) if n in (1, 2, 3, 9, 11, 15)]
"""A list, a count, a name in another language, two hops in two passes in both languages, and what is not said."""


@pytest.fixture(scope="module")
def strong(shared_wb: Any) -> Any:
    shared_wb.add_knowledge("notes", [DATA / "strong" / "notes"])
    shared_wb.add_knowledge("musique", [DATA / "strong" / "musique.jsonl"])
    return shared_wb


@pytest.mark.parametrize("entry", TELLING, ids=[entry["question"][:30] for entry in TELLING])
@pytest.mark.parametrize("way", ["plan", "agent"])
def test_each_answer_is_right_unmarked_and_cheap(strong: Any, entry: Any, way: str) -> None:
    row = measured(strong, entry, ways(Strong())[way])
    passes = len(entry["passes"])
    assert row["right"] and not row["marked"], row["answer"]
    assert row["calls"] <= passes + (3 if way == "plan" else 2), "a pass, or a turn, each; the last word; the checker"
    assert row["tokens"] < 3_000 * passes + 3_000
