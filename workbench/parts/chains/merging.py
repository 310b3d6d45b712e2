"""Chains in a plan, and what a search and a chain say together of a passage that either of them found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from workbench.graphs.plan import Ask
from workbench.plans import PlanStep
from workbench.ports import KnowledgeBase, Tools
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
    first = set()
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


# the steps of a plan


def chain_steps(ask: Ask, base: KnowledgeBase, tools: Tools) -> list[PlanStep]:
    """Return the steps that follow chains, each side of a comparison alone, or none where fields answer.

    Where documents have typed fields, a chain joins in for words of the question that no field accounts for. A plain
    search runs next to each chain; ``merging`` weighs what both find.
    """
    intent = ask.decision["query_intent"]
    question = ask.decision.get("question")
    typed = any(field["documents"] for field in base.about()["fields"])
    if CHAIN not in tools or (intent == "compare" and len(ask.names) < 2):
        return []
    if typed and not (question and question["words"] and intent in ("qa", "person")):
        return []
    if not typed and intent in ("recommend", "list") and not ask.names:
        return []
    sides = ask.names[: max(1, ask.settings.max_tasks - 2)] if intent == "compare" else ()
    mentions = question["names"] if question else []
    steps = []
    for number, name in enumerate(sides, start=1):
        query = _without(
            ask.query, [(m["start"], m["end"]) for m in mentions if m["name"] != name]
        )
        steps.append(
            ask.step(f"side_{number}", CHAIN, "plan_side", {"query": query}, about=[name])
        )
    steps = steps or [
        ask.step("chain", CHAIN, "plan_chain", {"query": ask.grounded or ask.query})
    ]
    steps.append(ask.search())
    return [*steps, ask.naive("plan_fallback", steps, condition="if_insufficient")]


def _without(query: str, spans: Iterable[Sequence[int]]) -> str:
    for start, end in sorted(map(tuple, spans), reverse=True):
        query = query[:start] + query[end:]
    return " ".join(query.split())
