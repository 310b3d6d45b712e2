"""Rankings of documents for a question: by the baselines, by a tool, or by the whole retrieval graph.

A ranking is the order in which the ids of documents first appear among what was found. The context that an answer is
written from may be cut; a ranking never is.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from workbench.errors import CorpusError, ToolError, UnknownKnowledge, shown
from workbench.graphs.agents import RetrieveAgent
from workbench.graphs.plan import RulePlanner
from workbench.graphs.route import AGENT_TYPES, make_worker_name
from workbench.knowledge.reading import files
from workbench.ports import (
    Community,
    Context,
    Entity,
    KnowledgeBase,
    Link,
    Passage,
    Relation,
    Shared,
    Titled,
    Ways,
)
from workbench.state import Condition, Sort
from workbench.tools.fusing import rrf
from workbench.tools.tool import StepLog, read_input

T = TypeVar("T")
Row = dict[str, Any]
BY = ("type", "category", "hops", "kind", "split")
"""Fields of a row by which a table is split."""


@dataclass(frozen=True)
class Asked:
    """What may be read of a question at question time."""

    id: str
    question: str
    conv: str = ""


def read_rows(path: Path, *needed: str) -> list[Row]:
    """The rows of a JSON Lines file, plain or gzipped, each an object with these fields as strings.

    Raises:
        CorpusError: names the file and the line that is no such row.
    """
    found = []
    for number, text in _lines(Path(path)):
        try:
            row = json.loads(text)
            missing = [name for name in needed if not isinstance(row[name], str)]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorpusError(f"{path}:{number} is no row ({type(error).__name__}: {error}).") from None
        if missing:
            raise CorpusError(f"{path}:{number}: {missing[0]!r} must be a string.")
        found.append(row)
    return found


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        files.must_be_file(path)
        for number, line in files.lines(path):
            if isinstance(line, files.Unreadable):
                raise line
            if line.strip():
                yield number, line
    except (files.Unreadable, *files.BROKEN) as error:
        raise CorpusError(f"{path}:{number}: {error}.") from None


def chosen(rows: Sequence[Row], where: Mapping[str, str], limit: int | None) -> list[Row]:
    """The rows that hold every ``field=value``; with a ``limit`` so many of them, evenly drawn from the whole file.

    Values are compared as text.

    >>> [row["id"] for row in chosen([{"id": "a", "hops": 2}, {"id": "b", "hops": 4}], {"hops": "4"}, None)]
    ['b']
    >>> [row["id"] for row in chosen([{"id": i} for i in "abcdef"], {}, 3)]
    ['a', 'c', 'e']

    Raises:
        CorpusError: no row is left, or two have one id.
    """
    kept = [row for row in rows if all(str(row.get(name)) == value for name, value in where.items())]
    if limit and limit < len(kept):
        kept = [kept[place * len(kept) // limit] for place in range(limit)]
    if not kept:
        held = {name: sorted({str(row.get(name)) for row in rows})[:8] for name in where}
        told = "; ".join(f"{name} is one of {', '.join(values)}" for name, values in held.items())
        raise CorpusError(f"No question is left to ask. {told or 'The file holds none'}.")
    seen: set[str] = set()
    for row in kept:
        if row["id"] in seen:
            raise CorpusError(f"Two questions have the id {shown(row['id'])}: give each its own.")
        seen.add(row["id"])
    return kept


def asked_of(row: Row) -> Asked:
    """What may be known of a row when it is asked."""
    return Asked(row["id"], row["question"], str(row.get("conv") or ""))


def listed(row: Row, name: str) -> list[str]:
    """The strings in a field of a row that is needed for scoring: gold ids, or answers.

    Raises:
        CorpusError: the field is missing, empty, or something else.
    """
    value = row.get(name)
    several = value if isinstance(value, list) else [value]
    if not several or not all(isinstance(one, str) and one for one in several):
        raise CorpusError(
            f"Question {shown(row['id'])} has {name} {shown(value)}: a list of strings is needed. "
            f"Its fields: {', '.join(row)}."
        )
    return list(dict.fromkeys(several))


def groups(rows: Sequence[Row]) -> dict[str, dict[str, list[str]]]:
    """Ids of the questions by each value of each field of ``BY`` that the rows have.

    >>> groups([{"id": "a", "hops": 2}, {"id": "b", "hops": 4}, {"id": "c", "hops": 2}])
    {'hops': {'2': ['a', 'c'], '4': ['b']}}
    """
    found: dict[str, dict[str, list[str]]] = {}
    for name in BY:
        for value in sorted({str(row[name]) for row in rows if name in row}):
            ids = [row["id"] for row in rows if name in row and str(row[name]) == value]
            found.setdefault(name, {})[value] = ids
    return found


# --- A knowledge base restricted to some of its documents, such as those of one conversation ---

_AT_ONCE = 2_000


def documents_by(knowledge: KnowledgeBase, field: str) -> dict[str, set[str]]:
    """Ids of the documents by what they hold in a field, as text; a list stands under each of its values."""
    found: dict[str, set[str]] = {}
    ids = knowledge.select()
    for start in range(0, len(ids), _AT_ONCE):
        for passage in knowledge.passages_of(ids[start : start + _AT_ONCE]):
            value = passage["fields"].get(field)
            for one in value if isinstance(value, list) else [] if value is None else [value]:
                found.setdefault(str(one), set()).add(passage["doc_id"])
    return found


class Narrowed:
    """``KnowledgeBase`` over a part of another one's documents."""

    def __init__(self, whole: KnowledgeBase, documents: Collection[str]):
        self.name, self._whole, self._documents = whole.name, whole, frozenset(documents)
        self._passages = frozenset(p["chunk_id"] for p in whole.passages_of(sorted(self._documents)))
        self.ways = NarrowedWays(whole.ways, self._documents, self._passages)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def within(self, doc_ids: Iterable[str]) -> list[str]:
        """Those of these documents, in their order: for what a tool found past this narrowing."""
        return [doc_id for doc_id in doc_ids if doc_id in self._documents]

    def fingerprint(self) -> str:
        """Of the whole one and of which documents are left: no call of a tool is taken for one on another part."""
        told = "\n".join([self._whole.fingerprint(), *sorted(self._documents)])
        return hashlib.sha256(told.encode()).hexdigest()

    def keyword_search(self, query: str, top_k: int) -> list[tuple[str, float]]:
        """As the whole one's, of these documents."""
        return _until_enough(lambda n: self._whole.keyword_search(query, n), self._holds, top_k)

    def vector_search(self, query: str, top_k: int) -> list[tuple[str, float]]:
        """As the whole one's, of these documents."""
        return _until_enough(lambda n: self._whole.vector_search(query, n), self._holds, top_k)

    def _holds(self, hit: tuple[str, float]) -> bool:
        return hit[0] in self._passages

    def passages(self, chunk_ids: Sequence[str]) -> list[Passage]:
        """The passages of these ids that are of these documents."""
        return self._whole.passages([chunk_id for chunk_id in chunk_ids if chunk_id in self._passages])

    def passages_of(self, doc_ids: Sequence[str]) -> list[Passage]:
        """The passages of those of these documents."""
        return self._whole.passages_of([doc_id for doc_id in doc_ids if doc_id in self._documents])

    def select(
        self, conditions: Sequence[Condition] = (), sort: Sort | None = None, limit: int | None = None
    ) -> list[str]:
        """As the whole one's, of these documents."""
        return [doc_id for doc_id in self._whole.select(conditions, sort) if doc_id in self._documents][:limit]

    def tally(self, field: str, conditions: Sequence[Condition] = ()) -> list[tuple[str, int]]:
        """Counted over these documents."""
        held = Counter[str]()
        for passage in self.passages_of(self.select(conditions)):
            if passage["position"] == 0:
                value = passage["fields"].get(field)
                held.update(str(one) for one in (value if isinstance(value, list) else [value]) if one is not None)
        return sorted(held.items(), key=lambda pair: (-pair[1], pair[0]))

    def entity(self, entity_id: str) -> Entity | None:
        """The entity; a document outside is not there."""
        found = self._whole.entity(entity_id)
        return None if found and found["doc_id"] and found["doc_id"] not in self._documents else found

    def mentions_of(self, entity_id: str) -> list[str]:
        """The passages of these documents that name the entity."""
        return [chunk_id for chunk_id in self._whole.mentions_of(entity_id) if chunk_id in self._passages]

    def relations_of(self, entity_id: str) -> list[Relation]:
        """The relations that these documents state."""
        return [r for r in self._whole.relations_of(entity_id) if r["chunk_id"] in self._passages]

    def communities(self) -> list[Community]:
        """The communities, without the documents outside."""
        return self._inside(self._whole.communities())

    def communities_of(self, entity_ids: Sequence[str]) -> list[Community]:
        """The communities of these entities, without the documents outside."""
        return self._inside(self._whole.communities_of(entity_ids))

    def _inside(self, communities: Iterable[Community]) -> list[Community]:
        inside: list[Community] = [{**c, "doc_ids": self.within(c["doc_ids"])} for c in communities]
        return [community for community in inside if community["doc_ids"]]


