"""Answers to questions for something in particular: a fact, a sentence, a work that fits a description."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.generate.evidence import Evidence
from workbench.generate.facts import answers, brief, introduction, years_differ
from workbench.generate.question import Facet, Question, Subject
from workbench.generate.quotes import ENOUGH, best, plot, saying
from workbench.generate.sides import shared
from workbench.generate.silence import lacking, not_said, nothing_named, silent
from workbench.generate.sources import Document, Sentence
from workbench.generate.themes import Want, coverage, says, segments, stems
from workbench.generate.verdict import verdict
from workbench.generate.voice import Voice
from workbench.generate.works import conditions, extreme, portrait
from workbench.text import language_of

STORY = ("the story of {}", "{}的剧情")
PARTLY = 0.3
"""The share that is enough where the document is certain and only the sentence is sought."""


def direct(question: Question, evidence: Evidence, voice: Voice) -> str:
    """The answer by what the question names: documents, people, or nothing that is known."""
    roles = role_names(question, evidence)
    subjects = [s for s in question.subjects if s not in roles]
    documents = list({d.doc_id: d for s in subjects if (d := evidence.about(s))}.values())
    facets = question.facets(evidence.fields)
    lost = [s for s in subjects if not evidence.knows(s) and not any(f.asked.search(s.surface.lower()) for f in facets)]
    if (
        documents
        and question.wants("yes_no")
        and not untyped(question, evidence)
        and (said := verdict(question, documents, evidence, voice))
    ):
        return said
    if len(documents) > 1 and question.wants("both") and (said := in_common(question, documents, evidence, voice)):
        return said
    found = "\n".join(of_document(d, question, evidence, voice, roles) for d in documents)
    missing = nothing_named(voice, [s.surface for s in lost], len(evidence.results)) if lost else ""
    if found or missing:
        return "\n".join(part for part in (found, missing) if part)
    if any(s.is_person for s in subjects):
        return of_person(question, evidence, voice)
    return by_description(question, evidence, voice)


def in_common(question: Question, documents: Sequence[Document], evidence: Evidence, voice: Voice) -> str:
    """What several documents share of the typed fields asked for; "" when none is asked for or shared."""
    fields = [name for facet in question.facets(evidence.fields) for name in facet.fields]
    return voice.joined(shared(documents, voice, fields)) if fields else ""


def untyped(question: Question, evidence: Evidence) -> list[Facet]:
    """What is asked that no typed field of people and their works answers."""
    return [f for f in question.facets(evidence.fields) if f.name not in ("director", "cast", "year", "genre", "alias")]


def role_names(question: Question, evidence: Evidence) -> list[Subject]:
    """The names that are roles, in questions for who plays them: "the Joker in The Dark Knight"."""
    if not any(facet.name == "cast" for facet in question.facets()):
        return []
    others = [s for s in question.subjects if not s.is_person]
    if len(others) == 2 and question.wants("role"):
        return others[:1]
    unclear = [s for s in others if not evidence.about(s)]
    return unclear if len(unclear) < len(others) else []


def of_document(
    document: Document, question: Question, evidence: Evidence, voice: Voice, roles: Sequence[Subject] = ()
) -> str:
    """What the evidence says of one document: the facts asked for, then sentences."""
    facets = question.facets(evidence.fields) if document.fields else []
    wanted = evidence.wants([*question.about(facets), *(s.name for s in roles)])
    if question.wants("count") or not facets:
        return told_of(document, question, wanted, voice)
    parts, missing = list[str](), list[str]()
    for facet in facets:
        typed = answers(document, facet, voice)
        remarks = evidence.remarks_on(document, voice.title(document))
        quotes = saying(facet, document.sentences, wanted) or saying(facet, remarks, wanted)
        if facet.name == "cast" and wanted:
            said, lacks = role(document, question, roles, quotes, wanted, typed, voice)
            parts += said
            missing += lacks
        elif typed:
            parts += [typed, *differing(facet, document, voice)]
        elif quotes and not facet.typed:
            parts.append(voice.quoted(quotes))
        else:
            missing.append(lacking(voice, facet.names, voice.title(document)))
    if question.wants("plot") and all(facet.typed for facet in facets):
        parts.append(voice.quoted(plot(document.sentences) or list(document.sentences[:1])))
    if missing:
        parts.append(not_said(voice, missing, len(document.sentences)))
    return voice.joined(dict.fromkeys(parts))


def role(
    document: Document,
    question: Question,
    roles: Sequence[Subject],
    quotes: Sequence[Sentence],
    wanted: Sequence[Want],
    typed: str,
    voice: Voice,
) -> tuple[list[str], list[str]]:
    """Who plays a role: a sentence that names it, else the cast and that the role is not told."""
    telling = [s for s in quotes if coverage(wanted, stems(s.text)) >= ENOUGH]
    if telling:
        return [voice.quoted(telling)], []
    if not roles and not question.wants("plays"):
        return [typed], []
    named, title = voice.listed([s.surface for s in roles] or [w.word for w in wanted]), voice.title(document)
    return [typed], [voice.pick(f"who plays {named} in {title}", f"{title}中{named}由谁饰演")]


def differing(facet: Facet, document: Document, voice: Voice) -> list[str]:
    """A document's text may give another year than its typed field; a reader should see both."""
    other = years_differ(document) if facet.name == "year" else ""
    return [voice.said(voice.pick(f"Its text gives {other}.", f"其正文写的是{other}年。"), document.n)] if other else []


