"""The ledger: what an answer needs, and what of it the evidence has met, by which passages and how surely.

The planner writes the needs down as the plan's ``acceptance_criteria``: the names of a question, what is asked of them,
the conditions, and what kind of thing answers, all as the knowledge bases read the question. A person or a model may
add others in words of their own. After each pass the reflector looks every one up in the first passages. What a person
says of a need outranks what the evidence says: a struck or confirmed one is searched for no further, an open one until
it is met.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, NotRequired, cast

from typing_extensions import TypedDict

from workbench.graphs.completeness import FIRST, first_documents, log_odds
from workbench.graphs.sufficiency import Asked
from workbench.graphs.sufficiency import Need as Wanted
from workbench.ports import KnowledgeBase
from workbench.records.proposals import MET, SETTLED, Verdict
from workbench.state import Question, RetrievalResult, RouteDecision
from workbench.text import fold, language_of, spelled
from workbench.tools.next_hop import Reading
from workbench.tools.scoring import Logistic

Kind = Literal["name", "field", "condition", "words", "all", "answer"]
MOST = 12
"""Needs of one question."""
COMMON = 0.05
"""A word that more than this share of the passages has is no need: whatever is found says it."""
SURE = Logistic(0.31, {"said": 3.73, "score": 0.43, "ahead": 0.46, "name": -0.57})
"""How surely a name or words are met by the passage that says most of them (``experiments/second_pass.py``)."""
_KINDS = {
    "number": ("an answer: a number", "答案：数量"),
    "date": ("an answer: a date", "答案：时间"),
    "person": ("an answer: a person", "答案：人物"),
    "place": ("an answer: a place", "答案：地点"),
    "reason": ("an answer: a reason", "答案：原因"),
    "manner": ("an answer: how", "答案：方式"),
    "yes_no": ("an answer: yes or no", "答案：是或否"),
}


class Need(NamedTuple):
    """One thing that an answer needs; of a field, the documents' own name of it and whose it is."""

    text: str
    kind: Kind
    field: str = ""
    name: str = ""


class Entry(TypedDict):
    """A line of the ledger.

    Attributes:
        need: what is needed, as the plan has it.
        kind: how it is looked up.
        met: how surely the evidence meets it, 0 to 1.
        by: ids of the results that meet it, the one that says most of it first.
        title: of that one's document, or "".
        said: what a person said of it, or "".
        verdict: what a model said of it, where one did.
    """

    need: str
    kind: Kind
    met: float
    by: list[str]
    title: str
    said: Verdict | Literal[""]
    verdict: NotRequired[str]


def needs(query: str, decision: RouteDecision, knowledge: Sequence[KnowledgeBase]) -> list[Need]:
    """What an answer to the question needs, in the order of the question, and last what kind of thing answers."""
    zh, names = language_of(query) == "zh", decision["extracted_entities"]["low_level"]
    reading = decision.get("question")
    found = [Need(name, "name", name=name) for name in names]
    if reading is None:
        return found[:MOST]
    for field in reading["fields"]:
        of = [(f"《{n}》的 {field}" if zh else f"{field} of {n}", n) for n in names] or [(field, "")]
        found += [Need(text, "field", field, name) for text, name in of]
    found += [Need(text, "condition") for text in reading["understood"] if decision["filters"]]
    found += [Need(text, "words") for text in _runs(reading, knowledge[0])]
    last = _last(query, decision, zh)
    return [*list(dict.fromkeys(found))[: MOST - 1], last]


def _last(query: str, decision: RouteDecision, zh: bool) -> Need:
    intent, reading = decision["query_intent"], decision.get("question")
    if intent == "recommend":
        return Need("几个不同的候选" if zh else "several different candidates", "all")
    if intent == "list" and decision["filters"]:
        return Need("所有符合条件的条目" if zh else "every item that fits", "all")
    kind = _KINDS.get(reading["answer_type"] if reading else "", ("a sentence that answers", "能回答问题的句子"))
    return Need(kind[zh], "answer")


def _runs(reading: Question, base: KnowledgeBase) -> list[str]:
    """Telling words of a question that stand side by side, beside its names, as the question writes them."""
    question, text = reading["text"], spelled(reading["text"])
    if len(text) != len(question):
        question = text
    names = [(named["start"], named["end"]) for named in reading["names"]]
    asked = list(_spans(text, map(spelled, reading["words"])))
    words, rarity, _ = base.matches(reading["text"], ())
    passages = base.counts()["passages"]
    least = math.log(1 / COMMON) / math.log1p(passages) if passages > 1 / COMMON else 0.0
    telling = [word for word, rare in zip(words, rarity, strict=True) if rare >= least]
    runs: list[tuple[int, int]] = []
    for start, end in sorted(_spans(text, map(spelled, telling))):
        inside = any(a < end and start < b for a, b in asked) and not any(a < end and start < b for a, b in names)
        if inside and runs and (start <= runs[-1][1] or question[runs[-1][1] : start] in (" ", "-")):
            runs[-1] = (runs[-1][0], max(end, runs[-1][1]))
        elif inside:
            runs.append((start, end))
    return [question[start:end] for start, end in runs]


