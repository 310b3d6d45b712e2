"""A copy of a LangGraph graph whose nodes and tools go through a recorder; the original stays unchanged.

Private attributes of LangGraph and LangChain are used in this module only. They hold for LangGraph 1.2;
``tests/parts/record`` says which versions were tried.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from enum import Enum
from functools import partial, wraps
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, cast

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.load import dumps
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import run_in_executor, var_child_runnable_config
from langchain_core.tools import BaseTool
from langgraph._internal._constants import (
    CONFIG_KEY_CALL,
    CONFIG_KEY_RESUME_MAP,
    CONFIG_KEY_RUNTIME,
    CONFIG_KEY_SCRATCHPAD,
    CONFIG_KEY_TASK_ID,
)
from langgraph._internal._runnable import RunnableCallable
from langgraph._internal._serde import build_serde_allowlist
from langgraph.channels.untracked_value import UntrackedValue
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.func import entrypoint
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import _get_all_injected_args
from langgraph.pregel import Pregel
from langgraph.store.base import Item, SearchItem
from langgraph.types import Interrupt
from pydantic import BaseModel, PydanticUserError

from workbench.errors import RunError
from workbench.parts.record.digests import digest
from workbench.state import Data, Json

Reducers = Mapping[str, Callable[[Any, Any], Any]]
"""The reducers of a state's fields, by name."""


class Node(NamedTuple):
    """A node or a conditional edge of the original graph.

    Attributes:
        path: its name, behind those of the graphs around it: ``"outer.inner"``; of an edge ``"outer.inner->route"``.
        version: a digest of its code.
        runnable: what executes it.
        reducers: of the state's fields, by name.
        fields: names of the state's fields; empty where any name may be one.
        kind: ``node`` or ``edge``.
        unkeyed: fields that are no part of a key: LangGraph's own counters, which begin again after each pause, and
            what no checkpoint keeps.
    """

    path: str
    version: str
    runnable: Runnable[Any, Any]
    reducers: Reducers
    fields: frozenset[str] = frozenset()
    kind: str = "node"
    unkeyed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Final:
    """What an ``@entrypoint`` returns and what it saves: LangGraph's own class cannot be read back."""

    value: Any
    save: Any


_RESERVED = ("thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map")


class Copier(NamedTuple):
    """Copies compiled graphs, so that each node, conditional edge and tool goes through a recorder.

    Subgraphs that are nodes are copied too. A graph that a node calls itself belongs to that node. LangGraph's cache of
    nodes is left out, since it does not look at user, context and memory.

    Attributes:
        recorder: returns the recorder of the current run.
        record_store: returns a recorded store for a store, or for None the workspace's.
        replacements: objects that nodes find among their globals, by ``id``, and what they get instead.
    """

    recorder: Callable[[], Any]
    record_store: Callable[[Any], Any]
    replacements: Mapping[int, Any]

    def copy(self, graph: Any, path: str = "", saver: Any = None) -> Pregel[Any]:
        """Return a copy of a compiled ``StateGraph`` or an ``@entrypoint``.

        Args:
            graph: the original.
            path: the names of the graphs around it, each with a dot.
            saver: keeps the checkpoints of the copy; for a subgraph None.

        Raises:
            RunError: not a graph of this kind.
        """
        if not isinstance(graph, Pregel):
            raise RunError(
                f"{type(graph).__name__} is not a compiled LangGraph graph. Give a compiled StateGraph, an "
                "@entrypoint, or a function without arguments that returns one."
            )
        is_root = saver is not None
        # LangGraph fails where a subgraph has False while each checkpoint is waited for
        checkpointer = saver or graph.checkpointer or None
        store = self.record_store(graph.store) if is_root or graph.store else None
        if not isinstance(graph, CompiledStateGraph):
            twin = copy.copy(graph)
            twin.nodes = {
                name: node.copy(
                    {"bound": self._wrapped(f"{path}{name}", node.bound, {"reducers": {}})}
                )
                for name, node in graph.nodes.items()
            }
            twin.cache = None
            twin.store = store
            twin.checkpointer = checkpointer
            return twin
        builder = copy.copy(graph.builder)
        channels = builder.channels.items()
        untracked = [name for name, channel in channels if isinstance(channel, UntrackedValue)]
        fields = {
            "reducers": reducers(graph),
            "fields": frozenset(builder.channels),
            "unkeyed": frozenset([*builder.managed, *untracked]),
        }
        builder.nodes = {
            name: replace(spec, runnable=self._wrapped(f"{path}{name}", spec.runnable, fields))
            for name, spec in builder.nodes.items()
        }
        branches = builder.branches
        builder.branches = defaultdict(dict)
        for source, specs in branches.items():
            for name, spec in specs.items():
                edge = self._taped(f"{path}{source}->{name}", spec.path, "edge", fields)
                builder.branches[source][name] = spec._replace(path=edge)
        compiled = builder.compile(
            checkpointer=checkpointer,
            store=store,
            interrupt_before=cast(Any, graph.interrupt_before_nodes),
            interrupt_after=cast(Any, graph.interrupt_after_nodes),
            name=graph.name,
        )
        compiled.config = graph.config
        compiled.step_timeout = graph.step_timeout
        return compiled

    def _wrapped(self, path: str, node: Any, fields: Data) -> Any:
        if isinstance(node, Pregel):
            return self.copy(node, f"{path}.")
        if isinstance(node, ToolNode):
            node = _tool_node(node, self.recorder)
        elif self.replacements and isinstance(node, RunnableCallable):
            node = _rebound(node, self.replacements)
        return self._taped(path, node, "node", fields)

    def _taped(self, path: str, runnable: Any, kind: str, fields: Data) -> Any:
        original = Node(path, code_version(runnable), runnable, kind=kind, **fields)

        async def call(state: Any, config: Any) -> Any:
            result = await self.recorder().node(original, state, config)
            if isinstance(result, Final):
                return entrypoint.final(value=result.value, save=result.save)
            return result

        call.__annotations__ = {}  # LangGraph injects `config` by name where there is no annotation
        taped = RunnableCallable(None, call, name=path.rpartition(".")[2], trace=False)
        taped.original = original  # type: ignore[attr-defined]
        return taped


