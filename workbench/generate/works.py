"""Answers that list works: those that hold what was asked, and those of a person."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.generate.evidence import Evidence, holds
from workbench.generate.facts import brief
from workbench.generate.question import Question, Subject
from workbench.generate.quotes import ENOUGH
from workbench.generate.silence import nothing_named, silent
from workbench.generate.sources import Document
from workbench.generate.themes import coverage
from workbench.generate.voice import Voice
from workbench.generate.wording import wording
from workbench.knowledge.vocabulary import KINDS, find
from workbench.text import CJK

MOST_LISTED = 50


def listing(question: Question, evidence: Evidence, voice: Voice) -> str:
    """Every document of the evidence that holds what was asked, earliest first."""
    items, themes, untold = fitting(question, evidence)
    if not items:
        return nothing(question, evidence, voice)
    items.sort(key=lambda d: (d.year, d.title, d.doc_id))
    total = max(len(items), evidence.totals.get("", 0) if not themes else 0)
    for which in ("first", "last"):
        if question.wants(which) and items[-1].year and total == len(items):
            return extreme(which, items[0] if which == "first" else items[-1], conditions(question, voice), voice)
    shown = items[: question.wanted or MOST_LISTED]
    without = ["directors"] if "director" in question.filters else []
    lines = [heading(question, items[0], total, len(shown), voice, themes)]
    lines += [f"- {brief(document, voice, without)} [{document.n}]" for document in shown]
    if untold:
        lines.append(
            voice.pick(f"Which of them are about {untold} is not told.", f"其中哪些与{untold}有关，资料未写明。")
        )
    return "\n".join(lines)


def series(question: Question, evidence: Evidence, voice: Voice) -> str:
    """The works that go by a title: "the Batman films" are more than the film Batman; "" when none is asked for."""
    titles = [s.name for s in question.subjects if not s.is_person]
    if not (titles and question.wants("series")):
        return ""
    named = "|".join(re.escape(title) for title in titles)
    own = re.compile(rf"(?<!\w)(?:{named})(?!\w)", re.IGNORECASE)
    told = re.compile(
        rf"\b(?:character|superhero),? (?:{named})\b|\b(?:{named}) (?:film )?(?:series|franchise|trilogy|saga)\b"
    )
    items = [
        d
        for d in evidence.documents
        if holds(d, question.filters) and (own.search(d.title) or any(told.search(s.text) for s in d.sentences))
    ]
    if len(items) < 2:
        return ""
    items.sort(key=lambda d: (d.year, d.title, d.doc_id))
    lines = [heading(question, items[0], len(items), len(items), voice, titles)]
    return "\n".join(lines + [f"- {brief(document, voice)} [{document.n}]" for document in items])


def fitting(question: Question, evidence: Evidence) -> tuple[list[Document], list[str], str]:
    """The documents that a list is made of; the themes that narrowed them; the themes that no document tells."""
    persons = [s.name for s in question.subjects if s.is_person]
    lost = [s for s in question.subjects if not evidence.knows(s)]
    documents = [d for d in evidence.documents if holds(d, question.filters)]
    for person in persons:
        documents = [d for d in documents if any(d.has(field, person) for field in d.fields)]
    themes = topics(question)
    if lost or not documents:
        return [], themes, ""
    if not themes:
        return (documents if persons or question.filters or not question.wants("ranking") else []), [], ""
    wanted = evidence.wants(themes)
    telling = [d for d in documents if coverage(wanted, d.stems) >= ENOUGH]
    if telling or not (persons or question.filters):
        return telling, themes, ""
    named = any(
        CJK.search(theme) and len(theme) > 2 for theme in themes
    )  # 斯皮尔伯格, whom the corpus knows by another name
    if named and not (persons or {"director", "cast"} & set(question.filters)):
        return [], themes, ""
    return documents, [], ("、" if CJK.search(themes[0]) else ", ").join(themes)


def topics(question: Question) -> list[str]:
    """The themes of a question, without the words that only name a filter again."""
    asked = {question.filters.get("genre"), question.filters.get("country")}
    left = question.masked
    for start, end in [(s, e) for kind in KINDS for s, e, name in find(kind, left) if name in asked]:
        left = left[:start] + "_" * (end - start) + left[end:]
    return [theme for theme in question.about() if theme.lower() in left]


def heading(question: Question, example: Document, total: int, shown: int, voice: Voice, themes: Sequence[str]) -> str:
    """How many there are, of what, and whether the list is cut."""
    what = conditions(question, voice, themes)
    if example.is_film:
        noun, measure = "film" if total == 1 else "films", "部"
    else:
        noun, measure = "document" if total == 1 else "documents", "份"
    kind = "影片" if example.is_film else "资料"
    english = f"The corpus has {total} {noun} {what}".rstrip()
    chinese = f"资料库中{f'{what}的' if what else ''}有 {total} {measure}{kind}"
    if shown < total:
        return voice.pick(f"{english}; here are {shown} of them:", f"{chinese}，这里列出 {shown} {measure}：")
    return voice.pick(f"{english}:", f"{chinese}：")


def conditions(question: Question, voice: Voice, themes: Sequence[str] = ()) -> str:
    """What was asked for, in words: "directed by Christopher Nolan, from 2006 on"."""
    filters, parts = question.filters, []
    if genre := filters.get("genre"):
        parts.append(voice.pick(f"listed under {genre}", f"类型为{voice.value('genres', genre)}"))
    if country := filters.get("country"):
        parts.append(voice.pick(f"from {country}", f"产自{voice.value('countries', country)}"))
    if director := filters.get("director"):
        parts.append(voice.pick(f"directed by {director}", f"由{voice.name(director)}执导"))
    if cast := filters.get("cast"):
        parts.append(voice.pick(f"with {cast}", f"由{voice.name(cast)}出演"))
    for person in [s.name for s in question.subjects if s.is_person and s.name not in (director, cast)]:
        parts.append(voice.pick(f"with {person}", f"与{voice.name(person)}有关"))
    parts += [span(filters.get("year_from"), filters.get("year_to"), voice)]
    if themes:
        together = " ".join(themes)
        words = together if together.lower() in question.text.lower() else ", ".join(themes)
        parts.append(voice.pick(f"about {words}", f"与{'、'.join(themes)}有关"))
    return voice.spaced(voice.pick(", ", "、").join(part for part in parts if part))


def span(first: int | None, last: int | None, voice: Voice) -> str:
    """A range of years in words; "" for none.

    >>> span(1990, 1999, Voice("en")), span(2006, None, Voice("zh")), span(None, 1980, Voice("en"))
    ('from 1990–1999', '2006年及以后', 'from 1980 or earlier')
    """
    if first and last:
        years = str(first) if first == last else f"{first}–{last}"
        return voice.pick(f"from {years}", f"{years}年")
    if first:
        return voice.pick(f"from {first} or later", f"{first}年及以后")
    return voice.pick(f"from {last} or earlier", f"{last}年及以前") if last else ""


def extreme(which: str, document: Document, what: str, voice: Voice) -> str:
    """The earliest or latest of those that are ``what``."""
    kind = f"{'film' if document.is_film else 'document'} {what}".rstrip()
    english = f"The {'earliest' if which == 'first' else 'latest'} {kind} in the corpus is {brief(document, voice)}."
    chinese = (
        f"资料库中{f'{what}的' if what else ''}最{'早' if which == 'first' else '新'}一部是{brief(document, voice)}。"
    )
    return voice.said(voice.pick(english, chinese), document.n)


def nothing(question: Question, evidence: Evidence, voice: Voice) -> str:
    """No document holds what was asked."""
    read = len(evidence.results)
    lost = [s.surface for s in question.subjects if not evidence.knows(s)]
    if lost:
        return nothing_named(voice, lost, read)
    themes = topics(question)
    what = conditions(question, voice, themes)
    if not what:
        return silent(voice, [s.surface for s in question.subjects], read)
    kind = voice.pick("film" if any(d.is_film for d in evidence.documents) else "document", "")
    note = voice.pick(f"The corpus does not say: it has no {kind} {what}.", f"资料库没有提到{what}的内容。")
    return silent(voice, [], read, note)


def portrait(subject: Subject, evidence: Evidence, voice: Voice) -> str:
    """Who somebody is and what they did, by the typed fields and then by the texts."""
    works = evidence.works(subject.name)
    parts = [calling(subject.name, evidence, voice)]
    for field, documents in works.items():
        total = evidence.totals.get(f"{subject.name}/{field}", 0)
        parts.append(credited(voice.name(subject.name), field, documents, total, voice))
    if not works:
        quotes = evidence.naming(subject.name) or evidence.naming(subject.surface)
        parts.append(voice.quoted(quotes[:2], named=True))
    return voice.joined(parts)


def calling(name: str, evidence: Evidence, voice: Voice) -> str:
    """What the texts call a person ("Taiwanese filmmaker"); "" when they do not."""
    trades = wording("sentence", "calling").pattern
    for sentence in evidence.naming(name):
        match = re.search(rf"\b((?:[A-Z][\w-]+ ){{0,2}}(?:{trades})) {re.escape(name)}\b", sentence.text)
        if match and match.group(1)[0].isupper() and " " in match.group(1):
            article = "an" if match.group(1)[0] in "AEIOU" else "a"
            whole = name if voice.name(name) == name else f"{voice.name(name)}（{name}）"
            english, chinese = f"{name} is {article} {match.group(1)}.", f"{whole}，资料原文称为“{match.group(1)}”。"
            return voice.said(voice.pick(english, chinese), sentence.n)
    return ""


def credited(called: str, field: str, documents: Sequence[Document], total: int, voice: Voice) -> str:
    """What a person did in one role, as a sentence with a mark for each work."""
    verbs = {"directors": ("directed", "执导"), "cast": ("appears in", "出演")}
    verb, chinese_verb = verbs.get(field, (f"is named as {field.replace('_', ' ')} in", f"（{field}）署名"))
    shown, count = documents[:MOST_LISTED], max(total, len(documents))
    years = [voice.pick(f" ({d.year})", f"（{d.year}）") if d.year else "" for d in shown]
    named = voice.listed([f"{voice.title(d)}{year} [{d.n}]" for d, year in zip(shown, years, strict=True)])
    films, cut = all(d.is_film for d in documents), len(shown) < count
    noun = ("film" if films else "document") + ("" if count == 1 else "s")
    english = f"{called} {verb} {count} {noun} in the corpus{', among them' if cut else ':'} {named}."
    kind, measure = ("影片", "部") if films else ("资料", "份")
    chinese = f"资料库中{called}{chinese_verb}的{kind}有 {count} {measure}{'，其中有' if cut else '：'}{named}。"
    return voice.spaced(voice.pick(english, chinese))
