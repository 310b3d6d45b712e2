"""The outline of a report by rules: which sections a topic has, and which sentences of the evidence each may quote.

A topic names its aspects behind a colon, or else its sides are the things that it names, or the documents that say most
of it. A sentence belongs to the one section whose words it
says best, by what words mean where the base can tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workbench.language.answer import Judgement, is_about
from workbench.language.fields import Document
from workbench.language.quoting import Sentence
from workbench.parts.reports.kinds import Aspect, ReportType, Topic
from workbench.ports import KnowledgeBase
from workbench.state import Question, ReportOutline, RetrievalResult, SectionOutline
from workbench.text import CJK, fold, terms
from workbench.tools.scoring import shares_said

SAME_LANGUAGE, ACROSS = 0.5, 0.4
"""A text is about what it says at least so much of, by what words mean: in the same language, and in another."""


class Piece(NamedTuple):
    """A sentence that a section may quote, and how much of the section's question it says."""

    sentence: Sentence
    share: float = 1.0


class Meaning:
    """How much of a phrase texts say, by what words mean in these bases: the most that one of them says."""

    def __init__(self, bases: Sequence[KnowledgeBase]):
        self._bases = bases

    def __call__(self, phrase: str, texts: Sequence[str]) -> list[float]:
        """Return a share for each text, 0 to 1."""
        shares = [0.0] * len(texts)
        for base in self._bases:
            shares = [max(pair) for pair in zip(shares, shares_said(phrase, texts, base), strict=True)]
        return shares

    def enough(self, phrase: str, texts: Sequence[str]) -> list[float]:
        """Return the same, 0 for a text that says too little to tell of it."""
        shares = self(phrase, texts)
        return [share * (share >= threshold(phrase, text)) for share, text in zip(shares, texts, strict=True)]

    def foremost(self, phrase: str) -> list[str]:
        """Return the words of a phrase that say most: the rarest, and those that are nearly as rare."""
        rarity: dict[str, float] = {}
        for base in self._bases:
            words = base.words(phrase, [""])
            for word, weight in zip(words["words"], words["rarity"], strict=True):
                rarity[word] = max(rarity.get(word, 0.0), weight)
        highest = max(rarity.values(), default=0.0)
        # Words nearly as rare as the rarest.
        return [word for word, weight in rarity.items() if weight >= 0.8 * highest]


