"""Whether a source supports what an answer says of it: one judgement of a sentence and the passages that it cites.

A sentence is held against the place of a passage that says most of it: how much of its words stand there, in the same
order, and whether its names, numbers, dates and negations are the same. One logistic weighs what is seen
(``experiments/support.py`` fits it on one half of public claims, and measures it on the other). A number that the
sources do not have, or a negation that they do not share, is never supported, whatever the words say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, NamedTuple

from workbench.language.citing import marked_sentences
from workbench.language.quoting import bare as without_markup
from workbench.text import CJK, days, fold, sentences, simplified, stem, terms

Verdict = Literal["supported", "partly", "unsupported", "uncited"]
WEIGHTS = {"bias": -4.48, "covered": 3.36, "order": 1.91, "exact": 0.43, "lost": -2.74, "denied": -2.11}
"""What is seen of a sentence and a passage, weighed (``experiments/support.py DATA --fit``)."""
SUPPORTED, PARTLY = 0.5, 0.3
"""Probabilities from which a passage supports a sentence, or a part of it."""
_WINDOW = 3
"""Sentences of a passage that stand for one place."""
_MARKS = re.compile(r"\s?\[\d+\]")
_NUMBER = re.compile(r"(?<![A-Za-z\d.])\d[\d,]*(?:\.\d+)?")
ADDRESS = re.compile(r"(?:https?://|(?<![\w/])/(?=\w+/))[^\s)\]>）」】，。；]+")
"""Where something is, as a link or a path: what no source has, nothing supports."""
_QUOTED = re.compile(r"[《〈“\"「『]([^》〉”\"」』]{1,80})[》〉”\"」』]")
_BETWEEN = [re.compile(rf"{a}([^{a}{b}]*)(?:{b}|$)|^([^{a}{b}]*){b}") for a, b in ("“”", "「」", "『』", "«»")]
"""What somebody is quoted with, whole or, where it runs over several sentences, one of them."""
_QUOTATION = 4
"""Words, or so many pairs of Chinese characters, from which on what is quoted is no name but what somebody said."""
_LEAD = re.compile(r"^(?:[\s*#>|_-]|[+•]\s|\d{1,3}(?:[.)]\s+|、))+")
_PROPER = re.compile(r"\b[A-Z][\w’'-]*(?:\s+(?:of|the|de|van|von|da|la)?\s*[A-Z][\w’'-]*)*")
_DENIES = re.compile(
    r"\b(?:not|never|no|nor|neither|without|cannot|none|nobody|nothing)\b|n['’]t\b|[不没未無无非]|没有|從未|从未", re.I
)
_NO_DENIAL = re.compile(
    r"不(?:仅|僅|但|只|过|過|同|久|少|断|斷)|非(?:常|洲)|无(?:论|論|线|線)|未(?:来|來)|not only|no\.? ?\d", re.I
)
_PARTICLE = re.compile(r"^\W*(?:no|yes|是|不是|不|否|没有)\s*[:：,，]\s*", re.I)
_ALL = 0.8
"""The share of a sentence's words that fields must have; the rest is grammar."""
_SAME = 0.6
"""The share of a sentence's words with which another says the same, or its contrary."""
_SAYS_NOTHING = re.compile(
    r"\b(?:corpus|evidence|sources?|documents?|passages?|knowledge base|nothing)\b.{0,60}\b(?:not|no|nothing|never)\b"
    r"|\b(?:not|no|nothing)\b.{0,40}\b(?:in|from|by) the (?:corpus|evidence|sources?|documents?|passages?)"
    r"|(?:资料|資料|证据|證據|文档|文檔|来源|來源|知识库|知識庫).{0,20}(?:没有|沒有|未|无|無)|没有(?:找到|提到|说明)"
    r"|pieces? of evidence\b|条证据",
    re.I,
)


class Support(NamedTuple):
    """What became of one sentence of an answer."""

    sentence: str
    verdict: Verdict
    probability: float
    cited: list[int]
    by: list[int]
    why: str


Shares = Callable[[str, Sequence[str]], Sequence[float]]
"""How much of a sentence each text says, 0 to 1."""


def checked(
    text: str,
    sources: Mapping[int, str],
    shares: Shares | None = None,
    tables: Mapping[int, str] = MappingProxyType({}),
) -> list[Support]:
    """Return each statement of an answer held against what it cites.

    Args:
        text: an answer with marks like ``[1]``.
        sources: what each mark stands for.
        shares: how much of a sentence each text says, by what words mean; by the words themselves without it.
        tables: what the typed fields of each source say: short, and exact.

    >>> found = checked("It was built in 1993 [1]. It has 40 rooms [1]. It is nice.", {1: "It was built in 1993."})
    >>> [one.verdict for one in found]
    ['supported', 'unsupported', 'uncited']
    """
    return [held(sentence, sources, shares, tables) for sentence in statements(text)]


