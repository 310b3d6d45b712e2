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
import logging
import re
import socket
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from anyio import CancelScope, to_thread
from pydantic import BaseModel, Field, ValidationError
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
from workbench.runs.stored import debug_events, snapshot
from workbench.session import Workbench
from workbench.settings import Settings
from workbench.state import Data, Json, pick, without_empty
from workbench.text import to_json

MOST_BYTES = 1_000_000
"""Of a request's body."""
_TOKEN = re.compile(r"[!-~]{16,}")
_STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_FINAL = {"done", "review", "error"}
_STATUS: Mapping[type[WorkbenchError], int] = {
    errors.UnknownKnowledge: HTTPStatus.NOT_FOUND,
    errors.UnknownRun: HTTPStatus.NOT_FOUND,
    errors.NotPaused: HTTPStatus.CONFLICT,
    errors.WorkspaceBusy: HTTPStatus.CONFLICT,
    errors.InvalidAnswer: HTTPStatus.UNPROCESSABLE_ENTITY,
}
"""Any other error of the workbench is 400."""
_COLLECTED = ("rag_runs", "combined_context", "retrieval_merged")
_ANSWER = (
    "run_id",
    "session_id",
    "status",
    "answer",
    "citations",
    "support",
    "error",
    "stop_reason",
    "review",
)
_DEBUG = ("route_decision", "execution_log", "plan", "records", "reflections")
_LOCAL = ("localhost", "127.0.0.1", "::1")
_log = logging.getLogger("workbench.http")

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
MaybeName = Annotated[str, Field(max_length=LONGEST_NAME)]
Text = Annotated[str, Field(max_length=100_000)]
T = TypeVar("T")


class Form(BaseModel, extra="forbid"):
    """The fields of a request; any other field is refused."""


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
    run_id: MaybeName = ""
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


class RowsQuery(Form):
    """How many rows at most."""

    limit: int = Field(100, ge=1, le=1_000)


class MessagesQuery(RowsQuery):
    """Whose messages, and which."""

    user_id: Name
    session_id: MaybeName
    before: MaybeName | None = None


class RunQuery(Form):
    """Which run, and whose."""

    run_id: MaybeName
    user_id: MaybeName = ""


class RunsQuery(RowsQuery):
    """Which runs."""

    user_id: MaybeName = ""
    session_id: MaybeName = ""
    status: Literal["", "running", "paused", "interrupted", "done", "failed", "cancelled"] = ""


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


# What an endpoint does: a function of the workspace and the request's fields, in a thread of its own. It returns a run,
# of which the client is told, or a document.


def health(wb: Workbench, form: Form) -> Json:
    """Return that the stores answer."""
    try:
        wb.runs.list(1)
        wb.messages("", "")
    except WorkbenchError:
        raise HTTPException(503, {"status": "failed"}) from None  # type: ignore[arg-type]
    return {"status": "ok"}


def chat(wb: Workbench, form: Chat) -> Run:
    """Ask."""
    worker = (
        f"{form.kb_prefix}:{form.agent_type}"
        if form.kb_prefix and form.agent_type
        else form.agent_type
    )
    options = form.model_dump(include={"review", "incognito", "debug"})
    options |= {
        "user": form.user_id,
        "session": form.session_id,
        "kb": form.kb_prefix or None,
        "worker": worker,
    }
    return wb.start(form.message, **options)


def decide(wb: Workbench, form: Decision) -> Run:
    """Answer a paused run, or continue an interrupted one."""
    run = _run(wb, form.run_id, form.user_id)
    if form.decision == "resume":
        return run.resume(wait=False)
    request = run.review
    if request and form.review_id not in ("", request["review_id"]):
        raise NotPaused(
            f"Run {run.run_id} asks {request['review_id']} now, and not {shown(form.review_id)}."
        )
    fields = form.model_dump(include={"edits", "message", "note"})
    decision = answer(form.decision, point=(request or {}).get("point", ""), **fields)
    return run.answer_review(decision, wait=False)


def list_runs(wb: Workbench, form: RunsQuery) -> Json:
    """Return the runs, newest first, one row each."""
    equals = without_empty(form.model_dump(exclude={"limit"}))
    names = ("run_id", "status", "message", "query", "user_id", "session_id", "created_at")
    return {"runs": [pick(line, *names) for line in wb.runs.lines(form.limit, **equals)]}


