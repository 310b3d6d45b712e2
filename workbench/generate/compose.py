"""The offline writer: which kind of answer a question gets. Deterministic, and pure: evidence in, cited text out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from workbench.generate.citations import cite
from workbench.generate.evidence import Evidence, evidence_of
from workbench.generate.facts import answers, brief, fact, years_differ
from workbench.generate.question import Facet, Question
from workbench.generate.quotes import ENOUGH, best, coverage, plot, saying, stems, weights
from workbench.generate.sides import comparison
from workbench.generate.silence import not_said, nothing_named, silent
from workbench.generate.sources import Document, Sentence
from workbench.generate.verdict import verdict
from workbench.generate.voice import Voice, as_they_are
from workbench.generate.works import extreme, held, listing, portrait, recommendation
from workbench.state import Citation, RetrievalResult
from workbench.text import language_of


class Answer(NamedTuple):
    """A cited answer: ``[n]`` in the text is the n-th piece of the merged evidence."""

    text: str
    citations: list[Citation]


def compose(
    question: Question,
    results: Sequence[RetrievalResult],
    *,
    evidence: Evidence | None = None,
    called: Callable[[str], str] = as_they_are,
    told: str = "",
) -> Answer:
    """Write the answer to a question from merged evidence, every sentence with its ``[n]``.

    Args:
        question: what was read of the question.
        results: the merged evidence, in the order of its numbers.
        evidence: the same with an index's term weights and totals, when there is one.
        called: the name by which readers of the question's language know something.
        told: what the conversation said before, for "more" and "others".

    >>> film = {"result_id": "low_level:mv1#0", "source_id": "mv1#0", "source_type": "chunk", "granularity": "low_level",
    ...         "score": 0.9, "evidence": "Hulk is a 2003 superhero film directed by Ang Lee.",
    ...         "metadata": {"doc_id": "mv1", "title": "Hulk", "position": 0, "fields": {"year": 2003, "directors": ["Ang Lee"]}}}
    >>> from workbench.generate.question import Subject
    >>> hulk = Subject("Hulk", "Hulk", "film", True, "mv1")
    >>> compose(Question("", "en", "qa", (hulk,), masked="when was \ue002 released?"), [film]).text
    'Hulk was released in 2003 [1].'
    """
    evidence = evidence or evidence_of(results)
    text = written(question, evidence, Voice(question.language, called), told)
    text, citations, _ = cite(text, results)
    return Answer(text, citations)


def written(question: Question, evidence: Evidence, voice: Voice, told: str) -> str:
    """The text of the answer, by intent."""
    if question.intent == "recommend":
        return recommendation(question, evidence, voice, told)
    if question.intent == "compare" and (said := comparison(question, evidence, voice)):
        return said
    if question.intent == "list" or question.wants_count:
        return listing(question, evidence, voice)
    people = [s for s in question.subjects if s.is_person]
    if question.intent == "person" and people and not untyped(question, evidence):
        portraits = [portrait(person, question, evidence, voice) for person in people]
        if any(portraits):
            return "\n".join(p for p in portraits if p)
    return direct(question, evidence, voice)


def untyped(question: Question, evidence: Evidence) -> list[Facet]:
    """What is asked that no typed field of people and their works answers."""
    return [f for f in question.facets(evidence.fields) if f.name not in ("director", "cast", "year", "genre", "alias")]


def direct(question: Question, evidence: Evidence, voice: Voice) -> str:
    """The answer to a question for something in particular."""
    documents = list({d.doc_id: d for s in question.subjects if (d := evidence.about(s))}.values())
    lost = [s for s in question.subjects if not evidence.knows(s)]
    if documents and question.is_yes_no and (said := verdict(question, documents, evidence, voice)):
        return said
    if lost and (not documents or not any(s.is_person for s in lost)):
        found = "\n".join(of_document(d, question, evidence, voice) for d in documents)
        missing = nothing_named(voice, [s.name for s in lost], len(evidence.results))
        return f"{found}\n{missing}" if found else missing
    if documents:
        return "\n".join(of_document(d, question, evidence, voice) for d in documents)
    people = [s for s in question.subjects if s.is_person]
    if people:
        return of_person(question, evidence, voice)
    return by_description(question, evidence, voice)


def of_document(document: Document, question: Question, evidence: Evidence, voice: Voice) -> str:
    """What the evidence says of one document: the facts asked for, then sentences."""
    facets = question.facets(evidence.fields)
    wanted = weights(question.themes, evidence.weight)
    if not facets:
        return told_of(document, question, wanted, evidence, voice)
    parts: list[str] = []
    missing: list[Facet] = []
    for facet in facets:
        typed = answers(document, facet, voice)
        quotes = saying(facet, document.sentences, wanted)
        role = facet.name == "cast" and wanted and not played(quotes, wanted)
        if typed:
            parts.append(typed)
            parts += support(facet, document, quotes, voice)
            if role:
                missing.append(facet)
        elif quotes and facet.name not in ("year", "director", "genre", "country", "alias"):
            parts += [voice.quoted(sentence) for sentence in quotes]
        else:
            missing.append(facet)
    if question.wants_plot:
        parts += [voice.quoted(s) for s in plot(document.sentences) if voice.quoted(s) not in parts]
    if missing:
        whose = [voice.title(document)]
        what = [voice.pick(*f.labels) for f in missing]
        if parts and missing[0].name == "cast" and wanted:
            what = [voice.pick(f"who plays {', '.join(question.themes)}", f"谁饰演{'、'.join(question.themes)}")]
        parts.append(not_said(voice, what, whose, len(document.sentences)))
    return voice.joined(parts)


def played(quotes: Sequence[Sentence], wanted: dict[str, float]) -> bool:
    """Whether a sentence on the cast also names the role that was asked for."""
    return any(coverage(wanted, stems(s.text)) >= ENOUGH for s in quotes)


def support(facet: Facet, document: Document, quotes: Sequence[Sentence], voice: Voice) -> list[str]:
    """What is worth adding to a typed fact: a differing year in the text, a sentence of the same language on it."""
    if facet.name == "year" and (other := years_differ(document)):
        return [voice.said(voice.pick(f"Its text gives {other}.", f"其正文写的是{other}年。"), document.n)]
    if facet.name in ("cast",):
        return [voice.quoted(s) for s in quotes[:1] if language_of(s.text) == voice.language or len(s.text) < 240]
    return []


def told_of(document: Document, question: Question, wanted: dict[str, float], evidence: Evidence, voice: Voice) -> str:
    """What a document says of a question's themes; what it is about, when there are none."""
    chosen, share = best(document.sentences, wanted)
    if wanted and share >= ENOUGH and not question.wants_plot:
        return voice.joined(voice.quoted(sentence) for sentence in chosen)
    foreign = any(language_of(s.text) != question.language for s in document.sentences[:1])
    lead = ""
    if wanted and not question.wants_plot and not foreign:
        lead = not_said(voice, list(question.themes), [voice.title(document)], len(document.sentences))
    introduced = "" if lead else introduction(document, voice)
    return voice.joined([lead, introduced, *(voice.quoted(s) for s in plot(document.sentences))])