def told_of(document: Document, question: Question, wanted: Sequence[Want], voice: Voice) -> str:
    """What a document says of a question's themes; what it is about, when there are none."""
    sentences = [
        s
        for s in document.sentences
        if not question.wants("count")
        or re.search(r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten)\b|[一二两三四五六七八九十]", s.text)
    ]
    chosen, share = best(sentences, wanted)
    if wanted and share >= (ENOUGH if question.wants("count") else PARTLY):
        return voice.quoted(chosen)
    aside = segments(re.sub(r"[\ue001\ue002\W]", "", question.masked), [s.text for s in sentences])
    if wanted and (said := [s for s in sentences if any(w in s.text for w in aside if len(w) > 1)]):
        return voice.quoted(said[:1])
    foreign = any(language_of(s.text) != question.language for s in document.sentences[:1])
    if question.wants("count") or (wanted and not foreign and not question.wants("plot")):
        asked = [lacking(voice, w.word, voice.title(document)) for w in wanted]
        return not_said(voice, asked or [voice.pick("how many", "数量")], len(document.sentences))
    story = plot(document.sentences)
    if question.wants("plot") and not story:
        opening = sorted(document.sentences, key=lambda s: s.place)[:1]
        lead = not_said(voice, [lacking(voice, STORY, voice.title(document))], len(document.sentences))
        return voice.joined([lead, voice.quoted(opening)])
    return voice.joined([introduction(document, voice), voice.quoted(story or list(document.sentences[:1]))])


def of_person(question: Question, evidence: Evidence, voice: Voice) -> str:
    """A question about a person that names no work."""
    people = [s for s in question.subjects if s.is_person]
    works = [d for s in people for documents in evidence.works(s.name).values() for d in documents]
    dated = sorted({d.doc_id: d for d in works if d.year}.values(), key=lambda d: (d.year, d.doc_id))
    for which in ("first", "last"):
        if dated and question.wants(which):
            return extreme(which, dated[0] if which == "first" else dated[-1], conditions(question, voice), voice)
    facets = untyped(question, evidence)
    named = [s for person in people for s in evidence.naming(person.name)]
    wanted = evidence.wants(question.about(facets))
    on_theme = [d for d in dated if wanted and says(wanted, d.stems, ENOUGH)]
    if on_theme and question.wants("work"):
        return voice.joined(described(d, wanted, voice) for d in on_theme[:3])
    told = [q for facet in facets for q in saying(facet, named, wanted, 2)]
    if not facets:
        told, _ = best(named, wanted)
    if told and says(wanted, frozenset().union(*(stems(s.text) for s in told)), ENOUGH):
        return voice.quoted(told, named=True)
    if facets or wanted:
        of = voice.listed([person.surface for person in people])
        what: list[tuple[str, str] | str] = [*(f.names for f in facets)] or [w.word for w in wanted]
        return not_said(voice, [lacking(voice, names, of) for names in what], len(named))
    portraits = [portrait(person, evidence, voice) for person in people]
    return "\n".join(p for p in portraits if p) or silent(voice, [p.surface for p in people], len(evidence.results))


