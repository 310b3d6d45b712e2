"""``chain_exploration``: from what the question names, along titles and shared phrases, to what it asks for.

No model is asked. A path is scored by what of the question it newly covers (``walk.py``), and is evidence itself: the
sentence in which one passage names the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from pydantic import Field

from workbench.ports import KnowledgeBase, ToolLog
from workbench.state import RetrievalResult
from workbench.text import language_of
from workbench.tools import evidence
from workbench.tools.chain_walk import Chains, explored
from workbench.tools.query_terms import AskedWords
from workbench.tools.scoring import Question, descending, probability
from workbench.tools.tool import Found, FunctionTool, Search

ANSWERING = 5
"""Passages that together should hold the words of the question."""


class Input(Search):
    """What ``chain_exploration`` can be asked."""


class Output(Found):
    """What ``chain_exploration`` gives: ``paths`` tell in words how each passage behind the first ones was reached."""

    paths: list[str] = Field(default_factory=list, description="Chains of titles, each with what leads on")


def search(tool_input: Input, knowledge: KnowledgeBase, log: ToolLog) -> Output:
    """The passages of the best chains."""
    query = tool_input.query
    with log("link") as detail:
        question = Question.of(query, knowledge)
        detail |= question.linked
    words = AskedWords.of(query, knowledge)
    chains = explored(query, words, knowledge, log)
    with log("choose") as detail:
        found = never_rising(chains.best(tool_input.top_k))
        detail["looked at"] = len(chains.titles)
    with log("calibrate"):
        seen = [(i, {"chain": score}) for i, score in found]
        results = in_order(TOOL.name, seen, words, knowledge, lambda chunk_id: path_of(chunk_id, chains))
    return Output(**evidence.answer(question, results, len(results)), paths=paths_of(results))


def never_rising(found: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Passages with scores of at most the one before, and 0: what a set is chosen for may rise, and the order stands.

    >>> never_rising([("a", 0.5), ("b", 0.7), ("c", -0.1)])
    [('a', 0.5), ('b', 0.5), ('c', 0.0)]
    """
    lowest = accumulate((max(0.0, score) for _, score in found), min)
    return list(zip((i for i, _ in found), lowest, strict=True))


def in_order(
    tool: str,
    found: Sequence[tuple[str, Mapping[str, float]]],
    words: AskedWords,
    knowledge: KnowledgeBase,
    about: Callable[[str], dict[str, Any]],
) -> list[RetrievalResult]:
    """Passages as evidence whose order stands, whatever their probabilities.

    Args:
        tool: by whose model they are judged: in these signals, their place, and what the first of them say together.
        found: ids of passages, each with what is seen of it.
        words: of the question.
        knowledge: where the passages are.
        about: what else is told of a passage, in its metadata.
    """
    ids = [chunk_id for chunk_id, _ in found]
    answered = words.share(frozenset().union(*knowledge.ways.stems(ids[:ANSWERING]).values()))
    signals = [{**seen, "answered": answered, "place": 1 / place} for place, (_, seen) in enumerate(found, start=1)]
    scores = descending([probability(tool, seen) for seen in signals])
    results = []
    for passage, seen, score in zip(knowledge.passages(ids), signals, scores, strict=True):
        result = evidence.chunk(passage, score, tool, knowledge.name, seen)
        result["metadata"] |= about(passage["chunk_id"])
        results.append(result)
    return results


def path_of(chunk_id: str, chains: Chains) -> dict[str, Any]:
    """What the metadata of a passage says of the chain that leads there, if one does."""
    titles = chains.titles
    return chain_of(
        [
            {
                "from": step.parent,
                "to": reached,
                "by": step.by,
                "surface": step.surface,
                "sentence": step.sentence,
                "says": says(titles[step.parent], step.by, step.surface, titles[reached], step.sentence),
            }
            for reached, step in chains.path(chunk_id)
        ]
    )


def chain_of(steps: Sequence[dict[str, str]]) -> dict[str, Any]:
    """Steps as metadata, with what all of them say."""
    return {"chain": {"says": " → ".join(step["says"] for step in steps), "steps": steps}} if steps else {}


def paths_of(results: Sequence[RetrievalResult]) -> list[str]:
    """What the chains of results say, each once."""
    return list(dict.fromkeys(r["metadata"]["chain"]["says"] for r in results if "chain" in r["metadata"]))


_SAYS = {
    ("en", "asked"): "the question names {surface}, which leads to {child}",
    ("en", "title"): "{parent} names {child}",
    ("en", "named by"): "{parent} is named by {child}",
    ("en", "phrase"): "{parent} shares “{surface}” with {child}",
    ("zh", "asked"): "问题提到{surface}，由此到{child}",
    ("zh", "title"): "{parent}提到{child}",
    ("zh", "named by"): "{child}提到{parent}",
    ("zh", "phrase"): "{parent}与{child}都提到“{surface}”",
}
_QUOTED = {"en": "{said} (“{sentence}”)", "zh": "{said}（“{sentence}”）"}
_LONGEST = 200


def says(parent: str, by: str, surface: str, child: str, sentence: str) -> str:
    """A step of a path in words, in the language of its sentence.

    >>> says("Ride", "title", "Lao She", "Lao She", "Ride is a play by Lao She.")
    'Ride names Lao She (“Ride is a play by Lao She.”)'
    >>> says("茶馆", "phrase", "老舍", "四世同堂", "")
    '茶馆与四世同堂都提到“老舍”'
    """
    language = language_of(sentence or parent)
    said = _SAYS[language, by].format(parent=parent, surface=surface, child=child)
    short = sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST]}…"
    return _QUOTED[language].format(said=said, sentence=short) if sentence else said


TOOL = FunctionTool(
    name="chain_exploration",
    description="Several hops: along the titles and names by which passages lead to one another; the path is shown.",
    input_schema=Input,
    output_schema=Output,
    function=search,
    calibration="Logistic in the score of the chain, its place, and how much of the question the best five cover.",
)
