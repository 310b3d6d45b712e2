"""A knowledge base as of a date: without the documents whose typed dates say that they did not hold, or were not known.

It acts only where a date is asked, by an option or in the question. A document without a date stays.
"""

from __future__ import annotations

from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from workbench.ports import About, Context, KnowledgeBase, SearchKind
from workbench.state import Condition, Data, Entity, Hits, Op, RetrievalResult, Sort, as_list
from workbench.text import fold, joined_values

FIELDS = {
    "valid_from": ("valid_from", "effective_from", "生效日期"),
    "valid_to": ("valid_to", "valid_until", "失效日期"),
    "known_since": ("known_since", "recorded_at", "获知日期"),
}
"""The typed fields by which a document is dated, under the names that they may have."""

_FILTERED = ("passages", "around")
"""Methods of a base whose results are filtered."""


def question_dates(state: Data) -> list[str]:
    """Return the dates of what is to hold and to be known: as given, else as the question says it; else ""."""
    as_of, known_by = state.get("dates") or ("", "")
    question = (state.get("route_decision") or {}).get("question") or {}
    return [as_of or question.get("date_asked", ""), known_by]


def dated(base: KnowledgeBase, dates: Sequence[str]) -> KnowledgeBase:
    """Return the base as of these dates, of what holds and of what is known; itself where none is asked.

    As far as two dates say it: a year is not before a day of itself.
    """
    if not any(dates):
        return base
    as_of, known_by = dates
    tests: list[tuple[str, Op, str]] = [
        ("valid_from", "gt", as_of),
        ("valid_to", "lt", as_of),
        ("known_since", "gt", known_by),
    ]

    def hidden() -> frozenset[str]:
        fields = date_fields(base)
        return frozenset(
            doc_id
            for key, op, day in tests
            if day and key in fields
            for doc_id in base.select([Condition(field=fields[key], op=op, value=day)])
        )

    return PartialBase(base, hidden, dates)


def restricted(base: KnowledgeBase, conditions: Sequence[Data]) -> KnowledgeBase:
    """Return the base with only the documents for which the conditions hold; itself without conditions."""
    if not conditions:
        return base

    def hidden() -> frozenset[str]:
        return frozenset(base.select()) - frozenset(base.select(cast(Any, conditions)))

    return PartialBase(base, hidden)


def dated_bases(context: Context, state: Data) -> list[KnowledgeBase]:
    """Return the bases that a run asks, as of the dates that it asks."""
    dates = question_dates(state)
    return [
        dated(base, dates)
        for base in context.bases(state.get("kb_prefixes") or [state["kb_prefix"]])
    ]


def last_day(date: str) -> str:
    """Return the last day of a date of any precision.

    >>> last_day("2003"), last_day("2004-02"), last_day("2004-02-03")
    ('2003-12-31', '2004-02-29', '2004-02-03')
    """
    year, month, *day = [*date.split("-"), "12"][: max(2, date.count("-") + 1)]
    return date if day else f"{year}-{month}-{monthrange(int(year), int(month))[1]}"


def date_fields(base: KnowledgeBase) -> dict[str, str]:
    """Return the fields of a base by the keys of ``FIELDS``; its one other date field says when a document begins."""
    dates = [field["name"] for field in base.about()["fields"] if field["type"] == "date"]
    by_name = {
        key: name
        for name in dates
        for key, names in FIELDS.items()
        if fold(name).replace(" ", "_") in names
    }
    if len(dates) == 1 and not by_name:
        return dict.fromkeys(("valid_from", "known_since"), dates[0])
    return by_name


def typed_facts(base: KnowledgeBase, dates: Sequence[str]) -> list[dict[str, str]]:
    """Return every value of a typed field as of these dates, by document, with the dates of the document."""
    base, dates_by = dated(base, dates), date_fields(base)
    facts = []
    for passage in base.passages(doc_ids=sorted(base.select())):
        if passage["position"] == 0:
            fields = passage["fields"]
            about = {"document": passage["title"], "doc_id": passage["doc_id"]}
            about |= {key: str(fields.get(dates_by.get(key, ""), "")) for key in FIELDS}
            facts += [
                {**about, "field": name, "value": joined_values(value)}
                for name, value in fields.items()
                if name not in dates_by.values()
            ]
    return facts


