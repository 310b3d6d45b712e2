"""TMDB (themoviedb.org): films and people by name, in the language of the question.

A name is searched for, and a hit counts only where one of its titles is that very name; a year decides between several.
This product uses the TMDB API but is not endorsed or certified by TMDB.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import httpx

from workbench.errors import SettingsError
from workbench.models.wire import (
    LimitReached,
    Patience,
    address,
    bounded,
    patiently,
    read_key,
    redact,
)
from workbench.parts.sources.enrichment import Enriched, Wanted, note, texts
from workbench.ports import Entity, Passage, Relation
from workbench.settings import Settings
from workbench.state import Data, Json, without_empty
from workbench.text import CJK, clean, fold

# --- Records: answers of TMDB as films and people; a field of an unexpected type is empty ---

_LONG, _LIMIT = 4_000, 10
"""Characters of a description; entries of a list."""
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


@dataclass(frozen=True)
class Record:
    """A film or a person: ``kind`` is ``movie`` or ``person``, ``number`` the id.

    The first of ``names`` is shown. A hit of a search has no text, and of the fields only the year.
    """

    kind: str
    number: int
    names: tuple[str, ...]
    fields: Data
    text: str = ""

    @property
    def year(self) -> int | None:
        """Return the year of a film's release."""
        return self.fields.get("year")

    @property
    def place(self) -> str:
        """Return its id in evidence and in the graph."""
        return f"tmdb:{self.kind}/{self.number}"


def name_key(name: str) -> str:
    """Return a key that is equal for two spellings of a name.

    >>> name_key("Spider-Man: Far From Home") == name_key("spider man far from home"), name_key("臥虎藏龍")
    (True, '卧虎藏龙')
    """
    return "".join(c for c in fold(name) if c.isalnum())


def text(value: Any, limit: int = 200) -> str:
    """Return a text in one line, without control and direction characters; "" for any other type.

    >>> text("  Life\\n of \\u202ePi "), text(["Pi"]), text("x" * 9, 3)
    ('Life of Pi', '', 'xxx')
    """
    if isinstance(value, str):
        return " ".join(_HIDDEN.sub(" ", clean(value[: 4 * limit])).split())[:limit]
    return ""


def number(value: Any) -> int:
    """Return a whole number that can be an id or an amount; 0 for anything else."""
    return value if type(value) is int and 0 < value < 2**53 else 0


def items(answer: Any, name: str) -> list[Data]:
    """Return the objects in the list of that name in an object."""
    value = answer.get(name) if isinstance(answer, dict) else None
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def hits(answer: Data) -> list[Record]:
    """Return the films and people of a search, in its order."""
    records = []
    for item in items(answer, "results")[:20]:
        kind = text(item.get("media_type"))
        tmdb_id = number(item.get("id"))
        if kind in ("movie", "person") and tmdb_id:
            names = _texts(
                item.get(n) for n in ("title", "original_title", "name", "original_name")
            )
            records.append(Record(kind, tmdb_id, names, {"year": _year(item)}))
    return records


def film(answer: Data, language: str) -> Record | None:
    """Return a film with its credits, other titles, and amounts in words; None without an id or a title."""
    tmdb_id = number(answer.get("id"))
    names = _texts([answer.get("title"), answer.get("original_title")])
    if not tmdb_id or not names:
        return None
    credits = answer.get("credits")
    people: dict[str, list[Data]] = {role: [] for role in texts()["relations"]}
    people["cast"] = items(credits, "cast")
    for item in items(credits, "crew"):
        people.get(texts()["jobs"].get(text(item.get("job"))), []).append(item)
    fields = {
        "year": _year(answer),
        **{role: _names(members) for role, members in people.items()},
        "genres": _names(items(answer, "genres")),
        "countries": _names(items(answer, "production_countries")),
        **_amounts(answer, language == "zh"),
    }
    translations = (
        item.get("data") for item in items(answer.get("translations"), "translations")
    )
    titled = [
        *items(answer.get("alternative_titles"), "titles"),
        *(t for t in translations if isinstance(t, dict)),
    ]
    return Record(
        "movie",
        tmdb_id,
        _texts([*names, *(item.get("title") for item in titled)]),
        without_empty(fields),
        text(answer.get("overview"), _LONG),
    )


def person(answer: Data) -> Record | None:
    """Return a person; None without an id or a name."""
    tmdb_id = number(answer.get("id"))
    name = text(answer.get("name"))
    if not tmdb_id or not name:
        return None
    aliases = answer.get("also_known_as")
    fields = {
        "born": text(answer.get("birthday")),
        "birth_place": text(answer.get("place_of_birth")),
    }
    return Record(
        "person",
        tmdb_id,
        _texts([name, *(aliases if isinstance(aliases, list) else [])])[:_LIMIT],
        without_empty(fields),
        text(answer.get("biography"), _LONG),
    )


