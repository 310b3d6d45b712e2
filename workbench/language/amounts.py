"""Numbers and dates in a question with what compares them: more than 50, 不到一百万, between 2012-03 and July 2016."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from workbench.language.marks import way, ways
from workbench.state import Op
from workbench.text import days, iso

# --- Years in a question: 1993, the 1990s, 90年代, before, after, since, between. Bounds are inclusive ---

NEAR_DATE = 300
"""How many characters around a time say something of it: so a long text is read in linear time."""


class Time(NamedTuple):
    """``text[start:end]`` speaks of the years ``first`` to ``last``, None for open; ``exact``: no before or after."""

    start: int
    end: int
    first: int | None
    last: int | None
    exact: bool


class _DateAtom(NamedTuple):
    start: int
    end: int
    first: int
    last: int


_ZH_DIGITS = {sign: str(value) for value, signs in enumerate(["〇零○", *"一二三四五六七八九"]) for sign in signs}
_DECADES = ["twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties"]
_PARTS = {
    **dict.fromkeys(["early", "初", "早", "前"], (0, 3)),
    **dict.fromkeys(["mid", "中"], (4, 6)),
    **dict.fromkeys(["late", "后", "晚", "末"], (6, 9)),
}

_ATOM = re.compile(
    rf"""
      (?:(?P<part>early|mid|late)[ -]+)?(?:the[ ])?
      (?:(?<!\w)['’]?(?P<decade>(?:18|19|20)?\d0)['’]?s|(?P<named>{"|".join(_DECADES)}))\b
    | (?P<age>上个?世纪|20世纪|二十世纪|21世纪|二十一世纪|本世纪)?
      (?P<zh_decade>[一二三四五六七八九]十|(?:18|19|20)?\d0)年代(?P<zh_part>初期?|早期|前期|中期?|后期|晚期|末期?)?
    | (?P<century>\b(?:21st|20th)[ ]century\b|\bthis[ ]century\b|上个?世纪
      |(?:21|二十一|本|新)世纪|(?:20|二十)世纪)
    | (?P<zh_year>[一二][〇零○一二三四五六七八九]{{3}})年(?!代)
    | (?<![\d.,$£€])(?P<year>1[89]\d\d|20\d\d)(?:年(?!代)|(?![\d年.]\d|\d|['’]?s\b
      |\s*(?:minutes|people|dollars|euros|km|meters|metres|miles|feet|米|人|万|元|美元|分钟)))
    """,
    re.VERBOSE | re.IGNORECASE,
)

_BEFORE = {  # what stands before the atom, by what it does
    "after": r"\bafter|\bpost|\blater than|\bnewer than|\bmore recent than|\bpast|晚于",
    "since": r"\bsince|\bin or after|\bnot? (?:earlier|older) than|\bstarting(?: in| from)?|\bas of|不早于|自从?",
    "before": r"\bbefore|\bprior to|\bearlier than|\bolder than|\bpre|早于",
    "until": r"\buntil|\btill|\bup to|\bup until|\bnot? later than|\bin or before|不晚于|截至",
}
_AFTER = {  # what stands after it; 及以后 comes before 以后
    "since": r"\s*(?:or|and) (?:later|after|newer|onwards?|beyond)\b(?!\s*\d)|\s*onwards?\b|\s+on\b(?=\W*$|\s*[,.;?])"
    r"|\s*(?:以来|起|开始|至今|到现在|[及或][以之]后|往后)",
    "until": r"\s*(?:or|and) (?:earlier|before|older)\b(?!\s*\d)|\s*(?:[及或][以之]前|为止|止)",
    "after": r"\s*(?:以后|之后|过后|后(?!期|来|半))",
    "before": r"\s*(?:以前|之前|前(?!期|半))",
}
_JOIN = re.compile(r"\s*(?:-|–|—|~|～|\bto\b|\band\b|\bthrough\b|\buntil\b|\btill\b|到|至|和|与|跟)\s*(?:the )?$", re.I)
_PLAIN_JOIN = re.compile(r"\s*(?:and|和|与|跟)\s*", re.I)


def times(text: str) -> list[Time]:
    """The times of a text, in its order.

    >>> [time[2:4] for time in times("after 2005, 90年代, between 1990 and 2000")]
    [(2006, None), (1990, 1999), (1990, 2000)]
    """
    found: list[Time] = []
    atoms = list(_atoms(text))
    while atoms:
        atom = atoms.pop(0)
        if atoms and _joined_dates(text, atom, atoms[0]):
            last = atoms.pop(0)
            found.append(Time(_reach_back(text, atom.start), last.end, atom.first, last.last, False))
        else:
            found.append(_bounded(text, atom))
    return found


def years(text: str) -> list[tuple[int, int, int, int]]:
    """``(start, end, first, last)`` of each year, decade and century that a text names."""
    return [tuple(atom) for atom in _atoms(text)]  # type: ignore[misc]


def _atoms(text: str) -> Iterator[_DateAtom]:
    for match in _ATOM.finditer(text):
        said = match.groupdict()
        if said["decade"] or said["named"]:
            decade = _named_decade(said["named"]) if said["named"] else _decade(said["decade"])
            first, last = _PARTS[said["part"].lower()] if said["part"] else (0, 9)
            yield _DateAtom(*match.span(), decade + first, decade + last)
        elif said["zh_decade"]:
            decade = _decade(said["zh_decade"], said["age"] or "")
            first, last = _PARTS[said["zh_part"][0]] if said["zh_part"] else (0, 9)
            yield _DateAtom(*match.span(), decade + first, decade + last)
        elif said["century"]:
            old = re.match(r"20|二十世|上", said["century"])
            yield _DateAtom(*match.span(), *((1901, 2000) if old else (2001, 2100)))
        else:
            year = int(said["year"] or "".join(_ZH_DIGITS[sign] for sign in said["zh_year"]))
            yield _DateAtom(*match.span(), year, year)


def _named_decade(word: str) -> int:
    return 1920 + 10 * _DECADES.index(word.lower())


def _decade(written: str, age: str = "") -> int:
    """The first year of "90", "1990" or "九十"; a bare 10 or 20 is of this century, and so is a bare 00."""
    if written[-1] == "十":
        written = _ZH_DIGITS[written[0]] + "0"
    if len(written) == 4:
        return int(written)
    this_century = re.match(r"21|二十一|本", age) if age else int(written) < 30
    return (2000 if this_century else 1900) + int(written)


def _joined_dates(text: str, first: _DateAtom, second: _DateAtom) -> bool:
    between = text[first.end : second.start]
    if not _JOIN.fullmatch(between) or second.first < first.first:
        return False
    if not _PLAIN_JOIN.fullmatch(between):
        return True
    return bool(
        re.search(r"\bbetween\s+(?:the\s+)?$|介于$|在$", text[: first.start][-NEAR_DATE:], re.I)
        or re.match(r"年?(?:之间|间)", text[second.end :])
    )


def _bounded(text: str, atom: _DateAtom) -> Time:
    before, after = text[: atom.start][-NEAR_DATE:], text[atom.end : atom.end + NEAR_DATE]
    for does, pattern in _AFTER.items():
        match = re.match(pattern, after, re.I)
        if match:
            return _apply(does, _reach_back(text, atom.start), atom.end + match.end(), atom)
    said = [
        (re.search(rf"(?:{pattern})[\s-]*(?:the )?(?:year )?$", before, re.I), does)
        for does, pattern in _BEFORE.items()
    ]
    matches = [(match.start(), does) for match, does in said if match]
    if matches:  # the longest: "no later than" also ends in "later than"
        start, does = min(matches)
        start += atom.start - len(before)
        return _apply(does, start, atom.end, atom)
    return Time(_reach_back(text, atom.start), atom.end, atom.first, atom.last, True)


def _apply(does: str, start: int, end: int, atom: _DateAtom) -> Time:
    bounds: dict[str, tuple[int | None, int | None]] = {
        "after": (atom.last + 1, None),
        "since": (atom.first, None),
        "before": (None, atom.first - 1),
        "until": (None, atom.last),
    }
    return Time(start, end, *bounds[does], exact=False)


def _reach_back(text: str, start: int) -> int:
    """Where the phrase begins: "in the", "from", "between" belong to the time."""
    match = re.search(
        r"(?:\b(?:in|from|of|during|between|made in)\s+(?:the\s+)?(?:year\s+)?|从|在|自)$",
        text[max(0, start - NEAR_DATE) : start],
        re.I,
    )
    return match.start() + max(0, start - NEAR_DATE) if match else start


NEAR = 40
"""Characters around a number that say something of it."""
_DIGITS = {
    sign: value
    for value, signs in enumerate(["零〇", "一", "二两", "三", "四", "五", "六", "七", "八", "九"])
    for sign in signs
}
_TENS = {"十": 10, "百": 100, "千": 1000}
_WORDS = {
    word: value
    for value, word in enumerate(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1)
}
_NUMBER = re.compile(
    rf"""(?<![a-z0-9_.-])(?P<sign>[$€£¥￥])?\s?
    (?:(?P<number>\d[\d,]*(?:\.\d+)?)|(?P<word>{"|".join(_WORDS)})\b|(?P<zh>[零〇一二两三四五六七八九十百千]+)(?=[万亿元个人部小分公天年月块%]|百万|千万|\W|$))
    \s?(?P<scale>百万|千万|万|亿|k(?![a-z])|thousand|million|m(?![a-z])|bn(?![a-z])|billion)?
    \s?(?P<unit>%|[a-zµ]+|美元|欧元|人民币|公斤|千克|公里|分钟|小时|[\u4e00-\u9fff])?""",
    re.VERBOSE,
)
_SCALES = {"k": 1e3, "thousand": 1e3, "million": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9}
_SCALES |= {"千": 1e3, "万": 1e4, "百万": 1e6, "千万": 1e7, "亿": 1e8}
_MONTH = re.compile(
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?,? (?:1[5-9]|20)\d\d\b|(?:1[5-9]|20)\d\d"
    r"(?:年|[-/.])(?:1[0-2]|0?[1-9])(?:月|(?![\d-]))"
)


class Amount(NamedTuple):
    """``text[start:end]`` compares with ``value``: a number, an ISO date or two of them; ``op`` may be ""."""

    start: int
    end: int
    op: Op | str
    value: float | str | list[float | str]
    unit: str = ""
    scaled: bool = False
    tail: int = 0
    """Where its unit ends."""


class _Atom(NamedTuple):
    start: int
    end: int
    first: float | str
    last: float | str
    unit: str = ""
    scaled: bool = False
    tail: int = 0


def dates(text: str) -> list[Amount]:
    """The dates of a folded text, in its order.

    >>> [one[2:4] for one in dates("after 2005, 90年代, from march 2012 to 2016-07-01, 2019年以来")]
    [('gt', '2005'), ('between', ['1990', '1999']), ('between', ['2012-03', '2016-07-01']), ('ge', '2019')]
    """
    return list(_compared(text, sorted(_dates(text)), "dates"))


def _dates(text: str) -> Iterator[_Atom]:
    for start, end, day in days(text):
        if day.year:
            said = f"{day.year}-{day.month:02}-{day.day:02}"
            yield _Atom(start, end, said, said)
            text = text[:start] + "_" * (end - start) + text[end:]
    for match in _MONTH.finditer(text):
        if said := iso(match.group()):
            yield _Atom(*match.span(), said, said)
            text = text[: match.start()] + "_" * len(match.group()) + text[match.end() :]
    for start, end, first, last in years(text):
        before = text[max(0, start - NEAR) : start]
        if not any(
            re.search(rf"(?:{ways('compare')[how]})\s*$", before) for how in ("more", "less", "at_least", "at_most")
        ):
            yield _Atom(start, end, str(first), str(last))


def numbers(text: str) -> list[Amount]:
    """The numbers of a folded text, in its order; dates are to be blotted out before.

    >>> [one[2:5] for one in numbers("over 3 million eur, 不到一百万, between 5 and 7 kg, 10人以上")]
    [('gt', 3000000.0, 'eur'), ('lt', 1000000.0, ''), ('between', [5.0, 7.0], 'kg'), ('ge', 10.0, '人')]
    """
    return list(_compared(text, list(_numbers(text)), "compare"))


def whole(text: str) -> int | None:
    """A small whole number in digits or in words of either language."""
    return int(text) if text.isdecimal() else _WORDS.get(text) or _chinese(text)


def _numbers(text: str) -> Iterator[_Atom]:
    for match in _NUMBER.finditer(text):
        if match["number"]:
            value = float(match["number"].rstrip(",").replace(",", ""))
        else:
            value = float(_WORDS[match["word"]] if match["word"] else _chinese(match["zh"]) or 0)
        scale, unit = match["scale"] or "", match["unit"] or ""
        if unit and (unit in "到至和与的以及或内之间" or re.fullmatch("and|or|to|in|of|by|is|are|with|as|on", unit)):
            unit = ""
        end = match.end("scale") if scale else max(match.end("number"), match.end("word"), match.end("zh"))
        value *= _SCALES.get(scale, 1.0)
        tail = match.end() if unit else end
        yield _Atom(match.start(), end, value, value, unit or match["sign"] or "", bool(scale), tail)


def _chinese(text: str) -> int | None:
    """一百二十 -> 120."""
    if not text or any(sign not in _DIGITS and sign not in _TENS for sign in text):
        return None
    total, digit = 0, 0
    for sign in text:
        if sign in _TENS:
            total, digit = total + (digit or 1) * _TENS[sign], 0
        else:
            digit = _DIGITS[sign]
    return total + digit


def _compared(text: str, atoms: list[_Atom], section: str) -> Iterator[Amount]:
    atoms = list(atoms)
    while atoms:
        atom = atoms.pop(0)
        before = text[max(0, atom.start - NEAR) : atom.start]
        behind = text[atom.end : atom.end + NEAR]
        second, tail = atoms[0] if atoms else None, max(atom.end, atom.tail)
        if second and any(_joined(before, text[place : second.start], section) for place in (atom.end, tail)):
            atoms.pop(0)
            opened = re.search(r"(?:\b(?:between|from|in)\s+(?:the )?|介于|在|从|自)$", before)
            closed = re.match(r"年?(?:之间|间|为止)", text[second.end :])
            first = atom.first
            if second.scaled and not atom.scaled and isinstance(first, float) and isinstance(second.last, float):
                first *= next((size for size in (1e4, 1e3, 1e6, 1e8) if first * size <= second.last), 1.0)  # 5到8万
            start = atom.start - (len(opened.group()) if opened else 0)
            end = second.end + (closed.end() if closed else 0)
            yield Amount(
                start,
                end,
                "between",
                [first, second.last],
                second.unit or atom.unit,
                second.scaled,
                max(end, second.tail),
            )
            continue
        op, start, end = _operator(before, behind, atom.start, atom.end, section)
        if not op and tail > atom.end:
            op, start, end = _operator(before, text[tail : tail + NEAR], atom.start, tail, section)
            end = end if op else atom.end
        if op in ("", "eq") and atom.first != atom.last:
            yield Amount(start, end, "between", [atom.first, atom.last], tail=end)
        else:
            value = atom.last if op in ("gt", "le") else atom.first
            kind = op or ("eq" if section == "dates" else "")
            yield Amount(start, end, kind, value, atom.unit, atom.scaled, max(end, tail))


def _joined(before: str, between: str, section: str) -> bool:
    if re.fullmatch(r"\s*(?:-|–|—|~|to|through|until|till|到|至)\s*(?:the )?", between):
        return True
    plain = re.fullmatch(r"\s*(?:and|和|与|跟)\s*(?:the )?", between)
    return bool(plain and re.search(r"\bbetween\s+(?:the\s+)?$|介于$|在$", before))


_OPS: dict[str, Op] = {
    "at_least": "ge", "at_most": "le", "more": "gt", "less": "lt",
    "after": "gt", "since": "ge", "before": "lt", "until": "le",
}  # fmt: skip


def _operator(before: str, behind: str, start: int, end: int, section: str) -> tuple[str, int, int]:
    """What compares with it, and where that begins and ends; the longest words win: "no later than", 及以上."""
    names = [name for name in _OPS if name in ways(section)]
    after = [
        (match.end(), name)
        for name in names
        if f"{name}_behind" in ways(section) and (match := way(section, f"{name}_behind").match(behind))
    ]
    if after:
        size, name = max(after)
        return _OPS[name], start, end + size
    led = [
        (match.start(), name)
        for name in names
        if (match := re.search(rf"(?:{ways(section)[name]})\s*(?:about |the |a |an |year |了|约)*$", before))
    ]
    if led:
        at, name = min(led)
        return _OPS[name], start - len(before) + at, end
    stands = (
        re.search(r"\b(?:in|of|on|from|during) (?:the )?(?:year )?$|[在于]$", before) if section == "dates" else None
    )
    return "", start - (len(stands.group()) if stands else 0), end
