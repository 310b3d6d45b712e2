"""Numbers in a question, in English and Chinese, with the words that compare and the unit: closed classes only."""

from __future__ import annotations

import re
from typing import NamedTuple

from workbench.language.dates import Draft, Phrase, comparison, read_dates
from workbench.text import (
    DIGITS,
    SCALE,
    SIZES,
    UNIT,
    WORDS,
    compile_words,
    decimal,
    read_number,
    scaled,
)

_COUNTER = "[个部篇本条项份家册集首名位次场件种只台]"
_WORD = rf"\b(?:{WORDS})\b"
_ZH = "[零〇一二两三四五六七八九十百千]{1,8}"
_NUMBER = rf"""(?<![\w.:/#第])(?<![a-z]-)(?<!\bno\. )(?<!\b(?:page|part|step|item) )(?<!\b(?:table) )(?<!figure )
    (?<!\b(?:chapter|section|version) )(?P<currency>(?:\bUS)?[$€£¥])? ?(?P<open>\()?
    (?:(?P<digits>(?:(?<![\w)])[-+−])?{DIGITS})|(?P<word>{_WORD})
    |(?P<zh>(?<![统唯万]){_ZH})(?=[万亿]|{_COUNTER}|{UNIT}|[-~到至和与]{_ZH}|$))(?P<close>\))?
    (?: ?(?P<scale>{SCALE}))?(?: ?个?(?P<unit>{UNIT})|{_COUNTER})?(?![a-z\d]|[.:/]\d)"""
_BEST = r"(?:top|first|last|latest|newest|oldest|best|worst|(?<!at )(?:most|least)|[a-z]{3,12}(?<!lea)(?<!mo)st)"
_COUNT = rf"(\d{{1,3}}|{_WORD})"
_ZH_COUNT = rf"(\d{{1,3}}|{_ZH})"
_NOUN = rf"(?![\d.,:%]| ?(?:{UNIT}|{SCALE}|\d|-|(?:of|or|and|to|than|is|are|was)\b))"
_LIMIT = compile_words(
    rf"""\b{_BEST} {_COUNT}{_NOUN}|\b{_COUNT}\b(?: of the)? {_BEST}\b
    |(?:^|\b(?:which|what|give|show|list|name|find|get|suggest|recommend|any|me|us|only) )(?:the )?{_COUNT}(?= ){_NOUN}
    |前{_ZH_COUNT}(?!个?{UNIT}){_COUNTER}?|最[一-鿿]{{1,3}}?的?{_ZH_COUNT}{_COUNTER}(?!{UNIT})
    |(?:推荐|列出|列举|给我|给出|找|找出|哪|介绍|来|说出|任选){_ZH_COUNT}{_COUNTER}(?!{UNIT})|{_ZH_COUNT}{_COUNTER}?最"""
)
_MORE = "(?:more|greater|larger|bigger|higher|longer|heavier|taller|older|faster|deeper)"
_LESS = "(?:less|fewer|smaller|lower|shorter|lighter|younger|slower|cheaper)"
_PHRASE = comparison(
    {
        "ge": rf"\b(?:at least|(?:no|not) {_LESS} than|min(?:imum)?(?: of)?)|>=|≥|至少有?|不[少低小]于|最少",
        "le": rf"\b(?:at most|(?:no|not) {_MORE} than|not (?:over|above)|max(?:imum)?(?: of)?|up to|within)"
        "|<=|≤|不超过|[至最]多|不[高大多长]于",
        "gt": rf"\b(?:{_MORE} than|over|above|exceed(?:s|ing)?|beyond)|>|超[过出]|[高大多长]于|不止",
        "lt": rf"\b(?:{_LESS} than|under|below)|<|不[到足满]|[低少小短]于|未满",
        "eq": r"\b(?:exactly|precisely|equals?(?: to)?|from|is|of)|=|正好|恰好|刚好|等于|从",
    },
    {
        "ge": rf"(?:or|and) (?:{_MORE}|above|over)\b|plus\b|\+|[及或]?以上|或更[多高长]",
        "le": rf"(?:or|and) (?:{_LESS}|below|under)\b|[及或]?以[下内]|或更[少低短]",
    },
)


