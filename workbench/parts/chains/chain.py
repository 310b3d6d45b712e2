"""``chain_exploration``: from what the question names, along titles and shared phrases, to what it asks for.

A chain covers the words of a question, each with its weight. A passage leads on to the documents that it names
and to passages that share a phrase with it. A path is evidence itself: the sentence in which one
passage names the next one. What the best passages leave of the question is then asked of the names in them.

That part is a sub-question. "Where was the writer of The Reef born?": a sentence on The Reef says who wrote it and
names Mara Velden, so "born" is asked of her. No rule reads the sentence: what it says of the question is measured by
what words mean.

Its probability: logistic in the score of the chain, its place, and how much of the question the
best five cover.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, cast

from pydantic import Field

from workbench.knowledge.names.surfaces import surface_key
from workbench.ports import KnowledgeBase, Passage, Shared, ToolLog
from workbench.state import Evidence, Json, RetrievalResult, drop, unique
from workbench.text import content_terms, detect_language, fold, sentences, stem, stems
from workbench.tools import evidence, hybrid
from workbench.tools.evidence import document_id
from workbench.tools.scoring import (
    UNSEEN,
    Question,
    coverage,
    descending,
    log_odds,
    probability,
    shares,
)
from workbench.tools.tool import FunctionTool, Search, StepLog, ToolOutput
from workbench.views.labels import Labels
from workbench.views.markup import cut


class ChainOutput(ToolOutput):
    """The output of ``chain_exploration``."""

    paths: list[str] = Field(default_factory=list)
    """Chains of titles, each with what leads on"""


def search(tool_input: Search, knowledge: KnowledgeBase, log: ToolLog) -> Json:
    """Return the passages of the best chains; their order stands, whatever their probabilities."""
    query = tool_input.query
    with log("link") as detail:
        question = Question.read(query, knowledge)
        detail["entities"] = question.entities
    with log("seeds") as detail:
        walk = Walk(query, knowledge)
        detail["named"] = walk.named
    with log("step") as detail:
        detail["reached"] = walk.step()
    with log("choose"):
        ids = walk.best(tool_input.top_k)
    with log("ask on") as detail:
        detail["asked"], order = walk.ask_on(ids, query)
        ids = order[: tool_input.top_k]
    with log("calibrate"):
        scores, signals = walk.probabilities(ids)
        results = []
        for passage, seen, score in zip(knowledge.passages(ids), signals, scores, strict=True):
            result = evidence.chunk(passage, score, TOOL.name, knowledge.name, seen)
            if steps := walk.path_in_words(passage["chunk_id"]):
                result["metadata"]["chain"] = {
                    "says": " → ".join(step["says"] for step in steps),
                    "steps": steps,
                }
            results.append(result)
    return {**evidence.answer(question, results, len(results)), "paths": chain_paths(results)}


def chain_paths(results: Evidence) -> list[str]:
    """Return what the chains of results say, each once."""
    return list(
        dict.fromkeys(r["metadata"]["chain"]["says"] for r in results if "chain" in r["metadata"])
    )


def says(parent: str, by: str, surface: str, child: str, sentence: str) -> str:
    """Return a step of a path in words, in the language of its sentence.

    >>> says("Ride", "title", "Lao She", "Lao She", "Ride is a play by Lao She.")
    'Ride names Lao She (“Ride is a play by Lao She.”)'
    >>> says("茶馆", "phrase", "老舍", "四世同堂", "")
    '茶馆与四世同堂都提到“老舍”'
    """
    labels = Labels(detect_language(sentence or parent))
    words = labels(f"chain_{by}", parent=parent, surface=surface, child=child)
    quoted = labels("chain_quoted", words=words, sentence=cut(sentence, 200))
    return quoted if sentence else words


# --- The walk: where chains begin, how one passage leads to others, which passages answer together ---


def root(stemmed: str) -> str:
    """Return a stem without the ending of who does it: an inspector has inspected.

    >>> root("inspector"), root("inspect"), root("her")
    ('inspect', 'inspect', 'her')
    """
    return stemmed[:-2] if len(stemmed) >= 6 and stemmed.endswith(("er", "or")) else stemmed


def roots(text: str) -> frozenset[str]:
    """Return the roots of the words of a text."""
    return frozenset(map(root, stems(text)))


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
        named: the titles that the question names.
        score: of every passage that is known: its likeness to the question, more for a named title.
        steps: by which a passage was reached, where it owes its score to one; ``ways`` to all others.
        titles: of every passage that was read. Passages of one title are one article.
    """

    # Passages that together should hold the words of the question.
    answering = 5
    # A title or a phrase that more than so many passages hold leads nowhere.
    hub = 60

    def __init__(self, question: str, knowledge: KnowledgeBase):
        # Passages from which the step is taken, one a title.
        width = 6
        # Passages whose likeness to the question is known; any other has none.
        deep = 500
        self._knowledge = knowledge
        self._asked = stems(question)
        weighed = knowledge.words(content_terms(question))
        self._weights = {
            root(stem(term)): w
            for term, w in zip(weighed["words"], weighed["weights"], strict=True)
        }
        self.named = list[str]()
        self.titles = dict[str, str]()
        lexical, dense = (
            _scaled(dict(knowledge.search(kind, question, deep))) for kind in ("words", "meaning")
        )
        self._rest = min(dense.values(), default=0.0) / 2
        every = sorted({*lexical, *dense})
        self._likeness = {
            i: lexical.get(i, 0.0) / 2 + dense.get(i, 2 * self._rest) / 2 for i in every
        }
        self.score = dict(self._likeness)
        self._begin(question)
        self.steps = dict[str, Step]()
        self.ways = dict[str, Step]()
        self._held = dict[str, frozenset[str]]()
        first = dict[str, str]()
        order = by_score(self.score)[: width * 4]
        self.read(order)
        for i in order:
            first.setdefault(self.titles[i].lower(), i)
        self._front = list(first.values())[:width]
        self._covered = {i: roots(self.titles[i]) for i in self._front}

    def _begin(self, question: str) -> None:
        """Raise the passages whose titles the question names, of several of one title the most like it in full."""
        # The bonus of a passage whose title the question names.
        title_bonus = 0.6
        for title in self._knowledge.link(question, "title"):
            surface = question[title["start"] : title["end"]]
            self.named += [surface] * (surface not in self.named)
            ids = [p["chunk_id"] for p in self._knowledge.passages(doc_ids=title["doc_ids"])]
            highest = max(map(self._like, ids), default=0.0)
            for i in ids:
                self.score[i] = self.score.get(i, self._rest) + title_bonus * self._like(i) / (
                    highest + 1e-9
                )

    def _like(self, chunk_id: str) -> float:
        return self._likeness.get(chunk_id, self._rest)

    def best(self, limit: int) -> list[str]:
        """Return the best passages; each further one of an article counts for less."""
        # How much each further passage of one article loses: a chain needs different documents.
        same_title = 0.15
        order = by_score(self.score)[: 2 * limit]
        articles = Counter[str]()
        worth = {}
        self.read(order)
        for i in order:
            title = self.titles[i].lower()
            worth[i] = self.score[i] - same_title * articles[title]
            articles[title] += 1
        return by_score(worth)[:limit]

    def ask_on(self, ids: Sequence[str], query: str) -> tuple[list[str], list[str]]:
        """Return the sub-questions that the best passages leave, and the passages with their answers among them.

        The first passage stays in front; the others are ordered by both passes.
        """
        leads = sub_questions(query, self._knowledge.passages(ids), self._knowledge, self.hub)
        hops = dict[str, float]()
        for sub_question in leads:
            for i, seen in answers(query, sub_question, self._knowledge).items():
                hops[i] = max(hops.get(i, 0.0), probability("next_hop", seen))
                if i != sub_question.passage["chunk_id"] and seen["holds"]:
                    step = Step(
                        sub_question.passage["chunk_id"],
                        "phrase",
                        sub_question.name,
                        sub_question.sentence,
                    )
                    self.ways.setdefault(i, step)
        first = dict(zip(ids, self.probabilities(ids)[0], strict=True))
        front = {document_id(i) for i in ids[: self.answering]}
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
        # of a long document not every one was
        self.read([*order, *(lead.passage["chunk_id"] for lead in leads)])
        return [sub_question.query for sub_question in leads], order

    def probabilities(self, ids: Sequence[str]) -> tuple[list[float], list[dict[str, float]]]:
        """Return the falling probabilities of passages in this order, and what they were made of."""
        front = ids[: self.answering]
        self._load(front)
        answered = self._share(frozenset().union(*(self._held[i] for i in front)))
        signals = [
            {"chain": max(0.0, self.score.get(i, 0.0)), "answered": answered, "place": 1 / place}
            for place, i in enumerate(ids, start=1)
        ]
        return descending([probability(TOOL.name, seen) for seen in signals]), signals

    def path(self, chunk_id: str) -> list[tuple[str, Step]]:
        """Return the steps that lead to a passage, the first one first."""
        way = []
        seen = {chunk_id}
        while (
            step := self.steps.get(chunk_id) or self.ways.get(chunk_id)
        ) and step.parent not in seen:
            if chunk_id not in self.steps and self.score.get(step.parent, 0.0) <= self.score.get(
                chunk_id, 0.0
            ):
                break  # it is good on its own, and so is no better one's
            way.append((chunk_id, step))
            chunk_id = step.parent
            seen.add(chunk_id)
        return way[::-1]

    def path_in_words(self, chunk_id: str) -> list[dict[str, str]]:
        """Return the steps that lead to a passage, each with the words for it."""
        steps = []
        for target, (source, by, surface, sentence) in self.path(chunk_id):
            words = says(self.titles[source], by, surface, self.titles[target], sentence)
            steps.append(
                {
                    "from": source,
                    "to": target,
                    "by": by,
                    "surface": surface,
                    "sentence": sentence,
                    "says": words,
                }
            )
        return steps

    def step(self) -> int:
        """Take a step from the passages in front; how many passages were reached."""
        # What a reached passage is worth of: its parent's score, the cover of the linking
        # sentence, its own, its likeness.
        parent = 0.6
        sentence = 0.4
        passage = 0.3
        own = 0.3
        # How far a link is trusted: a named title, a phrase that both hold.
        trust = {"title": 1.0, "phrase": 0.7}
        reached: dict[str, tuple[float, Step]] = {}
        for target, step in list(self._edges()):
            covered = self._covered[step.parent]
            score = self.score[step.parent]
            in_sentence = self._share(roots(step.sentence), covered)
            in_passage = self._share(self._held[target], covered)
            led = parent * score + sentence * in_sentence + passage * in_passage
            worth = trust[step.by] * led + own * self._like(target)
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
        left = drop(self._weights, *covered)
        total = sum(left.values())
        if total:
            return sum(weight for word, weight in left.items() if word in words) / total
        return 0.0

    def read(self, chunk_ids: Iterable[str]) -> None:
        """Learn the titles of passages."""
        passages = self._knowledge.passages(
            [i for i in dict.fromkeys(chunk_ids) if i not in self.titles]
        )
        self.titles |= {passage["chunk_id"]: passage["title"] for passage in passages}

    def _load(self, chunk_ids: Iterable[str]) -> None:
        missing = [i for i in dict.fromkeys(chunk_ids) if i not in self._held]
        self._held |= dict.fromkeys(missing, frozenset())
        self._held |= {
            p["chunk_id"]: roots(f"{p['title']} {p['text']}")
            for p in self._knowledge.passages(missing)
        }

    def _edges(self) -> Iterator[tuple[str, Step]]:
        """Yield the passages that can be reached from those in front, each with its step."""
        # Passages of one document that are read when one of them is in front.
        together = 4
        parts = dict[str, list[str]]()
        for passage in self._knowledge.passages(doc_ids=[document_id(i) for i in self._front]):
            parts.setdefault(passage["doc_id"], []).append(passage["chunk_id"])
        groups = {i: unique([i, *parts.get(document_id(i), ())])[:together] for i in self._front}
        every = [i for group in groups.values() for i in group]
        links, shared = (
            self._knowledge.around(kind, every, self.hub) for kind in ("links", "shared")
        )
        about = self._knowledge.passages(doc_ids=sorted({link["doc_id"] for link in links}))
        first = {p["doc_id"]: p["chunk_id"] for p in about if not p["position"]}
        for parent, group in groups.items():
            titles = [
                link for link in links if link["chunk_id"] in group and link["doc_id"] in first
            ]
            steps = [
                (first[link["doc_id"]], Step(parent, "title", link["surface"], link["sentence"]))
                for link in titles
            ]
            steps += self._sharing(parent, [s for s in shared if s["chunk_id"] in group])
            self.read(target for target, _ in steps)
            self._load(target for target, _ in steps)
            own = self.titles[parent].lower()
            yield from (
                edge for edge in steps if self.titles.get(edge[0], "").lower() not in ("", own)
            )

    def _sharing(self, parent: str, alike: Sequence[Shared]) -> Iterator[tuple[str, Step]]:
        """Passages that hold a phrase of this one which the question does not, by what they cover of the question."""
        # Passages looked at that share a phrase.
        most_alike = 10
        covered = self._covered[parent]
        best = dict[str, tuple[float, Step]]()
        for shared in alike:
            if not stems(shared["phrase"]) <= self._asked:
                share = self._share(roots(shared["sentence"]), covered)
                step = Step(parent, "phrase", shared["phrase"], shared["sentence"])
                for chunk_id in shared["chunk_ids"]:
                    if share >= best.get(chunk_id, (0.0,))[0]:
                        best[chunk_id] = (share, step)
        self._load(best)
        covers = {i: self._share(self._held[i], covered) for i in best}
        for i in by_score(covers)[:most_alike]:
            if covers[i] > 0:
                yield i, best[i][1]


