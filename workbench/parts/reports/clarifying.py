"""What a question leaves open before a report is written on it: whom a name means, and which subject.

Nothing here asks a model, and nothing belongs to a corpus: who bears a name and how the bearers differ is what the
knowledge base says. An assumption of the person that names an option settles its question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.language.wording import shown
from workbench.ports import Field, KnowledgeBase
from workbench.state import Clarification, Entity, Question
from workbench.text import fold, language_of, sentences, terms

MOST = 5
"""Questions that a person is asked at once."""
MOST_OPTIONS = 6
_ENOUGH, _LONGEST = 2, 80
"""Fields that tell things apart, and characters of a value."""
GENERAL = ("", "通用", "general")
"""Domains that are none in particular."""
_DETAIL = re.compile(r"[(（]((?:[^()（）]|\([^()]*\)|（[^（）]*）)*)[)）]$")
_CLOSING = "》〉」』”\"'`"


def open_questions(
    query: str,
    reading: Question,
    bases: Sequence[KnowledgeBase],
    assumptions: Sequence[str] = (),
    domain: str = "",
) -> list[Clarification]:
    """Return what the question leaves open, the weightiest first, at most ``MOST``.

    Args:
        query: as it stands alone.
        reading: of it.
        bases: that are asked.
        assumptions: what the person assumes; one that speaks of a question is its ``answer``.
        domain: what is assumed where the question says no subject; empty: all that the bases hold.
    """
    found = [*_names(query, reading, bases), *_scope(reading, bases, domain)]
    return _settled(found[:MOST], assumptions, bases)


def unanswered(clarifications: Iterable[Clarification]) -> list[Clarification]:
    """Those that nobody has answered."""
    return [one for one in clarifications if not one["answer"]]


def answered(clarifications: Iterable[Clarification], answers: Mapping[str, str]) -> list[Clarification]:
    """The questions with these answers, by id; one that means an option is that option.

    >>> asked = Clarification(question_id="scope", kind="scope", question="Which?", must=False, answer="",
    ...                       options=["all of it", "tea"], assumed="all of it")
    >>> [one["answer"] for text in ("2", "oolong") for one in answered([asked], {"scope": text})]
    ['tea', 'oolong']
    """
    found = []
    for one in clarifications:
        given = " ".join(str(answers.get(one["question_id"]) or "").split())
        found.append(Clarification(**{**one, "answer": (chosen(given, one["options"]) or given) or one["answer"]}))
    return found


def assumed(clarifications: Iterable[Clarification]) -> list[Clarification]:
    """The questions with what is assumed where nobody answered, for searching by."""
    return [Clarification(**{**one, "answer": one["answer"] or one["assumed"]}) for one in clarifications]


def chosen(answer: str, options: Sequence[str]) -> str:
    """The option that an answer means: its number, its words, or what only it says; "" where it means none or several.

    >>> books = ["Emma (1815, Jane Austen)", "Emma (2021, Ida Brandt)"]
    >>> [chosen(text, books) for text in ("2", "the one by Austen", "Emma", "that of 2021")]
    ['Emma (2021, Ida Brandt)', 'Emma (1815, Jane Austen)', '', 'Emma (2021, Ida Brandt)']
    """
    said = answer.strip().rstrip(".。")
    if said.isdecimal() and 0 < int(said) <= len(options):
        return options[int(said) - 1]
    for option in options:
        if fold(option) == fold(said):
            return option
    held = [set(terms(option)) for option in options]
    common = set.intersection(*held) if len(held) > 1 else set()
    shares = [len((own - common) & set(terms(said))) for own in held]
    best = max(shares, default=0)
    return options[shares.index(best)] if best and shares.count(best) == 1 else ""


def refined(query: str, clarifications: Iterable[Clarification]) -> str:
    """The query with what was answered said in it; as it is where nothing was, or nothing but all that there is.

    >>> one = Clarification(question_id="name:Dune", kind="name", question="Which Dune is meant?", must=True,
    ...                     options=["Dune (1984)", "Dune (2021)"], assumed="Dune (1984)", answer="Dune (2021)")
    >>> refined("How was Dune received?", [one])
    'How was Dune (2021) received?'
    >>> refined("《沙丘》反响如何？", [{**one, "question_id": "name:沙丘"}])
    '《沙丘》（2021）反响如何？'
    """
    chinese = language_of(query) == "zh"
    for one in clarifications:
        answer = one["answer"]
        if not answer or (one["kind"] == "scope" and fold(answer) == fold(one["assumed"])):
            continue
        if one["kind"] == "name":
            query = _with_detail(query, one["question_id"].partition(":")[2], _telling_apart(one), chinese)
        elif one["kind"] == "scope":
            query = _before_end(query, answer if chinese else f"about {answer}", chinese)
        else:
            query = f"{query}（{one['question']}{answer}）" if chinese else f"{query} ({one['question']} {answer})"
    return query


def stated(clarifications: Iterable[Clarification], language: str) -> list[str]:
    """What was answered or is assumed, a sentence each, for a plan and a report to state.

    >>> one = Clarification(question_id="name:沙丘", kind="name", question="", must=True, options=[],
    ...                     assumed="沙丘（2021）", answer="")
    >>> stated([one], "zh"), stated([{**one, "answer": "沙丘（1984）"}], "en")
    (['假定：“沙丘”指沙丘（2021）。'], ['“沙丘” means 沙丘（1984）.'])
    """
    chinese, lines = language == "zh", []
    for clarification in clarifications:
        name, answer = clarification["question_id"].partition(":")[2], clarification["answer"]
        what = answer or clarification["assumed"]
        if not what:
            continue
        line = f"{clarification['question']}{'' if chinese else ' '}{what}"
        if clarification["kind"] == "name":
            line = f"“{name}”指{what}" if chinese else f"“{name}” means {what}"
        elif clarification["kind"] == "scope":
            line = f"内容范围是{what}" if chinese else f"The subject is {what}"
        if not answer:
            line = f"假定：{line}" if chinese else f"It is assumed: {line}"
        lines.append(f"{line.rstrip('.。')}{'。' if chinese else '.'}")
    return lines


# --- whom a name means ---


def _names(query: str, reading: Question, bases: Sequence[KnowledgeBase]) -> Iterator[Clarification]:
    chinese, told = reading["language"] == "zh", set[str]()
    for base in bases:
        for mention in base.link(query):
            surface, others = mention["surface"], mention.get("others", [])
            read = any(n["start"] <= mention["start"] and mention["end"] <= n["end"] for n in reading["names"])
            if not others or not read or surface in told:
                continue
            ids = [mention["entity_id"], *others][:MOST_OPTIONS]
            bearers = [entity for entity in map(base.entity, ids) if entity]
            written_of = [entity for entity in bearers if entity["doc_id"]]
            bearers = written_of or bearers  # what no document is about is rarely meant beside what one is
            options = list(dict.fromkeys(_described(bearers, base, chinese))) if len(bearers) > 1 else []
            if len(options) < 2:
                continue
            told.add(surface)
            yield Clarification(
                question_id=f"name:{surface}",
                kind="name",
                question=f"“{surface}”指的是哪一个？" if chinese else f"Which “{surface}” is meant?",
                options=options,
                assumed=options[0],
                must=bool(written_of),
                answer="",
            )


def _described(bearers: Sequence[Entity], base: KnowledgeBase, chinese: bool) -> Iterator[str]:
    """Each bearer by its name and what tells it from the others."""
    for bearer, details in zip(bearers, _details(bearers, base), strict=True):
        said = ("，" if chinese else ", ").join(details)
        yield f"{bearer['name']}（{said}）" if chinese else f"{bearer['name']} ({said})"


def _details(bearers: Sequence[Entity], base: KnowledgeBase) -> list[list[str]]:
    """Return what of each bearer differs from the others: fields, else how its text begins."""
    parts = [base.passages_of([bearer["doc_id"]])[:1] if bearer["doc_id"] else [] for bearer in bearers]
    fields: list[Mapping[str, Any]] = [part[0]["fields"] if part else {} for part in parts]
    columns = [[_value(row.get(field["name"])) for row in fields] for field in _telling(base.schema())]
    kept = [column for column in columns if len(set(column)) > 1][:_ENOUGH]
    if len({*zip(*kept, strict=True)}) < len(bearers):
        texts = [part[0]["text"] if part else bearer["entity_id"] for part, bearer in zip(parts, bearers, strict=True)]
        kept.append([_begun(text, bearer["name"]) for text, bearer in zip(texts, bearers, strict=True)])
    rows = zip(bearers, zip(*kept, strict=True), strict=True)
    return [[value for value in row if value] or [bearer["entity_id"]] for bearer, row in rows]


def _telling(schema: Sequence[Field]) -> list[Field]:
    """Fields that a person tells things apart by, when and whose first."""
    order = ("date", "name", "category", "number")
    return sorted((field for field in schema if field["type"] in order), key=lambda field: order.index(field["type"]))


def _value(value: Any) -> str:
    said = ", ".join(map(str, value[:2])) if isinstance(value, list) else "" if value is None else str(value)
    return said if len(said) <= _LONGEST else ""


def _begun(text: str, name: str) -> str:
    """The beginning of a text, without the name."""
    first = next(iter(sentences(text)), "").strip().rstrip(".。").removeprefix(name).lstrip(" ,，")
    return first if len(first) <= _LONGEST else f"{first[: _LONGEST - 1].rstrip()}…"


# --- which subject ---


def _scope(reading: Question, bases: Sequence[KnowledgeBase], domain: str) -> Iterator[Clarification]:
    """The subject, where the question says nothing that the knowledge bases know."""
    found = any(base.keyword_search(word, 1) for base in bases for word in reading["words"])
    if reading["names"] or reading["conditions"] or found:
        return
    chinese = reading["language"] == "zh"
    number, names = sum(base.counts()["documents"] for base in bases), ", ".join(base.name for base in bases)
    everything = f"{names} 的全部内容（{number} 篇）" if chinese else f"everything in {names} ({number:,} documents)"
    assumed = everything if domain.strip() in GENERAL else domain.strip()
    yield Clarification(
        question_id="scope",
        kind="scope",
        question="要写哪方面的内容？" if chinese else "What should it be about?",
        options=list(dict.fromkeys([assumed, everything, *_subjects(bases)]))[:MOST_OPTIONS],
        assumed=assumed,
        must=False,
        answer="",
    )


def _subjects(bases: Sequence[KnowledgeBase]) -> Iterator[str]:
    """The commonest values of the first category that has several."""
    for base in bases:
        field = next((f for f in base.schema() if f["type"] == "category" and len(f["values"]) > 1), None)
        if field is not None:
            yield from (f"{shown(field, 'en')}: {value}" for value in field["values"][: MOST_OPTIONS - 2])


# --- what a person assumed beforehand, and how an answer is said in the query ---


def _settled(
    found: Sequence[Clarification], assumptions: Sequence[str], bases: Sequence[KnowledgeBase]
) -> list[Clarification]:
    """The questions with the assumptions that answer them, each used once."""
    left, done = list(assumptions), []
    for one in found:
        answers = ((text, _settles(one, text, bases)) for text in left)
        text, answer = next(((text, answer) for text, answer in answers if answer), ("", ""))
        if answer:
            left.remove(text)
        done.append(Clarification(**{**one, "answer": answer}))
    return done


def _settles(one: Clarification, text: str, bases: Sequence[KnowledgeBase]) -> str:
    """What an assumption answers to a question, or ""."""
    if one["kind"] == "name":
        return chosen(text, one["options"]) if fold(one["question_id"].partition(":")[2]) in fold(text) else ""
    return text if any(base.link(text) or base.values_in(text) for base in bases) else chosen(text, one["options"])


def _telling_apart(one: Clarification) -> str:
    """The first thing in an answer that no other option has: a whole description would ask for more things."""
    detail = match[1] if (match := _DETAIL.search(one["answer"])) else one["answer"]
    others = [option for option in one["options"] if option != one["answer"]]
    own = (part.strip() for part in re.split("[,，]", detail))
    return next((part for part in own if part and not any(part in other for other in others)), detail)


def _with_detail(query: str, surface: str, detail: str, chinese: bool) -> str:
    """The query with what tells the one who is meant from the others behind the name."""
    at = query.find(surface)
    if at < 0 or detail in query:
        return query
    end = at + len(surface)
    while query[end : end + 1] and query[end] in _CLOSING:
        end += 1
    return f"{query[:end]}（{detail}）{query[end:]}" if chinese else f"{query[:end]} ({detail}){query[end:]}"


def _before_end(query: str, phrase: str, chinese: bool) -> str:
    """The query with a phrase before the sign that ends it."""
    if phrase in query:
        return query
    body = query.rstrip("?？.。!！ ")
    end = query[len(body) :]
    if chinese:
        return f"{body}（{phrase}）{end}"
    return f"{body} {phrase}{end}"
