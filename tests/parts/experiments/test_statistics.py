"""Differences between configurations, and what is claimed of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from workbench.parts.experiments import statistics
from workbench.parts.experiments.statistics import (
    detectable,
    differences,
    error_of_look,
    interval,
    live_differences,
    permutation_p,
)


def scores(values: list[float]) -> dict[str, float]:
    return {str(number): value for number, value in enumerate(values)}


def test_a_clear_difference_is_claimed_and_none_is_where_nothing_differs() -> None:
    base = scores([0.0] * 30 + [1.0] * 30)
    better = differences({"a": base, "b": scores([1.0] * 60)}, "a", 5)["b"]
    assert better.decision.startswith("better by at least 3") and better.mean == 50
    assert differences({"a": scores([1.0] * 400), "b": scores([1.0] * 400)}, "a", 5)["b"].decision == (
        "no difference of more than 5"
    )
    assert differences({"a": base, "b": dict(base)}, "a", 5)["b"].decision.startswith("not decided")


def test_as_many_more_questions_as_are_said_decide() -> None:
    def decision(n: int) -> str:
        return differences({"a": scores([0.5] * n), "b": scores([1.0, 0.1] * (n // 2))}, "a", 5)["b"].decision

    assert decision(100) == "not decided, about 215 more questions would" and decision(330).startswith("better")


def test_only_questions_that_both_finished_are_compared() -> None:
    result = differences({"a": {"1": 1.0, "2": 0.0}, "b": {"2": 1.0, "3": 1.0}}, "a", 5)["b"]
    assert (result.n, result.mean) == (1, 100)
    assert "no question was finished by both" in differences({"a": {}, "b": {"1": 1.0}}, "a", 5)["b"].decision


def test_questions_of_one_cluster_count_as_one() -> None:
    base, other = scores([0.0] * 20), scores([1.0] * 20)
    alone = differences({"a": base, "b": other}, "a", 5)["b"]
    together = differences({"a": base, "b": other}, "a", 5, dict.fromkeys(base, "one conversation"))["b"]
    assert alone.p < 0.001 < together.p and together.decision.startswith("not decided")


def test_more_questions_and_fewer_comparisons_show_smaller_differences() -> None:
    assert detectable(400, 1) < detectable(100, 1) < detectable(100, 10)


def drawn(sets: int) -> Iterator[np.ndarray]:
    """Differences of so many data sets: of 5 to 60 questions, with few and many ties."""
    random = np.random.default_rng(1)
    for number in range(sets):
        n, ties = (5, 9, 20, 60)[number % 4], (0.2, 0.8)[number // 4 % 2]
        yield np.where(random.random(n) < ties, 0.0, random.choice([-1.0, -0.5, 0.5, 1.0, 1.0], n))


def test_evalstats_says_the_same_of_200_data_sets() -> None:
    paired = pytest.importorskip("evalstats.core.paired", reason="evalstats is not installed; it needs matplotlib")
    for values in (values for values in drawn(200) if values.any()):
        table, random = np.array([values, np.zeros(len(values))]), np.random.default_rng(6)
        theirs = paired.pairwise_differences(table, 0, 1, method="permutation", n_bootstrap=4_999, rng=random)
        assert permutation_p(np.c_[values, np.ones(len(values))]) == pytest.approx(theirs.p_value, abs=0.035), values
        ours, ends = np.array(interval(values, np.ones(len(values)), 0.95)), [theirs.ci_low, theirs.ci_high]
        assert ours == pytest.approx(100 * np.array(ends), abs=200 / len(values) + 1), values


def test_few_questions_are_decided_by_the_permutation_test_alone() -> None:
    few = differences({"a": scores([0.0] * 30), "b": scores([1.0] * 30)}, "a", 5)["b"]
    assert few.decision == "better" and few.low == 100
    alike = differences({"a": scores([1.0] * 30), "b": scores([1.0] * 30)}, "a", 20)["b"]
    assert alike.decision.startswith("not decided")


def test_all_looks_together_spend_the_error() -> None:
    spent = sum(map(error_of_look, range(10_000))) + statistics.ERROR * statistics.LIVE
    assert spent == pytest.approx(statistics.ERROR, abs=1e-6)


def test_a_large_difference_is_seen_while_it_runs() -> None:
    base, other = scores([0.0] * 80), scores([1.0, 1.0, 1.0, 0.0] * 20)
    apart = live_differences({"a": base, "b": other}, "a", 5)["b"]
    assert apart.decision.startswith("better by at least") and 0 < apart.low < 75 < apart.high
    assert live_differences({"a": base, "b": {}}, "a", 5)["b"].decision.startswith("not decided")
