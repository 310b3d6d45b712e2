"""A question as a knowledge base sees it, what is seen of a passage next to it, and the probability made of that.

Rankings of several sources are fused into one by ``rrf``; further strategies are in ``parts/fusion``. A ranking is best
first, each id once; a fusion is the same.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from workbench.language.words import value_texts
from workbench.ports import Entity, KnowledgeBase, Passage, Relation
from workbench.state import Data, Hits, unique
from workbench.text import CJK, content_terms, fold, fold_word, stem, terms


@dataclass(frozen=True)
class Logistic:
    """``1 / (1 + exp(-(bias + sum(weight * signal))))``."""

    bias: float
    weights: Mapping[str, float]

    def __call__(self, signals: Mapping[str, float]) -> float:
        """Return the probability; signals that the model does not know are ignored, missing ones count 0."""
        z = self.bias + sum(w * signals.get(name, 0.0) for name, w in self.weights.items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))


FITTED = json.loads(Path(__file__).with_name("fitted.json").read_text("utf-8"))
MODELS = {name: Logistic(**model) for name, model in FITTED["models"].items()}
"""Of what is seen of a passage; every signal speaks for a result, so no weight is below 0."""
ORDER: Mapping[str, float] = FITTED["order"]
"""In what order ``hybrid_search`` gives its probabilities out. ``reread`` is the reranker's view as far as words cannot
tell: it orders well, but it always has a best one, and a probability made of it is over 0.5 for the best of 27 of 100
questions that no document answers; without it, for 1. ``led`` is how soon the graph comes to a passage from the
documents that the question names.
"""


def probability(tool: str, signals: Mapping[str, float]) -> float:
    """Return the probability, to 6 digits, that a result with these signals is relevant.

    >>> probability("keyword_search", {}) < probability("keyword_search", {"covered": 1.0})
    True
    """
    return round(MODELS[tool](signals), 6)


UNSEEN = 0.0005
"""The score that a passage counts with where it was not found, and the lowest that counts."""


def log_odds(score: float) -> float:
    """Return the log odds of a score between 0 and 1."""
    clipped = min(max(score, 1e-6), 1 - 1e-6)
    return math.log(clipped / (1 - clipped))


def descending(scores: Sequence[float]) -> list[float]:
    """Scores that fall from each to the next, if by no more than can be seen, so that an order stands.

    >>> descending([0.5, 0.7, 0.2])
    [0.5, 0.499999, 0.2]
    """
    falling: list[float] = []
    for score in scores:
        falling.append(round(min(score, falling[-1] - 1e-6) if falling else score, 6))
    return falling


LEAD = 60  # the hits over which a lead is measured, whatever part of them is asked for


@dataclass(frozen=True)
class NamedEntity:
    """A named entity of a question: its names, folded, its weight, and the passages and document it is in.

    A name weighs as much as two words of its rarity. ``subjects`` are the documents
    of all who bear it; ``doc_ids`` these and those of the same title that no year tells apart: the parts of an article.
    """

    name: str
    names: tuple[str, ...]
    weight: float
    entity_id: str = ""
    subjects: tuple[str, ...] = ()
    chunk_ids: frozenset[str] = frozenset()
    doc_ids: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Question:
    """A query as one knowledge base sees it: the names that it knows, and the weighted words around them.

    Attributes:
        text: the query, with the further names that are meant.
        rest: the query without the names that the knowledge base knows.
        weights: content word of ``rest`` -> inverse document frequency.
        named: the entities, in the order of the question; a name that several bear means all of them.
    """

    text: str
    rest: str
    knowledge: KnowledgeBase
    weights: Mapping[str, float]
    named: tuple[NamedEntity, ...]

    @classmethod
    def read(cls, text: str, knowledge: KnowledgeBase, also: Sequence[str] = ()) -> Question:
        """Read a query; ``also`` are further names that are meant, unknown ones are left out."""
        mentions = knowledge.link(text)
        linked = [knowledge.entity(m["entity_id"]) for m in mentions]
        linked_by_id = {e["entity_id"]: e for e in linked if e is not None}
        meant = {e["entity_id"]: e for e in map(knowledge.entity, also) if e is not None}
        passages = knowledge.about()["counts"]["passages"]
        rest = _without(text, [(m["start"], m["end"]) for m in mentions])
        further = [e["name"] for i, e in meant.items() if i not in linked_by_id]
        bearers = {
            m["entity_id"]: list(filter(None, map(knowledge.entity, m["others"])))
            for m in mentions
            if m.get("others")
        }
        words = content_terms(rest)
        # further names that join the words searched for; more would drown the question
        return cls(
            text=" ".join([text, *further[:5]]),
            knowledge=knowledge,
            rest=rest,
            weights=dict(zip(words, knowledge.words(words)["weights"], strict=True)),
            named=tuple(
                _merge_bearers([e, *bearers.get(i, ())], passages, knowledge)
                for i, e in (linked_by_id | meant).items()
            ),
        )

    @property
    def entities(self) -> list[str]:
        """Return names of the entities, in the order of the question."""
        return [n.name for n in self.named]

    @property
    def subjects(self) -> list[str]:
        """Ids of the documents about a named entity, and about each who bears an ambiguous name."""
        return unique(doc_id for name in self.named for doc_id in name.subjects)

    def signals(self, passage: Passage) -> dict[str, float]:
        """Return what is seen of one passage, each 0 to 1.

        ``covered``: the share of the question's weight that the passage or its fields hold; ``unread``: the share that
        is in another script than the passage, so that words cannot tell; ``subject``: the document is about a name in
        the question.
        """
        values = field_values(passage["fields"])
        text = " / ".join([passage["title"], passage["text"], *values])
        terms_held, chinese = passage_terms(text)
        folded = {fold_word(value) for value in values}
        covered = sum(name.weight for name in self.named if _holds(passage, name, folded))
        unread = 0.0
        for word, weight in self.weights.items():
            if _has(word, terms_held):
                covered += weight
            elif bool(CJK.match(word)) != chinese:
                unread += weight
        total = sum(name.weight for name in self.named) + sum(self.weights.values()) or 1.0
        return {
            "covered": covered / total,
            "unread": unread / total,
            "subject": float(any(passage["doc_id"] in name.doc_ids for name in self.named)),
        }

    def signals_in(
        self,
        passages: Sequence[Passage],
        bm25: Hits | None = None,
        dense: Hits | None = None,
    ) -> list[dict[str, float]]:
        """Return the signals of passages, with those of the rankings in which they were found.

        ``bm25``: the share of the best score; ``cosine`` and ``lead`` as ``cosine_signals`` has them, of what is behind
        the ranking the least cosine; ``across``: the lead where words cannot tell.
        """
        lexical = shares(bm25 or [])
        cosines = cosine_signals(dense or [])
        unseen = {"cosine": min((cosine for _, cosine in dense or ()), default=0.0)}
        signals = []
        for passage in passages:
            seen = self.signals(passage)
            if dense is not None:
                seen |= cosines.get(passage["chunk_id"], unseen)
                seen["across"] = seen["unread"] * seen.get("lead", 0.0)
            if bm25 is not None:
                seen["bm25"] = lexical.get(passage["chunk_id"], 0.0)
            signals.append(seen)
        return signals

    def judge(
        self, tool: str, text: str, title: str, doc_id: str = "", **signals: float
    ) -> float:
        """Return the probability that a text is relevant, from its words and from signals that are known otherwise."""
        passage = Passage(
            chunk_id="",
            doc_id=doc_id,
            title=title,
            text=text,
            position=0,
            url="",
            licence="",
            fields={},
        )
        return probability(tool, self.signals(passage) | signals)


def _holds(passage: Passage, name: NamedEntity, values: Collection[str]) -> bool:
    """Check whether a passage is about a name or contains it.

    Passages of the base are looked up by id, those of other sources are read.
    """
    if passage["chunk_id"] in name.chunk_ids or passage["doc_id"] in name.doc_ids:
        return True
    return any(n in values for n in name.names) or (
        not passage["chunk_id"] and _says(passage, name)
    )


def _says(passage: Passage, name: NamedEntity) -> bool:
    text = fold(f"{passage['title']} {passage['text']}")
    return any(
        n in text and re.search(rf"(?<![a-z0-9]){re.escape(n)}(?![a-z0-9])", text)
        for n in name.names
    )


def _merge_bearers(
    bearers: Sequence[Entity], passages: int, knowledge: KnowledgeBase
) -> NamedEntity:
    """Return a name by all who bear it, the likeliest first."""
    parts = [part for entity in bearers for part in _parts(entity, knowledge)]
    mentions = [
        chunk_id
        for entity in bearers
        for chunk_id in knowledge.around("mentions", [entity["entity_id"]])
    ]
    chunk_ids = frozenset([*mentions, *(p["chunk_id"] for p in parts)])
    first = bearers[0]
    return NamedEntity(
        name=first["name"],
        names=tuple(
            dict.fromkeys(
                fold(n) for e in bearers for n in (e["name"], *e["aliases"]) if len(n) > 1
            )
        ),
        weight=_weight(passages, len(chunk_ids)),
        entity_id=first["entity_id"],
        subjects=tuple(entity["doc_id"] for entity in bearers if entity["doc_id"]),
        chunk_ids=chunk_ids,
        doc_ids=frozenset(p["doc_id"] for p in parts),
    )


def _weight(passages: int, holding: int) -> float:
    """Return what a name weighs that so many passages say: as much as two words of its rarity."""
    return 2 * math.log((passages + 1) / (min(passages, holding) + 1))


def _parts(entity: Entity, knowledge: KnowledgeBase) -> list[Passage]:
    """Return passages of the document that an entity is, and of those of the same title; two years are two things."""
    if not entity["doc_id"]:
        return []
    namesakes = {
        doc_id for title in knowledge.link(entity["name"], "title") for doc_id in title["doc_ids"]
    }
    # documents of one title that are read
    passages = knowledge.passages(
        doc_ids=[entity["doc_id"], *sorted(namesakes - {entity["doc_id"]})[:100]]
    )
    own = [p for p in passages if p["doc_id"] == entity["doc_id"]]
    if not own or "year" in own[0]["fields"] or entity["type"] != "Document":
        return own
    return [p for p in passages if fold(p["title"]) == fold(own[0]["title"])]


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return the text with a slash for each span, so that nothing runs together over the gap.

    >>> _without("books by Lao She?", [(9, 16)])
    'books by  / ?'
    """
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]} / {text[end:]}"
    return text


