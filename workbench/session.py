"""The main entry point: an open workspace. Ask, start and resume runs, inspect them, register custom parts.

with Workbench.open("dir") as wb:
    wb.add_knowledge("papers", ["papers.jsonl"])
    run = wb.ask("2020年以后关于睡眠的论文有哪些？", kb="papers", review={"reflect"})
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from workbench import ports
from workbench.errors import WorkbenchError, WorkspaceError
from workbench.extensions import Extended, Service, load, paths
from workbench.graphs.reviewers import ReplayReviewer
from workbench.knowledge.library import Library
from workbench.models.wire import secrets
from workbench.ports import Context, Handler, Planner, SystemClock
from workbench.records.conversations import open_conversations
from workbench.records.lease import Lease
from workbench.records.prompts import Prompts
from workbench.records.spending import read_prices
from workbench.records.store import new_run_id, require_version, runs_are_gone
from workbench.runs.asking import RunOptions, checked_message, shows
from workbench.runs.batch import Runs, map_questions
from workbench.runs.calls import own_prompts
from workbench.runs.driver import Driver, Live
from workbench.runs.feedback import Feedbacks
from workbench.runs.feedback import read as read_feedback
from workbench.runs.listing import WorkspaceRuns, checked_limit
from workbench.runs.run import Run
from workbench.runs.stored import Recording, SelfContained, snapshot
from workbench.runs.taped import run_context
from workbench.runs.work import FORKED, Work
from workbench.settings import PREFIX, ROLES, Settings
from workbench.state import Data, Json, Progress, without_none
from workbench.text import clean, keep_secret
from workbench.tools.registry import ToolRegistry
from workbench.views.labels import speak
from workbench.widgets.display import find_widget, register
from workbench.widgets.indexing import watched

if TYPE_CHECKING:
    from workbench.futures.compare import Comparison
    from workbench.views.knowledge import Inspected
    from workbench.widgets.bench import Bench


T = TypeVar("T")
_opened: weakref.WeakSet[Workbench] = weakref.WeakSet()


class Workbench(Extended):
    """An open workspace. Use ``Workbench.open``; close it, or use it as a context manager.

    Parts add attributes: ``memory``, ``report``, ``fusion``, ``canvas``, ``record``, ``experiments`` and others.

    Attributes:
        path: the folder.
        settings: the settings in use.
        knowledge: the knowledge bases, by name.
        tools: what a step may call; register your own here.
        prompts: what each role asks its model; read, edit, compare and reset them here.
    """

    _kind = "workbench"

    def __init__(self, path: Path, settings: Settings):
        self.path = path
        self.settings = settings
        speak(settings.lang)
        self._clock = SystemClock()
        self._handlers: dict[str, Handler] = {}
        self._unsearched: set[str] = set()
        self._parts: Json = {}
        self._chats: Json = {}
        self._services: dict[str, Service] = {}
        keep_secret(*secrets(settings))
        self.prompts = Prompts(path / "prompts")
        self._prices = read_prices(settings.prices)
        self.knowledge = Library(path / "knowledge", settings)
        self.tools = ToolRegistry(self.knowledge)
        lease = Lease(path / "leases")
        try:
            if runs_are_gone(path):
                raise WorkspaceError(
                    f"{path / 'workbench.db'} is empty or gone, though there are checkpoints of its runs. Put the file "
                    "back, or move checkpoints.db away to begin a new one."
                )
            require_version(path / "workbench.db")
            conversations = open_conversations(path / "workbench.db", settings, self._clock.now)
            self._work = Work(
                lease, path, conversations, self._run_context, settings.max_concurrency, self
            )
        except BaseException:
            lease.release()
            raise
        try:
            for name, made_by in paths("services").items():
                self._services[name] = load(made_by)(self)
        except BaseException:
            self._work.close()
            raise
        self._work.ended = self._ended
        self._open = True
        _opened.add(self)
        register()

    @classmethod
    def open(
        cls, path: str | Path, settings: Settings | None = None, **overrides: Any
    ) -> Workbench:
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
            raise WorkspaceError(
                f"{folder} is a file, not a folder. Name another place for the workspace."
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WorkspaceError(
                f"{folder} cannot be made: {error.strerror}. Name another place."
            ) from None
        if settings is None:
            settings = Settings.load(**overrides)
        elif overrides:
            settings = settings.with_changes(overrides)
        return cls(folder, settings)

    def close(self) -> None:
        """Stop what runs (it stays resumable), close the stores and release the lease. Safe to call twice."""
        if not self._open:
            return
        self._open = False
        for service in self._services.values():
            service.close()
        self._work.close(self._close_chats())
        self.knowledge.close()

    def __enter__(self) -> Workbench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Workbench {self.path}: {', '.join(self.knowledge.names()) or 'no knowledge base yet'}>"

    # knowledge and custom parts

    def add_knowledge(
        self,
        name: str,
        paths: Iterable[str | Path],
        progress: Progress | None = None,
        *,
        vocabulary: str | Path | None = None,
        replace: bool = False,
    ) -> Any:
        """Index files or folders under a name; what has not changed costs nothing.

        Args:
            name: the knowledge base, made when it is missing.
            paths: files or folders: texts, tables, JSON, pages, notebooks, Office files, triples (``.tsv``), canvases.
            progress: called with ``(stage, done, total)``; None shows a bar, in a notebook and in a terminal. An
                interrupt leaves the base as it was.
            vocabulary: a TOML file that says what the words of their fields mean, in English and Chinese; None for
                the one next to them (``NAME.vocabulary.toml``, or ``vocabulary.toml`` in a folder), if there is one.
            replace: put documents in the place of those of other files that have the same ids; else both are kept.

        Returns:
            An ``AddReport``: what was added, changed, deleted, left alone; every bad line with file, line and reason.
        """
        with watched(name, self.settings.lang, progress) as tell:
            return self.knowledge.add(
                name, paths, vocabulary=vocabulary, replace=replace, progress=tell
            )

    def inspect_knowledge(self, name: str) -> Inspected:
        """Return the contents of a base: counts, growth, coverage, fields and files."""
        from workbench.views.knowledge import Inspected

        return Inspected(self.knowledge.get(name).inspect())

    def ports(self, judge: str = "", prompts: Data | None = None) -> Context:
        """Return the context that nodes see, with every port, for custom graphs and for evaluations.

        Args:
            judge: the model that judges, by name.
            prompts: prompts in place of ours.
        """
        context = self._context(self._work.durable)
        if not judge:
            return context
        settings = self.settings.with_changes({"models": {"judge": judge}})
        own = Prompts(saved={**self.prompts.own(), **own_prompts(prompts, self.prompts)})
        return replace(
            context,
            settings=settings,
            models={"judge": self._models_for(settings)["judge"]},
            prompts=own,
        )

    def register(self, kind: str | Data, *given: Any, kb: str = "", retrieve: bool = True) -> Any:
        """Replace a part of the workbench; None restores ours. ``workbench.ports`` lists the kinds and their calls.

        Args:
            kind: which part, or several as ``{kind: part}``: all are replaced, or none.
            *given: the part, which is returned; without one the result is a decorator.
            kb: the base for which a ``handler`` answers.
            retrieve: whether that base is searched before its handler is called.

        Raises:
            WorkbenchError: there is no such kind, the part cannot be called so, or a handler names no base.
        """
        if not given and isinstance(kind, str):
            return partial(self.register, kind, kb=kb, retrieve=retrieve)
        bundle = {kind: given[0]} if isinstance(kind, str) else dict(kind)
        for name, part in bundle.items():
            ports.checked(name, part)
            if (name == "handler") is not bool(kb):
                raise WorkbenchError(
                    'A handler answers for one base, as register("handler", PART, kb="papers").'
                )
        if kb:
            self._handlers = _with({kb: bundle["handler"]}, self._handlers)
            self._unsearched.discard(kb)
            if kb in self._handlers and not retrieve:
                self._unsearched.add(kb)
            return given[0]
        self._parts = _with(bundle, self._parts)
        self.knowledge.reranker = self._parts.get("reranker")
        self._work.durable.conversation_store = (
            self._parts.get("store") or self._work.durable.conversations
        )
        return given[0] if given else None

    def _models_for(self, settings: Settings) -> Json:
        """Return the chat model of each role that has one, opened once; a fork may name others than the workspace."""
        by_role = ((role, settings.role_model(role)) for role in ROLES)
        names = {role: name for role, name in by_role if name}
        for role, name in names.items():
            if name not in self._chats:
                from workbench.models.chat import open_chat_model
                from workbench.models.wire import keys_in

                self._chats[name] = open_chat_model(settings, role)
                keep_secret(*keys_in(self._chats[name]))
        return {role: self._chats[name] for role, name in names.items()}

    def _planner_for(self, settings: Settings) -> Planner:
        from workbench.graphs.plan import RulePlanner

        planner = self._parts.get("planner") or RulePlanner(settings)
        return planner

    async def _close_chats(self) -> None:
        for name, chat in self._chats.items():
            from workbench.models.chat import close_chat_model

            if not name.startswith(
                PREFIX
            ):  # an object that the user opened is closed by the user
                await close_chat_model(chat)

    # asking

    def ask(self, message: str, **options: Any) -> Run:
        """Ask, and wait for the pause or the end. Ctrl-C leaves the run resumable and prints its id.

        Takes the options of ``start``.
        """
        run = self.start(message, **options)
        try:
            return run.wait()
        except KeyboardInterrupt:
            run.cancel(resumable=True)
            sys.stderr.write(f"Interrupted. To continue: workbench resume {run.run_id}\n")
            raise

    def start(self, message: str, **options: Any) -> Run:
        """Begin a run and return at once.

        Args:
            message: what the user says.
            **options: those of ``RunOptions``.

        Raises:
            UnknownKnowledge: lists the known ones.
            RunError: the message is empty or too long, or an option is not one: it says which, and what is allowed.
        """
        self._must_be_open()
        text = checked_message(message)
        run_id = new_run_id()
        read = RunOptions.read(self, options)
        stored = read.stored(run_id)
        if prompts := {**self.prompts.own(), **read.prompts}:
            stored["prompts"] = prompts
        # Opened here too: a model that cannot be opened is refused at once and not in the run.
        self._models_for(self.settings.with_changes(stored.get("settings", {})))
        reviewer = read.reviewer if read.decisions is None else ReplayReviewer(read.decisions)
        self._work.begin(run_id, text, stored, Live(run_id, reviewer))
        return Run(self._work, run_id)

    def map(
        self,
        messages: Iterable[str],
        *,
        return_exceptions: bool = False,
        progress: Progress | None = None,
        **options: Any,
    ) -> Runs:
        """Ask many independent questions, ten at once; a bar shows how many have ended.

        A run that fails is among the runs, with ``status`` and ``error``. A question that cannot even begin (it is
        empty, its knowledge base unknown) raises when all the others have ended, and a note on the error names their
        runs; with ``return_exceptions`` the error takes the place of its run, as in ``asyncio.gather``.

        Models and servers are waited for together. Without one hardly anything is gained (1.1 times for
        ten): a question is then Python's own work. Open the workspace in a second process for that.

        Args:
            messages: the questions.
            return_exceptions: whether a question that cannot begin stands among the runs as its error.
            progress: called with ``("asked", done, total)`` in place of the bar.
            **options: those of ``start``, for each of the questions.

        Returns:
            The runs, in the order of the questions: a list, with ``to_frame()``.
        """
        with watched("map", self.settings.lang, progress) as tell:
            return self._work.loop.call(
                map_questions(self.start, list(messages), return_exceptions, tell, options)
            )

    # its runs

    def run(self, run_id: str) -> Run:
        """Return a run of this workspace, from any user or process.

        Raises:
            UnknownRun: lists the newest ones.
        """
        run_id = clean(str(run_id))
        for service in self._services.values():
            run = service.find(run_id)
            if run is not None:
                return run
        return Run(self._work, self._work.driver(run_id).runs.get(run_id)["run_id"])

    @property
    def runs(self) -> WorkspaceRuns:
        """Its runs: list them, find where one came from, remove one."""
        return WorkspaceRuns(self._work, self)

    def clear(self, session: str | None = None, user: str | None = None) -> int:
        """Delete one conversation, or all of a user's; no one else's is touched.

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
        whose = clean(str(user or "default"))
        which = None if session is None else clean(str(session))
        count = self._work.durable.conversations.clear(whose, which)
        self._cleared()
        return count

    def messages(
        self,
        session: str,
        user: str = "default",
        *,
        limit: int | None = None,
        before: str | None = None,
    ) -> list[Json]:
        """Return a conversation's messages, oldest first: ``id``, ``role``, ``content``, ``created_at``, ``citations``.

        Args:
            session: the conversation; one that is not there has none.
            user: whose.
            limit: only the newest so many.
            before: the id of a message: only what came earlier.
        """
        conversations = self._work.durable.conversations
        conversation_id = conversations.conversation_id(clean(str(user)), clean(str(session)))
        return conversations.list_messages(
            conversation_id, None if limit is None else checked_limit(limit), before
        )

    def feedback(
        self, *, run: str | None = None, user: str | None = None, session: str | None = None
    ) -> Feedbacks:
        """Return feedback on answers (``Run.feedback``), oldest first: all, or of a run, user, conversation.

        ``to_frame()`` makes a table of it, with a column for each label.
        """
        values = {"thread_id": run, "user_id": user, "session_id": session}
        wanted = {name: clean(str(value)) for name, value in values.items() if value is not None}
        return read_feedback(self._work.durable.conversations.list_feedback(**wanted))

    # what is made of runs

    def replay(self, run_id: str) -> Run:
        """Run it once more from its tape alone: its plan, evidence, decisions and answer, to the same bytes.

        No network, no model and no clock is asked, and no knowledge base.

        Args:
            run_id: a run that is done.

        Returns:
            The new run, which is done.

        Raises:
            Divergence: the first point at which the tape does not fit: expected, got, and which input differs.
            RunError: the run is not done.
        """
        from workbench.futures.replay import replayed

        self._must_be_open()
        run = self.run(run_id)
        if isinstance(run, SelfContained):
            return run.replay()
        return self.run(replayed(snapshot(run), run.fork).run_id)

    def export(self, run_id: str, path: str | Path) -> Path:
        """Seal a run that has ended in a zip file, without any secret: the same run gives the same bytes.

        Raises:
            CapsuleError: the run has not ended, or the file is there and is something else.
        """
        from workbench.futures.capsule import exported

        run = self.run(run_id)
        if isinstance(run, SelfContained):
            return run.export(path)
        return exported(run, Path(path).expanduser(), self.settings)

    def import_capsule(self, path: str | Path, *, as_new: bool = False) -> Run:
        """Import a run that ``export`` sealed, to be shown, replayed and forked without its corpus.

        The same run here already is left unchanged; ``as_new`` gives it a new id, when another run has its own.

        Raises:
            CapsuleError: the file is no capsule, or is damaged, newer or made to do harm; nothing was written.
        """
        from workbench.futures.capsule import imported

        self._must_be_open()
        return self.run(
            imported(
                Path(path).expanduser(), self._work.durable.runs, self.run, self.settings, as_new
            )
        )

    def compare(self, *runs: Run | str) -> Comparison:
        """Two to four runs next to one another: where they part, and what each planned, found, decided, took and said.

        The first is what the others are compared with. What differs besides the edit (the knowledge base, settings, a
        model) is said; which run is better is not.

        Raises:
            RunError: fewer than two, or more than four.
            UnknownRun: there is none of that id.
        """
        from workbench.futures.compare import compared

        loaded = [self.run(run) if isinstance(run, str) else run for run in runs]
        return compared([run._read_once(loaded) for run in loaded])

    # in a notebook

    def bench(
        self,
        run: Run | str | None = None,
        *,
        kb: str | None = None,
        review: bool | str | Iterable[str] | None = ("plan", "reflect"),
        session: str | None = None,
        user: str = "default",
        lang: str | None = None,
        **options: Any,
    ) -> Bench:
        """Return the bench: ask, see and edit the plan, decide, watch, look at evidence and timeline, fork and compare.

        Without a run it opens on the newest one of such a bench that waits, works or was interrupted, so that the
        same cell, run again after a restart, continues where it stood; else on an empty question.

        Args:
            run: the run to open, or its id; or a recorded graph.
            kb: the knowledge base that questions go to; None lets the router choose.
            review: where it pauses for you at first: ``plan``, ``step``, ``reflect``, several, True for all, None for
                none. It can be changed for each question.
            session: the conversation; None for one of the bench's own, which it keeps until *New conversation* is
                pressed.
            user: whose.
            lang: ``en`` or ``zh``; None takes ``WORKBENCH_LANG``, or else the language of the question.
            **options: what else ``start`` takes, for every question asked here.

        Raises:
            UnknownRun: there is no such run.
            RunError: an option is not one.
        """
        from workbench.widgets.bench import Bench

        run = self.run(run) if isinstance(run, str) else run
        if widget := find_widget(run):
            return widget
        asking = {"kb": kb, "review": review, "session": session, "user": user, **options}
        return Bench(self, run, asking, lang)

    # inside

    def _run_context(self, driver: Driver, run_id: str) -> Context:
        """Return the context of one run, over its tape."""
        return run_context(
            driver.runs.get(run_id),
            self._context(driver),
            driver.runs,
            self._models_for,
            self._planner_for,
        )

    def _ended(self, run_id: str) -> None:
        run = Recording(self._work, run_id)
        for service in self._services.values():
            service.ended(run)

    def _counted(self, name: str, seconds: float | None) -> None:
        for service in self._services.values():
            service.counted(name, seconds)

    def _cleared(self) -> None:
        for service in self._services.values():
            service.cleared()

    def _context(self, driver: Driver) -> Context:
        memory = self._parts.get("memory") if driver is self._work.durable else None
        for service in self._services.values():
            memory = service.memory(driver, memory)
        return Context(
            settings=self.settings,
            knowledge=self.knowledge,
            tools=self.tools,
            conversations=driver.conversation_store,
            runs=driver.runs,
            clock=self._clock,
            planner=self._planner_for(self.settings),
            models=self._models_for(self.settings),
            prompts=self.prompts,
            prices=self._prices,
            handlers=dict(self._handlers),
            unsearched=frozenset(self._unsearched),
            parts={name: part for name, part in self._parts.items() if name in ports.IN_GRAPH},
            memory=memory or ports.NoMemory(),
        )

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine on the loop on which runs work: a chat model's connections belong to one loop."""
        return self._work.loop.call(work)

    def _must_be_open(self) -> None:
        self._work.loop.require_own()
        if not self._open:
            raise WorkspaceError(
                f"The workspace {self.path} is closed. Open it again with Workbench.open."
            )


def _with(changes: Data, parts: Data) -> Json:
    """Return the parts with these in their place; None takes one away."""
    return without_none({**parts, **changes})


shows(Workbench.start, Workbench.ask, Workbench.map)


def _left() -> None:
    """Close the workspaces that are still open when the process ends: their runs stop and can be resumed."""
    for wb in list(_opened):
        wb.close()


def _forked() -> None:
    """Leave the workspaces to the parent process: their threads, locks and databases are not to be used here."""
    for wb in list(_opened):
        wb.knowledge = wb.tools = wb._work = cast(Any, _Forked())
        wb._open = False
    _opened.clear()


class _Forked:
    def __getattr__(self, name: str) -> Any:
        raise WorkspaceError(FORKED)


os.register_at_fork(after_in_child=_forked)

# With `atexit` it would be too late: a run could start no thread any more, and IPython would have emptied the notebook
# whose tools it calls, so that it would fail.
threading._register_atexit(_left)  # type: ignore[attr-defined]
