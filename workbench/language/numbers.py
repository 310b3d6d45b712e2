"""Numbers in a question, in English and Chinese, with the words that compare and the unit: closed classes only."""

from __future__ import annotations

import re
from typing import NamedTuple

from workbench.language.dates import read_dates
from workbench.language.phrases import WORD_LIKE, Draft, Phrase, comparison
from workbench.numerals import DIGITS, SCALE, UNIT, WORDS, decimal, scaled, whole


class NumberSpan(NamedTuple):
    """``text[start:end]`` asks for ``low`` to ``high``, None for open. ``unclear``: another reading is as likely."""

    start: int
    end: int
    low: float | None
    high: float | None
    op: str
    unit: str
    unclear: bool


class _Value(NamedTuple):
    number: float
    scale: float
    unit: str
    unclear: bool
    article: bool


_COUNTER = "[个部篇本条项份家册集首名位次场件种只台]"
_WORD = rf"\b(?:{'|'.join(WORDS)})\b"
_ZH = "[零〇一二两三四五六七八九十百千]"
_NUMBER = re.compile(
    rf"""(?<![\w.:/])(?<![a-z]-)(?<!no\.\ )(?<!chapter\ )(?<!section\ )(?<!page\ )(?<!figure\ )(?<!table\ )(?<!version\ )
    (?<!part\ )(?<!step\ )(?<!item\ )(?<![\#第])(?P<currency>(?:US)?[$€£¥]\ ?)?(?P<open>\()?
    (?:(?P<digits>(?:(?<![\w)])[-+−])?{DIGITS})|(?P<word>{_WORD})
    |(?P<zh>(?<![统唯万]){_ZH}{{1,8}})(?=[万亿]|{_COUNTER}|{UNIT}|[-~到至和与]{_ZH}|$))(?P<close>\))?
    (?:\ ?(?P<scale>{SCALE}))?(?:\ ?(?P<unit>{UNIT})|{_COUNTER})?(?![a-z\d]|[.:/]\d)""",
    WORD_LIKE,
)
_SUPERLATIVE = r"(?:top|first|last|latest|newest|oldest|best|worst|most|least|[a-z]{3,12}est)"
_LIMIT = re.compile(
    rf"""(?:(?<!at\ )\b{_SUPERLATIVE}\ (?P<a>\d{{1,3}}|{_WORD})|(?P<b>\b\d{{1,3}}|{_WORD})\ (?:of\ the\ )?{_SUPERLATIVE})\b(?!%)
    |(?:^|\b(?:which|what|give|show|list|name|find|get|suggest|recommend|any|me|us|only)\ )(?:the\ )?(?P<c>\d{{1,3}}|{_WORD})
     (?=\ [a-z])(?!\ (?:{UNIT}|of|or|and|to|than|is|are|was)\b)
    |前(?P<d>\d{{1,3}}|{_ZH}{{1,3}})(?!{UNIT}){_COUNTER}?|最[^\s\d]{{1,4}}?的?(?P<e>\d{{1,3}}|{_ZH}{{1,3}}){_COUNTER}
    |(?:推荐|列出|列举|给我|给出|找出?|哪|介绍|来|说出|任选)(?P<f>\d{{1,3}}|{_ZH}{{1,3}}){_COUNTER}
    |(?P<g>\d{{1,3}}|{_ZH}{{1,3}}){_COUNTER}?最""",
    WORD_LIKE,
)
_THAN = "more greater larger bigger higher longer heavier taller older faster deeper".replace(" ", "|")
_UNDER = "less fewer smaller lower shorter lighter younger slower cheaper".replace(" ", "|")
_PHRASE = comparison(
    {
        "ge": rf"at least|(?:no|not) (?:{_UNDER}) than|(?:a )?min(?:imum)?(?: of)? / >=|≥|至少有?|不[少低小]于|最少",
        "le": rf"at most|(?:no|not) (?:{_THAN}) than|not (?:over|above)|(?:a )?max(?:imum)?(?: of)?|up to|within"
        " / <=|≤|不超过|[至最]多|不[高大多长]于",
        "gt": rf"(?:{_THAN}) than|over|above|exceed(?:s|ing)?|beyond / >|超[过出]|[高大多长]于|不止",
        "lt": rf"(?:{_UNDER}) than|under|below / <|不[到足满]|[低少小短]于|未满",
        "eq": "exactly|precisely|equals?(?: to)?|from|in|is|of / =|正好|恰好|刚好|等于|从",
    },
    {
        "ge": r"(?:or|and) (?:more|above|over|higher|longer|older)|plus / \+|[及或]?以上|或更[多高长]",
        "le": "(?:or|and) (?:less|fewer|below|under|lower|shorter|younger) / [及或]?以[下内]|或更[少低短]",
    },
    r"(?P<edge>(?:\b(?:about|around|approximately|roughly|nearly|almost)\b|[~≈]|大?约|将?近)\ ?)?",
    "(?P<tail>左右|上下|多(?=[^于]|$))?",
)
_SIZES = {
    "mass": {"mg": 1e-3, "g": 1, "gram": 1, "克": 1, "kg": 1e3, "kilo": 1e3, "kilogram": 1e3, "公斤": 1e3, "千克": 1e3,
             "t": 1e6, "ton": 1e6, "tonne": 1e6, "吨": 1e6},
    "data": {"byte": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12},
    "time": {"ms": 1e-3, "s": 1, "sec": 1, "second": 1, "秒": 1, "min": 60, "minute": 60, "分钟": 60, "分": 60, "h": 3600,
             "hr": 3600, "hour": 3600, "小时": 3600, "day": 86400, "天": 86400, "week": 604800, "周": 604800},
    "length": {"mm": 1e-3, "毫米": 1e-3, "cm": 1e-2, "厘米": 1e-2, "m": 1, "meter": 1, "metre": 1, "米": 1, "km": 1e3,
               "kilometer": 1e3, "kilometre": 1e3, "公里": 1e3, "千米": 1e3},
    "yuan": {"元": 1, "块": 1, "人民币": 1, "yuan": 1, "cny": 1, "rmb": 1},
    "dollar": {"$": 1, "us$": 1, "usd": 1, "dollar": 1, "美元": 1},
    "euro": {"€": 1, "eur": 1, "euro": 1, "欧元": 1},
}  # fmt: skip