def _until_enough(find: Callable[[int], list[T]], holds: Callable[[T], bool], most: int) -> list[T]:
    """Ask for more until enough of what was found is of the documents that are left."""
    wanted = 4 * most
    while True:
        found = find(wanted)
        kept = [one for one in found if holds(one)]
        if len(kept) >= most or len(found) < wanted:
            return kept[:most]
        wanted *= 4


class NarrowedWays:
    """``Ways`` between these documents alone; what is too common in the whole one stays so."""

    def __init__(self, whole: Ways, documents: Collection[str], passages: Collection[str]):
        self._whole, self._documents, self._passages = whole, documents, passages

    def titles_in(self, text: str) -> list[Titled]:
        """The titles of these documents."""
        named = [
            Titled(start=t["start"], end=t["end"], doc_ids=[i for i in t["doc_ids"] if i in self._documents])
            for t in self._whole.titles_in(text)
        ]
        return [title for title in named if title["doc_ids"]]

    def links_from(self, chunk_ids: Sequence[str]) -> list[Link]:
        """The links to these documents."""
        return [link for link in self._whole.links_from(self._inside(chunk_ids)) if link["doc_id"] in self._documents]

    def naming(self, doc_id: str, most: int) -> list[str]:
        """The passages of these documents that name one."""
        return self._inside(self._whole.naming(doc_id, most))

    def links_to(self, doc_id: str, chunk_ids: Sequence[str]) -> list[Link]:
        """The sentences of these documents."""
        return self._whole.links_to(doc_id, self._inside(chunk_ids))

    def shared(self, chunk_ids: Sequence[str], most: int) -> list[Shared]:
        """What passages of these documents share."""
        met = [
            Shared(**{**one, "chunk_ids": self._inside(one["chunk_ids"])})
            for one in self._whole.shared(self._inside(chunk_ids), most)
        ]
        return [one for one in met if one["chunk_ids"]]

    def holding(self, text: str, most: int) -> dict[str, list[str]]:
        """The passages of these documents that hold a phrase of the text."""
        met = {phrase: self._inside(ids) for phrase, ids in self._whole.holding(text, most).items()}
        return {phrase: ids for phrase, ids in met.items() if ids}

    def stems(self, chunk_ids: Sequence[str]) -> dict[str, frozenset[str]]:
        """The terms of these passages."""
        return self._whole.stems(self._inside(chunk_ids))

    def _inside(self, chunk_ids: Sequence[str]) -> list[str]:
        return [chunk_id for chunk_id in chunk_ids if chunk_id in self._passages]


