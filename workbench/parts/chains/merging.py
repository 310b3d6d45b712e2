"""What a search and a chain say together of a passage that either of them found."""

from __future__ import annotations

from itertools import chain

from workbench.records.figures import Identity, ResultsByStep, identity
from workbench.state import RetrievalResult
from workbench.tools.scoring import UNSEEN, log_odds, probability

SEARCH, CHAIN = "hybrid_search", "chain_exploration"


def joint_scores(results_by_step: ResultsByStep) -> dict[Identity, float]:
    """Return the probability of each passage that the search or the chain found; nothing unless both of them ran.

    >>> piece = {"source_id": "d", "granularity": "low_level", "score": 0.6}
    >>> by = {name: [{**piece, "metadata": {"tools": [name]}}] for name in (SEARCH, CHAIN)}
    >>> list(joint_scores(by)) == [("d", "low_level", "")], joint_scores({SEARCH: by[SEARCH]})
    (True, {})
    """
    joint = {
        key: probability("merge", values)
        for key, values in merge_signals(results_by_step).items()
    }
    for result in chain.from_iterable(results_by_step.values()):
        key = identity(result)
        if key in joint and _tool(result) not in (SEARCH, CHAIN):
            joint[key] = max(joint[key], result["score"])
    return joint


def merge_signals(results_by_step: ResultsByStep) -> dict[Identity, dict[str, float]]:
    """Return what the model weighs of each passage: the search where no title led a chain anywhere, else both.

    ``first``: whether a search put it first.
    """
    evidence: dict[str, dict[Identity, float]] = {SEARCH: {}, CHAIN: {}}
    first = set[Identity]()
    led = False
    for results in results_by_step.values():
        for place, result in enumerate(results):
            tool = _tool(result)
            key = identity(result)
            if tool not in evidence:
                continue
            evidence[tool][key] = max(
                evidence[tool].get(key, 0.0), log_odds_share(result["score"])
            )
            if tool == SEARCH and place == 0:
                first.add(key)
            steps = result["metadata"].get("chain", {}).get("steps", [])
            led = led or (tool == CHAIN and bool(steps) and steps[-1]["by"] != "phrase")
    if not all(evidence.values()):
        return {}
    search = evidence[SEARCH]
    chained = evidence[CHAIN]
    return {
        key: {
            "search": 0.0 if led else search.get(key, 0.0),
            "search_led": search.get(key, 0.0) if led else 0.0,
            "chain_led": chained.get(key, 0.0) if led else 0.0,
            "first": float(key in first),
        }
        for key in dict.fromkeys([*search, *chained])
    }


def _tool(result: RetrievalResult) -> str:
    return str(next(iter(result["metadata"].get("tools") or []), ""))


def log_odds_share(score: float) -> float:
    """Return the log odds of a score above those of a passage that was not found, about 0 to 1.

    >>> log_odds_share(0.0001), log_odds_share(0.5)
    (0.0, 0.76)
    """
    # The last number is the log odds that count as 1.
    return round(max(0.0, (log_odds(score) - log_odds(UNSEEN)) / 10.0), 3)
