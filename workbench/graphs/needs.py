"""The ledger: what an answer needs, which needs are met, and when the evidence is enough.

The rules read the needs off the question; they are the default ``acceptance_criteria`` of a plan. A person may add
others in words of their own, or count sources ("at least 3 sources"). A need is met by a line that the answer shows, a
quotation or a typed field with its number. ``is_enough`` alone decides: the answer that the writer would write answers,
every need is met or settled by a person, and every limit is reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, NotRequired, cast

from typing_extensions import TypedDict

from workbench.graphs.merge import first_documents
from workbench.language.answer import Judgement, says_field
from workbench.language.citing import cite
from workbench.language.quoting import weights
from workbench.language.words import fields_by_name, value_texts
from workbench.plans import last_records
from workbench.ports import Bases
from workbench.records.proposals import DECIDED, MET, Verdict
from workbench.state import (
    Data,
    Evidence,
    Json,
    QueryIntent,
    Records,
    RetrievalResult,
    RouteDecision,
    unique,
)
from workbench.text import closest, detect_language, fold, mentions, sentences, unmarked
from workbench.tools.scoring import word_shares
from workbench.views.labels import Labels

# --- How much is enough ---

ENOUGH: dict[QueryIntent, tuple[int, float]] = {
    "qa": (5, 0.4),
    "recommend": (10, 0.6),
    "compare": (8, 0.5),
    "list": (15, 0.7),
    "person": (5, 0.5),
    "unknown": (5, 0.5),
}
"""Intent -> least evidence, least top score; as the requirements have them."""
MAX_NAMES = 10
"""Missing names that are listed and searched for at once; passages that are read for a name without an entity."""


class LinkedName(NamedTuple):
    """A name in the question, and what the knowledge bases have on it: its writings, documents and passages."""

    name: str
    writings: tuple[str, ...]
    sources: frozenset[str] = frozenset()
    passages: frozenset[str] = frozenset()

    def covered_by(self, result: RetrievalResult, line: str = "") -> bool:
        """Check whether a piece of evidence, or a line of it, is about this name or mentions it."""
        metadata = result["metadata"]
        source = result["source_id"]
        if {source, metadata.get("doc_id")} & self.sources or (
            not line and source in self.passages
        ):
            return True
        text = fold(f"{metadata.get('title') or ''} {line or result['evidence']}")
        return any(mentions(text, fold(writing)) for writing in self.writings)


class Supply(NamedTuple):
    """What the knowledge bases can give to a question.

    ``unknown`` are names that no base writes; ``relevant`` counts the pieces about them, or the documents that
    hold the filters (None: not known); ``matching`` maps those documents to their titles (None: nothing filters).
    """

    intent: QueryIntent
    linked: tuple[LinkedName, ...] = ()
    unknown: tuple[str, ...] = ()
    passages: int = 0
    relevant: int | None = None
    matching: Mapping[str, str] | None = None


def read_supply(decision: RouteDecision, bases: Bases) -> Supply:
    """Look up what the question asks for in the knowledge bases."""
    intent = decision["query_intent"]
    filters = decision["filters"]
    names = [_linked_name(text, bases) for text in decision["extracted_entities"]["low_level"]]
    linked = tuple(name for name in names if name.sources or name.passages)
    matching = None
    relevant = None
    if filters and intent in ("list", "recommend"):
        matching = dict[str, str]()
        for base in bases:
            doc_ids = base.select(filters)
            matching |= dict.fromkeys(doc_ids, "")
            matching |= {p["doc_id"]: p["title"] for p in base.passages(doc_ids=doc_ids)}
        relevant = len(matching)
    elif linked and intent in ("qa", "compare"):
        relevant = len(frozenset().union(*(name.passages for name in linked)))
    unknown = tuple(name.name for name in names if name not in linked)
    passages = sum(base.about()["counts"]["passages"] for base in bases)
    return Supply(intent, linked, unknown, passages, relevant, matching)


def _linked_name(name: str, bases: Bases) -> LinkedName:
    writings = {name: None}
    sources = set()
    passages = set()
    for base in bases:
        if entity := base.entity(name):
            writings |= dict.fromkeys([entity["name"], *sorted(entity["aliases"])])
            own = [entity["doc_id"]] if entity["doc_id"] else []
            sources |= {entity["entity_id"], *own}
            passages |= {
                *base.around("mentions", [entity["entity_id"]]),
                *(p["chunk_id"] for p in base.passages(doc_ids=own)),
            }
            continue
        hits = base.passages([chunk_id for chunk_id, _ in base.search("words", name, MAX_NAMES)])
        passages |= {
            p["chunk_id"] for p in hits if mentions(fold(f"{p['title']} {p['text']}"), fold(name))
        }
    return LinkedName(
        name, tuple(filter(fold, writings)), frozenset(sources), frozenset(passages)
    )


def thresholds(
    intent: QueryIntent,
    overrides: Mapping[str, float] | None,
    supply: Supply | None = None,
) -> dict[str, float]:
    """Return how much is enough: the table by intent, a person's values instead, never more than there is.

    >>> thresholds("list", {"min_top_score": 0.5, "min_probability": 0.2}, Supply("list", passages=1065, relevant=8))
    {'min_evidence': 8, 'min_top_score': 0.5, 'min_probability': 0.2}
    >>> thresholds("recommend", {"min_evidence": 30, "min_probability": 0.2}, Supply("recommend", passages=12))
    {'min_evidence': 12, 'min_top_score': 0.6, 'min_probability': 0.2, 'min_candidates': 5}
    """
    evidence, score = ENOUGH[intent]
    supply = supply or Supply(intent, passages=evidence)
    overrides = overrides or {}
    if supply.relevant is not None:
        evidence = min(evidence, max(1, supply.relevant))
    limits: dict[str, float] = {
        "min_evidence": min(
            int(overrides.get("min_evidence", evidence)), max(1, supply.passages)
        ),
        "min_top_score": float(overrides.get("min_top_score", score)),
        "min_probability": float(overrides.get("min_probability", weights()["sure"])),
    }
    if intent == "recommend":
        available = (
            len(supply.matching) if supply.matching is not None else max(0, supply.passages - 1)
        )
        # a recommendation needs five different documents, or as many as there are
        limits["min_candidates"] = min(5, available)
    return limits


# --- The ledger ---

Kind = Literal["name", "field", "condition", "words", "all", "answer", "count"]
_COUNT = re.compile(
    r"(?:min_evidence_count\s*[:=]\s*|at least\s+|至少\s*(?:要?有?)?\s*)(?P<n>\d+)"
    r"\s*(?P<documents>(?:different |distinct |independent )?(?:sources|documents)|[个篇份]?(?:来源|文档|文献))?",
    re.IGNORECASE,
)
"""A criterion that counts pieces of evidence, or documents."""


class Need(NamedTuple):
    """One part of what an answer needs: its text and kind; of a field, its own name and whose it is."""

    text: str
    kind: Kind
    field: str = ""
    name: str = ""


class Entry(TypedDict):
    """A line of the ledger: how surely a need is met, 0 to 1, and by which results, best first."""

    need: str  # as the plan has it
    kind: Kind
    met: float
    by: list[str]
    title: str  # of the piece that is most about the need, or ""
    quote: str  # its sentence that is closest to the need
    said: Verdict | Literal[""]  # a person's verdict
    verdict: NotRequired[str]  # a model's, where there is one


def read_needs(query: str, decision: RouteDecision) -> list[Need]:
    """Return what an answer needs, in the order of the question, and last what kind of answer."""
    max_needs = 12  # needs of one question
    question = decision.get("question")
    label = Labels(detect_language(query))
    intent = decision["query_intent"]
    names = decision["extracted_entities"]["low_level"]
    needs = [Need(name, "name", name=name) for name in names]
    if question is None:
        return needs[:max_needs]
    for field in question["fields"]:
        owned = [
            Need(label("field_of", field=field, title=name), "field", field, name)
            for name in names
        ]
        needs += owned or [Need(field, "field", field)]
    needs += [Need(text, "words") for text in [*question["not_applied"], *question["words"]]]
    asks = "compare" if intent == "compare" else question["answer_type"]
    last = Need(label.get(f"need_answer_{asks}", label("need_sentence")), "answer")
    if intent == "compare" and len(names) < 2:
        needs.append(Need(label("need_sides"), "all"))
    if intent == "recommend":
        # what is named is what others are compared with
        needs = []
        last = Need(label("need_candidates"), "all")
    elif intent == "list" and decision["filters"]:
        last = Need(label("need_every_item"), "all")
    needs += [Need(text, "condition") for text in question["understood"] if decision["filters"]]
    return [*unique(needs)[: max_needs - 1], last]


Line = tuple[RetrievalResult, str]
"""A line of an answer, or a sentence of the evidence, with its piece."""


class Ledger(NamedTuple):
    """Where needs are looked up: what the bases have, the signals so far, the judgement, the evidence, its bases."""

    supply: Supply
    seen: Data
    judgement: Judgement
    evidence: Evidence
    bases: Bases

    def entry(self, need: Need, verdict: str, own: bool) -> Entry:
        """Look a need up in what the answer shows; one of a person's ``own`` in all first documents."""
        shown = self.judgement.text.splitlines()
        evidence = self.evidence
        lines = [
            (evidence[mark["n"] - 1], line) for line in shown for mark in cite(line, evidence)[1]
        ]
        if own:
            lines += [
                (r, text)
                for r in first_documents(self.evidence)
                for text in sentences(r["evidence"])
            ]
        met, by = self._met(need, lines)
        title, quote = passage_for(need.text, by)
        if by and need.kind == "answer":
            title, quote = "", unmarked(shown[0])  # no passage has it alone
        ids = unique(result["result_id"] for result in by)
        return Entry(
            need=need.text,
            kind=need.kind,
            met=round(met, 3),
            by=ids,
            title=title,
            quote=quote,
            said=cast(Any, verdict),
        )

    def _met(self, need: Need, lines: Sequence[Line]) -> tuple[float, list[RetrievalResult]]:
        """Return how surely a need is met, and the pieces that meet it."""
        seen = self.seen
        judgement = self.judgement
        matching = self.supply.matching
        enough = judgement.enough
        pieces = [result for result, _ in lines]
        if need.kind == "answer":
            met = judgement.probability
            met = max(met, MET) if enough else min(met, MET - 0.01)
        elif need.kind == "all" and self.supply.intent == "compare":
            documents = {result["metadata"].get("doc_id") for result in pieces}
            # Next to a document that is named, any other is no side that somebody asked for.
            names = self.supply.linked
            met = float(len(documents) > 1 and not any(documents & n.sources for n in names))
        elif need.kind == "all":
            met = float(
                enough
                and seen.get("candidates", 0) >= seen["thresholds"].get("min_candidates", 0)
            )
        elif need.kind == "condition":
            met = float(enough if matching is None else seen.get("holding", 0) > 0)
            pieces = [
                r for r in pieces if matching is None or r["metadata"].get("doc_id") in matching
            ]
        elif need.kind == "count" and (counted := _COUNT.search(need.text)):
            count = seen["documents" if counted["documents"] else "evidence_count"]
            met = min(1.0, count / max(1, int(counted["n"])))
        elif need.kind in ("name", "field"):
            pieces = [r for r, line in lines if self._tells(need, r, line)]
            met = float(bool(pieces))
        else:
            texts = [f"{result['metadata'].get('title') or ''}. {line}" for result, line in lines]
            shares = word_shares(need.text, texts, self.bases[0])
            met = max(shares, default=0.0)
            best = sorted(zip(shares, pieces, strict=True), key=lambda pair: -pair[0])
            pieces = [piece for share, piece in best if share >= MET]
        # only typed fields are sure of an answer
        if need.kind in ("answer", "all") and judgement.kind != "fields":
            met = min(met, 0.999)
        return met, pieces if met >= MET else []

    def _tells(self, need: Need, result: RetrievalResult, line: str) -> bool:
        """Check whether a line is on the name of a need and says the field that is asked for."""
        linked_name = next(
            (t for t in self.supply.linked if t.name == need.name),
            LinkedName(need.name, (need.name,)),
        )
        if need.name and not linked_name.covered_by(result, line):
            return False
        values = value_texts((result["metadata"].get("fields") or {}).get(need.field))
        field = fields_by_name(self.bases).get(need.field)
        return need.kind == "name" or bool(field and says_field(line, field, values))


