"""Where a chain begins: words and meaning, and what the question names counts for more.

The passages of a title that the question names get a bonus, and the words of that title are explained by them: for
every other passage they count a tenth, so that near-namesakes fall. After ``ex`` of the multi-hop method.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from workbench.context import KnowledgeBase, Titled
from workbench.language.joined import together
from workbench.text import terms
from workbench.tools.asked_words import stems
from workbench.tools.dated import dated

TITLE = 0.6
"""The bonus of a passage whose title the question names."""
PHRASE, RARE = 0.2, 20
"""The bonus of a phrase of the question that one passage holds; none where more than ``RARE`` do."""
EXPLAINED = 0.9
"""The part of a title's words that counts for nothing elsewhere."""
DEEP = 500
"""Passages whose likeness to the question is known; any other has none."""


@dataclass
class Seeds:
    """What is known of passages before any step: ``own`` likeness 0 to 1, ``score`` with what the question names.

    ``named``: ids of documents whose title stands in the question -> that title; ``held``: phrases of the question.
    """

    own: dict[str, float]
    score: dict[str, float]
    rest: float = 0.0
    named: dict[str, str] = field(default_factory=dict)
    held: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def likeness(self, chunk_id: str) -> float:
        """``own``; of any other passage as much as the last one that is known has of meaning."""
        return self.own.get(chunk_id, self.rest)

    def best(self) -> list[str]:
        """Every passage that is known, best first, ties by id."""
        return sorted(self.score, key=lambda i: (-round(self.score[i], 9), i))


def seeds(question: str, knowledge: KnowledgeBase) -> Seeds:
    """The passages that are like the question, and the ones that it names."""
    days = [Titled(start=d.start, end=d.end, doc_ids=sorted(d.doc_ids)) for d in dated(question, knowledge)]
    titles = [*knowledge.ways.titles_in(question), *days]
    named = {doc_id: question[t["start"] : t["end"]] for t in titles for doc_id in t["doc_ids"]}
    mine = {p["chunk_id"]: p["doc_id"] for p in knowledge.passages_of(list(named))}
    lexical = _lexical(question, list(named.values()), mine, knowledge)
    dense = _scaled(dict(knowledge.vector_search(question, DEEP)))
    rest = min(dense.values(), default=0.0)
    own = {i: (lexical.get(i, 0.0) + dense.get(i, rest)) / 2 for i in sorted({*lexical, *dense, *mine})}
    score = dict(own)
    for title in titles:  # of several passages of one title the most like the question gets the whole bonus
        group = [i for i, doc_id in mine.items() if doc_id in title["doc_ids"]]
        most = max((own[i] for i in group), default=0.0)
        for i in group:
            score[i] += TITLE * own[i] / (most + 1e-9)
    held = {p: ids for p, ids in knowledge.ways.holding(question, RARE).items() if not _inside(p, named.values())}
    for i, bonus in _rare(held).items():
        score[i] = score.get(i, rest / 2) + bonus
    return Seeds(own, score, rest / 2, named, held)


def _lexical(
    question: str, titles: Sequence[str], mine: Mapping[str, str], knowledge: KnowledgeBase
) -> dict[str, float]:
    """BM25 from 0 to 1; words of named titles count in full for the passages of those titles alone."""
    plain = dict(knowledge.keyword_search(together(question, knowledge), DEEP))
    most = max(plain.values(), default=0.0) + 1e-9
    if not titles:
        return {i: score / most for i, score in plain.items()}
    explained = frozenset().union(*map(stems, titles))
    rest = " ".join(t for t in terms(question) if not stems(t) <= explained)
    other = dict(knowledge.keyword_search(rest, DEEP)) if rest else {}
    found = {i: ((1 - EXPLAINED) * plain.get(i, 0.0) + EXPLAINED * other.get(i, 0.0)) / most for i in {*plain, *other}}
    return found | {i: plain.get(i, 0.0) / most for i in mine}


def _scaled(values: Mapping[str, float]) -> dict[str, float]:
    high = max(values.values(), default=0.0)
    return {i: max(0.0, value) / (high + 1e-9) for i, value in values.items()}


def _rare(held: Mapping[str, Sequence[str]]) -> dict[str, float]:
    bonus: dict[str, float] = {}
    for phrase, ids in held.items():
        worth = PHRASE * (1 - math.log(len(ids)) / math.log(RARE + 1)) * (1.0 if len(terms(phrase)) > 1 else 0.5)
        for i in ids:
            bonus[i] = max(bonus.get(i, 0.0), worth)
    return bonus


def _inside(phrase: str, titles: Iterable[str]) -> bool:
    return any(terms(phrase) == terms(title) for title in titles)
