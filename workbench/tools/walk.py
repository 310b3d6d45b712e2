"""Whom a passage brings in: the names in it that lead on, by how well the sentences that say them cover a question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from workbench.knowledge.reading.corpus import made_title
from workbench.language.names import together
from workbench.ports import KnowledgeBase, Link, Passage, Shared, Titled
from workbench.text import fold, sentences, terms
from workbench.tools.asked_words import AskedWords, stems
from workbench.tools.signals import dated

# --- Where a chain begins: words and meaning, and what the question names counts for more ---

TITLE = 0.6
"""The bonus of a passage whose title the question names."""
SEED_PHRASE, RARE = 0.2, 20
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
        worth = SEED_PHRASE * (1 - math.log(len(ids)) / math.log(RARE + 1)) * (1.0 if len(terms(phrase)) > 1 else 0.5)
        for i in ids:
            bonus[i] = max(bonus.get(i, 0.0), worth)
    return bonus


def _inside(phrase: str, titles: Iterable[str]) -> bool:
    return any(terms(phrase) == terms(title) for title in titles)


TOGETHER = 4
"""Passages of one document that are read when one of them is in front."""
WIDTH, STEPS = 6, 2
"""Passages from which a step is taken, one a title; and how many steps there are."""
PARENT, SENTENCE, PASSAGE, OWN = 0.6, 0.4, 0.3, 0.3
"""What a reached passage is worth of: its parent's score, the cover of the linking sentence, its own, its likeness."""
OUT, BACK, PHRASE = 1.0, 0.8, 0.7
"""How far a link is trusted: a named title, a passage that names this one, a phrase that both hold."""
NAMED_BY, HUB = 15, 60
"""Passages looked at that name this one; a title or a phrase that more than ``HUB`` hold leads nowhere."""
ALIKE = 10
"""Passages looked at that share a phrase."""
SAME_TITLE, SIBLING = 0.15, 0.05
"""What a second passage of one title, and of one parent, loses."""
VOUCHES, BEST = 0.8, 8
"""The part of its score that one of the best passages lends its parent."""
POOL = 40
"""Passages among which titles and parents are counted."""

By = Literal["title", "named by", "phrase"]


class Step(NamedTuple):
    """How a passage was reached: from which one, by what, and the sentence that says it."""

    parent: str
    by: By
    surface: str
    sentence: str


class _Edge(NamedTuple):
    target: str
    step: Step
    trust: float
    cover: float


@dataclass
class Chains:
    """Passages with their scores; ``steps`` lead to those that owe their score to one, ``ways`` to all others.

    ``articles`` tell which passages are of one article (``articles_of``).
    """

    score: dict[str, float]
    steps: dict[str, Step] = field(default_factory=dict)
    ways: dict[str, Step] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    articles: dict[str, str] = field(default_factory=dict)
    looked_at: int = 0

    def path(self, chunk_id: str) -> list[tuple[str, Step]]:
        """The steps that lead to a passage, the first one first: by the best of its parents, none of them twice."""
        way: list[tuple[str, Step]] = []
        seen = {chunk_id}
        while (step := self._to(chunk_id)) and step.parent not in seen:
            way.append((chunk_id, step))
            chunk_id = step.parent
            seen.add(chunk_id)
        return way[::-1]

    def _to(self, chunk_id: str) -> Step | None:
        """The last step to a passage; one that is good by itself is led to only from what is better."""
        step = self.steps.get(chunk_id) or self.ways.get(chunk_id)
        if step and chunk_id not in self.steps and self.score[step.parent] <= self.score[chunk_id]:
            return None
        return step


