"""``pagerank``: a walk over passages and the names in them, from what the question names and what is like it.

Personalised PageRank (Haveliwala 2002) as HippoRAG 2 asks it: the walk begins at the names of the question, the rarer
the more often, at the passages that are like it, and at the names that their sentences bring in where they say what is
asked ("written by Mara Velden", where the author is); it is found where much of all comes together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from workbench.knowledge.names.entities import document_entity
from workbench.ports import KnowledgeBase, Passage, Reached, ToolLog
from workbench.state import RetrievalResult
from workbench.text import fold, language_of, sentences
from workbench.tools import evidence
from workbench.tools.asked_words import AskedWords, stems
from workbench.tools.signals import Question, descending, probability
from workbench.tools.tool import Found, FunctionTool, Search
from workbench.tools.walk import Seeds, bridges, seeds

BEGINNINGS = 40
"""Passages like the question at which the walk begins."""
NAMES = 0.3
"""The part of the other beginnings that lies at the names of the question, when it names something."""
STATED, READ = 0.6, 2
"""The part that lies at names which the best passages bring in where they say what is asked; and how many are read."""
SHARP = 4.0
"""The power of a passage's likeness that it begins with: the best ones count for more."""
LIKE = 0.5
"""What the likeness of a passage counts beside its place in the walk."""
ANSWERING = 5
"""Passages that together should hold the words of the question."""


class Input(Search):
    """What ``pagerank`` can be asked."""

    entities: list[str] = Field(default_factory=list, description="Further names at which the walk begins")
    damping: float = Field(0.5, gt=0, lt=1, description="How often the walk goes on, and does not begin anew")


class Output(Found):
    """What ``pagerank`` gives: ``paths`` tell in words how the walk came to each passage that it was led to."""

    paths: list[str] = Field(default_factory=list, description="Ways of passages and the names that bind them")


def search(tool_input: Input, knowledge: KnowledgeBase, log: ToolLog) -> Output:
    """The passages where the walk is found most often."""
    query = tool_input.query
    with log("link") as detail:
        question = Question.of(query, knowledge, tool_input.entities)
        detail |= question.linked
    with log("seeds") as detail:
        begun = seeds(query, knowledge)
        said = stated(query, begun, knowledge)
        passages, names = beginnings(question, begun, said)
        detail["passages"], detail["names"] = len(passages), {i: round(w, 4) for i, w in names.items()}
    with log("walk", damping=tool_input.damping) as detail:
        reached = knowledge.spread(passages, names, tool_input.damping, max(BEGINNINGS, tool_input.top_k))
        detail["reached"] = len(reached)
    with log("choose") as detail:
        chosen = _chosen(reached, begun)[: tool_input.top_k]
        detail["led to"] = sum(len(one["way"]) > 1 for one, _ in chosen)
    with log("calibrate"):
        results = _results(chosen, question, query, knowledge)
    return Output(
        results=results,
        entities=question.entities,
        candidates=evidence.titles(results, without=question.subjects),
        paths=list(dict.fromkeys(r["metadata"]["chain"]["says"] for r in results if "chain" in r["metadata"])),
    )


