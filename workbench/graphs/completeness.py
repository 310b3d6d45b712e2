"""How likely it is that the first passages of the evidence do not hold all that answers: a probability that was fitted.

A question of several hops is answered by several passages, and the best score says little of the last of them. So it
is read from the scores down to the fifth, from how far the first passages together say the words of the question, by
meaning where the base can tell, and from the names that none of them speaks of. ``experiments/completeness.py`` fits
the weights on one half of public questions and reports on the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from workbench.graphs.sufficiency import spoken
from workbench.ports import KnowledgeBase
from workbench.state import RetrievalResult
from workbench.text import fold
from workbench.tools.scoring import Logistic

FIRST = 5
"""The passages that are to hold the answer together."""
SAID = 0.6
"""From this cosine on a word of a passage says a word of the question."""
MODEL = Logistic(0.0, {})


def incomplete(question: str, evidence: Sequence[RetrievalResult], names: Sequence[str], base: KnowledgeBase) -> float:
    """The probability, to three digits, that a passage that is needed is not among the first five.

    Args:
        question: the question.
        evidence: what was found, best first.
        names: those in the question.
        base: where it was found.
    """
    return round(MODEL(signals(question, evidence, names, base)), 3)


def signals(
    question: str, evidence: Sequence[RetrievalResult], names: Sequence[str], base: KnowledgeBase
) -> Mapping[str, float]:
    """What the probability is made of.

    Returns:
        ``first``, ``second``, ``third``, ``fifth``: log odds of the scores; ``said``: how far the first five passages
        together say the words of the question, the rare ones more; ``added``: how much of that the second adds to the
        first; ``unsaid``: the share of words that none of them says; ``rarity`` of the words; ``named``: the share of
        names that one of them speaks of; ``phrases``: how many were reached by no more than a phrase they share.
    """
    first = evidence[:FIRST]
    texts = [f"{result['metadata'].get('title') or ''}. {result['evidence']}" for result in first]
    rarity, rows = base.matches(question, texts)
    weights = [weight + 1e-6 for weight in rarity]
    whole = sum(weights) or 1.0

    def share(close: Sequence[float]) -> float:
        return sum(weight * near for weight, near in zip(weights, close, strict=True)) / whole

    together = [max(column) for column in zip(*rows, strict=True)] or [0.0] * len(weights)
    two = [max(column) for column in zip(*rows[:2], strict=True)] or together
    one = rows[0] if rows else together
    folded = fold(" ".join(texts))
    chains = [result["metadata"]["chain"]["steps"] for result in first if result["metadata"].get("chain")]
    odds = [_log_odds(result["score"]) for result in first] + [_log_odds(0.0)] * FIRST
    return {
        "first": odds[0],
        "second": odds[1],
        "third": odds[2],
        "fifth": odds[4],
        "said": share(together),
        "added": share(two) - share(one),
        "unsaid": sum(near < SAID for near in together) / max(1, len(together)),
        "rarity": sum(rarity) / max(1, len(rarity)),
        "named": sum(spoken(fold(name), folded) for name in names) / max(1, len(names)),
        "phrases": float(sum(steps[-1]["by"] == "phrase" for steps in chains)),
    }


def _log_odds(score: float) -> float:
    kept = min(max(score, 1e-4), 1 - 1e-4)
    return math.log(kept / (1 - kept))
