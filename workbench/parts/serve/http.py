"""A workspace over HTTP (``workbench serve``): chat as server-sent events or whole, pauses, conversations, feedback.

Who has the token may speak as any user; without a token only this machine is heard, under its own name, and no page of
another site is (a host of its own, a body that is not JSON). A stream that its client leaves interrupts the run, which
can be resumed; a chat without a stream continues without its client, and its answer stands in the conversation.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import socket
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
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
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.settings import Settings
from workbench.state import Data, Json

HEARTBEAT_S = 15.0
MOST_BYTES = 1_000_000
"""Of a request."""
LEAST_TOKEN = 16
"""Visible characters of the secret that every request brings."""
_MOST_MESSAGES = 1_000
_STREAM = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_ENDS = {"done", "review", "error"}
_STATUS: Mapping[type[WorkbenchError], int] = {
    errors.UnknownKnowledge: 404,
    errors.UnknownRun: 404,
    errors.NotPaused: 409,
    errors.WorkspaceBusy: 409,
    errors.InvalidAnswer: 422,
}
"""What is not named here is 400."""
_COLLECTED = ("rag_runs", "combined_context", "retrieval_merged")
_DEBUG = ("route_decision", "execution_log", "plan", "records", "reflections")
_LOCAL = ("localhost", "127.0.0.1", "::1")
_log = logging.getLogger("workbench.http")

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
MaybeName = Annotated[str, Field(max_length=LONGEST_NAME)]
Words = Annotated[str, Field(max_length=100_000)]
T = TypeVar("T")
_CLOSE = {"Connection": "close"}


@dataclass(frozen=True)
class Limits:
    """What a client may take before it is answered: seconds for head and body, bytes of a head, places in the server.

    Of connections whose request has not come, ``waiting`` stay open; the oldest makes room for the newest.
    """

    head_s: float = 10.0
    body_s: float = 30.0
    head_bytes: int = 64 * 1024
    waiting: int = 200
    at_work: int = 200


LIMITS = Limits()


class Given(BaseModel):
    """What a request says; a field that it does not have is refused."""

    model_config = ConfigDict(extra="forbid")


G = TypeVar("G", bound=Given)


class Chat(Given):
    """A message of a user in a session. Without ``kb_prefix`` it is routed; ``review`` says where the run pauses."""

    user_id: Name
    session_id: Name
    message: Words
    kb_prefix: MaybeName = ""
    agent_type: MaybeName = ""
    debug: bool = False
    incognito: bool = False
    review: list[Literal["plan", "step", "reflect"]] = Field([], max_length=3)


class Decision(Given):
    """What is decided at a pause (``review_id`` makes sure at which), or ``resume`` for a run that was interrupted."""

    user_id: Name
    decision: Literal["approve", "edit", "reject", "respond", "resume"]
    review_id: MaybeName = ""
    edits: Json = {}
    message: Words = ""
    note: Words = ""
    stream: bool = False
    debug: bool = False


class Conversation(Given):
    """One conversation of one user; ``kb_prefix`` is taken from older clients, and says nothing."""

    user_id: Name
    session_id: Name
    kb_prefix: MaybeName = ""


class Listing(Given):
    """Whose messages, and which."""

    user_id: Name
    limit: int = Field(100, ge=1, le=_MOST_MESSAGES)
    before: MaybeName | None = None


class Which(Given):
    """Whose run."""

    user_id: MaybeName = ""


class RunsListing(Which):
    """Which runs."""

    session_id: MaybeName = ""
    status: Literal["", "running", "paused", "interrupted", "done", "failed", "cancelled"] = ""
    limit: int = Field(100, ge=1, le=_MOST_MESSAGES)


class Verdict(Given):
    """A row of the table ``feedback``; ``message_id`` names the answer, or ``thread_id`` its run.

    Question and agent type are those of the run, whatever is sent. ``note`` in the metadata is the note, all else a
    label; no verdict takes back what was said.
    """

    is_positive: bool | None
    message_id: MaybeName = ""
    thread_id: MaybeName = ""
    query: Words = ""
    agent_type: MaybeName = ""
    metadata: Json = {}
    user_id: MaybeName = ""


class Door:
    """The endpoints over an open workspace, a method each."""

    def __init__(self, wb: Workbench, heartbeat_s: float, limits: Limits):
        self._wb, self._heartbeat_s, self._limits = wb, heartbeat_s, limits
        self.hidden = secrets(wb.settings)

    async def health(self, request: Request) -> Response:
        """Return whether the stores answer."""
        try:
            await to_thread.run_sync(lambda: (self._wb.runs.list(1), self._wb.messages("", "")))
        except WorkbenchError:
            return JSONResponse({"status": "failed"}, 503)
        return JSONResponse({"status": "ok"})

    async def stream(self, request: Request) -> Response:
        """Ask, and stream what is done."""
        given = await self._body(request, Chat)
        return Events(await self._asked(given), given.debug, self._heartbeat_s, self.hidden)

    async def chat(self, request: Request) -> Response:
        """Ask, and wait for the answer or a pause."""
        given = await self._body(request, Chat)
        return await self._ended(await self._asked(given), given.debug)

    async def answer(self, request: Request) -> Response:
        """Answer what a run asks, or continue with one that was interrupted."""
        given = await self._body(request, Decision)

        def begin() -> Run:
            run = self._run(request.path_params["run_id"], given.user_id)
            return run.resume(wait=False) if given.decision == "resume" else _answered(run, given)

        run = await _whole(begin)
        if given.stream:
            return Events(run, given.debug, self._heartbeat_s, self.hidden)
        return await self._ended(run, given.debug)

    async def runs(self, request: Request) -> Response:
        """Return the runs, newest first, a line each."""
        given = _read(RunsListing, dict(request.query_params))
        equals = {name: value for name, value in given.model_dump(exclude={"limit"}).items() if value}

        def work() -> list[dict[str, str]]:
            names = ("run_id", "status", "message", "query", "user_id", "session_id", "created_at")
            return [{name: line[name] for name in names} for line in self._wb.runs.lines(given.limit, **equals)]

        return JSONResponse({"runs": redacted(await to_thread.run_sync(work), self.hidden)})

    async def run(self, request: Request) -> Response:
        """Return a run whole: plan, records, reflections, evidence, answer, the log in levels."""
        return await self._of(request, "run_id", Run.to_dict)

    async def debug(self, request: Request) -> Response:
        """Return what was collected for a request, whose id is its run's."""
        return await self._of(request, "request_id", debugged)

    async def _of(self, request: Request, name: str, make: Callable[[Run], Json]) -> Response:
        given, run_id = _read(Which, dict(request.query_params)), request.path_params[name]
        told = await to_thread.run_sync(lambda: make(self._run(run_id, given.user_id)))
        return JSONResponse(redacted(told, self.hidden))

    async def messages(self, request: Request) -> Response:
        """Return the messages of a conversation, oldest first."""
        given, session = _read(Listing, dict(request.query_params)), request.path_params["session"]
        told: Json = {"limit": given.limit, "before": given.before}
        found = await to_thread.run_sync(lambda: self._wb.messages(session, given.user_id, **told))
        return JSONResponse({"user_id": given.user_id, "session_id": session, "messages": found})

    async def clear(self, request: Request) -> Response:
        """Forget what was said in one conversation."""
        given = await self._body(request, Conversation)

        def work() -> dict[str, str]:
            cleared = self._wb.clear(given.session_id, given.user_id)
            left = self._wb.messages(given.session_id, given.user_id)
            return {"status": "ok", "remaining_messages": str(len(left)), "cleared_messages": str(cleared)}

        return JSONResponse(await to_thread.run_sync(work))

    async def feedback(self, request: Request) -> Response:
        """Keep what somebody thinks of an answer."""
        given = await self._body(request, Verdict)

        def work() -> dict[str, str]:
            run_id = self._wb.runs.of_message(given.message_id) if given.message_id else given.thread_id
            run = self._run(run_id, given.user_id)
            labels = dict(given.metadata)
            give(run, given.is_positive, labels.pop("note", ""), given.user_id, labels)
            return {"status": "ok", "run_id": run.run_id}

        return JSONResponse(await to_thread.run_sync(work))

    async def _body(self, request: Request, model: type[G]) -> G:
        """Return the body as that model: JSON, and no more of it, nor for longer, than is bearable."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "The body must be JSON: send Content-Type: application/json.")
        read = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_s):
                async for chunk in request.stream():
                    read += chunk
                    if len(read) > MOST_BYTES:
                        raise HTTPException(413, f"The body may have {MOST_BYTES:,} bytes.", _CLOSE)
        except TimeoutError:
            raise HTTPException(408, f"The body was not whole after {self._limits.body_s:g} s.", _CLOSE) from None
        return _read(model, bytes(read))

    async def _asked(self, given: Chat) -> Run:
        """Return the run, at work."""
        worker = f"{given.kb_prefix}:{given.agent_type}" if given.kb_prefix and given.agent_type else given.agent_type
        options: Any = {"user": given.user_id, "session": given.session_id, "kb": given.kb_prefix or None}
        options |= {"review": given.review, "incognito": given.incognito, "debug": given.debug, "worker": worker}
        return await _whole(lambda: self._wb.start(given.message, **options))

    async def _ended(self, run: Run, debug: bool) -> Response:
        """Return how a run ended, or what it asks."""
        await run.aio.wait()
        told = await to_thread.run_sync(lambda: _told(run, debug))
        if told["status"] not in ("done", "paused"):
            detail = {"detail": told["error"] or _stopped(run), "run_id": run.run_id, "status": told["status"]}
            failed_with = 502 if isinstance(self._wb.runs.failure(run.run_id), ModelError) else 500
            return JSONResponse(redacted(detail, self.hidden), failed_with if told["status"] == "failed" else 409)
        return JSONResponse(told)

    def _run(self, run_id: str, user: str) -> Run:
        """Return a run of this user; that of another is as unknown as none, and no id of theirs is told."""
        if run_id in self._wb.runs:
            run = self._wb.run(run_id)
            if not user or run.row["user_id"] == user:
                return run
        raise HTTPException(404, f"Unknown run {shown(run_id)}{f' of user {shown(user)}' if user else ''}.")


def debugged(run: Run) -> Json:
    """Return what was collected of a run under its id as the request's: its log in levels, route, plan, evidence."""
    still = run.recording()
    document = still.to_dict()
    collected = {name: told for event in still.debug_events for name, told in event.items() if name in _COLLECTED}
    names = ("status", "route_decision", "execution_log", "plan", "records", "reflections")
    return {"request_id": run.run_id, **collected, **{name: document[name] for name in names}}


