"""Two configurations on the same questions: a difference, how sure it is, and a decision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
SAMPLES = 4_999
_SEED = 7


class Difference(NamedTuple):
    """A configuration against the baseline, in percent points.

    Attributes:
        n: questions that both finished.
        mean: the mean difference.
        low, high: its interval, after Holm over the family.
        p: of a paired permutation test, after Holm.
        decision: the sentence it ends with.
    """

    n: int
    mean: float
    low: float
    high: float
    p: float
    decision: str


def differences(
    scores: Mapping[str, Mapping[str, float]],
    baseline: str,
    smallest: float,
    clusters: Mapping[str, str] | None = None,
) -> dict[str, Difference]:
    """Compare configurations with the baseline, on the questions that both finished.

    A difference is claimed where the paired permutation test rejects equality after Holm's correction over all
    comparisons; its size is a bootstrap interval at the corrected level. Questions of one cluster stay together.

    Args:
        scores: by configuration and question, 0 to 1.
        baseline: the configuration that the others are compared with.
        smallest: percent points that would matter.
        clusters: of each question, what it was drawn with; None for questions that are independent.
    """
    apart = {
        name: _apart(values, scores[baseline], clusters or {}) for name, values in scores.items() if name != baseline
    }
    tests = {name: permutation_p(values) for name, values in apart.items()}
    corrected, levels = holm(tests)
    return {
        name: _difference(len(_shared(scores[name], scores[baseline])), values, corrected[name], levels[name], smallest)
        for name, values in apart.items()
    }


def _shared(values: Mapping[str, float], against: Mapping[str, float]) -> list[str]:
    return [question for question in values if question in against]


def _apart(values: Mapping[str, float], against: Mapping[str, float], clusters: Mapping[str, str]) -> np.ndarray:
    """Return a row for each cluster: the sum of its differences, and its questions."""
    sums: dict[str, list[float]] = {}
    for question in _shared(values, against):
        sums.setdefault(clusters.get(question, question), []).append(values[question] - against[question])
    return np.array([[sum(group), len(group)] for group in sums.values()], dtype=float).reshape(-1, 2)


def permutation_p(apart: np.ndarray) -> float:
    """Return the p-value of the mean difference under permuted signs; 1 for one cluster, or where nothing differs."""
    sums = apart[:, 0]
    if len(sums) < 2 or not sums.any():
        return 1.0
    test = stats.permutation_test(
        (sums,), np.sum, permutation_type="samples", vectorized=True, n_resamples=SAMPLES,
        rng=np.random.default_rng(_SEED),
    )  # fmt: skip
    return float(test.pvalue)


def holm(tests: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Return p-values after Holm's step-down correction, and the confidence level that goes with each.

    >>> corrected, levels = holm({"a": 0.01, "b": 0.04})
    >>> corrected, {name: round(level, 3) for name, level in levels.items()}
    ({'a': 0.02, 'b': 0.04}, {'a': 0.975, 'b': 0.95})
    """
    corrected, levels, highest = dict[str, float](), dict[str, float](), 0.0
    for place, name in enumerate(sorted(tests, key=lambda name: tests[name])):
        left = len(tests) - place
        highest = max(highest, min(1.0, tests[name] * left))
        corrected[name], levels[name] = highest, 1 - (1 - CONFIDENCE) / left
    return corrected, levels


def _difference(n: int, apart: np.ndarray, p: float, level: float, smallest: float) -> Difference:
    if not n:
        return Difference(0, math.nan, math.nan, math.nan, 1.0, "not decided: no question was finished by both")
    sums, sizes = apart[:, 0], apart[:, 1]
    mean = 100 * sums.sum() / sizes.sum()
    low, high = _interval(sums, sizes, level)
    if p <= 1 - CONFIDENCE:
        better = "better" if mean > 0 else "worse"
        edge = max(0.0, low if mean > 0 else -high)
        decision = f"{better} by at least {edge:.1f}" if edge >= 0.05 else better
    elif -smallest < low and high < smallest:
        decision = f"no difference of more than {smallest:g}"
    else:
        decision = f"not decided, about {more_questions(sums, sizes, level, smallest)} more questions would"
    return Difference(n, round(mean, 2), round(low, 2), round(high, 2), round(p, 4), decision)


def _interval(sums: np.ndarray, sizes: np.ndarray, level: float) -> tuple[float, float]:
    if len(sums) < 2 or not sums.any():  # none of so many differs: that leaves open how many would among more
        bound = 100 * float(stats.binomtest(0, max(1, int(sizes.sum()))).proportion_ci(level).high)
        return -bound, bound
    drawn = np.random.default_rng(_SEED).integers(0, len(sums), (SAMPLES, len(sums)))
    means = 100 * sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def more_questions(sums: np.ndarray, sizes: np.ndarray, level: float, smallest: float) -> int:
    """Return about how many more questions would make the interval as narrow as the smallest difference."""
    if not sums.any():
        needed = math.log((1 - level) / 2) / math.log(1 - smallest / 100)
    else:
        spread = 100 * float(np.std(sums / sizes, ddof=1)) if len(sums) > 1 else 50.0
        needed = (stats.norm.ppf((1 + level) / 2) * spread / smallest) ** 2
    return max(1, math.ceil(needed - sizes.sum()))


def detectable(n: int, comparisons: int, spread: float = 40.0) -> float:
    """Return the smallest difference, in points, that so many questions show with power .8.

    Args:
        n: questions.
        comparisons: configurations compared with the baseline.
        spread: standard deviation of the differences of questions, in points.
    """
    alpha = (1 - CONFIDENCE) / max(1, comparisons)
    return float((stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(0.8)) * spread / math.sqrt(max(1, n)))


def flips(values: Mapping[str, float], against: Mapping[str, float]) -> Sequence[tuple[str, float]]:
    """Return the questions that turned, with the difference: losses first, then gains."""
    turned = [(question, values[question] - against[question]) for question in _shared(values, against)]
    return sorted(((question, change) for question, change in turned if change), key=lambda pair: pair[1])