class OneBase:
    """``KnowledgeBases`` of which the base that is measured is the only one."""

    def __init__(self, base: KnowledgeBase):
        self._base = base

    def names(self) -> list[str]:
        """Its name."""
        return [self._base.name]

    def get(self, name: str) -> KnowledgeBase:
        """The base."""
        if name != self._base.name:
            raise UnknownKnowledge(name, self.names())
        return self._base


class Found(NamedTuple):
    """What was found for a question.

    Attributes:
        documents: their ids, best first, each once.
        said: document and probability of every passage that was found; empty where nothing says one.
        steps: how many steps ran.
        passes: how often what was found was judged.
        quality: how well the first pass covers the question; None where it was not judged.
    """

    documents: list[str]
    said: Sequence[tuple[str, float]] = ()
    steps: int = 1
    passes: int = 1
    quality: float | None = None


Ranker = Callable[[Asked, KnowledgeBase], Awaitable[Found]]

WITHOUT: Mapping[str, Mapping[str, Any]] = {
    "plan": {"planner": "one_step"},
    "reflect": {"max_iterations": 1},
    "merge": {"merge": "as_found"},
}
"""A part of the retrieval graph -> the setting that leaves it out: one search whatever is asked; one pass; the findings
as the steps gave them, one step behind the other."""

DEPTH = 100
"""Passages that a baseline ranks."""


def order(doc_ids: Iterable[str]) -> list[str]:
    """Each document at its first appearance; what is of no document has no place.

    >>> order(["a", "", "b", "a"])
    ['a', 'b']
    """
    return [doc_id for doc_id in dict.fromkeys(doc_ids) if doc_id]


