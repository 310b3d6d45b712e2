"""The conversation graph: [route | recall] -> prepare_retrieval -> [retrieval | generate], then generate -> persist.

The retrieval graph is a node of it, not a call inside one: it can be unfolded in a drawing, streamed, interrupted and
inspected. A knowledge base with an answerer of its own is answered by ``kb_handler`` in place of ``generate``; a report
is written by the ``reporter``, a graph like the retrieval.
"""

from __future__ import annotations

import asyncio
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from pydantic import Field

from workbench.events import logged, progress
from workbench.extensions import missing, provided, required
from workbench.graphs.generate import generate
from workbench.graphs.planner import fresh_state
from workbench.graphs.retrieval import build_retrieval
from workbench.graphs.roles import ModelForm, ask_model
from workbench.graphs.route import (
    build_router,
    only_noted,
    parse_worker_names,
    read_question,
    requested_bases,
    with_preferences,
)
from workbench.graphs.slots import history_text, read_history
from workbench.language.followup import standalone
from workbench.language.words import is_small_talk
from workbench.ports import Bases, Context
from workbench.records.figures import retrieval_seconds
from workbench.settings import RULES
from workbench.state import ConversationState, Data, Json, RouteDecision

# --- The last node: store the answer and the result, each under a key of the run ---

_RESULT = """
    query kb_prefix kb_prefixes worker_name resolved_agent_type route_decision use_retrieval history
    memory_context conversation_summary episodic_memory remembered noted recalls reflections report clarifications
    outline sections thresholds merged runs stop_reason answer answer_kind citations support partial routing_ms
    retrieval_ms generation_ms
"""
RESULT_KEYS = _RESULT.split()