def show_run(wb: Workbench, form: RunQuery) -> Json:
    """Return a run: plan, records, reflections, evidence, answer, nested log."""
    return _run(wb, form.run_id, form.user_id).to_dict()


def show_debug(wb: Workbench, form: RunQuery) -> Json:
    """Return what was collected of a run, whose id is its request's: its nested log, route, plan, evidence."""
    recording = snapshot(_run(wb, form.run_id, form.user_id))
    document = recording.to_dict()
    events = debug_events(recording)
    collected = {
        name: content for event in events for name, content in event.items() if name in _COLLECTED
    }
    return {
        "request_id": form.run_id,
        **collected,
        **pick(document, "status", *_DEBUG),
    }


def list_messages(wb: Workbench, form: MessagesQuery) -> Json:
    """Return the messages of a conversation, oldest first."""
    messages = wb.messages(form.session_id, form.user_id, limit=form.limit, before=form.before)
    return {"user_id": form.user_id, "session_id": form.session_id, "messages": messages}


def clear(wb: Workbench, form: Conversation) -> Json:
    """Delete the messages of one conversation."""
    cleared = wb.clear(form.session_id, form.user_id)
    remaining = wb.messages(form.session_id, form.user_id)
    return {
        "status": "ok",
        "remaining_messages": str(len(remaining)),
        "cleared_messages": str(cleared),
    }


def feedback(wb: Workbench, form: Verdict) -> Json:
    """Store a verdict on an answer."""
    run_id = form.thread_id
    if form.message_id:
        message = wb._work.durable.conversations.message(form.message_id) or {}
        run_id = (message.get("debug") or {}).get("run_id", "")
    run = _run(wb, run_id, form.user_id)
    labels = dict(form.metadata)
    give(run, form.is_positive, labels.pop("note", ""), form.user_id, labels)
    return {"status": "ok", "run_id": run.run_id}


ROUTES: Sequence[tuple[str, str, type[Form], Callable[[Workbench, Any], Run | Json]]] = (
    ("GET", "health", Form, health),
    ("POST", "chat/stream", Chat, chat),
    ("POST", "chat", Chat, chat),
    ("GET", "runs", RunsQuery, list_runs),
    ("GET", "runs/{run_id}", RunQuery, show_run),
    ("GET", "debug/{run_id}", RunQuery, show_debug),
    ("POST", "runs/{run_id}/answer", Decision, decide),
    ("GET", "conversations/{session_id:path}/messages", MessagesQuery, list_messages),
    ("POST", "clear", Conversation, clear),
    ("POST", "feedback", Verdict, feedback),
)
"""Method, path, the fields of its query, path or body, and what it does."""


def _run(wb: Workbench, run_id: str, user: str) -> Run:
    """Return a run of this user; the run of another user is as unknown as one that does not exist."""
    if run_id in wb.runs:
        run = wb.run(run_id)
        if not user or run.row["user_id"] == user:
            return run
    raise HTTPException(
        404, f"Unknown run {shown(run_id)}{f' of user {shown(user)}' if user else ''}."
    )


async def _outcome(run: Run, debug: bool) -> tuple[Json, int]:
    """Wait for the end of a run or its next pause, and return it as one answer, with its status of HTTP.

    With ``debug`` it has its route and the log of its nodes too.
    """
    await run.aio.wait()
    return await to_thread.run_sync(partial(_summary, run, debug))


def _summary(run: Run, debug: bool) -> tuple[Json, int]:
    document = run.to_dict()
    if document["status"] in ("done", "paused"):
        answer_fields = pick(document, *_ANSWER, *(_DEBUG if debug else ()))
        return {"conversation_id": run.row["conversation_id"], **answer_fields}, 200
    hint = f"Run {run.run_id} is {run.status}. Continue it with the decision `resume`."
    detail = {
        "detail": document["error"] or hint,
        "run_id": run.run_id,
        "status": document["status"],
    }
    if document["status"] != "failed":
        return detail, 409
    return detail, 502 if isinstance(run._work.failure(run.run_id), ModelError) else 500


