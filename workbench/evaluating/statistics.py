"""Numbers over questions: the usual measures by ir-measures, and how sure they are by resampling; in percent.

``R@k``: gold documents in the top k / gold documents. ``all@k``: 1 where all of them are. ``MRR``, ``nDCG@10`` as
trec_eval has them. Intervals are 95 % percentile intervals over resampled questions; two lines of a table are compared
on the same questions (paired), after Sakai, SIGIR 2006, and the differences of one table hold together with 95 %
(Bonferroni). Where all questions are alike, and resampling shows nothing, the interval is that of a share: Wilson's,
and of a difference what none in so many questions leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.errors import MissingExtra
from workbench.evaluating.rankings import Row, groups

Scores = dict[str, dict[str, float]]
"""Measure -> question id -> 0 to 1."""
Progress = Callable[[str, int, int], None]
"""``progress(name, done, total)``."""

_SAMPLES = 5_000
_SEED = 7
_AT_ONCE = 100
_WRONG = 0.05


def scores_of(gold: Mapping[str, Sequence[str]], rankings: Mapping[str, Sequence[str]], cuts: Sequence[int]) -> Scores:
    """Score each question's ranking.

    >>> found = scores_of({"q": ["a", "b"]}, {"q": ["a", "x", "b"]}, [2, 5])
    >>> {name: round(values["q"], 3) for name, values in found.items()}
    {'R@2': 0.5, 'all@2': 0.0, 'R@5': 1.0, 'all@5': 1.0, 'MRR': 1.0, 'nDCG@10': 0.92}

    Raises:
        MissingExtra: ir-measures is not installed.
    """
    try:
        import ir_measures
    except ImportError:
        raise MissingExtra("Measuring rankings", "eval") from None
    metrics = {ir_measures.R @ k: f"R@{k}" for k in cuts} | {ir_measures.RR: "MRR", ir_measures.nDCG @ 10: "nDCG@10"}
    scores: Scores = {name: dict.fromkeys(gold, 0.0) for name in measures(cuts)}
    relevant = {question: dict.fromkeys(documents, 1) for question, documents in gold.items()}
    run = {question: {d: -float(n) for n, d in enumerate(rankings[question])} for question in gold}
    for metric in ir_measures.iter_calc(list(metrics), relevant, run):
        scores[metrics[metric.measure]][metric.query_id] = metric.value
    for k in cuts:
        scores[f"all@{k}"] = {question: float(value >= 1) for question, value in scores[f"R@{k}"].items()}
    return scores


def measures(cuts: Sequence[int]) -> list[str]:
    """List the names of the measures of a ranking."""
    return [*(name for k in cuts for name in (f"R@{k}", f"all@{k}")), "MRR", "nDCG@10"]


def means(scores: Scores, questions: Sequence[str]) -> dict[str, float]:
    """Average every measure over these questions, in percent."""
    return {name: percent(np.mean([values[q] for q in questions])) for name, values in scores.items()}


def percent(share: float | np.floating) -> float:
    """Return a share in percent, to two places.

    >>> percent(0.98765)
    98.77
    """
    return round(100 * float(share), 2)


def scipy_stats() -> Any:
    """Import ``scipy.stats``.

    Raises:
        MissingExtra: scipy is not installed.
    """
    try:
        from scipy import stats
    except ImportError:
        raise MissingExtra("Measuring", "eval") from None
    return stats


def wilson(right: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share: sound for few questions, and for none or all of them right."""
    if not total:
        return 0.0, 1.0
    interval = scipy_stats().binomtest(right, total).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


