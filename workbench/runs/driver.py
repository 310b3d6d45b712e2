"""Carries a run from where it stands to the next pause or to its end, and says how it stands afterwards."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import (
    DecisionDiffers,
    Divergence,
    InvalidAnswer,
    NotPaused,
    RunError,
    WorkbenchError,
    WorkspaceError,
    WorkspaceFull,
)
from workbench.events import done, failed, review
from workbench.graphs.reviewers import Reviewer, as_json, describe_faults
from workbench.ports import Context, Conversations, clock_after
from workbench.records.checkpoints import FIX
from workbench.records.conversations import SqlConversations
from workbench.records.store import RunStore
from workbench.records.tape import Effect, Tape
from workbench.runs.taped import reviewer_of_run
from workbench.state import Data, Json

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from workbench.records.checkpoints import Checkpoints

Listener = Callable[[Json | None], object]


@dataclass(frozen=True)
class AnswerTo:
    """An answer, and what it answers: never taken for the answer to another question of the run."""

    answer: Data
    review_id: str


@dataclass
class Live:
    """A run that this process works on.

    Listeners get each event, and None when the work pauses or ends; one that comes late gets first what it missed.
    ``unwritten`` is the error after which the store could not even be told that the run failed: a full disk.
    """

    run_id: str
    reviewer: Reviewer | None = None
    listeners: list[Listener] = field(default_factory=list)
    heard: list[Json | None] = field(default_factory=list)
    unwritten: WorkspaceError | None = None
    work: Future[None] | None = None
    begun: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def publish(self, event: Json | None) -> None:
        """Tell everyone who listens."""
        with self._lock:
            self.heard.append(event)
            for listener in self.listeners:
                listener(event)

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Hear everything from the beginning of this stretch of work."""
        with self._lock:
            for event in self.heard:
                listener(event)
            self.listeners.append(listener)
        try:
            yield
        finally:
            with self._lock:
                self.listeners.remove(listener)


