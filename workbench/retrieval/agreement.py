"""What two tools that looked for the same say together: one probability for a passage that a search and a chain judge.

A search sees a passage by itself, a chain sees the way to it; either alone is sure of things that the other doubts.
The log odds that each gives are weighed by a model that is fitted like those of the tools (``tools/calibration.py``).
What other tools find keeps the highest score that any of them gives it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from workbench.fates import Identity, identity
from workbench.state import RetrievalResult
from workbench.tools.calibration import MODELS, probability

MODEL = "merge"
NEVER = 7.0
"""Log odds below which a probability counts as nothing: what a tool that looked did not find is as improbable."""


def agreed(results_by_step: Mapping[str, Sequence[RetrievalResult]]) -> dict[Identity, float]:
    """The probability of each passage that one of the weighed tools found; nothing unless all of them looked.

    >>> piece = {"source_id": "d", "granularity": "low_level", "score": 0.6}
    >>> by = {name: [{**piece, "metadata": {"tools": [name]}}] for name in ("hybrid_search", "chain_exploration")}
    >>> list(agreed(by)) == [("d", "low_level", "")], agreed({"hybrid_search": by["hybrid_search"]})
    (True, {})
    """
    weighed: dict[Identity, dict[str, float]] = {}
    others: dict[Identity, float] = {}
    for results in results_by_step.values():
        for result in results:
            one, (tool, *_) = identity(result), result["metadata"].get("tools") or [""]
            if tool in MODELS[MODEL].weights:
                said = weighed.setdefault(one, {})
                said[tool] = max(said.get(tool, 0.0), evidence_of(result["score"]))
            else:
                others[one] = max(others.get(one, 0.0), result["score"])
    if {tool for said in weighed.values() for tool in said} != set(MODELS[MODEL].weights):
        return {}
    return {one: max(probability(MODEL, said), others.get(one, 0.0)) for one, said in weighed.items()}


def evidence_of(score: float) -> float:
    """A probability as evidence, 0 to 1: its log odds, from nothing to certain.

    >>> [round(evidence_of(score), 2) for score in (0.0, 0.5, 1.0)]
    [0.0, 0.5, 1.0]
    """
    if not 0 < score < 1:
        return float(score >= 1)
    return min(1.0, max(0.0, (math.log(score / (1 - score)) + NEVER) / (2 * NEVER)))
