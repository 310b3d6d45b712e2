"""What two tools that looked for the same say together: one probability for a passage that a search and a chain judge.

A search sees a passage by itself, a chain sees the way to it; either alone is sure of things that the other doubts.
The log odds that each gives are weighed, and the first one of a search counts for more: it knows best what the question
itself is about (``tools/calibration.py`` has the model and how it was fitted). What other tools find keeps the highest
score that any of them gives it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from workbench.fates import Identity, identity
from workbench.state import RetrievalResult
from workbench.tools.calibration import probability

LINKED, UNLINKED = "merge", "merge_unlinked"
"""The model where the chain went along titles, and where it knew phrases alone: then it knows less."""
SEARCH, CHAIN = "hybrid_search", "chain_exploration"
UNSEEN = 0.003
"""What a tool that looked says of a passage that it did not find; what it says less of counts as this much."""
SPAN = 10.0
"""Log odds that count as 1."""


def agreed(results_by_step: Mapping[str, Sequence[RetrievalResult]]) -> dict[Identity, float]:
    """The probability of each passage that the search or the chain found; nothing unless both of them looked.

    >>> piece = {"source_id": "d", "granularity": "low_level", "score": 0.6}
    >>> by = {name: [{**piece, "metadata": {"tools": [name]}}] for name in (SEARCH, CHAIN)}
    >>> list(agreed(by)) == [("d", "low_level", "")], agreed({SEARCH: by[SEARCH]})
    (True, {})
    """
    told: dict[Identity, dict[str, float]] = {}
    others: dict[Identity, float] = {}
    model = UNLINKED
    for results in results_by_step.values():
        for place, result in enumerate(results):
            one, (tool, *_) = identity(result), result["metadata"].get("tools") or [""]
            if any(step["by"] != "phrase" for step in result["metadata"].get("chain", {}).get("steps", ())):
                model = LINKED
            if tool in (SEARCH, CHAIN):
                signals = signals_of(tool, place, result["score"])
                mine = told.setdefault(one, {})
                mine |= {name: max(mine.get(name, 0.0), value) for name, value in signals.items()}
            else:
                others[one] = max(others.get(one, 0.0), result["score"])
    if not {SEARCH, CHAIN} <= {name for mine in told.values() for name in mine}:
        return {}
    return {one: max(probability(model, mine), others.get(one, 0.0)) for one, mine in told.items()}


def signals_of(tool: str, place: int, score: float) -> dict[str, float]:
    """What a tool's probability adds to not having found a passage: its log odds above those; and the first place.

    >>> signals_of("hybrid_search", 1, 0.002), signals_of("chain_exploration", 0, 0.5)
    ({'hybrid_search': 0.0}, {'chain_exploration': 0.581})
    """
    said = {tool: round(max(0.0, (_log_odds(score) - _log_odds(UNSEEN)) / SPAN), 3)}
    return {**said, "first": 1.0} if tool == SEARCH and place == 0 else said


def _log_odds(score: float) -> float:
    kept = min(max(score, 1e-6), 1 - 1e-6)
    return math.log(kept / (1 - kept))