def _amounts(answer: Data, chinese: bool) -> dict[str, str]:
    """Return running time, money and rating in words."""
    votes = number(answer.get("vote_count"))
    average: Any = answer.get("vote_average")
    rated = type(average) in (int, float) and 0 < average <= 10 and votes
    dollars = {name: number(answer.get(name)) for name in ("budget", "revenue")}
    minutes = number(answer.get("runtime"))
    rating = ("{:.1f}/10 (TMDB, {:,} votes)", "{:.1f}/10（TMDB，{:,} 票）")[chinese]
    return {
        "runtime": f"{minutes}{(' minutes', ' 分钟')[chinese]}" if minutes else "",
        **{name: f"${amount:,}" if amount else "" for name, amount in dollars.items()},
        "rating": rating.format(average, votes) if rated else "",
    }


def _names(members: Iterable[Data]) -> list[str]:
    return list(_texts(member.get("name") for member in members))[:_LIMIT]


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    """Return the distinct texts among these values."""
    return tuple(dict.fromkeys(filter(None, map(text, values))))


def _year(item: Data) -> int | None:
    released = item.get("release_date")
    match = re.match(r"(1[89]\d\d|20\d\d)-", released) if isinstance(released, str) else None
    return int(match[1]) if match else None


# --- Evidence: a passage of each record in the language of the question, and a graph of all of them ---


def as_enriched(records: Iterable[Record], language: str) -> Enriched:
    """Return each record as a passage of evidence, and a graph of all of them."""
    passages = []
    entities = dict[str, Entity]()
    relations = {}
    for record in records:
        passages.append(_passage(record, language == "zh"))
        kind = "Film" if record.kind == "movie" else "Person"
        entities.setdefault(record.place, _entity(record.place, kind, record.names, record.place))
        for role, relation in texts()["relations"].items():
            for name in record.fields.get(role, ()):
                person_id = f"person:{name_key(name)}"
                entities.setdefault(person_id, _entity(person_id, "Person", [name]))
                ends = (record.place, person_id)
                source, target = ends[::-1] if relation == "acted_in" else ends
                key = f"{source}|{relation}|{target}"
                relations[key] = Relation(
                    relation_id=key,
                    source=source,
                    type=relation,
                    target=target,
                    sentence="",
                    chunk_id=record.place,
                )
    return Enriched(
        passages=passages,
        entities=list(entities.values()),
        relations=list(relations.values()),
        notes=[],
        asked=0,
    )


def _entity(entity_id: str, kind: str, names: Sequence[str], doc_id: str | None = None) -> Entity:
    return Entity(
        entity_id=entity_id, name=names[0], type=kind, aliases=list(names[1:]), doc_id=doc_id
    )


def _passage(record: Record, chinese: bool) -> Passage:
    return Passage(
        chunk_id=record.place,
        doc_id=record.place,
        title=record.names[0],
        text=("" if chinese else " ").join(filter(None, _sentences(record, chinese)))
        or record.names[0],
        position=0,
        url=f"https://www.themoviedb.org/{record.kind}/{record.number}",
        licence="TMDB",
        fields=dict(record.fields),
    )


def _sentences(record: Record, chinese: bool) -> Iterator[str]:
    """Yield the sentences of a record: a film's fields before its text, a person's text before the fields."""
    name, *aliases = record.names
    is_film = record.kind == "movie"
    title = f"《{name}》" if is_film and chinese else name
    other_script = [
        alias for alias in aliases if bool(CJK.search(alias)) != bool(CJK.search(name))
    ] or aliases
    values = {"aliases": other_script[:1], **record.fields}
    if not is_film:
        yield record.text
    for field_name, sentences in texts()["sentences"].items():
        if value := values.get(field_name):
            listed = ("、" if chinese else ", ").join(value) if isinstance(value, list) else value
            yield sentences[chinese].format(title, listed)
    if is_film:
        yield record.text


# --- The source: bounded answers, and a key that goes to the server alone ---

KEY, BASE_URL, TIMEOUT = (
    "WORKBENCH_TMDB_KEY",
    "WORKBENCH_TMDB_BASE_URL",
    "WORKBENCH_TMDB_TIMEOUT_S",
)
_LANGUAGES = {"zh": "zh-CN", "en": "en-US"}
_FILM_PARAMETERS = {"append_to_response": "credits,alternative_titles,translations"}