def _has(word: str, terms_held: Mapping[str, Collection[str]]) -> bool:
    """Check whether a text holds a word in any form; only words with an equal start are stemmed: stemming is slow."""
    return any(word == term or stem(word) == stem(term) for term in terms_held.get(word[:3], ()))


@lru_cache(maxsize=4096)
def passage_terms(text: str) -> tuple[Mapping[str, frozenset[str]], bool]:
    """Return the terms that a text holds, by their first three letters, and whether it is written in Chinese."""
    by_prefix = defaultdict[str, set[str]](set)
    for term in terms(text):
        by_prefix[term[:3]].add(term)
    return {key: frozenset(group) for key, group in by_prefix.items()}, len(
        CJK.findall(text)
    ) * 8 > len(text)


def coverage(
    question: str, texts: Sequence[str], knowledge: KnowledgeBase
) -> tuple[list[float], list[list[float]]]:
    """Return the weight of each word of a question, 1 in all, and how far each text says each word, 0 to 1."""
    # Cosines at which a word of a text does not say one of the question at all, and says it in
    # full.
    unsaid = 0.4
    clear = 0.85
    words = knowledge.words(question, texts)
    rarity = words["rarity"]
    rows = words["texts"]
    total = sum(rarity) + 1e-6 * len(rarity) or 1.0
    weights = [(weight + 1e-6) / total for weight in rarity]
    return weights, [
        [min(1.0, max(0.0, (c - unsaid) / (clear - unsaid))) for c in row] for row in rows
    ]


