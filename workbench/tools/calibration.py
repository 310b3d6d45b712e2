"""How a tool's raw signals become the probability that a result is relevant: one logistic model a tool.

The constants are fitted by ``python experiments/calibrate.py DATA --fit`` on public questions in English and Chinese
(CMRC 2018, XQuAD in both directions, HotpotQA, 2WikiMultiHopQA, MetaQA's and plain ones on the project's corpus), one
in three asked of a corpus that cannot answer it; likeness on people's tags. Half of the questions fit and half measure;
the embeddings are ``use`` in one half of the runs, ``hashing`` in the other. Which signals to use was settled with both
halves in view, so the errors are a little flattered.

| tool | expected calibration error | scaling each list from worst to best instead |
| --- | --- | --- |
| keyword_search | 0.004 | 0.137 |
| naive_search | 0.002 | 0.282 |
| local_search | 0.018 | 0.056 |
| hybrid_search | 0.003 | 0.201 |
| global_search (likeness) | 0.071 | 0.298 |

``merge`` weighs what ``hybrid_search`` and ``chain_exploration`` say of one passage (``retrieval/agreement.py``). It is
fitted by ``python experiments/merging.py``, which cross-validates it: weights of six sets rank the seventh, of 2wiki,
hotpot, cmrc, drcd, lihua and xquad both ways. Its error on questions that no fit saw is 0.002; with weights by hand it
was 0.009. A chain that no title led says nothing that the search does not say better. MuSiQue chose nothing.

The best result of ``hybrid_search`` is over 0.5 for 96 of 100 questions on what the corpus has and for 1 of 100 that
no document answers. Known to say too little: questions in one language about texts in the other that name nothing (0.35
said, 0.77 right).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FIELDS_ARE_RIGHT = 0.93
"""Of 6,599 documents that MetaQA has too, this share has exactly the same values there (data/README)."""


@dataclass(frozen=True)
class Logistic:
    """``1 / (1 + exp(-(bias + sum(weight * signal))))``."""

    bias: float
    weights: Mapping[str, float]

    def __call__(self, signals: Mapping[str, float]) -> float:
        """The probability; signals that the model does not know are ignored, missing ones count 0."""
        z = self.bias + sum(w * signals.get(name, 0.0) for name, w in self.weights.items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))


MODELS: Mapping[str, Logistic] = {
    "keyword_search": Logistic(-7.57, {"covered": 4.82, "subject": 4.53, "bm25": 4.54}),
    "naive_search": Logistic(-6.89, {"covered": 7.11, "subject": 5.07, "cosine": 1.35, "lead": 2.84, "across": 2.99}),
    "local_search": Logistic(-2.98, {"covered": 4.54, "subject": 4.15}),
    "hybrid_search": Logistic(
        -7.9,
        {
            "covered": 3.6,
            "subject": 4.32,
            "cosine": 2.99,
            "lead": 0.76,
            "across": 3.79,
            "bm25": 2.98,
            "reranked": 1.79,
        },
    ),
    "graph_paths": Logistic(-12.68, {"read": 8.71, "asked": 4.19, "named": 1.91, "hops": 1.42}),
    "chain_exploration": Logistic(-12.66, {"chain": 5.85, "answered": 3.75, "place": 3.99}),
    "pagerank": Logistic(-9.08, {"rank": 4.98, "covered": 3.4, "answered": 2.64, "place": 2.33}),
    "deep_research": Logistic(-6.21, {"worth": 6.73, "answered": 0.23, "place": 3.17}),
    "deeper_research": Logistic(-8.36, {"worth": 4.13, "place": 3.72}),
    "merge": Logistic(-6.68, {"search": 8.34, "search_led": 0.83, "chain_led": 5.84, "first": 2.5}),
    "global_search": Logistic(-2.2, {"cosine": 0.63, "traits": 10.0}),
}
"""What is seen is told in ``signals.py``; every signal speaks for a result, so no weight is below 0."""
ORDER: Mapping[str, float] = {
    "covered": 7.2,
    "subject": 4.32,
    "cosine": 2.99,
    "lead": 0.19,
    "reread": 7.58,
    "bm25": 2.98,
    "reranked": 1.79,
}
"""In what order ``hybrid_search`` gives its probabilities out: chosen by ``experiments/searching.py`` for what it
ranks. ``reread`` is the reranker's view as far as words cannot tell: it orders well, but it always has a best one, and
a probability made of it is over 0.5 for the best of 27 of 100 questions that no document answers; as it is, for 1.
"""


def probability(tool: str, signals: Mapping[str, float]) -> float:
    """The probability, to 6 digits, that a result with these signals is relevant.

    >>> probability("keyword_search", {}) < probability("keyword_search", {"covered": 1.0})
    True
    """
    return round(MODELS[tool](signals), 6)


def descending(scores: Sequence[float]) -> list[float]:
    """Scores that fall from each to the next, if by no more than can be seen, so that an order stands.

    >>> descending([0.5, 0.7, 0.2])
    [0.5, 0.499999, 0.2]
    """
    found: list[float] = []
    for score in scores:
        found.append(round(min(score, found[-1] - 1e-6) if found else score, 6))
    return found


def ordered(count: int) -> list[float]:
    """Probabilities for results that nothing but an order tells apart: from 1 down to 0.95.

    >>> ordered(3)
    [1.0, 0.975, 0.95]
    """
    return [round(1 - 0.05 * place / max(1, count - 1), 6) for place in range(count)]
