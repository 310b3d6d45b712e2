"""What two tools that looked for the same say together: one probability for a passage that a search and a chain judge.

A search sees a passage by itself, a chain sees the way to it; either alone is sure of things that the other doubts.
The log odds that each gives are weighed. The chain counts as far as titles led it to something that it is sure of, the
search as far as they did not: where texts name nothing that leads on, a chain knows no more than a search. A question
that is a bridge by its words leaves no choice, what answers it is named only on the way: there the chain counts in full
as soon as a title led it anywhere. The first one of a search counts for more, it knows best what the question itself is
about (``tools/calibration.py`` has the model, ``experiments/merging.py`` fits it). What other tools find keeps the
highest score that any of them gives it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from workbench.fates import Identity, identity
from workbench.state import RetrievalResult
from workbench.tools.calibration import probability

MODEL = "merge"
SEARCH, CHAIN = "hybrid_search", "chain_exploration"
UNSEEN = 0.0005
"""What a tool that looked says of a passage that it did not find; what it says less of counts as this much."""
SPAN = 10.0
"""Log odds that count as 1."""
SURE = 0.7
"""So much of the best passage to which a title led, and the chain is believed in full without a bridge."""


class Said(NamedTuple):
    """What one tool says of a passage.

    Attributes:
        tool: whose word it is.
        worth: its log odds above not having found the passage.
        first: whether a search put it first.
        led: whether a title led a chain to it.
        bridge: whether the chain took the question for a bridge.
    """

    tool: str
    worth: float
    first: bool
    led: bool
    bridge: bool


def agreed(results_by_step: Mapping[str, Sequence[RetrievalResult]]) -> dict[Identity, float]:
    """The probability of each passage that the search or the chain found; nothing unless both of them looked.

    >>> piece = {"source_id": "d", "granularity": "low_level", "score": 0.6}
    >>> by = {name: [{**piece, "metadata": {"tools": [name]}}] for name in (SEARCH, CHAIN)}
    >>> list(agreed(by)) == [("d", "low_level", "")], agreed({SEARCH: by[SEARCH]})
    (True, {})
    """
    others: dict[Identity, float] = {}
    for results in results_by_step.values():
        for result in results:
            if _tool(result) not in (SEARCH, CHAIN):
                one = identity(result)
                others[one] = max(others.get(one, 0.0), result["score"])
    told = signals_of(results_by_step)
    return {one: max(probability(MODEL, mine), others.get(one, 0.0)) for one, mine in told.items()}


def signals_of(results_by_step: Mapping[str, Sequence[RetrievalResult]]) -> dict[Identity, dict[str, float]]:
    """What the model weighs of each passage: the search as far as nothing led, both as far as something did."""
    told: dict[Identity, list[Said]] = {}
    for results in results_by_step.values():
        for one, said in _said(results):
            told.setdefault(one, []).append(said)
    every = [said for mine in told.values() for said in mine]
    if not {SEARCH, CHAIN} <= {said.tool for said in every}:
        return {}
    led = _led([said for said in every if said.led])
    return {one: _weighed(mine, led) for one, mine in told.items()}


def _led(ways: Sequence[Said]) -> float:
    """How far titles led, 0 to 1."""
    if any(said.bridge for said in ways):
        return 1.0
    return min(1.0, max((said.worth for said in ways), default=0.0) / SURE)


def _said(results: Sequence[RetrievalResult]) -> Iterator[tuple[Identity, Said]]:
    for place, result in enumerate(results):
        tool = _tool(result)
        if tool in (SEARCH, CHAIN):
            steps = result["metadata"].get("chain", {}).get("steps", [])
            led = tool == CHAIN and bool(steps) and steps[-1]["by"] != "phrase"
            bridge = bool(result["metadata"].get("signals", {}).get("bridge"))
            yield identity(result), Said(tool, worth_of(result["score"]), tool == SEARCH and place == 0, led, bridge)


def _weighed(said: Sequence[Said], led: float) -> dict[str, float]:
    search, chain = (max((s.worth for s in said if s.tool == tool), default=0.0) for tool in (SEARCH, CHAIN))
    first = float(any(s.first for s in said))
    return {"search": search * (1 - led), "search_led": search * led, "chain_led": chain * led, "first": first}


def _tool(result: RetrievalResult) -> str:
    return str(next(iter(result["metadata"].get("tools") or []), ""))


def worth_of(score: float) -> float:
    """What a probability adds to not having found a passage: its log odds above those.

    >>> worth_of(0.0001), worth_of(0.5)
    (0.0, 0.76)
    """
    return round(max(0.0, (_log_odds(score) - _log_odds(UNSEEN)) / SPAN), 3)


def _log_odds(score: float) -> float:
    kept = min(max(score, 1e-6), 1 - 1e-6)
    return math.log(kept / (1 - kept))