class Driver:
    """The graph, its checkpoints, and the stores that belong together: one durable, or one in memory for incognito.

    Args:
        runs: what runs did.
        conversations: what was said.
        checkpoints: the file of the checkpoints.

    Attributes:
        conversation_store: what runs read and write: the registered store, or else ``conversations``.
    """

    def __init__(self, runs: RunStore, conversations: SqlConversations, checkpoints: Path | str):
        self.runs = runs
        self.conversations = conversations
        self.conversation_store: Conversations = conversations
        self._path = checkpoints
        self._places = asyncio.Semaphore(
            2
        )  # one computes while the other's checkpoint is written
        self._opening = threading.Lock()
        self._saver: Checkpoints | None = None

    @property
    def saver(self) -> Checkpoints:
        """Open the checkpoints when they are first used."""
        from workbench.records.checkpoints import Checkpoints

        with self._opening:
            self._saver = self._saver or Checkpoints.open(self._path)
        return self._saver

    @cached_property
    def graph(self) -> Any:
        """Compile the conversation graph when it is first used."""
        from workbench.graphs.conversation import build_conversation

        return build_conversation(self.saver)

    def close(self) -> None:
        """Close the checkpoints and the stores."""
        if self._saver:
            self._saver.conn.close()
        self.conversations.close()
        self.runs.close()

    async def forget(self, run_ids: Sequence[str]) -> None:
        """Delete runs from the checkpoints and from the store: one transaction per file."""
        await self.saver.delete_threads(run_ids)
        self.runs.remove(run_ids)

    async def drive(
        self, live: Live, graph_input: Any, make_context: Callable[[], Context], config: Data
    ) -> None:
        """Work on the run until it pauses, ends or is stopped; the store's row says how it stands.

        Raises:
            InvalidAnswer: the answer was refused; the run waits as before.
            WorkbenchError: the run failed; the row keeps the message, and the run can be resumed.
        """
        with releasing(self.runs, live, partial(self._keep, live)):
            context = await asyncio.to_thread(make_context)
            context = replace(
                context, clock=clock_after(context.clock, _moments(self.runs, live.run_id))
            )
            live.reviewer = live.reviewer or reviewer_of_run(self.runs, live.run_id)
            async with self._place():
                request = await self._advance(live, graph_input, context, config)
            while request is not None and live.reviewer is not None:
                answer = await self._reviewed(live, request)
                if answer is None:
                    break
                request = await self._advance(
                    live, AnswerTo(as_json(answer), request["review_id"]), context, config
                )
            self._settle(live, request)

    async def _reviewed(self, live: Live, request: Data) -> Any:
        """Ask the reviewer, who sees the evidence too, in a thread, so that no other run waits."""
        from workbench.graphs.merge import distinct, gather

        results = gather(self.runs.records(live.run_id), self.runs, live.run_id)
        seen = {**request, "evidence": distinct(results)}
        loop = asyncio.get_running_loop()
        assert live.reviewer is not None
        # A pool of its own: a reviewer may wait for a person, and must not use up the threads of tools. It is not
        # waited for at the end, or a reviewer that never returns would hold a cancelled run.
        pool = ThreadPoolExecutor(1, "reviewer")
        try:
            answer = await loop.run_in_executor(pool, live.reviewer, seen)
            return await answer if inspect.isawaitable(answer) else answer
        finally:
            pool.shutdown(wait=False)

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Wait for a place among the few runs that work at once; after two seconds a run begins without one.

        Quick runs share one interpreter: one after the other, half of them are done in half the time, and all together
        none is. A slow one, which waits for a model or a tool, must not hold up the others.
        """
        try:
            # `wait_for` loses a cancel that comes with the place
            async with asyncio.timeout(2):
                await self._places.acquire()
        except TimeoutError:
            yield
            return
        try:
            yield
        finally:
            self._places.release()

    async def _advance(self, live: Live, graph_input: Any, context: Context, config: Data) -> Any:
        """Run the graph to its next pause or its end; return the request of the pause, or None at the end."""
        graph = self.graph
        # The state is read now, not when the answer came: another process may have answered in between.
        if isinstance(graph_input, AnswerTo):
            graph_input = _resuming(graph_input, await graph.aget_state(config))
        # `sync`: a checkpoint is on disk before the next step starts; a killed process loses only the running one.
        # `subgraphs`: without it the events of retrieval and reporter nodes would not arrive.
        events = graph.astream(
            graph_input,
            config,
            context=context,
            stream_mode="custom",
            subgraphs=True,
            durability="sync",
        )
        async for _, event in events:
            live.publish(event)
        return pending(await graph.aget_state(config))

    def _settle(self, live: Live, request: Json | None) -> None:
        if request is not None:
            self.runs.let_go(live.run_id, "paused")
            live.publish(review(request))
            return
        self.runs.let_go(live.run_id, "done")
        row = self.runs.get(live.run_id, whole=True)
        answer = (row["result"] or {}).get("answer", "")
        live.publish(
            done(run_id=live.run_id, conversation_id=row["conversation_id"], answer=answer)
        )

    def _keep(self, live: Live, error: BaseException) -> None:
        """Store the part of an answer, which the whole one replaces later, and where a replay diverged."""
        row = self.runs.get(live.run_id)
        tokens = (e["content"] for e in live.heard if e and e.get("status") == "token")
        text = "".join(tokens)
        if text.strip() and row["result"] is None:
            key = f"{live.run_id}:assistant"
            self.conversation_store.append_message(
                row["conversation_id"], "assistant", text, message_key=key, partial=True
            )
        if isinstance(error, Divergence):
            effect = Effect("divergence", error.name, {}, error.to_dict())
            Tape(self.runs, live.run_id).write("divergence", [effect])


@contextmanager
def releasing(
    runs: RunStore, live: Live, keep: Callable[[BaseException], object] = lambda _: None
) -> Iterator[None]:
    """Release a run whose work in the block was stopped, refused or failed; its row says how it stands.

    Args:
        runs: where the row is.
        live: the run.
        keep: called before, to store what the work had come to.

    Raises:
        WorkspaceError: not even that could be written.
    """
    run_id = live.run_id
    try:
        yield
    except asyncio.CancelledError as stopped:
        status = "cancelled" if runs.is_cancelled(run_id) else "interrupted"
        _store_part(keep, stopped)
        runs.let_go(run_id, status)
        raise
    except (InvalidAnswer, NotPaused, DecisionDiffers) as refusal:
        _store_part(keep, refusal)
        runs.let_go(run_id, "paused")
        raise
    except (
        Exception,
        SystemExit,
        KeyboardInterrupt,
    ) as error:  # a custom part may raise these two
        from langgraph.errors import is_invalid_resume

        if is_invalid_resume(error):  # an answer does not fit its schema
            _store_part(keep, error)
            runs.let_go(run_id, "paused")
            raise InvalidAnswer(describe_faults(error)) from None
        message = (
            str(error)
            if isinstance(error, WorkbenchError)
            else f"{type(error).__name__}: {error}"
        )
        try:
            _store_part(keep, error)
            # with a full disk the run continues when there is room
            runs.let_go(
                run_id, "interrupted" if isinstance(error, WorkspaceFull) else "failed", message
            )
        except WorkspaceError:
            kind = type(error) if isinstance(error, WorkspaceError) else WorkspaceError
            live.unwritten = kind(f"{message} Then continue with `workbench resume {run_id}`.")
            raise live.unwritten from error
        live.publish(failed(message))
        if isinstance(error, Exception):
            raise
        raise RunError(message) from error
    finally:
        live.publish(None)


def _store_part(keep: Callable[[BaseException], object], error: BaseException) -> None:
    """Store the results so far; where that fails too, add a note to the error."""
    try:
        keep(error)
    except Exception as fault:  # of a registered store: the row must be released all the same
        error.add_note(f"The results so far are not stored: {type(fault).__name__}: {fault}")


def pending(snapshot: StateSnapshot) -> Json | None:
    """Return the request at which the graph waits, as the node made it."""
    if not snapshot.interrupts:
        return None
    request = getattr(snapshot.interrupts[0], "value", None)
    if not isinstance(request, dict) or "review_id" not in request:
        raise WorkspaceError(
            f"What the run asks is damaged: its checkpoint does not hold what was written. {FIX}"
        )
    return request


def _resuming(answer: AnswerTo, snapshot: StateSnapshot) -> Any:
    """Return what makes the graph continue with this answer, by the id of the very interrupt.

    A bare ``resume=`` stays with the parent's checkpoint: after a kill the child's next review point would take it.
    """
    from langgraph.types import Command

    request = pending(snapshot)
    if request is None or request["review_id"] != answer.review_id:
        raise NotPaused(
            "This review point was answered elsewhere. Look at the run again with `workbench show`."
        )
    return Command(resume={snapshot.interrupts[0].id: answer.answer})


def _moments(runs: RunStore, run_id: str) -> Iterator[datetime]:
    """Yield when the run did what it did, in whichever process: the end of each attempt and node, each decision."""
    for entry in [
        *runs.records(run_id),
        *(e["execution_log"] for e in runs.events(run_id) if "execution_log" in e),
    ]:
        began = datetime.fromisoformat(entry.get("started_at") or entry["timestamp"])
        yield began + timedelta(milliseconds=entry["duration_ms"])
    for decision in runs.decisions(run_id):
        yield datetime.fromisoformat(decision["decided_at"])