def reducers(graph: Any) -> Reducers:
    """Return the reducers of a graph's state."""
    channels = graph.channels.items()
    return {name: channel.operator for name, channel in channels if hasattr(channel, "operator")}


def nodes(twin: Pregel[Any]) -> Iterator[Node]:
    """Yield the original nodes of a copy, those of its subgraphs among them."""
    for node in twin.nodes.values():
        if isinstance(node.bound, Pregel):
            yield from nodes(node.bound)
        elif hasattr(node.bound, "original"):
            yield node.bound.original


def _tool_node(node: ToolNode, recorder: Callable[[], Any]) -> ToolNode:
    """Return the node with the recorder around whatever already wraps its tool calls."""
    twin = copy.copy(node)
    inner = node._awrap_tool_call
    sync = node._wrap_tool_call
    if inner is None and sync is not None:  # LangGraph calls it on the event loop too
        twin._wrap_tool_call = taped_function(
            sync, lambda args, _, execute: recorder().tool(args[0], execute)
        )
    else:

        async def wrap(request: Any, execute: Callable[[Any], Awaitable[Any]]) -> Any:
            return await recorder().tool(
                request, lambda: inner(request, execute) if inner else execute(request)
            )

        twin._awrap_tool_call = wrap
    twin.afunc = twin._afunc  # bound to the copy, not to the original
    return twin


def _rebound(node: RunnableCallable, replacements: Mapping[int, Any]) -> RunnableCallable:
    """Return the node with functions whose globals hold the replacements."""
    twin = copy.copy(node)
    if isinstance(node.func, FunctionType):
        twin.func = with_globals(node.func, replacements)
        twin.afunc = partial(run_in_executor, None, twin.func)
    elif isinstance(node.afunc, FunctionType):
        twin.afunc = with_globals(node.afunc, replacements)
    return twin


