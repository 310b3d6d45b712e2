"""Whether a question asks of something that it describes and does not name: a bridge to what holds the answer.

"Who directed X?" is one step; "Where was the director of X born?" is two, since nothing about X says it. Told by the
words alone: a relation within a relation, a clause that describes, a kinship that goes over somebody else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from workbench.state import NameRead

PERSON, OTHER = "\ue001", "\ue002"
"""What stands for a person and for any other name in a masked question (private-use characters)."""

_NAME = f"[{PERSON}{OTHER}]"
_NOUN = r"[a-z][\w-]*"
_SINGLE = re.compile(
    rf"^(?:who|what|which {_NOUN}|when|where)(?: (?:is|are|was|were))? (?:the )?(?:{_NOUN} ){{1,3}}of (?:the )?"
    rf"(?:{_NOUN} ){{0,2}}{_NAME}\W*$"
)
_KINSHIP = re.compile(
    r"\b(?:grand(?:father|mother|parent|son|daughter|child|children)s?|\w+-in-law|step-?(?:father|mother|son|daughter)"
    r"|uncle|aunt|nephew|niece|cousin|paternal|maternal)\b"
    "|祖父|祖母|外公|外婆|岳父|岳母|公公|婆婆|儿媳|女婿|继父|继母|继子|叔叔|伯父|舅舅|姑姑|姨妈|侄子|侄女|外甥|孙子|孙女|表兄|堂兄|曾祖"
)
"""Kinship that goes over somebody else."""


@cache
def _bridges() -> list[re.Pattern[str]]:
    """The patterns of ``bridges.txt``, over a question in which each name is one sign."""
    return [re.compile(line.replace("NAME", _NAME).replace("NOUN", _NOUN)) for line in _lines()]


def is_bridge(question: str, names: Sequence[NameRead]) -> bool:
    """Whether it takes the answer to one question to ask the next.

    >>> is_bridge("Who is the child of the performer of the song?", []), is_bridge("Who is the director?", [])
    (True, False)
    >>> is_bridge("夜航灯的导演的妻子是谁？", []), is_bridge("夜航灯的导演是谁？", [])
    (True, False)
    """
    masked = mask(question, names).replace("’", "'")
    if _KINSHIP.search(masked):
        return True
    return not _SINGLE.match(masked) and any(pattern.search(masked) for pattern in _bridges())


def _lines() -> list[str]:
    text = files("workbench.language").joinpath("bridges.txt").read_text(encoding="utf-8")
    return [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


_AROUND_CHINESE = re.compile(
    rf"(?<=[\u4e00-\u9fff])\s+(?=[{PERSON}{OTHER}])|(?<=[{PERSON}{OTHER}])\s+(?=[\u4e00-\u9fff])"
)


def mask(text: str, names: Sequence[NameRead]) -> str:
    """The text in lower case with one sign for each name, so that patterns see the sentence and not the names."""
    parts, at = [], 0
    for name in sorted(names, key=lambda n: n["start"]):
        parts += [text[at : name["start"]].lower(), PERSON if name["type"].lower() == "person" else OTHER]
        at = name["end"]
    return _AROUND_CHINESE.sub("", "".join([*parts, text[at:].lower()]))
