"""Searching, saying what is missing, and asking for exactly that: what ``deep_research`` and ``deeper_research`` do.

Each name of a question is a thread of its own: the passages that hold it, and those that were reached from there. What
a thread does not say of the question's words is missing. A sentence that says some of them and names something new
("written by Mara Velden", where the author is asked for) tells whom to ask next, and for what: "Mara Velden born".
No model is asked; the same question finds the same twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench.ports import KnowledgeBase, Passage, ToolLog
from workbench.text import fold
from workbench.tools import chain, hybrid
from workbench.tools.chain_walk import (
    OUT,
    OWN,
    PHRASE,
    Bridge,
    Chains,
    Step,
    bridges,
    by_score,
    explored,
    reached_worth,
)
from workbench.tools.gaps import Demand, Lack, Piece, Side, field_stems, lacks, written_in
from workbench.tools.query_terms import AskedWords
from workbench.tools.scoring import Question
from workbench.tools.tool import StepLog

HITS = 20
"""What a next search gives."""
BEGINNING = 3
"""Passages of a name, or of a question without names, that its thread begins with."""
JOINING = 2
"""Passages of one next search that join a thread."""
LIKELY = 0.2
"""How probable a passage must be for a thread without a name to begin with it."""
GUESSED = 0.25
"""What is left of the worth of a passage that only says a name, beside one of the document that is named."""
BESIDE = 0.5
"""What the score of a first search counts beside a chain's."""
_LONGEST = 80
SHARE_OF_TIME = 0.8
"""The part of its time after which no search is begun: what is found has to be told, too."""


@dataclass(frozen=True)
class Reach:
    """How far a research goes: rounds of searches, next searches a round and thread, whether chains are followed."""

    rounds: int
    asks: int
    chains: bool


class Ask(NamedTuple):
    """A next search: its words, what it is to bring, and the sentence of a passage that led to it."""

    query: str
    lacks: tuple[Lack, ...]
    left: AskedWords
    bridge: Bridge | None


@dataclass
class Thread:
    """What is found on one name of the question; ``fresh`` came last, ``asked`` are the names it has gone on to."""

    side: Side
    passages: dict[str, Passage] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    fresh: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)


