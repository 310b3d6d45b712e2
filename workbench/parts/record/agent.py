"""A recorded graph: asked like the original, with every effect on a tape."""

from __future__ import annotations

import base64
import copy
import dataclasses
import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.errors import RunError
from workbench.parts.record import capsule, effects, langgraph_copy
from workbench.parts.record.digests import digest, plain
from workbench.parts.record.effects import Recorder
from workbench.parts.record.looking import first_text
from workbench.parts.record.run import GraphRun
from workbench.parts.record.store import GraphRuns, RecordedStore
from workbench.records.checkpoints import serializer
from workbench.records.store import new_run_id
from workbench.records.tape import Effect, Tape, begun, masked, read
from workbench.runs.driver import Live, releasing
from workbench.state import Data, Json

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
        options: Json = {"tape": {"mode": "live", "sources": []}, "config": config, "results": {}}
        options |= {"source": self.source, "stream_mode": stream_mode, "thread": thread}
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
            first_text(inputs, "question", "query"),
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

    read_capsule = capsule.read_capsule

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
            run_id, {"state": text, "answer": first_text(state, "answer", "output")}
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
