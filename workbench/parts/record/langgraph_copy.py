"""A copy of a LangGraph graph whose nodes and tools go through a recorder; the original stays unchanged.

Private attributes of LangGraph are used in this module only. They hold for LangGraph 1.2; ``tests/parts/record`` says
which versions were tried.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import types
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import run_in_executor, var_child_runnable_config
from langchain_core.tools import BaseTool
from langgraph._internal._constants import (
    CONFIG_KEY_CHECKPOINT_NS,
    CONFIG_KEY_RUNTIME,
    CONFIG_KEY_SCRATCHPAD,
    CONFIG_KEY_TASK_ID,
)
from langgraph._internal._runnable import RunnableCallable
from langgraph._internal._serde import build_serde_allowlist
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel
from langgraph.pregel._algo import _interrupt_id  # type: ignore[attr-defined]
from langgraph.types import Interrupt, interrupt

from workbench.errors import RunError
from workbench.parts.record.digests import digest


@dataclasses.dataclass(frozen=True)
class Node:
    """A node of the original graph.

    Attributes:
        path: its name, behind those of the graphs around it: ``"outer.inner"``.
        version: a digest of its code.
        runnable: what executes it.
        reducers: of the state's fields, by name.
    """

    path: str
    version: str
    runnable: Runnable[Any, Any]
    reducers: Mapping[str, Callable[[Any, Any], Any]]


RecordNode = Callable[[Node, Any, Any], Awaitable[Any]]
RecordTool = Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]
_RESERVED = ("thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map")


def copy_graph(
    graph: Any, record_node: RecordNode, record_tool: RecordTool, replacements: Mapping[int, Any], saver: Any = None
) -> Pregel[Any]:
    """Return a copy of a compiled graph that calls ``record_node`` for each node and ``record_tool`` for each tool.

    Subgraphs that are nodes are copied too. A graph that a node calls itself belongs to that node. LangGraph's cache of
    nodes is left out, since it does not look at user, context and memory.

    Args:
        graph: a compiled ``StateGraph`` or an ``@entrypoint``.
        record_node: called with the original node, its input and config.
        record_tool: called with LangGraph's tool request and the function that executes it.
        replacements: objects that nodes find among their globals, by ``id``, and what they get instead.
        saver: keeps the checkpoints of the copy; for a subgraph None.

    Raises:
        RunError: not a graph of this kind.
    """
    return _copy(graph, partial(_wrapped, record_node, record_tool, replacements), "", saver)


def _copy(graph: Any, wrap: Callable[[str, Any, Any], Any], path: str, saver: Any) -> Pregel[Any]:
    if isinstance(graph, CompiledStateGraph):
        builder = copy.copy(graph.builder)
        channels = builder.channels.items()
        reducers = {name: channel.operator for name, channel in channels if hasattr(channel, "operator")}
        builder.nodes = {
            name: dataclasses.replace(spec, runnable=wrap(f"{path}{name}", spec.runnable, reducers))
            for name, spec in builder.nodes.items()
        }
        twin: Pregel[Any] = builder.compile(
            checkpointer=saver if saver is not None else graph.checkpointer,
            store=graph.store,
            interrupt_before=cast(Any, graph.interrupt_before_nodes),
            interrupt_after=cast(Any, graph.interrupt_after_nodes),
            name=graph.name,
        )
        twin.config = graph.config
        twin.step_timeout = graph.step_timeout
        return twin
    if isinstance(graph, Pregel):
        twin = copy.copy(graph)
        twin.nodes = {
            name: node.copy({"bound": wrap(f"{path}{name}", node.bound, {})}) for name, node in graph.nodes.items()
        }
        twin.cache = None
        if saver is not None:
            twin.checkpointer = saver
        return twin
    raise RunError(
        f"{type(graph).__name__} is not a compiled LangGraph graph. Give a compiled StateGraph, an @entrypoint, or a "
        "function without arguments that returns one."
    )


def _wrapped(
    record_node: RecordNode,
    record_tool: RecordTool,
    replacements: Mapping[int, Any],
    path: str,
    node: Any,
    reducers: Mapping[str, Callable[[Any, Any], Any]],
) -> Any:
    if isinstance(node, Pregel):
        wrap = partial(_wrapped, record_node, record_tool, replacements)
        return _copy(node, wrap, f"{path}.", None)
    version = code_version(node)
    if isinstance(node, ToolNode):
        node = _tool_node(node, record_tool)
    elif replacements and isinstance(node, RunnableCallable):
        node = _rebound(node, replacements)

    original = Node(path, version, node, reducers)

    async def call(state: Any, config: Any) -> Any:
        return await record_node(original, state, config)

    call.__annotations__ = {}  # LangGraph injects `config` by name where there is no annotation
    recorded = RunnableCallable(None, call, name=path.rpartition(".")[2], trace=False)
    recorded.original = original  # type: ignore[attr-defined]
    return recorded


def nodes(twin: Pregel[Any]) -> Iterator[tuple[str, Node]]:
    """Yield the original nodes of a copy, those of its subgraphs among them, by their paths."""
    for node in twin.nodes.values():
        if isinstance(node.bound, Pregel):
            yield from nodes(node.bound)
        elif hasattr(node.bound, "original"):
            yield node.bound.original.path, node.bound.original


def _tool_node(node: ToolNode, record_tool: RecordTool) -> ToolNode:
    """Return the node with the recorder around whatever already wraps its tool calls."""
    twin, inner, sync = copy.copy(node), node._awrap_tool_call, node._wrap_tool_call

    async def wrap(request: Any, execute: Callable[[Any], Awaitable[Any]]) -> Any:
        async def run(request: Any) -> Any:
            if inner is not None:
                return await inner(request, execute)
            return await execute(request)

        return await record_tool(request, run)

    if inner is None and sync is not None:  # LangGraph would call it in place of ours
        raise_sync = sync

        async def inner(request: Any, execute: Callable[[Any], Awaitable[Any]]) -> Any:
            import asyncio

            loop = asyncio.get_running_loop()

            def wait(request: Any) -> Any:
                return asyncio.run_coroutine_threadsafe(cast(Any, execute(request)), loop).result()

            return await asyncio.to_thread(raise_sync, request, wait)

    twin._awrap_tool_call = wrap
    twin.afunc = twin._afunc  # bound to the copy, not to the original
    return twin


def _rebound(node: RunnableCallable, replacements: Mapping[int, Any]) -> RunnableCallable:
    """Return the node with functions whose globals hold the replacements."""
    twin = copy.copy(node)
    if isinstance(node.func, types.FunctionType):
        twin.func = with_globals(node.func, replacements)
        twin.afunc = partial(run_in_executor, None, twin.func)
    elif isinstance(node.afunc, types.FunctionType):
        twin.afunc = with_globals(node.afunc, replacements)
    return twin


def with_globals(function: Any, replacements: Mapping[int, Any]) -> Any:
    """Return a function of the same code that finds other objects behind the names of some of its globals."""
    names = {
        name: replacements[id(target)] for name, target in function.__globals__.items() if id(target) in replacements
    }
    if not names or not isinstance(function, types.FunctionType):
        return function
    twin = types.FunctionType(
        function.__code__, {**function.__globals__, **names}, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    twin.__kwdefaults__, twin.__annotations__ = function.__kwdefaults__, function.__annotations__
    return twin


def code_version(node: Any) -> str:
    """Return a digest of the code of a node: its functions, and those of the same distribution that they call."""
    return digest(sorted(set(_code(node))))


def functions(node: Any) -> Iterator[types.FunctionType]:
    """Yield the functions of a node, and those of the same top-level module that they name."""
    seen = set[int]()
    waiting = list(_entries(node))
    while waiting:
        function = inspect.unwrap(waiting.pop())
        if id(function) in seen or not isinstance(function, types.FunctionType):
            continue
        seen.add(id(function))
        yield function
        package = function.__module__.partition(".")[0] if function.__module__ else ""
        closure = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        globals_used = [function.__globals__.get(name) for name in function.__code__.co_names]
        waiting += [
            target
            for target in [*closure, *globals_used]
            if isinstance(target, types.FunctionType) and (target.__module__ or "").partition(".")[0] == package
        ]


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _entries(node: Any) -> Iterator[Any]:
    if isinstance(node, ToolNode):
        for tool in node.tools_by_name.values():
            yield from (f for f in (getattr(tool, "func", None), getattr(tool, "coroutine", None)) if f)
    elif isinstance(node, RunnableCallable):
        function = node.func or node.afunc
        while isinstance(function, partial):
            function = function.args[-1] if callable(function.args[-1]) else function.func
        yield getattr(function, "__func__", function) if inspect.isroutine(function) else type(function).__call__
    else:
        yield from (f for f in (getattr(node, "func", None), getattr(node, "afunc", None)) if f)


def _code(node: Any) -> Iterator[str]:
    yield type(node).__qualname__
    if isinstance(node, ToolNode):
        yield from _bound(list(node.tools_by_name.values()))
    for function in functions(node):
        yield from _constants(function.__code__)
        yield repr(function.__defaults__)
        for cell in function.__closure__ or ():
            if _is_filled(cell):
                yield from _bound(cell.cell_contents)


def _bound(value: Any) -> Iterator[str]:
    """Yield what a function's closure holds and its result depends on: values, messages, models and tools."""
    if isinstance(value, (str, int, float, bool, BaseMessage)):
        yield digest(value)
    elif isinstance(value, BaseChatModel):
        yield digest([value._llm_type, value._identifying_params])
    elif isinstance(value, BaseTool):
        yield digest([value.name, value.description, value.args, value.metadata])
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _bound(inner)


