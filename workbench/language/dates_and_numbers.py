"""Dates and numbers in a question, in English and Chinese, with the words that compare and the unit.

Only closed classes are read, in passes over a ``Draft``: the first make signs and spaces plain; each of the next reads
one way to write a value and puts one sign of Unicode's private use area in its place (U+E000 is the first value), so
that no later pass reads it again; the last reads the words that compare around these signs. Of "after March 2003" the
second pass leaves "after" and a sign, and the last one reads "later than 2003-03".
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any, NamedTuple

from workbench.text import (
    DIGITS,
    MONTH_NAMES,
    SCALE,
    SIZES,
    UNIT,
    WORDS,
    YEAR,
    compile_words,
    dates,
    days,
    decimal,
    month_number,
    read_number,
    scaled,
    simplified,
)

VALUE = "∼"
"""A text that begins with it is a value, and no longer read."""
_SIGN = "[\ue000-\uf8ff]"
_MOST_VALUES = 0xF900 - 0xE000
_PLAIN = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}
_PLAIN |= dict(zip(map(ord, "–—−～’‘“”￥∼≈⊢⊣"), map(ord, "---~''\"\"¥    "), strict=True))
_RANGE = r"-|~|\b(?:to|through|until|till)\b|到|至"


class Phrase(NamedTuple):
    """``start`` to ``end`` compares with ``first``, or asks for what lies between ``first`` and ``second``.

    The edges are of the two: ⊢ at the beginning, ⊣ at the end, ≈ about.
    """

    start: int
    end: int
    op: str
    first: Any
    second: Any
    edges: tuple[str, ...]


class Draft:
    """A text while it is read: values become signs, and every character knows where it came from."""

    def __init__(self, text: str):
        self.original = text
        self.text = simplified(text).translate(_PLAIN)
        self.places: list[int] = list(range(len(text) + 1))
        self.values: list[Any] = []
        self.rewrite(r"《[^《》]{0,200}》|\"[^\"]{0,200}\"", "_")
        self.rewrite(rf"(?:\s|{_SIGN})+", " ")
        self.rewrite("(?<=[一-鿿]) | (?=[一-鿿])", "")

    def rewrite(self, pattern: str, make: str | Callable[[re.Match[str]], Any]) -> None:
        """Replace each match by a template, or by what a function makes of it."""
        matches = compile_words(pattern).finditer(self.text)
        self.replace(
            (m.start(), m.end(), m.expand(make) if isinstance(make, str) else make(m))
            for m in matches
        )

    def replace(self, edits: Iterable[tuple[int, int, Any]]) -> None:
        """Replace spans, in their order, by texts or by the signs of values; None leaves them."""
        pieces: list[str] = []
        places = []
        at = 0
        for start, end, new in edits:
            if new is None or len(self.values) == _MOST_VALUES:
                continue
            if not isinstance(new, str) or new.startswith(VALUE):
                self.values.append(new)
                new = chr(0xE000 + len(self.values) - 1)
            pieces += self.text[at:start], new
            places += self.places[at:start] + [
                self.places[min(start + n, end - 1)] for n in range(len(new))
            ]
            at = end
        self.text = "".join(pieces) + self.text[at:]
        self.places = places + self.places[at:]

    def phrases(self, pattern: re.Pattern[str]) -> Iterator[Phrase]:
        """Yield what is compared, by a pattern that ``comparison`` made."""
        at = 0
        while match := pattern.search(self.text, at):
            words = match.groupdict("")
            at = match.end()
            pair = bool(words["value2"])
            if words["loose"] and not (words["between"] or words["close"]):
                pair = False
                at = match.start("loose")
            start = self.places[match.start()]
            end = self.places[at]
            inside = self.original[start:end]
            start, end = end - len(inside.lstrip()), start + len(inside.rstrip())
            ops = sorted(name for name in words if words[name] and name[1] == "_")
            values = [
                self.values[ord(words[name]) - 0xE000]
                for name in ("value1", "value2")[: 1 + pair]
            ]
            edges = [words[f"edge{nth}"] + words[f"tail{nth}"] for nth in (1, 2)]
            yield Phrase(
                start,
                end,
                "between" if pair else "".join(ops[:1])[2:],
                values[0],
                values[-1],
                (*edges,),
            )


def comparison(before: Mapping[str, str], behind: Mapping[str, str]) -> re.Pattern[str]:
    """Return a pattern of a value or two with the words that compare; the words behind it count more."""
    led = "|".join(f"(?P<b_{op}>{words})" for op, words in before.items())
    followed = "|".join(f"(?P<a_{op}>{words})" for op, words in behind.items())
    first, second = (
        rf"(?:the )?(?:(?P<edge{n}>[≈⊢⊣]) ?)?(?P<value{n}>{_SIGN})(?P<tail{n}>[≈⊢⊣]?)"
        for n in (1, 2)
    )
    return compile_words(
        rf"""(?:(?:(?P<between>\bbetween|介于)|{led})[ -]?)?{first}
        (?: ?(?:{_RANGE}|(?P<loose>\band\b|[和与跟])) ?{second}(?P<close>[之期]?间|为止)?| ?(?:{followed}))?"""
    )


# --- Dates ---

_UNKNOWN = "∼?"
"""Values are written ∼date or ∼first∼last, with a ? where they are a guess; ∼-05 is a month without a year."""
_UNITS = "years?|quarters?|months?|weeks?|days?|年|季度|个?月|周|星期|天|日"
_NUMERAL = rf"""[〇零○一二三四五六七八九]{{4}}(?=年)|[一二两三四五六七八九十]{{1,3}}(?=世纪|号|{_UNITS})
    |\b(?:{WORDS})(?= (?:{_UNITS}|decades?)\b)"""
_MONTH_OR_SEASON = rf"(?:(?-i:{MONTH_NAMES.title()})|spring|summer|autumn|fall|winter)"
_EDGES_AND_DAYS = (
    (r"\b(?:the )?(?:end|close) of (?:the )?|(?<=[年月代])年?[底末]", "⊣"),
    (r"\b(?:the )?(?:start|beginning) of (?:the )?|(?<=[年月代])年?初期?", "⊢"),
    (r"\b(?:early|mid|late|around|about|circa)[ -](?:the )?|大?约(?=\d)", "≈"),
    (r"(?<=[年月代])(?:[早中前后晚]期|[上中下]旬|左右)", "≈"),
    (r"\b(?:the )?day before yesterday\b", "前天"),
    (r"\byesterday\b", "昨天"),
    (r"\btoday\b", "今天"),
    (r"\btomorrow\b", "明天"),
    (r"\b(?:past|(?<=[nrg] the )last) (?=(?:year|month|week)\b(?! of))", "past 1 "),
    (r"\ban? (?=(?:year|quarter|month|week|day) ago\b)", "1 "),
    (r"(?<=[近去])半年|半年(?=前|内)", "6个月"),
    (r"\b(pre|post)-(?=\d{4})", r"\1 "),
    (r"(?<=[年月日代])-(?=\d)", "到"),
    ("上个?世纪", "20世纪"),
    ("本世纪", "21世纪"),
    (r"\b(past|last) decade\b", r"\1 10 years"),
    (r"(\d) decades\b", r"\g<1>0 years"),
    (
        rf"""\b(?:last|next|this) (?:{_MONTH_OR_SEASON}|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b
        |\b(?:(?:a few|several) [a-z]+ ago|(?:first|last) \d+ (?:day|week|month|year)s of (?:the )?\w+)\b
        |[上下本这]个?(?:周|星期)[1-6一二三四五六日天末]|最?近几?年来?|最?近[日期]|往年|历年|几个?(?:年|月|周|天)[以之]?前""",
        _UNKNOWN,
    ),
)
_PERIOD = r"""(?<!\d)(?P<n>\d{1,2})(?: (?P<en>year|quarter|month|week|day)s? ago\b|(?P<zh>年|个月|周|星期|天)[以之]?前)
    |(?:(?P<last>\b(?:last|previous) |去|上个?|昨)|(?P<next>\bnext |明|下个?)|(?P<second>(?<![之以])前)
    |\b(?:this|current) |今|本|这个?)
    (?P<unit>(?:year|quarter(?! of)|month|week)(?:'?s)?\b|年(?![代级轻])|季度|月(?![球光亮饼])|周(?![边围])|星期
    |(?<=[今昨前明])[天日](?!本))"""
_WINDOW = rf"""(?:\bthe )?(?:\b(?:last|past|previous|recent)|最近|近|过去|(?P<ahead>\bnext|\bcoming|未来|今后))的?
    (?: ?(?P<n>\d{{1,2}}|(?:a )?few|several|几|数))? ?(?P<unit>{_UNITS})(?![a-z]| of \d)(?:以来|之?内|[里来中间])?"""
_DAY = r"(\d\d?)(?:st|nd|rd|th)?"
_JOIN = r"( ?(?:[-~到至和与]|\b(?:to|through|until|till|and)\b) ?)"
_OLD = "(?<!his )(?<!her )(?<!their )"
_CALENDAR = (
    (rf"\b{_DAY}{_JOIN}(?={_DAY}(?: of)? ({MONTH_NAMES})\b)", r"\1 \4\2"),
    (rf"\b({MONTH_NAMES}) {_DAY}{_JOIN}(?={_DAY}\b(?![:.\d]))", r"\1 \2\3\1 "),
    (rf"(?<!\d)(\d\d?月)(\d\d?)[日号]?{_JOIN}(?=\d\d?[日号])", r"\1\2日\3\1"),
    (rf"(?<!\d)(\d\d?){_JOIN}(?=\d\d?月)", r"\1月\2"),
    (r"(?<![\d.])(1[5-9]|20)(\d\d)[-/](?=(?:1[3-9]|[2-9]\d)(?![\d/-]))", r"\1\2-\1"),
    (r"(?<!\w)((?:1[5-9]|20)\d)0(?:'?s\b|年代)", r"∼\g<1>0∼\g<1>9"),
    (r"20世纪(\d)0年代", r"∼19\g<1>0∼19\g<1>9"),
    (r"21世纪(\d)0年代", r"∼20\g<1>0∼20\g<1>9"),
    (rf"(?<!\w){_OLD}'?([3-9])0(?:s\b|年代)", r"∼19\g<1>0∼19\g<1>9"),
    (rf"(?<!\w){_OLD}'?([012])0(?:s\b|年代)", r"∼20\g<1>0∼20\g<1>9?"),
    *(
        (rf"{_OLD}\b{name}ties\b", f"∼19{decade}0∼19{decade}9")
        for decade, name in enumerate(["thir", "for", "fif", "six", "seven", "eigh", "nine"], 3)
    ),
    *(
        (rf"(?<!turn of the )\b{n}(?:(?:st|th) century\b|世纪)", f"∼{n - 1}01∼{n}00")
        for n in range(11, 22)
    ),
    (rf"(?<![\d./-])(0[1-9]|1[0-2])[/.-]({YEAR})(?![\d./-])", r"∼\2-\1"),
    (rf"(?<![\d./-])([1-9])/({YEAR})(?![\d./-])", r"∼\2-0\1"),
    (rf"\bwinter(?: of)? {YEAR}\b|{YEAR}年冬[天季]?", _UNKNOWN),
)
_PARTS = """01-06;first half|1st half|H1;上半年
07-12;second half|2nd half|H2;下半年
01-03;first quarter|1st quarter|Q1;第?1季度
04-06;second quarter|2nd quarter|Q2;第?2季度
07-09;third quarter|3rd quarter|Q3;第?3季度
10-12;fourth quarter|4th quarter|last quarter|Q4;第?4季度
03-05;spring;(?<=\\d年)春(?!节|晚)[天季]?
06-08;summer;(?<=\\d年)夏[天季]?
09-11;autumn|fall;(?<=\\d年)秋[天季]?"""
_NUMERIC_DAY = r"(?<![\d./-])\d\d?([./-])\d\d?\1(?:\d{4}|\d\d)(?![\d./-])"
_MONTH = rf"\b((?-i:{MONTH_NAMES.title()}))\b|(?<!\d)(1[0-2]|0?[1-9])月份?(?!\d)"
_PHRASE = comparison(
    {
        "ge": r"\b(?:since|not before|(?:no|not) earlier than|(?:in|on) or after"
        "|(?:starting|beginning|as)(?: in| from| on)?)|自从?|从|不早于",
        "gt": r"\b(?:after|later than|newer than|more recent than|post|past)|晚于",
        "le": r"\b(?:until|till|up (?:to|until)|by|through|(?:no|not) later than|not after|(?:in|on) or before)"
        "|不晚于|直?到",
        "lt": r"\b(?:before|prior to|(?:earlier|older) than|pre)|早于",
        "as_of": r"\bas (?:of|at)|截[至止]到?",
        "eq": r"\b(?:in|during|of|on|from|at|within|over|throughout)|[于在]",
    },
    {
        "ge": r"(?:(?:or|and) (?:later|after|newer)|(?:and )?onwards?|forward"
        r"|(?:to|until|-) ?(?:date|now|(?:the )?present))\b(?! ?(?:the ?)?[⊢⊣≈\ue000-\uf8ff])"
        "|on(?=$|[,.;?])|以来|起|开始|至今|到现在|[及或][以之]后|往后",
        "le": r"(?:or|and) (?:earlier|before|older)\b(?! ?(?:the ?)?[⊢⊣≈\ue000-\uf8ff])|[及或][以之]前|为止|止",
        "gt": "[以之]后|过后|后(?![期来半])",
        "lt": "[以之]前|前(?![期半后])",
    },
)
_AT_EDGE = {
    "⊣": {"lt": "le", "le": "le", "gt": "gt", "as_of": "as_of"},
    "⊢": {"ge": "ge", "gt": "ge", "lt": "lt", "le": "lt"},
}


class DateSpan(NamedTuple):
    """``text[start:end]`` asks for ``low`` to ``high``: ISO dates of any precision, "" for open.

    ``op`` is one of a condition's, or ``as_of``. ``unclear``: it is a date, but which is a guess (``low`` and ``high``)
    or unknown (both ""). A month or day without a year is a guess: the latest that has begun.
    """

    start: int
    end: int
    low: str
    high: str
    op: str
    unclear: bool


def read_dates(text: str, today: str = "") -> list[DateSpan]:
    """Return the dates of a text in its order; what is relative is counted from ``today``, an ISO day.

    >>> [span[2:] for span in read_dates("after 2005, 90年代, from March to May 2021")]
    [('2005', '', 'gt', False), ('1990', '1999', 'between', False), ('2021-03', '2021-05', 'between', False)]
    >>> read_dates("近三年", "2026-11-25")[0][2:], read_dates("last month")[0][2:]
    (('2023-11-25', '2026-11-25', 'between', False), ('', '', 'eq', True))
    """
    day = date.fromisoformat(today[:10]) if today else None
    draft = Draft(text)
    draft.rewrite(_NUMERAL, lambda match: str(read_number(match[0])))
    for pattern, template in _EDGES_AND_DAYS:
        draft.rewrite(pattern, template)
    draft.rewrite(_PERIOD, lambda match: _period(match, day) if day else _UNKNOWN)
    draft.rewrite(_WINDOW, lambda match: _window(match, day) if day else _UNKNOWN)
    for pattern, template in (*_CALENDAR, *_parts()):
        draft.rewrite(pattern, template)
    draft.replace(
        (s, e, f"∼{d.year or ''}-{d.month:02}-{d.day:02}") for s, e, d in days(draft.text)
    )
    draft.rewrite(_NUMERIC_DAY, _UNKNOWN)
    draft.replace((start, end, f"∼{date_text}") for start, end, date_text in dates(draft.text))
    draft.rewrite(_MONTH, lambda match: f"∼-{month_number(match[1] or match[2]):02}")
    return [
        _span(phrase, day)
        for phrase in draft.phrases(_PHRASE)
        if phrase.start < phrase.end and not _may_be_a_word(phrase, text)
    ]


def _parts() -> Iterator[tuple[str, str]]:
    for line in _PARTS.splitlines():
        months, english, chinese = line.split(";")
        pattern = rf"""\b(?:{english}),?(?: of)?(?: the)?(?: year)? ({YEAR})\b|(?<!\d)({YEAR}) ?(?:{english})\b
            |(?:(?<!\d)({YEAR})年?的?)?(?:{chinese})|(?<=\bin )(?:the )?(?:{english})\b(?! of)"""
        yield pattern, r"∼\1\2\3-{}∼\1\2\3-{}".format(*months.split("-"))


def _period(match: re.Match[str], today: date) -> str:
    unit = match["en"] or match["zh"] or match["unit"]
    count = (
        -int(match["n"] or 0)
        + bool(match["next"])
        - bool(match["last"])
        - 2 * bool(match["second"])
    )
    kind, day = _shift(today, unit, count)
    if kind == "y":
        return f"{day.year}年" if unit == "年" else str(day.year)
    if kind == "q":
        return f"∼{day.year}-{(day.month - 1) // 3 * 3 + 1:02}∼{day.year}-{(day.month + 2) // 3 * 3:02}"
    if kind == "w":
        monday = day - timedelta(day.weekday())
        return f"∼{monday}∼{monday + timedelta(6)}"
    return f"{day.year}年{day.month}月" + f"{day.day}日" * (kind == "d")


def _window(match: re.Match[str], today: date) -> str:
    number = match["n"] or ""
    if not number.isdecimal():
        return _UNKNOWN
    _, edge = _shift(today, match["unit"], int(number) if match["ahead"] else -int(number))
    return "∼{}∼{}".format(*sorted([edge, today]))


def _shift(today: date, unit: str, count: int) -> tuple[str, date]:
    """Return the first letter of a unit, and the day so many units from today."""
    kind = unit.lower().strip("个")[0].translate(str.maketrans("年季月周星天日", "yqmwwdd"))
    if kind in "wd":
        return kind, today + timedelta(count * (7 if kind == "w" else 1))
    year, month = divmod(
        today.year * 12 + today.month - 1 + count * {"y": 12, "q": 3, "m": 1}[kind], 12
    )
    return kind, date(year, month + 1, min(today.day, monthrange(year, month + 1)[1]))


def _may_be_a_word(phrase: Phrase, text: str) -> bool:
    """Check whether a month's name is alone, without a digit: it may be a verb, a person or a title."""
    return (
        not phrase.op
        and len(phrase.first) == len("∼-05")
        and not re.search(r"\d|份", text[phrase.start : phrase.end])
    )


def _span(phrase: Phrase, today: date | None) -> DateSpan:
    values = f"{phrase.first}{phrase.second}"
    op = phrase.op or "eq"
    parts = values.replace("?", "").split("∼")
    low = parts[1]
    high = parts[-1]
    unclear = "?" in values
    if not (low and high):
        low = high = ""
    elif "-" in (low[0], high[0]):
        unclear = unclear or low[0] == high[0]
        low, high = _with_year(low, high, today)
    first_edge, second_edge = phrase.edges
    if op == "between":
        unclear = (
            unclear
            or low[: len(high)] > high[: len(low)]
            or first_edge not in "⊢"
            or second_edge not in "⊣"
        )
    elif first_edge:
        unclear = unclear or op not in _AT_EDGE.get(first_edge, ())
        op = _AT_EDGE.get(first_edge, {}).get(op, op)
    if op == "eq" and low != high:
        op = "between"
    return DateSpan(phrase.start, phrase.end, *_bounds(op, low, high, ""), op, unclear)


def _bounds(op: str, low: Any, high: Any, nothing: Any) -> tuple[Any, Any]:
    open_ends = {"lt": (nothing, low), "le": (nothing, high), "gt": (high, nothing)}
    return (low, nothing) if op == "ge" else open_ends.get(op, (low, high))


def _with_year(low: str, high: str, today: date | None) -> tuple[str, str]:
    """Return two dates with the year of the other, or of the latest that has begun."""
    if high[0] != "-":
        return f"{int(high[:4]) - (low > high[4:])}{low}", high
    if low[0] == "-":
        if not today:
            return "", ""
        low = f"{today.year - (low > str(today)[4 : 4 + len(low)])}{low}"
    return low, f"{int(low[:4]) + (high < low[4:])}{high}"


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
_NUMBER_PHRASE = comparison(
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

    >>> [span[2:6] for span in read_numbers("over a million eur, 不到一百万, between 5 and 7 kg, 10人以上")]
    [(1000000.0, None, 'gt', 'eur'), (None, 1000000.0, 'lt', ''), (5.0, 7.0, 'between', 'kg'), (10.0, None, 'ge', '人')]
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
    draft.rewrite(rf"\ban?(?= {SCALE})(?<!half a)", "1")
    draft.rewrite(_NUMBER, _number)
    return [
        _number_span(phrase)
        for phrase in draft.phrases(_NUMBER_PHRASE)
        if phrase.op or not phrase.first.article
    ]


def read_limit(text: str) -> tuple[int, int, int | None] | None:
    """Return the place of a limit and how many are asked for.

    >>> read_limit("the three largest grants"), read_limit("前五"), read_limit("推荐几部")
    ((0, 9, 3), (0, 2, 5), None)
    """
    match = _LIMIT.search(text)
    return (*match.span(), read_number("".join(match.groups("")))) if match else None


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
    number, unclear = (
        (float(read_number(word) or 0), False) if word else decimal(groups["digits"])
    )
    if groups["open"]:  # an accountant's minus, or an aside
        number = -number
        unclear = True
    unit = groups["unit"] or groups["currency"]
    article = word.lower() in ("one", "一") and not (unit or groups["scale"])
    return _Number(scaled(number, groups["scale"]), groups["scale"], unit, unclear, article)


def _number_span(phrase: Phrase) -> NumberSpan:
    first = phrase.first
    second = phrase.second
    op = phrase.op or "eq"
    low = first.number
    high = second.number
    if not first.scale and scaled(low, second.scale) <= high:  # 5到8万
        low = scaled(low, second.scale)
    unclear = first.unclear or second.unclear or any(phrase.edges) or low > high
    unit = second.unit or first.unit
    return NumberSpan(phrase.start, phrase.end, *_bounds(op, low, high, None), op, unit, unclear)
