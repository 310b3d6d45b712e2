"""Graphs of every kind that LangGraph makes, each with what it is asked, what people answer, and what it executed."""

import operator
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.channels import UntrackedValue
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

executed: Counter[str] = Counter()
"""How often each node, tool and model was really executed."""


class Log(TypedDict, total=False):
    question: str
    log: Annotated[list[str], operator.add]
    approved: bool
    answer: str


def step(name: str) -> Callable[[Any], Any]:
    def node(state: Log) -> Any:
        executed[name] += 1
        return {"log": [f"{name} of {state['question']}"]}

    return node


def review(state: Log) -> Any:
    executed["review"] += 1
    return {"approved": interrupt({"approve": state["question"]}), "log": ["review"]}


def finish(state: Any) -> Any:  # of any schema
    executed["finish"] += 1
    return {"answer": f"{len(state['log'])} steps, approved: {state.get('approved')}"}


class Scripted(BaseChatModel):
    """Calls ``search`` for what the person said, then answers with what it read."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self

    def _generate(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        executed["model"] += 1
        last = messages[-1]
        if isinstance(last, ToolMessage):
            reply = AIMessage(f"It says: {last.content}", usage_metadata=_usage(7))
        else:
            call = {"name": "search", "args": {"query": last.content}, "id": f"call {executed['model']}"}
            reply = AIMessage("", tool_calls=[call], usage_metadata=_usage(5))
        return ChatResult(generations=[ChatGeneration(message=reply)])


class Calling(Scripted):
    """Calls another tool in place of ``search``."""

    name_of_tool: str

    def _generate(self, *given: Any, **named: Any) -> ChatResult:
        result = super()._generate(*given, **named)
        message: Any = result.generations[0].message
        for call in message.tool_calls:
            call |= {"name": self.name_of_tool, "args": {}}
        return result


def _usage(tokens: int) -> Any:
    return {"input_tokens": tokens - 2, "output_tokens": 2, "total_tokens": tokens}


@tool
def search(query: str) -> str:
    """Look something up."""
    executed["search"] += 1
    return f"{query} was built by Ann Lee."


@tool
def guarded(query: str) -> str:
    """Look something up, when a person allows it."""
    executed["guarded"] += 1
    allowed = interrupt({"allow": query})
    assert allowed == query, f"the answer to {allowed} was taken for one to {query}"
    return f"{query}: allowed"


@dataclass
class Kind:
    """A graph, what it is given, the answers by the order of questions, and how a run of it is made."""

    build: Callable[[], Any]
    given: Any
    answers: list[Any] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)


def style(words: str) -> Any:
    """A config that says how to write."""
    return {"configurable": {"style": words}}


def line(*nodes: tuple[str, Any], schema: Any = Log, **how: Any) -> Any:
    """Nodes one behind the other."""
    graph = StateGraph(schema)
    return graph.add_sequence(nodes).add_edge(START, nodes[0][0]).compile(**how)


def plain() -> Any:
    return line(("first", step("first")), ("review", review), ("finish", finish), name="plain")


def asynchronous() -> Any:
    async def first(state: Log) -> Any:
        executed["first"] += 1
        return {"log": ["first"]}

    async def ask(state: Log) -> Any:
        executed["ask"] += 1
        return {"approved": interrupt("May I?"), "log": [interrupt("And how?")]}

    return line(("first", first), ("ask", ask), ("finish", finish))


def react(model: Any = None, of: Any = search) -> Any:
    model = model or Scripted()

    def agent(state: MessagesState) -> Any:
        executed["agent"] += 1
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent).add_node("tools", ToolNode([of]))
    graph.add_edge(START, "agent").add_conditional_edges("agent", tools_condition).add_edge("tools", "agent")
    return graph.compile()


def approval_of_tools() -> Any:
    """Calls of one message ask, each for itself."""

    class Careful(Scripted):
        def _generate(self, *given: Any, **named: Any) -> ChatResult:
            result = super()._generate(*given, **named)
            message: Any = result.generations[0].message
            mills = ("Moss Mill", "Fen Mill", "Tide Mill") if message.tool_calls else ()
            message.tool_calls = [tool_call(name="guarded", args={"query": mill}, id=mill) for mill in mills]
            return result

    return react(Careful(), guarded)


def _inner(**how: Any) -> Any:
    return line(("read", step("read")), ("review", review), ("note", step("note")), **how)


class Once(TypedDict, total=False):
    question: str
    log: list[str]
    approved: bool
    answer: str


def _outer(inner: Any) -> Any:
    graph = StateGraph(Once)
    graph.add_node("inner", inner).add_node("finish", finish)
    return graph.add_edge(START, "inner").add_edge("inner", "finish").compile()


def subgraph_with_memory() -> Any:
    return _outer(_inner(checkpointer=True))


def subgraph_called() -> Any:
    inner = _inner()

    def call(state: Once) -> Any:
        executed["call"] += 1
        return inner.invoke({"question": state["question"], "log": []})

    return _outer(call)


def three_deep() -> Any:
    middle = StateGraph(Log)
    middle.add_node("inner", _inner()).add_edge(START, "inner")
    return _outer(middle.compile())


def map_reduce() -> Any:
    def work(state: Any) -> Any:
        executed["work"] += 1
        return {"log": [f"worked on {state['part']}"]}

    graph = StateGraph(Log)
    graph.add_node("work", work).add_node("finish", finish)
    graph.add_conditional_edges(START, lambda state: [Send("work", {"part": part}) for part in state["question"]])
    return graph.add_edge("work", "finish").compile()


def supervisor() -> Any:
    def boss(state: Log) -> Command[Any]:
        executed["boss"] += 1
        done = len(state["log"])
        return Command(goto=["one", "two", END][done], update={"answer": f"{done} reported"})

    graph = StateGraph(Log)
    graph.add_node("boss", boss, destinations=("one", "two", END))
    graph.add_node("one", step("one")).add_node("two", step("two"))
    return graph.add_edge(START, "boss").add_edge("one", "boss").add_edge("two", "boss").compile()


def deferred() -> Any:
    graph = StateGraph(Log)
    for name in ("left", "right", "further"):
        graph.add_node(name, step(name))
    graph.add_node("finish", finish, defer=True)
    graph.add_edge(START, "left").add_edge(START, "right").add_edge("right", "further")
    return graph.add_edge("left", "finish").add_edge("further", "finish").compile()


class Typed(BaseModel):
    question: str
    log: Annotated[list[str], operator.add] = []
    answer: str = ""


@dataclass
class Reader:
    name: str


def typed() -> Any:
    def first(state: Typed, runtime: Runtime[Reader], config: RunnableConfig) -> Any:
        executed["first"] += 1
        return {"log": [f"{state.question} for {runtime.context.name}, {config['configurable'].get('style')}"]}

    def last(state: Typed) -> Any:
        executed["last"] += 1
        return {"answer": state.log[0].upper()}

    graph = StateGraph(Typed, context_schema=Reader)
    graph.add_sequence([("first", first), ("last", last)])
    return graph.add_edge(START, "first").compile()


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def with_store() -> Any:
    def chat(state: Chat, runtime: Runtime[Any]) -> Any:
        executed["chat"] += 1
        assert runtime.store is not None
        runtime.store.put(("seen",), "last", {"text": state["messages"][-1].content})
        return {"messages": [AIMessage(f"{len(state['messages'])} messages so far")]}

    graph = StateGraph(Chat).add_node("chat", chat).add_edge(START, "chat")
    return graph.compile(store=InMemoryStore())


def breakpoint_before() -> Any:
    return line(("first", step("first")), ("finish", finish), interrupt_before=["finish"])


def routed_by_a_model() -> Any:
    """The condition asks a model and draws lots: where it led is on the tape."""
    model = Scripted()

    def route(state: Log) -> str:
        executed["route"] += 1
        reply = model.invoke([HumanMessage(state["question"])])
        return random.choice(["left", "right"]) if reply.tool_calls else END

    graph = StateGraph(Log)
    for name in ("first", "left", "right"):
        graph.add_node(name, step(name))
    graph.add_edge(START, "first").add_conditional_edges("first", route, ["left", "right", END])
    return graph.add_node("finish", finish).add_edge("left", "finish").add_edge("right", "finish").compile()


class Interview(MessagesState):
    topic: Annotated[str, lambda first, second: second]


def interviews() -> Any:
    """Messages without ids go by ``Send`` into a subgraph, in their short forms, twice the same."""
    model = Scripted()

    def ask(state: Interview) -> Any:
        executed["ask"] += 1
        return {"messages": [{"role": "user", "content": f"What of {state['topic']}?"}]}

    def reply(state: Interview) -> Any:
        executed["reply"] += 1
        return {"messages": model.invoke(state["messages"]).tool_calls and ("assistant", "Much.")}

    inner = StateGraph(Interview).add_node("ask", ask).add_node("reply", reply)
    inner.add_edge(START, "ask").add_edge("ask", "reply")
    graph = StateGraph(Interview).add_node("interview", inner.compile())

    def send(state: Interview) -> Any:
        return [Send("interview", {"topic": topic, "messages": [HumanMessage("So")]}) for topic in ("mills", "mills")]

    return graph.add_conditional_edges(START, send, ["interview"]).compile()


@dataclass
class Notes:
    question: str
    found: list[str] = field(default_factory=list)
    summary: str = ""


def changed_in_place() -> Any:
    """Nodes change their state in place, a dataclass and a list in it."""

    def look(state: Notes) -> Any:
        executed["look"] += 1
        state.found.append(state.question)
        return {"found": state.found}

    def sum_up(state: Notes) -> Any:
        executed["sum_up"] += 1
        state.summary = f"{state.summary}{len(state.found)}"
        return {"summary": state.summary}

    return line(("look", look), ("sum_up", sum_up), schema=Notes)


def with_memory() -> Any:
    """The store is the workspace's, since the graph was compiled without one."""

    def recall(state: Log, store: BaseStore) -> Any:
        executed["recall"] += 1
        item = store.get(("likes",), "film")
        return {"log": [item.value["film"] if item else "nothing"]}

    async def learn(state: Log, runtime: Runtime[Any]) -> Any:
        executed["learn"] += 1
        assert runtime.store is not None
        await runtime.store.aput(("likes",), "film", {"film": state["question"]})
        return {"log": [str(len(await runtime.store.asearch(("likes",))))]}

    return line(("recall", recall), ("learn", learn), ("finish", finish))


