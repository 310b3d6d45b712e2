"""Answers that are made of works: lists, recommendations, and what a person did."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.generate.evidence import Evidence, holds
from workbench.generate.facts import brief
from workbench.generate.question import Question, Subject
from workbench.generate.quotes import ENOUGH, best, coverage, stems, weights
from workbench.generate.silence import nothing_named, silent
from workbench.generate.sources import Document
from workbench.generate.voice import Voice
from workbench.knowledge.vocabulary import canonical
from workbench.state import Filters
from workbench.text import language_of

MOST_LISTED = 30
MOST_RECOMMENDED = 5
LIKELY = 0.5
"""The score from which a piece of evidence in another language than the question is taken to be on its theme."""


def listing(question: Question, evidence: Evidence, voice: Voice) -> str:
    """Every document of the evidence that holds what was asked, earliest first."""
    items, themes, note = fitting(question, evidence)
    if not items:
        return nothing(question, evidence, voice)
    items.sort(key=lambda d: (d.year, d.title, d.doc_id))
    if question.extreme and (items[0].year or items[-1].year):
        chosen = items[0] if question.extreme == "first" else items[-1]
        return extreme(question.extreme, chosen, voice)
    total = max(len(items), evidence.totals.get("", 0) if not themes else 0)
    shown = items[: question.wanted or MOST_LISTED]
    lines = [heading(question, items[0], total, len(shown), voice, themes)]
    without = ["directors"] if question.filters.get("director") else []
    lines += [f"- {brief(document, voice, without)} [{document.n}]" for document in shown]
    if note:
        lines.append(
            voice.pick(
                f"The evidence does not say which of them are about {note}.", f"资料没有说明其中哪些与{note}有关。"
            )
        )
    return "\n".join(lines)


def fitting(question: Question, evidence: Evidence) -> tuple[list[Document], list[str], str]:
    """The documents that a list is made of; the themes that narrowed them; the themes that could not be told."""
    persons = [s.name for s in question.subjects if s.is_person]
    lost = [s for s in question.subjects if not evidence.knows(s)]
    documents = [d for d in evidence.documents if holds(d, question.filters)]
    for person in persons:
        documents = [d for d in documents if any(d.has(field, person) for field in d.fields)]
    themes = [t for t in question.themes if not is_filter(t, question.filters)]
    constrained = bool(persons or question.filters)
    if lost and not themes:
        return [], themes, ""
    if not themes or not documents:
        return (documents if constrained else []), [], ""
    wanted = weights(themes, evidence.weight)
    telling = [d for d in documents if coverage(wanted, held(d)) >= ENOUGH]
    if telling:
        return telling, themes, ""
    if constrained:
        return documents, [], voice_free_list(themes)
    if any(language_of(t) != language_of(s.text) for t in themes for s in evidence.sentences[:1]):
        return [d for d in documents if d.score >= LIKELY][:10], themes, ""
    return [], themes, ""


def held(document: Document) -> frozenset[str]:
    """The stems of everything that the evidence has of a document."""
    values = " ".join(v for name in document.fields for v in document.values(name))
    return stems(" ".join([document.title, values, *(s.text for s in document.sentences)]))


def is_filter(theme: str, filters: Filters) -> bool:
    """Whether a theme's word only names a filter again."""
    return any(canonical(kind, theme) == filters.get(kind) is not None for kind in ("genre", "country"))  # type: ignore[arg-type]


def voice_free_list(themes: Sequence[str]) -> str:
    """Themes side by side, in any language."""
    return "、".join(themes) if any(language_of(t) == "zh" for t in themes) else ", ".join(themes)


def heading(question: Question, example: Document, total: int, shown: int, voice: Voice, themes: Sequence[str]) -> str:
    """How many there are, of what, and whether the list is cut."""
    what = conditions(question, voice, themes)
    if example.is_film:
        one, many, measure = "film", "films", "部影片"
    else:
        one, many, measure = "document", "documents", "份资料"
    english = f"The corpus has {total} {one if total == 1 else many} {what}".rstrip()
    chinese = f"资料库中{f'{what}的' if what else ''}有 {total} {measure}"
    if shown < total:
        return voice.pick(f"{english}; here are {shown} of them:", f"{chinese}，这里列出 {shown} 部：")
    return voice.pick(f"{english}:", f"{chinese}：")


