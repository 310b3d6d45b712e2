"""The face of everything: a workspace that is open. Ask, start, resume, look, and add what is one's own.

with Workbench.open("dir") as wb:
    wb.add_knowledge("papers", ["papers.jsonl"])
    run = wb.ask("2020年以后关于睡眠的论文有哪些？", kb="papers", review={"reflect"})
"""

from __future__ import annotations

import asyncio
import sys
import threading
import uuid
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from workbench.asking import Options, count_of, message_of, options_of, recorded, reviewer_of, shows
from workbench.clock import SystemClock
from workbench.context import Context
from workbench.driver import Driver, Live
from workbench.errors import WorkbenchError, WorkspaceBusy, WorkspaceError
from workbench.futures.workspace import Futures
from workbench.given import MODELS, named
from workbench.knowledge.library import Library
from workbench.labels import speak
from workbench.lease import Lease
from workbench.many import Runs, asked_each
from workbench.memory.store import open_conversations
from workbench.own import OwnParts
from workbench.playback import context_of
from workbench.repair import settle
from workbench.reviewers import ReplayReviewer, Reviewer
from workbench.run import Run
from workbench.runs import runs_are_gone
from workbench.settings import Settings
from workbench.text import clean
from workbench.tools.registry import ToolRegistry
from workbench.widgets.indexing import watched
from workbench.widgets.workspace import Benches
from workbench.work import Work

if TYPE_CHECKING:
    from workbench.agents import AgentPool
    from workbench.inspected import Inspected

_opened: weakref.WeakSet[Workbench] = weakref.WeakSet()