def by_description(question: Question, evidence: Evidence, voice: Voice) -> str:
    """A question that names nothing known: answered only where the evidence says its words."""
    every = question.facets(evidence.fields)
    facets = [f for f in every if f.typed or not question.wants("which")]
    described_by = [f for f in every if f not in facets]
    if not evidence.fields:
        facets = []
        if documents := named_in_part(question, evidence):
            return "\n".join(of_document(d, question, evidence, voice) for d in documents)
    themes = [t for t in question.about(facets) if not any(question.says(which, t) for which in ("first", "last"))]
    wanted = evidence.wants([*themes, *(s.name for s in question.subjects)])
    looked_for = [*(s.surface for s in question.subjects), *question.themes]
    if not wanted:
        return silent(voice, looked_for, len(evidence.results))
    if question.wants("work") or facets:
        telling = [(coverage(wanted, d.stems), d) for d in evidence.documents]
        _, document = max(telling, key=lambda t: (round(t[0], 6), t[1].score), default=(0.0, None))
        if document and says(wanted, document.stems, ENOUGH) and (question.wants("work") or len(wanted) > 1):
            fact = of_document(document, question, evidence, voice) if facets else ""
            chosen, _ = best(document.sentences, wanted, 1)
            if all(f.said.search(s.text) for f in described_by for s in chosen):
                return fact or described(document, wanted, voice)
            return silent(voice, looked_for, len(evidence.results))
        if facets:
            return silent(voice, looked_for, len(evidence.results))
    chosen = together(evidence, wanted)
    if not chosen:
        return silent(voice, looked_for, len(evidence.results))
    return voice.quoted(chosen, named=any(d.is_film for d in evidence.documents))


def named_in_part(question: Question, evidence: Evidence) -> list[Document]:
    """Documents without typed fields are often named by half of their title: 龙井 for 龙井茶."""
    words = [word for theme in question.themes for word in segments(theme, evidence.texts)]
    return [d for d in evidence.documents if any(w in d.title and 2 * len(w) >= len(d.title) for w in words)]


def together(evidence: Evidence, wanted: Sequence[Want]) -> list[Sentence]:
    """The sentences of one document that say enough of what is wanted, one of them most of it.

    Words that are scattered over documents, or over a long one, are no answer: a film set in France and a company
    named Capital say nothing of the capital of France.
    """
    groups: dict[str, list[Sentence]] = {}
    for sentence in evidence.sentences:
        groups.setdefault(sentence.doc_id, []).append(sentence)
    found = []
    for sentences in groups.values():
        alone, _ = best(sentences, wanted, 1)
        if alone and says(wanted, stems(f"{alone[0].text} {alone[0].title}"), ENOUGH):
            chosen, share = best(sentences, wanted, 2)
            found.append((round(share, 6), -chosen[0].n, chosen))
    return max(found, key=lambda f: f[:2], default=(0, 0, []))[2]


def described(document: Document, wanted: Sequence[Want], voice: Voice) -> str:
    """A work that fits a description, with the sentence that makes it fit."""
    chosen, _ = best(document.sentences, wanted, 1)
    said = introduction(document, voice) or voice.said(f"{brief(document, voice)}{voice.pick('.', '。')}", document.n)
    return voice.joined([said, voice.quoted(chosen)])
