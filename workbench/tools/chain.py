"""``chain_exploration``: from what the question names, along titles and shared phrases, to what it asks for.

No model is asked. A path is scored by what of the question it newly covers (``walk.py``), and is evidence itself: the
sentence in which one passage names the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from workbench.language.hops import is_bridge
from workbench.language.names import names_in
from workbench.ports import KnowledgeBase, ToolLog
from workbench.state import RetrievalResult
from workbench.text import language_of
from workbench.tools import evidence
from workbench.tools.asked_words import AskedWords
from workbench.tools.signals import Question, descending, probability
from workbench.tools.tool import Found, FunctionTool, Search
from workbench.tools.walk import STEPS, Chains, Walk, chosen, seeds

ANSWERING = 5
"""Passages that together should hold the words of the question."""


class Input(Search):
    """What ``chain_exploration`` can be asked."""


class Output(Found):
    """What ``chain_exploration`` gives: ``paths`` tell in words how each passage behind the first ones was reached."""

    paths: list[str] = Field(default_factory=list, description="Chains of titles, each with what leads on")


def search(tool_input: Input, knowledge: KnowledgeBase, log: ToolLog) -> Output:
    """The passages of the best chains, in the order in which a set of them covers the question."""
    query = tool_input.query
    with log("link") as detail:
        question = Question.of(query, knowledge)
        bridge = is_bridge(query, names_in(query, [knowledge]), knowledge.lexicon())
        detail |= {**question.linked, "bridge": bridge}
    with log("seeds") as detail:
        words = AskedWords.of(query, knowledge)
        begun = seeds(query, knowledge)
        walk = Walk(words, query, begun, knowledge)
        detail["named"], detail["front"] = list(dict.fromkeys(begun.named.values())), walk.front
    for number in range(1, STEPS + 1):
        with log(f"step {number}") as detail:
            detail["reached"] = walk.step()
            detail["front"] = walk.front
    with log("choose") as detail:
        chains = walk.finish()
        found = chosen(chains, tool_input.top_k)
        detail["looked at"] = chains.looked_at
    with log("calibrate"):
        results = _results(found, chains, words, bridge, knowledge)
    return Output(
        results=results,
        entities=question.entities,
        candidates=evidence.titles(results, without=question.subjects),
        paths=list(dict.fromkeys(r["metadata"]["chain"]["says"] for r in results if "chain" in r["metadata"])),
    )


def _results(
    found: Sequence[tuple[str, float]], chains: Chains, words: AskedWords, bridge: bool, knowledge: KnowledgeBase
) -> list[dict[str, Any]]:
    passages = {p["chunk_id"]: p for p in knowledge.passages([chunk_id for chunk_id, _ in found])}
    held = knowledge.ways.stems([chunk_id for chunk_id, _ in found[:ANSWERING]])
    answered = words.share(frozenset().union(*held.values()))
    signals = [
        {"chain": low, "answered": answered, "place": 1 / place, "bridge": float(bridge)}
        for place, low in enumerate(never_rising([score for _, score in found]), start=1)
    ]
    scores = descending([probability(TOOL.name, seen) for seen in signals])
    results: list[RetrievalResult] = []
    for (chunk_id, _), seen, score in zip(found, signals, scores, strict=True):
        result = evidence.chunk(passages[chunk_id], score, TOOL.name, knowledge.name, seen)
        results.append(with_path(result, chunk_id, chains))
    return evidence.ranked(results, len(results))


def never_rising(scores: Sequence[float]) -> list[float]:
    """The scores, each at most the one before: what a set is chosen for may rise, and the order stands."""
    low, found = float("inf"), []
    for score in scores:
        low = min(low, score)
        found.append(max(0.0, low))
    return found


def with_path(result: RetrievalResult, chunk_id: str, chains: Chains) -> RetrievalResult:
    """The result with the way to its passage, if one leads there."""
    steps = chains.path(chunk_id)
    if not steps:
        return result
    told = [
        {
            "from": step.parent,
            "to": reached,
            "by": step.by,
            "surface": step.surface,
            "sentence": step.sentence,
            "says": says(chains.titles[step.parent], step.by, step.surface, chains.titles[reached], step.sentence),
        }
        for reached, step in steps
    ]
    chain = {"says": " → ".join(step["says"] for step in told), "steps": told}
    return {**result, "metadata": {**result["metadata"], "chain": chain}}


_SAYS = {
    ("en", "title"): "{parent} names {child} (“{sentence}”)",
    ("en", "named by"): "{parent} is named by {child} (“{sentence}”)",
    ("en", "phrase"): "{parent} shares “{surface}” with {child} (“{sentence}”)",
    ("zh", "title"): "{parent}提到{child}（“{sentence}”）",
    ("zh", "named by"): "{child}提到{parent}（“{sentence}”）",
    ("zh", "phrase"): "{parent}与{child}都提到“{surface}”（“{sentence}”）",
}
_LONGEST = 200


def says(parent: str, by: str, surface: str, child: str, sentence: str) -> str:
    """A step of a path in words, in the language of its sentence.

    >>> says("Ride", "title", "Lao She", "Lao She", "Ride is a play by Lao She.")
    'Ride names Lao She (“Ride is a play by Lao She.”)'
    """
    short = sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST]}…"
    return _SAYS[language_of(sentence), by].format(parent=parent, surface=surface, child=child, sentence=short)


TOOL = FunctionTool(
    name="chain_exploration",
    description="Several hops: along the titles and names by which passages lead to one another; the path is shown.",
    input_schema=Input,
    output_schema=Output,
    function=search,
    calibration="Logistic in the score of the chain, its place, and how much of the question the best five cover.",
)