class Walk:
    """One question's way through a knowledge base."""

    def __init__(self, words: AskedWords, question: str, seeds: Seeds, knowledge: KnowledgeBase):
        self._words, self._asked, self._seeds, self._knowledge = words, stems(question), seeds, knowledge
        self.chains = Chains(dict(seeds.score))
        self._held: dict[str, frozenset[str]] = {}
        self._docs: dict[str, str] = {}
        self._first: dict[str, str] = {}
        self._covered: dict[str, frozenset[str]] = {}
        self._seen: set[str] = set()
        self._front = self._distinct(seeds.best()[: WIDTH * 4])
        self._begin(self._front)

    @property
    def front(self) -> list[str]:
        """Titles of the passages from which the next step is taken."""
        return [self.chains.titles[i] for i in self._front]

    def step(self) -> int:
        """Go one step from the passages in front; how many passages were reached."""
        reached: dict[str, tuple[float, Step]] = {}
        edges = {parent: found for parent, found in self._edges() if found}
        self._read(edge.target for found in edges.values() for edge in found)
        for parent, found in edges.items():
            left = self._words.left(self._covered[parent])
            for edge in found:
                worth = edge.trust * (
                    PARENT * self.chains.score[parent]
                    + SENTENCE * edge.cover
                    + PASSAGE * self._cover(left, edge.target)
                ) + OWN * self._seeds.likeness(edge.target)
                if worth > reached.get(edge.target, (0.0,))[0]:
                    reached[edge.target] = (worth, edge.step)
        self._keep(reached)
        return len(reached)

    def _keep(self, reached: Mapping[str, tuple[float, Step]]) -> None:
        chains = self.chains
        for target, (worth, step) in sorted(reached.items()):
            if worth > chains.score.get(target, 0.0) and not self._leads_back(target, step.parent):
                chains.score[target], chains.steps[target] = worth, step
            else:
                chains.ways.setdefault(target, step)
        new = {t: chains.score.get(t, 0.0) for t in reached if self._docs.get(t) not in self._seen}
        self._front = self._distinct(_by_score(new))
        for target in self._front:
            parent = reached[target][1].parent
            self._covered[target] = self._covered[parent] | stems(chains.titles[target])
        self._seen |= {self._docs[i] for i in self._front}

    def finish(self) -> Chains:
        """What was found; the titles of the best passages are known."""
        self._read(_by_score(self.chains.score)[: POOL + BEST])
        return self.chains

    def _leads_back(self, target: str, parent: str) -> bool:
        """Whether the way to the parent comes from the target itself."""
        while parent != target and parent in self.chains.steps:
            parent = self.chains.steps[parent].parent
        return parent == target

    def _begin(self, front: Sequence[str]) -> None:
        self._seen |= {self._docs[i] for i in front}
        self._covered |= {i: stems(self.chains.titles[i]) for i in front}

    def _distinct(self, order: Sequence[str]) -> list[str]:
        """The first passages of different titles."""
        self._read(order)
        found: dict[str, str] = {}
        for i in order:
            if i in self.chains.titles:
                found.setdefault(self.chains.articles[i], i)
        return list(found.values())[:WIDTH]

    def _read(self, chunk_ids: Iterable[str]) -> None:
        missing = [i for i in dict.fromkeys(chunk_ids) if i not in self.chains.titles]
        passages = self._knowledge.passages(missing)
        self.chains.articles |= articles_of(passages, self._knowledge)
        for passage in passages:
            self.chains.titles[passage["chunk_id"]] = passage["title"]
            self._docs[passage["chunk_id"]] = passage["doc_id"]
        self.chains.looked_at += len(missing)

    def _cover(self, left: AskedWords, chunk_id: str) -> float:
        return left.share(self._stems_of([chunk_id])[chunk_id])

    def _stems_of(self, chunk_ids: Sequence[str]) -> Mapping[str, frozenset[str]]:
        missing = [i for i in chunk_ids if i not in self._held]
        if missing:
            held = self._knowledge.ways.stems(missing)
            self._held |= {i: held.get(i, frozenset()) for i in missing}
        return self._held

    def _edges(self) -> Iterator[tuple[str, list[_Edge]]]:
        """The ways on from each passage in front and the others of its document, by the passage."""
        ways, groups = self._knowledge.ways, self._groups()
        every = [i for group in groups.values() for i in group]
        out, alike = ways.links_from(every), ways.shared(every, HUB)
        heads = self._heads({link["doc_id"] for link in out})
        for parent, group in groups.items():
            left = self._words.left(self._covered[parent])
            sentence = _Sentences(left)
            found = [
                self._edge(heads[link["doc_id"]], parent, "title", link, OUT, sentence)
                for link in out
                if link["chunk_id"] in group and link["doc_id"] in heads
            ]
            found += self._naming(parent, sentence)
            found += self._sharing(parent, [s for s in alike if s["chunk_id"] in group], left, sentence)
            own = self.chains.articles[parent]
            self._read(edge.target for edge in found)
            yield parent, [e for e in found if self.chains.articles.get(e.target, own) != own]

    def _groups(self) -> dict[str, list[str]]:
        """Each passage in front with the first ones of its document."""
        every = self._knowledge.passages_of([self._docs[i] for i in self._front])
        mine = {i: [p["chunk_id"] for p in every if p["doc_id"] == self._docs[i]] for i in self._front}
        return {i: list(dict.fromkeys([i, *chunk_ids]))[:TOGETHER] for i, chunk_ids in mine.items()}

    def _edge(self, target: str, parent: str, by: By, link: Link, trust: float, sentence: _Sentences) -> _Edge:
        step = Step(parent, by, link["surface"], link["sentence"])
        return _Edge(target, step, trust, sentence.cover(link["sentence"]))

    def _heads(self, doc_ids: Iterable[str]) -> dict[str, str]:
        """The first passage of each document."""
        wanted = sorted({*doc_ids} - self._first.keys())
        for passage in self._knowledge.passages_of(wanted):
            self._first.setdefault(passage["doc_id"], passage["chunk_id"])
        return self._first

    def _naming(self, parent: str, sentence: _Sentences) -> Iterator[_Edge]:
        doc_id = self._docs[parent]
        found = self._knowledge.ways.naming(doc_id, HUB)
        found = sorted(found, key=lambda i: (-round(self._seeds.likeness(i), 9), i))[:NAMED_BY]
        for link in self._knowledge.ways.links_to(doc_id, found):
            yield self._edge(link["chunk_id"], parent, "named by", link, BACK, sentence)

    def _sharing(self, parent: str, alike: Sequence[Shared], left: AskedWords, sentence: _Sentences) -> Iterator[_Edge]:
        best: dict[str, tuple[float, Step]] = {}
        for shared in alike:
            if stems(shared["phrase"]) <= self._asked:
                continue
            cover = sentence.cover(shared["sentence"])
            for other in shared["chunk_ids"]:
                if cover >= best.get(other, (-1.0,))[0]:
                    best[other] = (cover, Step(parent, "phrase", shared["phrase"], shared["sentence"]))
        self._stems_of(list(best))
        covers = {i: self._cover(left, i) for i in best}
        for i in sorted(best, key=lambda i: (-round(covers[i], 9), i))[:ALIKE]:
            if covers[i] > 0:
                yield _Edge(i, best[i][1], PHRASE, best[i][0])


