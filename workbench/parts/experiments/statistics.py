"""Two configurations on the same questions: a difference, how sure it is, and a decision."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log, nan, sqrt
from typing import NamedTuple

import numpy as np
from pandas import DataFrame, Series
from scipy import stats
from scipy.optimize import brentq

from workbench.parts.evaluate.measures import interval

ERROR = 0.05
"""How often a difference may be claimed where there is none, over all comparisons and looks of an experiment."""
FIRST_LOOK, LIVE = 0.8, 0.1
"""Shares of ``ERROR``: of the first look at finished results, and of all looks while it runs."""
SAMPLES = 4_999
FEWEST = 50
"""Questions, or clusters of them, from which on a bootstrap interval may decide something."""


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


Scores = Mapping[str, Mapping[str, float] | Series]


def differences(
    scores: Scores,
    baseline: str,
    smallest: float,
    clusters: Mapping[str, str] | None = None,
    error: float = ERROR,
) -> dict[str, Difference]:
    """Compare configurations with the baseline, on the questions that both finished.

    A difference is claimed where the paired permutation test rejects equality after Holm's correction over all
    comparisons; its size is a bootstrap interval at the corrected level. Questions of one cluster stay together.

    Args:
        scores: by configuration and question, 0 to 1.
        baseline: the configuration that the others are compared with.
        smallest: percent points that would matter.
        clusters: of each question, what it was drawn with; None for questions that are independent.
        error: how often any difference may be claimed where there is none.
    """
    apart = {
        name: _apart(scores, name, baseline, clusters) for name in scores if name != baseline
    }
    corrected, levels = holm(
        {name: permutation_p(values) for name, values in apart.items()}, error
    )
    return {
        name: _difference(values, corrected[name], levels[name], smallest, error)
        for name, values in apart.items()
    }


def live_differences(
    scores: Scores, baseline: str, smallest: float, clusters: Mapping[str, str] | None = None
) -> dict[str, Difference]:
    """Compare while questions still come in: what is claimed holds at whatever moment one looks.

    The interval is what a betting e-process over the clusters has not excluded, and ``p`` is one over the largest
    evidence so far. Scores have the order in which questions are asked, without gaps. The share ``LIVE`` of the
    error is divided evenly over the comparisons; the rest is as in ``differences``.
    """
    names = [name for name in scores if name != baseline]
    results = {}
    family = len(names)
    for name in names:
        apart = _apart(scores, name, baseline, clusters)
        means = apart[:, 0] / apart[:, 1]
        p = min(1.0, family / float(evidence(means).max(initial=1.0)))
        low, high = (100 * edge for edge in confidence_sequence(means, ERROR * LIVE / family))
        mean = 100 * float(means.mean()) if len(means) else nan
        decision = "not decided: it still runs"
        if p <= ERROR * LIVE:
            decision = _claim(mean, max(low, -high))
        elif -smallest < low and high < smallest:
            decision = f"no difference of more than {smallest:g}"
        results[name] = _rounded(apart, mean, low, high, p, decision)
    return results


def evidence(values: np.ndarray, mean: float = 0.0) -> np.ndarray:
    """Return the wealth, after each value, of a person who bets against this mean of values between -1 and 1.

    Several fixed bets in both directions share the capital. Where the mean is right, wealth passes 1 / a at any time
    with a probability of at most a (Ville; Waudby-Smith and Ramdas 2024).
    """
    # Parts of the capital; below a half none can be lost whatever mean is bet against.
    bets = np.array([-0.45, -0.2, -0.1, -0.05, 0.05, 0.1, 0.2, 0.45])
    return np.exp(np.cumsum(np.log1p(np.outer(values - mean, bets)), axis=0)).mean(axis=1)


def confidence_sequence(values: np.ndarray, error: float) -> tuple[float, float]:
    """Return the lowest and highest mean that the bets do not exclude: an interval that holds whenever one looks."""

    def excess(mean: float) -> float:  # convex in the mean, and below 0 at that of the values
        return log(evidence(values, mean)[-1] * error)

    if not len(values):
        return -1.0, 1.0
    middle = float(values.mean())
    low, high = (
        edge if excess(edge) < 0 else float(brentq(excess, middle, edge)) for edge in (-1.0, 1.0)
    )
    return low, high


def error_of_look(number: int) -> float:
    """Return what of the error the look at finished results of this number, from 0 on, may spend.

    >>> [round(error_of_look(number), 4) for number in range(4)]
    [0.04, 0.0025, 0.0008, 0.0004]
    """
    later = ERROR * (1 - FIRST_LOOK - LIVE)
    return ERROR * FIRST_LOOK if number == 0 else later / (number * (number + 1))


def _apart(
    scores: Scores, name: str, baseline: str, clusters: Mapping[str, str] | None
) -> np.ndarray:
    """Return a row for each cluster: the sum of its differences, and its questions."""
    table = DataFrame({side: scores[side] for side in (name, baseline)}, dtype=float).dropna()
    apart = table[name] - table[baseline]
    groups = apart.groupby(
        [(clusters or {}).get(question, question) for question in apart.index], sort=False
    )
    return np.asarray(groups.agg(["sum", "count"]), dtype=float)


def permutation_p(apart: np.ndarray) -> float:
    """Return the p-value of the mean difference under permuted signs; 1 for one cluster, or where nothing differs.

    Differences of zero change nothing and are left out.
    """
    sums = apart[apart[:, 0] != 0, 0]
    if len(apart) < 2 or len(sums) < 2:
        return 1.0
    test = stats.permutation_test(
        (sums,),
        lambda sums, axis: np.abs(sums.sum(axis)),
        permutation_type="samples",
        alternative="greater",
        n_resamples=SAMPLES,
        rng=7,
    )
    return float(test.pvalue)


def holm(tests: Mapping[str, float], error: float) -> tuple[Series, Series]:
    """Return p-values after Holm's step-down correction, and the confidence level that goes with each.

    >>> corrected, levels = holm({"a": 0.01, "b": 0.04}, error=0.05)
    >>> corrected.to_dict(), levels.round(3).to_dict()
    ({'a': 0.02, 'b': 0.04}, {'a': 0.975, 'b': 0.95})
    """
    ps = Series(tests, dtype=float).sort_values(kind="stable")
    left = np.arange(len(ps), 0, -1)
    return (ps * left).clip(upper=1).cummax(), 1 - error / Series(left, ps.index)


def _difference(
    apart: np.ndarray, p: float, level: float, smallest: float, error: float
) -> Difference:
    if not len(apart):
        return Difference(0, nan, nan, nan, 1.0, "not decided: no question was finished by both")
    sums, sizes = apart.T
    mean = 100 * float(sums.sum() / sizes.sum())
    low, high = interval(sums, sizes, level)
    if p <= error:
        nearest = low if mean > 0 else -high
        decision = _claim(mean, nearest if len(sums) >= FEWEST else 0.0)
    elif len(sums) >= FEWEST and -smallest < low and high < smallest:
        decision = f"no difference of more than {smallest:g}"
    else:
        decision = f"not decided, about {more_questions(sums, sizes, level, smallest)} more questions would"
    return _rounded(apart, mean, low, high, p, decision)


def _rounded(
    apart: np.ndarray, mean: float, low: float, high: float, p: float, decision: str
) -> Difference:
    return Difference(
        int(apart[:, 1].sum()),
        round(mean, 2),
        round(low, 2),
        round(high, 2),
        round(p, 4),
        decision,
    )


def _claim(mean: float, edge: float) -> str:
    better = "better" if mean > 0 else "worse"
    return f"{better} by at least {edge:.1f}" if edge >= 0.05 else better


def more_questions(sums: np.ndarray, sizes: np.ndarray, level: float, smallest: float) -> int:
    """Return about how many more would leave 0, or all from the smallest difference on, out of the interval."""
    if not sums.any():
        needed = -100 * log((1 - level) / 2) / smallest
    else:
        spread = 100 * float(np.std(sums / sizes, ddof=1)) if len(sums) > 1 else 50.0
        mean = abs(100 * float(sums.sum() / sizes.sum()))
        needed = (stats.norm.ppf((1 + level) / 2) * spread / max(mean, smallest - mean)) ** 2
    return max(1, ceil(max(needed, FEWEST) - sizes.sum()))


def detectable(n: int, comparisons: int) -> float:
    """Return the smallest difference, in points, that so many questions show with power .8.

    Args:
        n: questions.
        comparisons: configurations compared with the baseline.
    """
    spread = 40.0  # standard deviation of the differences of questions, in points
    alpha = ERROR * FIRST_LOOK / max(1, comparisons)
    errors = stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(0.8)
    return float(errors) * spread / sqrt(max(1, n))