def introduction(document: Document, voice: Voice) -> str:
    """A document's first fact in a sentence; "" when it has no typed fields."""
    return fact(document, "directors", voice) and voice.said(
        voice.pick(f"{brief(document, voice)}.", f"{brief(document, voice)}。"), document.n
    )


def of_person(question: Question, evidence: Evidence, voice: Voice) -> str:
    """A question about a person that names no work."""
    people = [s for s in question.subjects if s.is_person]
    works = [d for s in people for documents in evidence.works(s.name).values() for d in documents]
    dated = sorted({d.doc_id: d for d in works if d.year}.values(), key=lambda d: (d.year, d.doc_id))
    if question.extreme and dated:
        return extreme(question.extreme, dated[0] if question.extreme == "first" else dated[-1], voice)
    facets = untyped(question, evidence)
    named = [s for person in people for s in evidence.naming(person.name)]
    wanted = weights(question.themes, evidence.weight)
    if facets:
        quotes = [q for facet in facets for q in saying(facet, named, wanted)]
        told = [q for q in quotes if not wanted or coverage(wanted, stems(q.text)) >= ENOUGH or not question.themes]
        if told:
            return voice.joined(voice.quoted(sentence, named=True) for sentence in told)
        called = [voice.called(p.name) if voice.language == "zh" else p.name for p in people]
        return not_said(voice, [voice.pick(*facet.labels) for facet in facets], called, len(evidence.results))
    if wanted:
        chosen, share = best(named, wanted)
        on_theme = [d for d in dated if coverage(wanted, held(d)) >= ENOUGH]
        if share >= ENOUGH:
            return voice.joined(voice.quoted(sentence, named=True) for sentence in chosen)
        if on_theme:
            return voice.joined(described(d, question, evidence, voice) for d in on_theme[:3])
    return "\n".join(p for p in (portrait(person, question, evidence, voice) for person in people) if p) or silent(
        voice, [p.name for p in people], len(evidence.results)
    )


def by_description(question: Question, evidence: Evidence, voice: Voice) -> str:
    """A question that names nothing known: answered only where the evidence holds its words."""
    wanted = weights(question.themes, evidence.weight)
    names = [s for s in question.subjects if evidence.naming(s.name)]
    for subject in names:
        wanted |= weights([subject.name], evidence.weight)
    looked_for = [s.name for s in question.subjects] + list(question.themes)
    facets = question.facets(evidence.fields)
    if not wanted:
        return silent(voice, looked_for, len(evidence.results))
    if question.wants_work or facets:
        telling = [(coverage(wanted, held(d)), d) for d in evidence.documents]
        share, document = max(telling, key=lambda t: (round(t[0], 6), t[1].score), default=(0.0, None))
        if document and share >= ENOUGH and (question.wants_work or len(wanted) > 1):
            if facets:
                return of_document(document, question, evidence, voice)
            return described(document, question, evidence, voice)
        if facets:
            return silent(voice, looked_for, len(evidence.results))
    chosen, share = best(evidence.sentences, wanted, 3)
    if share < ENOUGH or not chosen:
        return silent(voice, looked_for, len(evidence.results))
    several = len({sentence.doc_id for sentence in chosen}) > 1
    return voice.joined(voice.quoted(sentence, named=several) for sentence in chosen)


def described(document: Document, question: Question, evidence: Evidence, voice: Voice) -> str:
    """A work that fits a description, with the sentence that makes it fit."""
    chosen, _ = best(document.sentences, weights(question.themes, evidence.weight), 1)
    named = voice.said(f"{brief(document, voice)}{voice.pick('.', '。')}", document.n)
    return voice.joined([re.sub(r"\.\.", ".", named), *(voice.quoted(s) for s in chosen)])
