"""The graphs for a LangGraph server (``langgraph.json``): factories that bind the ports of ``WORKBENCH_WORKSPACE``.

``conversation`` takes ``{"messages": [...]}``, as Studio sends it, or ``{"message": "..."}``, and with it ``review``,
``report``, ``plan`` and the other fields of ``ConversationOptions``; ``retrieval`` and ``fusion`` take
``{"query": "..."}`` or messages. Context and ``configurable`` fill in what the input leaves out, as
``{"kb_prefix": "papers"}``.
"""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from functools import wraps
from typing import Annotated, Any, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, convert_to_messages
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, Field

from workbench.errors import RunError, refusing
from workbench.graphs.conversation import conversation_graph, initial_state
from workbench.graphs.retrieval import build_retrieval
from workbench.graphs.route import build_router
from workbench.parts.fusion.graph import FusionConfig, build_fusion, fusion_options
from workbench.plans import Frozen
from workbench.records.store import new_run_id
from workbench.runs.asking import RunOptions, checked_message
from workbench.session import Workbench
from workbench.state import ConversationState, Data, Json, drop, pick

# The server's watch for blocking calls looks at every event loop of the process. The graphs work in the loop of their
# workspace (``_on_workspace_loop``), where a call that blocks holds up no request; the factories open it in a thread.
os.environ["LANGGRAPH_ALLOW_BLOCKING"] = "true"

T = TypeVar("T")
_END = object()
_workspaces: dict[str, Workbench] = {}
_opening = threading.Lock()


class ConversationOptions(Frozen):
    """What a client may send next to the message, in the input or as context; an unknown name is refused."""

    kb_prefix: str = ""
    """The knowledge base; empty: the router chooses"""
    requested_kb_prefix: str = ""
    requested_kb_prefixes: list[str] = Field(default_factory=list)
    """Several of them"""
    review: list[str] = Field(default_factory=list)
    """Where the run pauses: plan, step, reflect"""
    session_id: str = ""
    """The conversation; empty: that of the thread"""
    user_id: str = "default"
    worker_name: str = ""
    agent_type: str = ""
    thresholds: dict[str, float] = Field(default_factory=dict)
    plan: Json | None = None
    report: Json | None = None
    """Write a report: {} or its options"""
    as_of: str = ""
    known: str = ""
    debug: bool = False


class RetrievalOptions(BaseModel, use_attribute_docstrings=True):
    """What ``retrieval`` needs next to the query."""

    kb_prefix: str = ""
    """The knowledge base"""


class RouterOptions(BaseModel, use_attribute_docstrings=True):
    """What ``router`` may take next to the message."""

    requested_kb_prefixes: list[str] = Field(default_factory=list)
    """Knowledge bases; empty: it chooses"""
    worker_name: str = ""
    """KB:AGENT_TYPE; empty: it chooses"""


class ServedState(ConversationState, total=False):
    """The conversation graph's state, with its messages as a chat client shows them."""

    messages: Annotated[list[AnyMessage], add_messages]


class Binding(NamedTuple):
    """What a graph needs next to its nodes: the workspace, what completes an input, and the model of its options.

    ``complete`` takes the input, the options of context and ``configurable``, and the thread.
    """

    workbench: Workbench
    complete: Callable[[Json, Data, str], Data]
    options: type[BaseModel]


class BoundGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph with its ports, which works in the thread of its workspace; its copies have them too."""

    binding: Binding

    def copy(self, update: Json | None = None) -> BoundGraph:
        """Copy the graph with its binding; a server does so for each run."""
        return bind(self, self.binding, **(update or {}))

    def get_context_jsonschema(self, **_: Any) -> Json:
        """Return the schema of the options, from which Studio makes a form."""
        return self.binding.options.model_json_schema()

    async def astream(
        self, input: Any, config: Any = None, *, context: Any = None, **options: Any
    ) -> Any:
        """Stream as the graph does, with the ports bound and the input completed."""
        binding = self.binding
        configurable = dict((config or {}).get("configurable") or {})
        if isinstance(context, Mapping):
            configurable |= context
        if isinstance(input, Mapping):
            thread = str(configurable.get("thread_id") or uuid.uuid4().hex)
            sent = {
                name: value
                for name, value in configurable.items()
                if name in binding.options.model_fields
            }
            input = await asyncio.to_thread(binding.complete, dict(input), sent, thread)
        config = {**(config or {}), "configurable": configurable}
        events = super().astream(input, config, context=binding.workbench.ports(), **options)
        async for event in _on_workspace_loop(binding.workbench, events):
            yield event


async def _on_workspace_loop(workbench: Workbench, events: AsyncIterator[T]) -> AsyncGenerator[T]:
    """Yield events that are made on the loop of the workspace; leaving this cancels the work there."""
    loop = asyncio.get_running_loop()
    queue = asyncio.Queue[Any]()

    async def work() -> None:
        try:
            async for event in events:
                loop.call_soon_threadsafe(queue.put_nowait, event)
        finally:
            loop.call_soon_threadsafe(queue.put_nowait, _END)

    worker = asyncio.wrap_future(workbench._work.loop.submit(work()))
    try:
        while (event := await queue.get()) is not _END:
            yield event
        await worker
    finally:
        worker.cancel()


def bind(graph: Any, binding: Binding, **update: Any) -> BoundGraph:
    """Return a copy of the graph as a ``BoundGraph`` with its binding."""
    attributes = drop(vars(graph), "__orig_class__", "binding")
    bound = BoundGraph(**{**attributes, **update})
    bound.binding = binding
    return bound


def _in_a_thread(build: Callable[[], BoundGraph]) -> Callable[[], Awaitable[BoundGraph]]:
    """Return a factory that builds in a thread, since opening a workspace blocks."""

    @wraps(build)
    async def factory() -> BoundGraph:
        return await asyncio.to_thread(build)

    return factory


@_in_a_thread
def conversation() -> BoundGraph:
    """Return the conversation graph on the workspace of ``WORKBENCH_WORKSPACE`` (default ``.workbench``)."""
    wb = _workspace()
    conversations = wb.ports().conversations

    def complete(values: Json, sent: Data, thread: str) -> Data:
        message, messages = _take_question(values, "message")
        read = _read_options({**sent, **values})
        options = RunOptions.read(
            wb,
            {
                "kb": read.requested_kb_prefixes
                or read.requested_kb_prefix
                or read.kb_prefix
                or None,
                "worker": read.worker_name or read.agent_type,
                "session": read.session_id or thread,
                "user": read.user_id,
                **read.model_dump(
                    include={"review", "debug", "plan", "thresholds", "as_of", "known", "report"}
                ),
            },
        ).stored(thread)
        run_id = new_run_id()
        conversation_id = conversations.get_or_create_conversation_id(
            options["user"], options["session"]
        )
        message_id = conversations.append_message(
            conversation_id, "user", message, message_key=f"{run_id}:user"
        )
        state = initial_state(
            run_id,
            message,
            conversation_id=conversation_id,
            user_message_id=message_id,
            options=options,
        )
        return {**state, "messages": messages or [HumanMessage(message, id=f"{run_id}:user")]}

    graph = conversation_graph(ServedState)
    graph.add_node("reply", _reply)
    graph.add_edge("persist", "reply")
    return bind(graph.compile(), Binding(wb, complete, ConversationOptions))


async def _reply(state: ServedState) -> Json:
    """Add the answer as a message, which chat clients show."""
    return {"messages": [AIMessage(state["answer"], id=f"{state['run_id']}:assistant")]}


@_in_a_thread
def router() -> BoundGraph:
    """Return the router alone: a message gives ``route_decision``, ``kb_prefix`` and ``worker_name``."""
    wb = _workspace()

    def complete(values: Json, sent: Data, thread: str) -> Data:
        message, _ = _take_question(values, "message")
        return {"run_id": thread, **sent, **values, "message": message}

    return bind(build_router(), Binding(wb, complete, RouterOptions))


@_in_a_thread
def retrieval() -> BoundGraph:
    """Return the retrieval graph alone."""
    wb = _workspace()

    def complete(values: Json, sent: Data, thread: str) -> Data:
        query, _ = _take_question(values, "query")
        kb = values.pop("kb_prefix", "") or sent.get("kb_prefix", "")
        if not kb:
            raise RunError(
                f'Which knowledge base? Give "kb_prefix": one of {", ".join(wb.knowledge.names())}.'
            )
        wb.knowledge.get(kb)
        defaults = wb.agents.get(f"{kb}:fusion_agent").input(query, thread, thread)
        fixed = pick(defaults, "run_id", "query", "kb_prefix", "kb_prefixes", "route_decision")
        return {**defaults, "debug": False, **values, **fixed}

    return bind(build_retrieval().compile(), Binding(wb, complete, RetrievalOptions))


@_in_a_thread
def fusion() -> BoundGraph:
    """Return the fusion graph; ``FusionConfig`` has its options."""
    wb = _workspace()
    graph = build_fusion().compile().with_config({"configurable": fusion_options(wb.settings)})

    def complete(values: Json, sent: Data, thread: str) -> Data:
        defaults = {
            "session_id": thread,
            "canvas_path": "",
            "operation": "explanation",
            "messages": [],
            "query": "",
        }
        return {**defaults, **values}

    return bind(graph, Binding(wb, complete, FusionConfig))


def _take_question(values: Json, name: str) -> tuple[str, list[Any]]:
    """Take the question and the messages out of an input: its text is the last one of a person, unless it is named."""
    text = values.pop(name, None)
    messages = values.pop("messages", None) or []
    if not text:
        try:
            people = [m for m in convert_to_messages(messages) if m.type == "human"]
        except (ValueError, NotImplementedError) as error:
            raise RunError(f"messages cannot be read: {error}") from None
        if not people:
            raise RunError(
                f'Nothing is asked. Give {{"{name}": "..."}}, or a message of a person in "messages".'
            )
        text = str(people[-1].text)
    return checked_message(text), messages


def _read_options(values: Data) -> ConversationOptions:
    # as a form sends it
    filled = {name: value for name, value in values.items() if value is not None and value != ""}
    with refusing(options=ConversationOptions.model_fields):
        return ConversationOptions.model_validate(filled)


def _workspace() -> Workbench:
    """Return the workspace, opened once per process: a server asks for a graph with each request."""
    path = os.environ.get("WORKBENCH_WORKSPACE", ".workbench")
    with _opening:
        if path not in _workspaces:
            _workspaces[path] = Workbench.open(path)
        return _workspaces[path]
