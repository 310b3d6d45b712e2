"""``discover``: documents by typed fields (years, director, cast, genre, country), best for the question first."""

from __future__ import annotations

import re
from typing import cast

from pydantic import BaseModel, ConfigDict, Field

from workbench.context import KnowledgeBase, Passage, ToolLog
from workbench.state import Filters
from workbench.text import fold
from workbench.tools import evidence
from workbench.tools.calibration import FIELDS_ARE_RIGHT, ordered, probability
from workbench.tools.signals import Question, both, content_terms, cosine_signals
from workbench.tools.tool import Found, FunctionTool, Search

NEAR = 1000  # how deep into the vectors the filtered documents are looked for
READ = 100  # documents whose words are read
ANYTHING = 0.5  # what a document is worth to somebody who asks for nothing in particular

_FILTERING = re.compile(
    r"\b(?:films?|movies?|pictures?|works?|direct(?:ed|or|ors|ing|s)?|ma[dk]es?|shot|stars?|starring|starred|cast|"
    r"actors?|actress(?:es)?|act(?:ed|s|ing)?|appear(?:ed|s)?|features?|featuring|played|genres?|countr(?:y|ies)|"
    r"released?|came out|after|before|since|until|between|from|during|years?|decades?|\d+s|newer|older|later|earlier|"
    r"than|newest|latest|new|old|recent|good|best|great|some)\b|"
    r"电影|影片|片子|片|作品|导演|执导|拍摄|拍|主演|出演|参演|演员|演|上映|发行|以后|之后|以前|之前|以来|年代|年间|年|期间|之间|从|到|至|"
    r"后|前|新|老|最近|近年|最新|好看|好|部|所有|全部|一些|过",
    re.IGNORECASE,
)  # words that ask for years, people and films as such: the filters already hold what they say


class FilterInput(BaseModel):
    """Typed filters; a document must hold for all of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    year_from: int | None = Field(default=None, description="First year, included")
    year_to: int | None = Field(default=None, description="Last year, included")
    director: str | None = Field(default=None, description="A director's name, in any language the documents know")
    cast: str | None = Field(default=None, description="An actor's name")
    genre: str | None = Field(default=None, description="A genre, as the documents write it")
    country: str | None = Field(default=None, description="A country, as the documents write it")


class Input(Search):
    """What ``discover`` can be asked."""

    query: str = Field("", description="What matters beyond the filters; empty: the newest first")
    filters: FilterInput = Field(default=FilterInput(), description="What the documents' fields must hold")


class Output(Found):
    """What ``discover`` gives: ``candidates`` are the titles, best first."""


def search(tool_input: Input, knowledge: KnowledgeBase, log: ToolLog) -> Output:
    """The first passage of each document that the filters let through."""
    filters = _canonical(tool_input.filters, knowledge)
    with log("select", **filters) as detail:
        doc_ids = knowledge.select(filters)
        detail["documents"] = len(doc_ids)
    question = Question.of(tool_input.query, knowledge)
    wanted = beyond(question, filters)
    with log("rank", by="query" if wanted else "newest", words=wanted):
        chosen = _by_query(doc_ids, question, knowledge) if wanted else _newest(doc_ids, tool_input.top_k, knowledge)
        asked = 1.0 if filters or wanted else ANYTHING
        found = [evidence.chunk(p, fit(s * asked, bool(filters)), TOOL.name, knowledge.name) for p, s in chosen]
    results = evidence.ranked(found, tool_input.top_k)
    return Output(results=results, entities=question.entities, candidates=evidence.titles(results))


def beyond(question: Question, filters: Filters) -> list[str]:
    """The names, genres and words of a question that its filters do not say, nor are just the way of asking for them.

    "Films by Ang Lee after 2000" asks for nothing beyond its filters; "films by Ang Lee about a tiger" for a tiger.
    """
    said = {fold(str(value)) for value in filters.values()}
    names = [n.name for n in (*question.named, *question.grouped) if not said & {fold(n.name), *n.names}]
    return names + [w for w in content_terms(_FILTERING.sub(" ", question.rest)) if not w.isdigit()]


def _canonical(given: FilterInput, knowledge: KnowledgeBase) -> Filters:
    """The filters that are set; a name of a person in another language becomes the one that the fields have."""
    filters = given.model_dump(exclude_none=True)
    for role in ("director", "cast"):
        entity = knowledge.find_entity(filters[role]) if role in filters else None
        if entity:
            filters[role] = entity["name"]
    return cast(Filters, filters)


def _newest(doc_ids: list[str], top_k: int, knowledge: KnowledgeBase) -> list[tuple[Passage, float]]:
    """The documents' first passages in the order given, each a little less probable, so that the order stays."""
    first = [p for p in knowledge.passages_of(doc_ids[:top_k]) if p["position"] == 0]
    return list(zip(first, ordered(len(first)), strict=True))


def _by_query(doc_ids: list[str], question: Question, knowledge: KnowledgeBase) -> list[tuple[Passage, float]]:
    """The best passage of each document for the question, with its probability before the filters are counted in."""
    near = knowledge.vector_search(question.text, NEAR)
    dense, asked = cosine_signals(near), set(doc_ids)
    inside = [chunk_id for chunk_id, _ in near if chunk_id.rpartition("#")[0] in asked][:READ]
    seen_docs = {chunk_id.rpartition("#")[0] for chunk_id in inside}
    rest = [doc_id for doc_id in doc_ids if doc_id not in seen_docs][: READ - len(inside)]
    best: dict[str, tuple[Passage, float]] = {}
    for passage in [*knowledge.passages(inside), *knowledge.passages_of(rest)]:
        seen = both(question.signals(passage), dense.get(passage["chunk_id"], {}))
        score = probability("naive_search", seen)
        if passage["doc_id"] not in best or score > best[passage["doc_id"]][1]:
            best[passage["doc_id"]] = (passage, score)
    return list(best.values())


def fit(score: float, filtered: bool) -> float:
    """The probability of a document that holds for its filters, given the probability ``score`` of its words.

    Holding for what was asked is most of being relevant; the words decide the rest, and everything without filters.

    >>> fit(1.0, filtered=False), fit(1.0, filtered=True), fit(0.0, filtered=True)
    (1.0, 0.93, 0.558)
    """
    return round(FIELDS_ARE_RIGHT * (0.6 + 0.4 * score), 6) if filtered else score


TOOL = FunctionTool(
    name="discover",
    description="Documents by typed fields: years, director, cast, genre, country; for lists and recommendations.",
    input_schema=Input,
    output_schema=Output,
    function=search,
    calibration="How often the fields are right (0.93, measured against another source), times how well the words fit.",
)
