"""Figures over questions, in percent: the usual measures of rankings, intervals by resampling, and their table.

``R@k``: gold documents in the top k / gold documents. ``all@k``: 1 where all of them are. ``MRR``, ``nDCG@10`` as
trec_eval has them. Intervals are 95 % percentile intervals over resampled questions; two lines of a table are compared
on the same questions (paired), after Sakai, SIGIR 2006, and the differences of one table hold together with 95 %
(Bonferroni). Where all questions are alike resampling shows nothing, and the interval is that of a share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy import stats

from workbench.errors import needing
from workbench.parts.evaluate.questions import Row, groups
from workbench.state import Data, Json, drop

Scores = Mapping[str, Mapping[str, float]]
"""Measure -> question id -> 0 to 1."""
"""``progress(name, done, total)``."""

_CONFIDENCE = 0.95


def score_rankings(
    gold: Mapping[str, Sequence[str]], rankings: Mapping[str, Sequence[str]], cuts: Sequence[int]
) -> Scores:
    """Score each question's ranking.

    >>> scores = score_rankings({"q": ["a", "b"]}, {"q": ["a", "x", "b"]}, [2, 5])
    >>> {name: round(values["q"], 3) for name, values in scores.items()}
    {'R@2': 0.5, 'all@2': 0.0, 'R@5': 1.0, 'all@5': 1.0, 'MRR': 1.0, 'nDCG@10': 0.92}

    Raises:
        MissingExtra: ir-measures is not installed.
    """
    with needing("Measuring rankings", "eval"):
        import ir_measures
    names = [name for k in cuts for name in (f"R@{k}", f"all@{k}")]
    scores = {name: dict.fromkeys(gold, 0.0) for name in [*names, "MRR", "nDCG@10"]}
    metrics = {ir_measures.R @ k: f"R@{k}" for k in cuts} | {
        ir_measures.RR: "MRR",
        ir_measures.nDCG @ 10: "nDCG@10",
    }
    relevant = {question: dict.fromkeys(documents, 1) for question, documents in gold.items()}
    run = {
        question: {d: -float(n) for n, d in enumerate(rankings[question])} for question in gold
    }
    for metric in ir_measures.iter_calc(list(metrics), relevant, run):
        scores[metrics[metric.measure]][metric.query_id] = metric.value
    for k in cuts:
        scores[f"all@{k}"] = {
            question: float(value >= 1) for question, value in scores[f"R@{k}"].items()
        }
    return scores


def means(scores: Scores, questions: Sequence[str]) -> dict[str, float]:
    """Average every measure over these questions, in percent."""
    return {
        name: percent(np.mean([values[q] for q in questions])) for name, values in scores.items()
    }


def percent(share: float | np.floating) -> float:
    """Return a share in percent, to two places.

    >>> percent(0.98765)
    98.77
    """
    return round(100 * float(share), 2)


def share_interval(count: int, total: int) -> list[float]:
    """Return the 95 % interval of a share in percent: sound for few questions, and for none or all of them (Wilson)."""
    interval = stats.binomtest(count, total).proportion_ci(_CONFIDENCE, method="wilson")
    return [percent(interval.low), percent(interval.high)]


def mean_interval(
    values: Mapping[str, float], clusters: Mapping[str, str] | None = None
) -> list[float]:
    """Return the 95 % interval of a mean over questions, in percent.

    Args:
        values: by question, 0 to 1.
        clusters: of each question what it was drawn with, such as its conversation: whole clusters are resampled, since
            questions of one are alike. With a single cluster questions are resampled.
    """
    numbers = list(values.values())
    if set(numbers) in ({0.0}, {1.0}):
        return share_interval(int(sum(numbers)), len(numbers))
    return _resampled(values, clusters, _CONFIDENCE)


def difference(
    values: Mapping[str, float],
    against: Mapping[str, float],
    comparisons: int,
    clusters: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Return the mean difference on the same questions with its interval, in percent.

    Args:
        values: by question, 0 to 1.
        against: what it is compared with.
        comparisons: how many differences have to hold together.
        clusters: as ``mean_interval`` takes them.
    """
    confidence = 1 - (1 - _CONFIDENCE) / max(1, comparisons)
    apart = {question: value - against[question] for question, value in values.items()}
    low, high = _resampled(apart, clusters, confidence)
    return {"difference": percent(np.mean(list(apart.values()))), "low": low, "high": high}


def _resampled(
    values: Mapping[str, float], clusters: Mapping[str, str] | None, level: float
) -> list[float]:
    numbers = np.array(list(values.values()))
    if numbers.any() and numbers.min() == numbers.max():
        return [percent(numbers[0])] * 2
    names = [(clusters or {}).get(question, "") for question in values]
    groups = np.unique(names if len(set(names)) > 1 else list(values), return_inverse=True)[1]
    ends = interval(np.bincount(groups, numbers), np.bincount(groups), level)
    return [round(end, 2) for end in ends]


