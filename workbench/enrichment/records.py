"""TMDB's JSON as films and people, read as what it is: text of strangers, any part of which may be missing or wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.text import clean, fold

_LONG, _SHORT, _MANY = 4_000, 200, 10
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_JOBS = {
    "Director": "directors",
    "Writer": "writers",
    "Screenplay": "writers",
    "Author": "writers",
    "Original Music Composer": "composers",
    "Producer": "producers",
    "Director of Photography": "cinematographers",
}


@dataclass(frozen=True)
class Film:
    """One film; ``people`` has the TMDB id of everybody in its fields, by name."""

    number: int
    title: str
    names: tuple[str, ...]
    fields: Mapping[str, Any]
    overview: str
    people: Mapping[str, int] = field(default_factory=dict)

    @property
    def year(self) -> int | None:
        """Of its release."""
        return self.fields.get("year")


@dataclass(frozen=True)
class Person:
    """One person; ``works``: relation -> ``(TMDB id, title, year)`` of the films."""

    number: int
    name: str
    names: tuple[str, ...]
    fields: Mapping[str, Any]
    biography: str
    works: Mapping[str, tuple[tuple[int, str, int | None], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Hit:
    """One thing of a search: ``kind`` is ``movie`` or ``person``."""

    kind: str
    number: int
    names: tuple[str, ...]
    year: int | None


def key_of(name: str) -> str:
    """What two writings of a name share.

    >>> key_of("Spider-Man: Far From Home") == key_of("spider man far from home"), key_of("臥虎藏龍")
    (True, '卧虎藏龙')
    """
    return "".join(c for c in fold(name) if c.isalnum())


def text(value: Any, most: int = _SHORT) -> str:
    """A text in one line, without what steers a terminal or turns the writing direction; anything else is empty.

    >>> text("  Life\\n of \\u202ePi "), text(["Pi"]), text("x" * 9, 3)
    ('Life of Pi', '', 'xxx')
    """
    return " ".join(_HIDDEN.sub(" ", clean(value[: 4 * most])).split())[:most] if isinstance(value, str) else ""


def number(value: Any) -> int:
    """A whole number that can be an id or an amount; anything else is 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53 else 0


def items(value: Any, name: str = "") -> list[Mapping[str, Any]]:
    """The objects in a list, or in the list of that name in an object; nothing else."""
    if name:
        value = value.get(name) if isinstance(value, dict) else None
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def hits(answer: Mapping[str, Any]) -> list[Hit]:
    """The films and people of a search, in its order."""
    found = []
    for item in items(answer, "results")[:20]:
        kind, tmdb_id = text(item.get("media_type")), number(item.get("id"))
        if kind in ("movie", "person") and tmdb_id:
            names = _distinct(item.get(n) for n in ("title", "original_title", "name", "original_name"))
            found.append(Hit(kind, tmdb_id, names, _year(item.get("release_date"))))
    return found


def film(answer: Mapping[str, Any], language: str = "en") -> Film | None:
    """A film with its credits and other titles, amounts in words of a language; None when it has no id or title."""
    tmdb_id, title = number(answer.get("id")), text(answer.get("title")) or text(answer.get("original_title"))
    if not tmdb_id or not title:
        return None
    credits = answer.get("credits")
    crew = [p for p in items(credits, "crew") if text(p.get("job")) in _JOBS]
    cast = items(credits, "cast")[:_MANY]
    roles: dict[str, list[Any]] = {name: [] for name in ("directors", "cast", "writers")}
    for person in crew:
        roles.setdefault(_JOBS[text(person.get("job"))], []).append(person.get("name"))
    roles["cast"] = [person.get("name") for person in cast]
    fields: dict[str, Any] = {
        "year": _year(answer.get("release_date")),
        **{role: list(_distinct(names))[:_MANY] for role, names in roles.items()},
        "genres": _named(answer, "genres"),
        "countries": _named(answer, "production_countries"),
        "languages": _named(answer, "spoken_languages"),
        "studios": _named(answer, "production_companies"),
        **_amounts(answer, language),
    }
    return Film(
        tmdb_id,
        title,
        _distinct([title, answer.get("original_title"), *_other_titles(answer)]),
        {name: value for name, value in fields.items() if value},
        text(answer.get("overview"), _LONG),
        {
            text(p.get("name")): number(p.get("id"))
            for p in [*crew, *cast]
            if text(p.get("name")) and number(p.get("id"))
        },
    )


def person(answer: Mapping[str, Any]) -> Person | None:
    """A person with their films; None when there is no id or name."""
    tmdb_id, name = number(answer.get("id")), text(answer.get("name"))
    if not tmdb_id or not name:
        return None
    known = answer.get("also_known_as")
    credits = answer.get("movie_credits")
    directed = [c for c in items(credits, "crew") if text(c.get("job")) == "Director"]
    fields = {"born": text(answer.get("birthday")), "birth_place": text(answer.get("place_of_birth"))}
    return Person(
        tmdb_id,
        name,
        _distinct([name, *(known if isinstance(known, list) else [])])[:_MANY],
        {key: value for key, value in fields.items() if value},
        text(answer.get("biography"), _LONG),
        {"directed_by": _works(directed), "acted_in": _works(items(credits, "cast"))},
    )


def _works(credits: Iterable[Mapping[str, Any]]) -> tuple[tuple[int, str, int | None], ...]:
    """The films of these credits, the newest first; those to come, without a year, last."""
    found = {
        number(c.get("id")): (number(c.get("id")), text(c.get("title")), _year(c.get("release_date"))) for c in credits
    }
    known = [work for work in found.values() if work[0] and work[1]]
    return tuple(sorted(known, key=lambda work: (-(work[2] or 0), work[0]))[: 2 * _MANY])


def _amounts(answer: Mapping[str, Any], language: str) -> dict[str, Any]:
    """What is counted, in words: minutes, dollars, votes."""
    votes, average = number(answer.get("vote_count")), answer.get("vote_average")
    rated = isinstance(average, int | float) and not isinstance(average, bool) and 0 < average <= 10 and votes
    minutes, chinese = number(answer.get("runtime")), language == "zh"
    rating = "{:.1f}/10（TMDB，{:,} 票）" if chinese else "{:.1f}/10 (TMDB, {:,} votes)"
    return {
        "runtime": f"{minutes}{' 分钟' if chinese else ' minutes'}" if minutes else "",
        "budget": _dollars(answer.get("budget")),
        "revenue": _dollars(answer.get("revenue")),
        "rating": rating.format(average, votes) if rated else "",
    }


def _dollars(value: Any) -> str:
    return f"${number(value):,}" if number(value) else ""


def _named(answer: Mapping[str, Any], name: str) -> list[str]:
    return list(_distinct(item.get("name") for item in items(answer, name)))[:_MANY]


def _other_titles(answer: Mapping[str, Any]) -> list[Any]:
    alternative = [item.get("title") for item in items(answer.get("alternative_titles"), "titles")]
    data = [item.get("data") for item in items(answer.get("translations"), "translations")]
    return [*alternative, *(item.get("title") for item in data if isinstance(item, dict))]


def _distinct(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(said for value in values if (said := text(value))))


def _year(value: Any) -> int | None:
    match = re.match(r"(1[89]\d\d|20\d\d)-", value) if isinstance(value, str) else None
    return int(match[1]) if match else None
