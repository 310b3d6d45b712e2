"""Measure how often a configuration is called different from itself: ``python -m experiments.claims [--trials 300]``.

Scores of both sides are drawn from the same distribution, so every claim is false; at most 5 % of trials may have one.
Rows: yes-or-no scores, the same with many ties, rare successes, clusters of four equal questions, ten configurations
beside the baseline. Then the same with a real difference, for the power. Shares with their 95 % Wilson intervals.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy.stats import binomtest

from workbench.parts.experiments import statistics
from workbench.parts.experiments.statistics import differences

Draw = Callable[[np.random.Generator, int], np.ndarray]


def even(random: np.random.Generator, n: int) -> np.ndarray:
    """Draw yes or no, half and half."""
    return random.integers(0, 2, n).astype(float)


def rare(random: np.random.Generator, n: int) -> np.ndarray:
    """Draw yes once in twenty."""
    return (random.random(n) < 0.05).astype(float)


def graded(random: np.random.Generator, n: int) -> np.ndarray:
    """Draw a share that is skewed towards 1."""
    return random.beta(5, 1, n)


def clustered(random: np.random.Generator, n: int) -> np.ndarray:
    """Draw the same for each four questions."""
    return np.repeat(even(random, -(-n // 4)), 4)[:n]


def tied(base: np.ndarray, other: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return the other scores, equal to the first ones in nine of ten questions."""
    return np.where(random.random(len(base)) < 0.9, base, other)


def claimed(draw: Draw, n: int, others: int, ties: bool, lift: float, random: np.random.Generator) -> bool:
    """Return whether one trial claims a difference."""
    names = [str(number) for number in range(n)]
    base = draw(random, n)
    table = {"base": dict(zip(names, base, strict=True))}
    for number in range(others):
        scores = draw(random, n)
        if ties:
            scores = tied(base, scores, random)
        if lift:
            scores = np.where(random.random(n) < lift, 1.0, scores)
        table[f"other {number}"] = dict(zip(names, scores, strict=True))
    clusters = {name: str(int(name) // 4) for name in names} if draw is clustered else None
    return any(
        found.decision.startswith(("better", "worse")) for found in differences(table, "base", 5, clusters).values()
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300)
    trials = parser.parse_args().trials
    statistics.SAMPLES = 999  # enough for a decision at 5 %, and five times as fast
    print(f"{'scores':<10} {'n':>4} {'others':>6} {'ties':>5} {'claims with no difference':>28} {'with +20 %':>20}")
    for draw in (even, rare, graded, clustered):
        for n in (30, 100, 400):
            for others, ties in ((1, False), (1, True), (10, False)):
                shares = []
                for lift in (0.0, 0.2):
                    random = np.random.default_rng(7)
                    count = sum(claimed(draw, n, others, ties, lift, random) for _ in range(trials))
                    low, high = binomtest(count, trials).proportion_ci(method="wilson")
                    shares.append(f"{100 * count / trials:.1f} % [{100 * low:.1f}, {100 * high:.1f}]")
                print(f"{draw.__name__:<10} {n:>4} {others:>6} {ties!s:>5} {shares[0]:>28} {shares[1]:>20}", flush=True)


if __name__ == "__main__":
    main()
