"""The face of everything: a workspace that is open. Ask, start, resume, look, and add what is one's own.

with Workbench.open("dir") as wb:
    wb.add_knowledge("film", ["data/films.jsonl"])
    run = wb.ask("推荐几部类似《喜宴》的电影", kb="film", review={"reflect"})
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workbench.asking import count_of, message_of, options_of, recorded, reviewer_of
from workbench.clock import SystemClock
from workbench.context import Context, Handler, Planner
from workbench.driver import Driver, Live
from workbench.errors import WorkspaceError
from workbench.knowledge.library import Library
from workbench.memory.store import open_conversations
from workbench.playback import context_of
from workbench.reviewers import ReplayReviewer, Reviewer
from workbench.run import Run
from workbench.runs import runs_are_gone
from workbench.settings import Settings
from workbench.tape import Mode
from workbench.text import clean
from workbench.tools.registry import ToolRegistry
from workbench.work import Work

if TYPE_CHECKING:
    from workbench.agents import AgentPool
    from workbench.futures.compare import Comparison
    from workbench.futures.graft import Graft
    from workbench.lineage import Tree

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
        self._clock = SystemClock()
        self.knowledge, self.tools = Library(path / "knowledge", settings), ToolRegistry()
        self._handlers: dict[str, Handler] = {}
        self._planner: Planner | None = None
        self._chat: Any = None
        self._agents: AgentPool | None = None
        if runs_are_gone(path):
            raise WorkspaceError(
                f"{path / 'workbench.db'} is empty or gone, though there are checkpoints of its runs. Put the file "
                "back, or run `workbench doctor --repair`, which begins a new one."
            )
        conversations = open_conversations(path / "workbench.db", settings, self._clock.now)
        self._work = Work(path, conversations, self._context, settings.max_concurrency)
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
        self._work.close(self._close_chat())
        self.knowledge.close()

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
        return self.knowledge.add(name, paths, progress=progress)

    def rebuild_knowledge(self, name: str, progress: Callable[[str, int, int], None] | None = None) -> Any:
        """Index a base anew, from its files and, where those are gone, from the documents that its index kept.

        Returns:
            A ``RebuildReport``: an ``AddReport`` that also says what came from the old index, what is missing, where
            the damaged one is kept.
        """
        return self.knowledge.rebuild(name, progress=progress)

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
        return self._ports(self._work.durable)

    @property
    def agents(self) -> AgentPool:
        """Retrieve-only agents by worker name, made when first asked for."""
        if self._agents is None:
            from workbench.agents import AgentPool

            self._agents = AgentPool(self.ports, self._work.loop.call)
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
            self._work.interrupt(run.run_id)
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
            incognito: write nothing down; the run cannot be resumed elsewhere, and is forgotten 50 runs after its end.
            debug: send the debug events to listeners too.

        Raises:
            UnknownKnowledge: lists the known ones.
            RunError: the message is empty or too long, or an option is not one: it says which, and what is allowed.
        """
        self._must_be_open()
        asked, who = message_of(message, self.settings.max_message_characters), reviewer_of(reviewer)
        options = options_of(
            kb=kb,
            review=review,
            session=session,
            user=user,
            worker=worker,
            thresholds=thresholds,
            known=self.knowledge.names(),
            incognito=incognito,
            debug=debug,
        )
        live = Live(uuid.uuid4().hex[:12], who if decisions is None else ReplayReviewer(recorded(decisions)))
        self._work.begin(live.run_id, asked, options, live)
        return Run(self._work, live.run_id)

    def map(self, messages: Iterable[str], **options: Any) -> list[Run]:
        """Ask many independent questions, ten at once, each in a session of its own; the runs, in order."""
        return self._work.loop.call(self.amap(messages, **options))

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

    def replay(self, run_id: str, mode: Mode = "replay", corpus: Literal["check", "tape"] = "check") -> Run:
        """Run it once more from its tape: its plan, evidence, decisions and answer, to the same bytes.

        Args:
            run_id: a run that is done.
            mode: ``replay`` takes everything from the tape: no network, no model, no clock; ``regression`` asks models
                again, and takes tools and knowledge from the tape; ``check`` routes, plans, reflects and merges by
                today's code, and compares the course that it takes, not what models word.
            corpus: ``check`` compares the knowledge bases of this workspace with those of the recording, where they are
                here; ``tape`` does not look at them.

        Returns:
            The new run, which is done.

        Raises:
            Divergence: the first point at which the tape does not fit: expected, got, and which input differs.
            RunError: the run is not done.
        """
        from workbench.futures.replay import replayed

        self._must_be_open()
        return replayed(self.run(run_id), self.knowledge, self.settings, mode, corpus)

    def export(self, run_id: str, path: str | Path) -> Path:
        """Seal a run that has ended in a zip file, without any secret: the same run gives the same bytes.

        Raises:
            CapsuleError: the run has not ended, or the file is there and is something else.
        """
        from workbench.futures.capsule import exported

        run = self.run(run_id)
        return exported(run, self._work.driver(run.run_id).runs, Path(path).expanduser(), self.settings)

    def import_capsule(self, path: str | Path, *, as_new: bool = False) -> Run:
        """Bring in a run that ``export`` sealed, to be shown, replayed and forked without its corpus.

        The same run here already is left as it is; ``as_new`` gives it a new id, when another run has its own.

        Raises:
            CapsuleError: the file is no capsule, or is damaged, newer or made to do harm; nothing was written.
        """
        from workbench.futures.capsule import brought

        self._must_be_open()
        return self.run(brought(Path(path).expanduser(), self._work.durable.runs, self.run, self.settings, as_new))

    def has_run(self, run_id: str) -> bool:
        """Whether there is a run of that id."""
        return self._work.driver(run_id).runs.has(run_id)

    def make_test(self, run_id: str, path: str | Path | None = None) -> Path:
        """Write a run as a pytest file, its capsule beside it, that fails when today's code takes another course.

        Without a path it is ``tests/test_run_RUN_ID.py``.

        Raises:
            RunError: the run is not done, or has no tape.
            CapsuleError: one of the two files is there and is something else.
        """
        from workbench.futures.made_test import made

        run = self.run(run_id)
        where = Path(path).expanduser() if path is not None else Path("tests") / f"test_run_{run.run_id}.py"
        return made(run, self._work.driver(run.run_id).runs, where, self.settings)

    def compare(self, *runs: Run | str) -> Comparison:
        """Two to four runs beside one another: where they part, and what each planned, found, decided, took and said.

        The first is what the others are compared with. What differs beside the edit (the knowledge base, settings, a
        model) is said; which run is better is not.

        Raises:
            RunError: fewer than two, or more than four.
            UnknownRun: there is none of that id.
        """
        from workbench.futures.compare import compared

        return compared([run if isinstance(run, Run) else self.run(run) for run in runs])

    def tree(self, run: Run | str | None = None) -> Tree:
        """Every run with its forks, replays and grafts: what was edited in each, how it stands, what the tape saved.

        Args:
            run: only the tree in which this one stands.

        Raises:
            UnknownRun: there is none of that id.
        """
        from workbench.lineage import tree

        named = run.run_id if isinstance(run, Run) else clean(str(run)) if run is not None else None
        return tree(self._work.durable.runs.lineage(), self._work.status, named)

    def graft(
        self,
        steps: Mapping[str, Run | str | Sequence[Run | str]],
        *,
        base: Run | str | None = None,
        prefer: str | None = None,
        **options: Any,
    ) -> Graft:
        """Merge branches: a new run that takes each of these steps, and what it depends on, from the run named for it.

        The tapes of all these runs answer; only what no tape knows is done, then reflection, merge and answer. A step
        takes the place of the base's when the base never edited it; else both stay, one under a new id.

        Args:
            steps: step id -> the run that it comes from, or several runs.
            base: the run whose plan, question and settings the others' steps join; the first one, when all agree.
            prefer: id of the run that holds where two contradict one another and only one can.
            options: what ``Run.fork`` takes too, as ``review``.

        Returns:
            The new run; its ``conflicts`` say what the branches disagree on, ``provenance()`` where evidence came from.

        Raises:
            GraftConflict: a choice is needed: it lists the conflicts.
            RunError: no such step, or a run that still runs.
        """
        from workbench.futures.graft import grafted

        self._must_be_open()

        def handle(run: Run | str) -> Run:
            return self.run(run) if isinstance(run, str) else run

        taken = {
            step_id: [handle(run) for run in ([one] if isinstance(one, (str, Run)) else one)]
            for step_id, one in steps.items()
        }
        return grafted(taken, None if base is None else handle(base), prefer, **options)

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
        """Delete the messages of a session, of a user, or of a user's session; how many there were."""
        named = [None if name is None else clean(str(name)) for name in (session, user)]
        return self._work.durable.conversations.clear(session_id=named[0], user_id=named[1])

    # inside

    def _context(self, driver: Driver, run_id: str) -> Context:
        """The ports of one run, over its tape."""
        return context_of(driver.runs.get(run_id), self._ports(driver), driver.runs, self._planner_for)

    def _planner_for(self, settings: Settings) -> Planner:
        return self._planner or _default_planner(settings, self._chat)

    def _ports(self, driver: Driver) -> Context:
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
            planner=self._planner_for(self.settings),
            chat=self._chat,
            handlers=dict(self._handlers),
        )

    async def _close_chat(self) -> None:
        if self._chat is not None:
            from workbench.models.chat import close_chat_model

            await close_chat_model(self._chat)

    def _must_be_open(self) -> None:
        if not self._open:
            raise WorkspaceError(f"The workspace {self.path} is closed. Open it again with Workbench.open.")


def _default_planner(settings: Settings, chat: Any) -> Planner:
    from workbench.retrieval.plan import RulePlanner

    rules = RulePlanner(settings)
    if settings.planner == "rules" or chat is None:
        return rules
    from workbench.retrieval.llm_plan import LLMPlanner

    return LLMPlanner(chat, rules, settings)
