"""Scores as probabilities: monotone by construction."""

from __future__ import annotations

import pytest

from workbench.tools.scoring import MODELS, Logistic, probability


@pytest.mark.parametrize("tool", list(MODELS))
def test_more_of_a_signal_never_lowers_a_probability(tool):
    for name in MODELS[tool].weights:
        scores = [probability(tool, {name: value / 4}) for value in range(5)]
        assert scores == sorted(scores), name
        assert all(0 < score < 1 for score in scores)


@pytest.mark.parametrize("tool", ["keyword_search", "naive_search", "local_search", "hybrid_search"])
def test_nothing_in_common_is_improbable_and_everything_is_probable(tool):
    nothing = {"bm25": 1.0, "reranked": 1.0, "lead": 0.3}
    everything = dict.fromkeys(MODELS[tool].weights, 1.0)
    assert probability(tool, nothing) < 0.4 < 0.9 < probability(tool, everything)


def test_probabilities_have_six_digits_and_no_overflow():
    assert Logistic(1e9, {})({}) == pytest.approx(1) and Logistic(-1e9, {})({}) == pytest.approx(0)
    assert probability("hybrid_search", {"covered": 0.3333333333}) == round(
        probability("hybrid_search", {"covered": 1 / 3}), 6
    )
