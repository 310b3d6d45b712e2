"""``pagerank``: a walk over passages and the names in them, from what the question names and what is like it.

Personalised PageRank (Haveliwala 2002) as HippoRAG 2 asks it: the walk begins at the names of the question, the rarer
the more often, at the passages that are like it, and at the names that their sentences bring in where they say what is
asked ("written by Mara Velden", where the author is); it is found where much of all comes together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pydantic import Field

from workbench.knowledge.names.entities import document_entity
from workbench.ports import KnowledgeBase, Passage, Reached, ToolLog
from workbench.state import RetrievalResult
from workbench.text import fold, sentences
from workbench.tools import evidence
from workbench.tools.chain import chain_of, in_order, paths_of, says
from workbench.tools.chain_walk import Seeds, bridges, seeds
from workbench.tools.query_terms import AskedWords, stems
from workbench.tools.scoring import Question
from workbench.tools.tool import Found, FunctionTool, Search

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
    return Output(**evidence.answer(question, results, len(results)), paths=paths_of(results))


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
) -> list[RetrievalResult]:
    ways = {one["chunk_id"]: one["way"] for one, _ in chosen}
    met = [*ways, *(i for way in ways.values() for kind, i in way if kind == "passage")]
    passages = {p["chunk_id"]: p for p in knowledge.passages(list(dict.fromkeys(met)))}
    covered = {i: question.signals(passages[i])["covered"] for i in ways}
    seen = [(one["chunk_id"], {"rank": worth, "covered": covered[one["chunk_id"]]}) for one, worth in chosen]
    words = AskedWords.of(query, knowledge)
    return in_order(TOOL.name, seen, words, knowledge, lambda i: chain_of(list(_hops(ways[i], passages, knowledge))))


def _hops(
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
                yield _hop(before, by, passages[i], knowledge)
            before = passages[i]


def _hop(before: Passage | None, by: tuple[str, str], reached: Passage, knowledge: KnowledgeBase) -> dict[str, str]:
    """One hop of the walk: from which passage to which, by which name, and the sentence that says so."""
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


TOOL = FunctionTool(
    name="pagerank",
    description="Many hops at once: where walks from the question's names and likest passages come together.",
    input_schema=Input,
    output_schema=Output,
    function=search,
    calibration="Logistic in how often the walk is there, its place, and what it and the best five cover.",
)
