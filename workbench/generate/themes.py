"""What a question is about beyond its names, held against texts of either language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from workbench.generate.wording import language_file
from workbench.text import CJK, terms

Weight = Callable[[str], float]
"""How much a term says: an inverse document frequency."""

LONGEST = 40
"""A word that the evidence has is looked for up to this many characters."""
UNTRANSLATED = 0.3
"""What a Chinese word counts that has no entry in ``themes.toml``: English evidence cannot show it."""


class Want(NamedTuple):
    """A content word of the question: any of the ways to say it will do, a way needs all of its stems."""

    word: str
    weight: float
    ways: tuple[frozenset[str], ...]

    def met(self, stems: frozenset[str]) -> bool:
        """Whether a text with these stems says it."""
        return any(way <= stems for way in self.ways)


def stem(term: str) -> str:
    """A word without its commonest endings, so that "stories" meets "story".

    >>> [stem(w) for w in ("stories", "story", "dreams", "dreaming", "喜宴", "gas")]
    ['stor', 'stor', 'dream', 'dream', '喜宴', 'gas']
    """
    if not term.isascii() or len(term) < 4:
        return term
    return re.sub(r"(?:['’]s|ies|ing|ed|es|s|y|e)$", "", term) if len(term) > 4 else term.removesuffix("s")


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    """The stems of a text's terms."""
    return frozenset(stem(term) for term in terms(text))


@cache
def glossary() -> dict[str, tuple[str, ...]]:
    """Chinese word -> English ways to say it, the longest words first."""
    found = language_file("themes.toml")
    return {word: tuple(found[word]) for word in sorted(found, key=lambda word: (-len(word), word))}


@cache
def _chinese_for() -> dict[frozenset[str], tuple[str, ...]]:
    ways: dict[frozenset[str], list[str]] = {}
    for word, english in glossary().items():
        for way in english:
            ways.setdefault(stems(way), []).append(word)
    return {way: tuple(words) for way, words in ways.items()}


_NOISE = frozenset(
    {
        "both",
        "together",
        "corpus",
        "contain",
        "contains",
        "called",
        "named",
        "titled",
        "film",
        "films",
        "movie",
        "movies",
    }
    | {"document", "documents", "notes", "entries"}
    | {"资料库", "知识库", "资料", "文档", "笔记", "合作", "一起", "共同", "主角", "男主角", "女主角", "个笑话"}
)
"""Words that are left of a question and say nothing of what it is about."""


_ASIDE = re.compile("时间(?:先后)?顺序")


def content(masked: str, themes: Sequence[str]) -> list[str]:
    """The content words of a question: those that the glossary knows, then what is left of the others.

    >>> content("有没有关于太极拳师傅的电影", ["太极拳师傅"])
    ['太极拳', '师傅']
    """
    known: list[str] = []
    left, rest = _ASIDE.sub(" ", masked), [re.sub("^[一二两三四五几][种个部本条位件]", "", theme) for theme in themes]
    for word in glossary():
        if word in left:
            known.append(word)
            left = left.replace(word, " ")
            rest = [part for theme in rest for part in theme.split(word)]
    known.sort(key=masked.find)
    inside = [part for part in rest if len(part) > 1 and not any(part in word for word in known)]
    return [word for word in dict.fromkeys([*known, *inside]) if word.lower() not in _NOISE]


def segments(theme: str, texts: Sequence[str]) -> list[str]:
    """A run of Chinese, cut into the longest words that the evidence has; what it does not have stays a word.

    Chinese writes no spaces, and the evidence knows its own words best.

    >>> segments("冲泡龙井用", ["龙井宜用八十五度的水冲泡。"])
    ['冲泡', '龙井']
    >>> segments("票房", ["冲泡。"]), segments("cache", [])
    (['票房'], ['cache'])
    """
    if not CJK.match(theme) or theme in glossary():
        return [theme]
    found, lost, at = list[str](), "", 0
    while at < len(theme):
        ends = range(min(len(theme), at + LONGEST), at + 1, -1)
        end = next((e for e in ends if any(theme[at:e] in text for text in texts)), at)
        if end > at:
            found.append(theme[at:end])
        else:
            lost += theme[at]
        at = max(end, at + 1)
    return found + ([lost] if len(lost) > 1 or not found else [])


def wants(themes: Iterable[str], weight: Weight) -> list[Want]:
    """The content words, weighted, with every way to say them."""
    found = []
    for theme in dict.fromkeys(themes):
        own, english = stems(theme), glossary().get(theme, ())
        ways = (own, *(stems(way) for way in english))
        if not own:
            continue
        if CJK.search(theme):
            says = max((max(map(weight, terms(way))) for way in english), default=UNTRANSLATED)
        else:
            ways += tuple(stems(word) for word in _chinese_for().get(own, ()))
            says = max(map(weight, terms(theme)))
        found.append(Want(theme, max(says, 0.1), tuple(dict.fromkeys(ways))))
    return found


def says(wanted: Sequence[Want], text_stems: frozenset[str], share: float) -> bool:
    """Whether a text says so large a weighted share, and of three words at least two, of two both.

    A Chinese word that the glossary does not know is no witness against an English text, beside others that are.

    >>> wanted = wants(["capital", "France"], {"capital": 7.0, "france": 3.0}.get)
    >>> says(wanted, stems("Media Capital presents"), 0.6)
    False
    """
    if not any(CJK.match(term) for term in text_stems):
        wanted = [want for want in wanted if len(want.ways) > 1 or not CJK.search(want.word)]
    missing = sum(not want.met(text_stems) for want in wanted)
    return bool(wanted) and missing <= len(wanted) // 3 and coverage(wanted, text_stems) >= share


def coverage(wanted: Sequence[Want], text_stems: frozenset[str]) -> float:
    """The weighted share of what is wanted that a text says; 1 when nothing is wanted.

    >>> wanted = wants(["dream", "thief"], {"dream": 3.0, "thief": 1.0}.get)
    >>> coverage(wanted, stems("A film about dreams"))
    0.75
    """
    total = sum(want.weight for want in wanted)
    return sum(want.weight for want in wanted if want.met(text_stems)) / total if total else 1.0