class _Sentences:
    """How much of the words that are left each sentence covers; a sentence is read once."""

    def __init__(self, left: AskedWords):
        self._left = left
        self._known: dict[str, float] = {}

    def cover(self, sentence: str) -> float:
        if sentence not in self._known:
            self._known[sentence] = self._left.share(stems(sentence))
        return self._known[sentence]


def chosen(chains: Chains, most: int) -> list[tuple[str, float]]:
    """The passages as a set, best first: one title once, and not all children of one parent, before anything twice.

    The score of a passage is what it was chosen for, and never above the one before it.
    """
    score = dict(chains.score)
    order = _by_score(score)
    for i in order[:BEST]:
        if i in chains.steps:
            parent = chains.steps[i].parent
            score[parent] = max(score[parent], VOUCHES * score[i])
    order = _by_score(score)
    pool, rest = order[:POOL], order[POOL:]
    found: list[tuple[str, float]] = []
    articles, parents = Counter[str](), Counter[str]()
    while pool and len(found) < most:
        worth = {i: score[i] - SAME_TITLE * articles[_article(chains, i)] - _siblings(chains, i, parents) for i in pool}
        best = min(pool, key=lambda i: (-round(worth[i], 9), i))
        pool.remove(best)
        found.append((best, worth[best]))
        articles[_article(chains, best)] += 1
        if best in chains.steps:
            parents[chains.steps[best].parent] += 1
    found += [(i, score[i]) for i in rest[: max(0, most - len(found))]]
    return found