def statements(text: str) -> list[str]:
    """Return the sentences of an answer that state something: no question, no heading, nothing on the corpus itself."""
    found = []
    for sentence in marked_sentences(text):
        bare = _bare(sentence)
        if (
            not bare
            or re.fullmatch(r"\d{1,3}[.)]", bare)
            or bare[-1] in "?？:："
            or not terms(bare)
            or (_SAYS_NOTHING.search(bare) and not _cited(sentence))
        ):
            continue
        found.append(sentence)
    return found


def held(
    sentence: str,
    sources: Mapping[int, str],
    shares: Shares | None = None,
    tables: Mapping[int, str] = MappingProxyType({}),
) -> Support:
    """Return one sentence against what it cites; ``by`` are the passages that support it, wholly or in part."""
    cited, said = _cited(sentence), _bare(sentence)
    if not cited:
        return Support(sentence, "uncited", 0.0, [], [], "")
    told = {n: "\n".join([sources.get(n, ""), tables.get(n, "")]) for n in cited}
    whole = [n for n in cited if n in tables and _in_table(said, tables[n], shares)]
    if whole == cited:
        return Support(sentence, "supported", 1.0, cited, cited, "")
    of = {n: signals(said, told[n], shares) for n in cited if n not in whole}
    each = {n: probability(of[n]) if n in of else 1.0 for n in cited}
    together = "\n".join(told.values())
    seen = of[cited[0]] if len(cited) == 1 else signals(said, together, shares)
    sure = max([*each.values(), probability(seen)])
    gone = lost(said, together)
    if said_otherwise := misquoted(said, [*told.values()]):
        gone = [*(item for item in gone if item not in said_otherwise), *(f"“{words}”" for words in said_otherwise)]
        return Support(sentence, "unsupported", 0.0, cited, [], ", ".join(gone))
    verdict, why = judged(seen, ", ".join(gone), sure)[0], ", ".join(gone)
    if verdict == "unsupported" and not seen["denied"] and not gone and _exact(said):
        verdict = "partly"  # its names and numbers are there; that the words are others proves nothing
    return Support(sentence, verdict, round(sure, 4), cited, [n for n in cited if each[n] >= PARTLY], why)


def _in_table(said: str, table: str, shares: Shares | None) -> bool:
    """Check whether the fields say all of a sentence: every name and number, and nearly every word."""
    said = _PARTICLE.sub("", said)
    return not lost(said, table) and not denies(said) and (shares or by_words)(said, [table])[0] >= _ALL


def judged(seen: Mapping[str, float], why: str, sure: float | None = None) -> tuple[Verdict, float]:
    """Return the verdict on what is seen of a sentence beside its sources, and how surely they support it."""
    sure = probability(seen) if sure is None else sure
    if (seen["denied"] and sure < 1.0) or sure < PARTLY or (seen["lost"] and sure < SUPPORTED):
        return "unsupported", sure
    return ("supported" if sure >= SUPPORTED and not why else "partly"), sure


def probability(seen: Mapping[str, float]) -> float:
    """Return how likely a source supports a sentence of which this is seen, 0 to 1."""
    return 1 / (1 + math.exp(-WEIGHTS["bias"] - sum(WEIGHTS[name] * value for name, value in seen.items())))


def signals(sentence: str, source: str, shares: Shares | None = None) -> dict[str, float]:
    """Return what is seen of a sentence beside a source.

    Returns:
        ``covered``: the share of its words that the place which says most has; ``order``: the share of its neighbouring
        words that are neighbours in the source; ``exact``: the share of its names, numbers and dates that the source
        has; ``lost``: 1 when a number, date or address is not there; ``denied``: 1 when one of them denies and the
        other does not.
    """
    asked, places = _words(sentence), _places(source)
    told = list((shares or by_words)(sentence, places)) if places else []
    best = max(range(len(places)), key=lambda n: (told[n], -n), default=-1)
    pairs, all_pairs = _pairs(asked), _pairs(_words(source))
    missing, exact = lost(sentence, source), _exact(sentence)
    return {
        "covered": told[best] if places else 0.0,
        "order": len(pairs & all_pairs) / len(pairs) if pairs else told[best] if places else 0.0,
        "exact": 1 - len(missing) / len(exact) if exact else 1.0,
        "lost": float(any(_NUMBER.match(item) or ADDRESS.match(item) for item in missing)),
        "denied": float(bool(places) and _contrary(sentence, places[best])),
    }


def lost(sentence: str, source: str) -> list[str]:
    """Return the names, numbers and dates of a sentence that a source does not have."""
    text, held_in, numbers = _held_in(source)
    gone = []
    for item in _exact(sentence):
        if _NUMBER.fullmatch(item):
            there = _number(item) in numbers
        elif ADDRESS.fullmatch(item):
            there = fold(item) in text
        else:
            words = [word for word in terms(item) if len(word) > 2 or CJK.match(word)]
            there = fold(item) in text or any(word in held_in for word in words[-1:])
        if not there:
            gone.append(item)
    return gone