class NumberSpan(NamedTuple):
    """``text[start:end]`` asks for ``low`` to ``high``, None for open. ``unclear``: another reading is as likely."""

    start: int
    end: int
    low: float | None
    high: float | None
    op: str
    unit: str
    unclear: bool


class _Number(NamedTuple):
    number: float
    scale: str
    unit: str
    unclear: bool
    article: bool


def read_numbers(text: str) -> list[NumberSpan]:
    """Return the numbers of a text in its order, without dates, limits and labels ("chapter 3").

    >>> [span[2:6] for span in read_numbers("over 3 million eur, 不到一百万, between 5 and 7 kg, 10人以上")]
    [(3000000.0, None, 'gt', 'eur'), (None, 1000000.0, 'lt', ''), (5.0, 7.0, 'between', 'kg'), (10.0, None, 'ge', '人')]
    """
    taken = [(span.start, span.end) for span in read_dates(text)] + [
        match.span() for match in _LIMIT.finditer(text)
    ]
    for start, end in taken:
        text = text[:start] + ";" * (end - start) + text[end:]
    draft = Draft(text)
    draft.rewrite(
        r"\b(?:about|around|approximately|roughly|nearly|almost) |(?<!\w)~|[大将]?[约近](?=\d)|左右|上下",
        "≈",
    )
    draft.rewrite(_NUMBER, _number)
    return [
        _span(phrase) for phrase in draft.phrases(_PHRASE) if phrase.op or not phrase.first.article
    ]


def read_limit(text: str) -> int | None:
    """Return how many are asked for.

    >>> read_limit("the three largest grants"), read_limit("top 3"), read_limit("前五"), read_limit("推荐几部")
    (3, 3, 5, None)
    """
    match = _LIMIT.search(text)
    return read_number("".join(match.groups(""))) if match else None


def convert(value: float, unit: str, to_unit: str) -> float | None:
    """Return a value in another unit of its kind; None where the units are of two kinds or unknown.

    >>> convert(1.5, "hours", "min"), convert(2, "公里", "m"), convert(3, "kg", "km")
    (90.0, 2000.0, None)
    """
    names = unit.lower(), to_unit.lower()
    sizes = [SIZES.get(name) or SIZES.get(name.removesuffix("s"), ("", 0.0)) for name in names]
    (kind, size), (to_kind, to_size) = sizes
    return value * size / to_size if kind == to_kind and to_size else None


def _number(match: re.Match[str]) -> _Number | None:
    groups = match.groupdict("")
    if bool(groups["open"]) != bool(groups["close"]):
        return None
    word = groups["word"] or groups["zh"]
    number, unclear = (float(read_number(word) or 0), False) if word else decimal(groups["digits"])
    if groups["open"]:  # an accountant's minus, or an aside
        number, unclear = -number, True
    unit = groups["unit"] or groups["currency"]
    article = word.lower() in ("one", "一") and not (unit or groups["scale"])
    return _Number(scaled(number, groups["scale"]), groups["scale"], unit, unclear, article)


def _span(phrase: Phrase) -> NumberSpan:
    first, second, op = phrase.first, phrase.second, phrase.op or "eq"
    low, high = first.number, second.number
    if not first.scale and scaled(low, second.scale) <= high:  # 5到8万
        low = scaled(low, second.scale)
    unclear = first.unclear or second.unclear or any(phrase.edges) or low > high
    bounds = {"lt": (None, high), "le": (None, high), "gt": (low, None), "ge": (low, None)}
    return NumberSpan(
        phrase.start,
        phrase.end,
        *bounds.get(op, (low, high)),
        op,
        second.unit or first.unit,
        unclear,
    )