def passage_for(need: str, by: Evidence) -> tuple[str, str]:
    """Return the title of the piece that is most about a need, and its sentence that is closest to it."""
    titles = {str(piece["metadata"].get("title") or ""): piece["evidence"] for piece in by}
    title = closest(need, titles)
    return title, closest(need, sentences(titles.get(title, "")))


def fill(
    ledger: Ledger, criteria: Iterable[str], needs: Iterable[Need], verdicts: Mapping[str, str]
) -> list[Entry]:
    """Look every criterion up; one that is not a known need, by its count or by its words."""
    kinds = {need.text: need for need in needs}
    entries = []
    for text in dict.fromkeys([*criteria, *verdicts]):
        need = kinds.get(text)
        verdict = verdicts.get(text, "")
        own = need is None and verdict == "open"
        need = need or Need(text, "count" if _COUNT.search(text) else "words")
        entries.append(ledger.entry(need, verdict, own))
    return entries


def settle(seen: Data, entries: Sequence[Entry], needs: Iterable[Need]) -> Json:
    """Return the signals without what is missing of needs that a person confirmed or struck."""
    texts = {entry["need"] for entry in entries if is_settled(entry)}
    done = {(need.kind, need.field or need.name) for need in needs if need.text in texts}
    now = {**seen, "needs": list(entries)}
    for signal in ("missing", "unknown"):
        now[signal] = [name for name in seen[signal] if ("name", name) not in done]
    now["missing_fields"] = [
        pair for pair in seen["missing_fields"] if ("field", pair[1]) not in done
    ]
    if ("answer", "") in done:
        now |= {"answered": True, "probability": 1.0}
    if ("condition", "") in done:
        now.pop("holding", None)
    return now


