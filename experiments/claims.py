"""Measure how often a configuration is called different from itself: ``python -m experiments.claims [--trials 300]``.

Scores of both sides are drawn from the same distribution, so every claim is false; at most 5 % of trials may have one.
Rows: yes-or-no scores, the same with many ties, rare successes, clusters of four equal questions, ten configurations
beside the baseline; looked at once, at 50 moments as more questions are finished, and watched while it runs. Then the
same with a real difference, for the power. Shares with their 95 % Wilson intervals; ``--out`` draws them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from workbench.parts.experiments import statistics
from workbench.parts.experiments.statistics import Difference, differences, error_of_look, live_differences

Draw = Callable[[np.random.Generator, int], np.ndarray]
Table = dict[str, dict[str, float]]
Share = tuple[float, float, float]
LOOKS = 50


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


def drawn(draw: Draw, n: int, others: int, ties: bool, lift: float, random: np.random.Generator) -> Table:
    """Return the scores of a baseline and of configurations that are like it, or better in a share of questions."""
    names = [str(number) for number in range(n)]
    base = draw(random, n)
    table = {"base": dict(zip(names, base.tolist(), strict=True))}
    for number in range(others):
        scores = draw(random, n)
        if ties:
            scores = tied(base, scores, random)
        if lift:
            scores = np.where(random.random(n) < lift, 1.0, scores)
        table[f"other {number}"] = dict(zip(names, scores.tolist(), strict=True))
    return table


def looks(way: str, table: Table, clusters: dict[str, str] | None) -> Iterator[dict[str, Difference]]:
    """Yield what somebody sees: once at the end, at moments each of which spends of the error, or while it runs."""
    names = list(table["base"])
    if way == "once":
        yield differences(table, "base", 5, clusters, error_of_look(0))
        return
    for number in range(LOOKS):
        ended = names[: len(names) * (number + 1) // LOOKS // 4 * 4]
        part = {name: {question: values[question] for question in ended} for name, values in table.items()}
        if way == "watched":
            yield live_differences(part, "base", 5, clusters)
        else:
            yield differences(part, "base", 5, clusters, error_of_look(number))


def claimed(seen: Iterator[dict[str, Difference]]) -> bool:
    """Return whether a difference is ever claimed."""
    return any(apart.decision.startswith(("better", "worse")) for results in seen for apart in results.values())


def share(
    way: str, draw: Draw, n: int, others: int, ties: bool, lift: float, trials: int
) -> tuple[float, float, float]:
    """Return the share of trials with a claim, and its interval."""
    random, count = np.random.default_rng(7), 0
    for _ in range(trials):
        table = drawn(draw, n, others, ties, lift, random)
        clusters = {name: str(int(name) // 4) for name in table["base"]} if draw is clustered else None
        count += claimed(looks(way, table, clusters))
    low, high = binomtest(count, trials).proportion_ci(method="wilson")
    return count / trials, low, high


def figure(rows: list[tuple[str, Share, Share]], path: Path) -> None:
    """Write the shares as a figure."""
    from plotly.graph_objects import Figure, Scatter

    traces = []
    for place, name in ((1, "no difference"), (2, "better in one of five")):
        shares = [row[place] for row in rows]
        bars = {"type": "data", "array": [h - s for s, _, h in shares], "arrayminus": [s - low for s, low, _ in shares]}
        names = [row[0] for row in rows]
        traces.append(Scatter(x=[s for s, _, _ in shares], y=names, error_x=bars, mode="markers", name=name))
    drawing = Figure(
        traces, {"height": 200 + 22 * len(rows), "xaxis": {"title": {"text": "share of trials with a claim"}}}
    )
    drawing.add_vline(x=statistics.ERROR, line_dash="dot")
    drawing.write_html(path, include_plotlyjs=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--ways", nargs="+", default=["once"], choices=["once", "looks", "watched"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[30, 100, 400])
    parser.add_argument("--samples", type=int, default=999, help="sign permutations: 999 do for a decision at 5 %%")
    parser.add_argument("--out", type=Path, help="draw the table into this HTML file")
    options = parser.parse_args()
    statistics.SAMPLES = options.samples
    rows = []
    print(f"{'scores':<34} {'claims with no difference':>28} {'better in one of five':>24}")
    for way in options.ways:
        for draw in (even, rare, graded, clustered):
            for n in options.sizes:
                for others, ties in ((1, False), (1, True), (10, False)):
                    name = f"{draw.__name__}, n {n}, {others} other{', ties' * ties}, {way}"
                    false, true = (share(way, draw, n, others, ties, lift, options.trials) for lift in (0.0, 0.2))
                    rows.append((name, false, true))
                    texts = [f"{100 * s:.1f} % [{100 * low:.1f}, {100 * high:.1f}]" for s, low, high in (false, true)]
                    print(f"{name:<34} {texts[0]:>28} {texts[1]:>24}", flush=True)
    if options.out:
        figure(rows, options.out)


if __name__ == "__main__":
    main()
