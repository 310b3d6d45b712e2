"""A workspace over HTTP (``workbench serve``): chat as server-sent events or in one piece, pauses, runs, feedback.

A client with the token may speak as any user. Without a token only this machine is answered, under its own name. Only
JSON bodies are read, so that no page of another site can ask. A client that leaves a stream interrupts its run, which
can be resumed; a chat without a stream continues without its client, and its answer is in the conversation. Put a
reverse proxy in front where clients may be slow or hostile: it limits connections and waiting, which uvicorn does not.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import re
import socket
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from anyio import CancelScope, to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from workbench import errors
from workbench.errors import ModelError, NotPaused, SettingsError, WorkbenchError, shown
from workbench.events import done, failed, for_client, normalize_stream_event, review, token
from workbench.futures.capsule import redacted
from workbench.graphs.reviewers import answer
from workbench.models.wire import secrets
from workbench.runs.asking import LONGEST_NAME
from workbench.runs.feedback import give
from workbench.runs.recording import debug_events, recorded
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.settings import Settings
from workbench.state import Data, Json

MOST_BYTES = 1_000_000
"""Of a request's body."""
_TOKEN = re.compile(r"[!-~]{16,}")
_MOST_ROWS = 1_000
_STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_FINAL = {"done", "review", "error"}
_STATUS: Mapping[type[WorkbenchError], int] = {
    errors.UnknownKnowledge: 404,
    errors.UnknownRun: 404,
    errors.NotPaused: 409,
    errors.WorkspaceBusy: 409,
    errors.InvalidAnswer: 422,
}
"""Any other error of the workbench is 400."""
_COLLECTED = ("rag_runs", "combined_context", "retrieval_merged")
_DEBUG = ("route_decision", "execution_log", "plan", "records", "reflections")
_LOCAL = ("localhost", "127.0.0.1", "::1")
_log = logging.getLogger("workbench.http")

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
MaybeName = Annotated[str, Field(max_length=LONGEST_NAME)]
Text = Annotated[str, Field(max_length=100_000)]
T = TypeVar("T")


class Form(BaseModel):
    """The fields of a request; any other field is refused."""

    model_config = ConfigDict(extra="forbid")


F = TypeVar("F", bound=Form)


class Chat(Form):
    """A message of a user in a session. Without ``kb_prefix`` it is routed; ``review`` names where the run pauses."""

    user_id: Name
    session_id: Name
    message: Text
    kb_prefix: MaybeName = ""
    agent_type: MaybeName = ""
    debug: bool = False
    incognito: bool = False
    review: list[Literal["plan", "step", "reflect"]] = Field([], max_length=3)


class Decision(Form):
    """A decision at a pause (``review_id`` makes sure at which), or ``resume`` for a run that was interrupted."""

    user_id: Name
    decision: Literal["approve", "edit", "reject", "respond", "resume"]
    review_id: MaybeName = ""
    edits: Json = {}
    message: Text = ""
    note: Text = ""
    stream: bool = False
    debug: bool = False


class Conversation(Form):
    """One conversation of one user; ``kb_prefix`` is accepted from older clients and ignored."""

    user_id: Name
    session_id: Name
    kb_prefix: MaybeName = ""


class MessagesQuery(Form):
    """Whose messages, and which."""

    user_id: Name
    limit: int = Field(100, ge=1, le=_MOST_ROWS)
    before: MaybeName | None = None


class RunQuery(Form):
    """Whose run."""

    user_id: MaybeName = ""


class RunsQuery(RunQuery):
    """Which runs."""

    session_id: MaybeName = ""
    status: Literal["", "running", "paused", "interrupted", "done", "failed", "cancelled"] = ""
    limit: int = Field(100, ge=1, le=_MOST_ROWS)


class Verdict(Form):
    """A row of the table ``feedback``; ``message_id`` names the answer, or ``thread_id`` its run.

    Question and agent type are those of the run, whatever is sent. ``note`` in the metadata is the note, every other
    key a label; ``is_positive`` null withdraws the verdict.
    """

    is_positive: bool | None
    message_id: MaybeName = ""
    thread_id: MaybeName = ""
    query: Text = ""
    agent_type: MaybeName = ""
    metadata: Json = {}
    user_id: MaybeName = ""


