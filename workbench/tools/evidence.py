"""What is found, as evidence: passages, entities, relations and communities in the one shape of ``RetrievalResult``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.ports import Community, Entity, KnowledgeBase, Passage, Relation
from workbench.state import Data, Hits, Json, RetrievalResult, pick, unique
from workbench.tools.scoring import Question, probability

_SOURCE = ("url", "licence", "position", "fields")


def document_id(chunk_id: str) -> str:
    """Return the id of the document of a passage.

    >>> document_id("a#b#0")
    'a#b'
    """
    return chunk_id.rpartition("#")[0]


def passage_id(result: Data) -> str:
    """Return what a passage is called everywhere, or the id of an entity, relation or community."""
    return str(
        result["source_id"]
        if result.get("source_type", "chunk") == "chunk"
        else result["result_id"]
    )


def chunk(
    passage: Passage,
    score: float,
    tool: str,
    kb_prefix: str,
    signals: Mapping[str, float] | None = None,
) -> RetrievalResult:
    """Return a passage as evidence; ``source_id`` is its chunk id, ``metadata["signals"]`` the parts of its score."""
    return make_evidence(
        passage["chunk_id"],
        passage["text"],
        score,
        tool,
        kb_prefix,
        **pick(passage, "doc_id", "title", *_SOURCE),
        signals={name: round(value, 4) for name, value in (signals or {}).items()},
    )


def judged(
    tool: str,
    question: Question,
    passages: Sequence[Passage],
    **rankings: Hits,
) -> list[RetrievalResult]:
    """Return passages as evidence, as probable as the tool's model takes what is seen of them to be."""
    signals = question.signals_in(passages, **rankings)
    return [
        chunk(passage, probability(tool, seen), tool, question.knowledge.name, seen)
        for passage, seen in zip(passages, signals, strict=True)
    ]


def entity(
    record: Entity,
    text: str,
    score: float,
    tool: str,
    kb_prefix: str,
    about: Passage | None = None,
) -> RetrievalResult:
    """Return an entity as evidence, told by ``card``; ``about`` is the first passage of the document on it, if any."""
    source = _source(record["name"], about)
    return make_evidence(record["entity_id"], text, score, tool, kb_prefix, "entity", **source)


def relationship(
    relation: Relation, score: float, tool: str, kb_prefix: str, stated_in: Passage | None
) -> RetrievalResult:
    """Return a relation as evidence: the sentence that states it."""
    text = relation["sentence"] or f"{relation['source']} {relation['type']} {relation['target']}"
    title = stated_in["title"] if stated_in else ""
    source = _source(title, stated_in)
    return make_evidence(
        relation["relation_id"],
        text,
        score,
        tool,
        kb_prefix,
        "relationship",
        "high_level",
        **source,
    )


def community(group: Community, score: float, tool: str, kb_prefix: str) -> RetrievalResult:
    """Return a community as evidence: its extractive summary."""
    return make_evidence(
        group["community_id"],
        group["summary"],
        score,
        tool,
        kb_prefix,
        "community",
        "community",
        title=group["title"],
        doc_ids=group["doc_ids"][:20],
        members=len(group["members"]),
    )


def ranked(results: Iterable[RetrievalResult], top_k: int) -> list[Json]:
    """Return the best ``top_k``, one an id, by score and then by id; ``metadata["rank"]`` counts from 1.

    >>> r = [{"result_id": i, "score": s, "metadata": {}} for i, s in [("b", .5), ("a", .5), ("c", .9), ("a", .4)]]
    >>> [(x["result_id"], x["metadata"]["rank"]) for x in ranked(r, 2)]
    [('c', 1), ('a', 2)]
    """
    best: dict[str, RetrievalResult] = {}
    for result in sorted(results, key=lambda r: (-r["score"], r["result_id"])):
        best.setdefault(result["result_id"], result)
    first = list(best.values())[:top_k]
    return [
        {**r, "metadata": {**r["metadata"], "rank": rank}}
        for rank, r in enumerate(first, start=1)
    ]


def answer(question: Question, results: Iterable[RetrievalResult], top_k: int) -> Json:
    """Build a tool's output (``ToolOutput``): the best results, the names in the question, and what else was found."""
    best = ranked(results, top_k)
    return {
        "results": best,
        "entities": question.entities,
        "candidates": titles(best, without=question.subjects),
    }


def titles(results: Iterable[Data], without: Sequence[str] = ()) -> list[str]:
    """Distinct titles of the documents behind passages, in this order, without the documents of the ids given.

    >>> titles([{"source_type": "chunk", "metadata": {"title": t, "doc_id": t}} for t in "abac"], without=["b"])
    ['a', 'c']
    """
    behind = [r["metadata"] for r in results if r["source_type"] == "chunk"]
    return unique(m["title"] for m in behind if m.get("title") and m.get("doc_id") not in without)


def card(subject: Entity, knowledge: KnowledgeBase) -> str:
    """Return an entity in a line: ``Lao She (Person; 老舍): written The Teahouse, ...; ...``."""
    about = "; ".join([subject["type"], *subject["aliases"][:3]])
    phrases: dict[str, list[str]] = {}
    field_names = {
        field["relation"]: next(iter(field["called"].get("en", ())), "")
        for field in knowledge.about()["fields"]
    }
    for relation in knowledge.around("relations", [subject["entity_id"]]):
        forward = relation["source"] == subject["entity_id"]
        neighbour = knowledge.entity(relation["target"] if forward else relation["source"])
        if neighbour:
            phrase = _phrase(relation["type"], forward, field_names.get(relation["type"], ""))
            phrases.setdefault(phrase, []).append(neighbour["name"])
    facts = "; ".join(
        f"{phrase} {', '.join(dict.fromkeys(names[:8]))}"
        for phrase, names in sorted(phrases.items())
    )
    return f"{subject['name']} ({about})" + (f": {facts}" if facts else "")


def _phrase(relation: str, forward: bool, field: str) -> str:
    """Return a relation as seen from one of its ends; ``field`` is what the corpus calls the field that says it.

    >>> _phrase("written_by", True, ""), _phrase("written_by", False, ""), _phrase("worked_in", False, "staff")
    ('written by', 'written', 'staff')
    """
    phrase = relation.replace("_", " ")
    if forward:
        return phrase
    if phrase.endswith(" in") and field:
        return field
    passive = {"mentions": "mentioned in"}
    return passive.get(relation) or (
        phrase.removesuffix(" by") if phrase.endswith(" by") else f"{phrase} of"
    )


def _source(title: str, passage: Passage | None) -> Json:
    if passage is None:
        return {"doc_id": "", "title": title, "url": "", "licence": ""}
    return {"title": title, **pick(passage, "doc_id", *_SOURCE)}


def make_evidence(
    source_id: str,
    text: str,
    score: float,
    tool: str,
    kb_prefix: str,
    source_type: Any = "chunk",
    granularity: Any = "low_level",
    **metadata: Any,
) -> RetrievalResult:
    """Return a piece of evidence, its score within 0 and 1."""
    return RetrievalResult(
        result_id=f"{granularity}:{source_id}",
        source_id=source_id,
        source_type=source_type,
        granularity=granularity,
        score=round(min(1.0, max(0.0, score)), 6),
        evidence=text,
        metadata={"kb_prefix": kb_prefix, "tools": [tool], **metadata},
    )
