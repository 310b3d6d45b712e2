"""Numbers over questions: the usual measures by ir-measures, and how sure they are by the bootstrap.

``R@k``: gold documents in the top k / gold documents. ``all@k``: whether all of them are. ``MRR``, ``nDCG@10`` as
trec_eval has them. All in percent. Intervals are 95 % percentile intervals over resampled questions; two tools are
compared on the same resampled questions (paired), after Sakai, SIGIR 2006, and the differences of one table hold
together with 95 % (Bonferroni). Where all questions are alike, and resampling can show nothing, the interval is that of
a share: Wilson's, and of a difference what none in so many questions leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.errors import MissingExtra

if TYPE_CHECKING:
    import numpy as np


Scores = dict[str, dict[str, float]]
"""Measure -> question id -> 0 to 1."""

_SAMPLES = 5_000
_SEED = 7
_AT_ONCE = 100


def scores_of(gold: Mapping[str, Sequence[str]], rankings: Mapping[str, Sequence[str]], cuts: Sequence[int]) -> Scores:
    """What each question's ranking is worth.

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
    asked = {ir_measures.R @ k: f"R@{k}" for k in cuts} | {ir_measures.RR: "MRR", ir_measures.nDCG @ 10: "nDCG@10"}
    names = [name for k in cuts for name in (f"R@{k}", f"all@{k}")] + ["MRR", "nDCG@10"]
    found: Scores = {name: dict.fromkeys(gold, 0.0) for name in names}
    relevant = {question: dict.fromkeys(documents, 1) for question, documents in gold.items()}
    run = {question: {d: -float(n) for n, d in enumerate(rankings[question])} for question in gold}
    for metric in ir_measures.iter_calc(list(asked), relevant, run):
        found[asked[metric.measure]][metric.query_id] = metric.value
    for k in cuts:
        found[f"all@{k}"] = {question: float(value >= 1) for question, value in found[f"R@{k}"].items()}
    return found


def means(scores: Scores, questions: Sequence[str]) -> dict[str, float]:
    """The mean of every measure over these questions, in percent."""
    return {name: percent(sum(values[q] for q in questions) / len(questions)) for name, values in scores.items()}


def percent(share: float) -> float:
    """A share in percent, to two places.

    >>> percent(0.98765)
    98.77
    """
    return round(100 * float(share), 2)


def wilson(right: int, asked: int) -> tuple[float, float]:
    """The 95 % interval of a share by Wilson's score: sound for few questions, and for none or all of them right.

    >>> low, high = wilson(52, 60)
    >>> round(low, 2), round(high, 2)
    (0.76, 0.93)
    """
    if not asked:
        return 0.0, 1.0
    z, share = 1.96, right / asked
    middle, width = share + z * z / (2 * asked), z * (share * (1 - share) / asked + (z / (2 * asked)) ** 2) ** 0.5
    return max(0.0, (middle - width) / (1 + z * z / asked)), min(1.0, (middle + width) / (1 + z * z / asked))


