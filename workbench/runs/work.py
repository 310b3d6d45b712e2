"""The runs that this process works on: begun, listened to, waited for, answered, resumed, cancelled.

A run has one owner, whose lease says that it lives. Opening a workspace resumes nothing.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from workbench.errors import (
    DecisionDiffers,
    InvalidAnswer,
    NotPaused,
    RunError,
    UnknownRun,
    WorkbenchError,
    WorkspaceBusy,
    WorkspaceError,
)
from workbench.graphs.reviewers import as_json, repeat_answer
from workbench.ports import Context
from workbench.records.conversations import SqlConversations, SqliteConversations
from workbench.records.lease import Lease
from workbench.records.store import ENDED, RunRow, RunStore, new_run_id
from workbench.runs.driver import AnswerTo, Driver, Listener, Live, pending
from workbench.runs.fork import Edits, forked
from workbench.state import Data, Json

T = TypeVar("T")


class LoopThread:
    """An event loop that runs until ``close``."""

    def __init__(self, name: str):
        self._loop = asyncio.new_event_loop()
        self._pool = ThreadPoolExecutor(thread_name_prefix=name)
        self._loop.set_default_executor(self._pool)
        self._process = os.getpid()
        self._ends = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends:
            # A task that raises SystemExit or KeyboardInterrupt has kept it for the task that awaits it, and asyncio
            # raises it here once more; without its loop every other run would wait for ever.
            with suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()

    def require_own(self) -> None:
        """Refuse a process that was forked from the one in which the thread runs.

        Raises:
            WorkspaceError: this is such a process.
        """
        if os.getpid() != self._process:
            raise WorkspaceError(FORKED)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin the work; cancelling the future cancels it."""
        try:
            self.require_own()
        except WorkspaceError:
            work.close()  # a coroutine that is never started would warn
            raise
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work and wait for it; never from inside the loop."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("This would wait for itself: use `run.aio`.")
        return self.submit(work).result()

    def settle(self, timeout: float) -> None:
        """Wait, at most so many seconds, for what was begun in the background: checkpoints of cancelled work too."""

        async def rest() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            if tasks:
                await asyncio.wait(tasks, timeout=timeout)

        self.call(rest())

    def close(self) -> None:
        """Stop the loop and its thread. A synchronous tool that is late ends later; no one waits for it."""
        if self._loop.is_closed():
            return
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._ends = True  # before the stop: `_run` would start the loop again
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


FORKED = (
    "This process was forked from the one that opened the workspace, and has none of its threads. Start processes with "
    "multiprocessing.get_context('spawn'), and open the workspace in each; or open it after the fork."
)
RUNS_IN_MEMORY = 50
"""How many runs stay in memory after their work, for late listeners; of those that leave nothing, how many at all."""
HINTS = {
    "interrupted": " Its process died; continue with `resume`, without an answer.",
    "failed": " Continue with `resume`, without an answer.",
}


