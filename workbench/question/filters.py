"""What a question asks of documents' typed fields: years, director, cast, genre, country.

A person filters by the role that the words give ("starring", 导演的), or else by the role under which the knowledge
base has documents of them. What is negated ("not a comedy", 不要恐怖片) is no filter: filters only ever include.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from workbench.knowledge import vocabulary
from workbench.question.language import FILM_EN, FILM_ZH, NEAR, patterns
from workbench.question.names import Named, is_person
from workbench.question.times import times, years
from workbench.state import Filters
from workbench.text import CJK

Role = Literal["director", "cast"]
ROLES: tuple[Role, ...] = ("cast", "director")


class Asked(NamedTuple):
    """``text[start:end]`` asks that ``field`` be ``value``; the value of ``years`` is a range as ``Filters``."""

    start: int
    end: int
    field: str
    value: str | Filters


_TOPICAL = frozenset(
    {"War", "Family", "Crime", "Political", "Sports", "Dance", "Independent", "Legal", "Historical", "Performance"}
    | {"Teen", "Disaster", "Spy", "Biography", "Drama", "Musical", "Live Action", "Suspense", "Mystery", "Noir"}
    | {"Supernatural", "Short", "Silent", "Erotic"}
)
"""Genres whose name is also a subject: "a film about war" has a theme, "a war film" has a genre."""


def extract_filters(message: str, names: Sequence[Named] = ()) -> Filters:
    """The filters of a question.

    >>> extract_filters("List comedies from the 1990s")
    {'year_from': 1990, 'year_to': 1999, 'genre': 'Comedy'}
    """
    asked = asked_fields(message, names)
    filters = years(times(blank(message, names)))
    for ask in reversed(asked):
        if ask.field == "director":
            filters["director"] = str(ask.value)
        elif ask.field == "cast":
            filters["cast"] = str(ask.value)
        elif ask.field == "country":
            filters["country"] = str(ask.value)
    genres = [str(ask.value) for ask in asked if ask.field == "genre"]
    if genres:
        filters["genre"] = genres[-1]  # the head of "romantic comedy" is the comedy
    return filters


def asked_fields(message: str, names: Sequence[Named] = ()) -> list[Asked]:
    """Every part of a question that asks something of a field, in its order."""
    plain = blank(message, names)
    found = [Asked(t.start, t.end, "years", years([t])) for t in times(plain)]
    found += _spoken(plain, "genre") + _spoken(plain, "country")
    for named in names:
        role = _role(message, named)
        if role:
            found.append(Asked(named["start"], named["end"], role, named["name"]))
    return sorted(found)


def blank(message: str, names: Iterable[Named]) -> str:
    """The message with its names blotted out, at the same length: the 2049 of a title is no year.

    >>> lee = Named(surface="Ali", start=5, end=8, name="Ali", type="film", entity_id="", bases=[], roles=[])
    >>> blank("like Ali?", [lee])
    'like ___?'
    """
    for named in names:
        message = message[: named["start"]] + "_" * (named["end"] - named["start"]) + message[named["end"] :]
    return message


def _role(message: str, named: Named) -> Role | None:
    """The field that a name filters, if any."""
    if not is_person(named) and (named["bases"] or named["name"] != named["surface"]):
        return None  # a known title; or a quoted one
    before, after = message[: named["start"]], message[named["end"] :]
    if _says("like", before):
        return None
    for role in ROLES:
        if _says(f"{role}_before", before) or _follows(f"{role}_after", after):
            return role
    works = _says("works_before", before) or _follows("works_after", after)
    return next((role for role in ROLES if works and named["roles"][:1] == [role]), None)


def _says(kind: str, text: str) -> bool:
    return patterns("roles.txt")[kind].search(text[-NEAR:]) is not None


def _follows(kind: str, text: str) -> bool:
    return patterns("roles.txt")[kind].match(text[:NEAR]) is not None


def _spoken(plain: str, field: vocabulary.Kind) -> list[Asked]:
    """The genres or countries that are spoken of, none of them negated."""
    return [
        Asked(start, end, field, value)
        for start, end, value in vocabulary.find(field, plain)
        if not _says("negated", plain[:start])
        and (value not in _TOPICAL or _modifies_films(plain[start:end], plain[end:]))
    ]


def _modifies_films(word: str, after: str) -> bool:
    """Whether a genre's word stands before films: "war films", "crime and war movies", 家庭片, 家庭题材的电影."""
    if CJK.search(word):
        return re.match(rf"[\u4e00-\u9fff]{{0,2}}?(?:题材|类型|类)?的?(?:{FILM_ZH}|喜剧)", after) is not None
    return bool(re.fullmatch(FILM_EN, word, re.I) or re.match(rf"(?:[ -]\w+){{0,2}}[ -]{FILM_EN}\b", after, re.I))
