"""What a recorded graph asked of the world, and a recorder that answers from the tapes of other runs.

An effect is a node's execution, a chat model's call, a tool's call, or a call of a function that was named. It depends
on the version of the code, configuration, context, answers of people, and its input or the state that it read.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import operator
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, is_dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, ToolMessage, convert_to_messages
from langchain_core.outputs import ChatGeneration, Generation
from langgraph.errors import GraphInterrupt
from langgraph.graph.message import add_messages
from langgraph.store.base import Op, PutOp
from langgraph.types import Command, Interrupt, Overwrite, Send
from pydantic import BaseModel

from workbench.errors import Divergence, RunError
from workbench.parts.record import langgraph_copy as langgraph
from workbench.parts.record.digests import digest, leaves, plain
from workbench.parts.record.store import past_store
from workbench.records import tape
from workbench.records.store import RunRow
from workbench.records.tape import Effect, Tape, divergence
from workbench.state import Data, Json, as_list
from workbench.text import as_text

if TYPE_CHECKING:
    from workbench.parts.record.agent import RecordedGraph

Execute = Callable[[], Awaitable[Any]]
"""What makes a result where the tape has none."""


def copied(value: Any) -> Any:
    """Return a deep copy: what a node changes in place would be seen by others in this run, and in no replay."""
    with contextlib.suppress(TypeError, ValueError, AttributeError, RecursionError):
        return copy.deepcopy(value)
    return value


class TrackedState(Json):
    """The state as a node gets it, which notes the fields that are read, and gives copies of them."""

    def __init__(self, state: Data):
        super().__init__(state)
        self.fields = set[str]()
        self._copies = set[str]()

    def note(self, names: Iterable[str]) -> None:
        """Note that these fields are read."""
        for name in names:
            self.fields.add(name)
            if dict.__contains__(self, name) and name not in self._copies:
                self[name] = copied(dict.__getitem__(self, name))

    def __setitem__(self, name: str, value: Any) -> None:
        self._copies.add(name)
        super().__setitem__(name, value)


_OF_ONE = ("__getitem__", "__contains__", "get", "pop", "setdefault")
_OF_ALL = (
    "__iter__",
    "keys",
    "values",
    "items",
    "copy",
    "__len__",
    "__eq__",
    "__or__",
    "__ror__",
)
"""What reads a field or all of them: dict's own versions look at the fields without asking each other."""


def _noted(method: str) -> Callable[..., Any]:
    def tracked(self: TrackedState, *args: Any) -> Any:
        self.note(args[:1] if method in _OF_ONE else list(dict.keys(self)))
        return getattr(dict, method)(self, *args)

    return tracked


for _method in (*_OF_ONE, *_OF_ALL):
    setattr(TrackedState, _method, _noted(_method))
_MISSING = "missing"
Asker = tuple[str, str, str]
"""The place of a node, the call in it, and the answers that it had, or LangGraph's id of the pause."""
CALLED = "called"
"""Before the call that asked: it is a graph or a task, to which LangGraph gives the answer."""


@dataclass
class Place:
    """Where the running code stands: its run, its node, how often each call was made in it, and what models are asked.

    Outside of nodes ``at`` is empty.
    """

    recorder: Recorder
    at: str = ""
    asks: bool = False
    calls: Counter[str] = field(default_factory=Counter)
    waiting: dict[tuple[str, str], list[Effect]] = field(
        default_factory=lambda: defaultdict(list)
    )


_place: ContextVar[Place | None] = ContextVar("workbench_place", default=None)


def current() -> Recorder:
    """Return the recorder of the current run."""
    place = _place.get()
    if place is None:
        raise RunError("A recorded graph runs by agent.ask, not called directly.")
    return place.recorder


