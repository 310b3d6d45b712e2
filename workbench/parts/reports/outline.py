"""The outline of a report by rules: which sections a topic has, and which sentences of the evidence each may quote.

A topic names its aspects behind a colon, or else its sides are the things that it names, or the documents that say most
of it. A sentence belongs to the one section whose words it says best, by what words mean where the base can tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from workbench.knowledge.dated import dated_bases
from workbench.language.answer import group_by_document, is_about
from workbench.language.fields import Document, FieldsWriter
from workbench.language.quoting import Sentence
from workbench.parts.reports.kinds import Aspect, Topic, report_type
from workbench.ports import Bases, Context
from workbench.state import Data, Evidence, ReportOutline, RetrievalResult, SectionOutline
from workbench.text import CJK, fold, terms
from workbench.tools.scoring import shares_said

SAME_LANGUAGE, ACROSS = 0.5, 0.4
"""A text is about what it says at least so much of, by what words mean: in the same language, and in another."""
Quotes = dict[Sentence, float]
"""Sentences that a section may quote, and how much of the section's question each says."""


class Meaning:
    """How much of a phrase texts say, by what words mean in these bases: the most that one of them says."""

    def __init__(self, bases: Bases):
        self._bases = bases

    def __call__(self, phrase: str, texts: Sequence[str]) -> list[float]:
        """Return a share for each text, 0 to 1."""
        shares = [0.0] * len(texts)
        for base in self._bases:
            shares = [max(pair) for pair in zip(shares, shares_said(phrase, texts, base), strict=True)]
        return shares

    def enough(self, phrase: str, texts: Sequence[str]) -> list[float]:
        """Return the same, 0 for a text that says too little to tell of it."""
        chinese = bool(CJK.search(phrase))
        limits = [SAME_LANGUAGE if bool(CJK.search(text)) == chinese else ACROSS for text in texts]
        return [share * (share >= limit) for share, limit in zip(self(phrase, texts), limits, strict=True)]

    def foremost(self, phrase: str) -> list[str]:
        """Return the words of a phrase that say most: the rarest, and those that are nearly as rare."""
        rarity: dict[str, float] = {}
        for base in self._bases:
            words = base.words(phrase, [""])
            for word, weight in zip(words["words"], words["rarity"], strict=True):
                rarity[word] = max(rarity.get(word, 0.0), weight)
        highest = max(rarity.values(), default=0.0)
        return [word for word, weight in rarity.items() if weight >= 0.8 * highest]


def outlined_by_rules(state: Data, context: Context, results: Evidence, topic: Topic) -> ReportOutline:
    """Return the sections of a topic, as many as its kind of report has; those without evidence stay, and state it."""
    outliner = Outliner(state, context, results, topic)
    return new_outline(state, outliner.sections()[: outliner.kind.sections])


def new_outline(state: Data, sections: list[SectionOutline]) -> ReportOutline:
    """Return an outline of these sections."""
    return ReportOutline(
        report_type=state["report"]["report_type"],
        title=" ".join(state["message"].split())[:300],
        abstract=None,
        sections=sections,
        total_estimated_words=sum(section["estimated_words"] for section in sections),
    )