def interval(sums: np.ndarray, sizes: np.ndarray, level: float) -> tuple[float, float]:
    """Return a bootstrap interval of a mean, in percent, with clusters drawn as a size."""
    # none of so many differs: that leaves open how many would among more
    if len(sums) < 2 or not sums.any():
        test = stats.binomtest(0, max(1, int(sizes.sum())))
        bound = 100 * float(test.proportion_ci(level).high)
        return -bound, bound
    drawn = stats.bootstrap(
        (sums, sizes),
        lambda sums, sizes, axis=-1: sums.sum(axis=axis) / sizes.sum(axis=axis),
        paired=True,
        method="percentile",
        confidence_level=level,
        n_resamples=4_999,
        batch=100,
        rng=7,
    )
    low, high = drawn.confidence_interval
    return 100 * float(low), 100 * float(high)


def compare(
    unit: str,
    rows: Sequence[Row],
    scores: Mapping[str, Scores],
    *,
    others: Sequence[str] | None = None,
    clusters: Mapping[str, str] | None = None,
) -> Json:
    """Return a section of a table: a line for each ``unit``, and the paired differences to the first one.

    Args:
        unit: ``tool``, ``way`` or ``method``.
        rows: the questions.
        scores: by the name of the line.
        others: which lines are compared with the first one; None for all.
        clusters: as ``mean_interval`` takes them.
    """
    ids, (first, *rest) = [row["id"] for row in rows], scores
    others = rest if others is None else others
    kinds = groups(rows)
    lines = {
        name: {
            **means(by_measure, ids),
            "by": {
                field: {
                    value: {"questions": len(part), **means(by_measure, part)}
                    for value, part in values.items()
                }
                for field, values in kinds.items()
            },
            "ci": {
                measure: mean_interval(values, clusters) for measure, values in by_measure.items()
            },
        }
        for name, by_measure in scores.items()
    }
    paired = [
        {
            unit: name,
            "against": first,
            **{
                measure: difference(values, scores[first][measure], len(others), clusters)
                for measure, values in scores[name].items()
                if measure in scores[first]
            },
        }
        for name in others
    ]
    return {"unit": unit, f"{unit}s": lines, "paired": paired}


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median, and what one call in twenty exceeds.

    >>> milliseconds([0.002, 0.001, 0.003])
    {'p50': 2.0, 'p95': 2.9}
    """
    p50, p95 = np.quantile(np.array(seconds) * 1000, [0.5, 0.95])
    return {"p50": round(float(p50), 2), "p95": round(float(p95), 2)}


class Rows(Json):
    """An evaluation: JSON when it is saved, a text table when it is printed.

    ``set``, ``questions``, and what ``compare`` returns; or several of these by name.
    """

    def __str__(self) -> str:
        parts = [f"{self['set']}: {self['questions']} questions, in percent"]
        sections = (
            {"": self}
            if "unit" in self
            else {n: v for n, v in self.items() if isinstance(v, dict) and "unit" in v}
        )
        for name, section in sections.items():
            parts += [f"\nby {name}"] if name else []
            parts += _section_text(section)
        parts += [
            f"  {row['id']} {row['question']} -> {'; '.join(row['wrong'])}"
            for row in self.get("rows", ())
            if row["wrong"]
        ]
        return "\n".join(parts)


def _section_text(section: Data) -> Iterator[str]:
    """Yield the measures with their intervals, the rest, the differences, and the first line by group."""
    import pandas

    unit = section["unit"]
    lines = section[f"{unit}s"]
    yield _frame_text(
        {name: {m: _cell(line, m) for m in line["ci"]} for name, line in lines.items()}
    )
    rest = {name: drop(line, "by", *line["ci"], "ci") for name, line in lines.items()}
    frame = pandas.json_normalize(list(rest.values()), sep=" ").set_axis(list(rest))
    flat = frame.loc[:, ~frame.map(lambda value: isinstance(value, list)).any()]
    if flat.columns.size:
        yield "\n" + flat.astype(object).fillna("").to_string()
    yield from (
        f"{name}: {line['failures'][0]}" for name, line in lines.items() if line.get("failures")
    )
    for pair in section["paired"]:
        sure = [
            f"{m} {d['difference']:+.1f} [{d['low']:+.1f}, {d['high']:+.1f}]"
            for m, d in pair.items()
            if isinstance(d, dict) and d["low"] * d["high"] > 0
        ]
        yield f"{pair[unit]} against {pair['against']}: {'; '.join(sure) or 'no difference shown'}"
    first = next(iter(lines))
    for field, kinds in lines[first]["by"].items():
        yield f"\n{first} by {field}\n{_frame_text(kinds)}"


def _frame_text(rows: Mapping[str, Mapping[str, object]]) -> str:
    import pandas

    return (
        pandas.DataFrame.from_dict(dict(rows), orient="index")
        .astype(object)
        .fillna("")
        .to_string()
    )


def _cell(line: Data, name: str) -> str:
    low, high = line["ci"][name]
    return f"{line[name]:.1f} [{low:.0f}, {high:.0f}]"
