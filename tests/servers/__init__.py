"""An OpenAI-compatible server that answers by a script, well or badly, and tells when its client has gone."""

import contextlib
import json
import select
import socket
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.cases import HERE
from workbench.settings import ROLES, RULES

DEADLINE_S = 60.0
_LOOK_S = 0.02
_USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}


@dataclass
class Reply:
    """What the scripted server answers."""

    chunks: list[str] = field(default_factory=list)  # streamed one event each, or joined when no stream is asked for
    status: int = 200  # any other answers with an error
    message: str = ""  # of that error
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0  # waited before each chunk
    hang: bool = False  # nothing is ever sent, not even a header
    break_after: int | None = None  # the connection is torn after that many chunks
    end_after: int | None = None  # the stream ends politely after that many chunks, without a word why
    finish: str | None = "stop"  # the reason that the last event gives
    endless: bool = False  # the last chunk is sent for ever
    body: bytes | None = None  # these bytes instead of an answer, streamed or not
    content_type: str = "application/json"
    usage: dict[str, int] | None = field(default_factory=lambda: dict(_USAGE))  # the tokens that it says it counted


def scripted_replies(table: str, key: str = "") -> dict[str, tuple[Reply, dict[str, Any]]]:
    """The replies of a table of ``cases/replies.toml`` by name, each with what else its case says."""
    cases = tomllib.loads((HERE / "replies.toml").read_text("utf-8").replace("{key}", key))[table]
    replies = {}
    for name, case in cases.items():
        reply = Reply(**{one.name: case.pop(one.name) for one in fields(Reply) if one.name in case})
        replies[name] = (replace(reply, body=reply.body.encode()) if isinstance(reply.body, str) else reply, case)
    return replies


