"""Measure how often a configuration is called different from itself: ``python -m experiments.claims [--trials 10000]``.

Scores of both sides are drawn from the same distribution, so every claim is false; at most 5 % of trials may have one.
Rows: yes-or-no scores, the same with many ties, rare successes, shares, clusters of four equal questions, ten
configurations beside the baseline; looked at once, at 50 moments as more questions are finished, and watched while it
runs. Then the same with a real difference, for the power. Shares with their 95 % Wilson intervals; ``--out`` draws
them.

All trials of a row are tested together: ``claims`` says for a table of differences what ``differences`` and
``live_differences`` say trial by trial, and ``tests/parts/experiments/test_statistics.py`` holds the two to the same.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from workbench.parts.experiments import statistics
from workbench.parts.experiments.statistics import ERROR, LIVE, SAMPLES, error_of_look

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
Share = tuple[float, float, float]
WAYS = ("once", "looks", "watched")
LOOKS = 50
CLUSTER = 4
_AT_ONCE = 500
_EXACT = 12
"""Up to so many differences all signs are tried, as scipy does with ``SAMPLES`` draws."""


def even(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw yes or no, half and half."""
    return random.integers(0, 2, shape).astype(float)


def rare(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw yes once in twenty."""
    return (random.random(shape) < 0.05).astype(float)


def graded(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw a share that is skewed towards 1."""
    return random.beta(5, 1, shape)


def clustered(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw the same for each four questions."""
    *outer, n = shape
    return np.repeat(even(random, (*outer, -(-n // CLUSTER))), CLUSTER, axis=-1)[..., :n]


DRAWS = (even, rare, graded, clustered)


def apart(
    draw: Draw,
    n: int,
    others: int,
    ties: bool,
    lift: float,
    trials: int,
    random: np.random.Generator,
) -> np.ndarray:
    """Return the differences of each trial, configuration and question to a baseline that is like them, or is worse."""
    base = draw(random, (trials, 1, n))
    scores = draw(random, (trials, others, n))
    if ties:  # equal to the baseline in nine of ten questions
        scores = np.where(random.random(scores.shape) < 0.9, base, scores)
    if lift:
        scores = np.where(random.random(scores.shape) < lift, 1.0, scores)
    return scores - base


def in_clusters(values: np.ndarray, size: int) -> np.ndarray:
    """Return the sum of each ``size`` questions, the last ones of which may be fewer."""
    return np.add.reduceat(values, np.arange(0, values.shape[-1], size), axis=-1)


def permutation_ps(sums: np.ndarray) -> np.ndarray:
    """Return ``permutation_p`` of each row, with signs that are drawn once for all rows, in a tenth of the time."""
    flat = sums.reshape(-1, sums.shape[-1])
    # what is not 0 stands first
    first = np.take_along_axis(flat, np.argsort(flat == 0, axis=1, kind="stable"), axis=1)
    counts = (flat != 0).sum(axis=1)
    ps = np.ones(len(flat))
    widths = np.where(
        counts <= _EXACT, counts, 2.0 ** np.ceil(np.log2(np.maximum(counts, 1)))
    ).astype(int)
    for width in set(widths.tolist()) - {0}:
        rows = np.flatnonzero(widths == width)
        signs = _signs(width)
        padded = np.zeros((len(rows), width))
        padded[:, : first.shape[1]] = first[rows][:, :width]
        own = np.abs(padded.sum(axis=1)) * (1 - 1e-12)
        extreme = np.concatenate(
            [
                (
                    np.abs(signs @ padded[start : start + _AT_ONCE].T)
                    >= own[start : start + _AT_ONCE]
                ).sum(axis=0)
                for start in range(0, len(rows), _AT_ONCE)
            ]
        )
        ps[rows] = extreme / len(signs) if width <= _EXACT else (extreme + 1) / (len(signs) + 1)
    return ps.reshape(sums.shape[:-1])


@lru_cache(maxsize=16)
def _signs(n: int) -> np.ndarray:
    if n <= _EXACT:
        return np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    return np.random.default_rng(7).integers(0, 2, (SAMPLES, n)) * 2.0 - 1.0


def claims(way: str, values: np.ndarray, cluster: int = 1) -> np.ndarray:
    """Return of each trial whether any configuration is ever called better or worse.

    Args:
        way: ``once``, ``looks`` or ``watched``; ``scipy`` is once, by scipy itself, which takes 100 times as long.
        values: differences, by trial, configuration and question.
        cluster: questions that stay together.
    """
    trials, others, n = values.shape
    if way in ("once", "scipy"):
        sums = in_clusters(values, cluster)
        ps = (
            permutation_ps(sums)
            if way == "once"
            else np.array([[_scipy_p(row) for row in trial] for trial in sums])
        )
        return ps.min(axis=1) * others <= error_of_look(0)
    ended = [n * (number + 1) // LOOKS // CLUSTER * CLUSTER for number in range(LOOKS)]
    # the largest evidence so far only grows, so that the last look has seen it all
    if way == "watched":
        sums = in_clusters(values[..., : ended[-1]], cluster) / cluster
        return np.array([_watched(trial, others) for trial in sums])
    claimed = np.zeros(trials, dtype=bool)
    for number, count in enumerate(ended):
        # else no p is small enough
        if count >= 2 * cluster and others / (SAMPLES + 1) <= error_of_look(number):
            smallest = permutation_ps(in_clusters(values[..., :count], cluster)).min(axis=1)
            claimed |= smallest * others <= error_of_look(number)
    return claimed


def _scipy_p(sums: np.ndarray) -> float:
    return statistics.permutation_p(np.c_[sums, np.ones(len(sums))])


def _watched(trial: np.ndarray, others: int) -> bool:
    wealth = max(float(statistics.evidence(values).max(initial=1.0)) for values in trial)
    return others / wealth <= ERROR * LIVE


def share(
    way: str, draw: Draw, n: int, others: int, ties: bool, lift: float, trials: int
) -> Share:
    """Return the share of trials with a claim, and its interval."""
    random = np.random.default_rng(7)
    count = 0
    left = trials
    cluster = CLUSTER if draw is clustered else 1
    while left:  # a table of all trials would not fit
        part = min(left, _AT_ONCE)
        count += int(claims(way, apart(draw, n, others, ties, lift, part, random), cluster).sum())
        left -= part
    low, high = binomtest(count, trials).proportion_ci(method="wilson")
    return count / trials, low, high


def figure(rows: list[tuple[str, Share, Share]], path: Path) -> None:
    """Write the shares as a figure."""
    from plotly.graph_objects import Figure, Scatter

    traces = []
    for place, name in ((1, "no difference"), (2, "better in one of five")):
        shares = [row[place] for row in rows]
        bars = {
            "type": "data",
            "array": [h - s for s, _, h in shares],
            "arrayminus": [s - low for s, low, _ in shares],
        }
        names = [row[0] for row in rows]
        traces.append(
            Scatter(x=[s for s, _, _ in shares], y=names, error_x=bars, mode="markers", name=name)
        )
    drawing = Figure(
        traces,
        {
            "height": 200 + 22 * len(rows),
            "xaxis": {"title": {"text": "share of trials with a claim"}},
        },
    )
    drawing.add_vline(x=ERROR, line_dash="dot")
    drawing.write_html(path, include_plotlyjs=True)


def table(
    ways: list[str], sizes: list[int], counts: list[int], trials: int, power: int
) -> Iterator[tuple[str, Share, Share]]:
    """Yield a row for each kind of scores: its name, the share of false claims, and that of true ones."""
    for way in ways:
        for draw in DRAWS:
            for n in sizes:
                for others, ties in [
                    pair for pair in ((1, False), (1, True), (10, False)) if pair[0] in counts
                ]:
                    name = f"{draw.__name__} | {n} | {others}{', ties' * ties} | {way}"
                    yield (
                        name,
                        share(way, draw, n, others, ties, 0.0, trials),
                        share(way, draw, n, others, ties, 0.2, power),
                    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--power", type=int, default=1_000, help="trials with a real difference")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=[*WAYS, "scipy"])
    parser.add_argument("--others", nargs="+", type=int, default=[1, 10], choices=[1, 10])
    parser.add_argument("--sizes", nargs="+", type=int, default=[30, 50, 100, 200, 400])
    parser.add_argument("--out", type=Path, help="draw the table into this HTML file")
    options = parser.parse_args()
    print(
        "| scores | n | others | seen | claims with no difference, % | better in one of five, % |"
    )
    print("|---|--:|--:|---|--:|--:|", flush=True)
    rows = []
    for row in table(options.ways, options.sizes, options.others, options.trials, options.power):
        rows.append(row)
        texts = [f"{100 * s:.1f} [{100 * low:.1f}, {100 * high:.1f}]" for s, low, high in row[1:]]
        print(f"| {row[0]} | {texts[0]} | {texts[1]} |", flush=True)
    highest = max(rows, key=lambda row: row[1][0])
    allowed = ERROR + 1.645 * math.sqrt(ERROR * (1 - ERROR) / options.trials)
    print(
        f"\nMost false claims: {100 * highest[1][0]:.2f} % ({highest[0]}); 5 % within Monte Carlo error is up to",
        end="",
    )
    print(f" {100 * allowed:.2f} % at {options.trials:,} trials.")
    if options.out:
        figure(rows, options.out)


if __name__ == "__main__":
    main()