class Counted(Log, total=False):
    remaining_steps: RemainingSteps
    calls: Annotated[int, UntrackedValue]


def counted_steps() -> Any:
    """Reads counters that begin again after a pause."""

    def count(state: Counted) -> Any:
        executed["count"] += 1
        return {"calls": state.get("calls", 0) + 1, "log": ["enough" if state["remaining_steps"] > 2 else "short"]}

    return line(("count", count), ("review", review), ("again", count), ("finish", finish), schema=Counted)


def tasks() -> Any:
    @task
    async def write(topic: str) -> str:
        executed["write"] += 1
        return str((await Scripted().ainvoke(topic)).tool_calls[0]["args"]["query"])

    @task
    def grade(text: str, strict: bool = False) -> int:
        executed["grade"] += 1
        return len(text) - strict

    @entrypoint()
    async def flow(topic: str, *, previous: Any = None) -> Any:
        executed["flow"] += 1
        essay = await write(topic)
        approved = interrupt({"approve": essay})
        return entrypoint.final(value={"essay": essay, "grade": await grade(essay, not approved)}, save=essay)

    return flow


def inbox() -> Any:
    """Asks as Agent Inbox reads it."""

    def act(state: Log) -> Any:
        executed["act"] += 1
        request = {
            "action_request": {"action": "write", "args": {"text": state["question"]}},
            "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": True, "allow_accept": True},
            "description": "Write?",
        }
        response = interrupt([request])[0]
        return {"log": [f"{response['type']} {response['args']}"]}

    return StateGraph(Log).add_node("act", act).add_edge(START, "act").compile()


