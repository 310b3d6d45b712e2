"""A server that speaks like TMDB: films and people of a script, answered well or badly, with what it was asked."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.servers import Reply, ScriptedServer, scripted_server

_TOLD = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
FILMS, PEOPLE, IN_CHINESE = _TOLD["films"], _TOLD["people"], _TOLD["in_chinese"]


@dataclass
class TmdbServer:
    """What it knows, what it answers instead (a path that begins so -> a reply), what it was asked."""

    script: ScriptedServer
    films: list[dict[str, Any]] = field(default_factory=lambda: [*FILMS])
    people: list[dict[str, Any]] = field(default_factory=lambda: [*PEOPLE])
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
                told = IN_CHINESE.get(str(thing["id"]), {}) if chinese else {}
                return Reply(body=json.dumps({**thing, **told}).encode())
        return Reply(status=404, message="The resource could not be found.")

    def _search(self, words: str, chinese: bool) -> list[dict[str, Any]]:
        found = []
        for kind, things in (("movie", self.films), ("person", self.people)):
            for thing in things:
                whole = json.dumps([thing, IN_CHINESE.get(str(thing["id"]))], ensure_ascii=False).lower()
                if words.lower() in whole:
                    shown = {**thing, **(IN_CHINESE.get(str(thing["id"]), {}) if chinese else {})}
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