def _constants(code: types.CodeType) -> Iterator[str]:
    yield f"{code.co_name} {code.co_code.hex()} {code.co_names}"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _constants(constant)
        else:
            yield repr(constant)


# what the configuration of a running node says


def task_id(config: Any) -> str:
    """Return LangGraph's id of the running task: the same when it runs again after a pause or a kill."""
    return str(config["configurable"].get(CONFIG_KEY_TASK_ID, ""))


def run_context(config: Any) -> Any:
    """Return the run's context, as the graph's ``context_schema`` has it."""
    return getattr(config["configurable"].get(CONFIG_KEY_RUNTIME), "context", None)


def user_config(config: Any) -> dict[str, Any]:
    """Return what the caller put into ``configurable``."""
    configurable = config["configurable"].items()
    return {name: target for name, target in configurable if not name.startswith("__pregel") and name not in _RESERVED}


def resume_values(config: Any) -> list[Any]:
    """Return the answers that LangGraph has for this task, in order."""
    return list(config["configurable"][CONFIG_KEY_SCRATCHPAD].resume)


def with_resume(config: Any, answers: Sequence[Any]) -> Any:
    """Return the config of a task to which these answers were given."""
    configurable = config["configurable"]
    scratchpad = dataclasses.replace(configurable[CONFIG_KEY_SCRATCHPAD], resume=list(answers))
    return {**config, "configurable": {**configurable, CONFIG_KEY_SCRATCHPAD: scratchpad}}