def middleware() -> Any:
    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware

    return create_agent(Scripted(), [search], middleware=[HumanInTheLoopMiddleware(interrupt_on={"search": True})])


def langgraph_swarm() -> Any:
    """The package's swarm of two agents of LangChain."""
    import langgraph_swarm as package
    from langchain.agents import create_agent

    hand_over = package.create_handoff_tool(agent_name="second")
    first = create_agent(Calling(name_of_tool="transfer_to_second"), [hand_over], name="first")
    second = create_agent(Scripted(), [search], name="second")
    return package.create_swarm([first, second], default_active_agent="first").compile()


@dataclass
class Style:
    words: str = "plain"


def defaults() -> Any:
    """Nobody gives a context: it has its defaults. The node is bound to its model and name."""

    def call(state: Log, runtime: Runtime[Style], *, model: Any, name: str) -> Any:
        executed["call"] += 1
        return {"answer": f"{name}, {runtime.context.words}: {model.invoke(state['question']).tool_calls[0]['name']}"}

    graph = StateGraph(Log, context_schema=Style).add_node("call", partial(call, model=Scripted(), name="Ann"))
    return graph.add_edge(START, "call").compile()


LOG = {"question": "Moss Mill", "log": []}
SAID = {"messages": [("user", "Moss Mill")]}
KINDS: dict[str, Kind] = {
    "plain": Kind(plain, LOG, [True]),
    "asynchronous": Kind(asynchronous, LOG, [True, "gently"]),
    "react": Kind(react, SAID),
    "approval_of_tools": Kind(approval_of_tools, SAID, 3 * [lambda asked: asked["allow"]]),
    "subgraph_with_memory": Kind(subgraph_with_memory, LOG, [True]),
    "subgraph_without_memory": Kind(lambda: _outer(_inner(checkpointer=False)), LOG, [True]),
    "subgraph_called": Kind(subgraph_called, LOG, [True]),
    "three_deep": Kind(three_deep, LOG, [True]),
    "map_reduce": Kind(map_reduce, LOG),
    "supervisor": Kind(supervisor, LOG),
    "deferred": Kind(deferred, LOG),
    "typed": Kind(typed, {"question": "why"}, [], {"context": Reader("Ann"), "config": style("short")}),
    "with_store": Kind(with_store, SAID),
    "breakpoint_before": Kind(breakpoint_before, LOG, [None]),
    "routed_by_a_model": Kind(routed_by_a_model, LOG),
    "interviews": Kind(interviews, {"topic": "mills", "messages": []}),
    "changed_in_place": Kind(changed_in_place, {"question": "Moss Mill"}),
    "with_memory": Kind(with_memory, LOG),
    "counted_steps": Kind(counted_steps, LOG, [True]),
    "tasks": Kind(tasks, "mills", [True]),
    "inbox": Kind(inbox, LOG, [[{"type": "accept", "args": None}]]),
    "middleware": Kind(middleware, SAID, [{"decisions": [{"type": "approve"}]}]),
    "defaults": Kind(defaults, LOG),
    "langgraph_swarm": Kind(langgraph_swarm, SAID),
}
