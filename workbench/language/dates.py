"""Dates in a question, in English and Chinese, with the words that compare: a closed class, read by rule."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, timedelta
from typing import NamedTuple, cast

from workbench.language.phrases import WORD_LIKE, Draft, Phrase, comparison
from workbench.numerals import MEASURE, WORDS, whole
from workbench.text import MONTH_NAMES, YEAR, days, month_number
from workbench.text import dates as plain_dates


class DateSpan(NamedTuple):
    """``text[start:end]`` asks for ``low`` to ``high``: ISO dates of any precision, "" for open.

    ``op`` is one of a condition's, or ``as_of``. ``unclear``: it is a date, but which is a guess (``low`` and ``high``)
    or unknown (both ""). A month or day without a year is a guess: the latest one that has begun.
    """

    start: int
    end: int
    low: str
    high: str
    op: str
    unclear: bool


class _Value(NamedTuple):
    low: str
    high: str
    unclear: bool = False


def _pattern(written: str) -> re.Pattern[str]:
    return re.compile(written.replace(" ", r"\ ").replace("\n", ""), WORD_LIKE)


_UNKNOWN = _Value("", "", unclear=True)
_NO_YEAR = "0000"
_JOIN = r"(?:-|~|to|through|until|till|and|到|至|和|与)"
_UNIT = r"(?P<unit>year|month|week|day|quarter|decade|年|月|周|星期|天|日|季度)(?P<s>s)?"
_NTH = ("first 1st 1 一 上 spring 春", "second 2nd 2 二 下 summer 夏", "third 3rd 3 三 autumn fall 秋", "fourth 4th 4 四 winter 冬")
_DECADES = "twenties thirties forties fifties sixties seventies eighties nineties".split()
_STEPS = {"last": -1, "previous": -1, "next": 1, "去": -1, "上": -1, "昨": -1, "前": -2, "明": 1, "下": 1, "后": 2}
_STEPS |= {"yesterday": -1, "tomorrow": 1}
_MONTHS_IN = {"ye": 12, "年": 12, "mo": 1, "月": 1, "qu": 3, "季度": 3, "de": 120}
_DAYS_IN = {"da": 1, "天": 1, "日": 1, "we": 7, "周": 7, "星期": 7}


_SEASON = r"(?:spring|summer|autumn|fall|winter)"
_PART = _pattern(
    r"\b(?P<nth>first|second|third|fourth|[1-4](?:st|nd|rd|th)) (?P<size>half|quarter)\b"
    rf"|(?:(?P<half>[上下])半年|第?(?P<quarter>[1-4])季度)|(?P<season>\b{_SEASON}\b|[春夏秋冬](?![节晚运])[天季]?)"
)
_ZH_YEAR = _pattern("[一二][〇零○一二三四五六七八九]{3}(?=年)")
_ZH_NUMBER = _pattern(r"[一二两三四五六七八九十]{1,3}(?=个?(?:年|月|周|星期|天|日|号|季度|世纪))")
_EN_NUMBER = _pattern(rf"\b(?:{'|'.join(WORDS)})(?= (?:years?|months?|weeks?|days?|quarters?|decades?)\b)")
_WINDOW = _pattern(
    r"(?:\bthe )?(?:\b(?P<way>last|past|previous|recent|next|coming)|最近|近|过去|(?P<ahead>未来|今后))的?"
    rf"(?: ?(?P<n>\d{{1,2}}|(?:a )?few|several|几|数))?[ 个]?{_UNIT}(?![a-z])(?:以来|之内|[里来内中间])?"
)
_AGO = _pattern(
    r"(?<!\d)(?P<n>\d{1,2}|a few|several|几|数) ?"
    rf"(?:{_UNIT} ago\b|个?(?P<zh>年|(?<=个)月|周|星期|天)(?:[以之]?前))"
)
_UNREAD = _pattern(
    r"\b(?:last|next|this) (?:mon|tues|wednes|thurs|fri|satur|sun)day\b|[上下本这]个?(?:周|星期)[1-6一二三四五六日天末]"
    r"|近几?年来?|近[日期来]|往年|历年"
)
_RELATIVE = _pattern(
    r"\b(?P<way>this|current|last|previous|next) (?P<unit>year|month|week|quarter)(?:'?s)?\b"
    r"|\b(?P<day>today|yesterday|tomorrow)(?:'?s)?\b"
    r"|(?<![之以最])(?:(?P<zh>[今去前明本后]|[上这下]个?)(?P<zhunit>年(?![代级轻])|月|周|星期|季度)|(?P<zhday>[今昨前明后])(?:天|日))"
)
_NAMED = _pattern(rf"\b(?P<way>this|last|next) (?P<name>{_SEASON}|(?-i:{MONTH_NAMES.title()}))\b")
_DAYS_OF_MONTH = _pattern(
    rf"\b(?P<a>\d\d?)(?:st|nd|rd|th)?(?P<join> ?{_JOIN} ?)(?P<b>\d\d?)(?:st|nd|rd|th)?(?: of)? (?P<m>{MONTH_NAMES})\b"
)
_MONTH_OF_DAYS = _pattern(
    rf"\b(?P<m>{MONTH_NAMES}) (?P<a>\d\d?)(?:st|nd|rd|th)?(?P<join> ?{_JOIN} ?)(?P<b>\d\d?)(?:st|nd|rd|th)?\b(?![:.\d])"
)
_ZH_DAYS = _pattern(rf"(?<!\d)(?P<m>\d\d?)月(?P<a>\d\d?)[日号]?(?P<join>{_JOIN})(?P<b>\d\d?)[日号]")
_ZH_MONTHS = _pattern(rf"(?P<a>(?<!\d)\d\d?)(?P<join>{_JOIN})(?=\d\d?月)")
_SHORT_YEARS = _pattern(rf"(?<![\d.])(?P<a>{YEAR})[-/](?P<b>1[3-9]|[2-9]\d)(?![\d/-])")
_PART_OF_YEAR = _pattern(
    rf"\b(?P<size>[QHS])(?P<nth>[1-4])§?,?(?: of)?(?: the)?(?: year)? ?(?P<year>{YEAR})年?(?!\d)"
    rf"|(?<!\d)(?P<zh>{YEAR})年?的? ?(?P<zhsize>[QHS])(?P<zhnth>[1-4])(?:§|\b)|(?P<no>)(?P<nosize>[QH])(?P<nonth>[1-4])§"
)
_DECADE = _pattern(
    rf"(?<!\w)(?<!his )(?<!her )(?<!their )(?:(?P<year>{YEAR[:-2]}0|'?\d0)'?s|(?P<name>{'|'.join(_DECADES)}))\b"
    r"|(?:(?P<age>上个?|20|21|本)世纪)?(?<!\d)(?P<zh>(?:1[89]|20)?\d0)年代"
)
_CENTURY = _pattern(r"(?<!turn of the )\b(?P<n>1[5-9]|2[01])(?:(?:st|th) century\b|世纪)|(?P<zh>[上本])个?世纪")
_NUMERIC = _pattern(r"(?<![\d./-])\d\d?([./-])\d\d?\1(?:\d{4}|\d\d)(?![\d./-])")
_MONTH = _pattern(
    rf"\b(?P<a>\d\d?)(?:st|nd|rd|th)?(?P<join> ?{_JOIN} ?)(?P<b>\d\d?)(?:st|nd|rd|th)?(?: of)? (?P<m>{MONTH_NAMES})\b"
)
_MONTH_OF_DAYS = _pattern(
    rf"\b(?P<m>{MONTH_NAMES}) (?P<a>\d\d?)(?:st|nd|rd|th)?(?P<join> ?{_JOIN} ?)(?P<b>\d\d?)(?:st|nd|rd|th)?\b(?![:.\d])"
)
_ZH_DAYS = _pattern(rf"(?<!\d)(?P<m>\d\d?)月(?P<a>\d\d?)[日号]?(?P<join>{_JOIN})(?P<b>\d\d?)[日号]")
_ZH_MONTHS = _pattern(rf"(?P<a>(?<!\d)\d\d?)(?P<join>{_JOIN})(?=\d\d?月)")
_SHORT_YEARS = _pattern(rf"(?<![\d.])(?P<a>{YEAR})[-/](?P<b>1[3-9]|[2-9]\d)(?![\d/-])")
_PART_OF_YEAR = _pattern(
    rf"\b(?P<size>[QHS])(?P<nth>[1-4])§?,?(?: of)?(?: the)?(?: year)? ?(?P<year>{YEAR})年?(?!\d)"
    rf"|(?<!\d)(?P<zh>{YEAR})年?的? ?(?P<zhsize>[QHS])(?P<zhnth>[1-4])(?:§|\b)|(?P<no>)(?P<nosize>[QH])(?P<nonth>[1-4])§"
)
_DECADE = _pattern(
    rf"(?<!\w)(?<!his )(?<!her )(?<!their )(?:(?P<year>{YEAR[:-2]}0|'?\d0)'?s|(?P<name>{'|'.join(_DECADES)}))\b"
    r"|(?:(?P<age>上个?|20|21|本)世纪)?(?<!\d)(?P<zh>(?:1[89]|20)?\d0)年代"
)
_CENTURY = _pattern(r"(?<!turn of the )\b(?P<n>1[5-9]|2[01])(?:(?:st|th) century\b|世纪)|(?P<zh>[上本])个?世纪")
_NUMERIC = _pattern(r"(?<![\d./-])\d\d?([./-])\d\d?\1(?:\d{4}|\d\d)(?![\d./-])")
_VAGUE = _pattern(r"近几?年来?|近[日期来]|往年|历年")
_MONTH = _pattern(rf"\b(?P<m>(?-i:{MONTH_NAMES.title()}))\b|(?<!\d)(?P<zh>1[0-2]|0?[1-9])月(?!\d)")
_COUNTED = re.compile(
    r"(?:(?:more|less|fewer|greater) than|over|under|at (?:least|most)|exactly|[超不]过|至[少多]|不到|[多少高低]于) ?$", re.I
)
_EDGE = r"(?P<edge>(?:\b(?:end|close|start|beginning|middle)\ of|\b(?:early|mid|late|around|about|circa)|大?约)[ -]?(?:the\ )?)?"
_TAIL = "(?P<tail>年?[底末初](?:期)?|年?中期?(?!国)|前期|早期|后期|晚期|左右|[上中下]旬)?"
_PHRASE = comparison(
    {
        "ge": "since|not before|(?:no|not) earlier than|(?:in|on) or after|(?:starting|beginning|as)(?: in| from| on)?"
        " / 自从?|从|不早于",
        "gt": "after|later than|newer than|more recent than|post|past / 晚于",
        "le": "until|till|up (?:to|until)|by|through|(?:no|not) later than|not after|(?:in|on) or before / 不晚于|直?到",
        "lt": "before|prior to|(?:earlier|older) than|pre / 早于",
        "as_of": "as (?:of|at) / 截[至止]到?",
        "eq": "in|during|of|on|from|at|within|over|throughout / [于在]",
    },
    {
        "ge": "(?:or|and) (?:later|after|newer|onwards?)(?! ?the)(?! ?[\ue000-\uf8ff])|onwards?|forward|on(?=$|[,.;?])"
        "|(?:to|until) (?:date|now|the present) / 以来|起|开始|至今|到现在|[及或][以之]后|往后",
        "le": "(?:or|and) (?:earlier|before|older)(?! ?the)(?! ?[\ue000-\uf8ff]) / [及或][以之]前|为止|止",
        "gt": " / [以之]后|过后|后(?![期来半])",
        "lt": " / [以之]前|前(?![期半])",
    },
    _EDGE,
    _TAIL,
)
_AT_EDGE = {
    ("end", "lt"): "le", ("end", "le"): "le", ("end", "gt"): "gt", ("end", "as_of"): "as_of",
    ("start", "ge"): "ge", ("start", "gt"): "ge", ("start", "lt"): "lt", ("start", "le"): "lt",
}  # fmt: skip


def read_dates(text: str, today: str = "") -> list[DateSpan]:
    """Return the dates of a text in its order; what is relative is counted from ``today``, an ISO day.

    >>> [span[2:] for span in read_dates("after 2005, 90年代, from March to May 2021")]
    [('2005', '', 'gt', False), ('1990', '1999', 'between', False), ('2021-03', '2021-05', 'between', False)]
    >>> read_dates("近三年", "2026-11-25")[0][2:], read_dates("last month")[0][2:]
    (('2023-11-25', '2026-11-25', 'between', False), ('', '', 'eq', True))
    """
    reader = _Reader(text, date.fromisoformat(today) if today else None)
    return [reader.span(phrase) for phrase in reader.phrases(_PHRASE) if reader.is_date(phrase)]


class _Reader(Draft):
    def __init__(self, text: str, today: date | None):
        super().__init__(text)
        self.today = today
        self.rewrite(_ZH_YEAR, lambda match: "".join(str(whole(sign) or 0) for sign in match[0]))
        for pattern in (_ZH_NUMBER, _EN_NUMBER):
            self.rewrite(pattern, lambda match: str(whole(match[0])))
        self.rewrite(_UNREAD, lambda match: _UNKNOWN)
        for pattern, make in ((_NAMED, self._named), (_AGO, self._ago), (_RELATIVE, self._relative)):
            self.rewrite(pattern, make if today else lambda match: _UNKNOWN)
        self.rewrite(_WINDOW, self._window)
        self.rewrite(_DAYS_OF_MONTH, lambda m: f"{m['a']} {m['m']}{m['join']}{m['b']} {m['m']}")
        self.rewrite(_MONTH_OF_DAYS, lambda m: f"{m['m']} {m['a']}{m['join']}{m['m']} {m['b']}")
        self.rewrite(_ZH_DAYS, lambda m: f"{m['m']}月{m['a']}日{m['join']}{m['m']}月{m['b']}日")
        self.rewrite(_ZH_MONTHS, lambda m: f"{m['a']}月{m['join']}")
        self.rewrite(_SHORT_YEARS, lambda m: f"{m['a']}-{m['a'][:2]}{m['b']}" if m["b"] > m["a"][2:] else None)
        self.rewrite(_PART, _part)
        for pattern, make in ((_PART_OF_YEAR, _part_of_year), (_DECADE, _decade), (_CENTURY, _century)):
            self.rewrite(pattern, make)
        self.replace((start, end, _day(*day)) for start, end, day in days(self.text))
        self.rewrite(_NUMERIC, lambda match: _UNKNOWN)
        self.replace((s, e, _Value(day, day)) for s, e, day in plain_dates(self.text) if not self._counts(s, e))
        self.rewrite(_MONTH, lambda match: _day(0, month_number(match["m"] or match["zh"])))

    def _counts(self, start: int, end: int) -> bool:
        """Whether a number that looks like a year counts something."""
        if end - start != len("2021"):
            return False
        before, behind = self.text[max(0, start - 20) : start], self.text[end : end + 20]
        return bool(_COUNTED.search(before) or MEASURE.match(behind))

    def _named(self, match: re.Match[str]) -> str:
        today = cast("date", self.today)
        month = {"sp": 5, "su": 8, "au": 11, "fa": 11, "wi": 12}.get(match["name"][:2].lower(), 0)
        month = month if re.fullmatch(_SEASON, match["name"], re.I) else month_number(match["name"])
        over = {"this": 0, "last": -(month >= today.month), "next": month <= today.month}[match["way"].lower()]
        return f"{match['name']} {today.year + over}"

    def _ago(self, match: re.Match[str]) -> _Value:
        if not match["n"].isdecimal():
            return _UNKNOWN
        unit = match["unit"] or match["zh"]
        size = {"ye": 4, "年": 4, "mo": 7, "月": 7, "qu": 7}.get(unit[:2].lower(), 10)
        day = self._shift(unit, -int(match["n"]))[:size]
        return _Value(day, day)

    def _relative(self, match: re.Match[str]) -> str | _Value:
        today = cast("date", self.today)
        word = match["way"] or match["day"] or match["zh"] or match["zhday"]
        step = _STEPS.get(word.lower(), _STEPS.get(word[0], 0))
        unit = (match["unit"] or match["zhunit"] or "day").lower()
        day = date.fromisoformat(self._shift(unit, step))
        if unit in ("year", "年"):
            return f"{day.year}{'' if match['unit'] else '年'}"
        if unit in ("month", "月"):
            return f"{day.year}年{day.month}月"
        if unit in ("quarter", "季度"):
            return f"{day.year}年Q{(day.month + 2) // 3}§"
        if unit == "day":
            return f"{day.year}年{day.month}月{day.day}日"
        monday = day - timedelta(day.weekday())
        return _Value(str(monday), str(monday + timedelta(6)))

    def _window(self, match: re.Match[str]) -> _Value:
        number = match["n"] or ("1" if match["way"] and match["way"].lower() != "recent" and not match["s"] else "")
        if not self.today or not number.isdecimal():
            return _UNKNOWN
        ahead = match["ahead"] or (match["way"] or "").lower() in ("next", "coming")
        other = self._shift(match["unit"], int(number) if ahead else -int(number))
        return _Value(*sorted([other, self.today.isoformat()]))

    def _shift(self, unit: str, count: int) -> str:
        today, unit = cast("date", self.today), unit[:2].lower()
        if unit in _DAYS_IN:
            return str(today + timedelta(count * _DAYS_IN[unit]))
        year, month = divmod(today.year * 12 + today.month - 1 + count * _MONTHS_IN[unit], 12)
        return str(date(year, month + 1, min(today.day, monthrange(year, month + 1)[1])))

    def is_date(self, phrase: Phrase) -> bool:
        """Whether a phrase is a date: a month's name alone may be a verb or a woman."""
        bare = phrase.first.low.startswith(_NO_YEAR) and len(phrase.first.low) == len("0000-05")
        return not bare or bool(phrase.op) or not self.original[phrase.start : phrase.end].isascii()

    def span(self, phrase: Phrase) -> DateSpan:
        """Return what a phrase asks for."""
        first, second, op = phrase.first, phrase.second or phrase.first, phrase.op or "eq"
        low, high, unclear = first.low, second.high, first.unclear or second.unclear
        if _NO_YEAR in (low[:4], high[:4]):
            low, high, unclear = *self._with_year(low, high), unclear or low[:4] == high[:4]
        near, far = (_edge(word) for word in phrase.edges)
        if phrase.second:
            ordered = low[: len(high)] <= high[: len(low)]
            unclear |= not ordered or near not in ("", "start") or far not in ("", "end")
        elif near:
            unclear |= (near, op) not in _AT_EDGE
            op = _AT_EDGE.get((near, op), op)
        if op == "eq" and low != high:
            op = "between"
        bounds = {"lt": ("", low), "le": ("", high), "gt": (high, ""), "ge": (low, ""), "as_of": (high, high)}
        return DateSpan(phrase.start, phrase.end, *bounds.get(op, (low, high)), op, unclear)

    def _with_year(self, low: str, high: str) -> tuple[str, str]:
        """Return two dates with the year of the other, or with that of the latest day that has begun."""
        if low[:4] != high[:4]:
            year = int(low[:4]) or int(high[:4]) - (low[4:] > high[4:])
        elif self.today:
            year = self.today.year - (low[5:] > self.today.isoformat()[5 : len(low)])
        else:
            return "", ""
        end = int(high[:4]) or year + (high[4:] < low[4:])
        return f"{year}{low[4:]}", f"{end}{high[4:]}"