def _by_score(score: Mapping[str, float]) -> list[str]:
    return sorted(score, key=lambda i: (-round(score[i], 9), i))


def _siblings(chains: Chains, chunk_id: str, parents: Counter[str]) -> float:
    step = chains.steps.get(chunk_id)
    return SIBLING * parents[step.parent] if step else 0.0


def _article(chains: Chains, chunk_id: str) -> str:
    return chains.articles.get(chunk_id, chunk_id)


def articles_of(passages: Sequence[Passage], knowledge: KnowledgeBase) -> dict[str, str]:
    """Chunk id -> what says that passages are of one article: a title that was given, else the document.

    A title that was made of how a text begins ("Hey!") says nothing of whether two texts belong together.
    """
    first = {p["doc_id"]: p for p in passages if not p["position"]}
    later = sorted({p["doc_id"] for p in passages} - first.keys())
    first |= {p["doc_id"]: p for p in knowledge.passages_of(later) if not p["position"]}
    made = {doc_id for doc_id, p in first.items() if p["title"] == made_title(p["text"])}
    return {p["chunk_id"]: p["doc_id"] if p["doc_id"] in made else p["title"].lower() for p in passages}


class Bridge(NamedTuple):
    """A name in a sentence of a passage: how the sentence covers the question, and of which documents it is."""

    surface: str
    sentence: str
    parent: str
    doc_ids: frozenset[str]
    cover: float

    @property
    def name(self) -> str:
        """As names are compared."""
        return fold(self.surface)


def bridges(passages: Sequence[Passage], words: AskedWords, knowledge: KnowledgeBase) -> list[Bridge]:
    """Each name once, by the sentence that covers most of the words; those that documents are about count for more."""
    best: dict[str, Bridge] = {}
    for bridge in _named(passages, words, knowledge):
        if len(bridge.name) > 1 and (bridge.name not in best or bridge.cover > best[bridge.name].cover):
            best[bridge.name] = bridge
    return sorted(best.values(), key=lambda b: (-round(b.cover * (OUT if b.doc_ids else PHRASE), 9), b.name))


def _named(passages: Sequence[Passage], words: AskedWords, knowledge: KnowledgeBase) -> Iterator[Bridge]:
    """Titles in every sentence; known names, which are dearer to find, in those that cover something."""
    for link in knowledge.ways.links_from([passage["chunk_id"] for passage in passages]):
        cover = words.share(stems(link["sentence"]))
        yield Bridge(link["surface"], link["sentence"], link["chunk_id"], frozenset({link["doc_id"]}), cover)
    for passage in passages:
        for sentence in sentences(passage["text"]):
            cover = words.share(stems(sentence))
            for mention in knowledge.link(sentence) if cover else ():
                entity = knowledge.entity(mention["entity_id"])
                if entity and entity["doc_id"]:
                    doc_ids = frozenset({entity["doc_id"]})
                    yield Bridge(mention["surface"], sentence, passage["chunk_id"], doc_ids, cover)
                elif entity and 1 < len(knowledge.mentions_of(entity["entity_id"])) <= HUB:
                    yield Bridge(mention["surface"], sentence, passage["chunk_id"], frozenset(), cover)