def _answered(run: Run, given: Decision) -> Run:
    asked = run.review
    if asked and given.review_id not in ("", asked["review_id"]):
        raise NotPaused(f"Run {run.run_id} asks {asked['review_id']} now, and not {shown(given.review_id)}.")
    said: Json = {"edits": given.edits, "message": given.message, "note": given.note}
    return run.answer_review(answer(given.decision, point=(asked or {}).get("point", ""), **said), wait=False)


def _told(run: Run, debug: bool) -> Json:
    """Return a run as one answer; with ``debug`` also where it was routed, and what its nodes did."""
    still, conversation = run.recording(), run.row["conversation_id"]
    names = ("run_id", "session_id", "status", "answer", "citations", "error", "review")
    state, seen = still.state, still.to_dict() if debug else {}
    more = {name: seen[name] for name in _DEBUG if name in seen}
    more |= {
        "conversation_id": conversation,
        "support": state.get("support", []),
        "stop_reason": state.get("stop_reason"),
    }
    return {**{name: getattr(still, name) for name in names}, **more}


def _stopped(run: Run) -> str:
    return f"Run {run.run_id} is {run.status}. Go on with it by the decision `resume`."


class Events(StreamingResponse):
    """What a run does until it pauses or ends, as server-sent events.

    A client that goes away interrupts the run: what is done is kept, and ``resume`` continues from there.
    """

    def __init__(self, run: Run, debug: bool, heartbeat_s: float, hidden: list[str]):
        self._run, self._debug, self._heartbeat_s, self._hidden = run, debug, heartbeat_s, hidden
        self._whole, self._seen = False, set[str]()
        super().__init__(self._frames(), media_type="text/event-stream", headers=_STREAM)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            if not self._whole:
                with CancelScope(shield=True):
                    await to_thread.run_sync(self._run.interrupt)

    async def _frames(self) -> AsyncIterator[str]:
        async with aclosing(_paced(self._run.aio.events(), self._heartbeat_s)) as events:
            async for event in events:
                if event is None:
                    yield ": ping\n\n"
                elif told := self._heard(event):
                    yield self._frames_of(told)
        if not self._seen & _ENDS:
            yield self._frames_of(await self._end())
        self._whole = True

    def _frames_of(self, event: Data) -> str:
        """Return an event as it is sent; an answer that no model wrote, and that is there at once, is a token too."""
        status, told = event["status"], [event]
        if status == "done" and "token" not in self._seen and event["content"]["answer"]:
            told.insert(0, token(event["content"]["answer"]))
        self._seen.add(status)
        shown = redacted(told, self._hidden) if status == "error" else told
        return "".join(f"data: {json.dumps(one, ensure_ascii=False)}\n\n" for one in shown)

    def _heard(self, event: Data) -> Json | None:
        """Return an event as a client has it; None for what it has not."""
        told = normalize_stream_event(event)
        if told["status"] == "start":
            return {**told, "content": {"run_id": self._run.run_id, "session_id": self._run.session_id}}
        wanted = ("route_decision", "execution_log") if self._debug else ("route_decision",)
        return told if for_client(event) or told["status"] in wanted else None

    async def _end(self) -> Json:
        """Return the last event of a run that did not tell how it ended: its answer was refused, or it was stopped."""
        try:
            await self._run.aio.wait()
            told = await to_thread.run_sync(lambda: _told(self._run, False))
        except WorkbenchError as error:
            return failed(str(error))
        if told["status"] == "done":
            return done(**{name: told[name] for name in ("run_id", "conversation_id", "answer")})
        return review(told["review"]) if told["review"] else failed(told["error"] or _stopped(self._run))


