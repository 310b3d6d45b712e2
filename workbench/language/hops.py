"""Whether a question asks of something that it describes and does not name: a bridge to what holds the answer.

"Who wrote X?" is one step; "Where was the author of X born?" is two, since nothing about X says it. Told by the words
alone: a relation within a relation, a clause that describes, a kinship that goes over somebody else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
def _bridges(roles: frozenset[str], works: frozenset[str]) -> list[re.Pattern[str]]:
    """The patterns of ``bridges.txt``, over a question in which each name is one sign."""
    verbs = {word for word in roles if word.endswith(("ed", "ing"))}
    own = {"ROLE": roles - verbs, "VERB": verbs, "DOCUMENT": works}
    said = {name: "|".join(map(re.escape, sorted(words, key=len, reverse=True))) for name, words in own.items()}
    said |= {"NAME": _NAME, "NOUN": _NOUN}
    return [
        re.compile(re.sub("NAME|NOUN|ROLE|VERB|DOCUMENT", lambda m: said[m[0]] or "(?!)", line)) for line in _lines()
    ]


def is_bridge(question: str, names: Sequence[NameRead], lexicon: Sequence[Mapping[str, Sequence[str]]] = ()) -> bool:
    """Whether it takes the answer to one question to ask the next.

    Args:
        question: the question.
        names: those in it.
        lexicon: the words of the corpus (``KnowledgeBase.lexicon``).

    >>> is_bridge("Who is the child of the performer of the song?", []), is_bridge("Who is the author?", [])
    (True, False)
    >>> is_bridge("夜航灯的作者的妻子是谁？", []), is_bridge("夜航灯的作者是谁？", [])
    (True, False)
    """
    roles, works = _told_of(lexicon, [], ["Person"]), _told_of(lexicon, ["Document"])
    masked = mask(question, names).replace("’", "'")
    if _KINSHIP.search(masked):
        return True
    return not _SINGLE.match(masked) and any(pattern.search(masked) for pattern in _bridges(roles, works))


def _told_of(lexicon: Sequence[Mapping[str, Sequence[str]]], *types: Sequence[str]) -> frozenset[str]:
    """The words of the groups that tell of these types."""
    groups = [group for group in lexicon if group["of"] in types]
    return frozenset(word for group in groups for language in ("en", "zh") for word in group.get(language, ()))


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