async def by_words(asked: Asked, knowledge: KnowledgeBase) -> Found:
    """BM25 as the index gives it: no names linked, nothing calibrated."""
    return _documents(knowledge, [i for i, _ in knowledge.keyword_search(asked.question, DEPTH)])


async def by_meaning(asked: Asked, knowledge: KnowledgeBase) -> Found:
    """Cosine as the index gives it."""
    return _documents(knowledge, [i for i, _ in knowledge.vector_search(asked.question, DEPTH)])


async def by_both(asked: Asked, knowledge: KnowledgeBase) -> Found:
    """Reciprocal-rank fusion of the two, constant 60."""
    searches = {"bm25": knowledge.keyword_search, "dense": knowledge.vector_search}
    order = rrf({name: search(asked.question, DEPTH) for name, search in searches.items()})
    return _documents(knowledge, [chunk_id for chunk_id, _ in order])


BASELINES: Mapping[str, Ranker] = {"bm25": by_words, "dense": by_meaning, "rrf": by_both}
"""In every table."""


def _documents(knowledge: KnowledgeBase, chunk_ids: Sequence[str]) -> Found:
    return Found(order(passage["doc_id"] for passage in knowledge.passages(chunk_ids)))


def ranker(name: str, context: Context) -> Ranker:
    """What ranks under this name: a baseline, an agent (the whole graph, no answer written), or a tool.

    Raises:
        UnknownTool: lists the known ones.
    """
    if name in BASELINES:
        return BASELINES[name]
    if name in AGENT_TYPES:
        return _agent(name, context)
    tool = context.tools[name]

    async def ranked(asked: Asked, knowledge: KnowledgeBase) -> Found:
        return _found(await results_of(tool, asked, knowledge, context))

    return ranked


def changed(context: Context, settings: Mapping[str, Any]) -> Context:
    """The ports with other settings; whoever plans by rules plans by them."""
    new = context.settings.model_copy(update=settings)
    rules = isinstance(context.planner, RulePlanner) or "planner" in settings
    return replace(context, settings=new, planner=RulePlanner(new) if rules else context.planner)


def without(part: str, context: Context) -> Context:
    """The ports of a retrieval graph without one of its parts.

    Raises:
        ToolError: there is no such part.
    """
    if part not in WITHOUT:
        raise ToolError(f"The retrieval graph has no part {part!r} to leave out. Parts: {', '.join(WITHOUT)}.")
    return changed(context, WITHOUT[part])


async def results_of(tool: Any, asked: Asked, knowledge: KnowledgeBase, context: Context) -> Sequence[dict[str, Any]]:
    """What a tool finds for the words of a question, with the budget of a step."""
    return (await called(tool, asked, knowledge, context)).results


async def called(tool: Any, asked: Asked, knowledge: KnowledgeBase, context: Context, **inputs: Any) -> Any:
    """A tool's output for the words of a question, and for whatever else a measure gives it."""
    inputs["query"] = asked.question
    if "top_k" in tool.input_schema.model_fields:
        inputs["top_k"] = context.settings.step_top_k
    return await tool(read_input(tool, inputs), knowledge, StepLog())


def _agent(agent_type: str, context: Context) -> Ranker:
    agents: dict[KnowledgeBase, RetrieveAgent] = {}

    async def ranked(asked: Asked, knowledge: KnowledgeBase) -> Found:
        if knowledge not in agents:
            over = replace(context, knowledge=OneBase(knowledge))
            agents[knowledge] = RetrieveAgent(make_worker_name(knowledge.name, agent_type), over, _no_other_loop)
        state, log = await agents[knowledge].walk(asked.question, "evaluation")
        nodes = [entry["node"] for entry in log]
        found = _found(state["merged"]["retrieval_results"], nodes.count("executor"), nodes.count("reflector"))
        return found._replace(quality=state["reflections"][0]["signals"].get("quality"))

    return ranked


def _no_other_loop(work: Any) -> Any:
    raise RuntimeError("a measure is already in a loop")


def _found(results: Sequence[Mapping[str, Any]], steps: int = 1, passes: int = 1) -> Found:
    passages = [(_of(result), float(result["score"])) for result in results if result["source_type"] == "chunk"]
    return Found(order(map(_of, results)), [said for said in passages if said[0]], steps, passes)


def _of(result: Mapping[str, Any]) -> str:
    return str(result["metadata"].get("doc_id") or "")