def beginnings(
    question: Question, begun: Seeds, said: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """How often the walk begins at passages and at names: a name by how rare it is, a passage by how like it is.

    A title of which nothing but the words are known begins at the documents of that title.
    """
    best = begun.best()[:BEGINNINGS]
    like = {i: begun.score[i] ** SHARP for i in best if begun.score[i] > 0}
    named = {name.entity_id: name.weight for name in question.named if name.weight > 0}
    heavy = max(named.values(), default=1.0)
    named = {document_entity(doc_id): heavy for doc_id in begun.named} | named
    told = STATED if said else 0.0
    weight = (1 - told) * (NAMES if named else 0.0)
    names = Counter(_shares(named, weight))
    names.update(_shares(said, told))
    return _shares(like, 1 - told - weight), dict(names)


def stated(query: str, begun: Seeds, knowledge: KnowledgeBase) -> dict[str, float]:
    """The documents that the best passages, one a title, name where they say what is asked, by how much they say."""
    covered = frozenset().union(*map(stems, begun.named.values()))
    left = AskedWords.of(query, knowledge).left(covered)
    titles: dict[str, Passage] = {}
    for passage in knowledge.passages(begun.best()[: READ * 4]):
        titles.setdefault(fold(passage["title"]), passage)
    found: dict[str, float] = {}
    for passage in list(titles.values())[:READ]:
        for bridge in bridges([passage], left, knowledge):
            for doc_id in sorted(bridge.doc_ids - {passage["doc_id"]}):
                entity_id, worth = document_entity(doc_id), begun.score[passage["chunk_id"]] * bridge.cover
                found[entity_id] = max(worth, found.get(entity_id, 0.0))
    return {entity_id: worth for entity_id, worth in found.items() if worth > 0}


def _shares(weights: Mapping[str, float], whole: float) -> dict[str, float]:
    total = math.fsum(weights.values())
    return {i: whole * weight / total for i, weight in weights.items()} if total else {}


def _chosen(reached: Sequence[Reached], begun: Seeds) -> list[tuple[Reached, float]]:
    """What was reached, by its share of the best and its likeness to the question, best first."""
    most = max((one["probability"] for one in reached), default=1.0)
    like = max(begun.score.values(), default=0.0) or 1.0
    worth = {
        one["chunk_id"]: (1 - LIKE) * one["probability"] / most
        + LIKE * begun.score.get(one["chunk_id"], begun.rest) / like
        for one in reached
    }
    ranked = sorted(reached, key=lambda one: (-round(worth[one["chunk_id"]], 9), one["chunk_id"]))
    return [(one, worth[one["chunk_id"]]) for one in ranked]


def _results(
    chosen: Sequence[tuple[Reached, float]], question: Question, query: str, knowledge: KnowledgeBase
) -> list[dict[str, Any]]:
    words = AskedWords.of(query, knowledge)
    held = knowledge.ways.stems([one["chunk_id"] for one, _ in chosen[:ANSWERING]])
    answered = words.share(frozenset().union(*held.values()))
    met = [i for one, _ in chosen for i in (one["chunk_id"], *(i for kind, i in one["way"] if kind == "passage"))]
    passages = {p["chunk_id"]: p for p in knowledge.passages(list(dict.fromkeys(met)))}
    signals = [
        {
            "rank": worth,
            "covered": question.signals(passages[one["chunk_id"]])["covered"],
            "answered": answered,
            "place": 1 / place,
        }
        for place, (one, worth) in enumerate(chosen, start=1)
    ]
    scores = descending([probability(TOOL.name, seen) for seen in signals])
    results: list[RetrievalResult] = []
    for (one, _), seen, score in zip(chosen, signals, scores, strict=True):
        result = evidence.chunk(passages[one["chunk_id"]], score, TOOL.name, knowledge.name, seen)
        steps = list(_steps(one["way"], passages, knowledge))
        if steps:
            chain = {"says": " → ".join(step["says"] for step in steps), "steps": steps}
            result = {**result, "metadata": {**result["metadata"], "chain": chain}}
        results.append(result)
    return evidence.ranked(results, len(results))


def _steps(
    way: Sequence[tuple[str, str]], passages: Mapping[str, Passage], knowledge: KnowledgeBase
) -> Iterator[dict[str, str]]:
    """Each passage of a way with the name that leads there, and the sentence that says it."""
    before: Passage | None = None
    by: tuple[str, str] | None = None
    for kind, i in way:
        if kind != "passage":
            by = kind, i
        elif i in passages:
            if by and (before or by[1] != document_entity(passages[i]["doc_id"])):
                yield _step(before, by, passages[i], knowledge)
            before = passages[i]


def _step(before: Passage | None, by: tuple[str, str], reached: Passage, knowledge: KnowledgeBase) -> dict[str, str]:
    entity = knowledge.entity(by[1]) if by[0] == "entity" else None
    name, about = (entity["name"], entity["doc_id"]) if entity else (by[1], None)
    writings = [name, *(entity["aliases"] if entity else ())]
    if before is None:
        how, told = "asked", _saying(reached["text"], writings)
    elif about == reached["doc_id"] or fold(name) == fold(reached["title"]):
        how, told = "title", _saying(before["text"], writings)
    elif about == before["doc_id"] or fold(name) == fold(before["title"]):
        how, told = "named by", _saying(reached["text"], writings)
    else:
        how, told = "phrase", _saying(before["text"], writings)
    parent = before["title"] if before else name
    return {
        "from": before["chunk_id"] if before else "",
        "to": reached["chunk_id"],
        "by": how,
        "surface": name,
        "sentence": told,
        "says": says(parent, how, name, reached["title"], told),
    }


def _saying(text: str, writings: Sequence[str]) -> str:
    """The first sentence that holds a name, or nothing: a name may be stated by a field."""
    folded = [fold(name) for name in writings if name]
    return next((s for s in sentences(text) if any(name in fold(s) for name in folded)), "")


_SAYS = {
    ("en", "asked"): "the question names {name}, which leads to {child}",
    ("en", "title"): "{parent} names {child}",
    ("en", "named by"): "{parent} is named by {child}",
    ("en", "phrase"): "{parent} shares “{name}” with {child}",
    ("zh", "asked"): "问题提到{name}，由此到{child}",
    ("zh", "title"): "{parent}提到{child}",
    ("zh", "named by"): "{child}提到{parent}",
    ("zh", "phrase"): "{parent}与{child}都提到“{name}”",
}
_QUOTED = {"en": "{said} (“{sentence}”)", "zh": "{said}（“{sentence}”）"}
_LONGEST = 200


def says(parent: str, how: str, name: str, child: str, sentence: str) -> str:
    """A step of a way in words, in the language of its sentence.

    >>> says("Ride", "title", "Lao She", "Lao She", "Ride is by Lao She.")
    'Ride names Lao She (“Ride is by Lao She.”)'
    >>> says("茶馆", "phrase", "老舍", "四世同堂", "")
    '茶馆与四世同堂都提到“老舍”'
    """
    language = language_of(sentence or parent)
    said = _SAYS[language, how].format(parent=parent, name=name, child=child)
    short = sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST]}…"
    return _QUOTED[language].format(said=said, sentence=short) if sentence else said


TOOL = FunctionTool(
    name="pagerank",
    description="Many hops at once: where walks from the question's names and likest passages come together.",
    input_schema=Input,
    output_schema=Output,
    function=search,
    calibration="Logistic in how often the walk is there, its place, and what it and the best five cover.",
)
