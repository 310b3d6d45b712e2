"""A server that speaks like TMDB: films and people of a script, answered well or badly, with what it was asked."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.servers.scripted import Reply, serving

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
    """Where it is, what it knows, what it answers instead (a path that begins so -> a reply), what it was asked."""

    url: str = ""
    films: list[dict[str, Any]] = field(default_factory=lambda: [PARASITE, BANQUET])
    people: list[dict[str, Any]] = field(default_factory=lambda: [BONG])
    instead: dict[str, list[Reply]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        """Status and JSON of a request."""
        chinese = query.get("language") == "zh-CN"
        if path == "search/multi":
            return 200, {"page": 1, "results": self._search(query["query"], chinese)}
        kind, _, number = path.partition("/")
        known = {"movie": self.films, "person": self.people}.get(kind, [])
        for thing in known:
            if str(thing["id"]) == number:
                return 200, {**thing, **(IN_CHINESE.get(thing["id"], {}) if chinese else {})}
        return 404, {"success": False, "status_code": 34, "status_message": "The resource could not be found."}

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

    def reply_for(self, path: str) -> Reply | None:
        """What is answered instead; the last reply of a script repeats."""
        for begin, replies in self.instead.items():
            if path.startswith(begin):
                return replies.pop(0) if len(replies) > 1 else replies[0]
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: TmdbServer

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path, query = parts.path.removeprefix("/3/"), {k: v[0] for k, v in parse_qs(parts.query).items()}
        self.script.asked.append((path, query))
        self.script.headers.append({name.lower(): value for name, value in self.headers.items()})
        reply = self.script.reply_for(path)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if reply is None:
                status, value = self.script.answer(path, query)
                self._send(status, json.dumps(value).encode(), {})
            elif reply.hang:
                self.script.closing.wait(60)
                self.close_connection = True
            elif reply.endless:
                self._drip(reply)
            else:
                body = reply.body if reply.body is not None else json.dumps({"status_message": reply.message}).encode()
                self._send(reply.status, body, reply.headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json;charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _drip(self, reply: Reply) -> None:
        self.close_connection = True
        self.send_response(200)
        self.end_headers()
        while not self.script.closing.wait(reply.delay_s):
            self.wfile.write(b" ")
            self.wfile.flush()


@contextlib.contextmanager
def tmdb_server(change: Callable[[TmdbServer], None] | None = None) -> Iterator[TmdbServer]:
    """The server, on a free loopback port."""
    script = TmdbServer()
    if change:
        change(script)
    with serving(type("Handler", (_Handler,), {"script": script})) as server:
        script.url = f"http://127.0.0.1:{server.server_port}/3"
        try:
            yield script
        finally:
            script.closing.set()
