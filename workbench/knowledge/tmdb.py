"""TMDB (themoviedb.org): films and people by name, in the language of the question.

A name is searched for, and what is found is taken only where it bears that very name, in any of its titles; a year
tells several bearers apart. This product uses the TMDB API but is not endorsed or certified by TMDB.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from workbench.errors import SettingsError
from workbench.models.wire import LimitReached, Meter, Patience, address, hidden, patiently, read_key
from workbench.ports import Enriched, Entity, Passage, Relation, Wanted
from workbench.settings import Settings
from workbench.text import CJK, clean, fold

# --- What there is to say when a source outside gives nothing, or too much: in both languages, with the mend ---

_NOTES = {
    "no key": ("TMDB was not asked: {setting} is not set.", "没有查询 TMDB：未设置 {setting}。"),
    "refused": ("TMDB refused the key ({said}) Is {key} right?", "TMDB 拒绝了密钥（{said}）请检查 {key}。"),
    "busy": (
        "TMDB is asked too often ({said}) Ask again a little later.",
        "对 TMDB 的查询太频繁（{said}）请稍后再试。",
    ),
    "in trouble": (
        "TMDB is in trouble ({said}) Ask again a little later.",
        "TMDB 暂时有故障（{said}）请稍后再试。",
    ),
    "no answer": ("That is no answer of TMDB's ({said}) Is {url} right?", "这不是 TMDB 的回答（{said}）请检查 {url}。"),
    "failed": ("TMDB gave no usable answer ({said})", "TMDB 没有给出可用的回答（{said}）"),
    "unreachable": (
        "TMDB cannot be reached ({said}) Is there a network, and is {url} right?",
        "无法连接 TMDB（{said}）请检查网络和 {url}。",
    ),
    "slow": (
        "TMDB did not answer within {seconds} s. Raise {setting}, or ask again.",
        "TMDB 在 {seconds} 秒内没有答复。请调大 {setting}，或稍后再试。",
    ),
    "unknown": ("TMDB knows nothing of the name “{name}”.", "TMDB 没有名为“{name}”的条目。"),
    "ambiguous": (
        "“{name}” names several films on TMDB ({years}), and nothing tells which one is meant.",
        "TMDB 上有多部名为“{name}”的影片（{years}），无法判断所指是哪一部。",
    ),
    "no source": (
        "There is no source outside for {kb}: its vocabulary asks for none.",
        "{kb} 没有可查询的外部来源：它的词汇表没有指定。",
    ),
    "no name": ("The question names nothing to ask {source} for.", "问题里没有可以向 {source} 查询的名称。"),
}


def note(what: str, language: str, **told: str) -> str:
    """A note in a language.

    >>> note("unknown", "en", name="Parasite"), note("unknown", "zh", name="寄生虫")
    ('TMDB knows nothing of the name “Parasite”.', 'TMDB 没有名为“寄生虫”的条目。')
    """
    english, chinese = _NOTES[what]
    return (chinese if language == "zh" else english).format(**told)


# --- HTTP to a source outside: one address, one key, an end to every answer, and what went wrong in one line ---

MOST_ANSWERS = 16
"""Answers that one enrichment may ask for, whatever the first ones say."""


class Refused(Exception):
    """An answer that is none: another status than 200, as ``models.patience`` reads it."""

    def __init__(self, response: httpx.Response):
        super().__init__(f"{response.status_code} {response.reason_phrase}".strip())
        self.status_code, self.response = response.status_code, response


class NoJson(Exception):
    """The server sent what is not a JSON object."""


class _Keyed(httpx.AsyncBaseTransport):
    """Puts the key into a request on its way out, so that no log line and no error ever holds it.

    A token of TMDB's goes into a header; its shorter keys are taken in the address only.
    """

    def __init__(self, key: str, scheme: str, host: str):
        proxy = None if proxy_bypass(host) else getproxies().get(scheme)
        self._key, self._inner = key, httpx.AsyncHTTPTransport(proxy=proxy)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        headers, url = httpx.Headers(request.headers), request.url
        if len(self._key) > 32:
            headers["Authorization"] = f"Bearer {self._key}"
        else:
            url = url.copy_merge_params({"api_key": self._key})
        return await self._inner.handle_async_request(
            httpx.Request(
                request.method, url, headers=headers, stream=request.stream, extensions=dict(request.extensions)
            )
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class Server:
    """A source outside while one question is asked of it; ``async with`` closes its connections.

    Args:
        base_url: where its answers are.
        key: goes to this address and nowhere else: no redirect is followed.
        timeout_s: for an answer, from its first to its last byte.
        setting: the environment variable that changes ``timeout_s``.
        patience: how often a busy server is asked again.

    Raises:
        httpx.InvalidURL: ``base_url`` is no address.
    """

    def __init__(self, base_url: str, key: str, *, timeout_s: float, setting: str, patience: Patience):
        self.url, self.asked = base_url.rstrip("/"), 0
        self._key, self._timeout_s, self._setting, self._patience = key, timeout_s, setting, patience
        self._client = httpx.AsyncClient(
            transport=_Keyed(key, *_place(base_url)),
            timeout=timeout_s,
            follow_redirects=False,
            headers={"Accept": "application/json"},
        )

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def get(self, path: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        """The JSON object at a path.

        Raises:
            Refused: another status than 200, after as many tries as patience allows.
            NoJson: the answer is none.
            LimitReached: it is too long, comes too slowly, or too many were asked for.
            httpx.HTTPError: the server cannot be reached, or breaks off.
        """
        if self.asked >= MOST_ANSWERS:
            raise LimitReached(f"more than {MOST_ANSWERS} answers were needed")
        self.asked += 1
        body = await patiently(lambda: self._body(path, parameters), self._patience, self.explain)
        return _object(body)

    async def _body(self, path: str, parameters: Mapping[str, str]) -> bytes:
        meter, parts = Meter(self._timeout_s, self._setting), list[bytes]()
        async with self._client.stream("GET", f"{self.url}/{path}", params=dict(parameters)) as response:
            if response.status_code != 200:
                raise Refused(response)
            async for part in response.aiter_bytes():
                parts.append(meter(part))
        return b"".join(parts)

    def explain(self, error: BaseException) -> str:
        """What went wrong, and where, in a line without the key."""
        said = " ".join(str(error).split())[:200]
        kind = "" if isinstance(error, Refused | NoJson | LimitReached) else type(error).__name__
        told = ": ".join(part for part in (kind, said) if part)
        return hidden(f"{address(self.url)}: {told.rstrip('.')}.", [self._key])


def _place(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        scheme, host, _ = parts.scheme, parts.hostname or "", parts.port
    except ValueError as error:
        raise httpx.InvalidURL(str(error)) from None
    if scheme not in ("http", "https") or not host:
        raise httpx.InvalidURL("it needs http:// or https:// and a host")
    return scheme, host


def _object(body: bytes) -> dict[str, Any]:
    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is no JSON number")

    try:
        found = json.loads(body.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError):
        raise NoJson("the answer is no JSON") from None
    if not isinstance(found, dict):
        raise NoJson("the answer is no JSON object")
    return found


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


# --- Films and people of TMDB as evidence and as a piece of graph, in the language of the question ---

PAGES = "https://www.themoviedb.org"
LICENCE = "TMDB"
_SAYS = {
    "directors": ("was directed by {}", "由{}执导"),
    "writers": ("was written by {}", "的编剧是{}"),
    "cast": ("stars {}", "由{}主演"),
    "composers": ("has music composed by {}", "由{}作曲配乐"),
    "producers": ("was produced by {}", "的制片人是{}"),
    "cinematographers": ("has cinematography by {}", "由{}摄影"),
    "genres": ("is of the genre {}", "的类型是{}"),
    "countries": ("is from {}", "的制片国家/地区是{}"),
    "languages": ("is spoken in these languages: {}", "的语言是{}"),
    "studios": ("comes from the studio {}", "的出品公司是{}"),
    "runtime": ("has a running time of {}", "的片长是{}"),
    "budget": ("had a budget of {}", "的预算是{}"),
    "revenue": ("grossed {} at the box office", "的票房是{}"),
    "rating": ("is rated {}", "的评分是{}"),
}
FIELDS = frozenset(_SAYS)
"""Typed fields of a film that are said there, beside its year and its other titles."""
_RELATIONS = {"directors": "directed_by", "writers": "written_by", "cast": "acted_in"}
_WORKS = {"directed_by": ("directed {}", "执导了{}"), "acted_in": ("acted in {}", "出演了{}")}


def told(things: Iterable[Film | Person], language: str) -> Enriched:
    """Each thing as a passage of evidence, and all of them as one piece of graph."""
    passages: list[Passage] = []
    entities: dict[str, Entity] = {}
    relations: dict[str, Relation] = {}
    for thing in things:
        if isinstance(thing, Film):
            passage = _film(thing, language)
            graph = _film_graph(thing, passage)
        else:
            passage = _person(thing, language)
            graph = _person_graph(thing, passage)
        passages.append(passage)
        for entity in graph[0]:
            entities.setdefault(entity["entity_id"], entity)
        for relation in graph[1]:
            relations.setdefault(relation["relation_id"], relation)
    return Enriched(
        passages=passages, entities=list(entities.values()), relations=list(relations.values()), notes=[], asked=0
    )


def _film(film: Film, language: str) -> Passage:
    chinese = language == "zh"
    shown = f"《{film.title}》" if chinese else film.title
    lines = [_opening(film, shown, chinese)]
    for name, (english, said) in _SAYS.items():
        if values := film.fields.get(name):
            listed = values if isinstance(values, str) else ("、" if chinese else ", ").join(values)
            lines.append(shown + (said if chinese else f" {english}").format(listed) + ("。" if chinese else "."))
    return _passage("movie", film.number, film.title, [*lines, film.overview], chinese, film.fields)


def _opening(film: Film, shown: str, chinese: bool) -> str:
    others = [name for name in film.names if name != film.title]
    twins = [name for name in others if bool(CJK.search(name)) != bool(CJK.search(film.title))] or others
    year = film.year
    if chinese:
        called = f"{shown}又名 {twins[0]}" if twins else shown
        return f"{called}，{year}年上映。" if year else f"{called}。" if twins else ""
    called = f"{shown}, also known as {twins[0]}," if twins else shown
    return f"{called} was released in {year}." if year else f"{called} is a film." if twins else ""


def _person(person: Person, language: str) -> Passage:
    chinese = language == "zh"
    name, born, place = person.name, person.fields.get("born", ""), person.fields.get("birth_place", "")
    others = [other for other in person.names if other != name]
    lines = [person.biography]
    if born or place:
        where = f" in {place}" if place else ""
        lines.append(f"{name}{born}出生于{place or '不详之地'}。" if chinese else f"{name} was born {born}{where}.")
    for kind, (english, said) in _WORKS.items():
        listed = [_work(title, year, chinese) for _, title, year in person.works.get(kind, ())]
        if listed:
            glue = ("、" if chinese else ", ").join(listed)
            lines.append(name + (said.format(glue) + "。" if chinese else f" {english.format(glue)}."))
    if others:
        lines.append(f"{name}又名{others[0]}。" if chinese else f"{name} is also known as {others[0]}.")
    return _passage("person", person.number, name, lines, chinese, person.fields)


def _work(title: str, year: int | None, chinese: bool) -> str:
    shown = f"《{title}》" if chinese else title
    return shown + ((f"（{year}）" if chinese else f" ({year})") if year else "")


def _passage(
    kind: str, number: int, title: str, lines: Iterable[str], chinese: bool, fields: Mapping[str, Any]
) -> Passage:
    place = f"tmdb:{kind}/{number}"
    return Passage(
        chunk_id=place,
        doc_id=place,
        title=title,
        text=("" if chinese else " ").join(line for line in lines if line) or title,
        position=0,
        url=f"{PAGES}/{kind}/{number}",
        licence=LICENCE,
        fields=dict(fields),
    )


def _film_graph(film: Film, passage: Passage) -> tuple[list[Entity], list[Relation]]:
    place = passage["doc_id"]
    entities = [_entity(place, film.title, "Film", film.names, place)]
    relations = []
    for name, relation in _RELATIONS.items():
        for person in film.fields.get(name, ()):
            other = f"tmdb:person/{film.people[person]}" if person in film.people else f"person:{key_of(person)}"
            entities.append(_entity(other, person, "Person"))
            ends = (other, place) if relation == "acted_in" else (place, other)
            relations.append(_relation(*ends, relation, passage))
    return entities, relations


def _person_graph(person: Person, passage: Passage) -> tuple[list[Entity], list[Relation]]:
    place = passage["doc_id"]
    entities = [_entity(place, person.name, "Person", person.names, place)]
    relations = []
    for relation, works in person.works.items():
        for number, title, _ in works:
            film = f"tmdb:movie/{number}"
            entities.append(_entity(film, title, "Film"))
            ends = (place, film) if relation == "acted_in" else (film, place)
            relations.append(_relation(*ends, relation, passage))
    return entities, relations


def _entity(entity_id: str, name: str, kind: str, names: Iterable[str] = (), doc_id: str | None = None) -> Entity:
    aliases = [other for other in names if other != name]
    return Entity(entity_id=entity_id, name=name, type=kind, aliases=aliases, doc_id=doc_id)


def _relation(source: str, target: str, kind: str, passage: Passage) -> Relation:
    return Relation(
        relation_id=f"{source}|{kind}|{target}",
        source=source,
        type=kind,
        target=target,
        sentence="",
        chunk_id=passage["chunk_id"],
    )


# --- TMDB (themoviedb.org): films and people by name, in the language of the question ---

KEY, BASE_URL, TIMEOUT = "WORKBENCH_TMDB_KEY", "WORKBENCH_TMDB_BASE_URL", "WORKBENCH_TMDB_TIMEOUT_S"
MOST_NAMES = 3
BEARERS = 3
"""Bearers of one name that are told where nothing tells them apart."""
_LANGUAGES = {"zh": "zh-CN", "en": "en-US"}
_MORE = {"movie": "credits,alternative_titles,translations", "person": "movie_credits"}


class Tmdb:
    """TMDB as the settings reach it (``context.Enricher``)."""

    name = "TMDB"

    def __init__(self, settings: Settings):
        self._settings = settings

    async def __call__(self, names: Sequence[Wanted], language: str) -> Enriched:
        """What TMDB says of these names; never raises for what TMDB does.

        All of it takes ``tmdb_timeout_s`` at most; what came by then is told.
        """
        settings, notes, found = self._settings, list[str](), list[Film | Person]()
        try:
            key = read_key(settings.tmdb_key, KEY)
        except SettingsError as error:
            return _nothing(str(error))
        if not key:
            return _nothing(note("no key", language, setting=KEY))
        longest = min(settings.model_longest_wait_s, settings.tmdb_timeout_s)
        patience = Patience(settings.model_retries, settings.model_backoff_s, longest)
        server: Server | None = None
        try:
            async with asyncio.timeout(settings.tmdb_timeout_s):
                async with Server(
                    settings.tmdb_base_url,
                    key,
                    timeout_s=settings.tmdb_timeout_s,
                    setting=TIMEOUT,
                    patience=patience,
                ) as server:
                    for wanted in names[:MOST_NAMES]:
                        found += await _bearers(server, wanted, language, notes)
        except (TimeoutError, httpx.TimeoutException):
            notes.append(note("slow", language, seconds=f"{settings.tmdb_timeout_s:g}", setting=TIMEOUT))
        except (Refused, NoJson, LimitReached, httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            said = server.explain(error) if server else f"{type(error).__name__}: {error}."
            notes.append(note(_kind(error), language, said=said, key=KEY, url=BASE_URL))
        distinct = {(type(thing), thing.number): thing for thing in found}
        asked = server.asked if server else 0
        return {**told(distinct.values(), language), "notes": notes, "asked": asked}


async def _bearers(server: Server, wanted: Wanted, language: str, notes: list[str]) -> list[Film | Person]:
    """Everything that bears a name; of several films those of the year, where one is known."""
    name = text(wanted.name)
    given = {"query": name, "include_adult": "false", "language": _LANGUAGES[language]}
    answer = await server.get("search/multi", given)
    keys = {key for key in map(key_of, (wanted.name, *wanted.also)) if key}
    found: list[Film | Person] = []
    for hit in _likely(hits(answer), keys, wanted.years):
        thing = await _details(server, hit, language)
        if thing and keys & set(map(key_of, thing.names)):
            found.append(thing)
    films = [thing for thing in found if isinstance(thing, Film)]
    if not found:
        notes.append(note("unknown", language, name=name))
    elif len(films) > 1:
        told_apart = ", ".join(str(film.year or "?") for film in films)
        notes.append(note("ambiguous", language, name=name, years=told_apart))
    return found


def _likely(found: list[Hit], keys: set[str], years: Sequence[int]) -> list[Hit]:
    """The hits to look at: those of the very name, those of the year before all; else the first one.

    Lists of releases disagree by a year about festival films.
    """
    exact = [hit for hit in found if keys & set(map(key_of, hit.names))]
    dated = [hit for hit in exact if hit.year and any(abs(hit.year - year) <= 1 for year in years)]
    return (dated or exact)[:BEARERS] or found[:1]


async def _details(server: Server, hit: Hit, language: str) -> Film | Person | None:
    given = {"language": _LANGUAGES[language], "append_to_response": _MORE[hit.kind]}
    try:
        answer = await server.get(f"{hit.kind}/{hit.number}", given)
    except Refused as refused:
        if refused.status_code != 404:
            raise
        return None  # gone since it was indexed there
    return film(answer, language) if hit.kind == "movie" else person(answer)


def _kind(error: Exception) -> str:
    status = getattr(error, "status_code", 0)
    if status in (401, 403):
        return "refused"
    if status == 429:
        return "busy"
    if status >= 500:
        return "in trouble"
    if isinstance(error, NoJson | Refused):
        return "no answer"
    return "failed" if isinstance(error, LimitReached) else "unreachable"


def _nothing(said: str) -> Enriched:
    return Enriched(passages=[], entities=[], relations=[], notes=[said], asked=0)