TOOL = FunctionTool(
    name="chain_exploration",
    description="Several hops: along the titles and names by which passages lead to one another; the path is shown.",
    output_schema=ChainOutput,
    function=search,
)


class SubQuestion(NamedTuple):
    """The remaining words of a question, asked of a ``name`` that a sentence of a passage mentions."""

    query: str
    name: str
    passage: Passage
    sentence: str


def sub_questions(
    question: str, front: Sequence[Passage], knowledge: KnowledgeBase, reach: int
) -> list[SubQuestion]:
    """Return the rest of a question, asked of the names in those sentences that cover most of it.

    Args:
        question: the question.
        front: the best passages, best first.
        knowledge: the base that has them.
        reach: the most passages that may share a name.
    """
    # How much more of the question a sentence must cover for each place that its document ranks
    # below another.
    behind = 0.04
    # The clearness, 0 to 1, from which a sentence covers a word of the question, so that it is
    # not asked again.
    clear_enough = 0.75
    # Documents in front whose sentences are read, and passages of each.
    documents_read = 6
    passages_each = 3
    # The most sub-questions of one question.
    limit = 2
    documents = unique(passage["doc_id"] for passage in front)[:documents_read]
    passages = [p for p in knowledge.passages(doc_ids=documents) if p["position"] < passages_each]
    ids = [passage["chunk_id"] for passage in passages]
    names = dict[tuple[str, str], set[str]]()
    for link in knowledge.around("links", ids):
        names.setdefault((link["chunk_id"], link["sentence"]), set()).add(link["surface"])
    for shared in knowledge.around("shared", ids, reach):
        names.setdefault((shared["chunk_id"], shared["sentence"]), set()).add(shared["phrase"])
    candidates = [
        (passage, sentence)
        for passage in passages
        for sentence in dict.fromkeys(sentences(passage["text"]))
    ]
    texts = [f"{passage['title']}. {sentence}" for passage, sentence in candidates]
    words = knowledge.words(question)["words"]
    weights, rows = coverage(question, texts, knowledge)
    best = dict[str, tuple[float, SubQuestion]]()
    question_key = surface_key(question)
    for (passage, sentence), row in zip(candidates, rows, strict=True):
        left = [
            word for word, clearness in zip(words, row, strict=True) if clearness < clear_enough
        ]
        covered = sum(weight * clearness for weight, clearness in zip(weights, row, strict=True))
        worth = covered - behind * documents.index(passage["doc_id"])
        for name in sorted(
            names.get((passage["chunk_id"], sentence), set())
            | {passage["title"].partition(" (")[0]}
        ):
            key = surface_key(name)
            if key not in question_key and worth > best.get(key, (-1.0,))[0]:
                best[key] = worth, SubQuestion(" ".join([*left, name]), name, passage, sentence)
    return [
        best[key][1]
        for key in sorted(best, key=lambda key: (-round(best[key][0], 9), key))[:limit]
    ]