class Work:
    """The work of one open workspace.

    Args:
        lease: released when it is closed.
        path: the workspace.
        conversations: the durable conversation store.
        context: makes the context of a run around a driver's stores.
        max_concurrency: how many tasks of one run may be at work together.
        workspace: the open workspace, for runs to show themselves with.

    Attributes:
        durable: the driver whose runs outlive the process.
        loop: where the work is done.
        stores: closed after the last work.
        lease: says that this process lives.
    """

    _poll_s = 0.1
    _patience_s = 10.0

    def __init__(
        self,
        lease: Lease,
        path: Path,
        conversations: SqlConversations,
        context: Callable[[Driver, str], Context],
        max_concurrency: int,
        workspace: Any,
    ):
        self.workspace = workspace
        self.lease = lease
        self.durable = Driver(
            RunStore(path / "workbench.db"), conversations, path / "checkpoints.db"
        )
        self.loop = LoopThread("workbench")
        self._private: Driver | None = None
        self.stores = ExitStack()
        self.stores.callback(self.durable.close)
        self._context = context
        self._max_concurrency = max_concurrency
        self._live: dict[str, Live] = {}
        self._releasing: list[asyncio.Future[None]] = []
        self.ended: Callable[[str], None] | None = None

    def close(self, *also: Coroutine[Any, Any, None]) -> None:
        """Stop what runs (it stays resumable), close the stores and ``also``, and release the lease."""
        for live in list(self._live.values()):
            _stop(live)
        self.loop.settle(self._patience_s)
        self.stores.close()
        for closing in also:
            self.loop.call(closing)
        self.loop.close()
        self.lease.release()

    # looking

    def driver(self, run_id: str) -> Driver:
        """Return the stores that keep this run."""
        return self._private if self._private and self._private.runs.has(run_id) else self.durable

    def status(self, run_id: str) -> str:
        """Return how the run stands; one whose process died without a word is interrupted."""
        return self._status_and_row(run_id)[0]

    def _status_and_row(self, run_id: str) -> tuple[str, RunRow]:
        """Return how the run stands, and the row from which that was read."""
        row = self.driver(run_id).runs.get(run_id)
        live = self._live.get(run_id)
        at_work = self.lease.alive(row["owner"]) and not (live and live.unwritten)
        return "interrupted" if row["status"] == "running" and not at_work else row["status"], row

    def holder(self, run_id: str) -> str | None:
        """Return who works on the run, in words: process, host, since when its workspace is open; None without one."""
        return self._holder(self.driver(run_id).runs.get(run_id)["owner"])

    def _holder(self, owner: str | None) -> str | None:
        return self.lease.holder(owner) if owner and self.lease.alive(owner) else None

    def lines(self, run_ids: Sequence[str]) -> list[Json]:
        """Return what a list shows of runs; only one that is said to run is looked at more closely."""
        rows = self.durable.runs.lines(run_ids)
        for row in rows:
            row["holder"] = self._holder(row.pop("owner"))
            if row["status"] == "running":
                with suppress(UnknownRun):  # removed just now
                    row["status"] = self.status(row["run_id"])
        return rows

    def pending(self, run_id: str) -> Json | None:
        """Return what the run asks, if it does."""
        return pending(self._snapshot(run_id))

    def values(self, run_id: str) -> Json:
        """Return the state where it stands, the child's over the parent's while the child is at work."""
        snapshot = self._snapshot(run_id, subgraphs=True)
        values = dict(snapshot.values)
        for task in snapshot.tasks:
            if task.name in ("retrieval", "reporter") and hasattr(task.state, "values"):
                values |= task.state.values
        return values

    def next_nodes(self, run_id: str) -> list[str]:
        """Return the nodes that come next, of the innermost graph that is at work; empty at the end."""
        snapshot = self._snapshot(run_id, subgraphs=True)
        outer = ""
        while inner := next(
            (task for task in snapshot.tasks if hasattr(task.state, "next")), None
        ):
            snapshot = inner.state
            outer = f"{inner.name}:"
        return [f"{outer}{node}" for node in snapshot.next]

    def listening(self, run_id: str, listener: Listener) -> AbstractContextManager[None]:
        """Hear the events of this stretch of work from its beginning, and None at its end."""
        live = self._live.get(run_id)
        if live is None:
            listener(None)
            return nullcontext()
        return live.listening(listener)

    def wait(self, run_id: str, timeout: float | None = None) -> None:
        """Wait until the run pauses or ends, here or in another process.

        Raises:
            TimeoutError: it still runs.
            InvalidAnswer: the answer that was given does not fit; the run waits as before.
            NotPaused: another process had answered.
        """
        self.loop.call(self.await_end(run_id, timeout))

    async def await_end(self, run_id: str, timeout: float | None = None) -> None:
        """``wait`` for a loop that must not block."""
        live = self._live.get(run_id)
        try:
            async with asyncio.timeout(timeout):
                if live is not None and live.work is not None:
                    await self._await_work(live, live.work)
                while self.status(run_id) == "running":  # in another process
                    await asyncio.sleep(self._poll_s)
        except TimeoutError:
            raise TimeoutError(f"Run {run_id} still runs after {timeout:g} s.") from None

    @staticmethod
    async def _await_work(live: Live, work: Future[None]) -> None:
        """Wait for the work of this process.

        A failure of the run is in its status and error, and not the caller's exception; a refused answer is, and a
        failure that the full disk kept out of the row.
        """
        try:
            await asyncio.shield(asyncio.wrap_future(work))
        except asyncio.CancelledError:  # of the run, or of the caller
            if not work.cancelled():
                raise
        except (DecisionDiffers, InvalidAnswer, NotPaused):
            raise
        except Exception as failed:
            # the driver has put it into the run's row, where `Run.error` reads it
            failed.add_note("recorded as the run's error")
            if live.unwritten:
                raise

    def failure(self, run_id: str) -> BaseException | None:
        """Return with what the run failed in this process; None where it has not."""
        live = self._live.get(run_id)
        work = live and live.work
        return work.exception() if work and work.done() and not work.cancelled() else None

    # working

    def begin(self, run_id: str, message: str, options: Data, live: Live) -> None:
        """Note a new run, and start working on it."""
        driver = self._incognito() if options["incognito"] else self.durable
        user = options["user"]
        session = options["session"]
        driver.runs.create(
            run_id,
            message,
            options,
            owner=self.lease.owner,
            conversation_id=driver.conversation_store.get_or_create_conversation_id(
                user, session
            ),
            user_id=user,
            session_id=session,
        )
        try:
            first = self._first_input(driver, run_id)
        except WorkspaceError as error:  # the run is noted, and what comes after it could not be
            self._live[run_id] = live
            live.finished.set()
            live.unwritten = type(error)(
                f"{error} Then continue with `workbench resume {run_id}`."
            )
            raise live.unwritten from error
        self._drive(driver, live, first)

    def fork(self, run_id: str, edits: Edits) -> str:
        """Begin a run that is made from another, and give its id.

        Raises:
            RunError: the other one leaves nothing behind, or the edit does not fit it.
        """
        driver = self.driver(run_id)
        if driver is not self.durable:
            raise RunError(
                f"Run {run_id} is incognito: nothing of it is kept that another run could be made from."
            )
        new_id = new_run_id()
        decisions = driver.runs.decisions(run_id)
        message, options = forked(driver.runs.get(run_id), decisions, new_id, edits)
        self.begin(new_id, message, options, Live(new_id))
        return new_id

    def answer(self, run_id: str, reply: Any, seen: Data | None = None) -> None:
        """Take the run and give it the answer, if it waits for one.

        Args:
            run_id: the run.
            reply: the answer.
            seen: the request that was shown to the person who answers; another one is not answered by it.

        Raises:
            InvalidAnswer: it is no answer at all, or too long to keep; whether it fits is seen by the graph.
            NotPaused: nothing waits, or another request does; the recorded answer given again just continues an
                interrupted run.
            WorkspaceBusy: another process is at it.
        """
        driver, (status, row) = self.driver(run_id), self._status_and_row(run_id)
        if status == "paused":
            request = self.pending(run_id)
            # another process answered just now
            if request is None and driver.runs.get(run_id) != row:
                return self.answer(run_id, reply, seen)
            if request is None:
                raise NotPaused(
                    f"Run {run_id} waits, but its checkpoint is lost. `workbench resume {run_id}` continues from what "
                    "it has stored, and asks again."
                )
            if seen and seen["review_id"] != request["review_id"]:
                points = f"{request['review_id']} by now, not {seen['review_id']}"
                raise NotPaused(f"The run asks {points}. Look at run.review, and answer that.")
            wanted = AnswerTo(as_json(reply), request["review_id"])
            self.take(driver, row)
            self._drive(driver, Live(run_id), wanted)
            return
        last = driver.runs.decisions(run_id)
        if (
            status == "interrupted"
            and last
            and as_json(reply).get("decisions") == repeat_answer(last[-1])["decisions"]
        ):
            self.resume(run_id)
            return
        hint = f" {self._taken_by(row)}" if status == "running" else HINTS.get(status, "")
        raise NotPaused(f"Run {run_id} is {status}: it waits for no answer.{hint}")

    def resume(self, run_id: str) -> None:
        """Continue from the last checkpoint, or from the start when there is none.

        Raises:
            NotPaused: the run waits for an answer.
            RunError: it was cancelled.
            WorkspaceBusy: another process is at it.
        """
        driver, (status, row) = self.driver(run_id), self._status_and_row(run_id)
        if status == "running" and row["owner"] == self.lease.owner and run_id in self._live:
            return
        if status == "done":
            return
        if status == "paused" and self.pending(run_id) is not None:
            raise NotPaused(
                f"Run {run_id} waits for an answer: approve, edit, reject or respond."
            )
        if status == "cancelled":
            raise RunError(f"Run {run_id} was cancelled. Ask again.")
        self.take(driver, row)
        self._drive(driver, Live(run_id), self._next_input(driver, run_id))

    def cancel(self, run_id: str) -> None:
        """Stop the run for good, with its tools; a process that works on it hears of it at once, and stops.

        Raises:
            WorkspaceBusy: the other process has not stopped in time; it will when it wakes.
        """
        driver = self.driver(run_id)
        if self.status(run_id) in ("done", "cancelled") or not driver.runs.mark_cancelled(run_id):
            return
        if run_id in self._live:
            _stop(self._live[run_id])
        until = time.monotonic() + self._patience_s
        while self.holder(run_id) and not self._at_rest(run_id):
            if time.monotonic() > until:
                raise WorkspaceBusy(
                    f"Run {run_id} is cancelled, but not at rest yet. {self._taken_by(driver.runs.get(run_id))}"
                )
            time.sleep(self._poll_s)
        if driver.runs.is_cancelled(run_id):
            driver.runs.let_go(run_id, "cancelled")

    def interrupt(self, run_id: str) -> None:
        """Stop working on the run, and leave it resumable."""
        if run_id in self._live:
            _stop(self._live[run_id])

    def remove(self, *run_ids: str) -> None:
        """Forget runs with everything that they did, in one transaction per file; one that is gone already is skipped.

        Raises:
            RunError: a run still runs.
        """
        by_driver = defaultdict[Driver, list[str]](list)
        for run_id in run_ids:
            with suppress(UnknownRun):
                if self.holder(run_id):
                    raise RunError(f"Run {run_id} is running. Cancel it first.")
                driver = self.driver(run_id)
                if (row := driver.runs.get(run_id))["status"] not in ENDED:
                    self.take(driver, row)  # no process answers or resumes it now
                by_driver[driver].append(run_id)
        for driver, stored in by_driver.items():
            self.loop.call(driver.forget(stored))
            for run_id in stored:
                self._live.pop(run_id, None)

    def _drive(self, driver: Driver, live: Live, graph_input: Any) -> None:
        """Let the conversation graph work on the run."""
        context = partial(self._context, driver, live.run_id)
        self.work_on(
            driver,
            live,
            partial(driver.drive, live, graph_input, context, self._config(live.run_id)),
        )

    def work_on(
        self, driver: Driver, live: Live, drive: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        """Begin a stretch of work on a run that this process has taken."""

        async def work() -> None:
            live.begun.set()
            heeding = asyncio.ensure_future(self._heed(driver, live))
            try:
                live.publish({"status": "start"})
                await drive()
                self._releasing = [task for task in self._releasing if not task.done()]
                self._releasing.append(asyncio.ensure_future(self._release(driver, live.run_id)))
            finally:
                heeding.cancel()
                self._observe(driver, live.run_id)
                live.finished.set()

        self._live.pop(live.run_id, None)
        self._live[live.run_id] = live
        live.work = self.loop.submit(work())
        for run_id in [i for i, old in self._live.items() if old.finished.is_set()][
            :-RUNS_IN_MEMORY
        ]:
            del self._live[run_id]
            stores = self.driver(run_id)
            # one that is kept nowhere but in memory
            if stores is self._private and stores.runs.get(run_id)["status"] in ENDED:
                self.loop.submit(stores.forget([run_id]))

    async def _release(self, driver: Driver, run_id: str) -> None:
        """Delete the checkpoints of a run that is done: its result, records and decisions say the same."""
        with suppress(WorkbenchError):  # they stay until `gc`; or the run was removed just now
            row = driver.runs.get(run_id)
            # the next run of a thread continues where that of a recorded graph stands
            if driver is self.durable and row["status"] == "done" and not row["graph"]:
                await driver.saver.delete_threads([run_id])

    def _observe(self, driver: Driver, run_id: str) -> None:
        """Tell the observer of runs that this one has ended."""
        with suppress(WorkspaceError):  # the disk is full, which the run itself reports
            row = driver.runs.get(run_id)
            if self.ended and row["status"] in ENDED and not row["graph"]:
                self.ended(run_id)

    async def _heed(self, driver: Driver, live: Live) -> None:
        """Stop the work when the run is cancelled, in any process."""
        while not driver.runs.is_cancelled(live.run_id):
            await asyncio.sleep(self._poll_s)
        if live.work is not None:
            live.work.cancel()

    def _at_rest(self, run_id: str) -> bool:
        """Return whether the run is this process's own, and nothing is done on it."""
        live = self._live.get(run_id)
        own = self.driver(run_id).runs.get(run_id)["owner"] == self.lease.owner
        return own and (live is None or live.finished.is_set())

    def _taken_by(self, row: RunRow) -> str:
        return f"It is worked on by {self.lease.holder(row['owner'] or '')}."

    def take(self, driver: Any, row: RunRow, decisions: Iterable[Data] = ()) -> None:
        """Take a run as it was seen, with the answers that it continues with.

        Raises:
            WorkspaceBusy: another process is at it.
            NotPaused: another one had it meanwhile.
        """
        self.loop.require_own()
        if row["owner"] != self.lease.owner and self.lease.alive(row["owner"]):
            raise WorkspaceBusy(f"Run {row['run_id']} is taken. {self._taken_by(row)}")
        if driver.runs.claim(row, self.lease.owner, decisions):
            return
        status, now = self._status_and_row(row["run_id"])
        if status == "running":
            raise WorkspaceBusy(f"Run {row['run_id']} was taken just now. {self._taken_by(now)}")
        raise NotPaused(
            f"Run {row['run_id']} was taken by another process just now, and is {status}. Look at it again."
        )

    def _next_input(self, driver: Driver, run_id: str) -> Any:
        """With what the graph continues: nothing, the answer that was already kept, or the beginning."""
        snapshot = self._snapshot(run_id)
        if not snapshot.values:
            return self._first_input(driver, run_id)
        review_id = (pending(snapshot) or {}).get("review_id")
        recorded = next(
            (d for d in driver.runs.decisions(run_id) if d["review_id"] == review_id), None
        )
        return recorded and AnswerTo(repeat_answer(recorded), recorded["review_id"])

    def _first_input(self, driver: Driver, run_id: str) -> Any:
        """Return what the graph begins with; the user's message is stored before the run."""
        from workbench.graphs.conversation import initial_state

        row = driver.runs.get(run_id)
        conversation = row["conversation_id"]
        message = row["message"]
        message_id = driver.conversation_store.append_message(
            conversation, "user", message, message_key=f"{run_id}:user"
        )
        return initial_state(
            run_id,
            message,
            conversation_id=conversation,
            user_message_id=message_id,
            options=row["options"],
        )

    def _incognito(self) -> Driver:
        if self._private is None:
            runs = _InMemory(self.durable.runs)
            self._private = Driver(runs, SqliteConversations(":memory:"), ":memory:")
            self.stores.callback(self._private.close)
        return self._private

    def _snapshot(self, run_id: str, subgraphs: bool = False) -> Any:
        graph = self.driver(run_id).graph
        return self.loop.call(graph.aget_state(self._config(run_id), subgraphs=subgraphs))

    def _config(self, run_id: str) -> Json:
        return {"configurable": {"thread_id": run_id}, "max_concurrency": self._max_concurrency}


class _InMemory(RunStore):
    """Runs of which nothing is written down; earlier reports are read where they are kept."""

    def __init__(self, durable: RunStore):
        super().__init__(":memory:")
        self._kept = durable

    def report(self, report_id: str, user: str) -> Json:
        """See ``RunStore.report``."""
        return super().report(report_id, user) or self._kept.report(report_id, user)


def _stop(live: Live) -> None:
    """Cancel the work and wait until it has written how the run stands."""
    if live.work is not None and not live.finished.is_set():
        live.begun.wait(timeout=30)  # what is cancelled before it begins can write nothing down
        live.work.cancel()
        live.finished.wait(timeout=30)
