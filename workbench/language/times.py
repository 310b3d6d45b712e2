"""Years in a question: 1993, the 1990s, 90年代, before, after, since, between. Bounds are inclusive.

A time is an atom (a year, a decade, a century) with what stands around it. "After 2005" begins in 2006, "since 2005" in
2005; 以后 is "after" and 以来 is "since".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

NEAR = 300
"""How many characters around a time say something of it: so a long text is read in linear time."""


class Time(NamedTuple):
    """``text[start:end]`` speaks of the years ``first`` to ``last``, None for open; ``exact``: no before or after."""

    start: int
    end: int
    first: int | None
    last: int | None
    exact: bool


class _Atom(NamedTuple):
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
        if atoms and _joined(text, atom, atoms[0]):
            last = atoms.pop(0)
            found.append(Time(_reach_back(text, atom.start), last.end, atom.first, last.last, False))
        else:
            found.append(_bounded(text, atom))
    return found


def years(text: str) -> list[tuple[int, int, int, int]]:
    """``(start, end, first, last)`` of each year, decade and century that a text names."""
    return [tuple(atom) for atom in _atoms(text)]  # type: ignore[misc]


def _atoms(text: str) -> Iterator[_Atom]:
    for match in _ATOM.finditer(text):
        said = match.groupdict()
        if said["decade"] or said["named"]:
            decade = _named_decade(said["named"]) if said["named"] else _decade(said["decade"])
            first, last = _PARTS[said["part"].lower()] if said["part"] else (0, 9)
            yield _Atom(*match.span(), decade + first, decade + last)
        elif said["zh_decade"]:
            decade = _decade(said["zh_decade"], said["age"] or "")
            first, last = _PARTS[said["zh_part"][0]] if said["zh_part"] else (0, 9)
            yield _Atom(*match.span(), decade + first, decade + last)
        elif said["century"]:
            old = re.match(r"20|二十世|上", said["century"])
            yield _Atom(*match.span(), *((1901, 2000) if old else (2001, 2100)))
        else:
            year = int(said["year"] or "".join(_ZH_DIGITS[sign] for sign in said["zh_year"]))
            yield _Atom(*match.span(), year, year)


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


def _joined(text: str, first: _Atom, second: _Atom) -> bool:
    between = text[first.end : second.start]
    if not _JOIN.fullmatch(between) or second.first < first.first:
        return False
    if not _PLAIN_JOIN.fullmatch(between):
        return True
    return bool(
        re.search(r"\bbetween\s+(?:the\s+)?$|介于$|在$", text[: first.start][-NEAR:], re.I)
        or re.match(r"年?(?:之间|间)", text[second.end :])
    )


def _bounded(text: str, atom: _Atom) -> Time:
    before, after = text[: atom.start][-NEAR:], text[atom.end : atom.end + NEAR]
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


def _apply(does: str, start: int, end: int, atom: _Atom) -> Time:
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
        text[max(0, start - NEAR) : start],
        re.I,
    )
    return match.start() + max(0, start - NEAR) if match else start
