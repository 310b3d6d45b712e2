"""``discover``: documents by conditions on their typed fields, in an order; best for the question first.

Its probability: how often the fields are right (0.93, measured against another source), times how
well the words fit.
"""

from __future__ import annotations

from typing import ClassVar, cast

from pydantic import Field

from workbench.plans import Frozen, format_condition
from workbench.ports import KnowledgeBase, Passage, ToolLog
from workbench.state import Condition, Json, Sort
from workbench.tools import evidence
from workbench.tools.scoring import Question, probability
from workbench.tools.tool import FunctionTool, Search, ToolOutput


class SortInput(Frozen):
    """By which field the documents are ordered."""

    field: str
    """A field of the documents"""
    descending: bool = True
    """The highest, latest or last first"""


class DiscoverInput(Search):
    """The input of ``discover``."""

    restricts: ClassVar[bool] = False

    query: str = ""
    """What matters beyond the conditions; empty: in the order that is asked for"""
    sort: SortInput | None = None
    """The order; best for the query, else newest first, if none; old and new evenly if nothing is asked"""
    count_by: str = ""
    """A field: count the documents by its values too"""


class DiscoverOutput(ToolOutput):
    """The output of ``discover``: ``candidates`` are the titles, best first."""

    total: int = 0
    """How many documents hold"""
    counts: dict[str, int] = Field({})
    """Value of the field -> documents, most first"""


def search(tool_input: DiscoverInput, knowledge: KnowledgeBase, log: ToolLog) -> DiscoverOutput:
    """Return the first passage of each document that holds for the conditions."""
    conditions = [cast(Condition, condition.model_dump()) for condition in tool_input.conditions]
    sort = cast(Sort, tool_input.sort.model_dump()) if tool_input.sort else None
    ordered: Json = {"sort": sort} if sort else {}
    with log("select", conditions=[*map(format_condition, conditions)], **ordered) as detail:
        doc_ids = knowledge.select(conditions, sort)
        detail["documents"] = total = len(doc_ids)
    # old and new ones, evenly: nothing prefers the newest
    if not (conditions or sort or tool_input.query):
        doc_ids = doc_ids[:: max(1, len(doc_ids) // tool_input.top_k)]
    question = Question.read(tool_input.query, knowledge)
    wanted = bool(tool_input.query) and not sort
    order = sort["field"] if sort else "newest"
    with log("rank", by="query" if wanted else order):
        chosen = (
            _by_query(doc_ids, question, knowledge)
            if wanted
            else _first_passages(doc_ids, tool_input.top_k, knowledge)
        )
        # the score of a document when the query asks for nothing in particular
        prior = 1.0 if conditions or sort or wanted else 0.5
        pieces = [
            evidence.chunk(p, fit(s * prior, bool(conditions)), TOOL.name, knowledge.name)
            for p, s in chosen
        ]
    results = evidence.ranked(pieces, tool_input.top_k)
    count_by = tool_input.count_by
    return DiscoverOutput(
        results=results,
        entities=question.entities,
        candidates=evidence.titles(results),
        total=total,
        counts=dict(knowledge.select(conditions, count=count_by)) if count_by else {},
    )


def _first_passages(
    doc_ids: list[str], top_k: int, knowledge: KnowledgeBase
) -> list[tuple[Passage, float]]:
    """Return the documents' first passages in the order given, each a little less probable, so that the order stays."""
    first = [p for p in knowledge.passages(doc_ids=doc_ids[:top_k]) if p["position"] == 0]
    return [
        (passage, 1 - 0.05 * place / max(1, len(first) - 1))
        for place, passage in enumerate(first)
    ]


def _by_query(
    doc_ids: list[str], question: Question, knowledge: KnowledgeBase
) -> list[tuple[Passage, float]]:
    """Return best passage of each document for the question, with its probability before the filters are counted in."""
    # documents whose words are read
    read = 100
    # how deep into the vectors the filtered documents are looked for
    hits = knowledge.search("meaning", question.text, 1000)
    wanted = set(doc_ids)
    inside = [chunk_id for chunk_id, _ in hits if chunk_id.rpartition("#")[0] in wanted][:read]
    seen_docs = {chunk_id.rpartition("#")[0] for chunk_id in inside}
    rest = [doc_id for doc_id in doc_ids if doc_id not in seen_docs][: read - len(inside)]
    best: dict[str, tuple[Passage, float]] = {}
    passages = [*knowledge.passages(inside), *knowledge.passages(doc_ids=rest)]
    for passage, seen in zip(passages, question.signals_in(passages, dense=hits), strict=True):
        score = probability("naive_search", seen)
        if passage["doc_id"] not in best or score > best[passage["doc_id"]][1]:
            best[passage["doc_id"]] = (passage, score)
    return list(best.values())


def fit(score: float, filtered: bool) -> float:
    """Return the probability of a document that holds for its filters, given the probability ``score`` of its words.

    Holding for what was asked is most of being relevant; the words decide the rest, and everything without filters.

    >>> fit(1.0, filtered=False), fit(1.0, filtered=True), fit(0.0, filtered=True)
    (1.0, 0.93, 0.558)
    """
    # Of 6,599 documents that MetaQA has too, this share has exactly the same values there (data/README).
    return round(0.93 * (0.6 + 0.4 * score), 6) if filtered else score


TOOL = FunctionTool(
    name="discover",
    description="Documents by conditions on their typed fields, sorted and counted; for lists and recommendations.",
    input_schema=DiscoverInput,
    output_schema=DiscoverOutput,
    function=search,
)
