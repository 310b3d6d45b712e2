"""``chain_exploration``: from what the question names, along titles and shared phrases, to what it asks for.

A chain covers the words of a question, each with its weight. A passage leads on to the documents that it names
and to passages that share a phrase with it. A path is evidence itself: the sentence in which one
passage names the next one. What the best passages leave of the question is then asked of the names in them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from workbench.ports import KnowledgeBase, Shared, ToolLog
from workbench.state import Json, RetrievalResult
from workbench.text import content_terms, detect_language, stem, stems
from workbench.tools import evidence
from workbench.tools.evidence import document_id
from workbench.tools.hops import answers, sub_questions
from workbench.tools.scoring import UNSEEN, Question, descending, log_odds, probability
from workbench.tools.tool import FunctionTool, Search, ToolOutput

ANSWERING = 5
"""Passages that together should hold the words of the question."""


class ChainOutput(ToolOutput):
    """The output of ``chain_exploration``."""

    paths: list[str] = Field(default_factory=list, description="Chains of titles, each with what leads on")


def search(tool_input: Search, knowledge: KnowledgeBase, log: ToolLog) -> Json:
    """Return the passages of the best chains; their order stands, whatever their probabilities."""
    query = tool_input.query
    with log("link") as detail:
        question = Question.read(query, knowledge)
        detail["entities"] = question.entities
    with log("seeds") as detail:
        walk = Walk(query, knowledge)
        detail["named"], detail["front"] = walk.named, walk.front
    with log("step") as detail:
        detail["reached"] = walk.step()
    with log("choose") as detail:
        ids = walk.best(tool_input.top_k)
        walk.read(ids)
        detail["looked at"] = len(walk.titles)
    with log("ask on") as detail:
        detail["asked"], order = walk.ask_on(ids, query)
        ids = order[: tool_input.top_k]
    with log("calibrate"):
        scores, signals = walk.probabilities(ids)
        results = []
        for passage, seen, score in zip(knowledge.passages(ids), signals, scores, strict=True):
            result = evidence.chunk(passage, score, TOOL.name, knowledge.name, seen)
            path = walk.path(passage["chunk_id"])
            result["metadata"] |= chain_metadata([chain_step(target, *step, walk.titles) for target, step in path])
            results.append(result)
    return {**evidence.answer(question, results, len(results)), "paths": chain_paths(results)}


def chain_step(
    target: str, source: str, by: str, surface: str, sentence: str, titles: Mapping[str, str]
) -> dict[str, str]:
    """Return a step of a path from one passage to another, with the words for it."""
    words = says(titles[source], by, surface, titles[target], sentence)
    return {"from": source, "to": target, "by": by, "surface": surface, "sentence": sentence, "says": words}


def chain_metadata(steps: Sequence[dict[str, str]]) -> Json:
    """Return steps as metadata, with what all of them say."""
    return {"chain": {"says": " → ".join(step["says"] for step in steps), "steps": steps}} if steps else {}


def chain_paths(results: Sequence[RetrievalResult]) -> list[str]:
    """Return what the chains of results say, each once."""
    return list(dict.fromkeys(r["metadata"]["chain"]["says"] for r in results if "chain" in r["metadata"]))


_SAYS = {
    ("en", "asked"): "the question names {surface}, which leads to {child}",
    ("en", "title"): "{parent} names {child}",
    ("en", "phrase"): "{parent} shares “{surface}” with {child}",
    ("zh", "asked"): "问题提到{surface}，由此到{child}",
    ("zh", "title"): "{parent}提到{child}",
    ("zh", "phrase"): "{parent}与{child}都提到“{surface}”",
}
_QUOTED = {"en": "{said} (“{sentence}”)", "zh": "{said}（“{sentence}”）"}
_LONGEST = 200


def says(parent: str, by: str, surface: str, child: str, sentence: str) -> str:
    """Return a step of a path in words, in the language of its sentence.

    >>> says("Ride", "title", "Lao She", "Lao She", "Ride is a play by Lao She.")
    'Ride names Lao She (“Ride is a play by Lao She.”)'
    >>> says("茶馆", "phrase", "老舍", "四世同堂", "")
    '茶馆与四世同堂都提到“老舍”'
    """
    language = detect_language(sentence or parent)
    words = _SAYS[language, by].format(parent=parent, surface=surface, child=child)
    short = sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST]}…"
    return _QUOTED[language].format(said=words, sentence=short) if sentence else words


# --- The walk: where chains begin, how one passage leads to others, which passages answer together ---

TITLE = 0.6
"""The bonus of a passage whose title the question names."""
DEEP = 500
"""Passages whose likeness to the question is known; any other has none."""
TOGETHER = 4
"""Passages of one document that are read when one of them is in front."""
WIDTH = 6
"""Passages from which the step is taken, one a title."""
PARENT, SENTENCE, PASSAGE, OWN = 0.6, 0.4, 0.3, 0.3
"""What a reached passage is worth of: its parent's score, the cover of the linking sentence, its own, its likeness."""
TRUST = {"title": 1.0, "phrase": 0.7}
"""How far a link is trusted: a named title, a phrase that both hold."""
HUB = 60
"""A title or a phrase that more than so many passages hold leads nowhere."""
ALIKE = 10
"""Passages looked at that share a phrase."""


