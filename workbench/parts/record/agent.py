"""A recorded graph, asked like the original, with every effect on a tape; and its runs: answered, replayed, forked.

A run in a zip file is looked at, replayed and forked in another workspace. Nothing of it is executed when it is read:
values are decoded by the classes of the graph that reads it, and no others.
"""

from __future__ import annotations

import base64
import copy
import dataclasses
import importlib
import importlib.util
import inspect
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import CapsuleError, NotPaused, RunError, shown
from workbench.futures import capsule
from workbench.models.wire import secrets
from workbench.parts.record import effects, langgraph_copy, looking
from workbench.parts.record.digests import digest, plain
from workbench.parts.record.effects import Recorder, questions
from workbench.parts.record.questions import Question
from workbench.parts.record.store import GraphRuns, RecordedStore
from workbench.records.checkpoints import serializer
from workbench.records.document import run_document
from workbench.records.store import RunRow, new_run_id
from workbench.records.tape import Effect, Tape, begun, masked, read
from workbench.runs.driver import Live, releasing
from workbench.runs.stored import StoredRun
from workbench.runs.work import HINTS
from workbench.state import Data, Json

if TYPE_CHECKING:
    import pandas


def write_capsule(run: GraphRun, path: str | Path) -> Path:
    """Write a run that is done into a zip file; the same run gives the same bytes.

    Raises:
        CapsuleError: it is not done, or holds a secret of the settings.
    """
    if run.status != "done":
        raise CapsuleError(
            f"Run {run.run_id} is {run.status}: only a run that is done can be sealed."
        )
    settings = run.agent._wb.settings
    values = b"".join(map(base64.b64decode, _values(run._store.contents(run.run_id))))
    if any(secret.encode() in values for secret in secrets(settings)):
        raise CapsuleError(f"Run {run.run_id} holds a secret of the settings, and is not sealed.")
    return capsule.exported(run, Path(path), settings)


def read_capsule(agent: RecordedGraph, path: str | Path) -> GraphRun:
    """Keep the run of a capsule under a new id, and return it.

    Raises:
        CapsuleError: the file is not a capsule of this graph, or is damaged; nothing was kept.
    """
    run_id = new_run_id()
    contents = capsule.read(
        Path(path).expanduser(),
        capsule.Contents,
        lambda contents: [agent.load_text(text) for text in _values(contents)],
    )
    row = contents["run"]
    options = row["options"] | {"tape": {"mode": "fork", "sources": []}}
    contents["run"] = {**row, "options": options, "session_id": "", "graph": agent.name}
    agent.store.bring(run_id, contents)
    return agent.run(run_id)


def _values(contents: Json) -> Iterator[str]:
    """Yield everything in a capsule that a graph's own classes decode."""
    yield contents["run"]["options"]["input"]
    yield contents["run"]["result"]["state"]
    yield from (effect["value"] for page in contents["tapes"] for effect in page["effects"])
    yield from (line["decision"]["answer"] for line in contents["decisions"])
    yield from (line["event"]["streamed"] for line in contents["events"])


_CONFIG = ("configurable", "recursion_limit", "max_concurrency", "tags", "metadata", "run_name")
CHECKPOINTS = "checkpoints"
"""The effect with which a run begins that continues a conversation."""


def record(
    wb: Any, graph: Any, name: str = "", *, wrap: Iterable[Any] = (), why: str = ""
) -> RecordedGraph:
    """Return a recorded copy of a LangGraph graph; the original stays unchanged.

    Args:
        graph: a compiled graph, an ``@entrypoint``, or a function that makes one, of nothing or of a config, as
            LangGraph's server calls it; or the name of one: ``"module:attribute"``, ``"file.py:attribute"``, or as
            ``langgraph.json`` has it. None for one that is not here, whose runs can be looked at.
        name: under which its runs are kept; by default the graph's own.
        wrap: functions and clients among the globals of its nodes whose calls go on the tape.
        why: of a graph that is not here, what is to be done.

    Raises:
        RunError: not such a graph.
    """
    source = graph if isinstance(graph, str) else ""
    if source:
        name = name or source
        graph = load_graph(source)
    if not hasattr(graph, "get_subgraphs") and callable(graph):
        parameters = inspect.signature(graph).parameters.values()
        needed = sum(
            p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD for p in parameters
        )
        graph = graph(*needed * [{"configurable": {}}])  # as LangGraph's server calls it
        if inspect.isawaitable(graph):
            graph = wb._work.loop.call(graph)
    agent = RecordedGraph(
        wb, graph, name or str(getattr(graph, "name", "") or "graph"), list(wrap), why
    )
    agent.source = source
    return agent


