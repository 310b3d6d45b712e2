"""Yes or no, where a typed field decides it; with the fact that decides."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.generate.evidence import Evidence
from workbench.generate.facts import fact, introduction
from workbench.generate.question import Question, Subject
from workbench.generate.sources import Document
from workbench.generate.voice import Voice
from workbench.knowledge.vocabulary import find
from workbench.text import fold

_DIRECTED = re.compile(r"\bdirect|\bma(?:de|ke)\b|\bfilmmaker|导|拍", re.IGNORECASE)
_PLAYED = re.compile(r"\bstar|\bact|\bplay|\bappear|\bcast\b|\bis \ue001 in\b|\bfeature|演", re.IGNORECASE)
_FIELDS = {
    "directors": re.compile(r"direct|导演|执导"),
    "year": re.compile(r"\byear|年"),
    "genres": re.compile(r"\bgenre|\bkind|类型|题材"),
    "cast": re.compile(r"\bcast|\bstar|\bactor|主演|演员"),
    "countries": re.compile(r"\bcountry|国"),
}
_SAME = re.compile(r"\bsame\b|\bboth\b|同一|相同|都是|一样", re.IGNORECASE)


def verdict(question: Question, documents: Sequence[Document], evidence: Evidence, voice: Voice) -> str:
    """The answer to "Did Ang Lee direct Hulk?"; "" when no typed field decides it."""
    if len(documents) > 1 and _SAME.search(question.masked):
        return same(question, documents, voice)
    document = documents[0]
    others = [s for s in question.subjects if evidence.about(s) is not document]
    people = [s for s in others if s.is_person or not s.known]
    if question.wants("exists") and not people and not question.facets(evidence.fields) and not question.themes:
        return decided(True, introduction(document, voice) or fact(document, "year", voice), voice)
    if people:
        return of_people(question, people, document, voice)
    return of_value(question, document, voice)


def of_people(question: Question, people: Sequence[Subject], document: Document, voice: Voice) -> str:
    """Whether people did what they are said to have done."""
    if _DIRECTED.search(question.masked):
        field = "directors"
    elif _PLAYED.search(question.masked):
        field = "cast"
    else:
        field = next((f for f in ("directors", "cast") if document.has(f, people[0].name)), "")
    if not field or not document.values(field):
        return ""
    named = (any if question.wants("either") else all)(document.has(field, person.name) for person in people)
    if field == "cast" and not named:
        who = voice.listed([voice.name(person.name) if person.known else person.surface for person in people])
        title = voice.title(document)
        lead = voice.pick(
            f"The corpus does not name {who} in the cast of {title}.", f"资料库没有提到{who}出演{title}。"
        )
        return voice.joined([voice.said(lead), fact(document, field, voice)])
    said = fact(document, field, voice)
    return said if question.wants("either") else decided(named, said, voice)


def of_value(question: Question, document: Document, voice: Voice) -> str:
    """Whether a document is of a year, a genre or a country."""
    years = re.findall(r"(?<!\d)(?:18|19|20)\d\d(?!\d)", question.masked)
    if len(years) == 1 and document.year and not re.search(r"\b(?:before|after|since)\b|[之以][前后]", question.masked):
        return decided(document.year == int(years[0]), fact(document, "year", voice), voice)
    if years and document.year:
        return decided(between(document.year, question), fact(document, "year", voice), voice)
    genres = list(dict.fromkeys(name for _, _, name in find("genre", question.masked)))
    if genres and document.values("genres"):
        return decided(all(document.has("genres", g) for g in genres), fact(document, "genres", voice), voice)
    countries = list(dict.fromkeys(name for _, _, name in find("country", question.masked)))
    if countries and document.values("countries"):
        return decided(all(document.has("countries", c) for c in countries), fact(document, "countries", voice), voice)
    return ""


def between(year: int, question: Question) -> bool:
    """Whether a year holds the question's filters."""
    return question.filters.get("year_from", 0) <= year <= question.filters.get("year_to", 9999)


def same(question: Question, documents: Sequence[Document], voice: Voice) -> str:
    """Whether several documents agree in the field that is asked for."""
    asked = [name for name, pattern in _FIELDS.items() if pattern.search(question.masked)]
    fields = [name for name in asked if any(d.values(name) for d in documents)]
    if not fields:
        return ""
    field = fields[0]
    first, *rest = [set(map(fold, d.values(field))) for d in documents]
    agreed = all(first & other for other in rest)
    facts = [fact(document, field, voice) for document in documents]
    return decided(agreed, facts[0], voice) + voice.pick(" ", "") + voice.joined(facts[1:])


def decided(yes: bool, said: str, voice: Voice) -> str:
    """Yes or no, with the fact."""
    return voice.pick("Yes: " if yes else "No: ", "是的，" if yes else "不是，") + said
