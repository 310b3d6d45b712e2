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
    "keyword_search": Logistic(
        -7.15, {"covered": 4.07, "missing": -0.05, "subject": 3.96, "named": 0.75, "bm25": 4.22}
    ),
    "naive_search": Logistic(
        -5.64,
        {"covered": 5.85, "missing": -0.72, "subject": 4.16, "named": 0.63, "cosine": 0.78, "lead": 2.8, "across": 0.1},
    ),
    "local_search": Logistic(-3.96, {"covered": 4.91, "missing": -0.87, "subject": 4.58, "named": 0.92}),
    "global_search": Logistic(-2.91, {"cosine": 2.77, "traits": 9.12}),
    "hybrid_search": Logistic(
        -6.69,
        {
            "covered": 2.84,
            "missing": -0.27,
            "subject": 3.8,
            "named": 0.25,
            "cosine": 1.75,
            "lead": 1.15,
            "across": 0.1,
            "bm25": 2.54,
            "reranked": 2.05,
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