class Bootstrap:
    """The same resampled questions for everything that is compared.

    Args:
        questions: their ids.
        family: how many comparisons a table has.
        clusters: of each question what it was drawn with, such as its conversation: whole clusters are resampled, since
            questions of one are alike. With a single cluster questions are resampled, as they are without.
    """

    def __init__(self, questions: Sequence[str], family: int = 1, clusters: Mapping[str, str] | None = None):
        self._questions, self._wrong = list(questions), _WRONG / max(1, family)
        names = [(clusters or {}).get(question, "") for question in questions]
        self.clustered = len(set(names)) > 1
        self._cluster = np.unique(names if self.clustered else self._questions, return_inverse=True)[1]
        self._sizes = np.bincount(self._cluster)

    def interval(self, scores: Scores) -> dict[str, list[float]]:
        """Return ``[low, high]`` of every measure."""
        return {name: self._interval(self._row(values)) for name, values in scores.items()}

    def compare(self, scores: Scores, against: Scores) -> dict[str, dict[str, Any]]:
        """Compare every measure: the difference, its interval, ``p`` and ``least``.

        ``p``: how often resampling turns its sign, twice, times the comparisons of the table. ``least``: the smallest
        difference that so many questions could show.
        """
        compared = {}
        for name, values in scores.items():
            apart = self._row(values) - self._row(against[name])
            drawn = self._resampled(apart)
            turned = min((drawn <= 0).mean(), (drawn >= 0).mean())
            low, high = _ends(drawn, self._wrong)
            if not apart.any():  # none in so many differs: exact
                high = percent(1 - (self._wrong / 2) ** (1 / len(apart)))
                low = -high
            compared[name] = {
                "difference": percent(apart.mean()),
                "low": low,
                "high": high,
                "p": round(min(1.0, 2 * float(turned) * _WRONG / self._wrong), 4),
                "least": round((high - low) / 2, 2),
            }
        return compared

    def _interval(self, row: np.ndarray) -> list[float]:
        if row.min() == row.max() and row[0] in (0, 1):
            return [percent(end) for end in wilson(int(row.sum()), len(row))]
        return _ends(self._resampled(row), _WRONG)

    def _row(self, values: Mapping[str, float]) -> np.ndarray:
        return np.array([values[question] for question in self._questions])

    def _resampled(self, row: np.ndarray) -> np.ndarray:
        """Return the mean of every sample."""
        if row.min() == row.max():
            return row[:1]
        sums = np.bincount(self._cluster, row)
        sample = {"n_resamples": _SAMPLES, "batch": _AT_ONCE, "paired": True, "method": "percentile"}
        rng = np.random.default_rng(_SEED)
        return scipy_stats().bootstrap((sums, self._sizes), _ratio, rng=rng, **sample).bootstrap_distribution


def _ratio(sums: np.ndarray, sizes: np.ndarray, axis: int = -1) -> np.ndarray:
    return sums.sum(axis=axis) / sizes.sum(axis=axis)


def _ends(drawn: np.ndarray, wrong: float) -> list[float]:
    return [percent(end) for end in np.quantile(drawn, [wrong / 2, 1 - wrong / 2])]


def compare(
    unit: str,
    rows: Sequence[Row],
    scores: Mapping[str, Scores],
    *,
    others: Sequence[str] | None = None,
    clusters: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return a table: a line for each ``unit``, and the paired differences to the first one.

    Args:
        unit: ``tool``, ``way`` or ``method``.
        rows: the questions.
        scores: by the name of the line.
        others: which lines are compared with the first one; None for all.
        clusters: as ``Bootstrap`` takes them.
    """
    ids, (first, *rest) = [row["id"] for row in rows], scores
    others = rest if others is None else others
    bootstrap = Bootstrap(ids, len(others), clusters)
    kinds = groups(rows)
    lines = {
        name: {
            **means(of, ids),
            "by": {
                field: {value: {"questions": len(part), **means(of, part)} for value, part in values.items()}
                for field, values in kinds.items()
            },
            "ci": bootstrap.interval(of),
        }
        for name, of in scores.items()
    }
    paired = [{unit: n, "against": first, **bootstrap.compare(scores[n], scores[first])} for n in others]
    return {f"{unit}s": lines, "paired": paired}


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return milliseconds: the median, and what one call in twenty exceeds.

    >>> spread([0.002, 0.001, 0.003])
    {'p50': 2.0, 'p95': 2.9}
    """
    p50, p95 = np.quantile(np.array(seconds) * 1000, [0.5, 0.95])
    return {"p50": round(float(p50), 2), "p95": round(float(p95), 2)}


def table_text(table: Mapping[str, Any], unit: str, names: Sequence[str]) -> str:
    """Return the table of ``compare`` for people, with what differs for sure from the first line."""
    lines = table[f"{unit}s"]
    cells = {name: {n: _cell(line, n) for n in names if n in line} | line.get("ms", {}) for name, line in lines.items()}
    text = [frame_text(cells)]
    failed = {name: line for name, line in lines.items() if "failed" in line}
    text += [f"{name}: {line['failed']} failed: {line['failures'][0]}" for name, line in failed.items()]
    for pair in table["paired"]:
        sure = [f"{n} {difference_text(pair[n])}" for n in names if n in pair and _is_sure(pair[n])]
        least = next((f"no difference shown ({n} by {pair[n]['least']} would be)" for n in names if n in pair), "")
        text.append(f"{pair[unit]} against {pair['against']}: {'; '.join(sure) or least}")
    return "\n".join(text)


def frame_text(rows: Mapping[str, Mapping[str, object]]) -> str:
    """Return rows of named cells as a text table."""
    import pandas

    return pandas.DataFrame.from_dict(dict(rows), orient="index").astype(object).fillna("").to_string()


def difference_text(pair: Mapping[str, float]) -> str:
    """Return a difference with its interval."""
    return f"{pair['difference']:+.1f} [{pair['low']:+.1f}, {pair['high']:+.1f}]"


def _cell(line: Mapping[str, Any], name: str) -> str:
    low, high = line["ci"][name]
    return f"{line[name]:.1f} [{low:.0f}, {high:.0f}]"


def _is_sure(pair: Mapping[str, float]) -> bool:
    return pair["low"] > 0 or pair["high"] < 0