def answers(
    question: str, sub_question: SubQuestion, knowledge: KnowledgeBase
) -> dict[str, dict[str, float]]:
    """Return the passages that a sub-question finds, each with its signals.

    ``holds``: whether it has the name; ``gain``: what it says of the question beyond the sentence; ``bm25``, and the
    inverse places of both searches, ``words`` and ``meaning``.
    """
    # Passages of each of the two searches of a sub-question.
    hits = 10
    lexical, dense = (
        knowledge.search(kind, sub_question.query, hits) for kind in ("words", "meaning")
    )
    passages = knowledge.passages(unique(i for i, _ in [*dense, *lexical]))
    texts = [f"{passage['title']}. {passage['text']}" for passage in passages]
    weights, rows = coverage(
        question, [f"{sub_question.passage['title']}. {sub_question.sentence}", *texts], knowledge
    )
    bm25 = shares(lexical)
    words = _places(lexical)
    meaning = _places(dense)
    key = surface_key(sub_question.name)
    return {
        passage["chunk_id"]: {
            "holds": float(key in surface_key(text)),
            "gain": sum(
                w * max(0.0, new - old) for w, new, old in zip(weights, row, rows[0], strict=True)
            ),
            "bm25": bm25.get(passage["chunk_id"], 0.0),
            "words": words.get(passage["chunk_id"], 0.0),
            "meaning": meaning.get(passage["chunk_id"], 0.0),
        }
        for passage, text, row in zip(passages, texts, rows[1:], strict=True)
    }