def read_numbers(text: str) -> list[NumberSpan]:
    """Return the numbers of a text in its order, without dates, limits and labels ("chapter 3").

    >>> [span[2:6] for span in read_numbers("over 3 million eur, 不到一百万, between 5 and 7 kg, 10人以上")]
    [(3000000.0, None, 'gt', 'eur'), (None, 1000000.0, 'lt', ''), (5.0, 7.0, 'between', 'kg'), (10.0, None, 'ge', '人')]
    """
    taken = [(span.start, span.end) for span in read_dates(text)]
    taken += [match.span() for match in _LIMIT.finditer(text)]
    for start, end in taken:
        text = text[:start] + ";" * (end - start) + text[end:]
    draft = Draft(text)
    draft.rewrite(_NUMBER, _value)
    return [_span(phrase) for phrase in draft.phrases(_PHRASE) if phrase.op or not phrase.first.article]


def read_limit(text: str) -> int | None:
    """Return how many are asked for.

    >>> read_limit("the three largest grants"), read_limit("top 3"), read_limit("前五"), read_limit("推荐几部")
    (3, 3, 5, None)
    """
    match = _LIMIT.search(text)
    return whole(next(group for group in match.groups() if group)) if match else None


def convert(value: float, unit: str, to_unit: str) -> float | None:
    """Return a value in another unit of its kind; None where the units are of two kinds or unknown.

    >>> convert(1.5, "hours", "min"), convert(2, "公里", "m"), convert(3, "kg", "km")
    (90.0, 2000.0, None)
    """
    for sizes in _SIZES.values():
        size, other = (sizes.get(name.lower()) or sizes.get(name.lower().removesuffix("s")) for name in (unit, to_unit))
        if size and other:
            return value * size / other
    return None


def _value(match: re.Match[str]) -> _Value | None:
    if bool(match["open"]) != bool(match["close"]):
        return None
    if match["digits"]:
        number, unclear = decimal(match["digits"])
    else:
        number, unclear = float(whole(match["word"] or match["zh"]) or 0), False
    scale, unit = scaled(match["scale"]), match["unit"] or (match["currency"] or "").strip()
    if match["open"]:  # an accountant's minus, or an aside
        number, unclear = -number, True
    article = (match["word"] or match["zh"] or "").lower() in ("one", "一") and not match["unit"] and scale == 1
    return _Value(number * scale, scale, unit, unclear, article)


def _span(phrase: Phrase) -> NumberSpan:
    first, second, op = phrase.first, phrase.second or phrase.first, phrase.op or "eq"
    low, high, unit = first.number, second.number, second.unit or first.unit
    if first.scale == 1 < second.scale and low * second.scale <= high:  # 5到8万
        low *= second.scale
    unclear = first.unclear or second.unclear or any(phrase.edges) or low > high
    bounds = {"lt": (None, high), "le": (None, high), "gt": (low, None), "ge": (low, None)}
    return NumberSpan(phrase.start, phrase.end, *bounds.get(op, (low, high)), op, unit, unclear)
