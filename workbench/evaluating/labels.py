"""What people say of a sample of the judged answers, and the judges' figures set right by it.

The sample is drawn by the ids of the questions alone, so that no outcome chooses it; a larger one has the smaller one
in it. Figures are corrected by prediction-powered inference: the judges' votes on all answers, less what they are wrong
by on the labelled ones (Angelopoulos et al., Science 2023), weighed by how much they tell (PPI++, 2023).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple, Protocol

import numpy as np

from workbench.errors import WorkbenchError
from workbench.evaluating.panel import GRADES, Asked, alpha
from workbench.evaluating.rankings import read_rows
from workbench.evaluating.statistics import percent, scipy_stats
from workbench.records.store import JUDGED, digest_of

FEWEST = 10
"""With fewer labels nothing is corrected."""
_SEED = 7


class Labelling(Protocol):
    """Whoever keeps labels: a ``Workbench``."""

    @property
    def labels(self) -> Any:
        """The answers that people judge."""


def drawn(ids: Iterable[str], size: int) -> list[str]:
    """So many of the ids, by chance that is always the same.

    >>> drawn("abcdef", 3), drawn("fedcba", 2)
    (['b', 'f', 'a'], ['b', 'f'])
    """
    return sorted(ids, key=lambda i: hashlib.sha256(f"{_SEED} {i}".encode()).hexdigest())[:size]


def put(bench: Labelling, answers: Mapping[str, Mapping[str, Asked]], size: int) -> int:
    """Put the answers of each way to a sample of the questions before a person, the ways mixed; how many there are."""
    ids = drawn(next(iter(answers.values())), size)
    found: dict[str, dict[str, Any]] = {}
    for way, of in answers.items():
        for i in ids:
            found.setdefault(digest_of(of[i]), {**of[i], "id": i, "ways": []})["ways"].append(way)
    place = {i: n for n, i in enumerate(ids)}
    for digest in sorted(found, key=lambda digest: (place[found[digest]["id"]], digest)):
        bench.labels.ask(found[digest])
    return len(found)


def listed(bench: Labelling, waiting: bool = True) -> list[dict[str, Any]]:
    """What waits for a label, or all, as rows to fill in and to ``take``; without evidence nothing is unfaithful."""
    return [
        {
            "digest": row["digest"],
            **{name: row["asked"][name] for name in JUDGED},
            **(row["label"] or {"correct": None, "faithful": None if row["asked"]["evidence"] else True}),
        }
        for row in bench.labels.list(waiting)
    ]


def take(bench: Labelling, file: Path, by: str) -> int:
    """Keep the labels of a JSON Lines file: ``digest``, ``correct`` and ``faithful``; how many these were.

    A row whose ``correct`` is null says nothing, unless it has ``"skip": true``.

    Raises:
        WorkbenchError: a row is no label, or its texts are not those that the digest stands for; nothing is kept.
    """
    rows, known = read_rows(file, "digest"), {row["digest"] for row in bench.labels.list()}
    said = [row for row in rows if row.get("skip") or row.get("correct") is not None]
    for row in said:
        if row["digest"] not in known or (set(JUDGED) <= set(row) and digest_of(row) != row["digest"]):
            raise WorkbenchError(
                f"{file}: {row['digest']} is no answer that waits for a label, or its texts were changed. "
                "Fill in what `workbench eval labels` prints."
            )
        if not row.get("skip") and not all(isinstance(row.get(name), bool) for name in GRADES):
            raise WorkbenchError(f"{file}: {row['digest']} needs `correct` and `faithful`, each true or false.")
    for row in said:
        correct, faithful = (None, None) if row.get("skip") else (row["correct"], row["faithful"])
        bench.labels.save(row["digest"], correct, faithful, by)
    return len(said)


def corrected(verdicts: Sequence[Mapping[str, Any]], given: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The judges' figures of a way, set right by labels, for each grade; in percent.

    ``raw`` is the mean vote; ``estimate``, ``low``, ``high`` what people would say of all answers, None with too few
    labels. ``weight``: how far the judges are followed, 0 for not at all. ``agree`` and ``alpha``: how the judges'
    majority and people agree.

    Args:
        verdicts: ``{"digest", "correct": votes, "faithful": votes}`` for each answer.
        given: what ``Workbench.labels`` gives.
    """
    said = {row["digest"]: row["label"] for row in given if row["label"]}
    return {name: _corrected([(one[name], said.get(one["digest"])) for one in verdicts], name) for name in GRADES}


