"""Comparisons: the facts of each side next to each other, what the sides share, and a sentence of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from workbench.generate.evidence import Evidence
from workbench.generate.facts import answers, brief
from workbench.generate.question import Question, Subject
from workbench.generate.quotes import best, plot, saying
from workbench.generate.silence import lacking, not_said, nothing_named
from workbench.generate.sources import Document, Sentence
from workbench.generate.themes import coverage, stems
from workbench.generate.voice import Voice
from workbench.generate.works import credited


def comparison(question: Question, evidence: Evidence, voice: Voice) -> str:
    """Two or more documents or people side by side; "" when the question names fewer that the evidence has."""
    people = [s for s in question.subjects if s.is_person and evidence.works(s.name)]
    found = [(s, d) for s in question.subjects if not s.is_person and (d := evidence.about(s))]
    documents = list({d.doc_id: d for _, d in found}.values())
    lost = [s.surface for s in question.subjects if s not in people and s not in [subject for subject, _ in found]]
    missing = nothing_named(voice, lost, len(evidence.results)) if lost else ""
    if len(documents) >= 2 or (documents and lost):
        return "\n".join(part for part in [of_documents(documents, question, evidence, voice), missing] if part)
    if len(people) >= 2 or (people and lost):
        return "\n".join(part for part in [of_people(people, question, evidence, voice), missing] if part)
    return missing


def of_documents(documents: Sequence[Document], question: Question, evidence: Evidence, voice: Voice) -> str:
    """Films, or any documents with typed fields; documents without any speak through their sentences alone."""
    if facets := [f for f in question.facets(evidence.fields) if f.name in ("cast", "director", "genre", "country")]:
        facts = [answers(document, facet, voice) for facet in facets for document in documents]
        return voice.joined([*facts, *shared(documents, voice, [name for f in facets for name in f.fields])])
    whose = [voice.title(document) for document in documents]
    if said := untold(question, evidence, whose, [s for d in documents for s in d.sentences], documents, voice):
        return said
    if question.wants("order") and (ordered := order(documents, voice)):
        return voice.joined(ordered)
    lines = [voice.joined(side(document, voice) for document in documents)]
    if len(documents) > 1:
        lines.append(voice.joined([*shared(documents, voice), *order(documents, voice)]))
    wanted = evidence.wants(question.about())
    for document in documents:
        chosen, _ = best(document.sentences, wanted, 1)
        if not chosen or coverage(wanted, stems(chosen[0].text)) < 0.5:
            chosen = plot(document.sentences, 1) or list(document.sentences[: 0 if side(document, voice) else 1])
        lines.append(voice.quoted(chosen, named=True))
    return "\n".join(line for line in lines if line)


def untold(
    question: Question,
    evidence: Evidence,
    whose: Sequence[str],
    sentences: Sequence[Sentence],
    documents: Sequence[Document],
    voice: Voice,
) -> str:
    """That nothing is said of what the sides are compared by (running times, ages, prizes); "" when something is."""
    asked = [f for f in question.facets(evidence.fields) if not f.typed and f.name not in ("cast", "country", "reason")]
    if not asked or any(answers(d, f, voice) for d in documents for f in asked):
        return ""
    if any(saying(facet, sentences, []) for facet in asked):
        return ""
    return not_said(voice, [lacking(voice, f.names, voice.listed(list(whose))) for f in asked], len(sentences))


def side(document: Document, voice: Voice) -> str:
    """A document's facts in a sentence; "" when it has none."""
    genres = voice.values(document, "genres")
    if not (genres or document.year or document.values("directors")):
        return ""
    listed = voice.pick(f" is listed under {genres}." if genres else ".", f"，类型是{genres}。" if genres else "。")
    return voice.said(brief(document, voice) + listed, document.n)


