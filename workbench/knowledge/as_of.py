"""A knowledge base as it is seen as of a date, and as it was known on one: what is later is not there.

Whatever gives passages, relations, mentions, links or communities goes through ``_passage``, ``_has`` or ``_said``, so
that nothing from after the date can be found by any tool. What had ended by then stays, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from workbench.knowledge.times import Times, after, as_seen, asked_for
from workbench.ports import Community, Entity, KnowledgeBase, Mention, Passage, Relation
from workbench.state import Condition, Sort, TimedFact
from workbench.text import stem, terms

_MORE, _LOOKED_AT = 4, 10


class AsOfBases:
    """Knowledge bases, each as of a date."""

    def __init__(self, real: Any, as_of: str, known: str):
        self._real, self._at, self.as_of = real, (as_of, known), as_of or known
        self._open: dict[str, tuple[Any, AsOf]] = {}

    def names(self) -> list[str]:
        """Known names, sorted."""
        return list(self._real.names())

    def get(self, name: str) -> Any:
        """The knowledge base of that name, anew where it has changed."""
        base = self._real.get(name)
        mark = (id(base), base.fingerprint())
        if name not in self._open or self._open[name][0] != mark:
            self._open[name] = (mark, AsOf(base, *self._at))
        return self._open[name][1]


class AsOf:
    """One base as of a date; "" for either date hides nothing by it. What is not here is as the base has it."""

    def __init__(self, base: KnowledgeBase, as_of: str, known: str = ""):
        self._base, self.as_of, self.known = base, as_of, known
        self.typed = _Part(base.typed, self)
        self.ways = _Part(base.ways, self)
        self._seen: dict[str, Passage | None] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)

    @cached_property
    def _times(self) -> dict[str, Times]:
        return dict(self._base.document_times())

    @cached_property
    def _hidden(self) -> frozenset[str]:
        told = self._times.items()
        return frozenset(i for i, at in told if after(at.valid_from, self.as_of) or after(at.known_since, self.known))

    @cached_property
    def _facts(self) -> dict[str, list[TimedFact]]:
        found: dict[str, list[TimedFact]] = {}
        for fact in self._base.facts(self.as_of, self.known):
            found.setdefault(fact["chunk_id"], []).append(fact)
        return found

    def _passage(self, passage: Passage) -> Passage | None:
        """The passage as it is told by then; None where nothing of it is."""
        chunk_id = passage["chunk_id"]
        if chunk_id not in self._seen:
            text = (
                ""
                if passage["doc_id"] in self._hidden
                else as_seen(passage["text"], self.as_of, self._times.get(passage["doc_id"], Times()).since)
            )
            own = self._facts.get(chunk_id, [])
            now = {fact["sentence"] for fact in own if fact["holds"]}
            ended = dict.fromkeys(fact["sentence"] for fact in own if not fact["holds"] and fact["sentence"] not in now)
            at = self._times.get(passage["doc_id"], Times())
            times = {**at._asdict(), "ended": list(ended)}
            told = Passage(**{**passage, "text": text, "times": times})
            self._seen[chunk_id] = told if text.strip() else None
        return self._seen[chunk_id]

    def _has(self, chunk_id: str) -> bool:
        if chunk_id not in self._seen:
            self.passages([chunk_id])
        return self._seen.get(chunk_id) is not None

    def _of(self, chunk_ids: Iterable[str]) -> list[str]:
        wanted = list(chunk_ids)
        self.passages([one for one in wanted if one not in self._seen])
        return [one for one in wanted if self._seen.get(one) is not None]

    def _said(self, one: Any) -> bool:
        """Whether a relation, link or phrase of a passage is told by then."""
        sentence, chunk_id = str(one.get("sentence", "")), str(one.get("chunk_id", ""))
        ends = [str(one.get(name, "")).removeprefix("doc:") for name in ("source", "target", "doc_id")]
        if self._hidden.intersection(ends) or (chunk_id and not self._has(chunk_id)):
            return False
        return as_seen(sentence, self.as_of) == sentence

    def _found(self, search: Callable[[int], list[tuple[str, float]]], top_k: int) -> list[tuple[str, float]]:
        most = top_k
        while True:
            hits = search(most)
            kept = set(self._of(chunk_id for chunk_id, _ in hits))
            if len(kept) >= top_k or len(hits) < most:
                return [hit for hit in hits if hit[0] in kept][:top_k]
            most *= _MORE

    def fingerprint(self) -> str:
        """Of the documents, and of the dates."""
        return f"{self._base.fingerprint()}@{self.as_of}/{self.known}"

    def facts(self, as_of: str = "", known: str = "") -> list[TimedFact]:
        """The facts that are told by then; an earlier date may be asked."""
        early = min(filter(None, (as_of, self.as_of)), default="")
        return self._base.facts(early, min(filter(None, (known, self.known)), default=""))

    def facts_about(self, query: str) -> list[TimedFact]:
        """The facts that a question asks for, what holds first: as of the time that it names, else as of the date."""
        return asked_for(query, self.as_of, self.facts, self._near, self._base.term_weight)

    def _near(self, query: str) -> list[Passage]:
        hits = [*self.keyword_search(query, _LOOKED_AT), *self.vector_search(query, _LOOKED_AT)]
        return self.passages(list(dict.fromkeys(chunk_id for chunk_id, _ in hits)))

    def keyword_search(self, query: str, top_k: int) -> list[tuple[str, float]]:
        """As the base has it, without what is later."""
        return self._found(lambda most: self._base.keyword_search(query, most), top_k)

    def vector_search(self, query: str, top_k: int) -> list[tuple[str, float]]:
        """As the base has it, without what is later."""
        return self._found(lambda most: self._base.vector_search(query, most), top_k)

    def passages(self, chunk_ids: Sequence[str]) -> list[Passage]:
        """The passages of these ids that are told by then."""
        return [p for one in self._base.passages(chunk_ids) if (p := self._passage(one))]

    def passages_of(self, doc_ids: Sequence[str]) -> list[Passage]:
        """The passages of these documents that are told by then."""
        return [p for one in self._base.passages_of(doc_ids) if (p := self._passage(one))]

    def notable(self, limit: int) -> list[str]:
        """Titles of documents, of those that are there by then."""
        hidden = {p["title"] for p in self._base.passages_of(sorted(self._hidden))} if self._hidden else set()
        return [one for one in self._base.notable(limit + len(hidden)) if one not in hidden][:limit]

    def select(
        self, conditions: Sequence[Condition] = (), sort: Sort | None = None, limit: int | None = None
    ) -> list[str]:
        """Documents that hold, of those that are there by then."""
        if not self._hidden:
            return self._base.select(conditions, sort, limit)
        return [one for one in self._base.select(conditions, sort) if one not in self._hidden][:limit]

    def tally(self, field: str, conditions: Sequence[Condition] = ()) -> list[tuple[str, int]]:
        """Values of a field, of the documents that are there by then."""
        if not self._hidden:
            return self._base.tally(field, conditions)
        counted: dict[str, set[str]] = {}
        for passage in self.passages_of(self.select(conditions)):
            value = passage["fields"].get(field)
            for one in value if isinstance(value, list) else [] if value is None else [value]:
                counted.setdefault(str(one), set()).add(passage["doc_id"])
        return sorted(((value, len(ids)) for value, ids in counted.items()), key=lambda pair: (-pair[1], pair[0]))

    def _there(self, found: Entity | None) -> bool:
        return found is not None and found["doc_id"] not in self._hidden

    def link(self, text: str) -> list[Mention]:
        """The known names in a text, but for the titles of what is later."""
        return [one for one in self._base.link(text) if self.entity(one["entity_id"])]

    def entity(self, entity_id: str) -> Entity | None:
        """The entity of that id, unless it is a later document."""
        found = self._base.entity(entity_id)
        return found if self._there(found) else None

    def find_entity(self, name: str) -> Entity | None:
        """The entity of that name, unless it is a later document."""
        found = self._base.find_entity(name)
        return found if self._there(found) else None

    def relations_of(self, entity_id: str) -> list[Relation]:
        """Relations that are told by then."""
        return [one for one in self._base.relations_of(entity_id) if self._said(one)]

    def mentions_of(self, entity_id: str) -> list[str]:
        """Passages that are told by then."""
        return self._of(self._base.mentions_of(entity_id))

    def _community(self, found: Community) -> Community | None:
        summary = as_seen(found["summary"], self.as_of)
        doc_ids = [one for one in found["doc_ids"] if one not in self._hidden]
        own = not self._hidden.intersection(found["doc_ids"])
        return Community(**{**found, "summary": summary, "doc_ids": doc_ids}) if summary and own else None

    def communities(self) -> list[Community]:
        """Communities as they are told by then; one with a later document in it is left out."""
        return [c for one in self._base.communities() if (c := self._community(one))]

    def communities_of(self, entity_ids: Sequence[str]) -> list[Community]:
        """Communities as they are told by then."""
        return [c for one in self._base.communities_of(entity_ids) if (c := self._community(one))]

    def graph(self) -> Any:
        """A copy of the graph without the relations and documents that are later."""
        graph = self._base.graph().copy()
        later = [(a, b, key) for a, b, key, data in graph.edges(keys=True, data=True) if not self._said(data)]
        graph.remove_edges_from(later)
        graph.remove_nodes_from([n for n, data in list(graph.nodes(data=True)) if data.get("doc_id") in self._hidden])
        return graph


class _Part:
    """A part of a base, as of its date: of lists what is told by then."""

    def __init__(self, part: Any, base: AsOf):
        self._part, self._whole = part, base

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)

        def seen(*given: Any, **named: Any) -> Any:
            found, base = method(*given, **named), self._whole
            if name in ("links_from", "links_to", "follow"):
                return [one for one in found if base._said(one)]
            if name == "shared":
                return [{**one, "chunk_ids": base._of(one["chunk_ids"])} for one in found if base._said(one)]
            if name == "naming":
                return base._of(found)
            if name == "holding":
                return {phrase: base._of(ids) for phrase, ids in found.items()}
            if name == "stems":
                return {p["chunk_id"]: words_of(p) for p in base.passages(list(found))} if found else found
            if name == "titles_in":
                left = [{**one, "doc_ids": [i for i in one["doc_ids"] if i not in base._hidden]} for one in found]
                return [one for one in left if one["doc_ids"]]
            if name == "readings":
                return [one for one in found if base.entity(one["entity_id"])]
            return found

        return seen


def words_of(passage: Passage) -> frozenset[str]:
    """The terms of a passage as it is seen, with its title."""
    return frozenset(stem(term) for term in terms(f"{passage['title']} {passage['text']}"))