@dataclass
class Outliner:
    """Make the outline of a report.

    Attributes:
        topic: in its parts.
        reading: of its subject.
        judged: the judgement on the evidence for that.
        results: the evidence, in the order of its numbers.
        nouns: language -> what the documents are called.
        says: how much of a phrase each text says.
        kind: of report.
    """

    topic: Topic
    reading: Question
    judged: Judgement
    results: Sequence[RetrievalResult]
    nouns: Mapping[str, Sequence[str]]
    says: Meaning
    kind: ReportType

    def __post_init__(self) -> None:
        self.zh = self.reading["language"] == "zh"
        self.subject = self.topic.subject
        self.unknown = False
        self.documents = self._of_subject()

    def outline(self) -> ReportOutline:
        """Return its sections, as many as this kind of report has; those without evidence stay, and state it."""
        aspects = self.topic.aspects or tuple(Aspect(title) for title in self.kind.wanted)
        drafts = self._by_aspect(aspects) if aspects else []
        if not any(section["quotes"] for section in drafts):
            drafts += self._by_document()
        sections = placed(drafts)[: self.kind.sections]
        return ReportOutline(
            report_type=self.kind.name,
            title=capitalised(self.subject),
            abstract=None,
            sections=sections,
            total_estimated_words=sum(section["estimated_words"] for section in sections),
        )

    def _say(self, english: str, chinese: str) -> str:
        return chinese if self.zh else english

    # which documents the topic is about

    def _of_subject(self) -> list[Document]:
        """Those that hold its conditions; else those that are about its names or speak of them; else of its words."""
        every, names = self.judged.documents, self.reading["names"]
        if self.reading["conditions"] or self.reading["sort"]:
            return [every[doc_id] for doc_id in self.judged.holding]
        if names:
            about = {name["doc_id"] for name in names} & every.keys()
            documents = [d for d in every.values() if any(is_about(name, self._document_results(d)) for name in names)]
            return sorted(
                [d for d in every.values() if d in documents or d.doc_id in about], key=lambda d: d.doc_id not in about
            )
        texts = [" ".join([d.title, *(s.text for s in d.sentences)]) for d in every.values()]
        if not any(any(self.says.enough(word, texts)) for word in self.says.foremost(self.subject)):
            self.unknown = True  # what the corpus has only shares lesser words with it
            return []
        shares = self.says.enough(self.subject, texts)
        return [document for document, share in zip(every.values(), shares, strict=True) if share]

    def _document_results(self, document: Document) -> list[RetrievalResult]:
        return [r for r in self.results if r["metadata"].get("doc_id") == document.doc_id]

    # what its sections are

    def _by_aspect(self, aspects: Sequence[Aspect]) -> list[SectionOutline]:
        """Return a section for each aspect, with one below it for each part; and one for the documents that are left.

        What the topic selects is looked at first; where that says nothing of most aspects, everything that was found.
        """
        titles = [(depth, t) for a in aspects for depth, t in (("", a.title), *((".", part) for part in a.parts))]
        read = self.reading
        bound = bool(self.documents) and bool(read["conditions"] or read["sort"] or read["names"])
        words = self._quotes_by_title(titles, self.documents) if bound else {}
        if len(words) * 2 < len(titles) and not self.unknown:
            bound, words = False, self._quotes_by_title(titles, list(self.judged.documents.values()))
        result = [
            self._section(title, f"{self.subject} {title}", words.get(n, []), self.kind.of_one, depth)
            for n, (depth, title) in enumerate(titles)
        ]
        used = {result_id for section in result for result_id in section["evidence_ids"]}
        rest = [d for d in self.documents if not used & {r["result_id"] for r in self._document_results(d)}]
        # Documents in the section of what is left.
        if words and (rest := rest if bound else rest[:7]):
            result.append(self._rest_section(rest))
        return result

    def _quotes_by_title(
        self, titles: Sequence[tuple[str, str]], documents: Sequence[Document]
    ) -> dict[int, list[Piece]]:
        """Place of a title -> the sentences of these documents that say most of it and nothing more of another."""
        pool = self._pool(documents)
        texts = [f"{s.title}. {s.text}" for s in pool]
        shares = [self.says.enough(title, texts) for _, title in titles]
        words: dict[int, list[Piece]] = {}
        for place, sentence in enumerate(pool):
            best = max(range(len(titles)), key=lambda n: shares[n][place])
            if shares[best][place]:
                words.setdefault(best, []).append(Piece(sentence, shares[best][place]))
        return words

    def _by_document(self) -> list[SectionOutline]:
        """Return a section for each thing that is named, then for each document that says most of the topic.

        The rest is together at the end.
        """
        pool, about = self._pool(self.documents), {name["doc_id"] for name in self.reading["names"]}
        words: dict[str, list[Piece]] = {}
        for sentence, share in zip(pool, self.says(self.subject, [s.text for s in pool]), strict=True):
            words.setdefault(sentence.doc_id, []).append(Piece(sentence, share))
        order = sorted(words, key=lambda i: (i not in about, -max(piece.share for piece in words[i])))
        every, count = self.judged.documents, self.kind.sections - 1
        sections = [
            self._section(every[i].title, f"{self.subject} {every[i].title}", words[i], self.kind.of_one * 2)
            for i in order[:count]
        ]
        return [*sections, *([self._rest_section([every[i] for i in order[count:]])] if order[count:] else [])]

    def _rest_section(self, documents: Sequence[Document]) -> SectionOutline:
        words = list(self.nouns.get("zh" if self.zh else "en", ()))
        title = f"其余{(words or ['文档'])[0]}" if self.zh else f"Other {(words[1:2] or ['documents'])[0]}"
        first = [[s for s in d.sentences if len(terms(s.text)) > 1][: min(2, self.kind.of_one)] for d in documents]
        return self._section(title, self.subject, [Piece(s) for sentences in first for s in sentences], None)

    # which sentences they quote

    def _pool(self, documents: Sequence[Document]) -> list[Sentence]:
        """Return every sentence once, from the first document that has it."""
        first = dict[str, Sentence]()
        for sentence in (s for d in documents for s in d.sentences):
            first.setdefault(fold(sentence.text), sentence)
        return [sentence for sentence in first.values() if len(terms(sentence.text)) > 1]

    def _section(
        self, title: str, query: str, pieces: Iterable[Piece], of_one: int | None, depth: str = ""
    ) -> SectionOutline:
        """Return a section of the best sentences; ``of_one`` of one document at most, None for as many as there are."""
        ranked = sorted(pieces, key=lambda piece: (-piece.share, piece.sentence.n, piece.sentence.place))
        chosen, counts = list[Piece](), Counter[str]()
        for piece in ranked:
            if of_one is None or (counts[piece.sentence.doc_id] < of_one and len(chosen) < self.kind.statements):
                chosen.append(piece)
                counts[piece.sentence.doc_id] += 1
        places = {doc_id: n for n, doc_id in enumerate(counts)}
        chosen.sort(key=lambda piece: (places[piece.sentence.doc_id], piece.sentence.n, piece.sentence.place))
        titles = list(dict.fromkeys(piece.sentence.title for piece in chosen))
        # Words of a statement, on average.
        return SectionOutline(
            section_id=depth,
            title=capitalised(title),
            summary=self._say(", ", "、").join(titles[:4]) + (" …" if len(titles) > 4 else ""),
            query=query,
            evidence_ids=list(dict.fromkeys(self.results[piece.sentence.n - 1]["result_id"] for piece in chosen)),
            estimated_words=sum(len(terms(piece.sentence.text)) or 25 for piece in chosen),
            quotes=[piece.sentence.text for piece in chosen],
        )


