"""The plain outline of a report, where no model makes one: a section for each aspect of the topic, else for each
document that was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, compress

from workbench.graphs.needs import LinkedName, read_supply
from workbench.language.answer import CLOSED, group_by_document
from workbench.language.fields import FieldsWriter
from workbench.language.quoting import Sentence, split_sentences
from workbench.parts.reports.kinds import report_type
from workbench.ports import Bases
from workbench.records.figures import source_title
from workbench.state import Data, Evidence, ReportOutline, RetrievalResult, SectionOutline
from workbench.text import CJK
from workbench.tools.scoring import shares_said


def enough(phrase: str, texts: Sequence[str], bases: Bases) -> list[float]:
    """Return how much of a phrase each text says, by what words mean in the best base; 0 for too little."""
    # A text is about what it says at least so much of: in the same language, and in another.
    within = 0.5
    across = 0.4
    chinese = bool(CJK.search(phrase))
    by_base = [shares_said(phrase, texts, base) for base in bases]
    return [
        max(rows) * (max(rows) >= (within if bool(CJK.search(text)) == chinese else across))
        for text, *rows in zip(texts, *by_base, strict=True)
    ]


def whole_sentences(pieces: Evidence) -> list[Sentence]:
    """Return the sentences that may be quoted; one that begins small goes with the one before it."""
    joined_sentences = list[Sentence]()
    for sentence in split_sentences(pieces):
        continues = (
            joined_sentences
            and joined_sentences[-1].n == sentence.n
            and sentence.text[:1].islower()
        )
        if continues and joined_sentences[-1].text[-1] in CLOSED:
            sentence = sentence._replace(text=f"{joined_sentences.pop().text} {sentence.text}")
        joined_sentences.append(sentence)
    return joined_sentences


def by_aspect(
    titles: Sequence[str], subject: str, pieces: Evidence, bases: Bases
) -> list[SectionOutline]:
    """Return a section for each title, of the sentences that say enough of it, and no more of another."""
    pool = whole_sentences(pieces)
    quotes = [list[Sentence]() for _ in titles]
    texts = [f"{sentence.title}. {sentence.text}" for sentence in pool]
    for sentence, *scores in zip(
        pool, *(enough(title, texts, bases) for title in titles), strict=True
    ):
        if any(scores):
            quotes[scores.index(max(scores))].append(sentence)
    return [
        outlined(
            title,
            f"{subject} {title}",
            [pieces[s.n - 1] for s in own],
            quotes=[s.text for s in own],
        )
        for title, own in zip(titles, quotes, strict=True)
    ]


def plain_outline(state: Data, results: Evidence, bases: Bases) -> ReportOutline:
    """Return the sections of a topic, as many as its kind of report has; those without evidence stay, and state it."""
    kind = report_type(state["report"]["report_type"])
    subject = state["query"]
    reading = state["route_decision"]["question"]
    fields = FieldsWriter(reading, group_by_document(results), bases)
    pieces = [r for r in results if r["source_type"] != "community"]
    compared = {document.doc_id for document in fields.about()}
    supply = read_supply(state["route_decision"], bases)
    names = [*supply.linked, *(LinkedName(name, (name,)) for name in supply.unknown)]
    selects = reading["conditions"] or reading["sort"]
    if selects:
        holding = {document.doc_id for document in fields.holding}
        pieces = [piece for piece in pieces if piece["metadata"].get("doc_id") in holding]
    elif reading["intent"] == "compare" and len(compared) > 1:
        pieces = [piece for piece in pieces if piece["metadata"].get("doc_id") in compared]
    elif names:  # what names nothing of the topic is not on it
        pieces = [piece for piece in pieces if any(name.covered_by(piece) for name in names)]
    about = pieces
    if not selects and not names:
        texts = [f"{source_title(piece)}. {piece['evidence']}" for piece in pieces]
        about = list(compress(pieces, enough(subject, texts, bases)))
    depths = {
        title: depth
        for aspect, parts in state["report"].get("aspects", [])
        for depth, title in (("", aspect), *((".", part) for part in parts))
    }
    depths = depths or dict.fromkeys(kind.wanted, "")
    sections = by_aspect([*depths], subject, pieces if about else [], bases)
    sections = [
        {**section, "section_id": depth}
        for section, depth in zip(sections, depths.values(), strict=True)
    ]
    for section in sections if selects or names else ():
        if fields.field_called(section["title"]):  # its values are known, and need no likeness
            section["evidence_ids"] = unique(piece["result_id"] for piece in pieces)
            section["quotes"] = []
    ids = set(chain(*(section["evidence_ids"] for section in sections)))
    documents: dict[str, list[RetrievalResult]] = {}
    used = {source_title(piece) for piece in pieces if piece["result_id"] in ids}
    for piece in about:
        if source_title(piece) not in used:
            documents.setdefault(source_title(piece), []).append(piece)
    own_section = [] if used else [*documents][: kind.sections - 1]
    sections += [
        outlined(title, f"{subject} {title}", documents.pop(title)) for title in own_section
    ]
    rest = list(chain(*documents.values())) if selects or not used else []
    title = fields.say(f"Other {fields.noun(2)}", f"其余{fields.noun(2)}")
    firsts = {sentence.doc_id: sentence.text for sentence in reversed(whole_sentences(rest))}
    sections += [outlined(title, subject, rest, quotes=[*firsts.values()])] if rest else []
    return new_outline(state, placed(sections)[: kind.sections])


def outlined(
    title: str, query: str, pieces: Evidence, *, summary: str = "", quotes: Sequence[str] = ()
) -> SectionOutline:
    """Return a section from these pieces; its summary is their titles where none is given."""
    titles = unique(map(source_title, pieces))
    return SectionOutline(
        section_id="",
        title=title if CJK.match(title) else title[:1].upper() + title[1:],
        summary=summary or ", ".join(titles[:4]) + (" …" if len(titles) > 4 else ""),
        query=query,
        evidence_ids=unique(piece["result_id"] for piece in pieces),
        estimated_words=max(60, 40 * len(pieces)),
        quotes=[*quotes],
    )


def new_outline(state: Data, sections: list[SectionOutline]) -> ReportOutline:
    """Return an outline of these sections."""
    return ReportOutline(
        report_type=state["report"]["report_type"],
        title=" ".join(state["message"].split())[:300],
        abstract=None,
        sections=sections,
        total_estimated_words=sum(section["estimated_words"] for section in sections),
    )


def unique(ids: Iterable[str]) -> list[str]:
    """Return ids in their order, each once."""
    return list(dict.fromkeys(ids))


def carried(
    earlier: ReportOutline, results: Evidence, known_ids: Iterable[str], bases: Bases
) -> ReportOutline:
    """Return the outline of a model or a person over the evidence of today.

    A piece whose id is not known joins the section whose title it says best, if it says it.
    """
    present = {r["result_id"] for r in results}
    earlier_ids = {*known_ids}
    fresh = [r for r in results if r["result_id"] not in earlier_ids]
    added = by_aspect([section["title"] for section in earlier["sections"]], "", fresh, bases)
    sections = list[SectionOutline]()
    for section, new in zip(earlier["sections"], added, strict=True):
        ids = [i for i in section["evidence_ids"] if i in present]
        quotes = [*section["quotes"], *new["quotes"]] if section["quotes"] else []
        sections.append(
            {**section, "evidence_ids": [*ids, *new["evidence_ids"]], "quotes": quotes}
        )
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