class Research:
    """One question's research; ``run`` once, then read ``chains``, ``thoughts``, ``missing`` and ``found_by``.

    Args:
        query: the question.
        question: the same, as the knowledge base sees it.
        knowledge: where to search.
        reach: how far.
        log: each search and each finding of what is missing is a sub-step of it.
        late: says why no other search may begin, or nothing.
    """

    def __init__(
        self,
        query: str,
        question: Question,
        knowledge: KnowledgeBase,
        reach: Reach,
        log: ToolLog,
        late: Callable[[], str],
    ):
        self._query, self._knowledge = query, knowledge
        self._reach, self._log, self._late = reach, log, late
        self._demand = Demand.of(question, query, knowledge)
        self._threads = [Thread(side) for side in self._demand.sides]
        self._likely: dict[str, float] = {}
        self._fields, self._languages = frozenset[str](), frozenset[str]()
        self._asked = {fold(query)}
        self.chains = Chains(knowledge)
        self.found_by: dict[str, dict[str, Any]] = {}
        self.thoughts: list[dict[str, Any]] = []
        self.missing: list[Lack] = []

    def run(self) -> str:
        """Why it stopped: ``covered``, ``nothing new``, ``rounds``, or what ``late`` says."""
        self._begin()
        for number in range(2, self._reach.rounds + 1):
            self._tell_missing(number - 1)
            if not self.missing:
                return "covered"
            asks = list(self._asks())
            if not asks:
                return "nothing new"
            new = 0
            for thread, ask in asks:
                if stop := self._late():
                    return stop
                new += self._ask(number, thread, ask)
            if not new:
                return "nothing new"
        self._tell_missing(self._reach.rounds)
        return "rounds" if self.missing else "covered"

    def best(self, most: int) -> list[tuple[str, float]]:
        """The best passages with what they were chosen for; a chain goes only over what a search has given."""
        chains = self.chains
        chains.steps = {i: step for i, step in chains.steps.items() if step.parent in chains.score}
        chains.read(step.parent for step in chains.steps.values())
        return chains.best(most)

    def about(self, chunk_id: str) -> dict[str, Any]:
        """What the metadata of a passage says of the chain to it, and of the search that found it."""
        return {**chain.path_of(chunk_id, self.chains), "research": self.found_by[chunk_id]}

    # --- the first searches ---

    def _begin(self) -> None:
        if self._reach.chains:
            self._follow()
        if not self._reach.chains or not self._late():
            with self._log_search(1, self._query) as detail:
                hits = self._found(self._query)
                self._likely = {hit["source_id"]: hit["score"] for hit in hits}
                for hit in hits:
                    chained = self.chains.score.get(hit["source_id"], 0.0)
                    self.chains.keep(hit["source_id"], chained + hit["score"] * (BESIDE if self._reach.chains else 1.0))
                    self._note(1, self._query, (), hit["source_id"])
                detail["hits"] = len(hits)
                detail["evidence"] = self.chains.titles_of(hit["source_id"] for hit in hits[:BEGINNING])
        passages = self._knowledge.passages(by_score(self.chains.score)[: 2 * HITS])
        self._fields = frozenset().union(*(field_stems(p["fields"]) for p in passages))
        self._languages = _languages(passages)
        for thread in self._threads:
            self._start(thread, passages)

    def _start(self, thread: Thread, passages: Sequence[Passage]) -> None:
        """The first passages of a thread: on its name before those that say it, and what a chain has led to from it."""
        side = thread.side
        holding = [p for p in passages if side.holds(p)]
        if not side.name:
            holding = [p for p in holding if self._likely.get(p["chunk_id"], 1.0) >= LIKELY]
        self._join(thread, sorted(holding, key=lambda p: p["doc_id"] not in side.doc_ids)[:BEGINNING])
        for passage in passages[: 2 * BEGINNING]:
            way = self.chains.path(passage["chunk_id"])
            if way and way[0][1].parent in thread.passages:
                self._join(thread, [passage])

    def _follow(self) -> None:
        with self._log_search(1, self._query, "chain_exploration") as detail:
            words = AskedWords.of(self._query, self._knowledge)
            chains = explored(self._query, words, self._knowledge, StepLog())
            hits = chain.never_rising(chains.best(2 * HITS))
            for i, score in hits:
                steps = chains.path(i)
                self.chains.keep(i, score, steps[-1][1] if steps else None)
                self._note(1, self._query, (), i)
            detail["hits"] = len(hits)
            detail["evidence"] = self.chains.titles_of(i for i, _ in hits[:BEGINNING])

    def _log_search(self, number: int, query: str, tool: str = "hybrid_search", **told: str) -> Any:
        """Log the search made in the ``with`` block; yields its detail."""
        return self._log(_named("search", number, query), tool=tool, query=query, **told)

    # --- what is missing ---

    def _tell_missing(self, number: int) -> None:
        self.missing = [lack for thread in self._threads for lack in self._lacks(thread)]
        missing = [lack._asdict() for lack in self.missing]
        evidence = [i for thread in self._threads for i in thread.fresh]
        with self._log(
            _named("missing", number, ", ".join(dict.fromkeys(lack.what for lack in self.missing)))
        ) as detail:
            detail |= {"missing": missing, "evidence": self.chains.titles_of(evidence)}
        self.thoughts.append({"round": number, "evidence": evidence, "missing": missing, "asks": []})

    def _lacks(self, thread: Thread) -> list[Lack]:
        return lacks(thread.side, bool(thread.passages), self._left(thread), self._fields)

    def _left(self, thread: Thread) -> list[Piece]:
        return self._demand.left(thread.held, _languages(thread.passages.values()) or self._languages)

    # --- the next searches ---

    def _asks(self) -> Iterator[tuple[Thread, Ask]]:
        """For each thread with something missing: whom its last passages name, and what of them is wanted."""
        for thread in self._threads:
            missing, left = tuple(self._lacks(thread)), self._left(thread)
            wanted = " ".join(piece.said for piece in left)
            onward = self._bridges(thread) if missing else []
            thread.fresh = []
            queries: list[tuple[str, Bridge | None]] = [(f"{b.surface} {wanted}", b) for b in onward]
            if missing and not queries:
                queries = [(f"{thread.side.name} {wanted}", None), (wanted, None)]
            for query, bridge in queries:
                query = query.strip()
                if query and fold(query) not in self._asked:
                    self._asked.add(fold(query))
                    words = AskedWords(tuple(word for piece in left for word in piece.words))
                    yield thread, Ask(query, missing, words, bridge)

    def _bridges(self, thread: Thread) -> list[Bridge]:
        """The names that the thread's last passages bring in and nobody asked for; one that says little, if alone."""
        asked, titles = fold(self._query), {fold(passage["title"]) for passage in thread.passages.values()}
        found = bridges([thread.passages[i] for i in thread.fresh], self._demand.words, self._knowledge)
        new = [b for b in found if not (b.name in asked or b.name in titles or b.name in thread.asked)]
        best = ([bridge for bridge in new if bridge.cover > 0] or new[:1])[: self._reach.asks]
        thread.asked |= {bridge.name for bridge in best}
        return best

    def _ask(self, number: int, thread: Thread, ask: Ask) -> int:
        """Search for what is missing; how many passages joined the thread by it."""
        told = {"side": thread.side.name, "because": ask.bridge.sentence if ask.bridge else ""}
        with self._log_search(number, ask.query, **told) as detail:
            hits = self._found(ask.query)
            passages = self._knowledge.passages([hit["source_id"] for hit in hits])
            held = self._knowledge.ways.stems([p["chunk_id"] for p in passages])
            joining = []
            for passage, hit in zip(passages, hits, strict=True):
                i = passage["chunk_id"]
                trust, cover = self._trust(thread, ask, passage), ask.left.share(held.get(i, ()))
                self._note(number, ask.query, ask.lacks, i)
                if not trust or (trust < OUT and not cover):
                    self.chains.keep(i, OWN * OWN * hit["score"])
                    continue
                if i not in thread.passages:
                    joining.append((-round(trust * (1 + cover), 9), i, passage))
                self.chains.keep(i, self._worth(ask, trust, cover, i, hit["score"]), _step(ask, trust, i))
            new = [passage for _, _, passage in sorted(joining, key=lambda one: one[:2])[:JOINING]]
            self._join(thread, new)
            detail["hits"], detail["evidence"] = len(hits), self.chains.titles_of(p["chunk_id"] for p in new)
        self.thoughts[-1]["asks"].append({"query": ask.query, **told, "evidence": [p["chunk_id"] for p in new]})
        return len(new)

    def _trust(self, thread: Thread, ask: Ask, passage: Passage) -> float:
        """Whether a passage is of what was asked: the document of the name, one that says it, or nothing of it."""
        if ask.bridge is None:
            return OUT if thread.side.holds(passage) else 0.0
        name = ask.bridge.name
        if passage["doc_id"] in ask.bridge.doc_ids or fold(passage["title"]) == name:
            return OUT
        return PHRASE if name in fold(passage["text"]) and passage["chunk_id"] != ask.bridge.parent else 0.0

    def _worth(self, ask: Ask, trust: float, cover: float, chunk_id: str, score: float) -> float:
        likely = self._likely.get(chunk_id, 0.0)
        if ask.bridge is None:
            return reached_worth(GUESSED * trust, score, 0.0, cover, likely)
        parent = self.chains.score.get(ask.bridge.parent, 0.0)
        return reached_worth(trust if trust == OUT else GUESSED * trust, parent, ask.bridge.cover, cover, likely)

    # --- what is known ---

    def _found(self, query: str) -> list[dict[str, Any]]:
        most = 2 * HITS if query == self._query else HITS
        return hybrid.search(hybrid.Input(query=query, top_k=most), self._knowledge, StepLog()).results

    def _note(self, number: int, query: str, missing: Iterable[Lack], chunk_id: str) -> None:
        told = {"round": number, "query": query, "missing": [lack.what for lack in missing]}
        self.found_by.setdefault(chunk_id, told)

    def _join(self, thread: Thread, passages: Sequence[Passage]) -> None:
        new = {p["chunk_id"]: p for p in passages if p["chunk_id"] not in thread.passages}
        thread.fresh += list(new)
        thread.passages |= new
        for held in self._knowledge.ways.stems(list(new)).values():
            thread.held |= held
        for passage in new.values():
            thread.held |= field_stems(passage["fields"])


def _languages(passages: Iterable[Passage]) -> frozenset[str]:
    return frozenset(written_in(passage["text"]) for passage in passages)


def _named(kind: str, number: int, what: str) -> str:
    """The name of a sub-step, by which a timeline tells what was thought.

    >>> _named("search", 2, "Mara Velden born"), _named("missing", 2, "")
    ('search 2: Mara Velden born', 'missing 2')
    """
    told = what if len(what) <= _LONGEST else f"{what[:_LONGEST]}…"
    return f"{kind} {number}: {told}" if told else f"{kind} {number}"


def _step(ask: Ask, trust: float, chunk_id: str) -> Step | None:
    if ask.bridge is None or ask.bridge.parent == chunk_id:
        return None
    return Step(ask.bridge.parent, "title" if trust == OUT else "phrase", ask.bridge.surface, ask.bridge.sentence)
