"""A run as people hold it: what it asks, the four answers, and what is made of it.

Its pictures have a ``to_frame()`` each, the table behind it.
"""

from __future__ import annotations

import asyncio
import queue
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator
from functools import cache
from typing import Any

from pydantic_core import to_jsonable_python

from workbench.errors import KnowledgeError, RunError
from workbench.graphs.reviewers import answer
from workbench.knowledge.vocabulary import GROUPING
from workbench.language.words import fields_by_name, in_words, shown
from workbench.plans import format_condition
from workbench.ports import Entity, KnowledgeBase
from workbench.records.timeline import unasked
from workbench.runs import feedback as thought
from workbench.runs.fork import Edits
from workbench.runs.stored import Recording
from workbench.state import Json
from workbench.text import CJK, fold, mentions
from workbench.views import plan_graph
from workbench.views.drawing import Drawing
from workbench.views.graph import graph as draw_graph
from workbench.views.graph import walked
from workbench.views.knowledge import MENTION, Around, display_name, ends
from workbench.views.knowledge import knowledge as draw_knowledge
from workbench.views.labels import labels_for
from workbench.views.plan import words_asked
from workbench.views.timeline import when


class Run(Recording):
    """One question carried through the conversation graph.

    Parts add attributes: ``report``, ``prompt_parts``, ``fusion`` and ``what_if``.
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
        """Answer now, from what was found; at ``step`` skip all steps that have not started, and go on to reflect."""
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
        ``rules``). ``at`` alone decides again what was decided before it, and asks a person there. See ``fork.Edits``.

        Raises:
            RunError: there is no such review point, or this run leaves nothing behind.
            PlanError: the plan is not valid.
        """
        fork = Run(self._work, self._work.fork(self.run_id, Edits.read(self, edits)))
        return fork.wait() if wait else fork

    # its pictures; the ``to_frame()`` of each is the table behind it

    def dag(self) -> Drawing:
        """Return the plan: steps, dependencies, status, and critical path.

        Raises:
            RunError: there is no plan.
        """
        if self.plan is None:
            raise RunError(
                f"Run {self.run_id} has no plan to draw: it is {self.status}, and made none."
            )
        return plan_graph.dag(self.plan, self.records, asked_words(self))

    def timeline(self) -> Drawing:
        """Show what ran when: graph, steps, and the inside of the tools; waiting and replayed parts are marked."""
        return when(self.log, self.records, self.decisions, self._language, asked_words(self))

    def graph(self) -> Drawing:
        """Draw the conversation graph with the graphs inside it unfolded: where the run is, where it was, how often."""
        next_nodes = [] if self.status == "done" else self._work.next_nodes(self.run_id)
        passed = unasked(self.log, self.decisions)
        walk = walked(_drawable(), self.log, self.status, next_nodes, passed)
        return draw_graph(walk, self.query, self._language)

    def knowledge(self, nearby: bool | Collection[str] = False) -> Drawing:
        """Draw what the answer names and cites in the knowledge base; with ``nearby`` what relates to that too.

        ``nearby`` may also be ids of entities: only their neighbours are shown. Without an answer it is around what was
        found.
        """
        chosen = () if isinstance(nearby, bool) else nearby
        graph = self._neighbourhood(chosen)
        text = self.answer if self.citations else ""
        part = graph.core(chosen) if text and nearby is not True else graph
        return draw_knowledge(part, self._language, text)

    def _neighbourhood(self, chosen: Collection[str]) -> Around:
        """Return what the answer names and cites in the knowledge base, and what relates to that.

        Raises:
            KnowledgeError: the knowledge base is not here.
            RunError: no knowledge base was asked.
        """
        name = self.state.get("kb_prefix", "")
        bases = self._workspace.knowledge
        if not name:
            raise RunError(
                f"Run {self.run_id} asked no knowledge base: there is no graph around its answer."
            )
        if name not in bases.names():
            raise KnowledgeError(
                f"Run {self.run_id} asked {name!r}, which this workspace does not have (a run that was imported comes "
                f"without its corpus). Add it with `workbench kb add {name} PATH...`."
            )
        cited = [piece["source"] for piece in self.citations]
        sources = cited or [piece["metadata"] for piece in self.evidence[:8]]
        documents = [str(source.get("doc_id", "")) for source in sources]
        return around(bases.get(name), documents, f"{self.query}\n{self.answer}", chosen)

    @property
    def _language(self) -> Any:
        return labels_for(self.message).language

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
        loop = asyncio.get_running_loop()
        stream = asyncio.Queue[Json | None]()
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