def is_settled(entry: Data) -> bool:
    """Check whether a person confirmed or struck a need."""
    return entry["said"] in DECIDED


def unmet(seen: Data) -> list[Entry]:
    """Return the needs that nothing shown meets and that no person settled."""
    return [
        entry for entry in seen.get("needs", []) if not is_settled(entry) and entry["met"] < MET
    ]


def binding(seen: Data) -> list[Entry]:
    """Return the unmet needs that a person insists on, or that a model found in no passage.

    >>> entry = {"need": "the year of the prize", "kind": "words", "met": 0.1, "said": "open"}
    >>> [one["need"] for one in binding({"needs": [entry, {**entry, "need": "born", "said": ""}]})]
    ['the year of the prize']
    """
    entries = [entry for entry in unmet(seen) if entry["kind"] not in ("all", "answer")]
    return [
        e
        for e in entries
        if e["said"] == "open" or e.get("verdict") in ("missing", "contradicted")
    ]


# --- What is seen of the evidence ---


def signals(
    supply: Supply,
    evidence: Evidence,
    records: Records,
    limits: Mapping[str, float],
    iteration: int = 1,
    time_left_s: float = 30.0,
    judgement: Judgement | None = None,
) -> Json:
    """Return everything that the rules look at, as data that a person can read too.

    Returns:
        ``evidence_count``, ``documents``, ``top_score``, ``coverage`` (``{name, found, needed}`` of each name),
        ``missing`` (names to search for), ``unknown`` (names that no base writes), ``holding`` (how many documents hold
        the filters), ``complete`` (whether these are all that there are), ``candidates``, ``kind``, ``answered`` and
        ``probability`` of the answer, ``missing_fields`` (``[title, field]``), ``timeouts`` and ``failures`` (ids of
        steps), ``iteration``, ``time_left_s`` and ``thresholds``.
    """
    # each side of a comparison needs two pieces of evidence
    needed = 2 if supply.intent == "compare" else 1
    coverage: list[Json] = [
        {
            "name": linked_name.name,
            "found": sum(map(linked_name.covered_by, evidence)),
            "needed": min(needed, max(1, len(linked_name.passages))),
        }
        for linked_name in supply.linked
    ]
    missing = [side["name"] for side in coverage if side["found"] < side["needed"]]
    fields = {
        r["metadata"]["doc_id"]: r["metadata"].get("fields")
        for r in evidence
        if r["metadata"].get("doc_id")
    }
    seen: Json = {}
    matching = supply.matching
    # texts without fields hold no filter
    if matching or (matching is not None and any(fields.values())):
        holding = [doc_id for doc_id in fields if doc_id in matching]
        seen |= {"holding": len(holding), "complete": 0 < len(holding) == len(matching)}
        if len(holding) < min(len(matching), limits["min_evidence"]):
            missing += [
                title for doc_id, title in matching.items() if doc_id not in holding and title
            ]
    if supply.intent == "recommend":
        named_sources = frozenset[str]().union(*(name.sources for name in supply.linked))
        seen["candidates"] = sum(
            d not in named_sources and (matching is None or d in matching) for d in fields
        )
    if judgement is not None:
        seen |= {
            "kind": judgement.kind,
            "answered": judgement.enough,
            "probability": judgement.probability,
            "missing_fields": [list(pair) for pair in judgement.missing_fields],
        }
    ended = last_records(records).values()
    return {
        "evidence_count": len(evidence),
        "documents": len(fields),
        "top_score": round(max((r["score"] for r in evidence), default=0.0), 6),
        "coverage": coverage,
        "unknown": list(supply.unknown),
        **seen,
        "missing": missing[:MAX_NAMES],
        "timeouts": [r["step_id"] for r in ended if r["status"] == "timeout"],
        "failures": [r["step_id"] for r in ended if r["status"] == "failed"],
        "iteration": iteration,
        "time_left_s": round(time_left_s, 3),
        "thresholds": dict(limits),
    }


def is_enough(seen: Data) -> bool:
    """Check whether the evidence is enough: it answers, every limit is reached, and every need is met or settled.

    >>> limits = {"min_evidence": 0, "min_top_score": 0.0}
    >>> is_enough({"evidence_count": 0, "top_score": 0.0, "missing": [], "unknown": [], "thresholds": limits})
    False
    """
    limits = seen["thresholds"]
    return (
        seen["evidence_count"] >= max(1, limits["min_evidence"])
        and not is_low(seen)
        # less probable than is asked for: what a name leads to is searched then
        and seen.get("probability", 1.0) >= limits.get("min_probability", 0.0)
        and not (seen["missing"] or seen["unknown"] or seen.get("missing_fields"))
        and seen.get("candidates", 0) >= limits.get("min_candidates", 0)
        and seen.get("holding") != 0
        and seen.get("answered", True)
        and not unmet(seen)
    )


def is_low(seen: Data) -> bool:
    """Check whether nothing scores high limits although something might."""
    return seen["top_score"] < seen["thresholds"]["min_top_score"] and not seen.get(
        "complete", False
    )
