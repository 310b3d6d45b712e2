"""One run of a recorded graph: how it stands, what it asks, and the runs that are made from it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.errors import NotPaused, RunError, shown
from workbench.parts.record import capsule, looking
from workbench.parts.record.digests import plain
from workbench.parts.record.effects import questions
from workbench.parts.record.langgraph_copy import nodes as original_nodes
from workbench.parts.record.questions import Question
from workbench.records.document import run_document
from workbench.records.store import RunRow
from workbench.records.tape import Effect
from workbench.runs.driver import Live
from workbench.runs.stored import StoredRun
from workbench.runs.work import HINTS
from workbench.state import Data, Json

if TYPE_CHECKING:
    import pandas

    from workbench.parts.record.agent import RecordedGraph


UNCHANGED: Any = object()
"""In place of a result that is not replaced; None may be one."""


class GraphRun(StoredRun):
    """A run of a recorded graph.

    Attributes:
        run_id: twelve hex digits.
        agent: the recorded graph.
    """

    log: Any = ()  # its effects say it

    def __init__(self, agent: RecordedGraph, run_id: str):
        super().__init__(agent._wb._work, run_id)
        self.agent = agent
        self._row = self._store.get(run_id)

    def __repr__(self) -> str:
        why = f": {self.error}" if self.error else ""
        return f"<GraphRun {self.run_id} of {self._row['graph']!r}: {self.status}{why}>"

    # how it stands

    @property
    def state(self) -> Json:
        """Return the state at its end, or where it stands; nothing where it has not ended and its graph is not here."""
        if result := self.row["result"]:
            return self.agent.load_text(result["state"])
        if self.agent.graph is None:
            return {}
        config = {"configurable": {"thread_id": self.run_id}}
        return self._work.loop.call(self.agent._copy.aget_state(config)).values

    @property
    def input(self) -> Any:
        """Return what the graph was asked."""
        return self.agent.load_text(self._row["options"]["input"])

    @property
    def messages(self) -> list[Any]:
        """Return the messages of the state."""
        state = self.state
        return list(state.get("messages", [])) if isinstance(state, Mapping) else []

    @property
    def reply(self) -> str:
        """Return the text of its last message, or of its answer."""
        return looking.first_text(self.state, "answer", "output")

    @property
    def effects(self) -> list[Effect]:
        """Return its effects, in order."""
        return self.agent.load_effects(self.run_id)

    @property
    def questions(self) -> list[Question]:
        """Return its questions while it is paused; empty otherwise, and at a breakpoint."""
        recorded = questions(self.effects) if self.status == "paused" else ()
        return [
            Question(name, at, pause.value, pause.response_schema)
            for at, name, pause, waits in recorded
            if waits
        ]

    # as every run is shown

    @property
    def review(self) -> Any:
        """Return its first question as the request of a review point; None while it asks nothing."""
        return next((question.request for question in self.questions), None)

    def to_dict(self) -> Json:
        """Return the whole run as one JSON document: as every run, and its graph, its effects and its state."""
        row = self.row
        own = {"graph": row["graph"], "thread": row["session_id"], "state": plain(self.state)}
        document = run_document(looking.recording(self), self._work.holder(self.run_id))
        own |= {"answer": self.reply, "on_tape": looking.on_tape(self)}
        return document | own | {"effects": self.to_frame().to_dict("records")}

    def events(self) -> Iterator[Any]:
        """Yield nothing: what it streams is ``stream()``."""
        return iter(())

    def answer_review(self, answer: Any, *, wait: bool = True) -> GraphRun:
        """Answer its first question by a decision in the shape of LangChain's middleware; at a breakpoint go on."""
        [decision] = answer["decisions"]
        args = decision.get("edited_action", {}).get("args")
        message = str(decision.get("message") or "")
        return self.answer(
            {q.id: q.answer(decision["type"], args, message) for q in self.questions[:1]},
            wait=wait,
        )

    # going on

    def begin(self) -> None:
        """Start working on it."""
        live = Live(self.run_id)
        self._work.work_on(self._work.durable, live, partial(self.agent.drive, live))

    def wait(self, timeout: float | None = None) -> GraphRun:
        """Wait until it pauses or ends.

        Raises:
            TimeoutError: it still runs.
            RunError: it failed.
        """
        self._work.wait(self.run_id, timeout)
        if error := self._work.failure(self.run_id):
            raise error
        return self

    def stream(self) -> Iterator[Any]:
        """Yield what the run streams, from its beginning, as it comes, until it pauses or ends.

        It needs a run that was started with ``stream_mode``. A replay yields what was recorded.
        """
        tape = self._row["options"]["tape"]
        run = GraphRun(self.agent, tape["sources"][0]) if tape["mode"] == "replay" else self
        position = 0
        is_last = False
        while not is_last:
            # looked at before reading, so that nothing of its end is missed
            is_last = run.status != "running"
            for row, event in self._store.events_after(run.run_id, position):
                position = row
                yield self.agent.load_text(event["streamed"])
            if not is_last:
                time.sleep(0.01)

    def answer(self, answer: Any, *, who: str = "person", wait: bool = True) -> GraphRun:
        """Answer what the run asks, and wait for the next pause or the end.

        Args:
            answer: of the one question; of several, a dict by their ids. At a breakpoint None continues.
            who: answers.
            wait: False returns at once.

        Raises:
            NotPaused: it asks nothing.
            RunError: several questions, and the answer names none of them.
        """
        if (status := self.status) != "paused":
            raise NotPaused(
                f"Run {self.run_id} is {status} and asks nothing.{HINTS.get(status, '')}"
            )
        seen = self._store.get(self.run_id)
        ids = [question.id for question in self.questions]
        if len(ids) == 1 and not (isinstance(answer, Mapping) and answer.keys() & ids):
            answer = dict.fromkeys(ids, answer)
        if ids and not (isinstance(answer, Mapping) and answer and answer.keys() <= set(ids)):
            raise RunError(
                f"The run asks {len(ids)} questions. Answer with a dict by their ids: {', '.join(ids)}."
            )
        about = {"who": who, "decided_at": datetime.now(UTC).isoformat()}
        decisions = [
            {"review_id": each, "answer": self.agent.dump_text(value, "The answer"), **about}
            for each, value in (answer.items() if ids else ())
        ]
        return self._continue(seen, decisions, wait)

    def resume(self, *, wait: bool = True) -> GraphRun:
        """Continue a run that was paused, interrupted or failed; what it has done is not done again."""
        if self.status in ("running", "done", "cancelled"):
            raise RunError(f"Run {self.run_id} is {self.status}: there is nothing to continue.")
        return self._continue(self._store.get(self.run_id), (), wait)

    def _continue(self, seen: RunRow, answers: Iterable[Json], wait: bool) -> GraphRun:
        self.agent._copy  # noqa: B018, says what is to be done where the graph is not loaded
        self._work.take(self._work.durable, seen, answers)
        self.begin()
        return self.wait() if wait else self

    # other runs made from it

    def fork(
        self,
        at: str = "",
        *,
        state: Data | None = None,
        result: Any = UNCHANGED,
        answers: Data | Sequence[Any] | Any = None,
        input: Any = None,
        wait: bool = True,
    ) -> GraphRun:
        """Run again with one thing changed; what does not depend on it comes from the tape.

        Args:
            at: where: ``"tools/2"`` is the second execution of the node ``tools``, ``"tools/2:search/1"`` a call in it.
                Without it what the code, the tools or the model have changed runs again.
            state: fields of the state that this node and what follows find instead.
            result: what the node or the call gives instead; it is not executed.
            answers: what people answer instead: by node (``{"review": False}``), for each question that it asks.
            input: of the graph, instead.
            wait: False returns at once.

        Raises:
            RunError: there is no effect at ``at``, no such field in the state, or it is not said what changes.
        """
        if (state is not None) + (result is not UNCHANGED) != bool(at):
            raise RunError(
                "Name a place with `at`, and what changes there: `state={...}` before it, or its `result`."
            )
        edit = {"result": result} if state is None else {"state": dict(state)}
        places = {effect.at: effect for effect in self.effects}
        if at and at not in places:
            listed = ", ".join(places)
            raise RunError(f"Run {self.run_id} has no effect at {at!r}. It has: {listed}.")
        if state is not None:
            self._check_fields(places[at], state)
        return self._derive("fork", {at: edit} if at else {}, answers, input, wait=wait)

    def _check_fields(self, effect: Effect, state: Data) -> None:
        """Refuse fields that the state before an effect does not have: nothing would read them."""
        if effect.kind not in ("node", "edge"):
            raise RunError(
                f"{effect.at} is a call, which has no state of its own. Replace that of {effect.at.partition(':')[0]}, "
                "or the call's `result`."
            )
        path = effect.name.partition("->")[0]
        fields = {
            name
            for node in original_nodes(self.agent._copy)
            if node.path == path
            for name in node.fields
        }
        if fields and isinstance(effect.input, Mapping):
            fields |= effect.input.keys()
        unknown = sorted(state.keys() - fields)
        if fields and unknown:
            raise RunError(
                f"The state at {effect.at} has no field {shown(unknown[0])}. It has: {', '.join(sorted(fields))}."
            )

    def graft(self, nodes: Mapping[str, GraphRun]) -> GraphRun:
        """Return a fork that takes what these nodes gave from other runs of the graph.

        Args:
            nodes: by name, or by one place (``"tools/2"``), the run from which it is taken.

        Raises:
            RunError: that run has no such node.
        """
        edits = Json()
        for name, run in nodes.items():
            ended = [
                e
                for e in run.effects
                if e.kind == "node" and e.outcome == "value" and name in (e.at, e.name)
            ]
            if not ended:
                raise RunError(f"Run {run.run_id} has no node {name!r} that ended.")
            edits |= {e.at: {"result": e.value} for e in ended}
        sources = [self.run_id, *(run.run_id for run in nodes.values())]
        return self._derive("fork", edits, sources=sources)

    def replay(self) -> GraphRun:
        """Run again from the tape alone: no node, model or tool is executed.

        Raises:
            RunError: an effect is not on the tape; it says which, and what of it differs.
        """
        if self.status != "done":
            raise RunError(
                f"Run {self.run_id} is {self.status}: only a run that is done can be replayed."
            )
        return self._derive("replay", {})

    def _derive(
        self,
        mode: str,
        edits: Mapping[str, Json],
        answers: Any = None,
        inputs: Any = None,
        sources: Sequence[str] = (),
        wait: bool = True,
    ) -> GraphRun:
        options = self._row["options"]
        if options["tape"]["mode"] == "trace":
            raise RunError(
                f"Run {self.run_id} is a trace of another tool: its effects are not complete, so that nothing of it "
                "can be run again. Ask its question of a graph of yours: agent.ask(run.input)."
            )
        self.agent._copy  # noqa: B018, says what is to be done where the graph is not loaded
        answered = [
            (at.rpartition("/")[0], decision) for at, _, decision in looking.answered(self)
        ]
        nodes = dict.fromkeys(node for node, _ in answered)
        if answers is not None and not isinstance(answers, Mapping):
            answers = dict.fromkeys(nodes, answers)
        texts = {
            node: {"answer": self.agent.dump_text(answer, "The answer")}
            for node, answer in (answers or {}).items()
        }
        if unknown := texts.keys() - nodes.keys():
            listed = ", ".join(nodes) or "none"
            raise RunError(
                f"{', '.join(unknown)} asked nothing in run {self.run_id}. Nodes that did: {listed}."
            )
        results = {
            at: self.agent.dump_text(edit, f"The edit of {at}") for at, edit in edits.items()
        }
        options = {
            **options,
            "tape": {"mode": mode, "sources": list(sources) or [self.run_id]},
            "results": options["results"] | results,
            "edited": [*edits, *texts, *(["input"] if inputs is not None else [])],
        }
        inputs = self.input if inputs is None else self.agent._with_ids(inputs)
        run = self.agent.new_run(options, inputs, begin=self.agent.load_beginning(self.run_id))
        for node, decision in answered:
            self._store.save_decision(run.run_id, decision | texts.get(node, {}))
        run.begin()
        return run.wait() if wait else run

    # looking

    def results_by_place(self) -> Json:
        """Return what can be put in place by hand, by its place."""
        return {effect.at: looking.shown_value(effect) for effect in self.effects}

    def to_frame(self) -> pandas.DataFrame:
        """Return a row for each effect: where, what, from where it came, how long it took, and its tokens."""
        import pandas

        names = [
            "at",
            "kind",
            "name",
            "outcome",
            "source",
            "started_at",
            "seconds",
            "tokens",
            "input",
        ]
        rows = [
            [*(getattr(effect, name) for name in names), looking.shown_value(effect)]
            for effect in self.effects
        ]
        return pandas.DataFrame(rows, columns=[*names, "value"])

    @property
    def executed(self) -> list[str]:
        """List the places where it executed something, rather than taking it from a tape."""
        return [effect.at for effect in self.effects if effect.source == "executed"]

    export = capsule.write_capsule
    dag = property(looking.dag)
    timeline = property(looking.timeline)
    calls = looking.calls
    evidence = property(looking.evidence)
    unrecorded = property(looking.unrecorded)
    _read_once = looking.recording

    def what_if(self, node: str, answers: Sequence[Any]) -> list[GraphRun]:
        """Return a fork for each answer that a node could have been given, in their order."""
        return [self.fork(answers={node: answer}) for answer in answers]