def _spans(text: str, words: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where each word stands, the first time after the one before, or the first time at all."""
    at = 0
    for word in words:
        start = text.find(word, at)
        start = text.find(word) if start < 0 else start
        if word and start >= 0:
            at = start + 1
            yield start, start + len(word)


def ledger(
    criteria: Iterable[str],
    known: Iterable[Need],
    wanted: Wanted,
    seen: Mapping[str, Any],
    evidence: Sequence[RetrievalResult],
    base: KnowledgeBase,
    said: Mapping[str, str],
) -> list[Entry]:
    """Look every need up in the evidence.

    Args:
        criteria: of the plan.
        known: ``needs(...)`` of the question; any other criterion is looked up by its words.
        wanted: what the knowledge bases have on the names.
        seen: the signals so far.
        evidence: what was found, best first.
        base: where it was found.
        said: need -> what a person said of it.
    """
    kinds = {need.text: need for need in known}
    first = first_documents(evidence)
    found = []
    for text in dict.fromkeys([*criteria, *said]):
        need = kinds.get(text, Need(text, "words"))
        met, by = _looked_up(need, wanted, seen, first, base)
        found.append(
            Entry(
                need=text,
                kind=need.kind,
                met=round(met, 3),
                by=[result["result_id"] for result in by],
                title=str(by[0]["metadata"].get("title") or "") if by else "",
                said=cast(Any, said.get(text, "")),
            )
        )
    return found


def _looked_up(
    need: Need, wanted: Wanted, seen: Mapping[str, Any], first: Sequence[RetrievalResult], base: KnowledgeBase
) -> tuple[float, Sequence[RetrievalResult]]:
    """How surely a need is met, and by what: where documents have fields they tell exactly."""
    if need.kind == "answer":
        return float(seen.get("surest", 0.0)), first[:1]
    if need.kind == "all":
        enough = seen.get("candidates", 0) >= seen["thresholds"].get("min_candidates", 1)
        return float(seen.get("complete", enough)), first
    if need.kind == "condition" and wanted.matching is not None:
        return float(seen.get("holding", 0) > 0), [r for r in first if r["metadata"].get("doc_id") in wanted.matching]
    if need.kind == "field":
        asked = [thing for thing in wanted.asked if thing.name == need.name]
        own = [r for r in first if not asked or asked[0].covered_by(r)]
        if by := [r for r in own if need.field in (r["metadata"].get("fields") or {})]:
            return float(need.field not in [field for _, field in seen.get("missing_fields", [])]), by
    shares = says(need, wanted, first, base)
    best = sorted((place for place in range(len(first)) if shares[place] >= MET), key=lambda p: -shares[p])
    sure, most = SURE(features(need, shares, first)), max(shares, default=0.0)
    return (sure if best else min(sure, most)), [first[place] for place in best]  # what nothing says is not met


def says(need: Need, wanted: Wanted, first: Sequence[RetrievalResult], base: KnowledgeBase) -> list[float]:
    """How far each passage says a need, 0 to 1."""
    if need.kind == "name":  # one that the knowledge base never writes is in no passage
        known = [thing for thing in wanted.asked if thing.name == need.name] or [Asked(need.name, (fold(need.name),))]
        return [float(known[0].covered_by(result)) for result in first]
    return told(need, [f"{result['metadata'].get('title') or ''}. {result['evidence']}" for result in first], base)


def told(need: Need, texts: Sequence[str], base: KnowledgeBase) -> list[float]:
    """How far each text says the words of a need, by what they mean where the base can tell, 0 to 1."""
    reading = Reading.of(need.text, texts, base)
    return [reading.share(row) for row in reading.texts] if reading.words else [0.0] * len(texts)


def features(need: Need, shares: Sequence[float], first: Sequence[RetrievalResult]) -> dict[str, float]:
    """What the probability is made of.

    Returns:
        ``said``: how far the passage that says most of the need says it; ``score``: its log odds; ``ahead``: by how
        much it says more than the passages do on average; ``name``: 1 for a name.
    """
    best = max(range(len(first)), key=lambda place: (shares[place], -place), default=-1)
    said, score = (shares[best], first[best]["score"]) if first else (0.0, 0.0)
    return {
        "said": said,
        "score": log_odds(score),
        "ahead": said - sum(shares) / FIRST,
        "name": float(need.kind == "name"),
    }


def steered(query: str, entries: Iterable[Entry]) -> str:
    """The question without the words that a person settled, and with those that they added; "" when all is settled.

    >>> entry = Entry(need="born", kind="words", met=0.2, by=[], title="", said="")
    >>> steered("Where was its author born?", [{**entry, "said": "struck"}, {**entry, "need": "author"}])
    'Where was its author ?'
    >>> steered("Where was its author born?", [entry, {**entry, "need": "in which year", "said": "open"}])
    'Where was its author born? in which year'
    """
    kept = list(entries)
    if kept and all(settled(entry) for entry in kept if entry["kind"] != "answer"):
        return ""
    for entry in kept:
        if settled(entry) and entry["kind"] == "words":
            query = re.sub(re.escape(entry["need"]), " ", query, flags=re.IGNORECASE)
    added = [entry["need"] for entry in kept if entry["said"] == "open" and fold(entry["need"]) not in fold(query)]
    return " ".join([*query.split(), *added])


def settled(entry: Mapping[str, Any]) -> bool:
    """Whether a person said that a need is met, or none."""
    return entry["said"] in SETTLED


def heeded(seen: Mapping[str, Any], entries: Sequence[Entry], known: Iterable[Need]) -> dict[str, Any]:
    """The signals, without what is lacking of needs that a person settled."""
    done = {entry["need"] for entry in entries if settled(entry)}
    kinds = [need for need in known if need.text in done]
    names = {need.name for need in kinds if need.kind == "name"}
    fields = {need.field for need in kinds if need.kind == "field"}
    now = dict(seen)
    now["missing"] = [name for name in seen["missing"] if name not in names]
    now["unknown"] = [name for name in seen["unknown"] if name not in names]
    if "missing_fields" in seen:
        now["missing_fields"] = [pair for pair in seen["missing_fields"] if pair[1] not in fields]
    if any(need.kind == "condition" for need in kinds):
        now.pop("holding", None)
    if "answered" in seen and any(need.kind == "answer" for need in kinds):
        now["answered"] = True
    return now
