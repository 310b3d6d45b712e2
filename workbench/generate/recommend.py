"""Recommendations: distinct works that fit, and why each does."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.generate.evidence import Evidence, holds
from workbench.generate.facts import brief
from workbench.generate.question import Question
from workbench.generate.quotes import ENOUGH, best
from workbench.generate.silence import nothing_named
from workbench.generate.sources import Document
from workbench.generate.themes import coverage
from workbench.generate.voice import Voice
from workbench.generate.works import conditions, nothing, topics

MOST, OWN = 5, 3
LIKELY = 0.5
"""The score from which evidence fits a wish even where it does not say its words."""


def recommendation(question: Question, evidence: Evidence, voice: Voice, told: str = "") -> str:
    """A short list of what fits, best first, without the works that the question itself names.

    Args:
        question: what was asked.
        evidence: what was found.
        voice: the language.
        told: what was said before in the conversation; "more" and "others" leave that out.
    """
    seeds = [d for s in question.subjects if not s.is_person and (d := evidence.about(s))]
    lost = [s.surface for s in question.subjects if not evidence.knows(s)]
    if lost and not seeds:
        return nothing_named(voice, lost, len(evidence.results))
    themes = told_themes(question, evidence)
    ranked = candidates(question, evidence, seeds, themes)
    if question.wants("others"):
        ranked = [d for d in ranked if voice.title(d) not in told and d.title not in told]
    chosen = varied(ranked, seeds)[: question.wanted or MOST]
    if not chosen:
        return nothing(question, evidence, voice)
    lines = [opening(question, seeds, themes, voice)]
    for number, document in enumerate(chosen, 1):
        because = why(document, seeds, themes, evidence, voice)
        lines.append(
            f"{number}. {brief(document, voice)}{voice.pick(': ', '：') if because else ''}{because} [{document.n}]"
        )
    return "\n".join(lines)


def told_themes(question: Question, evidence: Evidence) -> list[str]:
    """The themes of a wish; none where filters say it too and no document tells of the themes ("for the family")."""
    themes = topics(question)
    wanted = evidence.wants(themes)
    fit = any(holds(d, question.filters) and coverage(wanted, d.stems) >= ENOUGH for d in evidence.documents)
    return themes if fit or not question.filters else []


def candidates(
    question: Question, evidence: Evidence, seeds: Sequence[Document], themes: Sequence[str]
) -> list[Document]:
    """What can be recommended, best first."""
    persons = [s.name for s in question.subjects if s.is_person]
    wanted = evidence.wants(themes)
    shut = {d.doc_id for d in seeds}
    scored = []
    for document in evidence.documents:
        if document.doc_id in shut or not holds(document, question.filters):
            continue
        near = sum(likeness(seed, document) for seed in seeds)
        near += sum(2 for person in persons if any(document.has(field, person) for field in document.fields))
        on_theme = coverage(wanted, document.stems) if wanted else 0.0
        wished = on_theme >= ENOUGH if wanted else not seeds and not persons  # "recommend a film": any that fits
        if near or wished or (not seeds and not persons and not question.filters and document.score >= LIKELY):
            scored.append((near + 2 * on_theme + document.score, document))
    return [d for _, d in sorted(scored, key=lambda pair: (-round(pair[0], 6), pair[1].doc_id))]


def varied(ranked: Sequence[Document], seeds: Sequence[Document]) -> list[Document]:
    """The same, with all but the first few of the named works' own directors put behind the others."""
    own = [d for d in ranked if any(seed.shared(d, "directors") for seed in seeds)]
    return [d for d in ranked if d not in own[OWN:]] + own[OWN:]


def likeness(one: Document, other: Document) -> float:
    """How much two documents have in common by their typed fields: director 2, actors up to 1, genres up to 2.

    >>> a = Document("a", "A", 1, 0.5, {"directors": ["X"], "genres": ["Drama", "War"]})
    >>> b = Document("b", "B", 2, 0.5, {"directors": ["X"], "genres": ["Drama"]})
    >>> likeness(a, b)
    3.0
    """
    genres = len({*one.values("genres"), *other.values("genres")}) or 1
    return (
        2.0 * bool(one.shared(other, "directors"))
        + min(1.0, 0.25 * len(one.shared(other, "cast")))
        + 2.0 * len(one.shared(other, "genres")) / genres
    )


def opening(question: Question, seeds: Sequence[Document], themes: Sequence[str], voice: Voice) -> str:
    """What the recommendations go by."""
    if seeds:
        likes = voice.listed([f"{brief(d, voice)} [{d.n}]" for d in seeds])
        kind = "影片" if seeds[0].is_film else "资料"
        return voice.spaced(voice.pick(f"Similar to {likes}:", f"与{likes}相近的{kind}："))
    what = conditions(question, voice, themes)
    english = f"Recommended from the corpus{f', {what}' if what else ''}:"
    return voice.pick(english, f"资料库中可以推荐{f'（{what}）' if what else ''}：")


def why(document: Document, seeds: Sequence[Document], themes: Sequence[str], evidence: Evidence, voice: Voice) -> str:
    """What speaks for a recommendation, in a phrase."""
    parts = [shared(seed, document, voice) for seed in seeds[:1]]
    if not seeds:
        parts.append(voice.values(document, "genres"))
    wanted = evidence.wants(themes)
    if wanted and not seeds:
        chosen, _ = best(document.sentences, wanted, 1)
        parts += [f"“{shortened(chosen[0].text)}”"] if chosen else []
    return voice.pick("; ", "；").join(part for part in parts if part)


def shared(seed: Document, document: Document, voice: Voice) -> str:
    """What a work has in common with the one that was named."""
    wording = {
        "directors": ("also by {}", "同为{}的作品"),
        "cast": ("also with {}", "同样有{}出演"),
        "genres": ("also listed under {}", "同属{}"),
    }
    parts = []
    for field, (english, chinese) in wording.items():
        if values := seed.shared(document, field)[:3]:
            named = voice.listed([voice.value(field, value) for value in values])
            parts.append(voice.spaced(voice.pick(english, chinese).format(named)))
    return voice.pick("; ", "；").join(parts)


def shortened(text: str, most: int = 160) -> str:
    """A sentence for a line of a list: whole, or cut at a word with three dots.

    >>> shortened("one two three", 9)
    'one two …'
    """
    if len(text) <= most:
        return text
    cut = text.rfind(" ", 0, most - 1)
    return text[: cut if cut > 0 else most - 1].rstrip(" ,;:") + " …"
