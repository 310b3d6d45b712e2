"""A knowledge base as it is seen as of a date, and as it was known on one: what is later is not there.

A document is read once, in ``_read``, and what is struck there is nowhere: relations, links and summaries are told
where their sentence stands in what is left. It is as good as the dates that ``times.toml`` reads. What had ended by
then stays, and says so. A source outside that is asked for what the base lacks knows no dates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, cast

from workbench.knowledge.last_said import last_said
from workbench.knowledge.times import Times, after, all_seen, as_seen, told_shortly
from workbench.ports import Community, Entity, Field, KnowledgeBase, Mention, Passage, Relation
from workbench.state import Condition, Sort, TimedFact
from workbench.text import dates, fold, sentences, stem, terms

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
        self.ways = _Part(base.ways, self)
        self._seen: dict[str, Passage | None] = {}
        self._whole, self._known = set[str](), dict[str, bool]()
        self._last: tuple[str, list[TimedFact]] = ("", [])

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

    @cached_property
    def _later(self) -> frozenset[str]:
        """The documents of which only what has a date of its own is told: neither their fields nor their titles ask."""
        return self._hidden | {i for i, at in self._times.items() if after(at.since, self.as_of)}

    def _read(self, doc_id: str) -> None:
        """Read a document as it is told by then, all its passages in their order."""
        at, passages = self._times.get(doc_id, Times()), self._base.passages_of([doc_id])
        title = passages[0]["title"] if passages else ""
        named = max((date for *_, date in dates(title)), default="")
        told, seen = as_seen(title, self.as_of, now=at.now), [""] * len(passages)
        if doc_id not in self._hidden and told:
            texts = [p["text"] for p in passages]
            seen = all_seen(texts, self.as_of, at.since or named, at.now)
        for passage, text in zip(passages, seen, strict=True):
            own = self._facts.get(passage["chunk_id"], [])
            now = {fact["sentence"] for fact in own if fact["holds"]}
            ended = dict.fromkeys(f["sentence"] for f in own if not f["holds"] and f["sentence"] not in now)
            times = {**at._asdict(), "ended": [one for one in ended if one in text]}
            fields = {} if doc_id in self._later else passage["fields"]
            here = Passage(**{**passage, "title": told, "text": text, "fields": fields, "times": times})
            self._seen[passage["chunk_id"]] = here if text.strip() else None
            if text == passage["text"] and doc_id not in self._later:
                self._whole.add(passage["chunk_id"])

    def _passage(self, passage: Passage) -> Passage | None:
        """The passage as it is told by then; None where nothing of it is."""
        if passage["chunk_id"] not in self._seen:
            self._read(passage["doc_id"])
        return self._seen.get(passage["chunk_id"])

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
        if chunk_id and chunk_id not in self._whole:
            return bool(sentence) and sentence in cast(Passage, self._seen[chunk_id])["text"]
        return as_seen(sentence, self.as_of) == sentence

    def _names(self, found: Entity, chunk_id: str) -> bool:
        """Whether a passage, as it is told, names an entity."""
        if chunk_id in self._whole or not (passage := self._seen.get(chunk_id)):
            return chunk_id in self._whole
        text = fold(f"{passage['title']} {passage['text']}")
        return any(fold(name) in text for name in (found["name"], *found["aliases"]))

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
        """The facts that are told by then; an earlier date may be asked. A sentence is as its passage is seen."""
        early = min(filter(None, (as_of, self.as_of)), default="")
        found = self._base.facts(early, min(filter(None, (known, self.known)), default=""))
        self._of({fact["chunk_id"] for fact in found})
        return [told for fact in found if (told := self._told(fact))]

    def _told(self, fact: TimedFact) -> TimedFact | None:
        passage = self._seen.get(fact["chunk_id"])
        text = passage["text"] if passage else ""
        dateless = fact["valid_from"] == fact["known_since"]  # it has the date of its document, none of its own
        if fact["doc_id"] in self._hidden or (dateless and fact["value"] not in text):
            return None
        return fact if fact["sentence"] in text else TimedFact(**{**fact, "sentence": told_shortly(fact)})

    def facts_about(self, query: str) -> list[TimedFact]:
        """The facts that a question asks for, what holds first: as of the time that it names, else as of the date."""
        last = self._last  # threads ask at once
        if last[0] != query:  # a plan, a search and a tool ask the same
            last = self._last = (query, last_said(query, self.as_of, self._near, self._base.term_weight))
        return [TimedFact(**fact) for fact in last[1]]

    def _near(self, query: str) -> list[tuple[Passage | None, Passage]]:
        hits = [*self.keyword_search(query, _LOOKED_AT), *self.vector_search(query, _LOOKED_AT)]
        found = self._base.passages(list(dict.fromkeys(chunk_id for chunk_id, _ in hits)))
        return [(self._passage(one), one) for one in found]

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
        hidden = {p["title"] for p in self._base.passages_of(sorted(self._later))} if self._later else set()
        found = self._base.notable(limit + len(hidden))
        return [one for one in found if one not in hidden and as_seen(one, self.as_of) == one][:limit]

    def schema(self) -> list[Field]:
        """The fields, with the values that documents have by then."""
        if not self._later:
            return self._base.schema()
        held = {one["name"]: {value for value, _ in self.tally(one["name"])} for one in self._base.schema()}
        return [
            Field(**{**one, "values": [v for v in one["values"] if v in held[one["name"]]], "low": None, "high": None})
            for one in self._base.schema()
        ]

    def values_in(self, text: str) -> list[tuple[int, int, str, str]]:
        """The values of a category that a text speaks of, of those that documents have by then."""
        held = {(one["name"], value) for one in self.schema() for value in one["values"]}
        return [one for one in self._base.values_in(text) if not self._later or one[2:] in held]

    def select(
        self, conditions: Sequence[Condition] = (), sort: Sort | None = None, limit: int | None = None
    ) -> list[str]:
        """Documents that hold, of those that are there by then."""
        if not self._later:
            return self._base.select(conditions, sort, limit)
        return [one for one in self._base.select(conditions, sort) if one not in self._later][:limit]

    def tally(self, field: str, conditions: Sequence[Condition] = ()) -> list[tuple[str, int]]:
        """Values of a field, of the documents that are there by then."""
        if not self._later:
            return self._base.tally(field, conditions)
        counted: dict[str, set[str]] = {}
        for passage in self.passages_of(self.select(conditions)):
            value = passage["fields"].get(field)
            for one in value if isinstance(value, list) else [] if value is None else [value]:
                counted.setdefault(str(one), set()).add(passage["doc_id"])
        return sorted(((value, len(ids)) for value, ids in counted.items()), key=lambda pair: (-pair[1], pair[0]))

    def _there(self, found: Entity | None) -> bool:
        """Whether an entity is told of by then: by its document, a passage that names it, or a relation."""
        if found is None or found["doc_id"] in self._hidden:
            return False
        entity_id = found["entity_id"]
        if entity_id not in self._known:
            document = self._base.passages_of([found["doc_id"]])[:1] if found["doc_id"] else []
            self._known[entity_id] = (
                any(self._passage(one) for one in document)
                or any(self._has(one) and self._names(found, one) for one in self._base.mentions_of(entity_id))
                or any(self._said(one) for one in self._base.relations_of(entity_id))
            )
        return self._known[entity_id]

    def link(self, text: str) -> list[Mention]:
        """The known names in a text, of what is told of by then."""
        return [one for one in self._base.link(text) if self.entity(one["entity_id"])]

    def entity(self, entity_id: str) -> Entity | None:
        """The entity of that id, if it is told of by then."""
        found = self._base.entity(entity_id)
        return found if self._there(found) else None

    def find_entity(self, name: str) -> Entity | None:
        """The entity of that name, if it is told of by then."""
        found = self._base.find_entity(name)
        return found if self._there(found) else None

    def relations_of(self, entity_id: str) -> list[Relation]:
        """Relations that are told by then."""
        return [one for one in self._base.relations_of(entity_id) if self._said(one)]

    def mentions_of(self, entity_id: str) -> list[str]:
        """Passages that name it by then."""
        found = self.entity(entity_id)
        return [one for one in self._of(self._base.mentions_of(entity_id)) if found and self._names(found, one)]

    def _community(self, found: Community) -> Community | None:
        if self._hidden.intersection(found["doc_ids"]):
            return None
        first = self._of(f"{doc_id}#0" for doc_id in found["doc_ids"])
        text = "\n".join(cast(Passage, self._seen[one])["text"] for one in first)
        summary = " ".join(one for one in sentences(found["summary"]) if one in text)
        there = [one for one in found["doc_ids"] if f"{one}#0" in first]
        whole = len(there) == len(found["doc_ids"]) and self._whole.issuperset(first)
        members = found["members"] if whole else [one for one in found["members"] if self.entity(one)]
        own: dict[str, Any] = {"summary": found["summary"] if whole else summary, "doc_ids": there, "members": members}
        title = found["title"] if whole or self.find_entity(found["title"]) else ""
        changed = cast(Community, {**found, **own, "title": title})
        return changed if own["summary"] and title else None

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
        alone = {n for n in graph if not graph.degree(n)}
        graph.remove_nodes_from([n for n in alone if not self.entity(n)])
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
                return {phrase: told for phrase, ids in found.items() if (told := base._of(ids))}
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
