"""A server that speaks like TMDB: films and people of a script, answered well or badly, with what it was asked."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.servers.scripted import Reply, ScriptedServer, scripted_server

PARASITE = {
    "id": 496243, "title": "Parasite", "original_title": "기생충", "release_date": "2019-05-30",
    "overview": "All unemployed, Ki-taek's family takes peculiar interest in the wealthy Parks.", "runtime": 133,
    "budget": 11363000, "revenue": 257591776, "vote_average": 8.498, "vote_count": 19000,
    "genres": [{"id": 35, "name": "Comedy"}, {"id": 53, "name": "Thriller"}],
    "production_countries": [{"iso_3166_1": "KR", "name": "South Korea"}],
    "spoken_languages": [{"iso_639_1": "ko", "name": "한국어/조선말"}],
    "credits": {
        "cast": [{"id": 20738, "name": "Song Kang-ho"}, {"id": 115290, "name": "Lee Sun-kyun"}],
        "crew": [
            {"id": 21684, "name": "Bong Joon Ho", "job": "Director"},
            {"id": 21684, "name": "Bong Joon Ho", "job": "Screenplay"},
            {"id": 1255881, "name": "Jung Jae-il", "job": "Original Music Composer"},
        ],
    },
    "alternative_titles": {"titles": [{"iso_3166_1": "TW", "title": "寄生上流"}]},
    "translations": {"translations": [{"iso_639_1": "zh", "data": {"title": "寄生虫"}}]},
}  # fmt: skip
BANQUET = {
    "id": 9261, "title": "The Wedding Banquet", "original_title": "喜宴", "release_date": "1993-08-04",
    "overview": "A gay New Yorker stages a marriage of convenience.", "runtime": 106,
    "credits": {
        "cast": [{"id": 64434, "name": "Winston Chao"}],
        "crew": [
            {"id": 1614, "name": "Ang Lee", "job": "Director"},
            {"id": 11614, "name": "James Schamus", "job": "Writer"},
        ],
    },
}  # fmt: skip
BONG = {
    "id": 21684, "name": "Bong Joon Ho", "also_known_as": ["봉준호", "奉俊昊"], "birthday": "1969-09-14",
    "place_of_birth": "Daegu, South Korea", "biography": "Bong Joon Ho is a South Korean filmmaker.",
    "movie_credits": {
        "cast": [], "crew": [{"id": 496243, "title": "Parasite", "release_date": "2019-05-30", "job": "Director"}],
    },
}  # fmt: skip
IN_CHINESE = {496243: {"title": "寄生虫", "overview": "基泽一家四口全是无业游民。"}, 9261: {"title": "喜宴"}}


@dataclass
class TmdbServer:
    """What it knows, what it answers instead (a path that begins so -> a reply), what it was asked."""

    script: ScriptedServer
    films: list[dict[str, Any]] = field(default_factory=lambda: [PARASITE, BANQUET])
    people: list[dict[str, Any]] = field(default_factory=lambda: [BONG])
    instead: dict[str, list[Reply]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.script.url.replace("/v1", "/3")

    @property
    def headers(self) -> list[dict[str, str]]:
        return self.script.headers

    def respond(self, request: dict[str, Any]) -> Reply:
        """Answer a path; the last reply of what is said instead repeats."""
        parts = urlsplit(request["path"])
        path, query = parts.path.removeprefix("/3/"), {k: v[0] for k, v in parse_qs(parts.query).items()}
        self.asked.append((path, query))
        for begin, replies in self.instead.items():
            if path.startswith(begin):
                return replies.pop(0) if len(replies) > 1 else replies[0]
        chinese = query.get("language") == "zh-CN"
        if path == "search/multi":
            return Reply(body=json.dumps({"page": 1, "results": self._search(query["query"], chinese)}).encode())
        kind, _, number = path.partition("/")
        for thing in {"movie": self.films, "person": self.people}.get(kind, []):
            if str(thing["id"]) == number:
                told = IN_CHINESE.get(thing["id"], {}) if chinese else {}
                return Reply(body=json.dumps({**thing, **told}).encode())
        return Reply(status=404, message="The resource could not be found.")

    def _search(self, words: str, chinese: bool) -> list[dict[str, Any]]:
        found = []
        for kind, things in (("movie", self.films), ("person", self.people)):
            for thing in things:
                whole = json.dumps([thing, IN_CHINESE.get(thing["id"])], ensure_ascii=False).lower()
                if words.lower() in whole:
                    shown = {**thing, **(IN_CHINESE.get(thing["id"], {}) if chinese else {})}
                    names = ("id", "title", "original_title", "name", "release_date")
                    found.append({"media_type": kind, **{n: shown[n] for n in names if n in shown}})
        return found


@contextlib.contextmanager
def tmdb_server() -> Iterator[TmdbServer]:
    """The server, on a free loopback port."""
    with scripted_server() as script:
        server = TmdbServer(script)
        script.respond = server.respond
        yield server
