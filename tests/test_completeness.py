"""How likely it is that a needed passage is missing: read from the evidence, by meaning where that can be had."""

from __future__ import annotations

from typing import Any

import pytest

from tests.handmade import evidence as piece
from workbench import Workbench
from workbench.evaluating.statistics import auc_interval
from workbench.graphs.completeness import ALONE, LINKED, incomplete, linked, signals
from workbench.testing import MemoryKnowledge

QUESTION = "Where was the director of The Reef born?"
REEF = "The Reef is a film directed by Mara Velden."
BORN = "Mara Velden was born in Oslo."
ELSE = "Sheep graze on the hill all summer."


def result(text: str, score: float) -> dict[str, Any]:
    """A passage of that text."""
    made = piece(1, "", score)
    return {**made, "evidence": text, "metadata": {**made["metadata"], "doc_id": text}}


@pytest.fixture
def base() -> MemoryKnowledge:
    return MemoryKnowledge("notes", {"The Reef": REEF, "Mara Velden": BORN, "Sheep": ELSE})


def test_a_second_passage_that_says_the_rest_lowers_it(base) -> None:
    one, both = [result(REEF, 0.9), result(ELSE, 0.8)], [result(REEF, 0.9), result(BORN, 0.8)]
    less, more = (signals(QUESTION, evidence, base) for evidence in (one, both))
    assert less["added"] < more["added"] and less["said"] < more["said"] and less["unsaid"] > more["unsaid"]


def test_every_document_counts_once(base) -> None:
    part = result(REEF, 0.9)
    again = {**part, "source_id": "d1#1", "score": 0.8}
    seen = signals(QUESTION, [part, again, {**result(BORN, 0.1), "metadata": {"doc_id": "d2"}}], base)
    assert seen["second"] < -2


def test_nothing_found_is_likelier_incomplete(base) -> None:
    assert incomplete(QUESTION, [], base) >= incomplete(QUESTION, [result(REEF, 0.9)], base)
    assert 0 <= incomplete("", [], base) <= 1


def test_where_a_title_led_the_model_is_another() -> None:
    way = {**result(BORN, 0.5), "metadata": {"doc_id": "b", "chain": {"says": "", "steps": [{"by": "title"}]}}}
    phrase = {**way, "metadata": {"doc_id": "b", "chain": {"says": "", "steps": [{"by": "phrase"}]}}}
    assert linked([result(REEF, 0.9), way]) and not linked([result(REEF, 0.9), phrase]) and not linked([])


def test_every_weight_is_of_a_signal(base) -> None:
    assert list(LINKED.weights) == list(ALONE.weights) == list(signals(QUESTION, [], base))


def test_words_are_matched_by_meaning_where_the_base_can_tell(tmp_path) -> None:
    """And by their stems where it cannot."""
    corpus = tmp_path / "notes.jsonl"
    corpus.write_text('{"id": "a", "title": "Mara", "text": "Her husband sailed."}\n')
    for model, near in (("use", 0.5), ("hashing", 0.0)):
        with Workbench.open(tmp_path / model, embedding_model=model, names="rules") as wb:
            wb.add_knowledge("notes", [corpus])
            found = wb.knowledge.get("notes").matches("Whose spouse sails?", ["Her husband sailed.", "Cement.", ""])
            husband, cement, nothing = found.texts
            spouse = husband[len(husband) - 2]
            assert len(found.rarity) == len(husband) and all(0 <= r <= 1 for r in found.rarity)
            assert husband[-1] == pytest.approx(1.0, abs=0.5) and husband[-1] > max(cement[-1], nothing[-1])
            assert spouse >= near and not any(nothing)


def test_an_area_says_when_it_was_not_tested() -> None:
    assert auc_interval([0.2, 0.9], [False, False]) == {"auc": None, "low": None, "high": None}
    sure = auc_interval([0.1] * 20 + [0.9] * 20, [False] * 20 + [True] * 20)
    assert (sure["auc"], sure["low"], sure["high"]) == (1.0, 1.0, 1.0)
    chance = auc_interval([n % 2 for n in range(40)], [n % 4 < 2 for n in range(40)])
    assert chance["low"] < 0.5 < chance["high"]