class PartialBase:
    """A base without some of its documents; dates that it is as of tell its fingerprint from that of the whole."""

    def __init__(
        self, base: KnowledgeBase, hidden: Callable[[], frozenset[str]], dates: Sequence[str] = ()
    ):
        self._base = base
        self._hidden = hidden
        self._dates = dates
        self.as_of = dates[0] if dates else ""

    @cached_property
    def hidden(self) -> frozenset[str]:
        """Return the ids of the documents that are left out."""
        return self._hidden()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._base, name)
        if name not in _FILTERED:
            return method

        def filtered(*args: Any, **options: Any) -> list[Any]:
            return [*filter(None, map(self._without_hidden, method(*args, **options)))]

        return filtered

    def _without_hidden(self, item: Any) -> Any:
        """Return what is left of an item: the passages that have a shared phrase are filtered one by one."""
        if not self._has(item):
            return None
        if not isinstance(item, Mapping) or "chunk_ids" not in item:
            return item
        chunk_ids = [chunk_id for chunk_id in item["chunk_ids"] if self._has(chunk_id)]
        return {**item, "chunk_ids": chunk_ids} if chunk_ids else None

    def _has(self, item: Any) -> bool:
        """Check whether an id, a hit, a passage, a relation or a community is of documents none of which is left out.

        The summary of a community quotes all of its documents.
        """
        if not isinstance(item, Mapping):
            item = {"chunk_id": item if isinstance(item, str) else item[0]}
        ends = (item.get(end, "").removeprefix("doc:") for end in ("source", "target"))
        documents = item.get("chunk_id", "").rpartition("#")[0], item.get("doc_id") or ""
        return self.hidden.isdisjoint([*documents, *ends, *(item.get("doc_ids") or [])])

    def hides(self, result: RetrievalResult) -> bool:
        """Return whether evidence comes from a document that is left out."""
        return not self._has(result["metadata"])

    def fingerprint(self) -> str:
        """Return the fingerprint of the whole base, and what it is without."""
        return "@".join(filter(None, [self._base.fingerprint(), "/".join(self._dates)]))

    def about(self) -> About:
        """Return what the base holds, with the count of documents without those that are left out."""
        about = self._base.about()
        documents = about["counts"]["documents"] - len(self.hidden)
        return About(**{**about, "counts": {**about["counts"], "documents": documents}})

    def search(self, kind: SearchKind, query: str, top_k: int) -> Hits:
        """Search by words or by meaning."""
        # some of the best passages may be left out: four times as many are searched
        hits = self._base.search(kind, query, 4 * top_k + len(self.hidden))
        return [hit for hit in hits if self._has(hit)][:top_k]

    def entity(self, name: str) -> Entity | None:
        """Return an entity of a document, or named in one, that is not left out."""
        entity = self._base.entity(name)
        if not entity or (entity["doc_id"] and entity["doc_id"] not in self.hidden):
            return entity
        return entity if self.around("mentions", [entity["entity_id"]]) else None

    def select(
        self,
        conditions: Sequence[Condition] = (),
        sort: Sort | None = None,
        limit: int | None = None,
        count: str = "",
    ) -> list[Any]:
        """Return the documents that hold for the conditions, or count the values of a field."""
        if count and not self.hidden:
            return self._base.select(conditions, count=count)
        doc_ids = [
            doc_id for doc_id in self._base.select(conditions, sort) if doc_id not in self.hidden
        ][:limit]
        if not count:
            return doc_ids
        passages = self._base.passages(doc_ids=doc_ids)
        values = [p["fields"].get(count) for p in passages if p["position"] == 0]
        lists = map(as_list, values)
        counted = Counter(str(v) for own in lists for v in {*own} if v is not None)
        return sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