class Bootstrap:
    """The same resampled questions for everything that is compared.

    Args:
        questions: their ids.
        family: how many comparisons a table has.
        clusters: of each question what it was drawn with, such as its conversation: whole clusters are resampled, since
            questions of one are alike. With a single cluster questions are resampled, as they are without.
    """

    def __init__(self, questions: Sequence[str], family: int = 1, clusters: Mapping[str, str] | None = None):
        import numpy as np

        self._questions, self._wrong = list(questions), 0.05 / max(1, family)
        names = [(clusters or {}).get(question, "") for question in self._questions]
        self._cluster = np.unique(names, return_inverse=True)[1]
        self.clustered = len(set(names)) > 1
        size = len(set(names)) if self.clustered else len(self._questions)
        self._drawn = np.random.default_rng(_SEED).integers(0, size, (_SAMPLES, size), np.int32)

    def interval(self, scores: Scores) -> dict[str, list[float]]:
        """``[low, high]`` of every measure."""
        return {name: self._of_one(self._row(values)) for name, values in scores.items()}

    def compare(self, scores: Scores, against: Scores) -> dict[str, dict[str, Any]]:
        """Of every measure the difference, its interval, and ``p``: how often resampling turns its sign, twice, times
        the comparisons of the table. ``least``: the smallest difference that so many questions could show.
        """
        found = {}
        for name, values in scores.items():
            apart = self._row(values) - self._row(against[name])
            drawn = self._resampled(apart)
            turned = min((drawn <= 0).mean(), (drawn >= 0).mean())
            low, high = _interval(drawn, self._wrong)
            if not apart.any():  # none in so many differs: exact
                high = percent(1 - (self._wrong / 2) ** (1 / len(apart)))
                low = -high
            found[name] = {
                "difference": percent(apart.mean()),
                "low": low,
                "high": high,
                "p": round(min(1.0, 2 * float(turned) * 0.05 / self._wrong), 4),
                "least": round((high - low) / 2, 2),
            }
        return found

    def _of_one(self, row: np.ndarray) -> list[float]:
        if row.min() < row.max() or row[0] not in (0, 1):
            return _interval(self._resampled(row))
        return [percent(end) for end in wilson(int(row.sum()), len(row))]

    def _row(self, values: Mapping[str, float]) -> np.ndarray:
        import numpy as np

        return np.array([values[question] for question in self._questions])

    def _resampled(self, row: np.ndarray) -> np.ndarray:
        import numpy as np

        if self.clustered:
            sums, sizes = np.bincount(self._cluster, row), np.bincount(self._cluster)
            return sums[self._drawn].sum(axis=1) / sizes[self._drawn].sum(axis=1)
        blocks = np.array_split(self._drawn, _SAMPLES // _AT_ONCE)
        return np.concatenate([row[places].mean(axis=1) for places in blocks])


def auc(said: Sequence[float] | np.ndarray, true: Sequence[bool] | np.ndarray) -> float | None:
    """How often what is true was given the higher number of the two, ties counting half; None without both kinds.

    >>> auc([0.9, 0.5, 0.5, 0.1], [True, True, False, False]), auc([0.5], [True])
    (0.875, None)
    """
    import numpy as np

    scores, kinds = np.asarray(said, float), np.asarray(true, bool)
    if kinds.all() or not kinds.any():
        return None
    apart = scores[kinds][:, None] - scores[~kinds][None, :]
    return float((apart > 0).mean() + (apart == 0).mean() / 2)


def auc_interval(said: Sequence[float], true: Sequence[bool], samples: int = 1_000) -> dict[str, float | None]:
    """``{"auc", "low", "high"}``, the ends over resampled questions; None where one kind is missing."""
    import numpy as np

    scores, kinds = np.asarray(said, float), np.asarray(true, bool)
    drawn = np.random.default_rng(_SEED).integers(0, max(1, len(scores)), (samples, len(scores)))
    areas = [area for places in drawn if (area := auc(scores[places], kinds[places])) is not None]
    low, high = np.quantile(areas, [0.025, 0.975]).round(3).tolist() if areas else (None, None)
    area = auc(scores, kinds)
    return {"auc": None if area is None else round(area, 3), "low": low, "high": high}


def _interval(drawn: np.ndarray, wrong: float = 0.05) -> list[float]:
    import numpy as np

    low, high = np.quantile(drawn, [wrong / 2, 1 - wrong / 2])
    return [percent(low), percent(high)]


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds: the median, and what one call in twenty exceeds.

    >>> spread([0.002, 0.001, 0.003])
    {'p50': 2.0, 'p95': 2.9}
    """
    import numpy as np

    p50, p95 = np.quantile(np.array(seconds) * 1000, [0.5, 0.95])
    return {"p50": round(float(p50), 2), "p95": round(float(p95), 2)}
