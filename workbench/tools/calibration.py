"""How a tool's raw signals become the probability that a result is relevant: one logistic model a tool."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

FIELDS_ARE_RIGHT = 0.93
"""Of 6,599 films that MetaQA has too, this share has exactly the same directors there (data/README)."""


@dataclass(frozen=True)
class Logistic:
    """``1 / (1 + exp(-(bias + sum(weight * signal))))``; every weight has the sign that makes it monotone by design."""

    bias: float
    weights: Mapping[str, float]

    def __call__(self, signals: Mapping[str, float]) -> float:
        """The probability; signals that the model does not know are ignored, missing ones count 0."""
        z = self.bias + sum(w * signals.get(name, 0.0) for name, w in self.weights.items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))


MODELS: Mapping[str, Logistic] = {
    "keyword_search": Logistic(-4.44, {"covered": 2.3, "missing": -0.88, "subject": 2.62, "named": 1.14, "bm25": 3.37}),
    "naive_search": Logistic(
        -4.77,
        {
            "covered": 3.29,
            "missing": -0.81,
            "subject": 2.75,
            "named": 1.58,
            "cosine": 0.68,
            "lead": 1.19,
            "dense": 1.41,
            "across": 0.5,
        },
    ),
    "local_search": Logistic(-2.91, {"covered": 2.99, "missing": -2.2, "subject": 3.65, "named": 0.99}),
    "global_search": Logistic(-3, {"cosine": 4, "traits": 4, "covered": 0.5}),
    "hybrid_search": Logistic(
        -5.35,
        {
            "covered": 1.9,
            "missing": -0.4,
            "subject": 2.41,
            "named": 0.99,
            "cosine": 0.69,
            "lead": 0.7,
            "bm25": 2.75,
            "dense": 0.45,
            "fused": 1.35,
            "reranked": 0.5,
            "across": 0.5,
        },
    ),
}


def probability(tool: str, signals: Mapping[str, float]) -> float:
    """The probability, to 6 digits, that a result with these signals is relevant.

    >>> probability("keyword_search", {}) < probability("keyword_search", {"covered": 1.0})
    True
    """
    return round(MODELS[tool](signals), 6)


def ordered(count: int) -> list[float]:
    """Probabilities for results that nothing but an order tells apart: from 1 down to 0.95.

    >>> ordered(3)
    [1.0, 0.975, 0.95]
    """
    return [round(1 - 0.05 * place / max(1, count - 1), 6) for place in range(count)]