def load_graph(name: str) -> Any:
    """Return the graph that ``module:attribute``, ``file.py:attribute`` or a name in ``langgraph.json`` names.

    Raises:
        RunError: there is none.
    """
    if ":" not in name:
        graphs = (
            json.loads(Path("langgraph.json").read_text("utf-8"))["graphs"]
            if Path("langgraph.json").exists()
            else {}
        )
        if name not in graphs:
            raise RunError(
                f"{name!r} is not in langgraph.json. Known: {', '.join(graphs) or 'none'}; or MODULE:GRAPH."
            )
        name = graphs[name] if isinstance(graphs[name], str) else graphs[name]["path"]
    module, _, attribute = name.rpartition(":")
    folder = str(Path(module).resolve().parent) if module.endswith(".py") else ""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return getattr(
            _load_file(Path(module)) if folder else importlib.import_module(module), attribute
        )
    except (ImportError, AttributeError, OSError) as error:
        raise RunError(f"{name!r} cannot be loaded: {error}.") from None


def _load_file(path: Path) -> Any:
    """Execute a file as a module of its own name: two files may be called alike, and one may have changed."""
    name = f"{path.stem}_{digest(str(path.resolve()))}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class RecordedGraph:
    """A graph whose runs are recorded, as ``wb.record`` returns it.

    Attributes:
        name: of its runs.
        graph: the original.
        source: ``"module:attribute"`` where it was named so: another process can load it.
    """

    source = ""

    def __init__(self, wb: Any, graph: Any, name: str, wrap: Sequence[Any], why: str):
        self.name = name
        self.graph = graph
        self._wb = wb
        self._why = why
        self._runs: GraphRuns = wb._services["record"]
        self.store = wb._work.durable.runs
        if graph is None and why:
            self._serde = serializer()
            return
        replacements = {id(target): effects.wrapped(target) for target in wrap}
        # one connection; what may be read back differs by graph
        self._saver = copy.copy(wb._work.durable.saver)

        copier = langgraph_copy.Copier(
            effects.current,
            lambda store: RecordedStore(
                self._runs.store if store is None else store, effects.place_in_node
            ),
            replacements,
        )
        self._recorded = copier.copy(graph, saver=self._saver)
        self._serde = self._saver.serde = langgraph_copy.serializer(graph, self._recorded)
        effects.install()
        self._runs.agents[name] = self

    def __repr__(self) -> str:
        return f"<RecordedGraph {self.name!r}>"

    @property
    def version(self) -> str:
        """Return a digest of the code of all nodes: an experiment's answers stand as long as it does."""
        return digest({node.path: node.version for node in langgraph_copy.nodes(self._copy)})

    @property
    def _copy(self) -> Any:
        if self.graph is None:
            raise RunError(self._why)
        return self._recorded

    # asking

    def ask(self, inputs: Any, **options: Any) -> GraphRun:
        """Run the graph on an input until it pauses or ends.

        Args:
            inputs: as the original takes it.
            **options: those of ``start``.

        Raises:
            RunError: the run failed; ``wb.run(id)`` has what it did, and ``resume`` continues it.
        """
        return self.start(inputs, **options).wait()

    def start(
        self,
        inputs: Any,
        *,
        thread: str = "",
        context: Any = None,
        config: Data | None = None,
        stream_mode: str | Sequence[str] = (),
    ) -> GraphRun:
        """Begin a run, and return it at once.

        Args:
            inputs: as the original takes it; a text is what the user says in a graph of messages, else the field
                ``question`` or ``query`` of the state.
            thread: a conversation: the run continues from the state of the thread's last run.
            context: for the graph's ``context_schema``.
            config: as the original takes it, as ``{"configurable": {...}, "recursion_limit": 50}``; its ``thread_id``
                is the ``thread``.
            stream_mode: what ``run.stream()`` yields; kept with the run.

        Raises:
            RunError: the thread's last run has not ended, or the config has a field that is none of LangGraph's.
        """
        config = dict(config or {})
        if unknown := config.keys() - _CONFIG:
            raise RunError(
                f"config has {', '.join(unknown)}. Known: {', '.join(_CONFIG)}; what nodes read is configurable."
            )
        thread = thread or config.get("configurable", {}).get("thread_id", "")
        options: Json = {
            "tape": {"mode": "live", "sources": []},
            "config": config,
            "results": {},
            "source": self.source,
            "stream_mode": stream_mode,
            "thread": thread,
        }
        begin = []
        if thread and (ids := self.store.ids(1, graph=self.name, session_id=thread)):
            [last] = ids
            if (status := self._wb._work.status(last)) != "done":
                raise RunError(
                    f"Thread {thread!r} waits for run {last}, which is {status}. Answer it first."
                )
            begin = self._checkpoints(last)
        inputs = self._with_ids(inputs)
        if context is not None:
            options["context"] = self.dump_text(context, "The context")
        run = self.new_run(options, inputs, thread, begin)
        run.begin()
        return run

    def new_run(
        self, options: Json, inputs: Any, thread: str = "", begin: Sequence[Any] = ()
    ) -> GraphRun:
        """Note a run that begins now, with the checkpoints ``begin`` of a conversation."""
        run_id = new_run_id()
        if begin:  # before the row, with which the run can be resumed
            self.save(run_id, [Effect("begin", CHECKPOINTS, {}, begin, at="begin")])
        self.store.create(
            run_id,
            looking.first_text(inputs, "question", "query"),
            {**options, "input": self.dump_text(inputs, "input")},
            owner=self._wb._work.lease.owner,
            session_id=thread,
            graph=self.name,
        )
        return GraphRun(self, run_id)

    def _with_ids(self, inputs: Any) -> Any:
        """Return the input with messages instead of their short forms, each with an id."""
        if isinstance(inputs, str):
            fields = getattr(self.graph, "channels", {})
            field = next(
                (name for name in ("messages", "question", "query") if name in fields), ""
            )
            if field:
                inputs = {field: [("user", inputs)] if field == "messages" else inputs}
        inputs = effects.with_messages(inputs, langgraph_copy.reducers(self.graph))
        effects.name_messages(inputs, f"input {digest(inputs)}")
        return inputs

    def run(self, run_id: str) -> GraphRun:
        """Return a run of this graph."""
        return GraphRun(self, run_id)

    def runs(self) -> list[GraphRun]:
        """Return the runs of this graph, newest first."""
        return [GraphRun(self, run_id) for run_id in self.store.ids(-1, graph=self.name)]

    read_capsule = read_capsule

    # what a run needs

    def dump_text(self, value: Any, what: str) -> str:
        """Return a value as text, for a row of JSON.

        Raises:
            RunError: it cannot be kept; it says which field of ``what``.
        """
        try:
            kind, content = self._serde.dumps_typed(value)
        except TypeError as error:
            field = self._unfit_field(value)
            where = f"{what}, field {field!r}," if field else what
            raise RunError(
                f"{where} cannot be kept: {error}. Keep plain values, messages, dataclasses or pydantic models in the "
                "state, and open connections inside the node."
            ) from None
        return base64.b64encode(kind.encode() + b"\n" + content).decode()

    def _unfit_field(self, value: Any) -> str:
        for name, inner in (
            value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
        ).items():
            try:
                self._serde.dumps_typed(inner)
            except TypeError:
                return str(name)
        return ""

    def load_text(self, text: str) -> Any:
        """Return the value that ``dump_text`` wrote."""
        kind, _, content = base64.b64decode(text).partition(b"\n")
        return self._serde.loads_typed((kind.decode(), content))

    def load_effects(self, run_id: str) -> list[Effect]:
        """Return what a run asked of the world, in order."""
        return [effect for effect in self._tape(run_id) if effect.kind != "begin"]

    def load_beginning(self, run_id: str) -> list[Any]:
        """Return the checkpoints with which a run began that continues a conversation."""
        return begun(self._tape(run_id)).get(CHECKPOINTS, [])

    def _tape(self, run_id: str) -> Iterator[Effect]:
        for effect in read(self.store, run_id):
            yield dataclasses.replace(effect, value=self.load_text(effect.value))

    def save(self, run_id: str, effects: Iterable[Effect]) -> None:
        """Keep effects that are known before the run begins, or that another tool recorded."""
        Tape(self.store, run_id).write("begin", list(map(self.as_json, effects)))

    def save_end(self, run_id: str, state: Any, error: str = "") -> None:
        """Keep the state in which a run has ended, and release it."""
        text = self.dump_text(state, "The state")
        self.store.save_result(
            run_id, {"state": text, "answer": looking.first_text(state, "answer", "output")}
        )
        self.store.let_go(run_id, "failed" if error else "done", error or None)

    def as_json(self, effect: Effect) -> Effect:
        """Return an effect in its stored form, with its value and its input as JSON."""
        value = self.dump_text(effect.value, f"The result of {effect.at}")
        return dataclasses.replace(effect, value=value, input=masked(plain(effect.input)))

    async def drive(self, live: Live) -> None:
        """Work on a run until it pauses or ends; its row says how it stands."""
        store = self.store
        run_id = live.run_id
        with releasing(store, live):
            row = store.get(run_id)
            options = row["options"]
            recorder = Recorder(self, row)
            config = options["config"]
            configurable = {**config.get("configurable", {}), "thread_id": run_id}
            config = {**config, "configurable": configurable}
            context = options.get("context")
            context = (
                self.load_text(context) if context else langgraph_copy.default_context(self.graph)
            )
            snapshot = await self._copy.aget_state(config)
            fresh = not recorder.own and not snapshot.tasks
            if fresh:  # it begins where its conversation stood
                rows = [(run_id, *row) for row in self.load_beginning(run_id)]
                sql = "INSERT OR IGNORE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)"
                with self._saver.cursor() as cursor:
                    cursor.executemany(sql, rows)
            else:
                self._forget_errors(run_id)
            waiting = [at for at, *_, waits in effects.questions(recorder.own) if waits]
            if waiting and not snapshot.tasks:
                raise RunError(
                    f"The graph has no node that continues at {waiting[0]}, where the run waits. Record it with that "
                    "node, and resume the run."
                )
            inputs = self.load_text(options["input"]) if fresh else None
            while fresh or snapshot.tasks:  # else it was killed after its last checkpoint
                recorder.is_ready = False
                answered = langgraph_copy.with_answers(config, recorder.answers_by_id)
                async for event in self._copy.astream(
                    inputs,
                    answered,
                    context=context,
                    durability="sync",
                    stream_mode=options["stream_mode"],
                ):
                    streamed = {"streamed": self.dump_text(event, "What was streamed")}
                    store.save_event(run_id, new_run_id(), streamed)
                snapshot = await self._copy.aget_state(config)
                # nothing is asked at a breakpoint (`interrupt_before`), where people have continued before
                passes = not snapshot.interrupts and recorder.mode != "live"
                if snapshot.tasks and not (recorder.is_ready or passes):
                    store.let_go(run_id, "paused")
                    return
                fresh = False
                inputs = None
            self.save_end(run_id, snapshot.values)

    def _forget_errors(self, thread: str) -> None:
        """Remove what failed tasks have written: LangGraph takes one whose edge failed after its node as done."""
        failed = "SELECT task_id FROM writes WHERE thread_id = :thread AND channel = '__error__'"
        with self._saver.cursor() as cursor:
            cursor.execute(
                f"DELETE FROM writes WHERE thread_id = :thread AND channel != '__resume__' AND task_id IN ({failed})",
                {"thread": thread},
            )

    def _checkpoints(self, run_id: str) -> list[Any]:
        """Return where a run stands, as the rows of its last checkpoints."""
        columns = (
            "checkpoint_ns, max(checkpoint_id), parent_checkpoint_id, type, checkpoint, metadata"
        )
        with self._saver.cursor(transaction=False) as cursor:
            sql = f"SELECT {columns} FROM checkpoints WHERE thread_id = ? GROUP BY checkpoint_ns"
            return [list(row) for row in cursor.execute(sql, [run_id])]


# a run


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
        document = run_document(looking.as_workspace_run(self), self._work.holder(self.run_id))
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
            for node in langgraph_copy.nodes(self.agent._copy)
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

    export = write_capsule
    dag = property(looking.dag)
    timeline = property(looking.timeline)
    calls = looking.calls
    evidence = property(looking.evidence)
    unrecorded = property(looking.unrecorded)
    _read_once = looking.as_workspace_run
