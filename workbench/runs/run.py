"""A run as people hold it: how it stands, what it did, what it asks, and the four answers."""

from __future__ import annotations

import queue
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from workbench.errors import KnowledgeError, RunError, shown
from workbench.graphs.reviewers import answer
from workbench.plans import Plan
from workbench.state import Citation, Decision, ExecutionRecord, Reflection, RetrievalResult, RouteDecision
from workbench.views.labels import labels_for

if TYPE_CHECKING:
    import pandas

    from workbench.errors import Divergence
    from workbench.futures.graft import Graft
    from workbench.futures.what_if import LeaveOneOut, WhatIf
    from workbench.records.counted import Piece
    from workbench.records.tape import Effect
    from workbench.runs.fork import Cost, Forecast
    from workbench.runs.lineage import Tree
    from workbench.runs.past import Checkpoint
    from workbench.runs.work import Work
    from workbench.views.around import Around
    from workbench.views.figures.findings import By
    from workbench.views.figures.picture import Picture


class Run:
    """One question carried through the conversation graph.

    Everything is read from the workspace when it is asked for, so two handles of one run, in two processes too, agree.
    """

    def __init__(self, work: Work, run_id: str):
        self._work, self.run_id = work, run_id
        self._held: dict[str, Any] | None = None

    @property
    def workspace(self) -> Any:
        """The open workspace that it belongs to."""
        return self._work.workspace

    # how it stands

    @property
    def status(self) -> str:
        """``running``, ``paused``, ``interrupted``, ``done``, ``failed`` or ``cancelled``."""
        return self._work.status(self.run_id)

    @property
    def holder(self) -> str | None:
        """Who works on it now, in words: process, host and since when; None when nobody does."""
        return self._work.holder(self.run_id)

    @property
    def review(self) -> dict[str, Any] | None:
        """What the run asks a person, in the shape of LangChain's human-in-the-loop middleware, or None."""
        return self._work.pending(self.run_id) if self.status == "paused" else None

    @property
    def error(self) -> str | None:
        """Why it failed."""
        return self._row["error"]

    @property
    def message(self) -> str:
        """What the user wrote."""
        return self._row["message"]

    @property
    def session_id(self) -> str:
        """The conversation to which it belongs: ``ask(..., session=run.session_id)`` goes on with it."""
        return self._row["session_id"]

    @property
    def user_id(self) -> str:
        """Whose it is."""
        return self._row["user_id"]

    @property
    def created_at(self) -> str:
        """UTC, ISO 8601."""
        return self._row["created_at"]

    @property
    def ended_at(self) -> str | None:
        """UTC, ISO 8601; None while it has not ended."""
        return self._row["ended_at"]

    # what it did

    @property
    def query(self) -> str:
        """The question as it stands alone: a follow-up with what it refers to."""
        return self._values().get("query", self.message)

    @property
    def kb_prefix(self) -> str:
        """The knowledge base that was asked; empty for none."""
        return self._values().get("kb_prefix", "")

    @property
    def route_decision(self) -> RouteDecision | None:
        """Where the message went, and what it wants."""
        return self._values().get("route_decision")

    @property
    def plan(self) -> Plan | None:
        """The newest version of the plan."""
        versions = self.plans
        return versions[-1] if versions else None

    @property
    def plans(self) -> list[Plan]:
        """Every version of the plan, oldest first."""
        return [Plan.load(row["plan"]) for row in self._store.plans(self.run_id)]

    @property
    def plan_history(self) -> list[dict[str, Any]]:
        """Who made each version, and why: ``{"version", "author", "reason", "plan"}``."""
        return self._store.plans(self.run_id)

    @property
    def records(self) -> list[ExecutionRecord]:
        """What each attempt at each step did."""
        return self._store.records(self.run_id)

    @property
    def reflections(self) -> list[Reflection]:
        """The judgements, one a pass."""
        return self._values().get("reflections", [])

    @property
    def decisions(self) -> list[Decision]:
        """What was answered at review points."""
        return self._store.decisions(self.run_id)

    @property
    def merged(self) -> dict[str, Any]:
        """The evidence as the answer sees it; empty before the merge."""
        return self._values().get("merged", {})

    @property
    def evidence(self) -> list[RetrievalResult]:
        """The evidence, best first: what was merged, or all that was found so far."""
        return self.merged["retrieval_results"] if self.merged else self._work.found_so_far(self.run_id)

    @property
    def pieces(self) -> list[Piece]:
        """Everything that was found, and what became of it: cited, in the prompt, or dropped, and why."""
        from workbench.records.counted import pieces

        found, merged = self._work.found_by_step(self.run_id), cast(Any, self.merged) or None
        return pieces(found, self.evidence, merged, self.citations, self._row["options"].get("without"))

    @property
    def answer(self) -> str:
        """The answer, with its ``[n]``; empty before there is one."""
        return self._values().get("answer", "")

    @property
    def citations(self) -> list[Citation]:
        """The evidence behind each ``[n]``."""
        return self._values().get("citations", [])

    @property
    def statistics(self) -> dict[str, Any]:
        """Counts and times of the retrieval (contracts, 7)."""
        return self.merged.get("statistics", {})

    @property
    def stop_reason(self) -> str | None:
        """Why retrieval ended."""
        return self._values().get("stop_reason")

    @property
    def log(self) -> list[dict[str, Any]]:
        """One entry a node that ran: ``node, node_type, duration_ms, timestamp, input, output, sub_steps``.

        ``events.nested`` puts them in levels: the subgraph, its nodes, their steps, what each tool did.
        """
        events = self._store.events(self.run_id)
        return [event["execution_log"] for event in events if "execution_log" in event]

    @property
    def debug_events(self) -> list[dict[str, Any]]:
        """What is for no chat client (contracts 8): where it was routed, each step, what was merged, the log."""
        from workbench.graphs.merge import merged_events

        found: list[dict[str, Any]] = []
        for kept in self._store.events(self.run_id):
            found += kept.get("debug", [])
            if kept.get("execution_log", {}).get("node") == "merger" and self.merged:
                found += merged_events(cast(Any, self.merged), self._values().get("runs", []))
            found.append({name: value for name, value in kept.items() if name != "debug"})
        return found

    def events(self) -> Iterator[dict[str, Any]]:
        """The events of contracts 8 as they come, until the run pauses or ends."""
        stream: queue.Queue[dict[str, Any] | None] = queue.Queue()
        with self._work.listening(self.run_id, stream.put):
            while (event := stream.get()) is not None:
                yield event

    def draft(self, name: str) -> str:
        """What a person has typed or chosen for this run and not sent, by name; empty when nothing."""
        return self._store.draft(self.run_id, name)

    def line(self) -> dict[str, str]:
        """What a list says of it: ``run_id``, ``status``, ``message``, and ``query`` as its end kept it.

        No checkpoint is opened, so that a list is quick, and shown beside one that is damaged.
        """
        read = (self._row["result"] or {}).get("query", self.message)
        return {"run_id": self.run_id, "status": self.status, "message": self.message, "query": read}

    def keep_draft(self, name: str, text: str) -> None:
        """Keep what a person has typed or chosen and not sent; it is there again after a restart."""
        self._store.save_draft(self.run_id, name, text)

    def to_dict(self) -> dict[str, Any]:
        """The whole run as one JSON document (``run.schema.json``)."""
        from workbench.records.document import RunLike, run_document

        still = Run(self._work, self.run_id)  # one look at the checkpoint, not one for every attribute
        still._held = self._values()
        return dict(run_document(cast(RunLike, still)))  # a Protocol's attributes can be set, a run's cannot

    def to_frame(self) -> pandas.DataFrame:
        """One row an attempt, in the order in which they ended."""
        import pandas

        rows = [
            {
                **{
                    key: r[key] for key in ("step_id", "attempt", "iteration", "tool", "status", "duration_ms", "error")
                },
                **{key: r["output_summary"][key] for key in ("evidence_count", "context_length", "top_score")},
            }
            for r in self.records
        ]
        return pandas.DataFrame(rows)

    # what people do with it

    def wait(self, timeout: float | None = None) -> Run:
        """Wait until it pauses or ends, at most ``timeout`` seconds.

        Raises:
            TimeoutError: it still runs.
        """
        self._work.wait(self.run_id, timeout)
        return self

    # the four answers

    @property
    def agent_inbox(self) -> dict[str, Any] | None:
        """What the run asks, in the shape of LangChain's Agent Inbox; None when it asks nothing.

        ``answer_review`` takes the responses of such an inbox as they are.
        """
        from workbench.graphs.agent_inbox import interrupt_of

        asked = self.review
        return interrupt_of(asked) if asked else None

    def approve(self, note: str = "") -> Run:
        """Go on as proposed."""
        return self.answer_review(answer("approve", note=note))

    def edit(self, edits: dict[str, Any] | None = None, *, note: str = "", **fields: Any) -> Run:
        """Go on with changes: ``plan=``, ``query=``, ``thresholds=`` at the points plan and step; ``next_steps=``,
        ``activate=``, ``rewrite_query=``, ``should_continue=``, ``thresholds=`` at reflect.

        Raises:
            InvalidAnswer: names the field and what is allowed; the run waits as before.
        """
        asked = self.review
        changes = {**(edits or {}), **fields}
        return self.answer_review(
            answer("edit", point=asked["point"] if asked else "", edits=_plain(changes), note=note)
        )

    def reject(self, note: str = "") -> Run:
        """Stop here, and answer from what was found."""
        return self.answer_review(answer("reject", note=note))

    def respond(self, message: str, note: str = "") -> Run:
        """Say it in words: the text joins the query, and what is missing is planned."""
        return self.answer_review(answer("respond", message=message, note=note))

    def answer_review(self, given: dict[str, Any] | list[Any], *, wait: bool = True) -> Run:
        """Give an answer, in the middleware's shape or an Agent Inbox's, and wait for the next pause or the end.

        Without ``wait`` it returns at once: follow ``events``, then ``wait`` says how it went.

        Raises:
            NotPaused: nothing waits for an answer.
            InvalidAnswer: the answer does not fit; the run waits as before.
        """
        self._work.answer(self.run_id, given)
        return self.wait() if wait else self

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
        return self

    async def aapprove(self, note: str = "") -> Run:
        """``approve`` for a loop that must not block."""
        return await self.aanswer_review(answer("approve", note=note))

    async def aedit(self, edits: dict[str, Any] | None = None, *, note: str = "", **fields: Any) -> Run:
        """``edit`` for a loop that must not block."""
        asked = self.review
        changes = _plain({**(edits or {}), **fields})
        return await self.aanswer_review(
            answer("edit", point=asked["point"] if asked else "", edits=changes, note=note)
        )

    async def areject(self, note: str = "") -> Run:
        """``reject`` for a loop that must not block."""
        return await self.aanswer_review(answer("reject", note=note))

    async def arespond(self, message: str, note: str = "") -> Run:
        """``respond`` for a loop that must not block."""
        return await self.aanswer_review(answer("respond", message=message, note=note))

    async def aanswer_review(self, given: dict[str, Any] | list[Any]) -> Run:
        """``answer_review`` for a loop that must not block."""
        self._work.answer(self.run_id, given)
        return await self.await_end()

    async def aresume(self) -> Run:
        """``resume`` for a loop that must not block."""
        self._work.resume(self.run_id)
        return await self.await_end()

    async def acancel(self) -> Run:
        """``cancel`` for a loop that must not block."""
        import asyncio

        return await asyncio.to_thread(self.cancel)

    # the tape, and what is made of it

    def tape(self) -> list[Effect]:
        """Everything that the run asked of the world, and what came of it."""
        from workbench.records.tape import read

        return read(self._store, self.run_id)

    @property
    def origin(self) -> str | None:
        """The run from which this one was made; None for a run of its own."""
        options = self._row["options"]
        if "graft" in options:
            return options["graft"]["base"]
        return options["tape"]["sources"][0] if options.get("tape") else None

    @property
    def divergence(self) -> Divergence | None:
        """Where a replay did not fit its tape, if that is why it failed."""
        from workbench.errors import Divergence

        found = [effect for effect in self.tape() if effect.kind == "divergence"]
        return Divergence(**found[-1].value) if found else None

    @property
    def saved(self) -> Cost:
        """What the tape of another run spared this one: calls of tools, their seconds, and tokens."""
        from workbench.runs.fork import saved

        return saved(self.tape())

    def forecast(self, plan: Plan, activated: Iterable[str] = ()) -> Forecast:
        """What that plan will take: the steps that run, and their seconds (P50, P90).

        A run that has not ended goes on with it; one that has is forked with it.

        Args:
            plan: the plan.
            activated: ids of conditional steps that will be woken, beside those that were.
        """
        from workbench.errors import UnknownKnowledge
        from workbench.records.tape import read
        from workbench.runs.fork import forecast

        sources = (self._row["options"].get("tape") or {}).get("sources", [])
        known = [*self.tape(), *(effect for run_id in sources for effect in read(self._store, run_id))]
        versions, records, kb = dict[str, str](), self.records, self.kb_prefix
        for name in {kb, *(str(s.tool_input["kb_prefix"]) for s in plan.steps if s.tool_input.get("kb_prefix"))}:
            with suppress(UnknownKnowledge):  # then what the tape says of it holds
                versions[name] = self.workspace.knowledge.get(name).fingerprint()
        now: dict[str, Any] = {"versions": versions, "activated": [*self._values().get("activated", []), *activated]}
        now["ended"] = records if self.status in ("running", "paused", "interrupted") else ()
        return forecast(plan, known, records, self._store.tool_seconds(), kb, **now)

    def fork(self, **edits: Any) -> Run:
        """A new run from START with something edited; the tape of this one answers all that the edit does not touch.

        Takes ``plan``, ``decision`` (with ``at``, a review point or the id of a checkpoint), ``query``, ``settings``,
        ``review``; what to do with recorded decisions whose proposal has changed (``mismatch``: ``ask``, ``stop``,
        ``rules``), and who answers after the last one (``rest``: ``ask`` or ``rules``). ``at`` alone decides again what
        was decided before it, and asks a person there. See ``fork.forked``.

        Raises:
            RunError: there is no such review point, or this run leaves nothing behind.
            PlanError: the plan is not valid.
        """
        return self.start_fork(**edits).wait()

    def start_fork(self, **edits: Any) -> Run:
        """``fork`` that returns at once."""
        if edits.get("without"):
            from workbench.runs.fork import left_out

            known = {"steps": [step.step_id for step in self.plan.steps] if self.plan else []}
            known["evidence"] = [piece["result_id"] for piece in self.evidence]
            other = {"plan", "query"} & set(edits)  # then it finds what this run knows nothing of
            edits["without"] = left_out(edits["without"], **({} if other else known))
        return Run(self._work, self._work.fork(self.run_id, edits))

    def tree(self) -> Tree:
        """The tree of forks in which this run stands: from which it was made, and what was made of it."""
        from workbench.runs.lineage import tree

        return tree(self._store.lineage(), self._work.status, self.run_id, self.workspace)

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint, inside the retrieval graph too, oldest first: what ran, what comes next, what changed.

        Raises:
            RunError: `gc` has let them go.
        """
        from workbench.runs.past import Past, checkpoints

        return Past(checkpoints(self.run_id, self.status == "done", self._past), self)

    def checkpoint(self, checkpoint_id: str) -> Checkpoint:
        """The checkpoint of that id; its ``values`` are the whole state.

        Raises:
            RunError: there is none, or `gc` has let it go.
        """
        from workbench.runs.past import checkpoint

        return checkpoint(self.run_id, self.status == "done", self._past, checkpoint_id)

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

    def leave_one_out(self) -> LeaveOneOut:
        """Which step paid for which sentence: the answer without each step, and without each piece that it cites.

        No tool is called; a chat model is asked again, since its evidence is another. The runs it takes are let go.

        Raises:
            RunError: the run is not done, or cannot be made again as it was.
        """
        return self.workspace.leave_one_out(self)

    def provenance(self) -> list[dict[str, Any]]:
        """Where each piece of evidence came from: a row a piece and step that found it.

        ``n`` and ``result_id`` of the piece, its ``title`` and ``score``; ``step_id`` and ``tool``; ``from_run`` and
        ``from_step``, the branch from which a graft took the step; ``made_in``, the run that made the call.
        """
        return self.workspace.provenance(self)

    # its pictures: plotly figures; the ``to_frame()`` of each is the table behind it

    def dag(self) -> Picture:
        """The plan: steps, dependencies, status, critical path, and what later versions added or changed.

        Raises:
            RunError: there is no plan.
        """
        from workbench.views.figures import dag

        versions = self.plans
        if not versions:
            raise RunError(f"Run {self.run_id} has no plan to draw: it is {self.status}, and made none.")
        return dag(versions[-1], self.records, title=self.query, versions=versions, running=self._steps_at_work())

    def timeline(self) -> Picture:
        """What ran when: graph, steps, and what happened inside the tools; waiting and what is recorded are marked."""
        from workbench.views.figures import timeline

        return timeline(self.log, self.records, self.decisions, language=labels_for(self.message).language)

    def graph(self) -> Picture:
        """The conversation graph with the graphs inside it unfolded: where the run is, where it was, how often."""
        from workbench.views.figures import graph
        from workbench.views.walked import walked

        found = walked(_drawable(), self.log, self.status, self._standing_at())
        return graph(found, self.query, labels_for(self.message).language)

    def findings(self, by: By = "step") -> Picture:
        """Everything that was found, by its score: cited, in the prompt, or dropped and why.

        Args:
            by: a lane for each ``step``, or for each ``document``.
        """
        from workbench.views.figures import findings

        cut = sum(record["output_summary"].get("cut", 0) for record in self.records)
        return findings(self.pieces, self.query, by, cut, labels_for(self.message).language)

    def knowledge(self, path: tuple[str, str] | None = None, expand: Iterable[str] = ()) -> Picture:
        """The knowledge graph around the answer: what it names and cites, and what relates to that.

        Args:
            path: two entities, by name or alias in any language: a shortest way between them is shown too.
            expand: further entities whose neighbours are shown.

        Raises:
            KnowledgeError: there is no such entity, or no way; the knowledge base is not here.
            RunError: no knowledge base was asked.
        """
        from workbench.views.figures import knowledge

        return knowledge(self.around(path, expand), self.query, labels_for(self.message).language)

    def around(self, path: tuple[str, str] | None = None, expand: Iterable[str] = ()) -> Around:
        """The data of ``knowledge``.

        Raises:
            KnowledgeError: there is no such entity, or no way; the knowledge base is not here.
            RunError: no knowledge base was asked.
        """
        from workbench.views.around import around, seeds_of, way, with_outside

        base, outside = self._base(), self.merged.get("enrichment")
        documents = [str(one["source"].get("doc_id", "")) for one in self.citations]
        documents = documents or [str(one["metadata"].get("doc_id", "")) for one in self.evidence[:8]]
        seeds = seeds_of(base, documents, f"{self.query}\n{self.answer}")
        opened = [*seeds, *(_entity(base, name) for name in expand)]
        if path is None:
            return with_outside(around(base, seeds, opened), outside)
        found = way(base, *(_entity(base, name) for name in path))
        if not found:
            raise KnowledgeError(f"No relations of {base.name!r} lead from {shown(path[0])} to {shown(path[1])}.")
        return with_outside(around(base, seeds, opened, found), outside)

    def _base(self) -> Any:
        """The knowledge base that was asked."""
        name = self.kb_prefix
        if not name:
            raise RunError(f"Run {self.run_id} asked no knowledge base: there is no graph around its answer.")
        if name not in self.workspace.knowledge.names():
            raise KnowledgeError(
                f"Run {self.run_id} asked {name!r}, which this workspace does not have (a run that was imported comes "
                f"without its corpus). Add it with `workbench kb add {name} PATH...`."
            )
        return self.workspace.knowledge.get(name)

    def _standing_at(self) -> list[str]:
        """Where the run stands, as LangGraph says: the next nodes of the innermost graph that has some."""
        if self.status == "done":
            return []
        last: dict[str, Any] = {one.graph: one for one in self.checkpoints()}
        newest = sorted((one for one in last.values() if one.next), key=lambda one: one.at)
        outer = "" if not newest or newest[-1].graph == "conversation" else f"{newest[-1].graph}:"
        return [f"{outer}{node}" for node in newest[-1].next] if newest else []

    def _steps_at_work(self) -> list[str]:
        """The steps of the wave that runs now and have not ended."""
        if self.status != "running":
            return []
        ended = {(record["step_id"], record["iteration"]) for record in self.records}
        values = self._values()
        wave = [step["step_id"] for step in values.get("wave", [])]
        return [step_id for step_id in wave if (step_id, values.get("iteration")) not in ended]

    # how it shows itself

    def __repr__(self) -> str:
        why = f": {self.error}" if self.error else ""
        line = self.line()
        read = f", read as {line['query']!r}" if line["query"] != self.message else ""
        return f"<Run {self.run_id}: {self.status}{why}, {self.message!r}{read}>"

    def __str__(self) -> str:
        from workbench.views.static import run_text

        return run_text(self.to_dict())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.views.static import run_html, run_text

        document = self.to_dict()
        return {"text/plain": run_text(document), "text/html": run_html(document)}

    @property
    def _store(self) -> Any:
        return self._work.driver(self.run_id).runs

    @property
    def _row(self) -> Any:
        return self._store.get(self.run_id)

    def _past(self, checkpoint_id: str | None) -> list[Any]:
        return self._work.past(self.run_id, checkpoint_id)

    def _values(self) -> dict[str, Any]:
        if self._held is not None:
            return self._held
        return self._row["result"] or self._work.values(self.run_id)


def _plain(value: Any) -> Any:
    """Plans and steps inside edits as JSON."""
    if isinstance(value, Plan):
        return value.dump()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _entity(base: Any, name: str) -> str:
    """The id of the entity of that name, alias or id."""
    found = base.find_entity(name) or base.entity(name)
    if found is None:
        raise KnowledgeError(
            f"{base.name!r} has no entity {shown(name)}. Give one as the documents write it, in any language."
        )
    return str(found["entity_id"])


@cache
def _drawable() -> Any:
    """LangGraph's own drawing of the conversation graph, the graphs inside it unfolded."""
    from workbench.graphs.conversation import build_conversation

    return build_conversation().get_graph(xray=True)
