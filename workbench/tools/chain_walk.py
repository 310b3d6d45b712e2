"""Chains of passages: where they begin, how one passage leads to others, and which passages answer together.

A chain covers the words of a question: each with its weight, and the words that a text may say for it. No list says
which words those are. Where the corpus is written in another script than the question, they are the words of the corpus
that mean nearly the same (``KnowledgeBase.near``), and what its vocabulary calls the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from workbench.ports import KnowledgeBase, Shared, ToolLog
from workbench.text import CJK, stem, stems, terms
from workbench.tools.evidence import document_id
from workbench.tools.scoring import content_terms

RELATED = 0.8
"""The most that a related word counts for the word of the question."""
MEANT, SAME = 0.55, 0.85
"""Cosines from which on a word of the other script counts for one of the question, and counts in full."""
CLOSEST = 0.6
"""What this part of the best of them counts, or more, is one of those whose rarity is the word's."""


class Word(NamedTuple):
    """A word of a question.

    Attributes:
        weight: inverse document frequency.
        forms: its stems.
        related: stems that mean nearly the same -> what they count, 0 to 1.
    """

    weight: float
    forms: frozenset[str]
    related: Mapping[str, float]

    def share(self, stems_held: Collection[str]) -> float:
        """Return how far a text of these stems says it, 0 to 1."""
        if not self.forms.isdisjoint(stems_held):
            return 1.0
        return max((worth for stemmed, worth in self.related.items() if stemmed in stems_held), default=0.0)


@dataclass(frozen=True)
class AskedWords:
    """The content words of a question, each once."""

    words: tuple[Word, ...]

    @classmethod
    def read(cls, question: str, knowledge: KnowledgeBase) -> AskedWords:
        """Return the content words of a question."""
        groups = [
            word_roots(word for word in group.get(language, ()) if " " not in word)
            for group in knowledge.lexicon()
            for language in ("en", "zh")
        ]
        similar = knowledge.similar_words(question)
        foreign = {word: neighbours for word, neighbours in similar.items() if CJK.match(word)}
        words: dict[str, Word] = {}
        for term in content_terms(question):
            if foreign and CJK.match(term):
                continue  # pairs of signs that no text of this corpus has: their words follow
            word = root(stem(term))
            own = dict.fromkeys(frozenset().union(*(group for group in groups if word in group)), RELATED)
            related = own | _worth(similar.get(term, []))
            worth = {stemmed: worth for stemmed, worth in related.items() if stemmed not in forms(word)}
            words.setdefault(word, Word(knowledge.term_weight(term), forms(word), worth))
        for word, neighbours in foreign.items():
            if worth := _worth(neighbours):
                closest = [stemmed for stemmed, share in worth.items() if share >= CLOSEST * max(worth.values())]
                weight = min(map(knowledge.term_weight, closest))
                words[word] = Word(weight, frozenset({word}), worth)
        return cls(tuple(words.values()))

    def left(self, covered: Collection[str]) -> AskedWords:
        """Return the words that none of these stems is of."""
        return AskedWords(tuple(word for word in self.words if word.forms.isdisjoint(covered)))

    def share(self, stems_held: Collection[str]) -> float:
        """Return the share of the words' weight, 0 to 1, that a text of these stems covers.

        >>> words = AskedWords((Word(2.0, forms("spous"), {"wife": 0.8}), Word(2.0, forms("king"), {})))
        >>> round(words.share({"king", "wife"}), 3)
        0.9
        """
        total = sum(word.weight for word in self.words)
        return sum(word.weight * word.share(stems_held) for word in self.words) / total if total else 0.0


