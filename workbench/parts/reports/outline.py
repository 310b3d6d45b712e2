"""The outline of a report by rules: which sections a topic has, and which sentences of the evidence each may quote.

A topic names its aspects behind a colon, or else its sides are the things that it names, the times or kinds of the
documents that it selects, or the documents that say most of it. A sentence belongs to the one section whose words it
says best, by what words mean where the base can tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from workbench.language.answer import Judgement, speaks_of
from workbench.language.fields import Document
from workbench.language.quoting import Sentence
from workbench.parts.reports.kinds import ReportType
from workbench.parts.reports.topic import Aspect, Topic
from workbench.ports import Field, KnowledgeBase
from workbench.state import Question, ReportOutline, RetrievalResult, SectionOutline
from workbench.text import CJK, fold, terms
from workbench.tools import next_hop

TOLD, ACROSS = 0.5, 0.4
"""A text tells of what it says at least so much of, by what words mean; in another language, where none is as near."""
_NEARLY = 0.8
"""Words nearly as rare as the rarest."""
FEW, MANY = 2, 7
"""A field divides documents into at least, and at most, so many groups."""
_WIDE = 15
"""Years that are too many for one section."""
_WORDS = 25
"""Words of a statement, on average."""


class Piece(NamedTuple):
    """A sentence that a section may quote, and how much of the section's question it says."""

    sentence: Sentence
    share: float


class Meaning:
    """How much of a phrase texts say, by what words mean in these bases: the most that one of them says."""

    def __init__(self, bases: Sequence[KnowledgeBase]):
        self._bases = bases

    def __call__(self, phrase: str, texts: Sequence[str]) -> list[float]:
        """A share for each text, 0 to 1."""
        found = [0.0] * len(texts)
        for base in self._bases:
            reading = next_hop.Reading.of(phrase, texts, base)
            if reading.words:
                found = [max(one, reading.share(row)) for one, row in zip(found, reading.texts, strict=True)]
        return found

    def foremost(self, phrase: str) -> list[str]:
        """The words of a phrase that say most: the rarest, and those that are nearly as rare."""
        rarity: dict[str, float] = {}
        for base in self._bases:
            words, weights, _ = base.matches(phrase, [""])
            for word, weight in zip(words, weights, strict=True):
                rarity[word] = max(rarity.get(word, 0.0), weight)
        most = max(rarity.values(), default=0.0)
        return [word for word, weight in rarity.items() if weight >= _NEARLY * most]