class Workbench(Futures, Benches, OwnParts):
    """An open workspace. Use ``Workbench.open``; close it, or use it as a context manager.

    Attributes:
        path: the folder.
        settings: the numbers in force.
        knowledge: the knowledge bases, by name.
        tools: what a step may call; register your own here.
    """

    def __init__(self, path: Path, settings: Settings):
        self.path, self.settings = path, settings
        speak(settings.lang)
        self._clock = SystemClock()
        OwnParts.__init__(self)
        self.knowledge, self.tools = Library(path / "knowledge", settings), ToolRegistry()
        self._agents: AgentPool | None = None
        lease = Lease(path / "leases")
        try:
            for repairing in lease.others(repairing=True):
                raise WorkspaceBusy(f"{path} is being repaired by {lease.holder(repairing)}. Wait for it to end.")
            settle(path)
            if runs_are_gone(path):
                raise WorkspaceError(
                    f"{path / 'workbench.db'} is empty or gone, though there are checkpoints of its runs. Put the file "
                    "back, or run `workbench doctor --repair`, which begins a new one."
                )
            conversations = open_conversations(path / "workbench.db", settings, self._clock.now)
            self._work = Work(lease, path, conversations, self._context, settings.max_concurrency, self)
        except BaseException:
            lease.release()
            raise
        self._open = True
        _opened.add(self)

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
            models = {name: named(name, overrides[name]) for name in MODELS if name in overrides}
            settings = settings.model_copy(update={**overrides, **models})
        return cls(folder, settings)

    def close(self) -> None:
        """Stop what runs (it stays resumable), close the stores and let go of the lease. Safe to call twice."""
        if not self._open:
            return
        self._open = False
        self._work.close(self._close_chats())
        self.knowledge.close()

    def __enter__(self) -> Workbench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Workbench {self.path}: {', '.join(self.knowledge.names()) or 'no knowledge base yet'}>"

    # knowledge and one's own parts

    def add_knowledge(
        self,
        name: str,
        paths: Iterable[str | Path],
        progress: Callable[[str, int, int], None] | None = None,
        *,
        vocabulary: str | Path | None = None,
    ) -> Any:
        """Index files or folders under a name; what has not changed costs nothing.

        Args:
            name: the knowledge base, made when it is missing.
            paths: JSONL, Markdown, text, CSV or triples (``.tsv``), files or folders.
            progress: called with ``(stage, done, total)``; None shows a bar, in a notebook and in a terminal. An
                interrupt leaves the base as it was.
            vocabulary: a TOML file that says what the words of their fields mean, in English and Chinese; None for
                the one beside them (``NAME.vocabulary.toml``, or ``vocabulary.toml`` in a folder), if there is one.

        Returns:
            An ``AddReport``: what was added, changed, deleted, left alone; every bad line with file, line and reason.
        """
        with watched(name, self.settings.lang, progress) as tell:
            return self.knowledge.add(name, paths, vocabulary=vocabulary, progress=tell)

    def rebuild_knowledge(self, name: str, progress: Callable[[str, int, int], None] | None = None) -> Any:
        """Index a base anew, from its files and, where those are gone, from the documents that its index kept.

        Returns:
            A ``RebuildReport``: an ``AddReport`` that also says what came from the old index, what is missing, where
            the damaged one is kept.
        """
        with watched(name, self.settings.lang, progress) as tell:
            return self.knowledge.rebuild(name, progress=tell)

    def inspect_knowledge(self, name: str) -> Inspected:
        """What is in a base: counts, growth, coverage, what belongs to nothing, what is there twice."""
        from workbench.inspected import Inspected

        return Inspected(self.knowledge.get(name).inspect())

    def remove_knowledge(self, name: str) -> None:
        """Forget a knowledge base; the runs that used it stay."""
        self.knowledge.remove(name)

    def ports(self) -> Context:
        """The ports that nodes see, for graphs of one's own."""
        return self._ports(self._work.durable)

    @property
    def agents(self) -> AgentPool:
        """Retrieve-only agents by worker name, made when first asked for."""
        if self._agents is None:
            from workbench.agents import AgentPool

            self._agents = AgentPool(self.ports, self._work.loop.call)
        return self._agents

    # asking

    def ask(self, message: str, **options: Unpack[Options]) -> Run:
        """Ask, and wait for the pause or the end. Ctrl-C leaves the run resumable and prints its id.

        Takes the options of ``start``.
        """
        run = self.start(message, **options)
        try:
            return run.wait()
        except KeyboardInterrupt:
            self._work.interrupt(run.run_id)
            sys.stderr.write(f"Interrupted. Go on with: workbench resume {run.run_id}\n")
            raise

    async def aask(self, message: str, **options: Unpack[Options]) -> Run:
        """``ask`` for a loop that must not block."""
        return await self.start(message, **options).await_end()

    def start(
        self,
        message: str,
        *,
        kb: str | Sequence[str] | None = None,
        review: bool | str | Iterable[str] | None = None,
        session: str | None = None,
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
            session: the conversation that this goes on, as ``run.session_id`` names it: its last messages are part of
                the question. None begins a new one, which has the id of the run.
            user: whose conversation.
            worker: ``kb:agent:mode``, which then decides how is searched.
            thresholds: ``min_evidence`` and ``min_top_score`` in place of the intent's.
            reviewer: answers at the review points in place of a person.
            decisions: recorded answers, given in their order; after the last one the run waits for a person.
            incognito: write nothing down; the run cannot be resumed elsewhere, and is forgotten 50 runs after its end.
            debug: send the debug events to listeners too.

        Raises:
            UnknownKnowledge: lists the known ones.
            RunError: the message is empty or too long, or an option is not one: it says which, and what is allowed.
        """
        self._must_be_open()
        asked, who = message_of(message, self.settings.max_message_characters), reviewer_of(reviewer)
        run_id = uuid.uuid4().hex[:12]
        options = options_of(
            kb=kb,
            review=review,
            session=run_id if session is None else session,
            user=user,
            worker=worker,
            thresholds=thresholds,
            known=self.knowledge.names(),
            incognito=incognito,
            debug=debug,
        )
        live = Live(run_id, who if decisions is None else ReplayReviewer(recorded(decisions)))
        self._work.begin(live.run_id, asked, options, live)
        return Run(self._work, live.run_id)

    def map(
        self,
        messages: Iterable[str],
        *,
        return_exceptions: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
        **options: Unpack[Options],
    ) -> Runs:
        """Ask many independent questions, ten at once; a bar shows how many have ended.

        A run that fails is among the runs, with ``status`` and ``error``. A question that cannot even begin (it is
        empty, its knowledge base unknown) raises when all the others have ended, and a note on the error names their
        runs; with ``return_exceptions`` the error stands in the place of its run, as in ``asyncio.gather``.

        Args:
            messages: the questions.
            return_exceptions: whether a question that cannot begin stands among the runs as its error.
            progress: called with ``("asked", done, total)`` in place of the bar.
            **options: those of ``start``, for each of the questions.

        Returns:
            The runs, in the order of the questions: a list, with ``to_frame()``.
        """
        with watched("map", self.settings.lang, progress) as tell:
            given: Any = {"return_exceptions": return_exceptions, "progress": tell, **options}
            return self._work.loop.call(self.amap(messages, **given))

    async def amap(
        self,
        messages: Iterable[str],
        *,
        return_exceptions: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
        **options: Unpack[Options],
    ) -> Runs:
        """``map`` for a loop that must not block; nothing is shown unless ``progress`` does."""
        return await asked_each(self.aask, list(messages), return_exceptions, progress, dict(options))

    async def astream(self, message: str, **options: Unpack[Options]) -> AsyncIterator[dict[str, Any]]:
        """Ask, and give the events of contracts 8 as they come; debug events too with ``debug=True``."""
        from workbench.events import for_client

        loop, stream = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any] | None]()
        run = self.start(message, **options)
        with self._work.listening(run.run_id, lambda event: loop.call_soon_threadsafe(stream.put_nowait, event)):
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
        known = self._work.driver(clean(str(run_id))).runs.get(clean(str(run_id)))
        return Run(self._work, known["run_id"])

    def runs(self, limit: int = 100, **equals: str) -> list[Run]:
        """The runs, newest first; ``equals`` narrows by ``session_id``, ``user_id`` or ``status``."""
        wanted = {name: clean(str(value)) for name, value in equals.items()}
        return [Run(self._work, row["run_id"]) for row in self._work.durable.runs.newest(count_of(limit), **wanted)]

    def remove_run(self, run_id: str) -> None:
        """Forget a run with everything that it did; what was said in its conversation stays.

        Raises:
            RunError: it still runs.
        """
        self._work.remove(self.run(run_id).run_id)

    def gc(
        self, *, older_than: float | None = None, keep: int | None = None, tapes: bool = False, yes: bool = False
    ) -> list[dict[str, Any]]:
        """What is no longer needed, by kind: ``{"kind", "count", "bytes", "detail"}``; with ``yes`` it is let go.

        Checkpoints of runs that are done (their result stays), rows and leases that nobody owns, what indexes have left
        over, free pages. Runs that run, wait or were interrupted are never touched.

        Args:
            older_than: runs that ended before so many days go too.
            keep: only the newest so many ended runs stay.
            tapes: the tapes of ended runs go too: these can no longer be replayed.
            yes: do it; without it nothing changes.
        """
        from workbench.prune import prune

        self._must_be_open()
        found = prune(self.path, self.knowledge, older_than=older_than, keep=keep, yes=yes, tapes=tapes)
        return [dict(freed) for freed in found]

    def clear(self, session: str | None = None, user: str | None = None) -> int:
        """Delete one conversation, or all of a user's; nobody else's is touched.

        Args:
            session: the conversation; None means all of the user's, who must then be named.
            user: whose; None means the user that ``ask`` takes when none is named.

        Returns:
            How many messages were deleted.

        Raises:
            WorkbenchError: neither was named.
        """
        if session is None and user is None:
            raise WorkbenchError("Nothing was named to clear. Name a session, a user, or both.")
        whose, which = clean(str(user or "default")), None if session is None else clean(str(session))
        return self._work.durable.conversations.clear(whose, which)

    # inside

    def _context(self, driver: Driver, run_id: str) -> Context:
        """The ports of one run, over its tape."""
        ports = self._ports(driver)
        return context_of(driver.runs.get(run_id), ports, driver.runs, self._chat_for, self._planner_for)

    def _ports(self, driver: Driver) -> Context:
        return Context(
            settings=self.settings,
            knowledge=self.knowledge,
            tools=self.tools,
            conversations=driver.conversations,
            runs=driver.runs,
            clock=self._clock,
            planner=self._planner_for(self.settings),
            chat=self._chat_for(self.settings),
            **self._own(),
        )

    def _must_be_open(self) -> None:
        if not self._open:
            raise WorkspaceError(f"The workspace {self.path} is closed. Open it again with Workbench.open.")


shows(Workbench.start, Workbench.ask, Workbench.aask, Workbench.map, Workbench.amap, Workbench.astream)


def _left() -> None:
    """The process ends, and nobody has closed them: what runs is stopped, so that it can be resumed."""
    for wb in list(_opened):
        wb.close()


# With `atexit` it would be too late: a run could start no thread any more, and IPython would have emptied the notebook
# whose tools it calls, so that it would fail.
threading._register_atexit(_left)  # type: ignore[attr-defined]
