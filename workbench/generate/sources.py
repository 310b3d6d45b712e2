"""Merged evidence as the writer sees it: documents with typed fields, and the sentences that may be quoted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from workbench.generate.themes import stems
from workbench.state import RetrievalResult
from workbench.text import CJK, fold, sentences, terms


@dataclass(frozen=True)
class Sentence:
    """A sentence of the evidence: ``n`` is its source's number, ``place`` where it stands in its document."""

    text: str
    n: int
    place: tuple[int, int]
    title: str
    doc_id: str


@dataclass(frozen=True, eq=False)
class Document:
    """What the evidence holds of one document. ``n`` is the source under which its typed fields are cited."""

    doc_id: str
    title: str
    n: int
    score: float
    fields: Mapping[str, Any]
    sentences: tuple[Sentence, ...] = ()
    fits: bool = True
    aliases: tuple[str, ...] = field(default=())

    def values(self, name: str) -> list[str]:
        """The values of a typed field, as text; none when the document does not say.

        >>> Document("d", "Hulk", 1, .9, {"year": 2003, "countries": []}).values("year")
        ['2003']
        """
        value = self.fields.get(name)
        values = value if isinstance(value, list | tuple) else [] if value is None else [value]
        return [str(v) for v in values if str(v).strip()]

    def has(self, name: str, value: str) -> bool:
        """Whether a field has this value, compared folded."""
        return fold(value) in map(fold, self.values(name))

    def shared(self, other: Document, name: str) -> list[str]:
        """The values of a field that another document has too."""
        return [value for value in self.values(name) if other.has(name, value)]

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of everything that is known of it."""
        values = " ".join(value for name in self.fields for value in self.values(name))
        return stems(" ".join([self.title, values, *(s.text for s in self.sentences)]))

    @property
    def year(self) -> int:
        """The year, for sorting; 0 when it is not known."""
        found = re.match(r"\d{4}", "".join(self.values("year")[:1]))
        return int(found.group()) if found else 0

    @property
    def is_film(self) -> bool:
        """Whether its typed fields are those of a film."""
        return "directors" in self.fields or "cast" in self.fields


def documents_of(results: Sequence[RetrievalResult]) -> list[Document]:
    """The documents of the evidence, in the order in which they first come, each with all that was found of it."""
    groups: dict[str, list[tuple[int, RetrievalResult]]] = {}
    for n, result in enumerate(results, 1):
        if doc_id := result["metadata"].get("doc_id"):
            groups.setdefault(str(doc_id), []).append((n, result))
    return [_document(doc_id, pieces) for doc_id, pieces in groups.items()]


def _document(doc_id: str, pieces: list[tuple[int, RetrievalResult]]) -> Document:
    # Fields are cited by a passage when one was found, the first of the document before others: there they can be read.
    pieces = sorted(pieces, key=lambda p: (p[1]["source_type"] != "chunk", p[1]["metadata"].get("position") or 0, p[0]))
    n, best = pieces[0]
    metadata = best["metadata"]
    return Document(
        doc_id=doc_id,
        title=str(metadata.get("title") or doc_id),
        n=n,
        score=max(result["score"] for _, result in pieces),
        fields=next((r["metadata"]["fields"] for _, r in pieces if r["metadata"].get("fields")), {}),
        sentences=tuple(quotable(pieces)),
        fits=not metadata.get("contradicts_filters", False),
        aliases=tuple(metadata.get("aliases") or ()),
    )


def quotable(pieces: Iterable[tuple[int, RetrievalResult]]) -> list[Sentence]:
    """The sentences of passages and of relations, each once; entity cards and community summaries are not quoted.

    Marks like ``[3]`` of the source itself are taken out: in an answer they would point at other evidence.
    """
    found: dict[str, Sentence] = {}
    for n, result in pieces:
        if result["source_type"] not in ("chunk", "relationship"):
            continue
        metadata = result["metadata"]
        position = int(metadata.get("position") or 0) + (0 if result["source_type"] == "chunk" else 10_000)
        for index, text in enumerate(sentences(re.sub(r"\s?\[\d+\]", "", result["evidence"]))):
            text = without_heading(
                re.sub(r"^(?:#+|[-*>]|\d+\.)\s+|\*\*", "", text).strip(), metadata.get("title") or ""
            )
            if (len(text.split()) > 2 or len(CJK.findall(text)) > 3) and not any(text in other for other in found):
                title, doc_id = str(metadata.get("title") or ""), str(metadata.get("doc_id") or "")
                found[text] = Sentence(text, n, (position, index), title, doc_id)
    return list(found.values())


def without_heading(text: str, title: str) -> str:
    """A sentence without the heading that a passage begins with, when the two ran together.

    >>> without_heading("Cache design We decided on 512 MB.", "Cache design")
    'We decided on 512 MB.'
    >>> without_heading("Memento is a 2000 film.", "Memento")
    'Memento is a 2000 film.'
    """
    ran_on = re.match(rf"{re.escape(title)}\s+(?=[A-Z\u4e00-\u9fff])", text) if title else None
    return text[ran_on.end() :] if ran_on and len(terms(text[ran_on.end() :])) > 2 else text
