"""The graphs for a LangGraph server (``langgraph.json``): factories that bind the ports of ``WORKBENCH_WORKSPACE``.

``conversation`` takes ``{"messages": [...]}``, as Studio sends it, or ``{"message": "..."}``, and with it ``review``,
``report``, ``plan`` and whatever else ``Asked`` has; ``retrieval`` and ``fusion`` take ``{"query": "..."}`` or
messages. Context and ``configurable`` fill in what the input leaves out, as ``{"kb_prefix": "papers"}``.
"""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, convert_to_messages
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workbench.errors import RunError, shown
from workbench.graphs.conversation import conversation_graph, initial_state
from workbench.graphs.retrieval import build_retrieval
from workbench.graphs.route import build_router, make_worker_name, read_question
from workbench.parts.fusion.graph import FusionConfig, build_fusion, fusion_options
from workbench.ports import Context
from workbench.records.store import new_run_id
from workbench.runs.asking import RunOptions, checked_message
from workbench.session import Workbench
from workbench.state import ConversationState, Data, Json

# The server's watch for blocking calls looks at every event loop of the process. The graphs work in the loop of their
# workspace (``_elsewhere``), where a call that blocks holds up nobody else; the factories open it in a thread.
os.environ["LANGGRAPH_ALLOW_BLOCKING"] = "true"

T = TypeVar("T")
_END = object()
_workspaces: dict[str, Workbench] = {}
_opening = threading.Lock()


class Asked(BaseModel):
    """What a client may say next to the message, in the input or as context; an unknown name is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kb_prefix: str = Field("", description="The knowledge base; empty: the router chooses")
    requested_kb_prefix: str = ""
    requested_kb_prefixes: list[str] = Field(default_factory=list, description="Several of them")
    review: list[str] = Field(default_factory=list, description="Where the run pauses: plan, step, reflect")
    session_id: str = Field("", description="The conversation; empty: that of the thread")
    user_id: str = "default"
    worker_name: str = ""
    agent_type: str = ""
    thresholds: dict[str, float] = Field(default_factory=dict)
    plan: Json | None = None
    report: Json | None = Field(None, description="Write a report: {} or its options")
    as_of: str = ""
    known: str = ""
    debug: bool = False


class AskedOfRetrieval(BaseModel):
    """What ``retrieval`` and ``fusion`` need next to the query."""

    kb_prefix: str = Field("", description="The knowledge base")


class AskedOfRouter(BaseModel):
    """What ``router`` may be told next to the message."""

    requested_kb_prefixes: list[str] = Field(default_factory=list, description="Knowledge bases; empty: it chooses")
    worker_name: str = Field("", description="KB:AGENT_TYPE; empty: it chooses")


class ServedState(ConversationState, total=False):
    """The conversation graph's state, with its messages as a chat client shows them."""

    messages: Annotated[list[AnyMessage], add_messages]


class Binding(NamedTuple):
    """What a graph needs next to its nodes: the workspace, what completes an input, and the form of its options."""

    workbench: Workbench
    ports: Context
    complete: Callable[[Json, Data, str], Data]
    options: type[BaseModel]


class BoundGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph with its ports, which works in the thread of its workspace; its copies have them too."""

    binding: Binding

    def copy(self, update: Json | None = None) -> BoundGraph:
        """Copy the graph with its binding; a server does so for each run."""
        attributes = {name: value for name, value in vars(self).items() if name not in ("__orig_class__", "binding")}
        return bound(type(self)(**{**attributes, **(update or {})}), self.binding)

    def get_context_jsonschema(self, **_: Any) -> Json:
        """Return the form of the options, which Studio shows."""
        return self.binding.options.model_json_schema()

    async def astream(self, input: Any, config: Any = None, *, context: Any = None, **options: Any) -> Any:
        """Stream as the graph does, with the ports bound and the input made whole."""
        workbench, ports, complete, form = self.binding
        configurable = dict((config or {}).get("configurable") or {})
        if isinstance(context, Mapping):
            configurable |= context
        if isinstance(input, Mapping):
            thread = str(configurable.get("thread_id") or uuid.uuid4().hex)
            told = {name: value for name, value in configurable.items() if name in form.model_fields}
            input = await asyncio.to_thread(complete, dict(input), told, thread)
        config = {**(config or {}), "configurable": configurable}
        events = super().astream(input, config, context=ports, **options)
        async for event in _elsewhere(workbench, events):
            yield event


async def _elsewhere(workbench: Workbench, events: AsyncIterator[T]) -> AsyncGenerator[T]:
    """Yield events that are made on the loop of the workspace; leaving this ends the work there."""
    here, made, working = asyncio.get_running_loop(), asyncio.Queue[Any](), list[Any]()

    async def work() -> None:
        working.extend((asyncio.get_running_loop(), asyncio.current_task()))
        try:
            async for event in events:
                here.call_soon_threadsafe(made.put_nowait, event)
        finally:
            here.call_soon_threadsafe(made.put_nowait, _END)

    ended = asyncio.ensure_future(asyncio.to_thread(workbench.call, work()))
    try:
        while (event := await made.get()) is not _END:
            yield event
        await ended
    finally:
        if not ended.done() and working:
            loop, task = working
            loop.call_soon_threadsafe(task.cancel)


def bound(graph: Any, binding: Binding) -> BoundGraph:
    """Return the graph as one of these, with its binding."""
    if not isinstance(graph, BoundGraph):
        attributes = {name: value for name, value in vars(graph).items() if name != "__orig_class__"}
        graph = BoundGraph(**attributes)
    graph.binding = binding
    return graph


async def conversation() -> BoundGraph:
    """Return the conversation graph on the workspace of ``WORKBENCH_WORKSPACE`` (default ``.workbench``)."""
    return await asyncio.to_thread(_conversation)


def _conversation() -> BoundGraph:
    wb = _workspace()
    ports = wb.ports()

    def complete(given: Json, told: Data, thread: str) -> Data:
        message, messages = _message(given, "message"), given.pop("messages", [])
        asked = _read(Asked, {**told, **given})
        kb = asked.requested_kb_prefixes or asked.requested_kb_prefix or asked.kb_prefix or None
        given = {"kb": kb, "review": asked.review, "user": asked.user_id, "debug": asked.debug, "plan": asked.plan}
        given |= {"worker": asked.worker_name or asked.agent_type, "thresholds": asked.thresholds}
        given |= {"session": asked.session_id or thread, "as_of": asked.as_of, "known": asked.known}
        options = RunOptions.read(wb, {**given, "report": asked.report}).stored(thread)
        message = checked_message(message, wb.settings.max_message_characters)
        run_id = new_run_id()
        conversation_id = ports.conversations.get_or_create_conversation_id(options["user"], options["session"])
        message_id = ports.conversations.append_message(conversation_id, "user", message, message_key=f"{run_id}:user")
        state = initial_state(
            run_id, message, conversation_id=conversation_id, user_message_id=message_id, options=options
        )
        return {**state, "messages": messages or [HumanMessage(message, id=f"{run_id}:user")]}

    graph = conversation_graph(ServedState)
    graph.add_node("reply", _reply)
    graph.add_edge("persist", "reply")
    return bound(graph.compile(), Binding(wb, ports, complete, Asked))


async def _reply(state: ServedState) -> Json:
    """Give the answer as a message too, which is what chat clients show."""
    return {"messages": [AIMessage(state["answer"], id=f"{state['run_id']}:assistant")]}


async def router() -> BoundGraph:
    """Return the router alone: a message gives ``route_decision``, ``kb_prefix`` and ``worker_name``."""
    return await asyncio.to_thread(_router)


def _router() -> BoundGraph:
    wb = _workspace()

    def complete(given: Json, told: Data, thread: str) -> Data:
        message = checked_message(_message(given, "message"), wb.settings.max_message_characters)
        given.pop("messages", None)
        return {"run_id": thread, **told, **given, "message": message}

    return bound(build_router(), Binding(wb, wb.ports(), complete, AskedOfRouter))


async def retrieval() -> BoundGraph:
    """Return the retrieval graph alone, on the same workspace."""
    return await asyncio.to_thread(_retrieval)


def _retrieval() -> BoundGraph:
    wb = _workspace()
    ports = wb.ports()

    def complete(given: Json, told: Data, thread: str) -> Data:
        query = checked_message(_message(given, "query"), wb.settings.max_message_characters)
        given.pop("messages", None)
        kb = given.pop("kb_prefix", "") or told.get("kb_prefix", "")
        if not kb:
            raise RunError(f'Which knowledge base? Give "kb_prefix": one of {", ".join(wb.knowledge.names())}.')
        decision = {
            "requested_kb_prefix": kb,
            "routed_kb_prefix": kb,
            "kb_prefix": kb,
            "confidence": 1.0,
            "method": "override",
            "reason": "asked for",
            "worker_name": make_worker_name(kb, "fusion_agent"),
            "media_type_hint": "",
            **read_question(query, ports.bases([kb]), ports.today),
        }
        filled = {"review": [], "thresholds": {}, "iteration": 1, "session_id": thread, "debug": False}
        known = {"route_decision": decision, "kb_prefix": kb, "kb_prefixes": [kb], "run_id": thread, "query": query}
        return {**filled, **given, **known}

    return bound(build_retrieval().compile(), Binding(wb, ports, complete, AskedOfRetrieval))


async def fusion() -> BoundGraph:
    """Return the fusion graph on the same workspace; ``FusionConfig`` has its options."""
    return await asyncio.to_thread(_fusion)


def _fusion() -> BoundGraph:
    wb = _workspace()
    graph = build_fusion().compile().with_config({"configurable": fusion_options(wb.settings)})

    def complete(given: Json, told: Data, thread: str) -> Data:
        filled = {"session_id": thread, "canvas_path": "", "operation": "explanation", "messages": [], "query": ""}
        return {**filled, **given}

    return bound(graph, Binding(wb, wb.ports(), complete, FusionConfig))


def _message(given: Json, name: str) -> Any:
    """Take the question out of an input: under its name, else the last message of a person."""
    if text := given.pop(name, None):
        return text
    try:
        people = [message for message in convert_to_messages(given.get("messages") or []) if message.type == "human"]
    except (ValueError, NotImplementedError) as error:
        raise RunError(f"messages cannot be read: {error}") from None
    if not people:
        raise RunError(f'Nothing is asked. Give {{"{name}": "..."}}, or a message of a person in "messages".')
    return str(people[-1].text)


def _read(form: type[Asked], given: Data) -> Asked:
    filled = {name: value for name, value in given.items() if value is not None and value != ""}  # as a form sends it
    try:
        return form.model_validate(filled)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        known = f" Known: {', '.join(form.model_fields)}." if fault["type"] == "extra_forbidden" else ""
        raise RunError(f"{where} cannot be {shown(fault['input'])}: {fault['msg'].rstrip('.')}.{known}") from None


def _workspace() -> Workbench:
    """Return the workspace, opened once in this process: a server asks for a graph with each request."""
    path = os.environ.get("WORKBENCH_WORKSPACE", ".workbench")
    with _opening:
        if path not in _workspaces:
            _workspaces[path] = Workbench.open(path)
        return _workspaces[path]
