"""Genres and countries in both languages: ``喜剧`` is ``Comedy``, ``Taiwanese`` and ``台湾`` are ``Taiwan``.

The words are in ``vocabulary.json``; the first Chinese word of an entry is the one to show.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Literal

from workbench.text import CJK, fold

Kind = Literal["genre", "country"]
KINDS: tuple[Kind, ...] = ("genre", "country")
_CASED = ("US",)  # "us" is a word of its own


@cache
def _entries() -> dict[str, dict[str, dict[str, list[str]]]]:
    return json.loads(files("workbench.knowledge").joinpath("vocabulary.json").read_text(encoding="utf-8"))


@cache
def _by_word(kind: Kind) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, words in _entries()[kind].items():
        for word in [name, *words["en"], *words["zh"]]:
            found.setdefault(fold(word), name)
    return found


def canonical(kind: Kind, word: str) -> str | None:
    """The English name that a word stands for, or None.

    >>> canonical("genre", "喜剧片"), canonical("country", "taiwanese"), canonical("genre", "banana")
    ('Comedy', 'Taiwan', None)
    """
    word = fold(word)
    known = _by_word(kind)
    return known.get(word) or known.get(re.sub(r"(电影|影片|片|类|(?<=.)\s*(films?|movies?))$", "", word))


def names(kind: Kind, name: str) -> list[str]:
    """Every word for a canonical name, itself first; just itself when it is not known.

    >>> names("genre", "Romance")[:3], names("genre", "Cooking")
    (['Romance', '爱情', '浪漫'], ['Cooking'])
    """
    words = _entries()[kind].get(name, {"zh": [], "en": []})
    return [name, *words["zh"], *words["en"]]


def display(kind: Kind, name: str, language: str) -> str:
    """The name as a reader of ``language`` (``zh`` or ``en``) knows it; as given when it is not known.

    >>> display("country", "United States", "zh"), display("country", "United States", "en")
    ('美国', 'United States')
    """
    words = _entries()[kind].get(name)
    return words["zh"][0] if words and language == "zh" and words["zh"] else name


@cache
def _pattern(kind: Kind) -> re.Pattern[str]:
    words = sorted(_by_word(kind), key=lambda word: (-len(word), word))
    return re.compile(
        "|".join(re.escape(w) if CJK.match(w) else rf"(?<![a-z0-9]){re.escape(w)}(?![a-z0-9])" for w in words)
    )


def find(kind: Kind, text: str) -> list[tuple[int, int, str]]:
    """``(start, end, canonical name)`` of each genre or country in a text, in the order of the text.

    >>> text = "List American comedies; not what you tell us"
    >>> [(text[a:b], name) for a, b, name in find("country", text) + find("genre", text)]
    [('American', 'United States'), ('comedies', 'Comedy')]
    >>> find("genre", "推荐几部喜剧片")
    [(4, 6, 'Comedy')]
    >>> find("genre", "推薦幾部喜劇片")
    [(4, 6, 'Comedy')]
    """
    lowered = "".join(f if len(f := fold(c)) == 1 else c for c in text)  # place for place
    spans = [(m.start(), m.end(), _by_word(kind)[m.group()]) for m in _pattern(kind).finditer(lowered)]
    cased = {word.lower(): word for word in _CASED}
    return [s for s in spans if text[s[0] : s[1]] == cased.get(lowered[s[0] : s[1]], text[s[0] : s[1]])]


def words_of(section: Literal["relation", "asking"]) -> dict[str, list[str]]:
    """What a word says: a kind of relation by all its words, or a way of asking.

    >>> "导演" in words_of("relation")["direct"], "who" in words_of("asking")["person"]
    (True, True)
    """
    own = section == "relation"
    return {name: [*([name] if own else []), *words["en"], *words["zh"]] for name, words in _entries()[section].items()}