def _worth(neighbours: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Stem of a near word -> what it counts; of a Chinese word each pair of signs."""
    worths: dict[str, float] = {}
    for word, cosine in neighbours:
        worth = RELATED * min(1.0, (cosine - MEANT) / (SAME - MEANT))
        for stemmed in stems(word) if worth > 0 else ():
            worths[stemmed] = max(worths.get(stemmed, 0.0), worth)
    return worths


def root(stemmed: str) -> str:
    """Return a stem without the ending of who does it: an inspector has inspected.

    >>> root("inspector"), root("inspect"), root("her")
    ('inspect', 'inspect', 'her')
    """
    return stemmed[:-2] if len(stemmed) >= 6 and stemmed.endswith(("er", "or")) else stemmed


def forms(word: str) -> frozenset[str]:
    """Return the stems of which this is the root.

    >>> sorted(forms("invent"))
    ['invent', 'inventer', 'inventor']
    """
    return frozenset({word, f"{word}er", f"{word}or"} if len(word) >= 4 else {word})


def word_roots(words: Iterable[str]) -> frozenset[str]:
    """Return the stems of these words with those of which they are the root; of Chinese words the pairs of signs."""
    return frozenset().union(*(forms(root(stemmed)) for stemmed in stems(" ".join(words))))


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
    """The scores of passages before any step: ``own`` likeness 0 to 1, ``score`` with what the question names.

    ``named``: ids of documents whose title is in the question -> that title; ``rest``: the likeness of any passage
    that is not in ``own``.
    """

    own: dict[str, float]
    score: dict[str, float]
    rest: float = 0.0
    named: dict[str, str] = field(default_factory=dict)

    def likeness(self, chunk_id: str) -> float:
        """Return how like the question a passage is, 0 to 1."""
        return self.own.get(chunk_id, self.rest)

    def best(self) -> list[str]:
        """Return every passage that is known, best first, ties by id."""
        return by_score(self.score)


def by_score(score: Mapping[str, float]) -> list[str]:
    """Ids, best first, ties by id."""
    return sorted(score, key=lambda i: (-round(score[i], 9), i))


def seeds(question: str, knowledge: KnowledgeBase) -> Seeds:
    """Return the passages that are like the question, and the ones that it names."""
    titles = knowledge.ways.titles_in(question)
    titles_by_document = {doc_id: question[t["start"] : t["end"]] for t in titles for doc_id in t["doc_ids"]}
    mine = {p["chunk_id"]: p["doc_id"] for p in knowledge.document_passages(list(titles_by_document))}
    lexical = _lexical(question, list(titles_by_document.values()), mine, knowledge)
    dense = _scaled(dict(knowledge.vector_search(question, DEEP)))
    rest = min(dense.values(), default=0.0)
    own = {i: (lexical.get(i, 0.0) + dense.get(i, rest)) / 2 for i in sorted({*lexical, *dense, *mine})}
    score = dict(own)
    for title in titles:  # of several passages of one title the most like the question gets the whole bonus
        group = [i for i, doc_id in mine.items() if doc_id in title["doc_ids"]]
        highest = max((own[i] for i in group), default=0.0)
        for i in group:
            score[i] += TITLE * own[i] / (highest + 1e-9)
    for i, bonus in _rare_phrases(question, list(titles_by_document.values()), knowledge).items():
        score[i] = score.get(i, rest / 2) + bonus
    return Seeds(own, score, rest / 2, titles_by_document)


def _lexical(
    question: str, titles: Sequence[str], mine: Mapping[str, str], knowledge: KnowledgeBase
) -> dict[str, float]:
    """BM25 from 0 to 1; words of named titles count in full for the passages of those titles alone."""
    plain = dict(knowledge.keyword_search(question, DEEP))
    highest = max(plain.values(), default=0.0) + 1e-9
    if not titles:
        return {i: score / highest for i, score in plain.items()}
    explained = frozenset().union(*map(stems, titles))
    rest = " ".join(t for t in terms(question) if not stems(t) <= explained)
    unexplained = dict(knowledge.keyword_search(rest, DEEP)) if rest else {}
    scores = {
        i: ((1 - EXPLAINED) * plain.get(i, 0.0) + EXPLAINED * unexplained.get(i, 0.0)) / highest
        for i in {*plain, *unexplained}
    }
    return scores | {i: plain.get(i, 0.0) / highest for i in mine}


def _scaled(values: Mapping[str, float]) -> dict[str, float]:
    high = max(values.values(), default=0.0)
    return {i: max(0.0, value) / (high + 1e-9) for i, value in values.items()}


def _rare_phrases(question: str, titles: Sequence[str], knowledge: KnowledgeBase) -> dict[str, float]:
    """Return passages that hold a phrase of the question which few hold, and no title is, with the bonus for it."""
    title_terms = [terms(title) for title in titles]
    bonus: dict[str, float] = {}
    for phrase, ids in knowledge.ways.holding(question, RARE).items():
        if (words := terms(phrase)) not in title_terms:
            worth = SEED_PHRASE * (1 - math.log(len(ids)) / math.log(RARE + 1)) * (1.0 if len(words) > 1 else 0.5)
            bonus |= {i: max(bonus.get(i, 0.0), worth) for i in ids}
    return bonus


TOGETHER = 4
"""Passages of one document that are read when one of them is in front."""
WIDTH, STEPS = 6, 2
"""Passages from which a step is taken, one a title; and how many steps there are."""
PARENT, SENTENCE, PASSAGE, OWN = 0.6, 0.4, 0.3, 0.3
"""What a reached passage is worth of: its parent's score, the cover of the linking sentence, its own, its likeness."""
TRUST = {"title": 1.0, "named by": 0.8, "phrase": 0.7}
"""How far a link is trusted: a named title, a passage that names this one, a phrase that both hold."""
NAMED_BY, HUB = 15, 60
"""Passages looked at that name this one; a title or a phrase that more than ``HUB`` hold leads nowhere."""
ALIKE = 10
"""Passages looked at that share a phrase."""
SAME_TITLE, SIBLING = 0.15, 0.05
"""What each further passage of one article, and of one parent, loses."""
POOL = 40
"""Passages among which those are counted."""

By = Literal["title", "named by", "phrase"]


class Step(NamedTuple):
    """A step of the walk: the passage it came from, the link, and the sentence that states it."""

    parent: str
    by: By
    surface: str
    sentence: str


Edge = tuple[str, Step]
"""A passage that can be reached, and how."""


@dataclass
class Chains:
    """Passages with their scores, and how they were reached.

    ``steps`` lead to those that owe their score to one, ``ways`` to all others; ``titles`` are those of every passage
    that was read. Passages of one title are one article.
    """

    knowledge: KnowledgeBase
    score: dict[str, float] = field(default_factory=dict)
    steps: dict[str, Step] = field(default_factory=dict)
    ways: dict[str, Step] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)

    def keep(self, chunk_id: str, worth: float, step: Step | None = None) -> None:
        """Keep a passage by the best that it was found to be worth; no chain leads back to where it came from."""
        if worth > self.score.get(chunk_id, -1.0) and not (step and self._comes_from(step.parent, chunk_id)):
            self.score[chunk_id] = worth
            if step:
                self.steps[chunk_id] = step
        elif step:
            self.ways.setdefault(chunk_id, step)

    def _comes_from(self, chunk_id: str, origin: str) -> bool:
        while chunk_id != origin and chunk_id in self.steps:
            chunk_id = self.steps[chunk_id].parent
        return chunk_id == origin

    def read(self, chunk_ids: Iterable[str]) -> None:
        """Learn the titles of passages."""
        passages = self.knowledge.passages([i for i in dict.fromkeys(chunk_ids) if i not in self.titles])
        self.titles |= {passage["chunk_id"]: passage["title"] for passage in passages}

    def article(self, chunk_id: str) -> str:
        """Return what tells apart passages of different articles that were read."""
        return self.titles.get(chunk_id, "").lower()

    def path(self, chunk_id: str) -> list[tuple[str, Step]]:
        """Return steps that lead to a passage, the first one first: by the best of its parents, none of them twice."""
        way: list[tuple[str, Step]] = []
        seen = {chunk_id}
        while (step := self._to(chunk_id)) and step.parent not in seen:
            way.append((chunk_id, step))
            chunk_id = step.parent
            seen.add(chunk_id)
        return way[::-1]

    def _to(self, chunk_id: str) -> Step | None:
        """Return the last step to a passage; one that is good on its own is led to only from what is better."""
        if chunk_id in self.steps:
            return self.steps[chunk_id]
        step = self.ways.get(chunk_id)
        return step if step and self.score.get(step.parent, 0.0) > self.score.get(chunk_id, math.inf) else None

    def best(self, limit: int) -> list[tuple[str, float]]:
        """Return best passages, with what they were chosen for: one more of an article or of a parent is worth less."""
        order = by_score(self.score)
        pool, rest = order[:POOL], order[POOL:limit]
        self.read(order[: max(limit, POOL)])
        chosen: list[tuple[str, float]] = []
        articles, siblings = Counter[str](), Counter[str]()
        parents = {i: self.steps[i].parent for i in pool if i in self.steps}
        while pool and len(chosen) < limit:
            worth = {
                i: self.score[i] - SAME_TITLE * articles[self.article(i)] - SIBLING * siblings[parents.get(i, "")]
                for i in pool
            }
            best = min(pool, key=lambda i: (-round(worth[i], 9), i))
            pool.remove(best)
            chosen.append((best, worth[best]))
            articles[self.article(best)] += 1
            if best in parents:
                siblings[parents[best]] += 1
        return chosen + [(i, self.score[i]) for i in rest]