class Endpoints:
    """The endpoints over an open workspace, one method each."""

    def __init__(self, wb: Workbench, heartbeat_s: float):
        self._wb, self._heartbeat_s = wb, heartbeat_s
        self.hidden = secrets(wb.settings)

    def respond(self, document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        """Make a response without any secret of the settings."""
        return JSONResponse(redacted(document, self.hidden), status, headers)

    async def health(self, request: Request) -> Response:
        """Return whether the stores answer."""
        try:
            await to_thread.run_sync(lambda: (self._wb.runs.list(1), self._wb.messages("", "")))
        except WorkbenchError:
            return self.respond({"status": "failed"}, 503)
        return self.respond({"status": "ok"})

    async def stream(self, request: Request) -> Response:
        """Ask, and stream the events of the run."""
        form = await _read_body(request, Chat)
        return Events(await self._start(form), form.debug, self._heartbeat_s, self.hidden)

    async def chat(self, request: Request) -> Response:
        """Ask, and wait for the answer or a pause."""
        form = await _read_body(request, Chat)
        return await self._outcome(await self._start(form), form.debug)

    async def answer(self, request: Request) -> Response:
        """Answer a paused run, or continue an interrupted one."""
        form = await _read_body(request, Decision)

        def begin() -> Run:
            run = self._run(request.path_params["run_id"], form.user_id)
            return run.resume(wait=False) if form.decision == "resume" else _answer(run, form)

        run = await _begin(begin)
        if form.stream:
            return Events(run, form.debug, self._heartbeat_s, self.hidden)
        return await self._outcome(run, form.debug)

    async def runs(self, request: Request) -> Response:
        """Return the runs, newest first, one row each."""
        form = _validate(RunsQuery, dict(request.query_params))
        equals = {name: value for name, value in form.model_dump(exclude={"limit"}).items() if value}
        lines = await to_thread.run_sync(lambda: self._wb.runs.lines(form.limit, **equals))
        names = ("run_id", "status", "message", "query", "user_id", "session_id", "created_at")
        return self.respond({"runs": [{name: line[name] for name in names} for line in lines]})

    async def run(self, request: Request) -> Response:
        """Return a run: plan, records, reflections, evidence, answer, nested log."""
        return await self._document(request, request.path_params["run_id"], Run.to_dict)

    async def debug(self, request: Request) -> Response:
        """Return what was collected for a request, whose id is its run's."""
        return await self._document(request, request.path_params["request_id"], debug_document)

    async def _document(self, request: Request, run_id: str, make: Callable[[Run], Json]) -> Response:
        form = _validate(RunQuery, dict(request.query_params))
        return self.respond(await to_thread.run_sync(lambda: make(self._run(run_id, form.user_id))))

    async def messages(self, request: Request) -> Response:
        """Return the messages of a conversation, oldest first."""
        form, session = _validate(MessagesQuery, dict(request.query_params)), request.path_params["session"]
        page: Json = {"limit": form.limit, "before": form.before}
        messages = await to_thread.run_sync(lambda: self._wb.messages(session, form.user_id, **page))
        return self.respond({"user_id": form.user_id, "session_id": session, "messages": messages})

    async def clear(self, request: Request) -> Response:
        """Delete the messages of one conversation."""
        form = await _read_body(request, Conversation)

        def work() -> dict[str, str]:
            cleared = self._wb.clear(form.session_id, form.user_id)
            remaining = self._wb.messages(form.session_id, form.user_id)
            return {"status": "ok", "remaining_messages": str(len(remaining)), "cleared_messages": str(cleared)}

        return self.respond(await to_thread.run_sync(work))

    async def feedback(self, request: Request) -> Response:
        """Store a verdict on an answer."""
        form = await _read_body(request, Verdict)

        def work() -> dict[str, str]:
            run_id = self._wb.runs.of_message(form.message_id) if form.message_id else form.thread_id
            run = self._run(run_id, form.user_id)
            labels = dict(form.metadata)
            give(run, form.is_positive, labels.pop("note", ""), form.user_id, labels)
            return {"status": "ok", "run_id": run.run_id}

        return self.respond(await to_thread.run_sync(work))

    async def _start(self, form: Chat) -> Run:
        worker = f"{form.kb_prefix}:{form.agent_type}" if form.kb_prefix and form.agent_type else form.agent_type
        options: Any = form.model_dump(include={"review", "incognito", "debug"})
        options |= {"user": form.user_id, "session": form.session_id, "kb": form.kb_prefix or None, "worker": worker}
        return await _begin(lambda: self._wb.start(form.message, **options))

    async def _outcome(self, run: Run, debug: bool) -> Response:
        """Wait for the end of a run or its next pause, and return it."""
        await run.aio.wait()
        outcome = await to_thread.run_sync(lambda: _summary(run, debug))
        if outcome["status"] in ("done", "paused"):
            return self.respond(outcome)
        detail = {"detail": outcome["error"] or _resume_hint(run), "run_id": run.run_id, "status": outcome["status"]}
        if outcome["status"] != "failed":
            return self.respond(detail, 409)
        return self.respond(detail, 502 if isinstance(self._wb.runs.failure(run.run_id), ModelError) else 500)

    def _run(self, run_id: str, user: str) -> Run:
        """Return a run of this user; the run of another user is as unknown as one that does not exist."""
        if run_id in self._wb.runs:
            run = self._wb.run(run_id)
            if not user or run.row["user_id"] == user:
                return run
        raise HTTPException(404, f"Unknown run {shown(run_id)}{f' of user {shown(user)}' if user else ''}.")


def debug_document(run: Run) -> Json:
    """Return what was collected of a run: its nested log, route, plan, evidence."""
    recording = recorded(run)
    document = recording.to_dict()
    collected = {
        name: content for event in debug_events(recording) for name, content in event.items() if name in _COLLECTED
    }
    return {"request_id": run.run_id, **collected, **{name: document[name] for name in ("status", *_DEBUG)}}


def _answer(run: Run, form: Decision) -> Run:
    request = run.review
    if request and form.review_id not in ("", request["review_id"]):
        raise NotPaused(f"Run {run.run_id} asks {request['review_id']} now, and not {shown(form.review_id)}.")
    fields: Json = form.model_dump(include={"edits", "message", "note"})
    decision = answer(form.decision, point=(request or {}).get("point", ""), **fields)
    return run.answer_review(decision, wait=False)


def _summary(run: Run, debug: bool) -> Json:
    """Return a run as one answer; with ``debug`` also its route and the log of its nodes."""
    names = ("run_id", "session_id", "status", "answer", "citations", "support", "error", "stop_reason", "review")
    document = run.to_dict()
    details = {name: document[name] for name in (*names, *(_DEBUG if debug else ()))}
    return {
        "conversation_id": run.row["conversation_id"],
        **details,
    }


def _resume_hint(run: Run) -> str:
    return f"Run {run.run_id} is {run.status}. Continue it with the decision `resume`."


class Events(StreamingResponse):
    """The events of a run until it pauses or ends, as server-sent events.

    A client that disconnects interrupts the run: finished steps stay, and ``resume`` continues from there.
    """

    def __init__(self, run: Run, debug: bool, heartbeat_s: float, hidden: list[str]):
        self._run, self._heartbeat_s, self._hidden = run, heartbeat_s, hidden
        self._collected = {"route_decision", "execution_log"} if debug else {"route_decision"}
        self._complete, self._sent = False, set[str]()
        super().__init__(self._frames(), media_type="text/event-stream", headers=_STREAM_HEADERS)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the response."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            if not self._complete:
                with CancelScope(shield=True):
                    await to_thread.run_sync(partial(self._run.cancel, resumable=True))

    async def _frames(self) -> AsyncIterator[str]:
        async with aclosing(_paced(self._run.aio.events(), self._heartbeat_s)) as events:
            async for event in events:
                if event is None:
                    yield ": ping\n\n"
                    continue
                status = normalize_stream_event(event)
                if status["status"] == "start":
                    status |= {"content": {"run_id": self._run.run_id, "session_id": self._run.session_id}}
                if for_client(event) or status["status"] in {"start", *self._collected}:
                    yield self._frame(status)
        if not self._sent & _FINAL:
            yield self._frame(await self._last_event())
        self._complete = True

    def _frame(self, event: Data) -> str:
        """Return the frame of an event; an answer that no model streamed is sent as one token first."""
        events = [event]
        if event["status"] == "done" and "token" not in self._sent and event["content"]["answer"]:
            events.insert(0, token(event["content"]["answer"]))
        self._sent.add(event["status"])
        return "".join(f"data: {json.dumps(e, ensure_ascii=False)}\n\n" for e in redacted(events, self._hidden))

    async def _last_event(self) -> Json:
        """Return how a run ended that emitted no final event: its answer was refused, or it was stopped."""
        try:
            await self._run.aio.wait()
            outcome = await to_thread.run_sync(lambda: _summary(self._run, False))
        except WorkbenchError as error:
            return failed(str(error))
        if outcome["status"] == "done":
            return done(**{name: outcome[name] for name in ("run_id", "conversation_id", "answer")})
        return review(outcome["review"]) if outcome["review"] else failed(outcome["error"] or _resume_hint(self._run))


async def _paced(events: AsyncGenerator[T], seconds: float) -> AsyncGenerator[T | None]:
    """Yield the events, and None whenever there has been none for that long."""
    upcoming = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            await asyncio.wait({upcoming}, timeout=seconds)
            if not upcoming.done():
                yield None
                continue
            if (event := upcoming.result()) is None:
                return
            upcoming = asyncio.ensure_future(anext(events, None))
            yield event
    finally:
        upcoming.cancel()


async def _begin(begin: Callable[[], Run]) -> Run:
    """Begin a run, shielded: a client that leaves meanwhile must not leave a run that has no owner."""
    with CancelScope(shield=True):
        run = await to_thread.run_sync(begin)
    return run


async def _read_body(request: Request, form: type[F]) -> F:
    """Read a JSON body of at most ``MOST_BYTES``."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "The body must be JSON: send Content-Type: application/json.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise HTTPException(413, f"The body may have {MOST_BYTES:,} bytes.", {"Connection": "close"})
    return _validate(form, bytes(body))


def _validate(form: type[F], content: bytes | Data) -> F:
    try:
        return form.model_validate_json(content) if isinstance(content, bytes) else form.model_validate(content)
    except ValidationError as error:
        faults = [{name: fault[name] for name in ("loc", "msg", "type")} for fault in error.errors()]
        raise HTTPException(422, faults) from None  # type: ignore[arg-type]


def _authorize(request: Request, token: str) -> None:
    """Refuse a request without the token; where there is none, one that does not address this machine by its name."""
    if not token:
        if request.url.hostname not in _LOCAL:
            raise HTTPException(403, "Only http://127.0.0.1 is answered without WORKBENCH_HTTP_TOKEN.")
        return
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(credentials.strip().encode(), token.encode()):
        why = "Send the server's WORKBENCH_HTTP_TOKEN as Authorization: Bearer TOKEN."
        raise HTTPException(401, why, {"WWW-Authenticate": "Bearer"})


def read_token(settings: Settings) -> str:
    """Return the secret that every request brings; "" where there is none.

    Raises:
        SettingsError: it is too short, or not visible ASCII.
    """
    secret = settings.http_token.get_secret_value()
    token = secret.strip()
    if secret and not _TOKEN.fullmatch(token):
        raise SettingsError(
            f"WORKBENCH_HTTP_TOKEN has {len(token)} characters. Give at least 16 letters, digits or signs of ASCII, "
            "without spaces, as `python -c 'import secrets; print(secrets.token_urlsafe())'` makes them."
        )
    return token


def make_app(wb: Workbench, heartbeat_s: float = 15.0) -> Starlette:
    """Return the application over an open workspace."""
    endpoints, token = Endpoints(wb, heartbeat_s), read_token(wb.settings)

    def route(path: str, method: Callable[[Request], Awaitable[Response]], verb: str = "GET") -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                if method != endpoints.health:
                    _authorize(request, token)
                return await method(request)
            except WorkbenchError as error:
                status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 400)
                return endpoints.respond({"detail": str(error)}, status)
            except HTTPException:
                raise
            except Exception as error:  # a fault of ours, whose text may hold anything: only its place is shown
                place = traceback.extract_tb(error.__traceback__)[-1]
                _log.error("%s at %s:%s", type(error).__name__, Path(place.filename).name, place.lineno)
                text = f"{type(error).__name__}: this is a fault of workbench; its log says where."
                return endpoints.respond({"detail": text}, 500)

        return Route(f"/api/v1/{path}", endpoint, methods=[verb])

    async def refuse(request: Request, error: Any) -> Response:
        return JSONResponse({"detail": error.detail}, error.status_code, error.headers)

    routes = [
        route("health", endpoints.health),
        route("chat/stream", endpoints.stream, "POST"),
        route("chat", endpoints.chat, "POST"),
        route("runs", endpoints.runs),
        route("runs/{run_id}", endpoints.run),
        route("debug/{request_id}", endpoints.debug),
        route("runs/{run_id}/answer", endpoints.answer, "POST"),
        route("conversations/{session:path}/messages", endpoints.messages),
        route("clear", endpoints.clear, "POST"),
        route("feedback", endpoints.feedback, "POST"),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: refuse})


def listen(host: str, port: int, token: str) -> socket.socket:
    """Return a socket that listens there.

    Raises:
        SettingsError: other machines can reach it and there is no token; or the address cannot be used.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if not token and not ipaddress.ip_address(address[0]).is_loopback:
            raise SettingsError(
                f"{host} can be reached from other machines. Set WORKBENCH_HTTP_TOKEN to a long secret, which every "
                "request then brings along, or stay on 127.0.0.1."
            )
        return socket.create_server((str(address[0]), port), family=family)
    except (OSError, UnicodeError, OverflowError) as error:
        raise SettingsError(f"{host}:{port} cannot be listened on: {error}. Choose another --host or --port.") from None


def make_server(wb: Workbench, heartbeat_s: float) -> Any:
    """Return the uvicorn server; when it stops, the runs at work are interrupted and their clients are informed."""
    import uvicorn

    def interrupt() -> None:
        for run in wb.runs.list(1_000, status="running"):
            run.cancel(resumable=True)

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            interrupting = asyncio.ensure_future(asyncio.to_thread(interrupt))
            await super().shutdown(sockets)
            await interrupting

    options: Json = {"log_level": "warning", "server_header": False, "lifespan": "off", "ws": "none"}
    return Server(uvicorn.Config(make_app(wb, heartbeat_s), timeout_graceful_shutdown=5, **options))
