"""How likely it is that the first five passages lack one that the answer needs: a probability that was fitted.

Where titles lead from passage to passage, an answer may need several of them, and the best score says little of the
last one. So it is read from the scores down to the fifth, from how far the passages together say the words of the
question, by what words mean where the base can tell, and from how they were reached. Where nothing leads on, one
passage answers, and its score says most. ``experiments/second_pass.py`` fits both on one half of public questions and
reports on the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from workbench.ports import KnowledgeBase
from workbench.state import RetrievalResult
from workbench.tools.next_hop import Reading, SubQuestion
from workbench.tools.scoring import Logistic

FIRST = 5
"""The passages that are to hold the answer together."""
HALF = 0.5
"""Below this clarity a word is not said."""
LINKED = Logistic(
    3.66,
    {
        "first": -0.32,
        "second": -0.43,
        "third": -0.13,
        "fifth": 0.4,
        "said": -3.53,
        "added": -1.98,
        "unsaid": 0.17,
        "words": 0.75,
        "rarity": -2.43,
        "phrases": -0.41,
    },
)
"""Where a title led from passage to passage."""
ALONE = Logistic(
    -3.64,
    {
        "first": -0.22,
        "second": -0.06,
        "third": -0.1,
        "fifth": -0.01,
        "said": -1.15,
        "added": 5.9,
        "unsaid": 2.06,
        "words": 1.07,
        "rarity": -1.91,
        "phrases": -0.19,
    },
)
"""Where nothing did."""

LEAST = 0.04
"""A chance below which no second pass is made: no difference is expected of it. On the half that fits
20 of 21 gains lie above."""
PROMISE = Logistic(-0.84, {"doubt": 0.71, "explained": -0.93, "rest": -1.42, "asked": 0.0})
"""Whether a second pass finds what is missing."""


def promise(doubt: float, hops: Sequence[SubQuestion]) -> float:
    """The probability, to three digits, that asking the sub-questions brings a needed passage among the first five.

    Args:
        doubt: how likely it is that one is missing.
        hops: the sub-questions; without any it is 0.
    """
    return round(PROMISE(hopes(doubt, hops)), 3) if hops else 0.0


def hopes(doubt: float, hops: Sequence[SubQuestion]) -> Mapping[str, float]:
    """What that is made of: the log odds of the doubt, how much of the question the sentences say that the
    sub-questions go on from (the one that says most, and on average), and how many there are.
    """
    told = [hop.explained for hop in hops] or [0.0]
    return {
        "doubt": log_odds(doubt),
        "explained": max(told),
        "rest": sum(told) / len(told),
        "asked": float(len(hops)),
    }


def incomplete(question: str, evidence: Sequence[RetrievalResult], base: KnowledgeBase) -> float:
    """The probability, to three digits, that a passage that is needed is not among the first five.

    Args:
        question: the question.
        evidence: what was found, best first.
        base: where it was found.
    """
    model = LINKED if linked(evidence) else ALONE
    return round(model(signals(question, evidence, base)), 3)


def linked(evidence: Sequence[RetrievalResult]) -> bool:
    """Whether a title led to any passage."""
    chains = (result["metadata"].get("chain") for result in evidence)
    return any(chain and chain["steps"] and chain["steps"][-1]["by"] != "phrase" for chain in chains)


def signals(question: str, evidence: Sequence[RetrievalResult], base: KnowledgeBase) -> Mapping[str, float]:
    """What the probability is made of.

    Returns:
        ``first``, ``second``, ``third``, ``fifth``: log odds of the scores; ``said``: how far the first five passages
        together say the words of the question, the rare ones more; ``added``: how much of that the second adds to the
        first; ``unsaid``: the share of words that none of them says; ``words``: how many there are, and ``rarity``:
        theirs; ``phrases``: how many passages were reached by no more than a phrase they share.
    """
    first = first_documents(evidence)
    texts = [f"{result['metadata'].get('title') or ''}. {result['evidence']}" for result in first]
    reading = Reading.of(question, texts, base)
    nothing = [0.0] * len(reading.words)
    one = reading.texts[0] if reading.texts else nothing
    two = [max(column) for column in zip(*reading.texts[:2], strict=True)] or nothing
    together = [max(column) for column in zip(*reading.texts, strict=True)] or nothing
    chains = [result["metadata"]["chain"]["steps"] for result in first if result["metadata"].get("chain")]
    odds = [log_odds(result["score"]) for result in first] + [log_odds(0.0)] * FIRST
    return {
        "first": odds[0],
        "second": odds[1],
        "third": odds[2],
        "fifth": odds[4],
        "said": reading.share(together),
        "added": reading.share(two) - reading.share(one),
        "unsaid": sum(said < HALF for said in together) / max(1, len(together)),
        "words": math.log1p(len(reading.words)),
        "rarity": reading.rarity,
        "phrases": float(sum(steps[-1]["by"] == "phrase" for steps in chains if steps)),
    }


def first_documents(evidence: Sequence[RetrievalResult]) -> list[RetrievalResult]:
    """The best result of each of the first documents."""
    first: dict[str, RetrievalResult] = {}
    for result in evidence:
        first.setdefault(str(result["metadata"].get("doc_id") or result["source_id"]), result)
    return list(first.values())[:FIRST]


def log_odds(score: float) -> float:
    """Of a score, 0 to 1; bounded."""
    kept = min(max(score, 5e-4), 1 - 1e-4)
    return math.log(kept / (1 - kept))