def word_shares(question: str, texts: Sequence[str], knowledge: KnowledgeBase) -> list[float]:
    """Return how much of a question each text says, 0 to 1; of no words nothing is said."""
    weights, rows = coverage(question, texts, knowledge)
    return [
        sum(weight * clearness for weight, clearness in zip(weights, row, strict=True))
        for row in rows
    ]


def field_values(fields: Data) -> list[str]:
    """Return the typed values of a document, each as text.

    >>> field_values({"year": 1993, "authors": ["Lao She"]})
    ['1993', 'Lao She']
    """
    return [text for value in fields.values() for text in value_texts(value)]


def shares(hits: Hits) -> dict[str, float]:
    """Return each hit's share of the best score, by chunk id.

    >>> shares([("a", 8.0), ("b", 6.0)])
    {'a': 1.0, 'b': 0.75}
    """
    return {chunk_id: score / hits[0][1] for chunk_id, score in hits}


def cosine_signals(hits: Hits) -> dict[str, dict[str, float]]:
    """Return what is seen of each hit, by chunk id, each 0 to 1.

    ``cosine``; ``lead``: how far above the middle of the best ``LEAD`` hits, in their spread.

    >>> cosine_signals([("a", .8), ("b", .4), ("c", .4)])["a"]
    {'cosine': 0.8, 'lead': 1.0}
    """
    if not hits:
        return {}
    values = sorted(cosine for _, cosine in hits[:LEAD])
    middle = values[len(values) // 2]
    low = values[0]
    spread = 4 * max(0.05, middle - low)
    return {i: {"cosine": c, "lead": max(0.0, min(1.0, (c - middle) / spread))} for i, c in hits}


def around(question: Question, knowledge: KnowledgeBase) -> list[tuple[Entity, list[Relation]]]:
    """Return the entities one relation away from those in the question, best connected to them first, ties by id."""
    seeds = [n.entity_id for n in question.named]
    met = defaultdict[str, list[Relation]](list)
    for seed in seeds:
        for relation in knowledge.around("relations", [seed]):
            neighbour = relation["target"] if relation["source"] == seed else relation["source"]
            if neighbour not in seeds:
                met[neighbour].append(relation)
    entities = [
        (knowledge.entity(i), met[i]) for i in sorted(met, key=lambda i: (-len(met[i]), i))
    ]
    return [(entity, relations) for entity, relations in entities if entity is not None]


def passages_around(question: Question, knowledge: KnowledgeBase, limit: int) -> list[str]:
    """Ids of passages by place in the graph: documents on the names, passages that say them, then the neighbours'.

    A neighbour's passages count by how rare the neighbour is, so a shared author tells more than a shared genre.
    """
    # an entity with more relations than this (a country, a genre) says little about what stands
    # around it
    hub = 60
    own = [p["chunk_id"] for p in knowledge.passages(doc_ids=question.subjects)]
    mentioned = _agreed((n.weight, sorted(n.chunk_ids)) for n in question.named)
    votes = []
    for entity, _ in around(question, knowledge)[:limit]:
        at = knowledge.around("mentions", [entity["entity_id"]])
        if entity["doc_id"]:
            votes.append(
                (1.0, [p["chunk_id"] for p in knowledge.passages(doc_ids=[entity["doc_id"]])])
            )
        if 0 < len(at) <= hub:
            votes.append((1 / len(at), at))
    return unique([*own, *mentioned, *_agreed(votes)])[:limit]


def _agreed(votes: Iterable[tuple[float, list[str]]]) -> list[str]:
    """Return ids by the sum of the weights of those who name them, ties by id."""
    total = defaultdict[str, float](float)
    for weight, ids in votes:
        for i in ids:
            total[i] += weight
    return sorted(total, key=lambda i: (-round(total[i], 9), i))


Ranking = Hits
Strategy = Callable[[Mapping[str, Ranking]], Hits]
"""Fuses rankings by the names of their sources into one."""


def rrf(rankings: Mapping[str, Ranking]) -> Hits:
    """Reciprocal-rank fusion: agreement beats one high place.

    >>> [i for i, _ in rrf({"words": [("a", 9.0), ("b", 5.0)], "meaning": [("b", 0.9), ("c", 0.8)]})]
    ['b', 'a', 'c']
    """
    # Of reciprocal-rank fusion (Cormack et al. 2009): how little the first places are set apart.
    return summed(
        rankings, lambda ranking: [1 / (60 + rank) for rank, _ in enumerate(ranking, start=1)]
    )


def summed(rankings: Mapping[str, Ranking], worth: Callable[[Ranking], Sequence[float]]) -> Hits:
    """Return the sum of what each ranking gives an id, best first, ties by id."""
    total = defaultdict[str, float](float)
    for ranking in rankings.values():
        for (i, _), value in zip(ranking, worth(ranking), strict=True):
            total[i] += value
    return sorted(
        ((i, round(s, 9)) for i, s in total.items()), key=lambda pair: (-pair[1], pair[0])
    )