class Outliner:
    """Make the sections of a topic from the evidence."""

    def __init__(self, state: Data, context: Context, results: Evidence, topic: Topic):
        bases = dated_bases(context, state)
        self.kind, self.says = report_type(state["report"]["report_type"]), Meaning(bases)
        self.topic, self.results = topic, results
        self.reading = state["route_decision"]["question"]
        self.fields = FieldsWriter(self.reading, group_by_document(results), bases)
        self.selects = bool(self.reading["conditions"] or self.reading["sort"] or self.reading["names"])
        self.every = list(self.fields.documents.values())
        self.unknown = False
        self.documents = self._of_subject()

    def sections(self) -> list[SectionOutline]:
        """Return a section for each aspect, else for each document."""
        aspects = self.topic.aspects or tuple(Aspect(title) for title in self.kind.wanted)
        sections = self._by_aspect(aspects) if aspects else []
        if not any(section["quotes"] for section in sections):
            sections += self._by_document()
        return placed(sections)

    def _of_subject(self) -> list[Document]:
        """Those that hold its conditions; else those that are about its names or speak of them; else of its words."""
        names = self.reading["names"]
        if self.reading["conditions"] or self.reading["sort"]:
            return self.fields.holding
        if names:
            own = {name["doc_id"] for name in names}
            about = [d for d in self.every if any(is_about(name, self._pieces(d)) for name in names)]
            return sorted(about, key=lambda document: document.doc_id not in own)
        subject, texts = self.topic.subject, [" ".join([d.title, *(s.text for s in d.sentences)]) for d in self.every]
        # else what the corpus has only shares lesser words with it
        self.unknown = not any(any(self.says.enough(word, texts)) for word in self.says.foremost(subject))
        shares = self.says.enough(subject, texts)
        return [d for d, share in zip(self.every, shares, strict=True) if share and not self.unknown]

    def _pieces(self, document: Document) -> list[RetrievalResult]:
        return [r for r in self.results if r["metadata"].get("doc_id") == document.doc_id]

    def _by_aspect(self, aspects: Sequence[Aspect]) -> list[SectionOutline]:
        """Return a section for each aspect, with one below it for each part; and one for the documents that are left.

        What the topic selects is looked at first; where that says nothing of most aspects, everything that was found.
        """
        depths = {t: depth for a in aspects for depth, t in (("", a.title), *((".", part) for part in a.parts))}
        selected = self.documents if self.selects else []
        quotes = self._quotes_by_title([*depths], selected)
        if len(quotes) * 2 < len(depths) and not self.unknown:
            selected, quotes = [], self._quotes_by_title([*depths], self.every)
        sections = [
            self._section(title, f"{self.topic.subject} {title}", quotes.get(title, {}), self.kind.of_one, depth)
            for title, depth in depths.items()
        ]
        used = {result_id for section in sections for result_id in section["evidence_ids"]}
        rest = [d for d in self.documents if not used & {r["result_id"] for r in self._pieces(d)}]
        rest = rest if selected else rest[:7]  # what nothing selects may be far from the topic
        return [*sections, self._rest_section(rest)] if quotes and rest else sections

    def _quotes_by_title(self, titles: Sequence[str], documents: Sequence[Document]) -> dict[str, Quotes]:
        """Title -> the sentences of these documents that say most of it and nothing more of another."""
        pool = self._pool(documents)
        texts = [f"{sentence.title}. {sentence.text}" for sentence in pool]
        shares = {title: self.says.enough(title, texts) for title in titles}
        quotes: dict[str, Quotes] = {}
        for place, sentence in enumerate(pool):
            best = max(titles, key=lambda title: shares[title][place])
            if shares[best][place]:
                quotes.setdefault(best, {})[sentence] = shares[best][place]
        return quotes

    def _by_document(self) -> list[SectionOutline]:
        """Return a section for each thing that is named, then for each document that says most of the topic.

        The rest is together at the end.
        """
        subject, pool = self.topic.subject, self._pool(self.documents)
        own = {name["doc_id"] for name in self.reading["names"]}
        quotes: dict[str, Quotes] = {}
        for sentence, share in zip(pool, self.says(subject, [s.text for s in pool]), strict=True):
            quotes.setdefault(sentence.doc_id, {})[sentence] = share
        ids = sorted(quotes, key=lambda i: (i not in own, -max(quotes[i].values())))
        documents = [self.fields.documents[i] for i in ids]
        first, rest = documents[: self.kind.sections - 1], documents[self.kind.sections - 1 :]
        sections = [
            self._section(d.title, f"{subject} {d.title}", quotes[d.doc_id], self.kind.of_one * 2) for d in first
        ]
        return [*sections, self._rest_section(rest)] if rest else sections

    def _rest_section(self, documents: Sequence[Document]) -> SectionOutline:
        noun, quotes = self.fields.noun(2), Quotes()
        for document in documents:
            telling = [s for s in document.sentences if len(terms(s.text)) > 1]
            quotes |= dict.fromkeys(telling[: min(2, self.kind.of_one)], 1.0)
        return self._section(self.fields.say(f"Other {noun}", f"其余{noun}"), self.topic.subject, quotes, None)

    def _pool(self, documents: Sequence[Document]) -> list[Sentence]:
        """Return every sentence once, from the first document that has it."""
        first = dict[str, Sentence]()
        for sentence in (s for d in documents for s in d.sentences):
            first.setdefault(fold(sentence.text), sentence)
        return [sentence for sentence in first.values() if len(terms(sentence.text)) > 1]

    def _section(self, title: str, query: str, quotes: Quotes, of_one: int | None, depth: str = "") -> SectionOutline:
        """Return a section of the best sentences; ``of_one`` of one document at most, None for as many as there are."""
        chosen, counts = list[Sentence](), Counter[str]()
        for sentence in sorted(quotes, key=lambda s: (-quotes[s], s.n, s.place)):
            if of_one is None or (counts[sentence.doc_id] < of_one and len(chosen) < self.kind.statements):
                chosen.append(sentence)
                counts[sentence.doc_id] += 1
        places = {doc_id: n for n, doc_id in enumerate(counts)}
        chosen.sort(key=lambda s: (places[s.doc_id], s.n, s.place))
        titles = list(dict.fromkeys(sentence.title for sentence in chosen))
        return SectionOutline(
            section_id=depth,
            title=capitalised(title),
            summary=self.fields.say(", ", "、").join(titles[:4]) + (" …" if len(titles) > 4 else ""),
            query=query,
            evidence_ids=unique(self.results[sentence.n - 1]["result_id"] for sentence in chosen),
            estimated_words=sum(len(terms(sentence.text)) or 25 for sentence in chosen),
            quotes=[sentence.text for sentence in chosen],
        )