async def _paced(events: AsyncGenerator[T], seconds: float) -> AsyncGenerator[T | None]:
    """Yield the events as they come, and None whenever nothing has come for so long."""
    coming = asyncio.ensure_future(anext(events))
    try:
        while True:
            await asyncio.wait({coming}, timeout=seconds)
            if not coming.done():
                yield None
                continue
            try:
                event = coming.result()
            except StopAsyncIteration:
                return
            coming = asyncio.ensure_future(anext(events))
            yield event
    finally:
        coming.cancel()


async def _whole(begin: Callable[[], Run]) -> Run:
    """Begin a run, also when the client goes meanwhile: or there would be one that no one knows of."""
    with CancelScope(shield=True):
        run = await to_thread.run_sync(begin)
    return run


# what is asked, and who may ask


def _read(model: type[G], given: bytes | Data) -> G:
    try:
        return model.model_validate_json(given) if isinstance(given, bytes) else model.model_validate(given)
    except ValidationError as error:
        faults = [{name: fault[name] for name in ("loc", "msg", "type")} for fault in error.errors()]
        raise HTTPException(422, faults) from None  # type: ignore[arg-type]


def _admitted(request: Request, token: str) -> None:
    """Hear who has the token; where there is none, who calls this machine by its own name."""
    if not token:
        if request.url.hostname not in _LOCAL:
            raise HTTPException(403, "Only http://127.0.0.1 is answered without WORKBENCH_HTTP_TOKEN.")
        return
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
        why = "Send the server's WORKBENCH_HTTP_TOKEN as Authorization: Bearer TOKEN."
        raise HTTPException(401, why, {"WWW-Authenticate": "Bearer"})