class Recorder(Tape):
    """The tape of one run of a graph, which executes nodes and calls that it does not know.

    Args:
        agent: the recorded graph, which reads and writes its values.
        row: of the run: its options say how it is made.

    Attributes:
        own: effects that this run has already.
        answers: what people answered, by the digest of the question.
        past: the store as the runs found it from which this one is made; None of a live run.
        is_ready: something was asked just now that has an answer: the graph can continue.
    """

    def __init__(self, agent: RecordedGraph, row: RunRow):
        options = row["options"]
        spec = options["tape"]
        self.own = own = agent.load_effects(row["run_id"])
        sources = [agent.load_effects(source) for source in spec["sources"]]
        source_effects = [effect for effects in sources for effect in effects]
        taped = [[e for e in effects if not e.edited] for effects in (own, *sources)]
        super().__init__(agent.store, row["run_id"], spec["mode"], taped)
        decisions = agent.store.decisions(row["run_id"])
        self.answers = {d["review_id"]: agent.load_text(d["answer"]) for d in decisions}
        # by place, `{"result": value}` or `{"state": {field: value}}`
        self._edits = {at: agent.load_text(edit) for at, edit in options["results"].items()}
        # part of every key
        self.base = {"thread": options["thread"]}
        self._as_json = agent.as_json
        self.past = (
            None
            if self.mode == "live"
            else past_store(effect for effect in source_effects if effect.kind == "memory")
        )
        self._written = set[str]()
        self._own = {id(effect) for effect in own}
        self._known_effects = [*own, *source_effects]
        self._calls_in = defaultdict(list)
        for effect in source_effects:
            self._calls_in[effect.at.partition(":")[0]].append(effect)
        self._places: dict[tuple[str, str], str] = {}
        self._versions: dict[int, tuple[Any, str]] = {}
        self.is_ready = False
        # by the place of a node, all that it asked, with the calls that did, and the last by LangGraph's ids
        self._questions: dict[str, dict[str, str]] = defaultdict(dict)
        self._given = set[str]()
        self._open: dict[str, dict[str, str]] = defaultdict(dict)
        self._askers = dict[str, Asker]()
        self._asking = dict[int, str]()
        for effect in own:
            self._note_put(effect)
            if effect.kind in ("node", "edge"):
                self._places.setdefault((effect.name, effect.task), effect.at)
                if effect.outcome != "value":
                    self._note_questions(effect)
        _place.set(Place(self))  # of the current task, and of what it starts

    @property
    def answers_by_id(self) -> Json:
        """Return the answers to what was asked last, by LangGraph's ids: for graphs and tasks that a node calls."""
        return {
            pause: self.answers[name]
            for by_id in self._open.values()
            for pause, name in by_id.items()
            if name in self.answers
        }

    def keep(self, effect: Effect) -> None:
        """Record an effect, which is durable at once."""
        self.write(effect.at, [self._as_json(effect)])

    # nodes

    async def node(self, node: langgraph.Node, state: Any, config: Any) -> Any:
        """Execute a node or an edge, or take what it gave from the tape."""
        path = node.path
        task = langgraph.task_id(config)
        at = self._at(path, task)
        edit = self._edits.get(at, {})
        if "state" in edit:
            state = edited_state(state, edit["state"])
        parts = {
            "version": node.version,
            "config": digest([self.base, langgraph.user_config(config)]),
            "context": digest(langgraph.run_context(config)),
        }
        plain_state = plain(state)
        effect = Effect(node.kind, path, parts, None, at=at, task=task, input=plain_state)
        if by_hand := self._by_hand(effect):
            return by_hand.value
        values = plain_state if isinstance(state, dict) else {"": plain_state}
        digests = {n: tape.digest(values[n]) for n in values if n not in node.unkeyed}
        has_edited_call = any(place.startswith(f"{at}:") for place in self._edits)
        owners = self._questions[at]
        answered = [question for question in owners if question in self.answers]
        while True:
            parts["answers"] = digest([self.answers[question] for question in answered])
            found_before = self._find_node(at, node, parts, digests)
            if found_before is None or (found_before.outcome == "value" and has_edited_call):
                break
            taken = self.keep_recorded(found_before, at, task)
            if taken.outcome == "value":
                return with_edit(taken.value, edit.get("state"), node.reducers)
            questions = self._note_questions(taken)
            is_called = any(owners[question].startswith(CALLED) for question in questions)
            if is_called and set(questions) <= set(answered):  # after a kill it asks again
                break
            if any(
                question not in self.answers or question in answered for question in questions
            ):
                raise GraphInterrupt([pause for *_, pause in taken.value])
            answered += questions
        if self.mode == "replay" and not has_edited_call:
            raise self._divergence(at, node, parts, digests)
        own = {q: self.answers[q] for q in answered if not owners[q].startswith(CALLED)}
        config = langgraph.with_resume(config, own.values(), self._order_of_answers(at, own))
        inputs = TrackedState(state) if type(state) is dict else copied(state)
        result, pause = await self._execute(
            effect, lambda: langgraph.execute(node, inputs, config, self.task)
        )
        fields = (
            sorted(inputs.fields - node.unkeyed) if isinstance(inputs, TrackedState) else [""]
        )
        result = replace(result, reads={name: digests.get(name, _MISSING) for name in fields})
        if pause is not None:
            self._keep_questions(result)
            raise pause
        value = with_messages(result.value, node.reducers)
        name_messages(value, f"{at} {digest([parts, digests])}")
        self.keep(replace(result, value=value))
        return with_edit(value, edit.get("state"), node.reducers)

    def _keep_questions(self, result: Effect) -> None:
        """Record the execution of a node that asked, each question under its name."""
        pauses = []
        for pause in result.value:
            owner = self._asking.pop(id(pause))
            pauses.append((self._name(_asker(result, owner, pause), pause), owner, pause))
        result = replace(result, value=pauses, outcome="interrupt")
        self.keep(result)
        fresh = {*self._note_questions(result)} - self._given
        # LangGraph gives a graph that was killed before it noted its pause no answer the first time
        self.is_ready |= not fresh.isdisjoint(self.answers)
        self._given |= fresh

    async def _execute(
        self, effect: Effect, execute: Execute
    ) -> tuple[Effect, GraphInterrupt | None]:
        """Return the executed effect; where it asked a person, with the questions, and the pause."""
        place = Place(self, effect.at)
        token = _place.set(place)
        pause = None
        started = time.time()
        began = time.perf_counter()
        try:
            value = await execute()
        except GraphInterrupt as asked:
            value = list(asked.args[0])
            pause = asked
            _, colon, call = effect.at.partition(":")
            # of several calls at once that ask, LangGraph hears the first alone
            for question in value:
                itself = place.asks or question.id == langgraph.RAISED
                owner = f"{'' if itself else CALLED}{colon}{call}"
                self._asking.setdefault(id(question), owner)
        finally:
            _place.reset(token)
        seconds = time.perf_counter() - began
        return replace(effect, value=value, seconds=seconds, started_at=started), pause

    def _by_hand(self, wanted: Effect) -> Effect | None:
        edit = self._edits.get(wanted.at, {})
        if "result" not in edit:
            return None
        effect = replace(wanted, value=edit["result"], edited=True)
        self.keep(effect)
        return effect

    def take(self, wanted: Effect) -> Effect | None:
        """Take an effect from the tape, or what was put in its place by hand."""
        return self._by_hand(wanted) or super().take(wanted)

    def keep_recorded(self, effect: Effect, at: str = "", task: str = "") -> Effect:
        """Keep an effect of another tape, after the calls that were made in it."""
        if id(effect) in self._own:  # a node that runs again after a kill: its effect is there
            return effect
        for call in self._calls_in[effect.at.partition(":")[0]]:
            if effect.outcome == "value" and call.at.startswith(f"{effect.at}:"):
                super().keep_recorded(call, at + call.at.removeprefix(effect.at))
                self._note_put(call)
        return super().keep_recorded(effect, at, task)

    def _note_put(self, call: Effect) -> None:
        """Note what this run has written to the store, and write it to that of a fork or a replay."""
        if (call.kind, call.name) == ("memory", "put"):
            self._written.add(digest(call.value))
            if self.past is not None:
                namespace, key, value = call.value.values()
                self.past.put(tuple(namespace), key, value)

    def _name(self, asker: Asker, pause: Interrupt) -> str:
        """Name a question by the node and what it asks, never by its order; the same again has a number."""
        content = digest([asker[0].rpartition("/")[0], pause.value])
        names = (digest([content, number]) for number in count())
        return next(name for name in names if self._askers.setdefault(name, asker) == asker)

    def _note_questions(self, effect: Effect) -> list[str]:
        at = effect.at
        self._open[at] = {pause.id: name for name, _, pause in effect.value}
        self._questions[at] |= {name: owner for name, owner, _ in effect.value}
        for name, owner, pause in effect.value:
            # a graph that another run called has other pauses here
            if not (effect.replayed and owner.startswith(CALLED)):
                self._askers.setdefault(name, _asker(effect, owner, pause))
        return list(self._open[at].values())

    def _order_of_answers(self, at: str, answered: Iterable[str]) -> Callable[[], int]:
        """Return what gives ``interrupt`` the place of its answer: that of the call that asked, whichever runs first.

        LangGraph counts the questions of a node; a call that comes from the tape asks none, and the answer that it had
        would go to the next.
        """
        owners = [self._questions[at][question] for question in answered]
        counts = Counter[str]()

        def next_place() -> int:
            place = _place.get()
            owner = place.at.removeprefix(at) if place else ""
            counts[owner] += 1
            own = [number for number, name in enumerate(owners) if name == owner]
            if counts[owner] <= len(own):
                return own[counts[owner] - 1]
            if place:
                place.asks = True
            return len(owners)

        return next_place

    def _find_node(
        self, at: str, node: langgraph.Node, parts: Json, digests: Mapping[str, str]
    ) -> Effect | None:
        """Return the recorded execution of this key that read the same state; one that ended before one that asked."""
        recorded = self.look_up(node.kind, node.path, parts, at)
        for effect in sorted(
            recorded, key=lambda effect: (effect.at != at, effect.outcome != "value")
        ):
            reads = effect.reads
            fits = reads is not None and all(digests.get(n, _MISSING) == reads[n] for n in reads)
            if fits and not self._saw_changed_store(effect):
                return effect
        return None

    def _saw_changed_store(self, effect: Effect) -> bool:
        """Return whether it read what this run has changed in the store by now; a search may find anything."""
        own = set()
        for call in self._calls_in[effect.at] if self.mode == "fork" else ():
            if (call.kind, call.name) == ("memory", "put"):
                own.add(digest([call.value["namespace"], call.value["key"]]))
            elif (call.kind, call.name) == ("memory", "get"):
                item = self.past and self.past.get(tuple(call.input[0]), call.input[1])
                same = digest(item and item.value) == digest(call.value and call.value.value)
                if not same and digest(call.input[:2]) not in own:
                    return True
            elif (
                call.kind == "memory"
                and not own
                and call.parts["written"] != digest(self._written)
            ):
                return True
        return False

    def _divergence(
        self, at: str, node: langgraph.Node, parts: Json, digests: Mapping[str, str]
    ) -> Divergence:
        """Return how a node differs from what was recorded at its place."""
        before = [
            replace(e, name=at, parts={**e.parts, "state": e.reads or {}})
            for e in self._known_effects
            if (e.kind, e.name, e.at) == (node.kind, node.path, at)
        ][:1]
        names = [name for e in before for name in e.parts["state"]]
        state = {name: digests.get(name, _MISSING) for name in names}
        return divergence(node.kind, at, {**parts, "state": state}, before)

    # calls inside nodes

    async def tool(self, request: Any, execute: Execute) -> Any:
        """Call a tool, or take its answer from the tape."""
        call = request.tool_call
        tool = request.tool
        parts = self.call_dependencies(call["args"])
        if tool is not None:
            parts["version"] = self._version(tool)
            parts["state"] = digest(request.state) if langgraph.needs_state(tool) else ""
        effect = Effect(
            "tool",
            call["name"],
            parts,
            None,
            input=plain(call["args"]),
            at=self.next_call(call["name"]),
        )
        return await self._call(effect, execute, call["id"])

    def task(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that an entrypoint calls as a ``@task``, with its calls recorded."""
        name = str(getattr(function, "__name__", "task"))
        return langgraph.taped_function(
            function,
            functools.partial(
                self.call, "task", name, self._version(function), self.next_call(name)
            ),
        )

    def _version(self, target: Any) -> str:
        """Return the version of a tool's or a task's code, computed once per run."""
        if id(target) not in self._versions:
            # held, so that its id stays its own
            self._versions[id(target)] = (target, langgraph.code_version(target))
        return self._versions[id(target)][1]

    def call(
        self,
        kind: str,
        name: str,
        version: str,
        at: str,
        args: Any,
        kwargs: Any,
        execute: Execute,
    ) -> Awaitable[Any]:
        """Call a function, or take its result from the tape."""
        inputs = [args, kwargs]
        parts = self.call_dependencies(inputs, version)
        return self._call(Effect(kind, name, parts, None, input=plain(inputs), at=at), execute)

    def call_dependencies(self, inputs: Any, version: str = "") -> Json:
        """Return what a call depends on."""
        return {"version": version, "input": digest(inputs), "config": digest(self.base)}

    async def _call(self, effect: Effect, execute: Execute, call_id: str = "") -> Any:
        node, colon, call = effect.at.partition(":")
        own = [q for q, name in self._questions[node].items() if name.endswith(colon + call)]
        if answers := [self.answers[question] for question in own if question in self.answers]:
            effect = replace(effect, parts={**effect.parts, "answers": digest(answers)})
        taken = self.take(effect)
        if taken is not None:
            is_tool = effect.kind == "tool"
            return tool_result(taken.value, effect.name, call_id) if is_tool else taken.value
        result, pause = await self._execute(effect, execute)
        if pause is not None:
            raise pause
        self.keep(result)
        return result.value

    def memory_call(self, op: Op, execute: Callable[[], Any]) -> Any:
        """Use the store, or read from the tape what it gave; what is written is written again."""
        name = type(op).__name__.removesuffix("Op").lower()
        args = plain(op)
        parts = {"input": digest(args), "written": digest(self._written)}
        effect = Effect("memory", name, parts, None, input=args, at=self.next_call(name))
        recorded = None
        if self.past is not None and name != "put":
            recorded = next(iter(self.look_up("memory", name, effect.parts, effect.at)), None)
        value = execute() if recorded is None else recorded.value
        on_tape = value
        if isinstance(op, PutOp):
            on_tape = {"namespace": list(op.namespace), "key": op.key, "value": op.value}
        effect = replace(effect, value=on_tape, replayed=recorded is not None)
        self._note_put(effect)
        self.keep(effect)
        return [tuple(namespace) for namespace in value] if name == "listnamespaces" else value

    def next_call(self, name: str) -> str:
        """Return the place of the next call of this name."""
        place = _place.get() or Place(self)
        place.calls[name] += 1
        return f"{place.at}:{name}/{place.calls[name]}"

    # places

    def _at(self, path: str, task: str) -> str:
        """Return the place of a task: after a kill the first free one, since parallel tasks may have kept theirs."""
        if (path, task) not in self._places:
            taken = set(self._places.values())
            places = (f"{path}/{n}" for n in count(1))
            self._places[path, task] = next(at for at in places if at not in taken)
        return self._places[path, task]


def _asker(effect: Effect, owner: str, pause: Interrupt) -> Asker:
    """Return who asks, equal where it asks again after a kill, by which nothing was answered."""
    key = pause.id if owner.startswith(CALLED) else str(effect.parts.get("answers"))
    return effect.at, owner, key


def questions(effects: Iterable[Effect]) -> Iterator[tuple[str, str, Interrupt, bool]]:
    """Yield what a run asked: the node's place, the question's name, LangGraph's pause, and whether it still waits."""
    effects = list(effects)
    last = {effect.at: effect for effect in effects}
    for effect in effects:
        for name, _, pause in effect.value if effect.outcome != "value" else ():
            yield effect.at, name, pause, last[effect.at] is effect


def with_messages(value: Any, reducers: langgraph.Reducers) -> Any:
    """Return a change of the state with messages in place of their short forms, where its reducer would make them."""
    if isinstance(value, Command):
        return replace(value, update=with_messages(value.update, reducers))
    if isinstance(value, Send):
        return Send(value.node, with_messages(value.arg, {"messages": add_messages, **reducers}))
    if isinstance(value, list):
        return [with_messages(inner, reducers) for inner in value]
    if not isinstance(value, dict):
        return value
    own = {name for name in value if reducers.get(name) is add_messages}
    # what replaces the field, or is added to a list, stays as it is
    if reducers.get("messages") not in (None, operator.add):
        own.add("messages")
    return {name: _as_messages(value[name]) if name in own else value[name] for name in value}


def _as_messages(value: Any) -> Any:
    if isinstance(value, (list, tuple, dict, str)):
        # LangGraph says what is wrong with it
        with contextlib.suppress(ValueError, NotImplementedError):
            return convert_to_messages(as_list(value))
    return value


def name_messages(value: Any, seed: str) -> None:
    """Give ids to messages without one, equal in each run: LangGraph would draw random ones, and no key would fit."""
    for index, message in enumerate(leaves(value)):
        if isinstance(message, BaseMessage) and message.id is None:
            message.id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{seed} {index}"))


def edited_state(state: Any, fields: Json) -> Any:
    """Return the state with other values in these fields."""
    if isinstance(state, Mapping):
        return {**state, **fields}
    if isinstance(state, BaseModel):
        return state.model_copy(update=fields)
    if is_dataclass(state) and not isinstance(state, type):
        return replace(state, **fields)
    raise RunError(f"The state is a {type(state).__name__}, of which no field can be replaced.")


def with_edit(value: Any, fields: Json | None, reducers: langgraph.Reducers) -> Any:
    """Return a node's change of the state, after fields were replaced before it.

    A field with a reducer is overwritten with what the reducer makes of the replaced value and the change.
    """
    if not fields:
        return value
    if isinstance(value, Command):
        if value.graph:  # what it changes is the state of a graph around its own
            return value
        return replace(value, update=with_edit(value.update, fields, reducers))
    if value is None:
        value = {}
    if not isinstance(value, Mapping):
        raise RunError(
            "State can be replaced before a node that returns a dict or a command. Replace its result instead."
        )
    update = dict(value)
    for name, replaced in fields.items():
        reduce = reducers.get(name)
        if reduce is None:
            update.setdefault(name, replaced)
        else:
            update[name] = Overwrite(
                reduce(replaced, update[name]) if name in update else replaced
            )
    return update


def tool_result(value: Any, name: str, call_id: str) -> Any:
    """Return what a tool recorded, or what was written in its place, as the answer to this call."""
    if isinstance(value, Command):
        return value
    if isinstance(value, ToolMessage):
        same = value.tool_call_id == call_id
        return value if same else value.model_copy(update={"tool_call_id": call_id, "id": None})
    text = as_text(value)
    return ToolMessage(text, name=name, tool_call_id=call_id)


class RecordedCalls(BaseCache):
    """LangChain's cache of replies, which asks the recorder of the current run and leaves all others as they were."""

    def __init__(self, behind: BaseCache | None):
        self.behind = behind

    def lookup(self, prompt: str, llm_string: str) -> Any:
        """Return the recorded reply of a chat model, or None."""
        place = place_in_node()
        if place is None:
            return self.behind.lookup(prompt, llm_string) if self.behind else None
        recorder = place.recorder
        parts = recorder.call_dependencies(prompt, digest(llm_string))
        effect = Effect(
            "model",
            "model",
            parts,
            None,
            input=prompt,
            started_at=time.time(),
            at=recorder.next_call("model"),
        )
        taken = recorder.take(effect)
        if taken is None:
            place.waiting[prompt, llm_string].append(effect)
            return None
        replies = taken.value if isinstance(taken.value, list) else [taken.value]
        return [
            RecordedReply(message=reply)
            if isinstance(reply, BaseMessage)
            else Generation(text=reply)
            for reply in replies
        ]

    def update(self, prompt: str, llm_string: str, return_val: Any) -> None:
        """Record the reply of a chat model."""
        place = place_in_node()
        if place is None:
            if self.behind:
                self.behind.update(prompt, llm_string, return_val)
            return
        effect = place.waiting[prompt, llm_string].pop(0)
        replies = [getattr(generation, "message", generation.text) for generation in return_val]
        seconds = time.time() - effect.started_at
        usages = [getattr(reply, "usage_metadata", None) or {} for reply in replies]
        tokens = sum(int(usage.get("total_tokens") or 0) for usage in usages)
        place.recorder.keep(replace(effect, value=replies, seconds=seconds, tokens=tokens))

    def clear(self, **kwargs: Any) -> None:
        """Clear the cache behind this one."""
        if self.behind:
            self.behind.clear(**kwargs)

    async def alookup(self, *call: str) -> Any:
        """Return the recorded reply of a chat model, or None."""
        return self.lookup(*call)

    async def aupdate(self, *call: Any) -> None:
        """Record the reply of a chat model."""
        self.update(*call)


class RecordedReply(ChatGeneration):
    """A reply as it was recorded: LangChain would write a cost of 0 into one from its cache, and no key would fit."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "message":
            super().__setattr__(name, value)


def place_in_node() -> Place | None:
    """Return the place of the running code in its node; None outside of nodes."""
    place = _place.get()
    return place if place and place.at else None


def install() -> None:
    """Let chat models ask the recorder of the current run before they ask their server."""
    from langchain_core.globals import get_llm_cache, set_llm_cache

    if not isinstance(get_llm_cache(), RecordedCalls):
        set_llm_cache(RecordedCalls(get_llm_cache()))
    if BaseChatModel.stream.__module__ != __name__:  # once, whatever becomes of the cache
        _tape_streams()


def _tape_streams() -> None:
    """Put the calls whose reply a node streams on the tape, which LangChain looks up in no cache."""
    stream = BaseChatModel.stream
    astream = BaseChatModel.astream

    def begin(*call: Any, **options: Any) -> Any:
        """Return the chunks that are recorded, and what is given each new one and gives it back."""
        key = place_in_node() and langgraph.stream_key(*call, **options)
        if not key:
            return [], lambda chunk: chunk
        calls = RecordedCalls(None)
        chunks = []

        def note(chunk: Any) -> Any:
            chunks.append(chunk)
            if chunk.chunk_position == "last":
                message = functools.reduce(operator.add, chunks)
                calls.update(*key, [ChatGeneration(message=message)])
            return chunk

        replies = calls.lookup(*key) or ()
        # one that was written by hand is text
        return [getattr(r, "message", AIMessageChunk(content=r.text)) for r in replies], note

    def taped_stream(model: Any, input: Any, config: Any = None, **options: Any) -> Iterator[Any]:
        reply, note = begin(model, False, input, **options)
        yield from reply or map(note, stream(model, input, config, **options))

    async def taped_astream(
        model: Any, input: Any, config: Any = None, **options: Any
    ) -> AsyncIterator[Any]:
        reply, note = begin(model, True, input, **options)
        for chunk in reply:
            yield chunk
        if not reply:
            async for chunk in astream(model, input, config, **options):
                yield note(chunk)

    BaseChatModel.stream = taped_stream  # type: ignore[method-assign, assignment]
    BaseChatModel.astream = taped_astream  # type: ignore[method-assign, assignment]


def wrapped(target: Any) -> Any:
    """Return a function or client whose calls go on the tape of the current run.

    Of an object, its methods do; in a thread of a node as on the event loop.
    """
    name = getattr(target, "__qualname__", type(target).__qualname__)
    if hasattr(target, "__code__"):
        return _wrapped_function(target, name)

    class Client:
        def __getattr__(self, method: str) -> Any:
            member = getattr(target, method)
            return _wrapped_function(member, f"{name}.{method}") if callable(member) else member

    return Client()


def _wrapped_function(function: Callable[..., Any], name: str) -> Any:
    def call(args: Any, kwargs: Any, execute: Execute) -> Awaitable[Any]:
        place = _place.get()
        if place is None:
            return execute()
        recorder = place.recorder
        return recorder.call("call", name, "", recorder.next_call(name), args, kwargs, execute)

    return langgraph.taped_function(function, call)
