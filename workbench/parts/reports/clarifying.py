"""What a question leaves open before a report is written on it: whom a name means, and which subject.

Nothing here asks a model, and nothing belongs to a corpus: who bears a name and how the bearers differ is what the
knowledge base says. An assumption of the person that names an option settles its question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.language.wording import shown
from workbench.ports import KnowledgeBase
from workbench.state import Clarification, Entity, Question
from workbench.text import fold, language_of, sentences, terms

MOST, MOST_OPTIONS = 5, 6
"""Questions that a person is asked at once, and options of one."""
_ENOUGH, _LONGEST = 2, 80
"""Fields that tell things apart, and characters of a value."""
_GENERAL = ("", "通用", "general")
"""Domains that are none in particular."""
_DETAIL = re.compile(r"[(（]((?:[^()（）]|\([^()]*\)|（[^（）]*）)*)[)）]$")


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
    asked, left = [*_names(query, reading, bases), *_scope(reading, bases, domain)][:MOST], list(assumptions)
    for one in asked:
        answers = {text: answer for text in left if (answer := _settles(one, text, bases))}
        if answers:
            text, one["answer"] = next(iter(answers.items()))
            left.remove(text)
    return asked


def _settles(one: Clarification, text: str, bases: Sequence[KnowledgeBase]) -> str:
    """What an assumption answers to a question, or ""."""
    if one["kind"] == "name":
        return chosen(text, one["options"]) if fold(one["question_id"].partition(":")[2]) in fold(text) else ""
    return text if any(base.link(text) or base.values_in(text) for base in bases) else chosen(text, one["options"])


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
    made = []
    for one in clarifications:
        given = " ".join(str(answers.get(one["question_id"]) or "").split())
        made.append(Clarification(**{**one, "answer": chosen(given, one["options"]) or given or one["answer"]}))
    return made


def chosen(answer: str, options: Sequence[str]) -> str:
    """The option that an answer means: its number, its words, or what only it says; "" where it means none or several.

    >>> books = ["Emma (1815, Jane Austen)", "Emma (2021, Ida Brandt)"]
    >>> [chosen(text, books) for text in ("2", "the one by Austen", "Emma", "that of 2021")]
    ['Emma (2021, Ida Brandt)', 'Emma (1815, Jane Austen)', '', 'Emma (2021, Ida Brandt)']
    """
    said = answer.strip().rstrip(".。")
    numbered = {str(n): option for n, option in enumerate(options, 1)} | {fold(option): option for option in options}
    if fold(said) in numbered:
        return numbered[fold(said)]
    held = [set(terms(option)) for option in options]
    common = set.intersection(*held) if len(held) > 1 else set()
    shares = [len((own - common) & set(terms(said))) for own in held]
    best = max(shares, default=0)
    return options[shares.index(best)] if best and shares.count(best) == 1 else ""


def refined(query: str, clarifications: Iterable[Clarification]) -> str:
    """The query with what was answered said in it, behind the name that it is of, or at the end.

    >>> one = Clarification(question_id="name:Dune", kind="name", question="Which Dune is meant?", must=True,
    ...                     options=["Dune (1984)", "Dune (2021)"], assumed="Dune (1984)", answer="Dune (2021)")
    >>> refined("How was Dune received?", [one])
    'How was Dune (2021) received?'
    >>> refined("《沙丘》反响如何？", [{**one, "question_id": "name:沙丘"}])
    '《沙丘》（2021）反响如何？'
    """
    for one in clarifications:
        answer, after = one["answer"], len(query)
        if not answer or (one["kind"] == "scope" and fold(answer) == fold(one["assumed"])):
            continue
        if one["kind"] == "name":
            answer, surface = _telling_apart(one), re.escape(one["question_id"].partition(":")[2])
            stands = re.search(rf"{surface}[》〉」』”\"'`]*", query)
            after = stands.end() if stands else 0
        elif one["kind"] == "model":
            answer = f"{one['question']} {answer}"
        if after and answer not in query:
            aside = f"（{answer}）" if language_of(query) == "zh" else f" ({answer})"
            query = query[:after] + aside + query[after:]
    return query


def stated(clarifications: Iterable[Clarification], language: str) -> list[str]:
    """What was answered or is assumed, a sentence each, for a plan and a report to state.

    >>> one = Clarification(question_id="name:沙丘", kind="name", question="", must=True, options=[],
    ...                     assumed="沙丘（2021）", answer="")
    >>> stated([one], "zh"), stated([{**one, "answer": "沙丘（1984）"}], "en")
    (['假定：“沙丘”指沙丘（2021）。'], ['“沙丘” means 沙丘（1984）.'])
    """
    zh, lines = language == "zh", []
    for one in clarifications:
        if what := one["answer"] or one["assumed"]:
            name = one["question_id"].partition(":")[2]
            line = {
                "name": f"“{name}”指{what}" if zh else f"“{name}” means {what}",
                "scope": f"内容范围是{what}" if zh else f"The subject is {what}",
            }.get(one["kind"], f"{one['question']}{'' if zh else ' '}{what}")
            assumed = "" if one["answer"] else "假定：" if zh else "It is assumed: "
            lines.append(f"{assumed}{line.rstrip('.。')}{'。' if zh else '.'}")
    return lines


# --- whom a name means ---


def _names(query: str, reading: Question, bases: Sequence[KnowledgeBase]) -> Iterator[Clarification]:
    """A question for each name that several in a base bear, unless the reading has settled it."""
    zh, surfaces = reading["language"] == "zh", set[str]()
    for base in bases:
        for mention in base.link(query):
            surface, others = mention["surface"], mention.get("others", [])
            read = any(n["start"] <= mention["start"] and mention["end"] <= n["end"] for n in reading["names"])
            if not others or not read or surface in surfaces:
                continue
            entities = map(base.entity, [mention["entity_id"], *others][:MOST_OPTIONS])
            bearers = [entity for entity in entities if entity]
            written_of = [entity for entity in bearers if entity["doc_id"]]
            bearers = written_of or bearers  # what no document is about is rarely meant beside what one is
            options = list(dict.fromkeys(_described(bearers, base, zh))) if len(bearers) > 1 else []
            if len(options) < 2:
                continue
            surfaces.add(surface)
            yield Clarification(
                question_id=f"name:{surface}",
                kind="name",
                question=f"“{surface}”指的是哪一个？" if zh else f"Which “{surface}” is meant?",
                options=options,
                assumed=options[0],
                must=bool(written_of),
                answer="",
            )


def _described(bearers: Sequence[Entity], base: KnowledgeBase, zh: bool) -> Iterator[str]:
    """Each bearer by its name and what tells it from the others: fields, else how its text begins."""
    passages = [next(iter(base.passages_of([b["doc_id"]])), None) if b["doc_id"] else None for b in bearers]
    order = ("date", "name", "category", "number")  # when and whose come first to a person's mind
    telling = sorted((f for f in base.schema() if f["type"] in order), key=lambda field: order.index(field["type"]))
    columns = [[_value(p["fields"].get(field["name"])) if p else "" for p in passages] for field in telling]
    kept = [column for column in columns if len(set(column)) > 1][:_ENOUGH]
    if len({*zip(*kept, strict=True)}) < len(bearers):
        kept.append([_begun(p["text"], b["name"]) if p else "" for p, b in zip(passages, bearers, strict=True)])
    for bearer, row in zip(bearers, zip(*kept, strict=True), strict=True):
        details = ("，" if zh else ", ").join(filter(None, row)) or bearer["entity_id"]
        yield f"{bearer['name']}（{details}）" if zh else f"{bearer['name']} ({details})"


def _value(value: Any) -> str:
    said = ", ".join(map(str, value[:2])) if isinstance(value, list) else "" if value is None else str(value)
    return said if len(said) <= _LONGEST else ""


def _begun(text: str, name: str) -> str:
    """The beginning of a text, without the name."""
    first = next(iter(sentences(text)), "").strip().rstrip(".。").removeprefix(name).lstrip(" ,，")
    return first if len(first) <= _LONGEST else f"{first[: _LONGEST - 1].rstrip()}…"


def _telling_apart(one: Clarification) -> str:
    """The first thing in an answer that no other option has: a whole description would ask for more things."""
    detail = match[1] if (match := _DETAIL.search(one["answer"])) else one["answer"]
    others = [option for option in one["options"] if option != one["answer"]]
    own = (part.strip() for part in re.split("[,，]", detail))
    return next((part for part in own if part and not any(part in other for other in others)), detail)


# --- which subject ---


def _scope(reading: Question, bases: Sequence[KnowledgeBase], domain: str) -> Iterator[Clarification]:
    """The subject, where the question says nothing that the knowledge bases know."""
    found = any(base.keyword_search(word, 1) for base in bases for word in reading["words"])
    if reading["names"] or reading["conditions"] or found:
        return
    zh = reading["language"] == "zh"
    number, names = sum(base.counts()["documents"] for base in bases), ", ".join(base.name for base in bases)
    everything = f"{names} 的全部内容（{number} 篇）" if zh else f"everything in {names} ({number:,} documents)"
    assumed = everything if domain.strip() in _GENERAL else domain.strip()
    yield Clarification(
        question_id="scope",
        kind="scope",
        question="要写哪方面的内容？" if zh else "What should it be about?",
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