def with_globals(function: FunctionType, replacements: Mapping[int, Any]) -> Any:
    """Return a function of the same code that finds other objects behind the names of some of its globals."""
    names = {
        name: replacements[id(target)]
        for name, target in function.__globals__.items()
        if id(target) in replacements
    }
    if not names:
        return function
    twin = FunctionType(
        function.__code__, {**function.__globals__, **names}, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


def code_version(runnable: Any) -> str:
    """Return a digest of the code of a node, an edge, a tool or a function.

    It holds the functions, those of the same distribution that they call, and what they find in their globals, closures
    and bound arguments: constants, prompts, models with their sampling, tools, and schemas of answers.
    """
    values = (
        digest(list(_constants(value.__code__)))
        if isinstance(value, FunctionType)
        else _leaf_digest(value)
        for value in reachable(runnable)
    )
    return digest([type(runnable).__qualname__, *sorted(set(values))])


_SETTINGS = (str, int, float, bool, BaseMessage, BaseChatModel, BaseTool, type)


def reachable(runnable: Any) -> Iterator[Any]:
    """Yield what a node's result depends on: functions of its own top-level module, and what they find by their names.

    That is constants, prompts, models, tools and classes. A graph that is called is none of it.
    """
    # How far the values are followed that a function finds behind its names.
    deepest = 5
    # they are kept, or another one would get the same id
    seen = {}
    waiting = [(runnable, 0, "")]
    while waiting:
        value, depth, package = waiting.pop()
        value = inspect.unwrap(value) if isinstance(value, FunctionType) else value
        if id(value) in seen or depth > deepest or isinstance(value, (ModuleType, Pregel)):
            continue
        seen[id(value)] = value
        if isinstance(value, FunctionType):
            own = (value.__module__ or "").partition(".")[0]
            if package in ("", own):
                yield value
                waiting += [(target, 0, own) for target in _referenced(value)]
            continue
        if isinstance(value, _SETTINGS):
            yield value
        waiting += [(inner, depth + 1, package) for inner in _inside(value)]


def _referenced(function: FunctionType) -> list[Any]:
    """Return what a function finds behind its names: in its defaults, its closure, its globals and their modules."""
    codes = [function.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    names = dict.fromkeys(name for code in codes for name in code.co_names)
    closure = list[Any](function.__defaults__ or ())
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # it is empty yet
            closure.append(cell.cell_contents)
    values = [
        _with_name(name, function.__globals__[name])
        for name in names
        if name in function.__globals__
    ]
    modules = [vars(module) for module in values if isinstance(module, ModuleType)]
    own = [
        module
        for module in modules
        if module["__name__"].partition(".")[0] not in sys.stdlib_module_names
    ]
    return [
        *closure,
        *values,
        *(module[name] for module in own for name in names if name in module),
    ]


def _inside(value: Any) -> Sequence[Any]:
    """Return what a value executes and holds."""
    # Longer containers are data, not settings.
    longest = 1000
    if isinstance(value, ToolNode):
        return list(value.tools_by_name.values())
    if isinstance(value, partial):
        bound = [*value.args, *value.keywords.values()]
        return bound[-1:] if value.func is run_in_executor else [value.func, *bound]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__, *_own_settings(value.__self__)]
    if isinstance(value, (str, BaseChatModel, type)):
        return []
    if type(value) in (list, tuple, dict):
        return list(value.values() if isinstance(value, dict) else value)[
            : longest if len(value) <= longest else 0
        ]
    functions = (getattr(value, name, None) for name in ("func", "coroutine", "afunc"))
    if function := next(filter(None, functions), None):
        return [function]
    has_fields = isinstance(value, Runnable) or is_dataclass(value)
    fields = list(vars(value).values()) if has_fields else []
    return [*fields, *_own_settings(value), type(value).__call__] if callable(value) else fields


def _own_settings(value: Any) -> list[Any]:
    """Return the attributes of an object whose code is a node's, by name: a client or a lock among them is none."""
    kinds = (*_SETTINGS, list, tuple, dict, FunctionType)
    pairs = sorted(getattr(value, "__dict__", {}).items())
    return [
        type(value).__qualname__,
        *(_with_name(name, inner) for name, inner in pairs if isinstance(inner, kinds)),
    ]


def _with_name(name: str, value: Any) -> Any:
    """Return a value with its name where it is plain: two that change places are another code."""
    return f"{name}={value!r}" if isinstance(value, (str, int, float, bool)) else value


def _leaf_digest(value: Any) -> str:
    if isinstance(value, BaseChatModel):
        return digest([value._llm_type, value._identifying_params])
    if isinstance(value, BaseTool):
        return digest([value.name, value.description, value.args, value.metadata])
    if isinstance(value, type):
        if issubclass(value, BaseModel):
            # a field that JSON has no type for
            with suppress(AttributeError, PydanticUserError):
                return digest(value.model_json_schema())
        return ""
    return digest(value)


def _constants(code: CodeType) -> Iterator[str]:
    yield f"{code.co_name} {code.co_code.hex()} {code.co_names}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _constants(constant)
        else:
            yield repr(constant)


RAISED = Interrupt(None).id
"""The id of every pause that a node raised as ``NodeInterrupt``: no answer reaches it, and it may raise it again."""


# what the configuration of a running node says


def task_id(config: Any) -> str:
    """Return LangGraph's id of the running task: the same when it runs again after a pause or a kill."""
    return str(config["configurable"].get(CONFIG_KEY_TASK_ID, ""))


def run_context(config: Any) -> Any:
    """Return the run's context, as the graph's ``context_schema`` has it."""
    return getattr(config["configurable"].get(CONFIG_KEY_RUNTIME), "context", None)


def user_config(config: Any) -> Json:
    """Return what the caller put into ``configurable``."""
    configurable = config["configurable"].items()
    return {
        name: target
        for name, target in configurable
        if not name.startswith("__pregel") and name not in _RESERVED
    }


def stream_key(
    model: Any, is_async: bool, messages: Any, stop: Any = None, **options: Any
) -> tuple[str, str] | None:
    """Return what a reply that is streamed is kept under, as LangChain's cache does; None of one that comes whole."""
    if not model._should_stream(async_api=is_async, stream=True):
        return None
    messages = model._convert_input(messages).to_messages()
    return dumps(messages), model._get_llm_string(stop=stop, **options)


def needs_state(tool: Any) -> bool:
    """Check whether LangGraph hands a tool the state, the store or the runtime."""
    injected = _get_all_injected_args(tool)
    return bool(injected.state or injected.store or injected.runtime)


def with_answers(config: Any, answers: Data) -> Any:
    """Return the config of a run whose graph finds these answers, by LangGraph's ids of what was asked."""
    return {**config, "configurable": {**config["configurable"], CONFIG_KEY_RESUME_MAP: answers}}


def with_resume(config: Any, answers: Iterable[Any], next_place: Callable[[], int]) -> Any:
    """Return the config of a task to which these answers were given; ``next_place`` is that of the next one."""
    configurable = config["configurable"]
    scratchpad = replace(
        configurable[CONFIG_KEY_SCRATCHPAD], resume=list(answers), interrupt_counter=next_place
    )
    return {**config, "configurable": {**configurable, CONFIG_KEY_SCRATCHPAD: scratchpad}}


async def execute(node: Node, state: Any, config: Any, record_task: Callable[[Any], Any]) -> Any:
    """Execute the original node under this config, which ``interrupt`` looks up in the context.

    Args:
        node: the original.
        state: its input.
        config: of its task.
        record_task: returns a recorded function for one that the node calls as a ``@task``.
    """
    configurable = config["configurable"]
    call = configurable.get(CONFIG_KEY_CALL)
    if call is not None:

        def taped_call(function: Any, *args: Any, **options: Any) -> Any:
            return call(record_task(function), *args, **options)

        config = {**config, "configurable": {**configurable, CONFIG_KEY_CALL: taped_call}}
    token = var_child_runnable_config.set(config)
    try:
        result = await node.runnable.ainvoke(state, config)
    finally:
        var_child_runnable_config.reset(token)
    return Final(result.value, result.save) if isinstance(result, entrypoint.final) else result


def default_context(graph: Any) -> Any:
    """Return the context of a run that is given none, as LangGraph's server makes it: the schema's defaults."""
    schema: Any = getattr(graph, "context_schema", None)
    if is_dataclass(schema) or hasattr(schema, "model_fields"):
        # it has fields without a default
        with suppress(TypeError, ValueError, LookupError):
            return schema()
    return None


def serializer(graph: Any, twin: Pregel[Any]) -> JsonPlusSerializer:
    """Return a serializer that makes messages, documents, and the classes of data that the graph names, and no others.

    They are those of its states, and those that its nodes find behind their names, as the form of an answer.
    """
    kinds = [
        value
        for node in nodes(twin)
        for value in reachable(node.runnable)
        if isinstance(value, type)
        and (issubclass(value, (BaseModel, Enum)) or is_dataclass(value))
    ]
    allowed: set[Any] = {
        (kind.__module__, kind.__name__) for kind in (Document, Final, Item, SearchItem, *kinds)
    }
    for level in [graph, *(child for _, child in graph.get_subgraphs(recurse=True))]:
        schemas = [*getattr(getattr(level, "builder", None), "schemas", ()), level.context_schema]
        allowed |= build_serde_allowlist(schemas=schemas, channels=level.channels)
    return JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=allowed)


def taped_function(
    function: Callable[..., Any], call: Callable[[Any, Any, Any], Awaitable[Any]]
) -> Any:
    """Return a function of the same kind, synchronous or not, that calls through ``call(args, kwargs, execute)``."""
    if asyncio.iscoroutinefunction(function):

        @wraps(function)
        async def acall(*args: Any, **kwargs: Any) -> Any:
            return await call(args, kwargs, lambda: function(*args, **kwargs))

        return acall

    @wraps(function)
    def wait(*args: Any, **kwargs: Any) -> Any:
        async def execute() -> Any:
            return function(*args, **kwargs)

        try:  # nothing in it waits, so it ends at its first step
            call(args, kwargs, execute).__await__().send(None)
        except StopIteration as ended:
            return ended.value
        raise RuntimeError(f"{function} waited.")

    return wait
