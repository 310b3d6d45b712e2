"""What a question asks of documents' typed fields: years, director, cast, genre, country.

A person filters by the role that the words give ("starring", 导演的), or else by the role under which the knowledge base has
documents of them. What is negated ("not a comedy", 不要恐怖片) is no filter, since filters only ever include.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from workbench.knowledge import vocabulary
from workbench.question.intent import FILM_EN, FILM_ZH
from workbench.question.names import Named, is_person
from workbench.question.times import times, years
from workbench.state import Filters
from workbench.text import CJK

Role = Literal["director", "cast"]


class Asked(NamedTuple):
    """``text[start:end]`` asks that ``field`` be ``value``; the value of ``years`` is a range as ``Filters``."""

    start: int
    end: int
    field: str
    value: str | Filters


_LIKE = r"(?:\blike|\bsimilar to|\bother than|\bexcept|\bbesides|\bthan|类似于?|像|跟|除了|不要|不是|不看)[\s《]*$"
_NEGATED = r"(?:\bnot?|\bnon-?|\bwithout|\bexcept|\bbesides|\bother than|n['’]t|不要|不是|不想看?|除了|别|非|不看|讨厌|hate|dislike)(?:\s+(?:an?|any|the|be|too|more))*\s*$"

_DIRECTOR_BEFORE = (
    r"(?:\b(?:directed|made|helmed|shot|filmed) by|\bdirectors?|\bfilmmaker|导演(?:是|为)?|执导(?:的是)?)\s*$"
)
_DIRECTOR_AFTER = (
    r"(?:\s+(?:has |have |had |ever |also )*(?:direct(?:ed|s)?|ma[dk]es?|helm(?:ed)?|shoot|shot)\b"
    r"|['’]s\s+(?:work as (?:a )?director|directorial)|[^，。,？?]{0,8}?(?:导演|执导|拍|导过|导的|导了|掌镜))"
)
_CAST_BEFORE = (
    r"(?:\bstarring|\bfeaturing|\bstars?|\bactors?|\bactress|\bplayed by|主演(?:是|为)?|演员(?:是|为|有)?)\s*$"
)
_CAST_AFTER = (
    r"(?:\s+(?:has |have |had |ever |also )*(?:star(?:red|s|ring)?|act(?:ed|s)?|appear(?:ed|s)?|plays?|played)\b"
    r"|[^，。,？?导]{0,8}?(?:主演|出演|参演|饰演|演过|演的|演了|领衔))"
)
_WORKS_BEFORE = rf"\b{FILM_EN}(?: \w+){{0,2}} (?:by|of|from|with)\s*$|\bwith\s*$|\bby\s*$|\bdid\s*$"
_WORKS_AFTER = rf"['’]s\s+(?:\w+\s+){{0,3}}{FILM_EN}|\s+(?:\w+\s+){{0,2}}{FILM_EN}\b|['’]s\s*\W*$|的[^，。,？?]{{0,12}}?{FILM_ZH}|的\W*$"

_TOPICAL = frozenset(
    [
        "War",
        "Family",
        "Crime",
        "Political",
        "Sports",
        "Dance",
        "Independent",
        "Legal",
        "Historical",
        "Performance",
        "Teen",
    ]
    + [
        "Disaster",
        "Spy",
        "Biography",
        "Drama",
        "Musical",
        "Live Action",
        "Suspense",
        "Mystery",
        "Supernatural",
        "Short",
    ]
    + ["Silent", "Erotic", "Noir"]
)
"""Genres whose name is also a subject: "a film about war" has a theme, "a war film" has a genre."""


def extract_filters(message: str, names: Sequence[Named] = ()) -> Filters:
    """The filters of a question.

    >>> extract_filters("List comedies from the 1990s")
    {'year_from': 1990, 'year_to': 1999, 'genre': 'Comedy'}
    """
    asked = asked_fields(message, names)
    filters = Filters()
    for ask in asked:
        if isinstance(ask.value, str) and ask.field not in filters:
            filters[ask.field] = ask.value
    genres = [ask.value for ask in asked if ask.field == "genre"]
    if genres:
        filters["genre"] = str(genres[-1])  # the head of "romantic comedy" is the comedy
    found = years(times(blank(message, names)))
    return Filters(**found, **filters)  # type: ignore[typeddict-item]


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
    if not is_person(named) and named["bases"]:
        return None
    before, after = message[: named["start"]], message[named["end"] :]
    if re.search(_LIKE, before, re.I):
        return None
    if re.search(_CAST_BEFORE, before, re.I) or re.match(_CAST_AFTER, after, re.I):
        return "cast"
    if re.search(_DIRECTOR_BEFORE, before, re.I) or re.match(_DIRECTOR_AFTER, after, re.I):
        return "director"
    works = re.search(_WORKS_BEFORE, before, re.I) or re.match(_WORKS_AFTER, after, re.I)
    if works and named["roles"]:
        return "director" if named["roles"][0] == "director" else "cast"
    return None


def _spoken(plain: str, field: vocabulary.Kind) -> list[Asked]:
    """The genres or countries that are spoken of, none of them negated."""
    return [
        Asked(start, end, field, value)
        for start, end, value in vocabulary.find(field, plain)
        if not re.search(_NEGATED, plain[:start], re.I)
        and (value not in _TOPICAL or _modifies_films(plain[start:end], plain[end:]))
    ]


def _modifies_films(word: str, after: str) -> bool:
    """Whether a genre's word stands before films: "war films", "crime and war movies", 家庭片, 家庭题材的电影."""
    if CJK.search(word):
        return re.match(rf"[\u4e00-\u9fff]{{0,2}}?(?:题材|类型|类)?的?(?:{FILM_ZH}|喜剧)", after) is not None
    return bool(re.fullmatch(FILM_EN, word, re.I) or re.match(rf"(?:[ -]\w+){{0,2}}[ -]{FILM_EN}\b", after, re.I))
