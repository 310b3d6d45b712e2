"""``chain_exploration``: from what the question names, along titles and shared phrases, to what it asks for.

No model is asked. A path is scored by what of the question it newly covers (``chain_walk.py``), and is
evidence itself: the sentence in which one passage names the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from workbench.ports import KnowledgeBase, ToolLog
from workbench.state import Json, RetrievalResult
from workbench.text import detect_language
from workbench.tools import evidence
from workbench.tools.chain_walk import STEPS, Walk
from workbench.tools.scoring import Question, descending, probability
from workbench.tools.tool import FunctionTool, Search, ToolOutput

ANSWERING = 5
"""Passages that together should hold the words of the question."""


class ChainOutput(ToolOutput):
    """The output of ``chain_exploration``."""

    paths: list[str] = Field(default_factory=list, description="Chains of titles, each with what leads on")


def search(tool_input: Search, knowledge: KnowledgeBase, log: ToolLog) -> Json:
    """Return the passages of the best chains; their order stands, whatever their probabilities."""
    query = tool_input.query
    with log("link") as detail:
        question = Question.read(query, knowledge)
        detail["entities"] = question.entities
    with log("seeds") as detail:
        walk = Walk(query, knowledge)
        detail["named"], detail["front"] = walk.named, walk.front
    for number in range(1, STEPS + 1):
        with log(f"step {number}") as detail:
            detail["reached"], detail["front"] = walk.step(), walk.front
    with log("choose") as detail:
        ids = walk.best(tool_input.top_k)
        walk.read(ids)
        detail["looked at"] = len(walk.titles)
    with log("calibrate"):
        answered = walk.answered(ids[:ANSWERING])
        signals = [
            {"chain": max(0.0, walk.score[i]), "answered": answered, "place": 1 / place}
            for place, i in enumerate(ids, start=1)
        ]
        scores = descending([probability(TOOL.name, seen) for seen in signals])
        results = []
        for passage, seen, score in zip(knowledge.passages(ids), signals, scores, strict=True):
            result = evidence.chunk(passage, score, TOOL.name, knowledge.name, seen)
            path = walk.path(passage["chunk_id"])
            result["metadata"] |= chain_metadata([chain_step(target, *step, walk.titles) for target, step in path])
            results.append(result)
    return {**evidence.answer(question, results, len(results)), "paths": chain_paths(results)}


def chain_step(
    target: str, source: str, by: str, surface: str, sentence: str, titles: Mapping[str, str]
) -> dict[str, str]:
    """Return a step of a path from one passage to another, with the words for it."""
    words = says(titles[source], by, surface, titles[target], sentence)
    return {"from": source, "to": target, "by": by, "surface": surface, "sentence": sentence, "says": words}


def chain_metadata(steps: Sequence[dict[str, str]]) -> Json:
    """Return steps as metadata, with what all of them say."""
    return {"chain": {"says": " → ".join(step["says"] for step in steps), "steps": steps}} if steps else {}


def chain_paths(results: Sequence[RetrievalResult]) -> list[str]:
    """Return what the chains of results say, each once."""
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
    """Return a step of a path in words, in the language of its sentence.

    >>> says("Ride", "title", "Lao She", "Lao She", "Ride is a play by Lao She.")
    'Ride names Lao She (“Ride is a play by Lao She.”)'
    >>> says("茶馆", "phrase", "老舍", "四世同堂", "")
    '茶馆与四世同堂都提到“老舍”'
    """
    language = detect_language(sentence or parent)
    words = _SAYS[language, by].format(parent=parent, surface=surface, child=child)
    short = sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST]}…"
    return _QUOTED[language].format(said=words, sentence=short) if sentence else words


TOOL = FunctionTool(
    name="chain_exploration",
    description="Several hops: along the titles and names by which passages lead to one another; the path is shown.",
    output_schema=ChainOutput,
    function=search,
    calibration="Logistic in the score of the chain, its place, and how much of the question the best five cover.",
)