@dataclass
class Outliner:
    """Make the outline of a report.

    Attributes:
        topic: in its parts.
        reading: of its subject.
        judged: the judgement on the evidence for that.
        results: the evidence, in the order of its numbers.
        schema: the fields of the documents.
        nouns: language -> what the documents are called.
        says: how much of a phrase each text says.
        kind: of report.
    """

    topic: Topic
    reading: Question
    judged: Judgement
    results: Sequence[RetrievalResult]
    schema: Sequence[Field]
    nouns: Mapping[str, Sequence[str]]
    says: Meaning
    kind: ReportType

    def __post_init__(self) -> None:
        self.zh = self.reading["language"] == "zh"
        self.unknown = False
        self.documents = self._of_subject()

    def outline(self) -> ReportOutline:
        """Return its sections, as many as this kind of report has."""
        sections = self.kind.shaped(self.sections())
        return ReportOutline(
            report_type=self.kind.name,
            title=capitalised(self.topic.subject),
            abstract=None,
            sections=sections,
            total_estimated_words=sum(section["estimated_words"] for section in sections),
        )

    def _say(self, english: str, chinese: str) -> str:
        return chinese if self.zh else english

    # which documents the topic is about

    def _of_subject(self) -> list[Document]:
        """Those that hold its conditions; else those that are about its names or speak of them; else of its words."""
        every = self.judged.documents
        if self.reading["conditions"] or self.reading["sort"]:
            return [every[doc_id] for doc_id in self.judged.holding]
        names = self.reading["names"]
        about = {name["doc_id"] for name in names} & every.keys()
        if names:
            told = [d for d in every.values() if d.doc_id in about or self._names(d)]
            return sorted(told, key=lambda d: d.doc_id not in about)
        texts = {d.doc_id: " ".join([d.title, *(s.text for s in d.sentences)]) for d in every.values()}
        subject = self.topic.subject
        if not any(self._tells(word, list(texts.values())) for word in self.says.foremost(subject)):
            self.unknown = True  # what the corpus has only shares lesser words with it
            return []
        shares = dict(zip(texts, self.says(subject, list(texts.values())), strict=True))
        return [d for d in every.values() if shares[d.doc_id] >= least(subject, texts[d.doc_id])]

    def _tells(self, phrase: str, texts: Sequence[str]) -> bool:
        return any(share >= least(phrase, text) for share, text in zip(self.says(phrase, texts), texts, strict=True))

    def _names(self, document: Document) -> bool:
        own = [r for r in self.results if r["metadata"].get("doc_id") == document.doc_id]
        return any(speaks_of(name, own) for name in self.reading["names"])

    # what its sections are

    def sections(self) -> list[SectionOutline]:
        """The sections, each with its sentences; those for which the evidence has none stay, and say so."""
        aspects = self.topic.aspects or tuple(Aspect(title) for title in self.kind.wanted)
        made = self._by_aspect(aspects) if aspects else []
        if any(section["quotes"] for section in made):
            return made
        about_all = self._of_all()
        moved = [{**one, "section_id": str(len(made) + n)} for n, one in enumerate(about_all, 1)]
        return [*made, *cast(list[SectionOutline], moved)]

    def _of_all(self) -> list[SectionOutline]:
        """Sections of a topic that names no aspects, or none that the corpus knows."""
        about = [self.judged.documents[n["doc_id"]] for n in self.reading["names"] if self._there(n["doc_id"])]
        if about:
            return self._by_name(list({d.doc_id: d for d in about}.values()))
        return self._by_group() or self._by_document()

    def _there(self, doc_id: str) -> bool:
        return bool(doc_id) and doc_id in self.judged.documents

    def _by_aspect(self, aspects: Sequence[Aspect]) -> list[SectionOutline]:
        """A section for each aspect, with one below it for each part; and one for the documents that are left.

        What the topic selects is looked at first; where that says nothing of most aspects, everything that was found.
        """
        titles = [(str(n), aspect.title) for n, aspect in enumerate(aspects, 1)]
        for n, aspect in enumerate(aspects, 1):
            titles += [(f"{n}.{m}", part) for m, part in enumerate(aspect.parts, 1)]
        titles.sort(key=lambda one: [int(part) for part in one[0].split(".")])
        bound = bool(self.documents) and bool(
            self.reading["conditions"] or self.reading["sort"] or self.reading["names"]
        )
        found = self._told(titles, self.documents) if bound else {}
        if len(found) * 2 < len(titles) and not self.unknown:
            bound, found = False, self._told(titles, list(self.judged.documents.values()))
        made = [self._section(i, title, f"{self.topic.subject} {title}", found.get(i, [])) for i, title in titles]
        used = {one for section in made for one in section["evidence_ids"]}
        rest = [d for d in self.documents if not used & set(self._ids([d]))]
        if found and (rest := rest if bound else rest[:MANY]):
            made.append(self._others(str(len(aspects) + 1), rest))
        return made

    def _told(self, titles: Sequence[tuple[str, str]], documents: Sequence[Document]) -> dict[str, list[Piece]]:
        """Section -> the sentences of these documents that say most of it and nothing more of another."""
        pool = self._pool(documents)
        texts = [f"{s.title}. {s.text}" for s in pool]
        best: dict[int, tuple[float, str]] = {}
        for section_id, title in titles:
            for place, share in enumerate(self.says(title, texts)):
                if share >= least(title, texts[place]) and share > best.get(place, (0.0, ""))[0]:
                    best[place] = (share, section_id)
        found: dict[str, list[Piece]] = {}
        for place, (share, section_id) in best.items():
            found.setdefault(section_id, []).append(Piece(pool[place], share))
        return found

    def _by_name(self, about: Sequence[Document]) -> list[SectionOutline]:
        """A section for each thing that is named, and one for what other documents say of them."""
        made = []
        for n, document in enumerate(about, 1):
            pieces = [Piece(s, 1.0) for s in document.sentences]
            made.append(self._section(str(n), document.title, document.title, pieces, self.kind.statements))
        held = {d.doc_id for d in about}
        names = [fold(name["surface"]) for name in self.reading["names"]] + [fold(d.title) for d in about]
        told = [s for d in self.documents if d.doc_id not in held for s in d.sentences if _holds(s.text, names)]
        if told:
            title = self._say("In other documents", "其他文档中的记述")
            pieces = [Piece(s, 1.0) for s in told]
            made.append(self._section(str(len(made) + 1), title, self.topic.subject, pieces))
        return made

    def _by_group(self) -> list[SectionOutline]:
        """Many documents in groups, by a field that divides them or by time; none where there are few."""
        return [
            self._section(str(n), title, f"{self.topic.subject} {title}", self._leads(documents), None)
            for n, (title, documents) in enumerate(self._divided().items(), 1)
        ]

    def _by_document(self) -> list[SectionOutline]:
        """What says most of the topic, a section for each document; what says little stands together at the end."""
        pool = self._pool(self.documents)
        shares = self.says(self.topic.subject, [s.text for s in pool])
        found: dict[str, list[Piece]] = {}
        for said, share in zip(pool, shares, strict=True):
            found.setdefault(said.doc_id, []).append(Piece(said, share))
        order = sorted(found, key=lambda i: -max(piece.share for piece in found[i]))
        whole, rest = order[: self.kind.sections - 1], order[self.kind.sections - 1 :]
        made = []
        for n, doc_id in enumerate(whole, 1):
            title = self.judged.documents[doc_id].title
            most = self.kind.of_one * 2
            made.append(self._section(str(n), title, f"{self.topic.subject} {title}", found[doc_id], most))
        if rest:
            made.append(self._others(str(len(made) + 1), [self.judged.documents[i] for i in rest]))
        return made

    def _others(self, section_id: str, documents: Sequence[Document]) -> SectionOutline:
        noun = self._noun()
        title = self._say(f"Other {noun}", f"其余{noun}")
        return self._section(section_id, title, self.topic.subject, self._leads(documents, 2), None)

    def _noun(self) -> str:
        words = list(self.nouns.get("zh" if self.zh else "en", ()))
        if self.zh:
            return words[0] if words else "文档"
        return (words[1:2] or ["documents"])[0]

    def _divided(self) -> dict[str, list[Document]]:
        """The groups of the field that divides the documents best: none of one, none without a value."""
        dates = next((f["name"] for f in self.schema if f["type"] == "date"), "")
        years = [int(v[0][:4]) for d in self.documents if (v := d.values(dates)) and v[0][:4].isdigit()]
        if dates and len(years) > MANY and max(years) - min(years) >= _WIDE:
            found: dict[str, list[Document]] = {}
            for document in sorted(self.documents, key=lambda d: d.values(dates)[:1]):
                decade = (document.values(dates) or ["?"])[0][:3]
                title = self._say(f"{decade}0s", f"{decade}0年代") if decade.isdigit() else "—"
                found.setdefault(title, []).append(document)
            if FEW <= len(found) <= MANY:
                return found
        asked = {c["value"] for c in self.reading["conditions"] if isinstance(c["value"], str)}
        for field in self.schema if len(self.documents) > MANY else ():
            if field["type"] == "category":
                grouped: dict[str, list[Document]] = {}
                for document in self.documents:
                    values = document.values(field["name"])
                    value = next((v for v in values if v not in asked), (values or ["—"])[0])
                    called = field["values_called"].get(value, {}).get("zh", []) if self.zh else []
                    grouped.setdefault((called or [value])[0], []).append(document)
                if FEW <= len(grouped) <= MANY and max(map(len, grouped.values())) > 1:
                    return dict(sorted(grouped.items(), key=lambda one: -len(one[1])))
        return {}

    # which sentences they quote

    def _pool(self, documents: Sequence[Document]) -> list[Sentence]:
        """Every sentence once, whoever says it first."""
        found = {fold(s.text): s for d in reversed(documents) for s in reversed(d.sentences)}
        return [s for d in documents for s in d.sentences if found[fold(s.text)] is s and len(terms(s.text)) > 1]

    def _leads(self, documents: Sequence[Document], most: int = 9) -> list[Piece]:
        """The first sentences of each document, which say what it is about."""
        return [
            Piece(s, 1.0)
            for d in documents
            for s in [one for one in d.sentences if len(terms(one.text)) > 1][: min(most, self.kind.of_one)]
        ]

    def _section(
        self, section_id: str, title: str, query: str, pieces: Iterable[Piece], of_one: int | None = 0
    ) -> SectionOutline:
        """A section of the best sentences; ``of_one`` of one document at most, None for as many as there are."""
        most = self.kind.of_one if of_one == 0 else of_one
        ranked = sorted(pieces, key=lambda piece: (-piece.share, piece.sentence.n, piece.sentence.place))
        kept: list[Piece] = []
        by_document: dict[str, int] = {}
        for piece in ranked:
            count = by_document.get(piece.sentence.doc_id, 0)
            if (most is None or count < most) and (most is None or len(kept) < self.kind.statements):
                kept.append(piece)
                by_document[piece.sentence.doc_id] = count + 1
        places = {piece.sentence.doc_id: n for n, piece in reversed(list(enumerate(kept)))}
        kept.sort(key=lambda piece: (places[piece.sentence.doc_id], piece.sentence.n, piece.sentence.place))
        titles = list(dict.fromkeys(piece.sentence.title for piece in kept))
        return SectionOutline(
            section_id=section_id,
            title=capitalised(title),
            summary=self._say(", ", "、").join(titles[:4]) + (" …" if len(titles) > 4 else ""),
            query=query,
            evidence_ids=list(dict.fromkeys(self.results[piece.sentence.n - 1]["result_id"] for piece in kept)),
            estimated_words=sum(_length(piece.sentence.text) for piece in kept),
            quotes=[piece.sentence.text for piece in kept],
        )

    def _ids(self, documents: Sequence[Document]) -> list[str]:
        held = {d.doc_id for d in documents}
        return [r["result_id"] for r in self.results if r["metadata"].get("doc_id") in held]