def token_of(settings: Settings) -> str:
    """Return the secret that every request brings along; "" where there is none.

    Raises:
        SettingsError: it is too short, or blank, to keep anybody out.
    """
    given = settings.http_token.get_secret_value()
    token, count = given.strip(), sum(letter.isprintable() and not letter.isspace() for letter in given)
    if given and (count < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise SettingsError(
            f"WORKBENCH_HTTP_TOKEN has {count} visible characters. Give at least {LEAST_TOKEN} letters, digits or "
            "signs of ASCII, as `python -c 'import secrets; print(secrets.token_urlsafe())'` makes them."
        )
    return token


def app_of(wb: Workbench, heartbeat_s: float = HEARTBEAT_S, limits: Limits = LIMITS) -> Starlette:
    """Return the application over an open workspace."""
    door, token = Door(wb, heartbeat_s, limits), token_of(wb.settings)

    def endpoint(method: Callable[[Request], Awaitable[Response]], admits: bool = True) -> Any:
        async def answered(request: Request) -> Response:
            try:
                if admits:
                    _admitted(request, token)
                return await method(request)
            except WorkbenchError as error:
                status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 400)
                return _refused(status, redacted(str(error), door.hidden))
            except HTTPException:
                raise
            except Exception as error:  # a fault of ours; what it says may be anything, so that only its place is told
                place = traceback.extract_tb(error.__traceback__)[-1]
                _log.error("%s at %s:%s", type(error).__name__, Path(place.filename).name, place.lineno)
                return _refused(500, f"{type(error).__name__}: this is a fault of workbench; its log says where.")

        return answered

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _refused(error.status_code, error.detail, error.headers)

    v1 = "/api/v1"
    routes = [
        Route(f"{v1}/health", endpoint(door.health, admits=False), methods=["GET"]),
        Route(f"{v1}/chat/stream", endpoint(door.stream), methods=["POST"]),
        Route(f"{v1}/chat", endpoint(door.chat), methods=["POST"]),
        Route(f"{v1}/runs", endpoint(door.runs), methods=["GET"]),
        Route(f"{v1}/runs/{{run_id}}", endpoint(door.run), methods=["GET"]),
        Route(f"{v1}/debug/{{request_id}}", endpoint(door.debug), methods=["GET"]),
        Route(f"{v1}/runs/{{run_id}}/answer", endpoint(door.answer), methods=["POST"]),
        Route(f"{v1}/conversations/{{session:path}}/messages", endpoint(door.messages), methods=["GET"]),
        Route(f"{v1}/clear", endpoint(door.clear), methods=["POST"]),
        Route(f"{v1}/feedback", endpoint(door.feedback), methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: refused})