def _day(year: int, month: int, day: int = 0) -> _Value:
    written = f"{year:04}-{month:02}" + (f"-{day:02}" if day else "")
    return _Value(written, written)


def _part(match: re.Match[str]) -> str:
    size = "S" if match["season"] else (match["size"] or ("half" if match["half"] else "quarter"))[0].upper()
    word = (match["nth"] or match["half"] or match["quarter"] or match["season"]).lower()
    nth = next(n for n, words in enumerate(_NTH, 1) if word in words.split() or word[0] in words.split())
    return f"{size}{nth}{'' if match[0].isascii() else '§'}"


def _part_of_year(match: re.Match[str]) -> _Value:
    groups = match.groupdict()
    way = "" if match["year"] else "zh" if match["zh"] else "no"
    year, size, nth = groups["year"] or groups["zh"] or _NO_YEAR, groups[f"{way}size"].upper(), int(groups[f"{way}nth"])
    if size == "S" and nth == 4:
        return _Value(f"{year}-12", f"{int(year) + 1}-02", unclear=True)
    months = 6 if size == "H" else 3
    first = nth * 3 if size == "S" else (nth - 1) * months + 1
    return _Value(f"{year}-{first:02}", f"{year}-{first + months - 1:02}")


def _decade(match: re.Match[str]) -> _Value:
    unclear = False
    if match["name"]:
        year = 1920 + 10 * _DECADES.index(match["name"].lower())
        unclear = year == 1920
    else:
        year, age = int((match["year"] or match["zh"]).strip("'")), match["age"]
        if year < 100:
            unclear = 0 < year < 30 and not age
            year += (2000 if age in ("21", "本") else 1900) if age else (2000 if year < 30 else 1900)
    return _Value(str(year), str(year + 9), unclear)


def _century(match: re.Match[str]) -> _Value:
    number = int(match["n"] or {"上": 20, "本": 21}[match["zh"]])
    return _Value(f"{number - 1}01", f"{number}00")


def _edge(word: str) -> str:
    if not word:
        return ""
    if re.search("end|close|[底末]", word, re.I):
        return "end"
    return "start" if re.search("start|beginning|初", word, re.I) else "vague"
