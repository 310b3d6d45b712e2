"""``global_search``: the communities that a question touches, and the candidates in and beyond them by likeness.

Its probability: logistic in the cosine to what is named and rare traits shared; a community is
worth its best three.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

from pydantic import Field

from workbench.ports import Community, KnowledgeBase, Passage, ToolLog
from workbench.state import Hits, Json, unique
from workbench.tools import evidence
from workbench.tools.scoring import Question, field_values, probability, rrf
from workbench.tools.tool import FunctionTool, Search, ToolOutput


class GlobalSearchInput(Search):
    """The input of ``global_search``."""

    entities: list[str] = Field(default_factory=list)
    """Names whose communities are wanted"""
    candidates: list[str] = Field(default_factory=list)
    """Titles of an earlier step: only these are ranked"""


class GlobalSearchOutput(ToolOutput):
    """The output of ``global_search``: ``candidates`` are distinct titles without those in the query, best first."""

    communities: list[str] = Field(default_factory=list)
    """Titles of the communities, best first"""


def search(tool_input: GlobalSearchInput, knowledge: KnowledgeBase, log: ToolLog) -> Json:
    """Return passages of the candidates given (else of what is near the query) by likeness, and their communities."""
    # passages that are weighed, at most
    most_pool = 100
    with log("link") as detail:
        question = Question.read(tool_input.query, knowledge, tool_input.entities)
        seeds = knowledge.passages(doc_ids=question.subjects)
        documents = _documents(tool_input.candidates, knowledge)
        detail.update(entities=question.entities, candidates=len(documents))
    with log("near", k=most_pool) as detail:
        dense = knowledge.search(
            "meaning", " ".join([question.text, *(p["text"] for p in seeds[:2])]), 2 * most_pool
        )
        words = knowledge.search("words", question.text, most_pool)
        order = [i for i, _ in rrf({"dense": dense, "bm25": words})]
        detail["hits"] = len(order)
    with log("communities") as detail:
        chosen = _touched(question, documents, knowledge.passages(order[:most_pool]), knowledge)
        detail["communities"] = len(chosen)
    with log("candidates", seeds=len(seeds)) as detail:
        pool = knowledge.passages(doc_ids=documents) or knowledge.passages(order[:most_pool])
        weighed = list(
            _weighed(
                question, seeds, [p for p in pool if p["doc_id"] not in question.subjects], dense
            )
        )
        detail["weighed"] = len(weighed)
    passages = [
        evidence.chunk(p, score, TOOL.name, knowledge.name, seen) for p, score, seen in weighed
    ]
    summaries = [
        evidence.community(c, _community_score(c, weighed), TOOL.name, knowledge.name)
        for c in chosen
    ]
    answer = evidence.answer(question, [*passages, *summaries], tool_input.top_k)
    return {**answer, "communities": [c["title"] for c in chosen]}


def shared(
    seeds: Sequence[Collection[str]], candidates: Sequence[Collection[str]]
) -> list[float]:
    """Return how much of the seeds' traits each of the others has, 0 to 1; a trait that few others have weighs more.

    >>> shared([{"Lao She", "Drama"}], [{"Lao She", "Drama"}, {"Drama"}, {"Drama", "War"}, {"War"}])
    [1.0, 0.37, 0.37, 0.0]
    """
    wanted = sorted({trait for seed in seeds for trait in seed})
    weight = {
        t: math.log(1 + len(candidates) / (0.5 + sum(t in traits for traits in candidates)))
        for t in wanted
    }
    total = sum(weight.values()) or 1.0
    return [
        round(sum(weight[t] for t in wanted if t in traits) / total, 3) for traits in candidates
    ]


def _weighed(
    question: Question,
    seeds: Sequence[Passage],
    pool: Sequence[Passage],
    dense: Hits,
) -> Iterator[tuple[Passage, float, dict[str, float]]]:
    """Each passage, its probability and why: its likeness to what the question names, else the question's own words."""
    overlap = shared([_traits(p) for p in seeds], [_traits(p) for p in pool])
    for passage, share, seen in zip(
        pool, overlap, question.signals_in(pool, dense=dense), strict=True
    ):
        seen |= {"traits": share} if seeds else {}
        yield passage, probability("global_search" if seeds else "naive_search", seen), seen


def _touched(
    question: Question,
    documents: Sequence[str],
    best: Sequence[Passage],
    knowledge: KnowledgeBase,
) -> list[Community]:
    """Return the communities with most of what is named, given and found: names count 1, a found passage by rank."""
    names = dict.fromkeys(n.entity_id for n in question.named)
    gained = dict.fromkeys([*documents, *question.subjects], 1.0)
    for rank, passage in enumerate(best, start=1):
        gained.setdefault(passage["doc_id"], 1 / rank)

    def touched(community: Community) -> float:
        share = sum(gained.get(doc_id, 0.0) for doc_id in community["doc_ids"])
        return round(share + sum(member in names for member in community["members"]), 9)

    communities = knowledge.around(
        "communities", [*names, *(f"doc:{doc_id}" for doc_id in gained)]
    )
    scored = [(touched(c), c) for c in communities]
    scored.sort(key=lambda pair: (-pair[0], pair[1]["community_id"]))
    return [c for score, c in scored[:5] if score > 0]


def _documents(names: Sequence[str], knowledge: KnowledgeBase) -> list[str]:
    """Return ids of the documents that are about these names, in this order."""
    entities = [knowledge.entity(name) for name in names]
    return unique(e["doc_id"] for e in entities if e and e["doc_id"])


def _community_score(
    community: Community, weighed: Sequence[tuple[Passage, float, dict[str, float]]]
) -> float:
    """Return a community is as relevant as its three best passages are on average."""
    inside = sorted(
        (score for p, score, _ in weighed if p["doc_id"] in community["doc_ids"]), reverse=True
    )[:3]
    return round(sum(inside) / 3, 6)


def _traits(passage: Passage) -> set[str]:
    """Return what a document can share with another: its typed values, but for numbers."""
    return {value for value in field_values(passage["fields"]) if not value.isdigit()}


TOOL = FunctionTool(
    name="global_search",
    description="Groups of related things and what is like the things named; ranks candidates of an earlier step.",
    input_schema=GlobalSearchInput,
    output_schema=GlobalSearchOutput,
    function=search,
)