def _refused(status: int, detail: Any, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"detail": detail}, status, headers)


def listen(host: str, port: int, token: str) -> socket.socket:
    """Return a socket that listens there.

    Raises:
        SettingsError: it is not this machine's own name and there is no token; or it cannot be listened on.
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


def server_of(wb: Workbench, heartbeat_s: float, limits: Limits = LIMITS) -> Any:
    """Make the server; what runs when it is told to stop is interrupted, and its clients are told so."""
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    waiting: dict[Any, asyncio.TimerHandle] = {}

    class Protocol(H11Protocol):
        """uvicorn's own, with an end to what a client may take to send the head of a request; uvicorn has none."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._leave()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._watch()

        def _watch(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self._leave()
            elif self not in waiting and not self.transport.is_closing():
                waiting[self] = self.loop.call_later(limits.head_s, self._close)
                if len(waiting) > limits.waiting:
                    next(iter(waiting))._close()

        def _leave(self) -> None:
            if timer := waiting.pop(self, None):
                timer.cancel()

        def _close(self) -> None:
            self._leave()
            self.transport.close()

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            interrupting = asyncio.ensure_future(asyncio.to_thread(_interrupted, wb))
            await super().shutdown(sockets)
            await interrupting

    options: Json = {"log_level": "warning", "server_header": False, "lifespan": "off", "http": Protocol}
    options |= {"h11_max_incomplete_event_size": limits.head_bytes, "timeout_graceful_shutdown": 5}
    options["limit_concurrency"] = limits.waiting + limits.at_work
    return Server(uvicorn.Config(app_of(wb, heartbeat_s, limits), ws="none", **options))


def _interrupted(wb: Workbench) -> None:
    for run in wb.runs.list(1_000, status="running"):
        run.interrupt()
