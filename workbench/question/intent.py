"""What a question wants: qa, recommend, compare, list or person; and whether it is a question at all.

Cues are patterns over the masked question (names are one sign each), each with a weight: how much it alone speaks for
its intent. The cues of one intent add up as independent evidence, ``1 - product(1 - weight)``. Confidence is that
strength, halved as far as the next intent is as strong. A new phrasing is one more line in ``cues.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from workbench.question.language import OTHER, PERSON, language_file, spelled
from workbench.question.names import Named, is_person, mask
from workbench.state import QueryIntent


class Cue(NamedTuple):
    """One pattern that speaks for an intent with a weight of 0 to 1."""

    intent: QueryIntent
    weight: float
    pattern: re.Pattern[str]


@cache
def cues() -> list[Cue]:
    """The cues of ``cues.txt``, in its order."""
    rows: list[list[str]] = []
    for line in language_file("cues.txt"):
        if line[0].isspace():
            rows[-1][2] += "|" + line.strip()
        else:
            rows.append(line.split(maxsplit=2))
    return [Cue(intent, float(weight), re.compile(spelled(pattern))) for intent, weight, pattern in rows]  # type: ignore[arg-type]


_ORDER: tuple[QueryIntent, ...] = ("compare", "recommend", "person", "list", "qa")
_LEAST = 0.3
_END = 200


def detect_intent(message: str, names: Sequence[Named]) -> tuple[QueryIntent, float, str]:
    """Intent, confidence 0 to 1 and the reason, from the cues in the message and the names that it holds.

    >>> detect_intent("Recommend something to watch", [])[:2]
    ('recommend', 0.99)
    """
    if is_smalltalk(message):
        return "unknown", 1.0, "small talk"
    masked = _ends(mask(message, names))
    strengths, reasons = _strengths(masked, names)
    best = max(_ORDER, key=lambda intent: (strengths[intent], -_ORDER.index(intent)))
    rival = max(strengths[intent] for intent in _ORDER if intent != best)
    confidence = round(strengths[best] * (1 - 0.5 * rival), 2)
    if strengths[best] < _LEAST:
        return "unknown", confidence, "no cue of a known kind of question"
    return best, confidence, f"{best}: " + ", ".join(f"“{reason}”" for reason in reasons[best])


def _strengths(masked: str, names: Sequence[Named]) -> tuple[dict[QueryIntent, float], dict[QueryIntent, list[str]]]:
    doubts = dict.fromkeys(_ORDER, 1.0)
    reasons: dict[QueryIntent, list[str]] = {intent: [] for intent in _ORDER}
    persons = sum(is_person(named) for named in names)
    signs = {PERSON: "a person", OTHER: "a name"}
    for cue in cues():
        match = cue.pattern.search(masked)
        if match:
            doubts[cue.intent] *= 1 - cue.weight
            reasons[cue.intent].append(re.sub(f"[{PERSON}{OTHER}]", lambda m: signs[m.group()], match.group()).strip())
    if names and not persons:
        doubts["qa"] *= 0.8  # a title is asked about
        reasons["qa"].append("a name")
    strengths = {intent: 1 - doubt for intent, doubt in doubts.items()}
    if strengths["compare"] and len(names) < 2 and not re.search(r"\bcompar|对比|比较一?下", masked):
        strengths["compare"] *= 0.5  # there are not two sides
    if max(strengths["compare"], strengths["recommend"], strengths["person"], strengths["list"]) >= 0.6:
        strengths["qa"] *= 0.5  # "what", "which" and "who" begin every kind of question
    if max(strengths["compare"], strengths["recommend"], strengths["person"]) >= 0.75:
        strengths["list"] *= 0.7  # "which films are similar to ..." is not answered by a list of all films
    return strengths, reasons


def _ends(masked: str) -> str:
    """A long text without its middle: what is wanted is said at one of its ends, and cues are not linear."""
    return masked if len(masked) <= 2 * _END else f"{masked[:_END]} … {masked[-_END:]}"


@cache
def _smalltalk() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{line})" for line in language_file("smalltalk.txt")))


def is_smalltalk(message: str) -> bool:
    """Whether the message is nothing but a greeting, thanks, a farewell or a question about who answers.

    >>> [is_smalltalk(m) for m in ("Hello there!", "你好，你是谁？", "Hello, who directed Inception?", "再推荐几部")]
    [True, True, False, False]
    """
    parts = [
        part.strip()
        for part in re.split(r"[\W_]*[,.!?;:，。！？；：~～、\n…]+[\W_]*", message.lower().replace("’", "'"))
    ]
    said = [re.sub(r"[^\w\s']", "", part).strip() for part in parts]
    said = [part for part in said if part]
    return bool(said) and all(_smalltalk().fullmatch(part) for part in said)


_MEDIA: list[tuple[str, str]] = [
    ("series", r"\b(?:tv|television) shows?\b|\b(?:series|shows|sitcoms?)\b|电视剧|剧集|连续剧|美剧|网剧"),
    ("documentary", r"\bdocumentar(?:y|ies)\b|纪录片"),
    ("short", r"\bshort films?\b|短片"),
    ("animation", r"\b(?:animations?|anime|cartoons?|animated)\b|动画|动漫"),
    (
        "film",
        r"\b(?:films?|movies?|cinema|biopics?|comedies|thrillers?|westerns?)\b|电影|影片|片子|[\u4e00-\u9fff]片(?!段|面|刻|名)",
    ),
]


def media_type(message: str, names: Sequence[Named] = ()) -> str:
    """``series``, ``documentary``, ``short``, ``animation``, ``film`` or ``""``: what kind of work is spoken of.

    >>> media_type("Any good TV shows?"), media_type("有什么好看的科幻片"), media_type("Who is Ang Lee?")
    ('series', 'film', '')
    """
    masked = mask(message, names)
    for media, pattern in _MEDIA:
        if re.search(pattern, masked):
            return media
    return "film" if any(named["type"].lower() == "film" for named in names) else ""
