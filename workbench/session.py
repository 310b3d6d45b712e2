"""The face of everything: a workspace that is open. Ask, start, resume, look, and add what is one's own.

with Workbench.open("dir") as wb:
    wb.add_knowledge("film", ["data/films.jsonl"])
    run = wb.ask("推荐几部类似《喜宴》的电影", kb="film", review={"reflect"})
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError as FutureCancelled
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.clock import SystemClock
from workbench.context import Context, Handler, Planner
from workbench.driver import Driver, Listener, Live, pending
from workbench.errors import NotPaused, RunError, UnknownKnowledge, WorkspaceBusy, WorkspaceError
from workbench.knowledge.library import Library
from workbench.lease import Lease
from workbench.loop import LoopThread
from workbench.memory.store import SqliteConversations, open_conversations
from workbench.reviewers import ReplayReviewer, Reviewer
from workbench.run import Run
from workbench.runs import RunRow, RunStore
from workbench.settings import Settings
from workbench.state import REVIEW_POINTS, RetrievalResult
from workbench.text import clean
from workbench.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from workbench.agents import AgentPool

AT_ONCE = 10


class Workbench:
    """An open workspace. Use ``Workbench.open``; close it, or use it as a context manager.

    Attributes:
        path: the folder.
        settings: the numbers in force.
        knowledge: the knowledge bases, by name.
        tools: what a step may call; register your own here.
    """

    def __init__(self, path: Path, settings: Settings):
        self.path, self.settings = path, settings
        self._lease = Lease(path / "leases")
        self._clock = SystemClock()
        database = path / "workbench.db"
        conversations = open_conversations(database, settings, self._clock.now)
        self._durable = Driver(RunStore(database), conversations, path / "checkpoints.db")
        self._private: Driver | None = None
        self.knowledge, self.tools = Library(path / "knowledge", settings), ToolRegistry()
        self._handlers: dict[str, Handler] = {}
        self._planner: Planner | None = None
        self._chat: Any = None
        self._agents: AgentPool | None = None
        self._live: dict[str, Live] = {}
        self._loop = LoopThread("workbench")
        self._open = True

    @classmethod
    def open(cls, path: str | Path, settings: Settings | None = None, **overrides: Any) -> Workbench:
        """Open the workspace in this folder, and make it when it is missing.

        Args:
            path: a folder; everything that is kept is in it.
            settings: the settings; None reads the environment.
            **overrides: single settings that win, as ``max_iterations=2``.

        Raises:
            SettingsError: a setting is not allowed.
            WorkspaceError: the folder cannot be used.
        """
        folder = Path(path).expanduser()
        if folder.exists() and not folder.is_dir():
            raise WorkspaceError(f"{folder} is a file, not a folder. Name another place for the workspace.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WorkspaceError(f"{folder} cannot be made: {error.strerror}. Name another place.") from None
        if settings is None:
            settings = Settings.load(**overrides)
        elif overrides:
            settings = settings.model_copy(update=overrides)
        return cls(folder, settings)

    def close(self) -> None:
        """Stop what runs (it stays resumable), close the stores and let go of the lease. Safe to call twice."""
        if not self._open:
            return
        self._open = False
        for live in list(self._live.values()):
            if live.work is not None and not live.work.done():
                live.work.cancel()
                self._settled(live)
        for driver in filter(None, (self._durable, self._private)):
            self._loop.call(driver.close())
        self.knowledge.close()
        self._loop.close()
        self._lease.release()

    def __enter__(self) -> Workbench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Workbench {self.path}: {', '.join(self.knowledge.names()) or 'no knowledge base yet'}>"

    # knowledge and one's own parts

    def add_knowledge(
        self, name: str, paths: Iterable[str | Path], progress: Callable[[str, int, int], None] | None = None
    ) -> Any:
        """Index files or folders under a name; what has not changed costs nothing.

        Args:
            name: the knowledge base, made when it is missing.
            paths: JSONL, Markdown, text or CSV, files or folders.
            progress: called with ``(stage, done, total)``.

        Returns:
            An ``AddReport``: what was added, changed, deleted, left alone; every bad line with file, line and reason.
        """
        return self.knowledge.add(name, list(paths), progress=progress)

    def remove_knowledge(self, name: str) -> None:
        """Forget a knowledge base; the runs that used it stay."""
        self.knowledge.remove(name)

    def register_handler(self, kb: str, handler: Handler) -> None:
        """Let a knowledge base answer by itself: ``async (state, context) -> {"answer", "citations"}``."""
        self._handlers[kb] = handler

    def register_planner(self, planner: Planner) -> Planner:
        """Plan with ``async (query, decision, knowledge, tools) -> Plan``; usable as a decorator."""
        self._planner = planner
        return planner

    def ports(self) -> Context:
        """The ports that nodes see, for graphs of one's own."""
        return self._context(self._durable)

    @property
    def agents(self) -> AgentPool:
        """Retrieve-only agents by worker name, made when first asked for."""
        if self._agents is None:
            from workbench.agents import AgentPool

            self._agents = AgentPool(self.ports, self._loop.call)
        return self._agents

    # asking

    def ask(self, message: str, **options: Any) -> Run:
        """Ask, and wait for the pause or the end. Ctrl-C leaves the run resumable and prints its id.

        Takes the options of ``start``.
        """
        run = self.start(message, **options)
        try:
            return run.wait()
        except KeyboardInterrupt:
            self._interrupt(run.run_id)
            sys.stderr.write(f"Interrupted. Go on with: workbench resume {run.run_id}\n")
            raise

    async def aask(self, message: str, **options: Any) -> Run:
        """``ask`` for a loop that must not block."""
        return await self.start(message, **options).await_end()

    def start(
        self,
        message: str,
        *,
        kb: str | Sequence[str] | None = None,
        review: bool | str | Iterable[str] | None = None,
        session: str = "default",
        user: str = "default",
        worker: str = "",
        thresholds: Mapping[str, float] | None = None,
        reviewer: Reviewer | None = None,
        decisions: Iterable[Mapping[str, Any]] | None = None,
        incognito: bool = False,
        debug: bool = False,
    ) -> Run:
        """Begin a run and return at once.

        Args:
            message: what the user says.
            kb: the knowledge base, or several; None lets the router choose.
            review: where a person decides: ``plan``, ``step``, ``reflect``, several of them, or True for all.
            session: the conversation; its last messages are part of the question.
            user: whose conversation.
            worker: ``kb:agent:mode``, which then decides how is searched.
            thresholds: ``min_evidence`` and ``min_top_score`` in place of the intent's.
            reviewer: answers at the review points in place of a person.
            decisions: recorded answers, given in their order; after the last one the run waits for a person.
            incognito: write nothing down; the run cannot be resumed elsewhere.
            debug: send the debug events to listeners too.

        Raises:
            UnknownKnowledge: lists the known ones.
            RunError: the message is empty, or a review point is not one.
        """
        self._must_be_open()
        options = {
            "kb": [kb] if isinstance(kb, str) else list(kb or []),
            "review": _points(review),
            "session": session,
            "user": user,
            "worker": worker,
            "thresholds": dict(thresholds or {}),
            "incognito": incognito,
            "debug": debug,
        }
        self._check(message, options)
        if decisions is not None:
            reviewer = ReplayReviewer(decisions)
        driver = self._incognito_driver() if incognito else self._durable
        run_id = uuid.uuid4().hex[:12]
        conversation = driver.conversations.get_or_create_conversation_id(user, session)
        driver.runs.create(
            run_id,
            clean(message),
            options,
            owner=self._lease.owner,
            conversation_id=conversation,
            user_id=user,
            session_id=session,
        )
        self._begin(driver, Live(run_id, reviewer), self._first_input(driver, run_id))
        return Run(self, run_id)

    def map(self, messages: Iterable[str], **options: Any) -> list[Run]:
        """Ask many independent questions, ten at once, each in a session of its own; the runs, in order."""
        return (
            asyncio.run(self.amap(messages, **options))
            if not _in_loop()
            else self._loop.call(self.amap(messages, **options))
        )

    async def amap(self, messages: Iterable[str], **options: Any) -> list[Run]:
        """``map`` for a loop that must not block."""
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(message: str) -> Run:
            async with slots:
                return await self.aask(message, **{"session": uuid.uuid4().hex[:12], **options})

        return list(await asyncio.gather(*(one(message) for message in messages)))

    async def astream(self, message: str, **options: Any) -> AsyncIterator[dict[str, Any]]:
        """Ask, and give the events of contracts 8 as they come; debug events too with ``debug=True``."""
        from workbench.events import for_client

        loop, stream = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any] | None]()
        run = self.start(message, **options)
        with self._listening(run.run_id, lambda event: loop.call_soon_threadsafe(stream.put_nowait, event)):
            while (event := await stream.get()) is not None:
                if options.get("debug") or for_client(event):
                    yield event
        await run.await_end()

    # looking

    def run(self, run_id: str) -> Run:
        """A run of this workspace, whoever started it.

        Raises:
            UnknownRun: lists the newest ones.
        """
        self._driver(run_id).runs.get(run_id)
        return Run(self, run_id)

    def runs(self, limit: int = 100, **equals: str) -> list[Run]:
        """The runs, newest first; ``equals`` narrows by ``session_id``, ``user_id`` or ``status``."""
        return [Run(self, row["run_id"]) for row in self._durable.runs.newest(limit, **equals)]

    def remove_run(self, run_id: str) -> None:
        """Forget a run with everything that it did; what was said in its conversation stays.

        Raises:
            RunError: it still runs.
        """
        if self._status(run_id) == "running":
            raise RunError(f"Run {run_id} is running. Cancel it first.")
        driver = self._driver(run_id)
        self._loop.call(driver.forget(run_id))

    def clear(self, session: str | None = None, user: str | None = None) -> int:
        """Delete the messages of a session, of a user, or of a user's session; how many there were."""
        return self._durable.conversations.clear(session_id=session, user_id=user)

    # what Run needs

    def _driver(self, run_id: str) -> Driver:
        if self._private is not None and self._private.runs.has(run_id):
            return self._private
        return self._durable

    def _status(self, run_id: str) -> str:
        row = self._driver(run_id).runs.get(run_id)
        if row["status"] != "running" or self._lease.alive(row["owner"]):
            return row["status"]
        return self._status_left_behind(row)

    def _status_left_behind(self, row: RunRow) -> str:
        """The owner died without a word: the checkpoints know where it stood."""
        snapshot = self._snapshot(row["run_id"])
        if pending(snapshot) is not None:
            return "paused"
        return "done" if snapshot.values and not snapshot.next else "interrupted"

    def _pending(self, run_id: str) -> dict[str, Any] | None:
        return pending(self._snapshot(run_id))

    def _snapshot(self, run_id: str, subgraphs: bool = False) -> Any:
        async def look() -> Any:
            graph = await self._driver(run_id).graph()
            return await graph.aget_state(self._config(run_id), subgraphs=subgraphs)

        return self._loop.call(look())

    def _values(self, run_id: str) -> dict[str, Any]:
        """The state where it stands, the child's over the parent's while the child is at work."""
        snapshot = self._snapshot(run_id, subgraphs=True)
        values = dict(snapshot.values)
        for task in snapshot.tasks:
            if task.name == "retrieval" and hasattr(task.state, "values"):
                values |= task.state.values
        return values

    def _found_so_far(self, run: Run) -> list[RetrievalResult]:
        from workbench.retrieval.merge import distinct, gather

        return distinct(gather(run.records, self._driver(run.run_id).runs, run.run_id))

    @contextmanager
    def _listening(self, run_id: str, listener: Listener) -> Iterator[None]:
        live = self._live.get(run_id)
        if live is None or live.work is None or live.work.done():
            listener(None)
            yield
            return
        live.listeners.append(listener)
        if live.work.done():
            listener(None)
        try:
            yield
        finally:
            live.listeners.remove(listener)

    def _wait(self, run_id: str, timeout: float | None) -> None:
        live = self._live.get(run_id)
        if live is not None and live.work is not None:
            with suppress(FutureCancelled):
                live.work.result(timeout)

    async def _await(self, run_id: str) -> None:
        live = self._live.get(run_id)
        if live is not None and live.work is not None:
            await asyncio.shield(asyncio.wrap_future(live.work))

    def _answer(self, run_id: str, given: dict[str, Any]) -> None:
        """Take the run and give it the answer, if it waits for one."""
        driver, status = self._driver(run_id), self._status(run_id)
        if status == "paused":
            request = self._pending(run_id)
            review_id = request["review_id"] if request else None
            self._take(driver, run_id)
            self._begin(driver, Live(run_id, expected_review=review_id), _resume_with(given))
            return
        last = driver.runs.decisions(run_id)
        if status == "interrupted" and last and _same(last[-1], given):
            self._resume(run_id)
            return
        raise NotPaused(f"Run {run_id} is {status}: it waits for no answer.{_HINTS.get(status, '')}")

    def _resume(self, run_id: str) -> None:
        """Continue from the last checkpoint, or from the start when there is none."""
        driver, status = self._driver(run_id), self._status(run_id)
        if status == "running" and run_id in self._live:
            return
        if status == "done":
            if driver.runs.get(run_id)["status"] != "done":
                driver.runs.let_go(run_id, "done")
            return
        if status == "paused":
            raise NotPaused(f"Run {run_id} waits for an answer: approve, edit, reject or respond.")
        if status == "cancelled":
            raise RunError(f"Run {run_id} was cancelled. Ask again.")
        self._take(driver, run_id)
        begun = bool(self._snapshot(run_id).values)
        self._begin(driver, Live(run_id), None if begun else self._first_input(driver, run_id))

    def _cancel(self, run_id: str) -> None:
        driver, status = self._driver(run_id), self._status(run_id)
        if status in ("done", "cancelled"):
            return
        live = self._live.get(run_id)
        if status == "running" and (live is None or live.work is None):
            row = driver.runs.get(run_id)
            raise WorkspaceBusy(
                f"Run {run_id} is worked on by {self._lease.holder(row['owner'] or '')}: cancel it there."
            )
        driver.runs.mark_cancelled(run_id)
        if live is not None and live.work is not None and not live.work.done():
            live.work.cancel()
            self._settled(live)
        driver.runs.let_go(run_id, "cancelled")

    def _interrupt(self, run_id: str) -> None:
        live = self._live.get(run_id)
        if live is not None and live.work is not None and live.work.cancel():
            self._settled(live)

    # the work itself

    def _begin(self, driver: Driver, live: Live, graph_input: Any) -> None:
        self._live[live.run_id] = live

        async def work() -> None:
            try:
                context = self._context(driver)
                live.publish({"status": "start"})
                await driver.drive(live, graph_input, context, self._config(live.run_id))
            finally:
                live.settled.set()

        live.work = self._loop.submit(work())

    def _settled(self, live: Live) -> None:
        """Wait until a cancelled run has written how it stands."""
        live.settled.wait(timeout=30)

    def _take(self, driver: Driver, run_id: str) -> None:
        row = driver.runs.get(run_id)
        if self._lease.alive(row["owner"]) and row["owner"] != self._lease.owner:
            raise WorkspaceBusy(f"Run {run_id} is worked on by {self._lease.holder(row['owner'] or '')}.")
        if not driver.runs.claim(run_id, self._lease.owner, row["owner"]):
            raise WorkspaceBusy(f"Run {run_id} was taken by another process just now. Look again in a moment.")

    def _first_input(self, driver: Driver, run_id: str) -> Any:
        from workbench.conversation import initial_state

        row = driver.runs.get(run_id)
        message_id = driver.conversations.append_message(
            row["conversation_id"], "user", row["message"], message_key=f"{run_id}:user"
        )
        return initial_state(
            run_id,
            row["message"],
            conversation_id=row["conversation_id"],
            user_message_id=message_id,
            options=row["options"],
        )

    def _context(self, driver: Driver) -> Context:
        if self._chat is None and self.settings.chat_model:
            from workbench.models.chat import open_chat_model

            self._chat = open_chat_model(self.settings)
        return Context(
            settings=self.settings,
            knowledge=self.knowledge,
            tools=self.tools,
            conversations=driver.conversations,
            runs=driver.runs,
            clock=self._clock,
            planner=self._planner or _default_planner(self.settings, self._chat),
            chat=self._chat,
            handlers=dict(self._handlers),
        )

    def _config(self, run_id: str) -> dict[str, Any]:
        return {"configurable": {"thread_id": run_id}, "max_concurrency": self.settings.max_concurrency}

    def _incognito_driver(self) -> Driver:
        if self._private is None:
            self._private = Driver(RunStore(":memory:"), SqliteConversations(":memory:", self._clock.now), None)
        return self._private

    def _check(self, message: str, options: Mapping[str, Any]) -> None:
        if not message.strip():
            raise RunError("The message is empty. Ask something.")
        known = self.knowledge.names()
        for name in options["kb"]:
            if name not in ("", "general") and name not in known:
                raise UnknownKnowledge(name, known)

    def _must_be_open(self) -> None:
        if not self._open:
            raise WorkspaceError(f"The workspace {self.path} is closed. Open it again with Workbench.open.")