async def persist(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Store the answer and the result; running it again stores nothing twice."""
    conversations = runtime.context.conversations
    runs = runtime.context.runs
    run_id = state["run_id"]
    records = state["records"]
    change = {"retrieval_ms": round(retrieval_seconds(records) * 1000, 3) if records else 0.0}
    conversations.append_message(
        state["conversation_id"],
        "assistant",
        state["answer"],
        message_key=f"{run_id}:assistant",
        citations=state.get("citations", []),
        debug={"run_id": run_id, "only_noted": only_noted(state)},
        partial=state.get("partial", False),
        answers=state.get("user_message_id") or "",
    )
    if state.get("noted") and runtime.context.tape.mode == "live" and not state.get("partial"):
        keep = required("nodes", "keep", "memory")
        keep(
            runtime.context.memory, state, runtime.context.settings.role_model("memory") or RULES
        )
    result = {**state, **change}
    runs.save_result(run_id, {key: result[key] for key in RESULT_KEYS if key in result})
    return change


def build_conversation(checkpointer: Any = None) -> CompiledStateGraph[Any, Context, Any, Any]:
    """Return the parent graph, compiled. The child has its own checkpoints, so it can be resumed alone."""
    return conversation_graph().compile(checkpointer=checkpointer)


def conversation_graph(schema: Any = ConversationState) -> StateGraph[Any, Context, Any, Any]:
    """Build the parent graph, not compiled; another schema may add keys."""
    graph = StateGraph(schema, context_schema=Context)
    graph.add_node("route", build_router())
    graph.add_node(logged("memory", recall))
    graph.add_node(logged("prepare", prepare_retrieval))
    graph.add_node("retrieval", build_retrieval().compile(checkpointer=True))
    graph.add_node(logged("generate", kb_handler))
    graph.add_node(logged("generate", generate))
    graph.add_node(logged("persist", persist))
    graph.add_edge(START, "route")
    graph.add_edge(START, "recall")  # at once: each may ask a model
    graph.add_edge(["route", "recall"], "prepare_retrieval")
    answerers = ["kb_handler", "generate"]
    first = []
    if add_reporter := provided("nodes", "reporter"):
        add_reporter(graph, whether_to_retrieve)
        answerers = [*answerers, "reporter"]
        first = ["clarify"]
    graph.add_conditional_edges(
        "prepare_retrieval", whether_to_clarify, [*first, "retrieval", *answerers]
    )
    graph.add_conditional_edges("retrieval", who_answers, answerers)
    for answerer in answerers:
        graph.add_edge(answerer, "persist")
    graph.add_edge("persist", END)
    return graph


def initial_state(
    run_id: str, message: str, *, conversation_id: str, user_message_id: str, options: Data
) -> ConversationState:
    """Return what a run begins with. ``options`` are those of ``Workbench.ask``, as the run store keeps them."""
    return ConversationState(
        run_id=run_id,
        request_id=run_id,
        message=message,
        query=message,
        conversation_id=conversation_id,
        user_message_id=user_message_id,
        session_id=options["session"],
        user_id=options["user"],
        requested_kb_prefixes=options["kb"],
        worker_name=options["worker"],
        review=options["review"],
        given_plan=options.get("plan"),
        without=options.get("without", []),
        thresholds=options["thresholds"],
        dates=options.get("dates") or ["", ""],
        needs=options.get("needs", {}),
        pieces=options.get("pieces", {}),
        **({"report": options["report"], "sections": []} if "report" in options else {}),
        incognito=options["incognito"],
        debug=options["debug"],
        decisions=[],
        records=[],
        reflections=[],
        stop_reason=None,
        answer="",
        citations=[],
        support=[],
        error=None,
        partial=False,
    )


# --- What is remembered, and the question as it stands alone; without the memory part nothing is recalled ---


async def recall(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Load what is remembered for a message, and resolve a follow-up at the same time."""
    change, question = await asyncio.gather(
        _recalled(state, runtime), _follow_up(state, runtime.context)
    )
    return {**change, "stands_alone": question}


class StandsAlone(ModelForm):
    """The form of the follow-up's model."""

    question: str = Field(min_length=1, max_length=500)


async def _follow_up(state: Data, context: Context, message: str = "") -> str:
    """Return the message with what it refers to, by the model; "" where none is asked, or it says nothing of use."""
    message = message or state["message"]
    history = read_history(state, context)
    if (
        "follow_up" not in context.models
        or not history
        or is_small_talk(message)
        or requested_bases(state) == []
    ):
        return ""
    slots = {
        "history": history_text(history, context.settings.history_window),
        "message": message,
    }
    reply = await ask_model(context, "follow_up", StandsAlone, slots, question=message)
    return " ".join(reply.form.question.split()) if reply.form else ""


async def _recalled(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Load what is remembered for a message; without the part the last messages, and a note that this is all.

    A greeting that the rules answer needs no more than the last messages either.
    """
    part = provided("nodes", "recall")
    context = runtime.context
    greeted = is_small_talk(state.get("message", "")) and "writer" not in context.models
    if part and not greeted:
        return dict(await part(state, runtime))
    history = read_history(state, context)
    counts = {
        "history_count": len(history),
        "has_memory_context": False,
        "has_summary": False,
        "episodic_count": 0,
    }
    runtime.stream_writer(
        {"history": counts if part else {**counts, "note": missing("memory", "memory")}}
    )
    return {
        "history": history,
        "remembered": [],
        "noted": [],
        "recalls": None,
        "to_search": state["message"],
    }


async def prepare_retrieval(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Fill the child's inputs: the question as it stands alone, how it reads then, and who answers it."""
    context = runtime.context
    prefixes = state["kb_prefixes"]
    bases = context.bases(prefixes)
    report_change = required("nodes", "topic", "reports")(state) if state.get("report") else {}
    query, decision = await _standing_alone({**state, **report_change}, context, bases)
    decision = with_preferences(state, decision, bases)
    if decision != state["route_decision"]:
        runtime.stream_writer({"route_decision": decision})
    change = {"query": query, "route_decision": decision, **report_change}
    # an answer to small talk, to a note, or from memory needs no evidence
    answered = is_small_talk(state["message"]) or state.get("recalls") or only_noted(state)
    if answered or not prefixes:
        return {**change, "use_retrieval": False, "answerer": "generate"}
    kb = state["kb_prefix"]
    answerer = "kb_handler" if kb in context.handlers else "generate"
    if state.get("report") and context.settings.auto_generate_report:
        answerer = "reporter"
    runtime.stream_writer(progress("retrieval"))
    await asyncio.gather(*(asyncio.to_thread(base.warm) for base in bases))
    return {
        **change,
        **fresh_state(),
        "use_retrieval": kb not in context.unsearched,
        "answerer": answerer,
        "resolved_agent_type": ",".join(
            worker.agent_type for worker in parse_worker_names(state["worker_name"])
        ),
        "iteration": 1,
    }


async def _standing_alone(
    state: ConversationState, context: Context, bases: Bases
) -> tuple[str, RouteDecision]:
    """Return the question with what it refers to, and its decision.

    The router saw the message without its history, so the question is read again.
    """
    message = state.get("to_search") or state["message"]
    history = state.get("history", [])
    decision = state["route_decision"]
    query = ""
    if not bases or is_small_talk(message) or (not history and message == state["message"]):
        return message, decision
    if message == state["message"]:
        query = state.get("stands_alone", "")
    else:  # a part of the message was only to be remembered, or it is a report's topic
        query = await _follow_up(state, context, message)
    query = query or standalone(message, history, bases)
    if query == state["message"]:
        return query, decision
    return query, {**decision, **read_question(query, bases, context.today)}


async def kb_handler(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Let the knowledge base's own answerer answer."""
    context = runtime.context
    began = context.clock.monotonic()
    kb = state["kb_prefix"]
    merged = state.get("merged")
    evidence = merged["retrieval_results"] if merged else []
    args = {"message": state["message"], "query": state["query"], "evidence": evidence}

    async def answer() -> Json:
        return dict(await context.handlers[kb](state, context))

    reply = (await context.tape.effect("handler", kb, args, answer)).value
    return {
        "answer": reply["answer"],
        "citations": reply.get("citations", []),
        "generation_ms": round((context.clock.monotonic() - began) * 1000, 3),
    }


async def whether_to_clarify(state: ConversationState) -> str:
    """Return the next node: what a report's question leaves open is found before anything is planned."""
    if state.get("report") and state["use_retrieval"]:
        return "clarify"
    return await whether_to_retrieve(state)


# LangGraph runs a function that is not asynchronous in another thread: for one line that costs more than the line.
async def whether_to_retrieve(state: ConversationState) -> str:
    """Return the next node: a greeting needs no search, and the answerer of a knowledge base may do without one."""
    return "retrieval" if state["use_retrieval"] else await who_answers(state)


async def who_answers(state: ConversationState) -> str:
    """Return the knowledge base's own answerer, when it has one."""
    return state["answerer"]