def _corrected(answers: Sequence[tuple[Sequence[bool | None], Any]], name: str) -> dict[str, Any]:
    votes = [[float(vote) for vote in of if vote is not None] for of, _ in answers]
    usual = mean(known) if (known := [mean(of) for of in votes if of]) else 0.0
    people = [None if label is None else label[name] for _, label in answers]
    shares = [mean(of) if of else usual for of in votes]
    labelled = [(float(said), share) for said, share in zip(people, shares, strict=True) if said is not None]
    both = [
        [said, share > 0.5]
        for said, share, of in zip(people, shares, votes, strict=True)
        if said is not None and of and share != 0.5
    ]
    found = {
        "raw": percent(usual) if known else None,
        "labelled": len(labelled),
        "skipped": sum(label is not None and label[name] is None for _, label in answers),
        "agree": percent(sum(said == judged for said, judged in both) / len(both)) if both else None,
        "alpha": alpha(both),
        **dict.fromkeys(("estimate", "low", "high", "weight")),
    }
    if len(labelled) >= FEWEST:
        powered = ppi_mean(labelled, [share for said, share in zip(people, shares, strict=True) if said is None])
        ends = {end: percent(min(1.0, max(0.0, getattr(powered, end)))) for end in ("estimate", "low", "high")}
        found |= {**ends, "weight": round(powered.weight, 2)}
    return found


class Powered(NamedTuple):
    """A mean with its 95 % interval, and the weight of the predictions in it."""

    estimate: float
    low: float
    high: float
    weight: float


def ppi_mean(labelled: Sequence[tuple[float, float]], unlabelled: Sequence[float]) -> Powered:
    """Estimate the mean of labels between 0 and 1, with predictions where there is no label: PPI++ with power tuning.

    Labels alone are the weight 0, the plain prediction-powered mean is the weight 1; the weight is the one of least
    variance, between these. It is found on the same labels; where these are alike they tell nothing of the judge and
    the estimate would lean to them, so two more are presumed on which he is right. Where all are as predicted the
    interval would be far too short (ten labels held the truth in 53 of 100 simulations, not in 95): so one deviation by
    a whole unit is counted in beside those that were seen.

    Args:
        labelled: label and prediction, of answers drawn by chance; at least two.
        unlabelled: the predictions of the others.

    >>> judged = [(1.0, 1.0), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0)] * 10
    >>> [round(number, 2) for number in ppi_mean(judged, [1.0] * 210 + [0.0] * 70)]
    [0.5, 0.36, 0.64, 0.61]
    >>> [round(number, 2) for number in ppi_mean(judged, [])]
    [0.5, 0.33, 0.67, 0.0]
    """
    (labels, votes), others = np.array(labelled).T, np.array(unlabelled)
    n, more = len(labels), len(others)
    together = np.cov(np.array([*labelled, (1, 1), (0, 0)]).T, bias=True)[0, 1]
    deviation = np.concatenate([votes, others]).var()
    weight = min(1.0, max(0.0, together / ((1 + n / more) * deviation))) if more and deviation else 0.0
    wrong = labels - weight * votes
    variance = (wrong.var() * n + 1) / n / n
    if more > 1:
        variance += weight**2 * others.var(ddof=1) / more
    estimate = wrong.mean() + (weight * others.mean() if more else 0.0)
    half = scipy_stats().t.ppf(0.975, n - 1) * variance**0.5
    return Powered(*map(float, (estimate, estimate - half, estimate + half, weight)))