class Walk:
    """One question's way through a knowledge base."""

    def __init__(self, words: AskedWords, question: str, seeds: Seeds, knowledge: KnowledgeBase):
        self._words, self._asked, self._seeds, self._knowledge = words, stems(question), seeds, knowledge
        self.chains = Chains(knowledge, dict(seeds.score))
        self._held: dict[str, frozenset[str]] = {}
        self._covered: dict[str, frozenset[str]] = {}
        self._seen: set[str] = set()
        self._front: list[str] = []
        self._go_on(seeds.best()[: WIDTH * 4], {})

    @property
    def front(self) -> list[str]:
        """Return titles of the passages from which the next step is taken."""
        return [self.chains.titles[i] for i in self._front]

    def step(self) -> int:
        """Go one step from the passages in front; how many passages were reached."""
        reached: dict[str, tuple[float, Step]] = {}
        edges = self._edges()
        self._load_stems(target for steps_on in edges.values() for target, _ in steps_on)
        for parent, steps_on in edges.items():
            left, score = self._words.left(self._covered[parent]), self.chains.score[parent]
            for target, step in steps_on:
                in_sentence, in_passage = left.share(stems(step.sentence)), left.share(self._held[target])
                led = PARENT * score + SENTENCE * in_sentence + PASSAGE * in_passage
                worth = TRUST[step.by] * led + OWN * self._seeds.likeness(target)
                if worth > reached.get(target, (0.0,))[0]:
                    reached[target] = (worth, step)
        for target, (worth, step) in sorted(reached.items()):
            self.chains.keep(target, worth, step)
        new = {i: self.chains.score[i] for i in reached if document_id(i) not in self._seen and i in self.chains.score}
        self._go_on(by_score(new), {i: self._covered[step.parent] for i, (_, step) in reached.items()})
        return len(reached)

    def _go_on(self, order: Sequence[str], covered: Mapping[str, frozenset[str]]) -> None:
        """Go on from the first passages of different titles, which cover what their parents did and their titles."""
        self.chains.read(order)
        first: dict[str, str] = {}
        for i in order:
            if i in self.chains.titles:
                first.setdefault(self.chains.article(i), i)
        self._front = list(first.values())[:WIDTH]
        for i in self._front:
            self._covered[i] = covered.get(i, frozenset()) | stems(self.chains.titles[i])
        self._seen |= {document_id(i) for i in self._front}

    def _load_stems(self, chunk_ids: Iterable[str]) -> None:
        missing = [i for i in dict.fromkeys(chunk_ids) if i not in self._held]
        self._held |= dict.fromkeys(missing, frozenset()) | self._knowledge.ways.stems(missing)

    def _edges(self) -> dict[str, list[Edge]]:
        """Return the links on from each passage in front, by the passage."""
        ways, edges_by_parent = self._knowledge.ways, dict[str, list[Edge]]()
        groups = self._groups()
        every = [i for group in groups.values() for i in group]
        links, shared = ways.links_from(every), ways.shared(every, HUB)
        about = self._knowledge.document_passages(sorted({link["doc_id"] for link in links}))
        first = {p["doc_id"]: p["chunk_id"] for p in about if not p["position"]}
        for parent, group in groups.items():
            edges = [
                (first[link["doc_id"]], Step(parent, "title", link["surface"], link["sentence"]))
                for link in links
                if link["chunk_id"] in group and link["doc_id"] in first
            ]
            edges += self._naming(parent)
            edges += self._sharing(parent, [s for s in shared if s["chunk_id"] in group])
            self.chains.read(target for target, _ in edges)
            own = self.chains.article(parent)
            edges_by_parent[parent] = [edge for edge in edges if self.chains.article(edge[0]) not in ("", own)]
        return {parent: edges for parent, edges in edges_by_parent.items() if edges}

    def _groups(self) -> dict[str, list[str]]:
        """Return each passage in front with the first ones of its document."""
        parts: dict[str, list[str]] = {}
        for passage in self._knowledge.document_passages([document_id(i) for i in self._front]):
            parts.setdefault(passage["doc_id"], []).append(passage["chunk_id"])
        return {i: list(dict.fromkeys([i, *parts.get(document_id(i), ())]))[:TOGETHER] for i in self._front}

    def _naming(self, parent: str) -> Iterator[Edge]:
        """Yield passages that name the document of this one."""
        doc_id, ways = document_id(parent), self._knowledge.ways
        naming = sorted(ways.naming(doc_id, HUB), key=lambda i: (-round(self._seeds.likeness(i), 9), i))
        for link in ways.links_to(doc_id, naming[:NAMED_BY]):
            yield link["chunk_id"], Step(parent, "named by", link["surface"], link["sentence"])

    def _sharing(self, parent: str, alike: Sequence[Shared]) -> Iterator[Edge]:
        """Passages that hold a phrase of this one which the question does not, by what they cover of the question."""
        left = self._words.left(self._covered[parent])
        shares = {sentence: left.share(stems(sentence)) for sentence in {shared["sentence"] for shared in alike}}
        best: dict[str, Step] = {}
        for shared in alike:
            if not stems(shared["phrase"]) <= self._asked:
                step = Step(parent, "phrase", shared["phrase"], shared["sentence"])
                for chunk_id in shared["chunk_ids"]:
                    if chunk_id not in best or shares[step.sentence] >= shares[best[chunk_id].sentence]:
                        best[chunk_id] = step
        self._load_stems(best)
        covers = {i: left.share(self._held[i]) for i in best}
        for i in sorted(best, key=lambda i: (-round(covers[i], 9), i))[:ALIKE]:
            if covers[i] > 0:
                yield i, best[i]


def explored(question: str, words: AskedWords, knowledge: KnowledgeBase, log: ToolLog) -> Chains:
    """Return the chains that begin at what a question names and is like."""
    with log("seeds") as detail:
        begun = seeds(question, knowledge)
        walk = Walk(words, question, begun, knowledge)
        detail["named"], detail["front"] = list(dict.fromkeys(begun.named.values())), walk.front
    for number in range(1, STEPS + 1):
        with log(f"step {number}") as detail:
            detail["reached"] = walk.step()
            detail["front"] = walk.front
    return walk.chains
