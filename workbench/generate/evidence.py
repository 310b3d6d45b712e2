"""All that the writer may use for one answer, and how a name of the question finds its document there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from workbench.generate.question import Subject
from workbench.generate.quotes import rarity
from workbench.generate.sources import Document, Sentence, documents_of, quotable
from workbench.generate.themes import Want, Weight, segments, wants
from workbench.state import Filters, RetrievalResult
from workbench.text import CJK, fold, terms

PEOPLE = ("directors", "cast")


@dataclass(frozen=True)
class Evidence:
    """The merged results, by document and by sentence.

    ``totals`` says how many documents the knowledge bases have for a person (by role) or for the question's filters
    (under ``""``), so that a list can say what it leaves out.
    """

    results: Sequence[RetrievalResult]
    documents: tuple[Document, ...]
    sentences: tuple[Sentence, ...]
    weight: Weight
    totals: Mapping[str, int] = field(default_factory=dict)

    def wants(self, themes: Iterable[str]) -> list[Want]:
        """The content words of the question as this evidence would say them."""
        return wants([word for theme in themes for word in segments(theme, self.texts)], self.weight)

    @cached_property
    def texts(self) -> list[str]:
        """The sentences and titles, as bare text."""
        return [*(d.title for d in self.documents), *(s.text for s in self.sentences)]

    @property
    def fields(self) -> list[str]:
        """Every typed field that some document has, in order of first use."""
        return list(dict.fromkeys(name for document in self.documents for name in document.fields))

    def about(self, subject: Subject) -> Document | None:
        """The document on a subject: the one that its entity names, else one of that title or alias."""
        for document in self.documents:
            if subject.doc_id == document.doc_id:
                return document
        if subject.doc_id or subject.is_person:
            return None
        names = {fold(subject.name), fold(subject.surface.strip('《》「」『』"“” '))}
        titled = [d for d in self.documents if names & {fold(title) for title in (d.title, *d.aliases)}]
        word = set(terms(subject.name))
        titled += [d for d in self.documents if set(terms(d.title)) == word and len(word) == 1]  # Tora! Tora! Tora!
        return titled[0] if titled else None

    def works(self, person: str) -> dict[str, list[Document]]:
        """Typed field -> the documents in which it names the person, earliest first."""
        found: dict[str, list[Document]] = {}
        for document in sorted(self.documents, key=lambda d: (d.year, d.title, d.doc_id)):
            for name, value in document.fields.items():
                if isinstance(value, list | str) and document.has(name, person):
                    found.setdefault(name, []).append(document)
        return dict(sorted(found.items(), key=lambda item: (item[0] not in PEOPLE, -len(item[1]), item[0])))

    def naming(self, name: str) -> list[Sentence]:
        """The sentences that hold a name, as a word of its own and in its own spelling."""
        edge = "" if CJK.search(name) else r"(?<![\w])"
        pattern = re.compile(f"{edge}{re.escape(name)}{edge and r'(?![a-z])'}")
        return [sentence for sentence in self.sentences if pattern.search(sentence.text)]

    def remarks_on(self, document: Document, *names: str) -> list[Sentence]:
        """The sentences that name a document in texts without typed fields: notes, or what a tool of one's own found.

        ``names`` are further ones than its title and aliases.
        """
        typed = {d.doc_id for d in self.documents if d.fields}
        written = [name.strip("《》") for name in (document.title, *document.aliases, *names)]
        named = (s for name in written for s in self.naming(name))
        return list(dict.fromkeys(s for s in named if s.doc_id not in typed))

    def knows(self, subject: Subject) -> bool:
        """Whether anything of the evidence is about the subject or names it."""
        return bool(self.about(subject) or self.works(subject.name) or self.naming(subject.name))


def evidence_of(
    results: Sequence[RetrievalResult], weight: Weight | None = None, totals: Mapping[str, int] | None = None
) -> Evidence:
    """The evidence of some merged results."""
    documents = documents_of(results)
    loose = quotable((n, r) for n, r in enumerate(results, 1) if not r["metadata"].get("doc_id"))
    here = rarity([result["evidence"] for result in results])
    return Evidence(
        results=results,
        documents=tuple(documents),
        sentences=tuple(s for d in documents for s in d.sentences) + tuple(loose),
        weight=(lambda term: weight(term) or here(term)) if weight else here,
        totals=totals or {},
    )


def holds(document: Document, filters: Filters) -> bool:
    """Whether a document's typed fields do not contradict the filters; the merger has judged genre and country.

    >>> holds(Document("d", "Hulk", 1, 0.9, {"year": 2003}), {"year_from": 2005})
    False
    """
    if not document.fits:
        return False
    if document.year and not filters.get("year_from", 0) <= document.year <= filters.get("year_to", 9999):
        return False
    if ("year_from" in filters or "year_to" in filters) and not document.year:
        return False
    if "director" in filters and not document.has("directors", filters["director"]):
        return False
    return "cast" not in filters or document.has("cast", filters["cast"])