def unique(ids: Iterable[str]) -> list[str]:
    """Return ids in their order, each once."""
    return list(dict.fromkeys(ids))


def carried(earlier: ReportOutline, results: Evidence, known_ids: Collection[str], says: Meaning) -> ReportOutline:
    """Return the outline of a model or a person over the evidence of today.

    A piece whose id is not known joins the section whose title it says best, if it says it.
    """
    present = {r["result_id"] for r in results}
    sections: list[Any] = [
        {**s, "evidence_ids": [i for i in s["evidence_ids"] if i in present]} for s in earlier["sections"]
    ]
    for result in results:
        text = [f"{result['metadata'].get('title')}. {result['evidence']}"]
        shares = [] if result["result_id"] in known_ids else [says(section["title"], text)[0] for section in sections]
        if max(shares, default=0.0) >= SAME_LANGUAGE:
            sections[shares.index(max(shares))]["evidence_ids"].append(result["result_id"])
    return {**earlier, "sections": sections}


def placed(sections: Sequence[SectionOutline]) -> list[SectionOutline]:
    """Sections with ids that say where they stand; one whose id is below another's stays below what precedes it.

    >>> [one["section_id"] for one in placed([{"section_id": i} for i in ("2", "1.1", "1.1.1", "")])]
    ['1', '1.1', '1.1.1', '2']
    """
    results: list[SectionOutline] = []
    counts: list[int] = []
    for section in sections:
        depth = min(section["section_id"].count("."), len(counts))
        counts = [*counts[: depth + 1], 0][: depth + 1]
        counts[depth] += 1
        results.append({**section, "section_id": ".".join(map(str, counts))})
    return results


def capitalised(title: str) -> str:
    """Return a heading with a capital at its beginning, where its script has some."""
    return title[:1].upper() + title[1:] if title and not CJK.match(title) else title