def conditions(question: Question, voice: Voice, themes: Sequence[str] = ()) -> str:
    """The filters in words."""
    filters, parts = question.filters, []
    first, last = filters.get("year_from"), filters.get("year_to")
    if "genre" in filters:
        parts.append(voice.pick(f"of the genre {filters['genre']}", f"类型为{voice.value('genres', filters['genre'])}"))
    if "country" in filters:
        parts.append(voice.pick(f"from {filters['country']}", f"产自{voice.value('countries', filters['country'])}"))
    if "director" in filters:
        parts.append(voice.pick(f"directed by {filters['director']}", f"由{voice.called(filters['director'])}执导"))
    if "cast" in filters:
        parts.append(voice.pick(f"with {filters['cast']}", f"由{voice.called(filters['cast'])}出演"))
    named = {filters.get("director"), filters.get("cast")}
    for person in [s.name for s in question.subjects if s.is_person and s.name not in named]:
        parts.append(voice.pick(f"with {person}", f"与{voice.called(person)}有关"))
    if first and last:
        span = str(first) if first == last else f"{first}–{last}"
        parts.append(voice.pick(f"from {span}", f"{span} 年"))
    elif first or last:
        parts.append(
            voice.pick(
                f"from {first} on" if first else f"up to {last}", f"{first} 年起" if first else f"{last} 年及以前"
            )
        )
    if themes:
        parts.append(voice.pick(f"about {', '.join(themes)}", f"与{'、'.join(themes)}有关"))
    said = voice.pick(", ", "、").join(parts)
    return voice.said(said)


def extreme(which: str, document: Document, voice: Voice) -> str:
    """The earliest or latest of several."""
    early = which == "first"
    return voice.said(
        voice.pick(
            f"The {'earliest' if early else 'latest'} in the corpus is {brief(document, voice)}.",
            f"资料库中最{'早' if early else '新'}的一部是{brief(document, voice)}。",
        ),
        document.n,
    )


def nothing(question: Question, evidence: Evidence, voice: Voice) -> str:
    """No document holds what was asked."""
    lost = [s.name for s in question.subjects if not evidence.knows(s)]
    if lost:
        return nothing_named(voice, lost, len(evidence.results))
    what = conditions(question, voice, question.themes if not question.filters else ())
    note = (
        voice.pick(f"The corpus does not say: nothing in it is {what}.", f"资料库没有提到{what}的内容。")
        if what
        else ""
    )
    return silent(voice, [s.name for s in question.subjects] + list(question.themes), len(evidence.results), note)


def recommendation(question: Question, evidence: Evidence, voice: Voice, told: str = "") -> str:
    """Distinct works that fit, why each fits, none of them the one that was named.

    Args:
        question: what was asked.
        evidence: what was found.
        voice: the language.
        told: what was said before in the conversation; "more" and "others" leave that out.
    """
    seeds = [d for s in question.subjects if not s.is_person and (d := evidence.about(s))]
    lost = [s.name for s in question.subjects if not evidence.knows(s) and not (s.known and question.filters)]
    if lost and not seeds:
        return nothing_named(voice, lost, len(evidence.results))
    ranked = candidates(question, evidence, seeds)
    if re.search(r"\b(?:more|others?|another|else)\b|再|还有|其他|别的|另外", question.masked):
        ranked = [d for d in ranked if voice.title(d) not in told and d.title not in told]
    chosen = ranked[: question.wanted or MOST_RECOMMENDED]
    if not chosen:
        return nothing(question, evidence, voice)
    lines = [opening(question, seeds, voice)]
    for number, document in enumerate(chosen, 1):
        because = why(question, document, seeds, evidence, voice)
        dash = voice.pick(": ", "：") if because else ""
        lines.append(f"{number}. {brief(document, voice)}{dash}{because} [{document.n}]")
    return "\n".join(lines)


def candidates(question: Question, evidence: Evidence, seeds: Sequence[Document]) -> list[Document]:
    """What can be recommended, best first."""
    persons = [s.name for s in question.subjects if s.is_person]
    themes = [t for t in question.themes if not is_filter(t, question.filters)]
    wanted = weights(themes, evidence.weight)
    shut = {d.doc_id for d in seeds}
    scored = []
    for document in evidence.documents:
        if document.doc_id in shut or not holds(document, question.filters):
            continue
        near = sum(likeness(seed, document) for seed in seeds)
        near += sum(2 for person in persons if any(document.has(field, person) for field in document.fields))
        on_theme = coverage(wanted, held(document)) if wanted else 0.0
        if near or on_theme >= ENOUGH or (question.filters and not wanted) or (not seeds and document.score >= LIKELY):
            scored.append((near + 2 * on_theme + document.score, document))
    return [d for _, d in sorted(scored, key=lambda pair: (-round(pair[0], 6), pair[1].doc_id))]


def likeness(one: Document, other: Document) -> float:
    """How much two documents have in common by their typed fields: director 2, a shared actor .5, genres up to 2."""
    return (
        2.0 * bool(common(one, other, "directors"))
        + 0.5 * len(common(one, other, "cast"))
        + 2.0 * len(common(one, other, "genres")) / max(1, len({*one.values("genres"), *other.values("genres")}))
    )


def common(one: Document, other: Document, field: str) -> list[str]:
    """The values that two documents share."""
    return [value for value in one.values(field) if other.has(field, value)]


