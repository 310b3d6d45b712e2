"""The offline writer: which kind of answer a question gets. Deterministic, and pure: evidence in, cited text out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from workbench.generate.citations import cite
from workbench.generate.direct import direct, untyped
from workbench.generate.evidence import Evidence, evidence_of
from workbench.generate.followed import followed
from workbench.generate.question import Question
from workbench.generate.recommend import recommendation
from workbench.generate.sides import comparison
from workbench.generate.voice import Voice, as_they_are
from workbench.generate.works import listing, portrait, series
from workbench.state import Citation, RetrievalResult


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
    """Write the answer to a question from merged evidence, every statement with its ``[n]``.

    Args:
        question: what was read of the question.
        results: the merged evidence, in the order of its numbers.
        evidence: the same with an index's term weights and totals, when there is one.
        called: the Chinese name of a title or a person, or the name itself.
        told: what the conversation said before, for "more" and "others".

    >>> metadata = {"doc_id": "mv1", "title": "Hulk", "fields": {"year": 2003, "directors": ["Ang Lee"]}}
    >>> film = {"result_id": "low_level:mv1#0", "source_type": "chunk", "score": 0.9, "metadata": metadata,
    ...         "evidence": "Hulk is a 2003 superhero film directed by Ang Lee."}
    >>> from workbench.generate.question import Subject
    >>> hulk = Subject("Hulk", "Hulk", "film", True, "mv1")
    >>> compose(Question("", "en", "qa", (hulk,), masked="when was \\ue002 released?"), [film]).text
    'Hulk was released in 2003 [1].'
    """
    evidence = evidence or evidence_of(results)
    text = written(question, evidence, Voice(question.language, called), told)
    text, citations, _ = cite(text, results)
    return Answer(text, citations)


def written(question: Question, evidence: Evidence, voice: Voice, told: str) -> str:
    """The text of the answer, by intent."""
    people = [s for s in question.subjects if s.is_person]
    of_a_document = any(not s.is_person and evidence.about(s) for s in question.subjects)
    if said := followed(evidence, voice):
        return said
    if question.intent == "recommend":
        return recommendation(question, evidence, voice, told)
    if question.intent == "compare" and (said := comparison(question, evidence, voice)):
        return said
    if (question.intent == "list" or question.wants("count")) and (said := series(question, evidence, voice)):
        return said
    if (question.intent == "list" or question.wants("count")) and not of_a_document:
        return listing(question, evidence, voice)
    if question.intent == "person" and people and not untyped(question, evidence):
        portraits = [portrait(person, evidence, voice) for person in people]
        if any(portraits):
            return "\n".join(p for p in portraits if p)
    several = len({d.doc_id for s in question.subjects if (d := evidence.about(s))}) > 1
    if several and not question.facets(evidence.fields) and not question.wants("yes_no"):
        return comparison(question, evidence, voice)
    return direct(question, evidence, voice)