def least(phrase: str, text: str) -> float:
    """How much of a phrase a text must say to tell of it."""
    return TOLD if bool(CJK.search(phrase)) == bool(CJK.search(text)) else ACROSS


def carried(
    earlier: ReportOutline, results: Sequence[RetrievalResult], known: Collection[str], says: Meaning
) -> ReportOutline:
    """Return the outline of a model or a person over the evidence of today.

    A piece whose id is not ``known`` joins the section whose title it says best, if it says it.
    """
    there, sections = {r["result_id"]: r for r in results}, earlier["sections"]
    fresh = [r for r in results if r["result_id"] not in known]
    texts = [f"{r['metadata'].get('title')}. {r['evidence']}" for r in fresh]
    shares = [says(section["title"], texts) for section in sections]
    ids = [[i for i in section["evidence_ids"] if i in there] for section in sections]
    for place, result in enumerate(fresh):
        best = max(range(len(sections)), key=lambda n: shares[n][place])
        if shares[best][place] >= TOLD:
            ids[best].append(result["result_id"])
    made: list[SectionOutline] = []
    for section, own in zip(sections, ids, strict=True):
        text = fold(" ".join(there[i]["evidence"] for i in own))
        made.append({**section, "evidence_ids": own, "quotes": [q for q in section["quotes"] if fold(q) in text]})
    return {**earlier, "sections": made}


def _holds(text: str, names: Sequence[str]) -> bool:
    folded = fold(text)
    return any(name.strip("《》“”\"' ") in folded for name in names)


def _length(text: str) -> int:
    return len(terms(text)) or _WORDS


def placed(sections: Sequence[SectionOutline]) -> list[SectionOutline]:
    """Sections with ids that say where they stand; one whose id is below another's stays below what precedes it.

    >>> [one["section_id"] for one in placed([{"section_id": i} for i in ("2", "1.1", "1.1.1", "")])]
    ['1', '1.1', '1.1.1', '2']
    """
    found: list[SectionOutline] = []
    counts = [0]
    for section in sections:
        depth = min(section["section_id"].count("."), len(counts)) if found else 0
        counts = [*counts[: depth + 1], *([0] if depth + 1 > len(counts) else [])]
        counts[depth] += 1
        found.append({**section, "section_id": ".".join(map(str, counts[: depth + 1]))})
    return found


def capitalised(title: str) -> str:
    """A heading begins with a capital where its script has some."""
    return title[:1].upper() + title[1:] if title and not CJK.match(title) else title
