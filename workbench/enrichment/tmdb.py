"""TMDB (themoviedb.org): films and people by name, in the language of the question.

A name is searched for, and what is found is taken only where it bears that very name, in any of its titles; a year
tells several bearers apart. This product uses the TMDB API but is not endorsed or certified by TMDB.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import httpx

from workbench.context import Enriched, Wanted
from workbench.enrichment.asking import NoJson, Refused, Server
from workbench.enrichment.notes import note
from workbench.enrichment.records import Film, Hit, Person, film, hits, key_of, person, text
from workbench.enrichment.telling import told
from workbench.errors import SettingsError
from workbench.models.failures import LimitReached
from workbench.models.patience import Patience
from workbench.models.wire import read_key
from workbench.settings import Settings

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
