"""A run as people hold it: what it asks, the four answers, and what is made of it."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import RunError, UnknownKnowledge
from workbench.graphs.reviewers import answer
from workbench.plans import Plan
from workbench.records.tape import read
from workbench.runs import feedback as thought
from workbench.runs.calls import models_of, own_prompts, replies_of
from workbench.runs.past import Checkpoint, Past, named
from workbench.runs.recording import Recording

if TYPE_CHECKING:
    from workbench.futures.graft import Graft
    from workbench.futures.tree import Tree
    from workbench.futures.what_if import WhatIf
    from workbench.parts.fusion.canvas_export import Part
    from workbench.parts.fusion.canvases import CanvasFile
    from workbench.runs.fork import Forecast
    from workbench.runs.reporting import Report
    from workbench.runs.workers import Work
    from workbench.views.drawing import Drawing
    from workbench.views.figures.picture import Picture
    from workbench.views.memory import Rows
    from workbench.views.neighbourhood import Around


class Run(Recording):
    """One question carried through the conversation graph."""

    _seen: dict[str, Any] | None = None

    @property
    def review(self) -> dict[str, Any] | None:
        """What the run asks a person, in the shape of LangChain's human-in-the-loop middleware, or None.

        An answer by this object is for what it has shown last; where the run asks another thing by then, it is refused.
        """
        self._seen = super().review
        return self._seen

    def to_dict(self) -> dict[str, Any]:
        """The whole run as one JSON document (``run.schema.json``); its ``execution_log`` is in levels."""
        document = super().to_dict()
        self._seen = document["review"]
        return document

    @property
    def workspace(self) -> Any:
        """The open workspace that it belongs to."""
        return self._work.workspace

    @property
    def report(self) -> Report:
        """The report that it writes.

        Raises:
            RunError: it writes none.
        """
        from workbench.runs.reporting import Report

        if "report" not in self.options:
            raise RunError(f"Run {self.run_id} writes no report: it was asked with ask. Ask for one with wb.report.")
        return Report(self)

    # what it is doing

    def events(self) -> Iterator[dict[str, Any]]:
        """Its events (``workbench.events``) as they come, until the run pauses or ends."""
        stream: queue.Queue[dict[str, Any] | None] = queue.Queue()
        with self._work.listening(self.run_id, stream.put):
            while (event := stream.get()) is not None:
                yield event

    async def aevents(self) -> AsyncGenerator[dict[str, Any]]:
        """``events`` for a loop that must not block."""
        loop, stream = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any] | None]()
        with self._work.listening(self.run_id, lambda event: loop.call_soon_threadsafe(stream.put_nowait, event)):
            while (event := await stream.get()) is not None:
                yield event

    def draft(self, name: str) -> str:
        """What a person has typed or chosen for this run and not sent, by name; empty when nothing."""
        return self._store.draft(self.run_id, name)

    def keep_draft(self, name: str, text: str) -> None:
        """Keep what a person has typed or chosen and not sent; it is there again after a restart."""
        self._store.save_draft(self.run_id, name, text)

    def wait(self, timeout: float | None = None) -> Run:
        """Wait until it pauses or ends, at most ``timeout`` seconds.

        Raises:
            TimeoutError: it still runs.
        """
        self._work.wait(self.run_id, timeout)
        self.review  # noqa: B018, whoever waited is shown what it asks
        return self

    # the four answers

    def approve(self, note: str = "") -> Run:
        """Go on as proposed."""
        return self.answer_review(answer("approve", note=note))

    def edit(self, edits: dict[str, Any] | None = None, *, note: str = "", **fields: Any) -> Run:
        """Go on with changes: ``plan=``, ``query=``, ``thresholds=``, ``struck=`` (ids of memories that are not to be
        obeyed) at the points plan and step; ``next_steps=``, ``activate=``, ``rewrite_query=``, ``should_continue=``,
        ``thresholds=``, ``needs={need: "struck"}`` at reflect.

        Raises:
            InvalidAnswer: names the field and what is allowed; the run waits as before.
        """
        return self.answer_review(self._edited({**(edits or {}), **fields}, note))

    def reject(self, note: str = "") -> Run:
        """Stop here, and answer from what was found."""
        return self.answer_review(answer("reject", note=note))

    def respond(self, message: str, note: str = "") -> Run:
        """Say it in words: the text joins the query, and what is missing is planned."""
        return self.answer_review(answer("respond", message=message, note=note))

    def answer_review(self, given: dict[str, Any], *, wait: bool = True) -> Run:
        """Give an answer, in the middleware's shape, and wait for the next pause or the end.

        Without ``wait`` it returns at once: follow ``events``, then ``wait`` says how it went.

        Raises:
            NotPaused: nothing waits for an answer, or something else than what was shown; it says the difference.
            InvalidAnswer: the answer does not fit; the run waits as before.
        """
        self._answer(given)
        return self.wait() if wait else self

    def _answer(self, given: dict[str, Any]) -> None:
        self._work.answer(self.run_id, given, self._seen)
        self._seen = None

    def _edited(self, edits: dict[str, Any], note: str) -> dict[str, Any]:
        asked = self._seen or self.review or {}
        return answer("edit", point=asked.get("point", ""), edits=_plain(edits), note=note)

    def resume(self, *, wait: bool = True) -> Run:
        """Continue a run whose process died, that failed, or that was interrupted; a finished one stays as it is."""
        self._work.resume(self.run_id)
        return self.wait() if wait else self

    def interrupt(self) -> Run:
        """Stop the work now and leave the run resumable, as Ctrl-C does."""
        self._work.interrupt(self.run_id)
        return self

    def cancel(self) -> Run:
        """Stop the work now, with its tools, in whatever process it is done. What is finished is kept.

        Raises:
            WorkspaceBusy: the other process has not stopped in good time; it will when it wakes.
        """
        self._work.cancel(self.run_id)
        return self

    async def await_end(self) -> Run:
        """``wait`` for a loop that must not block."""
        await self._work.await_end(self.run_id)
        await asyncio.to_thread(lambda: self.review)
        return self

    async def aanswer_review(self, given: dict[str, Any]) -> Run:
        """``answer_review`` for a loop that must not block."""
        self._answer(given)
        return await self.await_end()

    async def acancel(self) -> Run:
        """``cancel`` for a loop that must not block."""
        return await asyncio.to_thread(self.cancel)

    # what is thought of it

    def feedback(self, good: bool | None, note: str = "", *, who: str = "", **labels: Any) -> Run:
        """Keep what somebody thinks of the answer: one verdict a person, the newest holds; None takes it back.

        Args:
            good: whether it is a good answer.
            note: in words.
            who: whose verdict; the run's user when empty.
            **labels: what else is to be known of it in an experiment, by name.

        Raises:
            RunError: the run is incognito, is not done, or its conversation was cleared.
        """
        thought.give(self, good, note, who, labels)
        return self

    def feedbacks(self) -> thought.Feedbacks:
        """What was thought of the answer, oldest first; ``to_frame()`` makes a table of it."""
        return thought.of(self)

    # what it remembered

    def prompt_parts(self) -> Rows:
        """The token map of its prompt: system, core memory, summary, exchanges, evidence, window, question; and what
        of memory was left out, with the reason. ``to_frame()`` makes a table of it."""
        from workbench.runs.remembering import prompt_parts

        return prompt_parts(self.recording())

    def blame(self) -> Rows:
        """Which memory, from which turn, probably stood behind which sentence of the answer."""
        from workbench.runs.remembering import blame

        return blame(self.recording())

    # what is made of it

    def forecast(self, plan: Plan, activated: Iterable[str] = ()) -> Forecast:
        """What that plan will take: the steps that run, and their seconds (P50, P90).

        A run that has not ended goes on with it; one that has is forked with it.

        Args:
            plan: the plan.
            activated: ids of conditional steps that will be woken, beside those that were.
        """
        from workbench.runs.fork import forecast

        known = [*self.tape(), *(effect for run_id in self.sources for effect in read(self._store, run_id))]
        versions, records, kb = dict[str, str](), self.records, self.kb_prefix
        for name in {kb, *(str(s.tool_input["kb_prefix"]) for s in plan.steps if s.tool_input.get("kb_prefix"))}:
            with suppress(UnknownKnowledge):  # then what the tape says of it holds
                seen = f"@{'/'.join(self.as_of)}" if self.as_of else ""
                versions[name] = self.workspace.knowledge.get(name).fingerprint() + seen
        now: dict[str, Any] = {"versions": versions, "activated": [*self._values().get("activated", []), *activated]}
        now["ended"] = records if self.status in ("running", "paused", "interrupted") else ()
        return forecast(plan, known, records, self.tool_seconds(), kb, **now)

    def fork(self, **edits: Any) -> Run:
        """A new run from START with something edited; the tape of this one answers all that the edit does not touch.

        Takes ``plan``, ``decision`` (with ``at``, a review point or the id of a checkpoint), ``query``, ``settings``,
        ``models`` and ``prompts`` (by role, as ``Workbench.start``), ``replies`` (what a model is to have said, by the
        number of its call in ``calls()``), ``review``; what to do with recorded decisions whose proposal has changed
        (``mismatch``: ``ask``, ``stop``, ``rules``), and who answers after the last one (``rest``: ``ask`` or
        ``rules``). ``at`` alone decides again what was decided before it, and asks a person there. See ``fork.forked``.

        Raises:
            RunError: there is no such review point, or this run leaves nothing behind.
            PlanError: the plan is not valid.
        """
        return self.start_fork(**edits).wait()

    def start_fork(self, **edits: Any) -> Run:
        """``fork`` that returns at once."""
        if models := edits.pop("models", None):
            edits["settings"] = {**(edits.get("settings") or {}), **models_of(models)}
        if edits.get("prompts"):
            edits["prompts"] = own_prompts(edits["prompts"], self.prompts)
        if edits.get("replies"):
            edits["replies"] = replies_of(edits["replies"], self.calls())
        if edits.get("without"):
            from workbench.runs.fork import left_out

            known = {"steps": [step.step_id for step in self.plan.steps] if self.plan else []}
            known["evidence"] = [piece["result_id"] for piece in self.evidence]
            other = {"plan", "query"} & set(edits)  # then it finds what this run knows nothing of
            edits["without"] = left_out(edits["without"], **({} if other else known))
        return Run(self._work, self._work.fork(self.run_id, edits))

    def tree(self) -> Tree:
        """The tree of forks in which this run stands: from which it was made, and what was made of it."""
        return self.workspace.tree(self)

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint, inside the retrieval graph too, oldest first: what ran, what comes next, what changed.

        Raises:
            RunError: `gc` has let them go.
        """
        return Past(self._work.checkpoints(self.run_id), self)

    def checkpoint(self, checkpoint_id: str) -> Checkpoint:
        """The checkpoint of that id; its ``values`` are the whole state.

        Raises:
            RunError: there is none, or `gc` has let it go.
        """
        return named(self.run_id, self._work.checkpoints(self.run_id), checkpoint_id)

    def graft(self, other: Run, steps: Iterable[str] | None = None, prefer: str | None = None, **options: Any) -> Graft:
        """This run with steps of another one, all or these: see ``Workbench.graft``, whose base is this run."""
        return self.workspace.join(self, other, steps, prefer, **options)

    def what_if(self, gold: Collection[str] = (), keep: bool = True) -> WhatIf:
        """Every reflect point played both ways, go on and stop: what going on found, and what it cost.

        Args:
            gold: ids of the documents that should be found; then recall is told too.
            keep: keep the runs that were made for it, to be looked at.

        Raises:
            RunError: the run is not done.
        """
        return self.workspace.what_if(self, gold, keep)

    def provenance(self) -> list[dict[str, Any]]:
        """Where each piece of evidence came from: a row a piece and step that found it.

        ``n`` and ``result_id`` of the piece, its ``title`` and ``score``; ``step_id`` and ``tool``; ``from_run`` and
        ``from_step``, the branch from which a graft took the step.
        """
        return self.workspace.provenance(self)

    # its pictures; the ``to_frame()`` of each is the table behind it

    def dag(self) -> Drawing:
        """The plan: steps, dependencies, status, critical path, and what later versions added or changed.

        Raises:
            RunError: there is no plan.
        """
        from workbench.runs.pictures import dag

        return dag(self)

    def timeline(self) -> Drawing:
        """What ran when: graph, steps, and what happened inside the tools; waiting and what is recorded are marked."""
        from workbench.runs.pictures import timeline

        return timeline(self)

    def graph(self) -> Drawing:
        """The conversation graph with the graphs inside it unfolded: where the run is, where it was, how often."""
        from workbench.runs.pictures import graph

        return graph(self, self.checkpoints)

    def findings(self) -> Picture:
        """Everything that was found, by its score: cited, in the prompt, or dropped and why."""
        from workbench.runs.pictures import findings

        return findings(self)

    def knowledge(self, path: tuple[str, str] | None = None, expand: Iterable[str] = ()) -> Drawing:
        """The knowledge graph around the answer: what it names and cites, and what relates to that.

        Args:
            path: two entities, by name or alias in any language: a shortest way between them is shown too.
            expand: further entities whose neighbours are shown.

        Raises:
            KnowledgeError: there is no such entity, or no way; the knowledge base is not here.
            RunError: no knowledge base was asked.
        """
        from workbench.runs.pictures import knowledge

        return knowledge(self, self.around(path, expand))

    def around(self, path: tuple[str, str] | None = None, expand: Iterable[str] = ()) -> Around:
        """The data of ``knowledge``.

        Raises:
            KnowledgeError: there is no such entity, or no way; the knowledge base is not here.
            RunError: no knowledge base was asked.
        """
        from workbench.runs.pictures import around_answer

        return around_answer(self, self.workspace.knowledge, path, expand)

    # as a JSON Canvas, which Obsidian opens

    def to_canvas(self, path: str | Path, what: Part = "run") -> CanvasFile:
        """Write the run as a canvas: question, steps, evidence, answer; or its ``plan``, ``knowledge`` or ``tree``.

        Raises:
            CanvasError: there is no such part, or the file is there already, with something else in it.
        """
        from workbench.parts.fusion.canvas_export import made_of
        from workbench.parts.fusion.canvases import CanvasFile, write

        return CanvasFile(write(Path(path).expanduser(), made_of(self, what)), self.workspace)

    def plan_from_canvas(self, path: str | Path) -> Plan:
        """The plan as a person left it on the canvas of ``to_canvas(path, "plan")``, for ``edit`` or ``fork``.

        Raises:
            CanvasError: it is no canvas, or a step takes its input from one that no edge leads from any more.
            PlanError: the plan is not valid.
        """
        from workbench.parts.fusion.canvas_export import plan_of
        from workbench.parts.fusion.canvases import CanvasFile

        return plan_of(CanvasFile(Path(path).expanduser(), self.workspace), self.plan or Plan())

    # how it shows itself

    def __repr__(self) -> str:
        why = f": {self.error}" if self.error else ""
        line = self.line()
        read = f", read as {line['query']!r}" if line["query"] != self.message else ""
        return f"<Run {self.run_id}: {self.status}{why}, {self.message!r}{read}>"

    def __str__(self) -> str:
        from workbench.views.render import run_text

        return run_text(self.to_dict())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.views.render import run_html, run_text, without_clock

        document = without_clock(self.to_dict())
        return {"text/plain": run_text(document), "text/html": run_html(document)}


def _plain(value: Any) -> Any:
    """Plans and steps inside edits as JSON."""
    if isinstance(value, Plan):
        return value.dump()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


class Listing(list[Run]):
    """Runs of a workspace, newest first."""

    def __init__(self, work: Work, run_ids: Sequence[str]):
        super().__init__(Run(work, run_id) for run_id in run_ids)
        self._work = work

    def lines(self) -> list[dict[str, Any]]:
        """Return what a list shows of each run, in a few queries for all."""
        return self._work.lines([run.run_id for run in self])

    def __repr__(self) -> str:
        def asked(row: dict[str, Any]) -> str:
            read = f", read as {row['query'][:80]!r}" if row["query"] != row["message"] else ""
            return f"{row['message'][:80]}{read}"

        return "\n".join(f"{row['run_id']}  {row['status']:11}  {asked(row)}" for row in self.lines())