def around(
    knowledge: KnowledgeBase, documents: Iterable[str], text: str, chosen: Collection[str] = ()
) -> Around:
    """Return the entities that a text names, those of its documents, their neighbours, and the relations between them.

    A value of a document's field, such as its year, belongs to the answer when the text says it.

    Args:
        knowledge: the knowledge base.
        documents: ids of documents.
        text: the question and its answer.
        chosen: ids of entities whose neighbours are looked at besides.
    """
    # names of the answer, those whose neighbours are looked at, and neighbours that are shown
    most_seeds = 40
    most_expanded = 8
    most_neighbours = 500 if chosen else 60
    mentioned = [mention["entity_id"] for mention in knowledge.link(text)]
    entity_ids = dict.fromkeys([*mentioned, *(f"doc:{doc_id}" for doc_id in documents)])
    linked = _entities(knowledge, entity_ids)
    seeds = [*linked][:most_seeds]
    # a genre has a thousand
    expanded = [seed for seed in seeds if linked[seed]["type"] not in GROUPING][:most_expanded]
    touching = Counter(
        end
        for relation in knowledge.around("relations", [*expanded, *chosen])
        for end in ends(relation) - {*seeds}
    )
    neighbours = _entities(knowledge, sorted(touching))
    seeds += [i for i, entity in neighbours.items() if _names_value(entity, fold(text))]
    shown_next = [i for i, entity in neighbours.items() if entity["type"] != MENTION]
    # neighbours of several come first, groups last
    shown_next.sort(key=lambda i: (-touching[i], neighbours[i]["type"] in GROUPING))
    ids = [*seeds, *shown_next[:most_neighbours]]
    entities = {i: linked.get(i) or neighbours[i] for i in ids}
    relations = [
        relation
        for relation in knowledge.around("relations", ids)
        if ends(relation) <= entities.keys()
    ]
    about = knowledge.about()
    words = {f["relation"]: f["called"] for f in about["fields"]} | {
        kind: about["nouns"] for kind, *_ in about["types"]
    }
    return Around(entities, tuple(relations), tuple(seeds), words)


def asked_words(run: Run) -> dict[str, str]:
    """Return the question's own words for what is searched (``words_asked``), and for its conditions."""
    return words_asked({**run.state, **corpus_words(run, run._language)})


def corpus_words(
    run: Run, language: str, titles: Iterable[str] = ()
) -> dict[str, dict[str, str]]:
    """Return what fields, and in Chinese documents, are ``called``, by name; and the words for ``conditions``.

    Args:
        run: the run, whose conditions these are.
        language: of the words.
        titles: of documents.
    """
    knowledge = run._workspace.knowledge
    bases = [*map(knowledge.get, {run.state.get("kb_prefix")} & {*knowledge.names()})]
    fields = fields_by_name(bases)
    called = {name: shown(fields[name], language) for name in fields}
    conditions = (run.state.get("route_decision") or {}).get("filters") or []
    names = {*titles, *(str(c["value"]) for c in conditions)}
    entities = (base.entity(name) for base in bases for name in names if language == "zh")
    for entity in filter(None, entities):
        called[entity["name"]] = display_name(entity, language, run.query)
    return {
        "called": called,
        "conditions": {
            format_condition(c): in_words(
                c | {"value": called.get(str(c["value"]), c["value"])},
                fields[c["field"]],
                language,
            )
            for c in conditions
            if c["field"] in fields
        },
    }


def _entities(knowledge: KnowledgeBase, ids: Iterable[str]) -> dict[str, Entity]:
    return {i: entity for i in ids if (entity := knowledge.entity(i))}


def _names_value(entity: Entity, text: str) -> bool:
    """Return whether an entity is a value of a field that a folded text says."""
    names = entity["name"], *filter(CJK.search, entity["aliases"])
    return entity["type"] in GROUPING and any(mentions(text, fold(name)) for name in names)


@cache
def _drawable() -> Any:
    """LangGraph's own drawing of the conversation graph, the graphs inside it unfolded."""
    from workbench.graphs.conversation import build_conversation

    return build_conversation().get_graph(xray=True)
