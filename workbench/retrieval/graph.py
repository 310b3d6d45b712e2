"""The retrieval graph: planner, review_plan, dispatcher, executor (one a step), reflector, review_reflect, merger."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph

from workbench.context import Context
from workbench.events import logged
from workbench.retrieval.dispatch import dispatcher, fan_out
from workbench.retrieval.execute import executor
from workbench.retrieval.merge import merger
from workbench.retrieval.plan import planner
from workbench.retrieval.reflect import reflector
from workbench.retrieval.review import review_plan, review_reflect
from workbench.state import RetrievalState, StepTask


def build_retrieval() -> StateGraph[Any, Context, Any, Any]:
    """The graph, not compiled: a parent compiles it with ``checkpointer=True``, an agent without one."""
    graph = StateGraph(RetrievalState, context_schema=Context)
    task: Any = logged("executor", "execute", executor)  # its input is a task, not the state
    graph.add_node("planner", logged("planner", "plan", planner))
    graph.add_node("review_plan", logged("review_plan", "review", review_plan))
    graph.add_node("dispatcher", logged("dispatcher", "dispatch", dispatcher))
    graph.add_node("executor", task, input_schema=StepTask)
    graph.add_node("reflector", logged("reflector", "reflect", reflector))
    graph.add_node("review_reflect", logged("review_reflect", "review", review_reflect))
    graph.add_node("merger", logged("merger", "merge", merger))
    graph.add_edge(START, "planner")
    graph.add_edge("planner", "review_plan")
    graph.add_conditional_edges("review_plan", after_review, ["planner", "dispatcher", "merger"])
    graph.add_conditional_edges("dispatcher", fan_out, ["planner", "executor", "reflector"])
    graph.add_edge("executor", "dispatcher")
    graph.add_edge("reflector", "review_reflect")
    graph.add_conditional_edges("review_reflect", after_review, ["planner", "dispatcher", "reflector", "merger"])
    graph.add_edge("merger", END)
    return graph


def after_review(state: RetrievalState) -> str:
    """Where a decision leads: stop and merge, plan anew, judge anew, or run what is ready."""
    if state.get("stop_reason"):
        return "merger"
    if state.get("replan"):
        return "planner"
    return "reflector" if state.get("rejudge") else "dispatcher"