class Tmdb:
    """TMDB as the settings reach it."""

    name = "TMDB"

    def __init__(self, settings: Settings):
        self._settings = settings
        self.ready = bool(settings.tmdb_key.get_secret_value())

    async def __call__(self, names: Sequence[Wanted], language: str) -> Enriched:
        """Return what TMDB says of these names, within ``tmdb_timeout_s``; a failure is a note, never an error."""
        settings = self._settings
        notes = list[str]()
        records = []
        server: _Server | None = None
        try:
            if key := read_key(settings.tmdb_key, KEY):
                async with (
                    asyncio.timeout(settings.tmdb_timeout_s),
                    aclosing(_Server(settings, key, language)) as server,
                ):
                    for wanted in names[:3]:
                        records += await _look_up(server, wanted, notes)
            else:
                notes.append(note("no key", language, setting=KEY))
        except SettingsError as error:
            notes.append(str(error))
        except (TimeoutError, httpx.TimeoutException):
            notes.append(
                note("slow", language, seconds=f"{settings.tmdb_timeout_s:g}", setting=TIMEOUT)
            )
        except (
            NoAnswer,
            LimitReached,
            httpx.HTTPError,
            httpx.InvalidURL,
            OSError,
            ValueError,
        ) as error:
            reason = server.explain(error) if server else f"{type(error).__name__}: {error}."
            notes.append(note("failed", language, said=reason, key=KEY, url=BASE_URL))
        distinct = {record.place: record for record in records}
        enriched = as_enriched(distinct.values(), language)
        return {**enriched, "notes": notes, "asked": server.count if server else 0}


async def _look_up(server: _Server, wanted: Wanted, notes: list[str]) -> list[Record]:
    """Return every record with that name; of several films those of the year, where it is known."""
    name = text(wanted.name)
    answer = await server.get("search/multi", query=name, include_adult="false")
    keys = {key for key in map(name_key, (wanted.name, *wanted.also)) if key}
    details = [await _details(server, hit) for hit in _likely(hits(answer), keys, wanted.years)]
    records = [record for record in details if record and keys & set(map(name_key, record.names))]
    years = [str(record.year or "?") for record in records if record.kind == "movie"]
    if not records:
        notes.append(note("unknown", server.language, name=name))
    elif len(years) > 1:
        notes.append(note("ambiguous", server.language, name=name, years=", ".join(years)))
    return records


def _likely(records: list[Record], keys: set[str], years: Sequence[int]) -> list[Record]:
    """Return the hits to look at: those of the very name, preferably of the year; else the first hit.

    Lists of releases disagree by a year about festival films.
    """
    exact = [hit for hit in records if keys & set(map(name_key, hit.names))]
    dated = [
        hit for hit in exact if hit.year and any(abs(hit.year - year) <= 1 for year in years)
    ]
    # Records of one name that are returned where nothing decides between them.
    return (dated or exact)[:3] or records[:1]


async def _details(server: _Server, hit: Record) -> Record | None:
    try:
        answer = await server.get(
            f"{hit.kind}/{hit.number}", **(_FILM_PARAMETERS if hit.kind == "movie" else {})
        )
    except NoAnswer as error:
        if error.status_code != 404:
            raise
        return None  # deleted since TMDB indexed it
    return film(answer, server.language) if hit.kind == "movie" else person(answer)


class NoAnswer(Exception):
    """A status other than 200, or a body that is not a JSON object; with the attributes that ``Patience`` reads."""

    def __init__(self, reason: str, response: httpx.Response):
        super().__init__(reason)
        self.status_code = response.status_code
        self.response = response


class _Server:
    """TMDB's server for one enrichment.

    The key is an API read access token. It is sent in a header, which no log holds, and no redirect is followed.
    """

    def __init__(self, settings: Settings, key: str, language: str):
        self.language = language
        self.count = 0
        self._url = settings.tmdb_base_url.rstrip("/")
        self._key = key
        self._timeout_s = settings.tmdb_timeout_s
        self._address = address(self._url)
        self._patience = Patience(
            settings.model_retries, settings.model_backoff_s, self._timeout_s
        )
        headers = {"Accept": "application/json", "Authorization": f"Bearer {key}"}
        hooks = bounded(self._timeout_s, TIMEOUT)
        self._client = httpx.AsyncClient(
            timeout=self._timeout_s, headers=headers, event_hooks=hooks
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def get(self, path: str, **parameters: str) -> Json:
        """Return the JSON object at a path.

        Raises:
            NoAnswer: there is none, after as many tries as patience allows.
            LimitReached: it is too long, or comes too slowly.
            httpx.HTTPError: the server cannot be reached, or breaks off.
        """
        self.count += 1
        parameters["language"] = _LANGUAGES[self.language]
        return await patiently(lambda: self._get(path, parameters), self._patience, self.explain)

    async def _get(self, path: str, parameters: Mapping[str, str]) -> Json:
        response = await self._client.get(f"{self._url}/{path}", params=dict(parameters))
        if response.status_code != 200:
            raise NoAnswer(f"{response.status_code} {response.reason_phrase}".strip(), response)
        try:
            # which refuses NaN and Infinity
            answer = json.loads(response.content, parse_constant=int)
        except (ValueError, RecursionError):
            raise NoAnswer("the answer is no JSON", response) from None
        if not isinstance(answer, dict):
            raise NoAnswer("the answer is no JSON object", response)
        return answer

    def explain(self, error: BaseException) -> str:
        """Return what went wrong, and where, in a line without the key."""
        kind = "" if isinstance(error, NoAnswer | LimitReached) else type(error).__name__
        parts = [kind, " ".join(str(error).split())[:200]]
        reason = ": ".join(filter(None, parts)).rstrip(".")
        return redact(f"{self._address}: {reason}.", [self._key])