def _places(ranking: Iterable[tuple[str, float]]) -> dict[str, float]:
    return {chunk_id: 1 / place for place, (chunk_id, _) in enumerate(ranking, start=1)}


# Several searches as one step with a budget of its own: ``hybrid_search`` finds the first evidence,
# ``chain_exploration`` follows what the question names. Each round of ``deeper_research`` follows the titles that
# were found too. Round follows round until none of the first passages is new or the budget is spent. Their probability:
# the highest of all searches that found the passage.


class DeepResearchInput(Search):
    """The input of both tools."""

    timeout_s: float = Field(12.0, gt=0, le=3600)
    """After so many seconds it returns what it has"""


class DeepResearchOutput(ChainOutput):
    """The evidence, and how it was found."""

    thoughts: list[Json] = Field(default_factory=list)
    """Each round: its evidence, what it asks"""
    stopped: str = ""
    """Why it stopped: nothing new, rounds, or time"""


def research_tool(name: str, description: str, rounds: int, planned: bool = True) -> FunctionTool:
    """Make a preset of the loop with at most so many rounds, the first search included."""

    longest_query = 80  # characters of a query in the name of a sub-step
    most_front = 5  # first passages, which a round that finds nothing new leaves unchanged

    async def search(
        tool_input: DeepResearchInput, knowledge: KnowledgeBase, log: ToolLog
    ) -> DeepResearchOutput:
        results = dict[str, RetrievalResult]()
        seen = set()
        thoughts = []
        stopped = ""
        tool = hybrid.TOOL
        query = tool_input.query
        for number in range(1, rounds + 1):
            if number > 1 and _late(log, tool_input.timeout_s):
                stopped = "time"
                break
            with log(
                f"search {number}: {query[:longest_query]}", tool=tool.name, query=query
            ) as detail:
                # each search is a thread of its own, so that a cancelled step begins no other one
                request = tool.input_schema(query=query, top_k=tool_input.top_k)
                output = await tool(request, knowledge, StepLog())
                hits = output.model_dump()["results"]
                detail |= {"hits": len(hits), "evidence": evidence.titles(hits[:most_front])}
            # each piece once, with its highest score and the search that had it first
            for result in hits:
                before = results.get(result["result_id"], result)
                research = {"research": {"round": number, "query": query}}
                metadata = {**research, **result["metadata"], **before["metadata"]}
                score = max(result["score"], before["score"])
                results[result["result_id"]] = cast(
                    RetrievalResult, {**result, "score": score, "metadata": metadata}
                )
            front = evidence.ranked(results.values(), most_front)
            new = [result["source_id"] for result in front if result["result_id"] not in seen]
            seen |= {result["result_id"] for result in front}
            # How many of their titles are followed.
            titles = [
                title
                for title in evidence.titles(front)[:3]
                if fold(title) not in fold(tool_input.query)
            ]
            following = query if number == 1 else " ".join([tool_input.query, *titles])
            # the chain is always followed once: it leads where no word of the question does
            if number > 1 and (not new or (tool is TOOL and following == query)):
                stopped = "nothing new"
            elif number == rounds:
                stopped = "rounds"
            asks = [] if stopped else [{"tool": TOOL.name, "query": following}]
            thoughts.append({"round": number, "evidence": new, "asks": asks})
            if stopped:
                break
            tool = TOOL
            query = following
        for result in results.values():
            # it is judged as this tool's, whichever search found it
            result["metadata"]["tools"] = [name]
        question = await asyncio.to_thread(Question.read, tool_input.query, knowledge)
        answer = evidence.answer(question, results.values(), tool_input.top_k)
        paths = chain_paths(answer["results"])
        return DeepResearchOutput(**answer, thoughts=thoughts, paths=paths, stopped=stopped)

    return FunctionTool(
        name=name,
        description=description,
        planned=planned,
        function=search,
        input_schema=DeepResearchInput,
        output_schema=DeepResearchOutput,
    )


def _late(log: ToolLog, timeout_s: float) -> bool:
    """Return whether another search might not end in time: it may take as long as the longest so far."""
    ended = max((step["offset_ms"] + step["duration_ms"] for step in log.sub_steps), default=0.0)
    longest = max((step["duration_ms"] for step in log.sub_steps), default=0.0)
    # Of its time; then no search begins any more, because the results have to be returned, too.
    return ended + longest > 1000 * 0.8 * timeout_s


DEEP = research_tool(
    "deep_research",
    "Searches, then follows the chains from what the question names; the thoughts are shown.",
    rounds=2,
)
DEEPER = research_tool(
    "deeper_research",
    "As deep_research, and further along the titles that are found: for questions whose way has several steps.",
    rounds=4,
    planned=False,
)
