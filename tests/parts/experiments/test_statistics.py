"""Differences between configurations, and what is claimed of them."""

from __future__ import annotations

from workbench.parts.experiments.statistics import detectable, differences, flips


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


def test_only_questions_that_both_finished_are_compared() -> None:
    result = differences({"a": {"1": 1.0, "2": 0.0}, "b": {"2": 1.0, "3": 1.0}}, "a", 5)["b"]
    assert (result.n, result.mean) == (1, 100)
    assert "no question was finished by both" in differences({"a": {}, "b": {"1": 1.0}}, "a", 5)["b"].decision


def test_questions_of_one_cluster_count_as_one() -> None:
    base, other = scores([0.0] * 20), scores([1.0] * 20)
    alone = differences({"a": base, "b": other}, "a", 5)["b"]
    together = differences({"a": base, "b": other}, "a", 5, dict.fromkeys(base, "one conversation"))["b"]
    assert alone.p < 0.001 < together.p and together.decision.startswith("not decided")


def test_flips_and_what_so_many_questions_show() -> None:
    assert list(flips({"a": 0.0, "b": 1.0, "c": 1.0}, {"a": 1.0, "b": 0.0, "c": 1.0})) == [("a", -1.0), ("b", 1.0)]
    assert detectable(400, 1) < detectable(100, 1) < detectable(100, 10)
