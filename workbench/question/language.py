"""The language files of this package: word lists and patterns, one entry a line, for people to extend."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

PERSON, OTHER = "\ue001", "\ue002"
"""What stands for a person and for any other name in a masked question (private-use characters)."""

NEAR = 300
"""How many characters around a name or a time say something of it: so a long text is read in linear time."""

FILM_EN = (
    r"(?:films?|movies?|pictures?|titles|works?|shows?|series|documentar(?:y|ies)|comed(?:y|ies)|dramas?|thrillers?"
    r"|musicals?|westerns?|romances?|biopics?|sci-?fi)"
)
FILMS_EN = (
    r"(?:films|movies|pictures|titles|works|shows|documentaries|comedies|dramas|thrillers|musicals|westerns|romances"
    r"|biopics|cartoons|filmography)"
)
FILM_ZH = r"(?:电影|影片|片子|作品|剧集|电视剧|纪录片|动画|[喜悲正]剧|[喜悲科动恐惊爱战警剧][\u4e00-\u9fff]{0,4}片|片)"
_SIGNS = {
    "<film>": FILM_EN,
    "<films>": FILMS_EN,
    "<片>": FILM_ZH,
    "<name>": f"[{PERSON}{OTHER}]",
    "<person>": PERSON,
    "<title>": OTHER,
    "<alone>": r"(?!['’]s|的|\w)",
}


def language_file(name: str) -> list[str]:
    """The lines of a file of this package, without comments and blank ones."""
    text = files("workbench.question").joinpath(name).read_text(encoding="utf-8")
    return [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def spelled(pattern: str) -> str:
    """A pattern with its signs (``<film>``, ``<person>``, ...) written out.

    >>> spelled("<film>")[:14]
    '(?:films?|movi'
    """
    return re.sub("|".join(_SIGNS), lambda sign: _SIGNS[sign.group()], pattern)


@cache
def patterns(name: str) -> dict[str, re.Pattern[str]]:
    """A file of lines ``kind pattern``: the lines of one kind are alternatives, and case does not matter."""
    rows: dict[str, list[str]] = {}
    for line in language_file(name):
        kind, pattern = line.split(maxsplit=1)
        rows.setdefault(kind, []).append(spelled(pattern))
    return {kind: re.compile("|".join(f"(?:{line})" for line in lines), re.I) for kind, lines in rows.items()}