_HINTS = {
    "interrupted": " Its process died; go on with `resume`, without an answer.",
    "failed": " Go on with `resume`, without an answer.",
}


def _points(review: bool | str | Iterable[str] | None) -> list[str]:
    """Review points, in the order in which a run meets them."""
    if not review:
        return []
    asked = (
        set(REVIEW_POINTS)
        if review is True or review == "all"
        else {review}
        if isinstance(review, str)
        else set(review)
    )
    unknown = sorted(asked - set(REVIEW_POINTS))
    if unknown:
        raise RunError(f"Unknown review point {unknown[0]!r}. Known: {', '.join(REVIEW_POINTS)}.")
    return [point for point in REVIEW_POINTS if point in asked]


def _same(decision: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether an answer is the one that was recorded."""
    try:
        one = given["decisions"][0]
        edits = (one.get("edited_action") or {}).get("args", {})
    except (KeyError, IndexError, TypeError):
        return False
    return (
        one.get("type") == decision["action"]
        and one.get("message", "") == decision["message"]
        and (edits == decision["edits"])
    )


def _resume_with(given: dict[str, Any]) -> Any:
    from langgraph.types import Command

    return Command(resume=given)


def _default_planner(settings: Settings, chat: Any) -> Planner:
    from workbench.retrieval.plan import RulePlanner

    rules = RulePlanner(settings)
    if settings.planner == "rules" or chat is None:
        return rules
    from workbench.retrieval.llm_plan import LLMPlanner

    return LLMPlanner(chat, rules)


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