async def execute(node: Node, state: Any, config: Any) -> Any:
    """Execute the original node under this config, which ``interrupt`` looks up in the context."""
    token = var_child_runnable_config.set(config)
    try:
        return await node.runnable.ainvoke(state, config)
    finally:
        var_child_runnable_config.reset(token)


def is_own(pause: Interrupt, config: Any) -> bool:
    """Return whether the node asked itself, rather than a graph that it called."""
    namespace = config["configurable"][CONFIG_KEY_CHECKPOINT_NS]
    return pause.id in {_interrupt_id(namespace, place) for place in range(len(resume_values(config)) + 1)}


def ask_again(pause: Interrupt, config: Any) -> None:
    """Pause the running node with a question that it asked before, after those that LangGraph has answers to."""
    for _ in range(len(resume_values(config)) + 1):
        interrupt(pause.value, response_schema=pause.response_schema)


def serializer(graph: Any) -> JsonPlusSerializer:
    """Return a serializer that makes the classes of the graph's own states, messages and documents, and no others."""
    allowed: set[Any] = {(Document.__module__, Document.__name__)}
    for level in [graph, *(child for _, child in graph.get_subgraphs(recurse=True))]:
        builder = getattr(level, "builder", None)
        if builder is not None:
            schemas = [builder.state_schema, builder.input_schema, builder.output_schema, builder.context_schema]
            schemas += [node.input_schema for node in builder.nodes.values()]
            allowed |= build_serde_allowlist(schemas=schemas, channels=builder.channels)
        else:
            allowed |= build_serde_allowlist(schemas=[level.input_channels and Any], channels=level.channels)
    return JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=allowed)