@dataclass
class ScriptedServer:
    """A running server: where it is, what it will answer (the last reply repeats), what it was asked."""

    url: str
    replies: list[Reply]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    embed: Callable[[str], Any] = lambda text: [float(len(text)), 1.0]
    respond: Callable[[dict[str, Any]], Reply | None] = lambda request: None
    left: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)
    closing: threading.Event = field(default_factory=threading.Event)

    def take(self, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        """The next reply of the script."""
        with self.changed:
            self.requests.append(request)
            self.headers.append(headers)
            self.times.append(time.monotonic())
            self.changed.notify_all()
            if (made := self.respond(request)) is not None:
                return made
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def answer(self, *replies: Reply) -> None:
        """Another script from now on."""
        with self.changed:
            self.replies[:] = replies

    def saw_leave(self) -> None:
        """A client closed its connection in the middle of an answer."""
        with self.changed:
            self.left += 1
            self.changed.notify_all()

    def wait_asked(self, times: int = 1) -> None:
        """Wait until so many requests have come."""
        self._wait(lambda: len(self.requests) >= times, f"{times} requests")

    def wait_left(self, times: int = 1) -> None:
        """Wait until so many clients have left in the middle of an answer."""
        self._wait(lambda: self.left >= times, f"{times} disconnects")

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        with self.changed:
            if not self.changed.wait_for(ready, DEADLINE_S):
                raise AssertionError(f"the server did not see {what} within {DEADLINE_S:g} s")


class _Left(Exception):
    """The client went away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: ScriptedServer

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            return self._json({"object": "list", "data": [{"id": "scripted", "object": "model"}]}, Reply())
        self._respond({"path": self.path, "stream": True, "model": ""})

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self._respond(json.loads(content) if "json" in self.headers["Content-Type"] else {"content": content})

    def _respond(self, request: dict[str, Any]) -> None:
        reply = self.script.take(request, {name.lower(): value for name, value in self.headers.items()})
        try:
            self._answer(request, reply)
        except (_Left, BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            self.script.saw_leave()

    def _answer(self, request: dict[str, Any], reply: Reply) -> None:
        if reply.hang:
            while not self.script.closing.is_set():
                self._stay(60)
            self.close_connection = True
        elif reply.status != 200:
            self._json({"error": {"message": reply.message, "type": "scripted"}}, reply)
        elif reply.body is not None:
            self._body(reply.body, reply)
        elif self.path.endswith("/embeddings"):
            texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
            vectors = [self.script.embed(text) for text in texts]
            data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors) if v is not None]
            self._json({"object": "list", "data": data, "model": request["model"], "usage": _USAGE}, reply)
        elif request.get("stream"):
            self._stream(request, reply)
        else:
            self._stay(reply.delay_s)
            message = {"role": "assistant", "content": "".join(reply.chunks)}
            choice = {"index": 0, "message": message, "finish_reason": reply.finish}
            if reply.break_after is not None:
                return self._torn(reply)
            self._json({**_head(request, "chat.completion"), "choices": [choice], "usage": _USAGE}, reply)

    def _torn(self, reply: Reply) -> None:
        """Promise more than is sent."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self._more(reply)
        self.wfile.write(b'{"choices": [')
        self.connection.shutdown(socket.SHUT_RDWR)

    def _json(self, value: dict[str, Any], reply: Reply) -> None:
        self._body(json.dumps(value).encode(), reply)

    def _body(self, body: bytes, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(body)))
        self._more(reply)
        self.wfile.write(body)

    def _more(self, reply: Reply) -> None:
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _stream(self, request: dict[str, Any], reply: Reply) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self._more(reply)
        for i, text in enumerate(reply.chunks):
            self._stay(reply.delay_s)
            if i == reply.break_after:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if i == reply.end_after:
                self.wfile.write(b"0\r\n\r\n")
                return
            self._event({**_head(request, "chat.completion.chunk"), "choices": [_delta(text)]})
        while reply.endless and not self.script.closing.is_set():
            self._stay(reply.delay_s)
            self._event({**_head(request, "chat.completion.chunk"), "choices": [_delta(reply.chunks[-1])]})
        self._event({**_head(request, "chat.completion.chunk"), "choices": [_delta("", reply.finish)]})
        if reply.usage is not None:
            self._event({**_head(request, "chat.completion.chunk"), "choices": [], "usage": reply.usage})
        self._write(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _stay(self, seconds: float) -> None:
        """Wait, and look whether the client is still there."""
        until = time.monotonic() + seconds
        while not self.script.closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], min(_LOOK_S, max(0.0, until - time.monotonic())))
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise _Left
            if time.monotonic() >= until:
                return

    def _event(self, value: dict[str, Any]) -> None:
        self._write(b"data: " + json.dumps(value).encode() + b"\n\n")

    def _write(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


def _head(request: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "scripted-1", "object": kind, "created": 0, "model": request["model"]}


def _delta(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}


class _Server(ThreadingHTTPServer):
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away between two requests is nobody's error."""


@contextlib.contextmanager
def scripted_server(*replies: Reply) -> Iterator[ScriptedServer]:
    """An OpenAI-compatible server (chat completions, embeddings) on a free loopback port that answers by a script."""
    handler = type("Handler", (_Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    script = ScriptedServer(f"http://127.0.0.1:{server.server_port}/v1", list(replies) or [Reply(["Hello."])])
    handler.script = script  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        script.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def free_port() -> int:
    """A port of loopback at which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def closed_port() -> str:
    """The URL of a server that is dead."""
    return f"http://127.0.0.1:{free_port()}/v1"


def until(ready: Callable[[], Any], seconds: float = DEADLINE_S) -> Any:
    """Wait for a true value, and return it."""
    ends = time.monotonic() + seconds
    while not (value := ready()):
        assert time.monotonic() < ends, "not in good time"
        time.sleep(0.05)
    return value


def only(*roles: str) -> dict[str, dict[str, str]]:
    """Settings that leave the chat model to these roles."""
    return {"models": {role: RULES for role in ROLES if role not in roles}}