def root(stemmed: str) -> str:
    """Return a stem without the ending of who does it: an inspector has inspected.

    >>> root("inspector"), root("inspect"), root("her")
    ('inspect', 'inspect', 'her')
    """
    return stemmed[:-2] if len(stemmed) >= 6 and stemmed.endswith(("er", "or")) else stemmed


def roots(text: str) -> frozenset[str]:
    """Return the roots of the words of a text."""
    return frozenset(map(root, stems(text)))


class Seeds(NamedTuple):
    """The passages before any step.

    Attributes:
        likeness: to the question, 0 to 1.
        rest: the likeness of any other passage.
        score: the likeness, with a bonus for the titles that the question names.
        named: id of a document whose title is in the question -> that title.
    """

    likeness: dict[str, float]
    rest: float
    score: dict[str, float]
    named: dict[str, str]


def seeds(question: str, knowledge: KnowledgeBase) -> Seeds:
    """Return the passages that are like the question, and the ones that it names."""
    titles = knowledge.link(question, "title")
    titles_by_document = {doc_id: question[t["start"] : t["end"]] for t in titles for doc_id in t["doc_ids"]}
    mine = {p["chunk_id"]: p["doc_id"] for p in knowledge.passages(doc_ids=list(titles_by_document))}
    lexical, dense = (_scaled(dict(knowledge.search(kind, question, DEEP))) for kind in ("words", "meaning"))
    rest = min(dense.values(), default=0.0)
    likeness = {i: (lexical.get(i, 0.0) + dense.get(i, rest)) / 2 for i in sorted({*lexical, *dense, *mine})}
    score = dict(likeness)
    for title in titles:  # of several passages of one title the most like the question gets the whole bonus
        group = [i for i, doc_id in mine.items() if doc_id in title["doc_ids"]]
        highest = max((likeness[i] for i in group), default=0.0)
        for i in group:
            score[i] += TITLE * likeness[i] / (highest + 1e-9)
    return Seeds(likeness, rest / 2, score, titles_by_document)


def _scaled(values: Mapping[str, float]) -> dict[str, float]:
    high = max(values.values(), default=0.0)
    return {i: max(0.0, value) / (high + 1e-9) for i, value in values.items()}


def by_score(score: Mapping[str, float]) -> list[str]:
    """Ids, best first, ties by id."""
    return sorted(score, key=lambda i: (-round(score[i], 9), i))


class Step(NamedTuple):
    """A step of the walk: the passage it came from, the link, and the sentence that states it."""

    parent: str
    by: Literal["title", "phrase"]
    surface: str
    sentence: str


