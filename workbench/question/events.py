"""A question of two events, each told in its own words: one before the other, or so long after it.

"Did he thank her before she asked?" is answered by two places of a text, and no search for all of its words finds both.
Told by the words alone: what joins two clauses, each with somebody or something that it is about.
"""

from __future__ import annotations

import re

_WHO = r"(?:he|she|it|they|we|you|i|his|her|its|their|my|our|[a-z]+ing|(?-i:[A-Z])[\w'’.-]*)\b"
_WHAT = r"(?:the|this|that|an?)\b"
_ASKING = r"(?:did|does|do|was|were|is|are|has|have|had)\b"
_ENGLISH = [
    re.compile(rf".*?\bbetween\s(?P<first>{_WHO}.+?)\sand\s(?P<second>{_WHO}\s.*?\w+ing\b.+)", re.I | re.S),
    re.compile(rf"\W*{_ASKING}\s(?P<first>.+)\s(?:before|after)\s(?P<second>{_WHO}.+)", re.I | re.S),
    re.compile(rf"\W*{_ASKING}\s(?P<first>.+?)\s(?:before|after)\s(?P<second>{_WHAT}.+)", re.I | re.S),
]
_CHINESE = re.compile(r"(?P<before>.*?)(?:是在|在|是)(?P<second>.{2,}?)(?:之前|之后|以前|以后)(?P<after>.*)", re.S)
_YES_OR_NO_ZH = re.compile("[吗嗎][？?]?\\W*$|是否|有没有")
_ENDS_ZH = re.compile(r"^[\s，,。]+|[\s，,。？?吗呢的]+$")
_LEAST = 4
"""Signs that tell an event at least."""
_LONGEST = 600
"""A longer text is not one question of two events, and the patterns are not linear."""


def events(question: str) -> tuple[str, ...]:
    """The two events, as the question tells them; nothing when it is not of two.

    >>> events("Did Ann thank Bo for the lamp before she asked Cy about the roof?")
    ('Ann thank Bo for the lamp', 'she asked Cy about the roof')
    >>> events("Are more than 7 days between Ann buying a lamp and Bo mending the roof?")
    ('Ann buying a lamp', 'Bo mending the roof')
    >>> events("小安买灯是在小波修屋顶之前吗？")
    ('小安买灯', '小波修屋顶')
    >>> events("Who thanked Bo before he asked?"), events("Was she born after 1990?"), events("2015年之前叫什么？")
    ((), (), ())
    """
    if len(question) > _LONGEST:
        return ()
    for pattern in _ENGLISH:
        if match := pattern.match(question):
            return _both(match["first"], match["second"])
    if _YES_OR_NO_ZH.search(question) and (match := _CHINESE.match(question)):
        return _both(f"{match['before']}{_ENDS_ZH.sub('', match['after'])}", match["second"])
    return ()


def _both(first: str, second: str) -> tuple[str, ...]:
    told = tuple(_ENDS_ZH.sub("", text).strip(" ?.!") for text in (first, second))
    return told if min(map(len, told)) >= _LEAST else ()
