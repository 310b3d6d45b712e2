"""``hybrid_search``: one pass of the fusion: BM25, vectors and the graph, fused by rank, reranked, calibrated.

Its probability: logistic in the words covered, whose passage it is, BM25, cosine, its lead and
the reranker; given out in the order that ranks best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import Field

from workbench.ports import KnowledgeBase, Passage, ToolLog
from workbench.state import Json, RetrievalResult, unique
from workbench.tools import evidence
from workbench.tools.scoring import (
    LEAD,
    ORDER,
    Question,
    Ranking,
    Strategy,
    descending,
    passages_around,
    probability,
    rrf,
)
from workbench.tools.tool import FunctionTool, Search

RERANKED = 20  # reading more costs more than it finds


class HybridSearchInput(Search):
    """The input of ``hybrid_search``."""

    entities: list[str] = Field(default_factory=list)
    """Further names that are meant"""


def search(tool_input: HybridSearchInput, knowledge: KnowledgeBase, log: ToolLog) -> Json:
    """Return passages on which words, meaning and graph agree; those about a name in the query are always among them.

    It is one pass of the fusion graph (``parts/fusion``), whose nodes are these functions.
    """
    pool = max(LEAD, tool_input.top_k)
    with log("link") as detail:
        question = Question.read(tool_input.query, knowledge, tool_input.entities)
        detail["entities"] = question.entities
    hits = from_texts(question, pool, log) | from_graph(question, pool, log)
    passages = [passage for passage, _ in fuse(question, hits, pool, log)]
    results = rerank(question, passages, hits, log)
    return evidence.answer(question, results, tool_input.top_k)


def from_graph(question: Question, pool: int, log: ToolLog) -> dict[str, Ranking]:
    """``graph``: passages by their place in the knowledge graph, with the reciprocal of it."""
    with log("graph", k=pool) as detail:
        related = passages_around(question, question.knowledge, pool)
        detail["hits"] = len(related)
    return {"graph": [(chunk_id, 1 / place) for place, chunk_id in enumerate(related, start=1)]}


def from_texts(question: Question, pool: int, log: ToolLog) -> dict[str, Ranking]:
    """``bm25`` and ``dense``: passages by their words, and by what they mean."""
    knowledge = question.knowledge
    with log("bm25", k=pool) as detail:
        lexical = knowledge.search("words", question.text, pool)
        detail["hits"] = len(lexical)
    with log("dense", k=pool) as detail:
        dense = knowledge.search("meaning", question.text, pool)
        detail["hits"] = len(dense)
    return {"bm25": lexical, "dense": dense}


def fuse(
    question: Question,
    hits: Mapping[str, Ranking],
    pool: int,
    log: ToolLog,
    strategy: Strategy = rrf,
) -> list[tuple[Passage, float]]:
    """Fuse the passages of all sources into one order; those about a name in the question come first."""
    with log("fuse", strategy=strategy.__name__) as detail:
        own = [p["chunk_id"] for p in question.knowledge.passages(doc_ids=question.subjects)][
            : RERANKED // 2
        ]
        order = dict(strategy(hits))
        detail["distinct"] = len(order)
        passages = question.knowledge.passages(unique([*own, *order])[:pool])
        return [(passage, order.get(passage["chunk_id"], 0.0)) for passage in passages]


def rerank(
    question: Question,
    passages: Sequence[Passage],
    hits: Mapping[str, Ranking],
    log: ToolLog,
    model: str = "",
) -> list[RetrievalResult]:
    """Return the passages read again next to the question, each with the probability that it is relevant."""
    with log("rerank") as detail:
        reread = reranker_scores(question.text, passages, question.knowledge, model)
        detail["reranked"] = len(reread)
    with log("calibrate"):
        return list(_judged(question, passages, hits, reread))


def _judged(
    question: Question,
    passages: Sequence[Passage],
    hits: Mapping[str, Ranking],
    reread: Mapping[str, float],
) -> Iterator[RetrievalResult]:
    """Return the passages in the order of ``worth``, with their probabilities assigned in that order, highest first.

    What ranks best and what is known for certain are seen in different signals: the reranker always has a best one,
    and what the graph leads to need not say the question's words.
    """
    # only where a name in the question has a document does the graph lead from text to text
    led = [i for i, _ in hits.get("graph", [])[:RERANKED]] if question.subjects else []
    soon = {chunk_id: 1 - place / RERANKED for place, chunk_id in enumerate(led)}
    seen = {}
    signals_in = question.signals_in(passages, hits.get("bm25", []), hits.get("dense", []))
    for passage, signals in zip(passages, signals_in, strict=True):
        chunk_id = passage["chunk_id"]
        reranked = reread.get(chunk_id, 0.0)
        more = {
            "reranked": reranked,
            "reread": signals["unread"] * reranked,
            "led": soon.get(chunk_id, 0.0),
        }
        seen[chunk_id] = signals | more
    ranked = sorted(
        passages, key=lambda passage: (-worth(seen[passage["chunk_id"]]), passage["chunk_id"])
    )
    scores = descending(
        sorted((probability(TOOL.name, signals) for signals in seen.values()), reverse=True)
    )
    for passage, score in zip(ranked, scores, strict=True):
        yield evidence.chunk(
            passage, score, TOOL.name, question.knowledge.name, seen[passage["chunk_id"]]
        )


def worth(seen: Mapping[str, float]) -> float:
    """Return what a passage with these signals is worth next to others, to nine digits.

    >>> worth({"covered": 0.5}) < worth({"covered": 0.5, "reread": 0.1})
    True
    """
    return round(sum(weight * seen.get(name, 0.0) for name, weight in ORDER.items()), 9)


def reranker_scores(
    query: str, passages: Sequence[Passage], knowledge: KnowledgeBase, model: str
) -> dict[str, float]:
    """Return the reranker's view of the first ``RERANKED`` passages, 1 for its best and 0 for its worst, by chunk id.

    Without a reranker, or with the model ``none``, the order that is there already is in for it.
    """
    read = passages[:RERANKED]
    texts = [p["text"] for p in read]
    reranks = read and model != "none"
    scores = knowledge.rerank(query, texts, model or "chosen") if reranks else None
    if scores is None:
        scores = [1 / rank for rank, _ in enumerate(read, start=1)]
    low = min(scores, default=0.0)
    high = max(scores, default=0.0)
    return {
        p["chunk_id"]: (s - low) / (high - low) if high > low else 0.5
        for p, s in zip(read, scores, strict=True)
    }


TOOL = FunctionTool(
    name="hybrid_search",
    description="Words, meaning and graph fused by rank and reranked: the best single tool for most questions.",
    input_schema=HybridSearchInput,
    function=search,
)