def misquoted(sentence: str, sources: Sequence[str]) -> list[str]:
    """What a sentence quotes that no source says word for word: names apart, and what stands between dots left out.

    >>> misquoted("“It burns dry wood … all night”, and “it is cold in there”.", ["It burns dry wood, all night!"])
    ['it is cold in there']
    >>> misquoted("他说：「窑炉每天烧木柴」。", ["窑炉每天烧木柴，很热。"])
    []
    """
    found = [words.strip() for words in _quotations(_MARKS.sub("", sentence)) if len(terms(words)) >= _QUOTATION]
    told = [f" {_spelled_out(text)} " for source in sources for text in (source, without_markup(source))]
    parts = {words: [_spelled_out(part) for part in re.split(r"\[?(?:…+|\.{3,})\]?", words)] for words in found}
    return [words for words in parts if not any(all(f" {part} " in text for part in parts[words]) for text in told)]


def _quotations(sentence: str) -> list[str]:
    """What stands between quotation marks, or before the first or behind the last where the other is elsewhere."""
    curved = [m[1] or m[2] or "" for pattern in _BETWEEN for m in pattern.finditer(sentence)]
    straight = sentence.split('"')
    closes_first = len(straight) % 2 == 0 and not terms(straight[-1])
    return [*curved, *straight[0 if closes_first else 1 :: 2]]


def _spelled_out(text: str) -> str:
    """Return the words of a text, each Chinese character one of them, a blank between two."""
    return " ".join(re.findall(rf"{CJK.pattern}|(?:(?!{CJK.pattern})\w)+", fold(text)))


def denies(text: str) -> bool:
    """Check whether a text says that something is not so.

    >>> denies("It was never built."), denies("不仅很大"), denies("他没有参加")
    (True, False, True)
    """
    return bool(_DENIES.search(_NO_DENIAL.sub(" ", text)))


def _contrary(sentence: str, place: str) -> bool:
    """Whether the sentence of a place that says most of these words denies what this one does not, or affirms it."""
    said = _PARTICLE.sub("", sentence)
    asked = _words(_DENIES.sub("", said))
    alike, nearest = max((_share(asked, set(_words(_DENIES.sub("", one)))), one) for one in sentences(place) or [place])
    return alike >= _SAME and denies(said) != denies(nearest)


def _bare(sentence: str) -> str:
    """Return a sentence without its marks, and without what makes it an item of a list."""
    return _LEAD.sub("", _MARKS.sub("", sentence).strip()).rstrip(" *-#>|")


def _cited(sentence: str) -> list[int]:
    return list(dict.fromkeys(int(n) for n in re.findall(r"\[(\d+)\]", sentence)))


def by_words(sentence: str, texts: Sequence[str]) -> list[float]:
    """Return the share of a sentence's words that each text has."""
    asked = _words(sentence)
    return [_share(asked, set(_words(text))) for text in texts]


@lru_cache(maxsize=4_096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(stem(term) for term in terms(simplified(text)))


@lru_cache(maxsize=1_024)
def _held_in(source: str) -> tuple[str, frozenset[str], frozenset[str]]:
    """Return a source folded, its terms, and its numbers."""
    written = " ".join(day.written() for *_, day in days(source))
    numbers = frozenset(map(_number, [*_NUMBER.findall(source), *written.split()]))
    return fold(source), frozenset(terms(source)), numbers


def _share(asked: Sequence[str], held_in: set[str]) -> float:
    total = sum(map(_weight, asked))
    return sum(_weight(word) for word in asked if word in held_in) / total if total else 0.0


def _weight(word: str) -> float:
    """Short Latin words are mostly grammar."""
    return 1.0 if len(word) > 3 or CJK.match(word) or word.isdigit() else 0.3


def _places(source: str) -> list[str]:
    """Return every few sentences of a source that stand together, behind its first line, which is often its title."""
    first, *_ = source.strip().splitlines() or [""]
    lead = first if len(first) <= 100 else ""
    kept = sentences(source)
    return [" ".join([lead, *kept[n : n + _WINDOW]]) for n in range(max(1, len(kept) - _WINDOW + 1))] if kept else []


def _pairs(words: Sequence[str]) -> set[tuple[str, str]]:
    return set(pairwise(words))


def _exact(sentence: str) -> list[str]:
    """Addresses, names, numbers and quoted things of a sentence; a word is no name for standing first."""
    names = [m.group() for m in _PROPER.finditer(sentence) if m.start() > 0 or " " in m.group()]
    quoted = [m.group(1) for m in _QUOTED.finditer(sentence)]
    places = [place.rstrip(".,;:") for place in ADDRESS.findall(sentence)]
    return list(
        dict.fromkeys([*places, *_NUMBER.findall(sentence), *quoted, *(name for name in names if len(name) > 1)])
    )


def _number(written: str) -> str:
    return written.replace(",", "").rstrip(".")