class Events(StreamingResponse):
    """The events of a run until it pauses or ends, as server-sent events.

    A client that disconnects interrupts the run: finished steps stay, and ``resume`` continues from there.
    """

    def __init__(self, run: Run, debug: bool, heartbeat_s: float, hidden: list[str]):
        self._run = run
        self._heartbeat_s = heartbeat_s
        self._hidden = hidden
        self._collected = {"route_decision", "execution_log"} if debug else {"route_decision"}
        self._complete = False
        self._sent = set[str]()
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
                    status |= {
                        "content": {
                            "run_id": self._run.run_id,
                            "session_id": self._run.session_id,
                        }
                    }
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
        return "".join(f"data: {to_json(e)}\n\n" for e in redacted(events, self._hidden))

    async def _last_event(self) -> Json:
        """Return how a run ended that emitted no final event: its answer was refused, or it was stopped."""
        try:
            outcome, status = await _outcome(self._run, False)
        except WorkbenchError as error:
            return failed(str(error))
        if status != 200:
            return failed(outcome["detail"])
        if outcome["review"]:
            return review(outcome["review"])
        return done(**pick(outcome, "run_id", "conversation_id", "answer"))


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


async def _read(request: Request, form: type[Form]) -> Form:
    """Read the fields of a request: its path, and its query or a JSON body of at most ``MOST_BYTES``."""
    try:
        if request.method == "GET":
            return form.model_validate({**request.query_params, **request.path_params})
        if (
            request.headers.get("content-type", "").partition(";")[0].strip().lower()
            != "application/json"
        ):
            raise HTTPException(
                415, "The body must be JSON: send Content-Type: application/json."
            )
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                raise HTTPException(
                    413, f"The body may have {MOST_BYTES:,} bytes.", {"Connection": "close"}
                )
        return form.model_validate_json(bytes(body)).model_copy(update=request.path_params)
    except ValidationError as error:
        faults = [pick(fault, "loc", "msg", "type") for fault in error.errors()]
        raise HTTPException(422, faults) from None  # type: ignore[arg-type]


def _authorize(request: Request, token: str) -> None:
    """Refuse a request without the token; where there is none, one that does not address this machine by its name."""
    if not token:
        if request.url.hostname not in _LOCAL:
            raise HTTPException(
                403, "Only http://127.0.0.1 is answered without WORKBENCH_HTTP_TOKEN."
            )
        return
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(
        credentials.strip().encode(), token.encode()
    ):
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
    token = read_token(wb.settings)
    hidden = secrets(wb.settings)

    def respond(document: Any, status: int = 200) -> Response:
        """Make a response without any secret of the settings."""
        return JSONResponse(redacted(document, hidden), status)

    def route(
        verb: str, path: str, form: type[Form], work: Callable[[Workbench, Any], Run | Json]
    ) -> Route:
        async def endpoint(request: Request) -> Response:
            if work is not health:
                _authorize(request, token)
            fields: Any = await _read(request, form)
            try:
                # a client that leaves meanwhile must not leave a run without an owner
                with CancelScope(shield=True):
                    result = await to_thread.run_sync(work, wb, fields)
                if not isinstance(result, Run):
                    return respond(result)
                if path == "chat/stream" or getattr(fields, "stream", False):
                    return Events(result, fields.debug, heartbeat_s, hidden)
                return respond(*await _outcome(result, fields.debug))
            except HTTPException:
                raise
            except WorkbenchError as error:
                status = next(
                    (code for kind, code in _STATUS.items() if isinstance(error, kind)), 400
                )
                return respond({"detail": str(error)}, status)
            except Exception as error:
                # a fault of ours, whose text may hold anything: only its place is shown
                place = traceback.extract_tb(error.__traceback__)[-1]
                kind = type(error).__name__
                _log.error("%s at %s:%s", kind, Path(place.filename).name, place.lineno)
                return respond(
                    {"detail": f"{kind}: this is a fault of workbench; its log says where."}, 500
                )

        return Route(f"/api/v1/{path}", endpoint, methods=[verb])

    async def refuse(request: Request, error: Any) -> Response:
        document = error.detail if isinstance(error.detail, dict) else {"detail": error.detail}
        return JSONResponse(document, error.status_code, error.headers)

    return Starlette(
        routes=[route(*line) for line in ROUTES], exception_handlers={HTTPException: refuse}
    )


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
        raise SettingsError(
            f"{host}:{port} cannot be listened on: {error}. Choose another --host or --port."
        ) from None


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

    options: Json = {
        "log_level": "warning",
        "server_header": False,
        "lifespan": "off",
        "ws": "none",
    }
    return Server(
        uvicorn.Config(make_app(wb, heartbeat_s), timeout_graceful_shutdown=5, **options)
    )
