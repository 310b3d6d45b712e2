"""A run as people hold it: what it asks, the four answers, and what is made of it."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncGenerator, Iterator
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from workbench.graphs.reviewers import answer
from workbench.runs import feedback as thought
from workbench.runs.by_hand import replaced_result
from workbench.runs.calls import own_prompts
from workbench.runs.recording import Recording, checked_marks, found_pieces, prompts_of
from workbench.settings import merge_settings, models_by_role
from workbench.state import Json

if TYPE_CHECKING:
    from workbench.views.drawing import Drawing


class Run(Recording):
    """One question carried through the conversation graph.

    Parts add to it: ``report``; ``prompt_parts``; ``fusion``.
    """

    _seen: Json | None = None

    @property
    def review(self) -> Json | None:
        """Return what the run asks a person, in the shape of LangChain's human-in-the-loop middleware, or None.

        An answer by this object is for what it has shown last; where the run asks another thing by then, it is refused.
        """
        self._seen = super().review
        return self._seen

    def to_dict(self) -> Json:
        """Return the whole run as one JSON document (``run.schema.json``); its ``execution_log`` is in levels."""
        document = super().to_dict()
        self._seen = document["review"]
        return document

    # what it is doing

    def events(self) -> Iterator[Json]:
        """Its events (``workbench.events``) as they come, until the run pauses or ends."""
        stream: queue.Queue[Json | None] = queue.Queue()
        with self._work.listening(self.run_id, stream.put):
            while (event := stream.get()) is not None:
                yield event

    def wait(self, timeout: float | None = None) -> Run:
        """Wait until it pauses or ends, at most ``timeout`` seconds.

        Raises:
            TimeoutError: it still runs.
        """
        self._work.wait(self.run_id, timeout)
        self.review  # noqa: B018, the caller has now seen what it asks
        return self

    # the four answers

    def approve(self, note: str = "") -> Run:
        """Continue as proposed."""
        return self.answer_review(answer("approve", note=note))

    def edit(self, edits: Json | None = None, *, note: str = "", **fields: Any) -> Run:
        """Continue with changes: ``plan=``, ``query=``, ``thresholds=`` at the points plan and step. At reflect:
        ``next_steps=``, ``activate=``, ``rewrite_query=``, ``should_continue=``, ``thresholds=``,
        ``needs={need: "struck"}``.

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

    def answer_review(self, reply: Json | list[Any], *, wait: bool = True) -> Run:
        """Give an answer, in the middleware's shape or an Agent Inbox's, and wait for the next pause or the end.

        Without ``wait`` it returns at once: follow ``events``, then ``wait`` says how it went.

        Raises:
            NotPaused: nothing waits for an answer, or something else than what was shown; it says the difference.
            InvalidAnswer: the answer does not fit; the run waits as before.
        """
        self._work.answer(self.run_id, reply, self._seen)
        self._seen = None
        return self.wait() if wait else self

    def _edited(self, edits: Json, note: str) -> Json:
        request = self._seen or self.review or {}
        values = to_jsonable_python(edits, exclude_none=True, serialize_unknown=True)
        return answer("edit", point=request.get("point", ""), edits=values, note=note)

    def resume(self, *, wait: bool = True) -> Run:
        """Continue a run whose process died, that failed, or that was interrupted; a finished one stays unchanged."""
        self._work.resume(self.run_id)
        return self.wait() if wait else self

    @property
    def aio(self) -> RunAio:
        """Return the asynchronous door: ``async for event in run.aio.events()``, ``await run.aio.wait()``."""
        return RunAio(self)

    # what is thought of it

    def feedback(self, good: bool | None, note: str = "", *, who: str = "", **labels: Any) -> Run:
        """Store a verdict on the answer: one per person, the newest holds; None removes it.

        Args:
            good: whether it is a good answer.
            note: in words.
            who: whose verdict; the run's user when empty.
            **labels: what else is to be known of it in an experiment, by name; with ``piece``, the key of a piece of
                evidence, the verdict is on that piece: whether it is relevant.

        Raises:
            RunError: the run is incognito, is not done, or its conversation was cleared.
        """
        thought.give(self, good, note, who, labels)
        return self

    # what is made of it

    def fork(self, *, wait: bool = True, **edits: Any) -> Run:
        """Start a new run from START with edits; the tape of this one answers all that the edit does not touch.

        Takes ``plan``, ``decision`` (with ``at``, a review point), ``query``, ``settings``,
        ``models`` and ``prompts`` (by role, as ``Workbench.start``), ``review``, ``pieces`` (evidence to pin or to
        strike, by its number: ``{3: "struck"}``), ``result`` (with ``at``, an effect: what the tool of ``step_1/1`` is
        to have found, or the model of ``writer/1`` to have said); what to do with recorded decisions whose proposal has
        changed (``mismatch``: ``ask``, ``stop``, ``rules``), and who answers after the last one (``rest``: ``ask`` or
        ``rules``). ``at`` alone decides again what was decided before it, and asks a person there. See ``fork.forked``.

        Raises:
            RunError: there is no such review point, or this run leaves nothing behind.
            PlanError: the plan is not valid.
        """
        if models := edits.pop("models", None):
            edits["settings"] = merge_settings(
                edits.get("settings") or {}, {"models": models_by_role(models)}
            )
        if edits.get("prompts"):
            edits["prompts"] = own_prompts(edits["prompts"], prompts_of(self))
        if edits.get("pieces"):
            edits["pieces"] = checked_marks(edits["pieces"], found_pieces(self))
        if "result" in edits:
            edits["results"] = replaced_result(self, str(edits.pop("at", "")), edits.pop("result"))
        fork = Run(self._work, self._work.fork(self.run_id, edits))
        return fork.wait() if wait else fork

    # its pictures; the ``to_frame()`` of each is the table behind it

    def dag(self) -> Drawing:
        """Return the plan: steps, dependencies, status, critical path, and what later versions added or changed.

        Raises:
            RunError: there is no plan.
        """
        from workbench.runs.pictures import dag

        return dag(self)

    def timeline(self) -> Drawing:
        """Show what ran when: graph, steps, and the inside of the tools; waiting and replayed parts are marked."""
        from workbench.runs.pictures import timeline

        return timeline(self)

    def graph(self) -> Drawing:
        """Draw the conversation graph with the graphs inside it unfolded: where the run is, where it was, how often."""
        from workbench.runs.pictures import graph

        return graph(self)

    def knowledge(self) -> Drawing:
        """Return the knowledge graph around the answer: what it names and cites, and what relates to that.

        Raises:
            KnowledgeError: the knowledge base is not here.
            RunError: no knowledge base was asked.
        """
        from workbench.runs.pictures import knowledge

        return knowledge(self)

    # how it shows itself

    def __repr__(self) -> str:
        why = f": {self.error}" if self.error else ""
        query = (self.row["result"] or {}).get("query", self.message)
        read = f", read as {query!r}" if query != self.message else ""
        return f"<Run {self.run_id}: {self.status}{why}, {self.message!r}{read}>"

    def __str__(self) -> str:
        from workbench.views.outline import run_text

        return run_text(self.to_dict())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.views.outline import run_html, run_text, without_clock

        document = without_clock(self.to_dict())
        return {"text/plain": run_text(document), "text/html": run_html(document)}


class RunAio:
    """The asynchronous door of a run."""

    def __init__(self, run: Run):
        self._run = run

    async def events(self) -> AsyncGenerator[Json]:
        """Yield its events as ``Run.events`` does."""
        loop, stream = asyncio.get_running_loop(), asyncio.Queue[Json | None]()
        put = lambda event: loop.call_soon_threadsafe(stream.put_nowait, event)  # noqa: E731
        with self._run._work.listening(self._run.run_id, put):
            while (event := await stream.get()) is not None:
                yield event

    async def wait(self) -> Run:
        """Wait until it pauses or ends."""
        await self._run._work.await_end(self._run.run_id)
        await asyncio.to_thread(lambda: self._run.review)
        return self._run

    async def answer_review(self, reply: Json | list[Any]) -> Run:
        """Give an answer, and wait for the next pause or the end: see ``Run.answer_review``."""
        self._run.answer_review(reply, wait=False)
        return await self.wait()

    async def cancel(self) -> Run:
        """Stop the work now: see ``Run.cancel``."""
        return await asyncio.to_thread(self._run.cancel)
