"""What can be seen of the evidence so far, and how much of it is enough."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.language.answer import Judgement
from workbench.language.names import together
from workbench.plans import last_records
from workbench.ports import KnowledgeBase
from workbench.records.proposals import MET
from workbench.settings import Settings
from workbench.state import ExecutionRecord, QueryIntent, RetrievalResult, RouteDecision
from workbench.text import fold

ENOUGH: dict[QueryIntent, tuple[int, float]] = {
    "qa": (5, 0.4),
    "recommend": (10, 0.6),
    "compare": (8, 0.5),
    "list": (15, 0.7),
    "person": (5, 0.5),
    "unknown": (5, 0.5),
}
"""Intent -> least evidence, least top score."""

INCOMPLETE = 0.2
"""How likely it may be that the first five passages lack one before more is searched for."""

CANDIDATES = 5
"""How many different documents a recommendation needs."""

SIDE = 2
"""Pieces of evidence that each side of a comparison needs, if the knowledge base has them."""

_LOOKED_AT = 10
NAMED = 10
"""How many missing names are listed and searched for at once."""


@dataclass(frozen=True)
class Asked:
    """One thing that the question names, and what the knowledge base has on it.

    Attributes:
        name: as the knowledge base writes it.
        names: every writing of it, folded.
        sources: ids of documents and entities that are this thing.
        passages: ids of the passages that speak of it.
    """

    name: str
    names: tuple[str, ...]
    sources: frozenset[str] = frozenset()
    passages: frozenset[str] = frozenset()

    def covered_by(self, result: RetrievalResult) -> bool:
        """Whether a piece of evidence is of this thing, or speaks of it."""
        metadata = result["metadata"]
        if result["source_id"] in self.passages or {result["source_id"], metadata.get("doc_id")} & self.sources:
            return True
        text = fold(f"{metadata.get('title') or ''} {result['evidence']}")
        return any(spoken(name, text) for name in self.names)


@dataclass(frozen=True)
class Need:
    """What the question asks for and the knowledge base can give.

    Attributes:
        intent: of the question.
        asked: the known things that it names.
        unknown: names in it that the knowledge base never writes.
        passages: how many passages there are at all.
        relevant: how many pieces about the asked things, or documents that hold the filters, exist; None: not known.
        matching: id -> title of the documents that hold the filters; None when nothing filters.
    """

    intent: QueryIntent
    asked: tuple[Asked, ...] = ()
    unknown: tuple[str, ...] = ()
    passages: int = 0
    relevant: int | None = None
    matching: Mapping[str, str] | None = field(default=None)

    @property
    def named(self) -> frozenset[str]:
        """Ids of the documents that the question names itself: never candidates of a recommendation."""
        return frozenset(source for asked in self.asked for source in asked.sources)


def need(decision: RouteDecision, bases: Sequence[KnowledgeBase]) -> Need:
    """Look up what the question asks for in the knowledge bases."""
    intent, filters = decision["query_intent"], decision["filters"]
    names = [_asked(name, bases) for name in decision["extracted_entities"]["low_level"]]
    asked = tuple(thing for thing in names if thing.sources or thing.passages)
    matching: dict[str, str] | None = None
    if filters and intent in ("list", "recommend"):
        matching = {}
        for base in bases:
            ids = base.select(filters)
            matching |= dict.fromkeys(ids, "") | {p["doc_id"]: p["title"] for p in base.passages_of(ids)}
    relevant = None
    if matching is not None:
        relevant = len(matching)
    elif asked and intent in ("qa", "compare"):
        relevant = len(frozenset().union(*(thing.passages for thing in asked)))
    return Need(
        intent=intent,
        asked=asked,
        unknown=tuple(thing.name for thing in names if thing not in asked),
        passages=sum(base.counts()["passages"] for base in bases),
        relevant=relevant,
        matching=matching,
    )


def _asked(name: str, bases: Sequence[KnowledgeBase]) -> Asked:
    names, sources, passages = {fold(name)}, set[str](), set[str]()
    for base in bases:
        entity = base.find_entity(name)
        if entity is None:
            joined = together(name, base)
            names.add(fold(joined))
            for writing in dict.fromkeys([name, joined]):
                passages |= _written(writing, base)
            continue
        names |= {fold(alias) for alias in [entity["name"], *entity["aliases"]]}
        sources.add(entity["entity_id"])
        passages |= set(base.mentions_of(entity["entity_id"]))
        if entity["doc_id"]:
            sources.add(entity["doc_id"])
            passages |= {passage["chunk_id"] for passage in base.passages_of([entity["doc_id"]])}
    return Asked(name, tuple(sorted(filter(None, names))), frozenset(sources), frozenset(passages))


def _written(name: str, base: KnowledgeBase) -> set[str]:
    """Ids of passages that say a name which nothing in the graph has."""
    hits = [chunk_id for chunk_id, _ in base.keyword_search(name, _LOOKED_AT)]
    found = base.passages(hits)
    return {p["chunk_id"] for p in found if spoken(fold(name), fold(f"{p['title']} {p['text']}"))}


def spoken(name: str, text: str) -> bool:
    """Whether a folded text says a folded name, as a word of its own where the script has words.

    >>> spoken("hulk", "the hulk is green"), spoken("hulk", "a hulking man"), spoken("茶馆", "看茶馆吗")
    (True, False, True)
    """
    edges = (r"(?<!\w)" if name[:1].isascii() else "", r"(?!\w)" if name[-1:].isascii() else "")
    return name in text and re.search(edges[0] + re.escape(name) + edges[1], text) is not None


def thresholds(
    intent: QueryIntent, overrides: Mapping[str, float] | None = None, capacity: Need | None = None
) -> dict[str, float]:
    """How much is enough: the table by intent, what a person set instead, never more than there is.

    >>> thresholds("list", {"min_top_score": 0.5}, Need("list", passages=1065, relevant=8))
    {'min_evidence': 8, 'min_top_score': 0.5, 'max_incomplete': 0.2}
    >>> thresholds("recommend", {"min_evidence": 30}, Need("recommend", passages=12))
    {'min_evidence': 12, 'min_top_score': 0.6, 'max_incomplete': 0.2, 'min_candidates': 5}
    """
    evidence, score = ENOUGH[intent]
    capacity, overrides = capacity or Need(intent, passages=evidence), overrides or {}
    if capacity.relevant is not None:
        evidence = min(evidence, max(1, capacity.relevant))
    enough: dict[str, float] = {
        "min_evidence": min(int(overrides.get("min_evidence", evidence)), max(1, capacity.passages)),
        "min_top_score": float(overrides.get("min_top_score", score)),
        "max_incomplete": float(overrides.get("max_incomplete", INCOMPLETE)),
    }
    if intent == "recommend":
        most = len(capacity.matching) if capacity.matching is not None else max(0, capacity.passages - 1)
        enough["min_candidates"] = min(int(overrides.get("min_candidates", CANDIDATES)), most)
    return enough


def set_here(overrides: Mapping[str, float] | None, settings: Settings) -> dict[str, float]:
    """What a person set of the thresholds, over what the settings say."""
    return {"max_incomplete": settings.max_incomplete, **(overrides or {})}


def signals(
    wanted: Need,
    evidence: Sequence[RetrievalResult],
    records: Iterable[ExecutionRecord],
    enough: Mapping[str, float],
    iteration: int = 1,
    time_left_s: float = 30.0,
    judgement: Judgement | None = None,
) -> dict[str, Any]:
    """Everything that the rules look at, as data that a person can read too.

    Returns:
        ``evidence_count``, ``top_score``, ``coverage`` (``{name, found, needed}`` of each asked thing), ``missing``
        (names to search for), ``unknown`` (names that the knowledge base never writes), ``holding`` (how many
        documents hold the filters), ``complete`` (whether these are all that there are), ``candidates``, ``timeouts``
        and ``failures`` (step ids), ``iteration``, ``time_left_s`` and ``thresholds``.
    """
    coverage = [_coverage(thing, wanted.intent, evidence) for thing in wanted.asked]
    missing = [c["name"] for c in coverage if c["found"] < c["needed"]]
    documents = list(dict.fromkeys(r["metadata"]["doc_id"] for r in evidence if r["metadata"].get("doc_id")))
    seen: dict[str, Any] = {
        "evidence_count": len(evidence),
        "top_score": round(max((r["score"] for r in evidence), default=0.0), 6),
        "coverage": coverage,
        "unknown": list(wanted.unknown),
    }
    typed = any(result["metadata"].get("fields") for result in evidence)
    if wanted.matching or (
        wanted.matching is not None and typed
    ):  # texts without typed fields hold no filter: ask none
        holding = [doc_id for doc_id in documents if doc_id in wanted.matching]
        seen |= {"holding": len(holding), "complete": 0 < len(holding) == len(wanted.matching)}
        if len(holding) < min(len(wanted.matching), enough["min_evidence"]):
            missing += [title for doc_id, title in wanted.matching.items() if doc_id not in holding and title]
    if wanted.intent == "recommend":
        seen["candidates"] = len(_candidates(documents, wanted))
    if judgement is not None:
        seen["answered"] = judgement.enough
        seen["surest"] = judgement.probability
        seen["missing_fields"] = [list(pair) for pair in judgement.missing_fields]
    ended = last_records(records).values()
    return {
        **seen,
        "missing": missing[:NAMED],
        "timeouts": [r["step_id"] for r in ended if r["status"] == "timeout"],
        "failures": [r["step_id"] for r in ended if r["status"] == "failed"],
        "iteration": iteration,
        "time_left_s": round(time_left_s, 3),
        "thresholds": dict(enough),
    }


def _coverage(thing: Asked, intent: QueryIntent, evidence: Sequence[RetrievalResult]) -> dict[str, Any]:
    needed = min(SIDE if intent == "compare" else 1, max(1, len(thing.passages)))
    return {"name": thing.name, "found": sum(map(thing.covered_by, evidence)), "needed": needed}


def _candidates(documents: list[str], wanted: Need) -> list[str]:
    """Documents to recommend: not named in the question, within the conditions."""
    return [
        doc_id
        for doc_id in documents
        if doc_id not in wanted.named and (wanted.matching is None or doc_id in wanted.matching)
    ]


def is_enough(seen: Mapping[str, Any]) -> bool:
    """Whether the evidence is enough to stop searching: every condition must hold, and no evidence is never enough.

    When the question filters documents, at least one that matches must be found. Once all of them are found, a low top
    score no longer counts against the evidence; the other conditions still do.

    >>> enough = {"min_evidence": 0, "min_top_score": 0.0}
    >>> is_enough({"evidence_count": 0, "top_score": 0.0, "missing": [], "unknown": [], "thresholds": enough})
    False
    """
    enough = seen["thresholds"]
    return (
        seen["evidence_count"] >= max(1, enough["min_evidence"])
        and not low_score(seen)
        and not seen["missing"]
        and not seen["unknown"]
        and seen.get("candidates", 0) >= enough.get("min_candidates", 0)
        and seen.get("holding") != 0
        and not seen.get("missing_fields")
        and seen.get("answered", True)
        and not lacking(seen)
        and not open_needs(seen)
    )


def lacking(seen: Mapping[str, Any]) -> bool:
    """Whether it is too likely that a passage that is needed is not among the first five."""
    return bool(seen.get("incomplete", 0.0) > seen["thresholds"].get("max_incomplete", INCOMPLETE))


def open_needs(seen: Mapping[str, Any]) -> list[str]:
    """Needs on which a person insists, or that a model found in no passage, and that the evidence does not meet.

    >>> entry = {"need": "the year of the prize", "met": 0.1, "said": "open"}
    >>> open_needs({"needs": [entry, {**entry, "need": "born", "said": ""}]})
    ['the year of the prize']
    """
    asked = [e for e in seen.get("needs", []) if e["said"] == "open" or (not e["said"] and _in_none(e))]
    return [entry["need"] for entry in asked if entry["met"] < MET]


def _in_none(entry: Mapping[str, Any]) -> bool:
    return entry.get("verdict") in ("missing", "contradicted") and entry.get("kind") not in ("all", "answer")


def low_score(seen: Mapping[str, Any]) -> bool:
    """Whether nothing scores high enough although something might: with every filtered document found, nothing can."""
    return seen["top_score"] < seen["thresholds"]["min_top_score"] and not seen.get("complete", False)
