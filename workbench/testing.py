"""In-memory twins of the ports, for tests of your own nodes, tools and reviewers. Real implementations, not mocks.

from workbench.testing import MemoryKnowledge, memory_context
context = memory_context([MemoryKnowledge("notes", {"a": "Lao She wrote The Teahouse."})])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from workbench.errors import UnknownKnowledge
from workbench.plans import Plan, canonical_json
from workbench.ports import (
    About,
    Context,
    Entity,
    KnowledgeBase,
    Passage,
    Planner,
    SearchKind,
    Tool,
    Words,
)
from workbench.records.conversations import SqliteConversations
from workbench.records.store import RunStore
from workbench.settings import Settings
from workbench.state import Condition, Hits, RouteDecision, Sort
from workbench.text import detect_language, fold, terms, text_digest
from workbench.tools.registry import ToolRegistry

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """A clock that moves when told to."""

    def __init__(self, start: datetime = EPOCH):
        self._start = start
        self._elapsed = 0.0

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._elapsed += seconds

    def now(self) -> datetime:
        """UTC."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Return seconds since the clock was made."""
        return self._elapsed


class MemoryKnowledge(KnowledgeBase):
    """A knowledge base over a few texts: searched by shared terms, without entities or a graph.

    Args:
        name: the knowledge base.
        texts: document id -> text.
    """

    def __init__(self, name: str, texts: Mapping[str, str]):
        self.name = name
        self._texts = dict(texts)

    def fingerprint(self) -> str:
        """SHA-256 of the texts."""
        return text_digest(canonical_json(self._texts))

    def about(self) -> About:
        """Return the counts and the first titles: documents and passages are the same here."""
        size = len(self._texts)
        counts = {
            "documents": size,
            "passages": size,
            "entities": 0,
            "relations": 0,
            "communities": 0,
        }
        return About(
            counts=counts,
            fields=[],
            nouns={},
            relations=[],
            titles=sorted(self._texts)[:10],
            types=[],
            languages=sorted({detect_language(text) for text in self._texts.values()}),
        )

    def search(self, kind: SearchKind, query: str, top_k: int) -> Hits:
        """Return passages by the number of terms that they share with the query; by meaning it is their share."""
        query_terms = terms(query)
        each = 1.0 if kind == "words" else 1 / max(len(query_terms), 1)
        scores = {
            f"{i}#0": each * sum((Counter(query_terms) & Counter(terms(text))).values())
            for i, text in self._texts.items()
        }
        return sorted(
            ((i, s) for i, s in scores.items() if s > 0), key=lambda hit: (-hit[1], hit[0])
        )[:top_k]

    def words(self, text: str | Sequence[str], texts: Sequence[str] = ()) -> Words:
        """Check which texts have a term; every term that a passage has weighs the same."""
        wanted = terms(text) if isinstance(text, str) else list(text)
        known_terms = {term for own in self._texts.values() for term in terms(own)}
        weights = [float(term in known_terms) for term in wanted]
        rows = [[float(term in terms(own)) for term in wanted] for own in texts]
        return Words(words=wanted, weights=weights, rarity=weights, texts=rows)

    def passages(
        self, chunk_ids: Sequence[str] = (), doc_ids: Sequence[str] = ()
    ) -> list[Passage]:
        """Return one passage a document."""
        ids = [*(chunk_id.rpartition("#")[0] for chunk_id in chunk_ids), *doc_ids]
        return [
            Passage(
                chunk_id=f"{i}#0",
                doc_id=i,
                title=i,
                text=self._texts[i],
                position=0,
                url="",
                licence="",
                fields={},
            )
            for i in ids
            if i in self._texts
        ]

    def select(
        self,
        conditions: Sequence[Condition] = (),
        sort: Sort | None = None,
        limit: int | None = None,
        count: str = "",
    ) -> list[Any]:
        """No typed fields: nothing holds, unless nothing is asked."""
        return [] if conditions or count else sorted(self._texts)[:limit]

    def entity(self, name: str) -> Entity | None:
        """Return a document by its id, compared folded."""
        for doc_id in sorted(self._texts):
            if fold(doc_id) == fold(name):
                return Entity(
                    entity_id=doc_id, name=doc_id, type="document", aliases=[], doc_id=doc_id
                )
        return None


class MemoryKnowledgeBases:
    """Knowledge bases by name."""

    def __init__(self, bases: Iterable[MemoryKnowledge]):
        self._bases = {base.name: base for base in bases}

    def names(self) -> list[str]:
        """Known names, sorted."""
        return sorted(self._bases)

    def get(self, name: str) -> MemoryKnowledge:
        """Return the knowledge base of that name; ``UnknownKnowledge`` lists the known ones."""
        if name not in self._bases:
            raise UnknownKnowledge(name, self._bases)
        return self._bases[name]


class FixedPlanner:
    """Plans the same plan for every question."""

    def __init__(self, plan: Plan):
        self.plan = plan

    async def __call__(
        self,
        query: str,
        decision: RouteDecision,
        knowledge: Sequence[Any],
        tools: Mapping[str, Tool],
    ) -> Plan:
        """Return the plan."""
        return self.plan


def memory_context(
    bases: Iterable[MemoryKnowledge] = (),
    *,
    tools: Mapping[str, Tool] | None = None,
    planner: Planner | None = None,
    **settings: Any,
) -> Context:
    """Return every port in memory, on a clock that stands still."""
    clock = ManualClock()
    return Context(
        settings=Settings.load(**settings),
        knowledge=MemoryKnowledgeBases(bases),
        tools=ToolRegistry() if tools is None else tools,
        conversations=SqliteConversations(":memory:", clock.now),
        runs=RunStore(":memory:"),
        clock=clock,
        planner=planner or FixedPlanner(Plan()),
    )