def opening(question: Question, seeds: Sequence[Document], voice: Voice) -> str:
    """What the recommendations go by."""
    if seeds:
        likes = voice.listed([f"{brief(d, voice)} [{d.n}]" for d in seeds])
        return voice.pick(
            f"Similar to {likes}:", f"与{likes}相近的影片：" if seeds[0].is_film else f"与{likes}相近的："
        )
    what = conditions(question, voice)
    return voice.pick(
        f"Recommended from the corpus{f', {what}' if what else ''}:",
        f"资料库中可以推荐{f'（{what}）' if what else ''}：",
    )


def why(question: Question, document: Document, seeds: Sequence[Document], evidence: Evidence, voice: Voice) -> str:
    """What speaks for a recommendation, in a phrase."""
    parts = []
    for seed in seeds[:1]:
        if directors := common(seed, document, "directors"):
            named = voice.listed([voice.value("directors", name) for name in directors])
            parts.append(voice.pick(f"also by {named}", f"同为{named}的作品"))
        if cast := common(seed, document, "cast"):
            named = voice.listed([voice.value("cast", name) for name in cast[:3]])
            parts.append(voice.pick(f"also with {named}", f"同样有{named}出演"))
        if genres := common(seed, document, "genres"):
            named = voice.listed([voice.value("genres", name) for name in genres])
            parts.append(voice.pick(f"also {named}", f"同属{named}"))
    if not seeds and (genres := voice.values(document, "genres")):
        parts.append(genres)
    themes = [t for t in question.themes if not is_filter(t, question.filters)]
    if themes and not parts[1:]:
        found, _ = best(document.sentences, weights(themes, evidence.weight), 1)
        parts += [f"“{shortened(found[0].text)}”"] if found else []
    return voice.said(voice.pick("; ", "；").join(parts))


def shortened(text: str, most: int = 200) -> str:
    """A sentence for a line of a list: whole, or cut at a word with three dots.

    >>> shortened("one two three", 9)
    'one two …'
    """
    return (
        text
        if len(text) <= most
        else text[: text.rfind(" ", 0, most - 1) if " " in text[:most] else most - 1].rstrip() + " …"
    )


def portrait(subject: Subject, question: Question, evidence: Evidence, voice: Voice) -> str:
    """Who somebody is and what they did, by the typed fields and then by the texts."""
    works = evidence.works(subject.name)
    called = voice.called(subject.name) if voice.language == "zh" else subject.name
    parts = [calling(subject.name, evidence, voice)]
    for field, documents in works.items():
        parts.append(credits(called, field, documents, evidence.totals.get(f"{subject.name}/{field}", 0), voice))
    if not works:
        quotes = evidence.naming(subject.name) or evidence.naming(subject.surface)
        parts += [voice.quoted(sentence, named=True) for sentence in quotes[:2]]
    return voice.joined(parts)


_CALLINGS = (
    r"((?:[A-Z][\w-]+(?: |-))?(?:[A-Z][\w-]+ )?(?:filmmaker|film director|director|actor|actress|comedian|screenwriter|writer|author|"
    r"novelist|musician|singer|producer|playwright|physicist|mathematician|politician|journalist)s?) {name}"
)


def calling(name: str, evidence: Evidence, voice: Voice) -> str:
    """What the texts call a person ("Taiwanese filmmaker"); "" when they do not."""
    for sentence in evidence.naming(name):
        match = re.search(_CALLINGS.replace("{name}", re.escape(name)), sentence.text)
        if match and match.group(1)[0].isupper():
            article = "an" if match.group(1)[0] in "AEIOU" else "a"
            called = voice.called(name)
            whole = called if called == name else f"{called}（{name}）"
            return voice.said(
                voice.pick(f"{name} is {article} {match.group(1)}.", f"{whole}，资料原文称为“{match.group(1)}”。"),
                sentence.n,
            )
    return ""


def credits(called: str, field: str, documents: Sequence[Document], total: int, voice: Voice) -> str:
    """What a person did in one role, as a sentence with a mark for each work."""
    verbs = {"directors": ("directed", "执导"), "cast": ("appears in", "出演")}
    verb, zh = verbs.get(field, (f"is named under {field.replace('_', ' ')} in", f"（{field}）涉及"))
    shown = documents[:MOST_LISTED]
    named = voice.listed(
        [f"{voice.title(d)}{voice.pick(f' ({d.year})', f'（{d.year}）') if d.year else ''} [{d.n}]" for d in shown]
    )
    count = max(total, len(documents))
    films = all(d.is_film for d in documents)
    english = f"{count} {'film' if films else 'document'}{'' if count == 1 else 's'}"
    cut = voice.pick(
        f", among them {named}" if len(shown) < count else f": {named}", "，其中有" if len(shown) < count else "："
    )
    return voice.pick(
        f"{called} {verb} {english} in the corpus{cut}.",
        voice.said(f"资料库中{called}{zh}的{'影片' if films else '资料'}有 {count} {'部' if films else '份'}{cut}")
        + f"{named}。",
    )