class Walk:
    """One question's way through a knowledge base.

    Attributes:
        score: of every passage that is known.
        steps: by which a passage was reached, where it owes its score to one; ``ways`` to all others.
        titles: of every passage that was read. Passages of one title are one article.
    """

    def __init__(self, question: str, knowledge: KnowledgeBase):
        self._knowledge, self._asked, self._seeds = knowledge, stems(question), seeds(question, knowledge)
        weighed = knowledge.words(content_terms(question))
        self._weights = {root(stem(term)): w for term, w in zip(weighed["words"], weighed["weights"], strict=True)}
        self.score, self.titles = dict(self._seeds.score), dict[str, str]()
        self.steps, self.ways = dict[str, Step](), dict[str, Step]()
        self._held = dict[str, frozenset[str]]()
        first = dict[str, str]()
        order = by_score(self.score)[: WIDTH * 4]
        self.read(order)
        for i in order:
            first.setdefault(self.titles[i].lower(), i)
        self._front = list(first.values())[:WIDTH]
        self._covered = {i: roots(self.titles[i]) for i in self._front}

    @property
    def named(self) -> list[str]:
        """Return the titles that the question names."""
        return list(dict.fromkeys(self._seeds.named.values()))

    @property
    def front(self) -> list[str]:
        """Return titles of the passages from which the step is taken."""
        return [self.titles[i] for i in self._front]

    def best(self, limit: int) -> list[str]:
        """Return the best passages."""
        return by_score(self.score)[:limit]

    def ask_on(self, ids: Sequence[str], query: str) -> tuple[list[str], list[str]]:
        """Return the sub-questions that the best passages leave, and the passages with their answers among them.

        The first passage stays in front; the others are ordered by both passes.
        """
        leads = sub_questions(query, self._knowledge.passages(ids), self._knowledge, HUB)
        hops = dict[str, float]()
        for sub_question in leads:
            for i, seen in answers(query, sub_question, self._knowledge).items():
                hops[i] = max(hops.get(i, 0.0), probability("next_hop", seen))
                if i != sub_question.passage["chunk_id"] and seen["holds"]:
                    step = Step(sub_question.passage["chunk_id"], "phrase", sub_question.name, sub_question.sentence)
                    self.ways.setdefault(i, step)
        first = dict(zip(ids, self.probabilities(ids)[0], strict=True))
        front = {document_id(i) for i in ids[:ANSWERING]}
        worth = {
            i: probability(
                "second_pass",
                {
                    "first": log_odds(first.get(i, UNSEEN)),
                    "hop": log_odds(hops.get(i, UNSEEN)),
                    "front": float(document_id(i) in front),
                },
            )
            for i in {*ids, *hops} - set(ids[:1])
        }
        order = [*ids[:1], *by_score(worth)]
        self.read([*order, *(lead.passage["chunk_id"] for lead in leads)])  # of a long document not every one was
        return [sub_question.query for sub_question in leads], order

    def probabilities(self, ids: Sequence[str]) -> tuple[list[float], list[dict[str, float]]]:
        """Return the falling probabilities of passages in this order, and what they were made of."""
        answered = self.answered(ids[:ANSWERING])
        signals = [
            {"chain": max(0.0, self.score.get(i, 0.0)), "answered": answered, "place": 1 / place}
            for place, i in enumerate(ids, start=1)
        ]
        return descending([probability(TOOL.name, seen) for seen in signals]), signals

    def answered(self, chunk_ids: Sequence[str]) -> float:
        """Return how much of the question these passages hold together, 0 to 1."""
        self._load(chunk_ids)
        return self._share(frozenset().union(*(self._held[i] for i in chunk_ids)))

    def path(self, chunk_id: str) -> list[tuple[str, Step]]:
        """Return the steps that lead to a passage, the first one first."""
        way, seen = list[tuple[str, Step]](), {chunk_id}
        while (step := self.steps.get(chunk_id) or self._way(chunk_id)) and step.parent not in seen:
            way.append((chunk_id, step))
            chunk_id = step.parent
            seen.add(chunk_id)
        return way[::-1]

    def _way(self, chunk_id: str) -> Step | None:
        """Return a step to a passage that is good on its own, from what is better."""
        step = self.ways.get(chunk_id)
        return step if step and self.score.get(step.parent, 0.0) > self.score.get(chunk_id, 0.0) else None

    def step(self) -> int:
        """Take a step from the passages in front; how many passages were reached."""
        reached: dict[str, tuple[float, Step]] = {}
        for target, step in list(self._edges()):
            covered, score = self._covered[step.parent], self.score[step.parent]
            in_sentence = self._share(roots(step.sentence), covered)
            in_passage = self._share(self._held[target], covered)
            led = PARENT * score + SENTENCE * in_sentence + PASSAGE * in_passage
            worth = TRUST[step.by] * led + OWN * self._seeds.likeness.get(target, self._seeds.rest)
            if worth > reached.get(target, (0.0,))[0]:
                reached[target] = (worth, step)
        for target, (worth, step) in sorted(reached.items()):
            # no chain leads back to where it came from
            origins = [step.parent, *(origin.parent for _, origin in self.path(step.parent))]
            if worth > self.score.get(target, -1.0) and target not in origins:
                self.score[target], self.steps[target] = worth, step
            else:
                self.ways.setdefault(target, step)
        return len(reached)

    def _share(self, words: Collection[str], covered: Collection[str] = ()) -> float:
        """Return the share of ``words`` in the weight of the words that are not covered."""
        left = {word: weight for word, weight in self._weights.items() if word not in covered}
        total = sum(left.values())
        return sum(weight for word, weight in left.items() if word in words) / total if total else 0.0

    def read(self, chunk_ids: Iterable[str]) -> None:
        """Learn the titles of passages."""
        passages = self._knowledge.passages([i for i in dict.fromkeys(chunk_ids) if i not in self.titles])
        self.titles |= {passage["chunk_id"]: passage["title"] for passage in passages}

    def _load(self, chunk_ids: Iterable[str]) -> None:
        missing = [i for i in dict.fromkeys(chunk_ids) if i not in self._held]
        self._held |= dict.fromkeys(missing, frozenset())
        self._held |= {p["chunk_id"]: roots(f"{p['title']} {p['text']}") for p in self._knowledge.passages(missing)}

    def _edges(self) -> Iterator[tuple[str, Step]]:
        """Yield the passages that can be reached from those in front, each with its step."""
        parts = dict[str, list[str]]()
        for passage in self._knowledge.passages(doc_ids=[document_id(i) for i in self._front]):
            parts.setdefault(passage["doc_id"], []).append(passage["chunk_id"])
        groups = {i: list(dict.fromkeys([i, *parts.get(document_id(i), ())]))[:TOGETHER] for i in self._front}
        every = [i for group in groups.values() for i in group]
        links, shared = (self._knowledge.around(kind, every, HUB) for kind in ("links", "shared"))
        about = self._knowledge.passages(doc_ids=sorted({link["doc_id"] for link in links}))
        first = {p["doc_id"]: p["chunk_id"] for p in about if not p["position"]}
        for parent, group in groups.items():
            titles = [link for link in links if link["chunk_id"] in group and link["doc_id"] in first]
            steps = [
                (first[link["doc_id"]], Step(parent, "title", link["surface"], link["sentence"])) for link in titles
            ]
            steps += self._sharing(parent, [s for s in shared if s["chunk_id"] in group])
            self.read(target for target, _ in steps)
            self._load(target for target, _ in steps)
            own = self.titles[parent].lower()
            yield from (edge for edge in steps if self.titles.get(edge[0], "").lower() not in ("", own))

    def _sharing(self, parent: str, alike: Sequence[Shared]) -> Iterator[tuple[str, Step]]:
        """Passages that hold a phrase of this one which the question does not, by what they cover of the question."""
        covered, best = self._covered[parent], dict[str, tuple[float, Step]]()
        for shared in alike:
            if not stems(shared["phrase"]) <= self._asked:
                share = self._share(roots(shared["sentence"]), covered)
                step = Step(parent, "phrase", shared["phrase"], shared["sentence"])
                for chunk_id in shared["chunk_ids"]:
                    if share >= best.get(chunk_id, (0.0,))[0]:
                        best[chunk_id] = (share, step)
        self._load(best)
        covers = {i: self._share(self._held[i], covered) for i in best}
        for i in by_score(covers)[:ALIKE]:
            if covers[i] > 0:
                yield i, best[i][1]


TOOL = FunctionTool(
    name="chain_exploration",
    description="Several hops: along the titles and names by which passages lead to one another; the path is shown.",
    output_schema=ChainOutput,
    function=search,
    calibration="Logistic in the score of the chain, its place, and how much of the question the best five cover.",
)