def shared(documents: Sequence[Document], voice: Voice, fields: Sequence[str] = ()) -> list[str]:
    """What all sides have in common (in some fields, or all) and, for genres, what only one has."""
    if len(documents) < 2:
        return []
    said, marks = [], sorted(document.n for document in documents)
    everyone = voice.pick("Both", "两者") if len(documents) == 2 else voice.pick("All", "它们")
    wording = {
        "directors": ("{all} were directed by {value}.", "{all}都由{value}执导。"),
        "cast": ("{all} feature {value}.", "{all}都有{value}出演。"),
        "genres": ("{all} are listed under {value}.", "{all}都属于{value}。"),
        "countries": ("{all} are from {value}.", "{all}的制片国家/地区都是{value}。"),
    }
    for field, (english, chinese) in wording.items():
        if fields and field not in fields:
            continue
        values = [v for v in documents[0].values(field) if all(d.has(field, v) for d in documents[1:])]
        if values:
            named = voice.listed([voice.value(field, value) for value in values])
            said.append(voice.said(voice.pick(english, chinese).format(all=everyone, value=named), *marks))
        elif field in ("directors", "genres") and len(documents) == 2 and all(d.values(field) for d in documents):
            differ = ("They have different directors.", "导演不同。"), ("They share no genre.", "类型没有重合。")
            said.append(voice.said(voice.pick(*differ[field == "genres"]), *marks))
    return said if fields else [*said, *only(documents, voice)]


def only(documents: Sequence[Document], voice: Voice) -> list[str]:
    """The genres that one side alone has, where there are others that it shares."""
    said = []
    for document in documents:
        others = [other for other in documents if other is not document]
        own = [g for g in document.values("genres") if not any(other.has("genres", g) for other in others)]
        if own and all(document.shared(other, "genres") for other in others):
            named, title = voice.listed([voice.value("genres", genre) for genre in own]), voice.title(document)
            english, chinese = f"Only {title} is also listed under {named}.", f"只有{title}还属于{named}。"
            said.append(voice.said(voice.pick(english, chinese), document.n))
    return said


def order(documents: Sequence[Document], voice: Voice) -> list[str]:
    """Which came first."""
    dated = sorted((d for d in documents if d.year), key=lambda d: (d.year, d.doc_id))
    if len(dated) != 2:
        return []
    first, second = dated
    gap, marks = second.year - first.year, sorted((first.n, second.n))
    if not gap:
        return [voice.said(voice.pick(f"Both are of {first.year}.", f"两者都是{first.year}年的作品。"), *marks)]
    years = "1 year" if gap == 1 else f"{gap} years"
    english = f"{first.title} ({first.year}) came {years} before {second.title} ({second.year})."
    chinese = f"{voice.title(first)}（{first.year}年）比{voice.title(second)}（{second.year}年）早{gap}年。"
    return [voice.said(voice.pick(english, chinese), *marks)]


def of_people(people: Sequence[Subject], question: Question, evidence: Evidence, voice: Voice) -> str:
    """Each one's works in their main role, and the genre that comes up most; first who has more, when that is asked."""
    named = [s for person in people for s in evidence.naming(person.name)]
    if said := untold(question, evidence, [voice.name(p.name) for p in people], named, [], voice):
        return said
    lines = [more_works(people, evidence, voice)] if question.wants("more_works") and len(people) == 2 else []
    for person in people:
        field, documents = next(iter(evidence.works(person.name).items()))
        total = evidence.totals.get(f"{person.name}/{field}", 0)
        lines.append(credited(voice.name(person.name), field, documents, total, voice))
        counted = Counter(genre for document in documents for genre in document.values("genres"))
        if counted:
            genre, times = min(counted.items(), key=lambda item: (-item[1], item[0]))
            english = f"The genre that comes up most is {genre}, in {times} of {len(documents)}."
            chinese = f"其中最常见的类型是{voice.value('genres', genre)}（{len(documents)} 部中有 {times} 部）。"
            marks = [d.n for d in documents if d.has("genres", genre)]
            lines.append(voice.said(voice.pick(english, chinese), *marks))
    return "\n".join(lines)


def more_works(people: Sequence[Subject], evidence: Evidence, voice: Voice) -> str:
    """Which of two people has more works in the corpus."""
    counted = []
    for person in people:
        field, documents = next(iter(evidence.works(person.name).items()))
        total = max(len(documents), evidence.totals.get(f"{person.name}/{field}", 0))
        counted.append((total, voice.name(person.name), documents[0].n))
    (most, first, n), (least, second, m) = sorted(counted, reverse=True)
    if most == least:
        english, chinese = f"Both have {most} in the corpus.", f"两人在资料库中各有{most}部。"
    else:
        english = f"{first} has more in the corpus: {most}, against {least} of {second}."
        chinese = f"资料库中{first}更多：{most}部，{second}有{least}部。"
    return voice.said(voice.pick(english, chinese), n, m)