def threshold(phrase: str, text: str) -> float:
    """Return how much of a phrase a text must say to tell of it."""
    return SAME_LANGUAGE if bool(CJK.search(phrase)) == bool(CJK.search(text)) else ACROSS


def carried(
    earlier: ReportOutline, results: Sequence[RetrievalResult], known_ids: Collection[str], says: Meaning
) -> ReportOutline:
    """Return the outline of a model or a person over the evidence of today.

    A piece whose id is not ``known`` joins the section whose title it says best, if it says it.
    """
    by_id, sections = {r["result_id"]: r for r in results}, earlier["sections"]
    fresh = [r for r in results if r["result_id"] not in known_ids]
    texts = [f"{r['metadata'].get('title')}. {r['evidence']}" for r in fresh]
    shares = [says(section["title"], texts) for section in sections]
    ids = [[i for i in section["evidence_ids"] if i in by_id] for section in sections]
    for place, result in enumerate(fresh):
        best = max(range(len(sections)), key=lambda n: shares[n][place])
        if shares[best][place] >= SAME_LANGUAGE:
            ids[best].append(result["result_id"])
    updated: list[SectionOutline] = [
        {**section, "evidence_ids": own} for section, own in zip(sections, ids, strict=True)
    ]
    return {**earlier, "sections": updated}


def placed(sections: Sequence[SectionOutline]) -> list[SectionOutline]:
    """Sections with ids that say where they stand; one whose id is below another's stays below what precedes it.

    >>> [one["section_id"] for one in placed([{"section_id": i} for i in ("2", "1.1", "1.1.1", "")])]
    ['1', '1.1', '1.1.1', '2']
    """
    results: list[SectionOutline] = []
    counts = [0]
    for section in sections:
        depth = min(section["section_id"].count("."), len(counts)) if results else 0
        counts = [*counts[: depth + 1], *([0] if depth + 1 > len(counts) else [])]
        counts[depth] += 1
        results.append({**section, "section_id": ".".join(map(str, counts[: depth + 1]))})
    return results


def capitalised(title: str) -> str:
    """Return a heading with a capital at its beginning, where its script has some."""
    return title[:1].upper() + title[1:] if title and not CJK.match(title) else title
