"""The retrieval graph: planner, review_plan, dispatcher, executor (one a step), reflector, review_reflect, merger."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from workbench.events import logged
from workbench.extensions import call_node
from workbench.graphs.execute import executor, skip, unended
from workbench.graphs.merge import merger
from workbench.graphs.plan import FIRST_SEARCH
from workbench.graphs.planner import planner
from workbench.graphs.reflect import answers_enough, reflector
from workbench.graphs.review import ask_about_plan, review_plan, review_reflect
from workbench.knowledge.dated import question_dates
from workbench.plans import Plan, PlanStep, last_records, work_seconds
from workbench.ports import Context, Tools
from workbench.records.tape import key_of_record
from workbench.state import Json, Records, RetrievalState, StepTask


async def dispatcher(state: RetrievalState, runtime: Runtime[Context]) -> Json:
    """Ask about the wave at the review point ``step``, skip what can never start, and name the wave."""
    context = runtime.context
    budget = context.settings.time_budget_s
    spent = work_seconds(state["records"]) >= budget
    action, change = ("", Json()) if spent else _reviewed(state, runtime)
    if change.get("replan"):
        return {**change, "wave": []}
    now: RetrievalState = {**state, **change}  # type: ignore[typeddict-item]
    ending = "budget_exhausted" if spent else ""
    if action == "reject":
        ending = "stopped_by_reviewer"
    reasons = unended(now, ending) if ending else {}
    plan = Plan.load(now["plan"])
    reasons |= plan.blocked_steps(now["records"], now["activated"])
    skipped = skip(now, context, reasons)
    now["records"] = records = [*state["records"], *skipped]
    last = last_records(records)
    wave = [
        {
            "step_id": step.step_id,
            "attempt": last[step.step_id]["attempt"] + 1 if step.step_id in last else 1,
        }
        for step in _due(now, context, bool(ending))
    ]
    first = not wave and not ending and plan.metadata.get(FIRST_SEARCH)
    if first and not answers_enough(now, context):
        change["replan"] = True
    return {
        **change,
        "records": skipped,
        "wave": wave,
        "remaining_s": max(0.0, budget - work_seconds(records)),
    }


async def fan_out(state: RetrievalState) -> list[Send] | str:
    """Return one executor task for each step of the wave, the reflector after the last, or the planner."""
    if state.get("replan"):
        return "planner"
    plan = Plan.load(state["plan"])
    last = last_records(state["records"])
    tried = sorted(last)
    waking = {*last, *state["activated"]}
    total = sum(step.condition == "always" or step.step_id in waking for step in plan.steps)
    tasks = []
    asking = _validated("asking_for_missing", plan, plan, state["records"])
    for entry in state["wave"]:
        step = asking.step(entry["step_id"])
        task = StepTask(
            run_id=state.get("run_id", ""),
            kb_prefix=state["kb_prefix"],
            step=step.model_dump(mode="json"),
            attempt=entry["attempt"],
            iteration=state["iteration"],
            remaining_s=state["remaining_s"],
            sources={
                source: last[source]["raw_output_ref"] or ""
                for source, _ in step.references().values()
                if source in last
            },
            upstream={
                i: key_of_record(last[i]) if i in last else "" for i in step.dependencies()
            },
            dates=question_dates(state),
            tried=tried,
            wave=state["wave"],
            total=total,
        )
        tasks.append(Send("executor", task))
    return tasks or "reflector"


def next_wave(
    plan: Plan, records: Records, activated: Iterable[str], tools: Tools
) -> list[PlanStep]:
    """Return the steps to start together, by the plan's execution mode.

    ``sequential``: the first by priority. ``parallel``: all that are ready. ``adaptive``: all that are ready, but a
    tool that cannot run in parallel runs alone, after them.
    """
    ready = plan.ready_steps(records, activated)
    if plan.execution_mode == "sequential":
        return ready[:1]
    if plan.execution_mode == "adaptive":
        return [step for step in ready if tools[step.tool].parallel] or ready[:1]
    return ready


def _due(state: RetrievalState, context: Context, ending: bool = False) -> list[PlanStep]:
    """Return the next wave; a step whose results did not hold is due again, unless there is no time to find others."""
    plan = Plan.load(state["plan"])
    records = state["records"]
    if not ending:
        records = _validated("current_records", records, plan, records, context.settings)
    return next_wave(plan, records, state["activated"], context.tools)


def _reviewed(state: RetrievalState, runtime: Runtime[Context]) -> tuple[str, Json]:
    """Return a reviewer's action on the wave and what it changes; a wave of retries is not asked about."""
    if "step" not in state.get("review", []):
        return "", {}
    names = [step.step_id for step in _due(state, runtime.context)]
    if {*names} <= {record["step_id"] for record in state["records"]}:
        return "", {}
    return ask_about_plan("step", state, runtime, f"Run {', '.join(names)} now?", wave=names)


def _validated(node: str, default: Any, plan: Plan, *args: Any) -> Any:
    """Return what the part ``reports`` makes of a plan with steps that validate what others found."""
    validates = any(step.tool == "reflection" for step in plan.steps)
    return call_node(node, default, plan, *args) if validates else default


def build_retrieval(
    bound: Callable[[Any], Any] = lambda node: node,
) -> StateGraph[Any, Context, Any, Any]:
    """Return the graph, not compiled: a parent compiles it with ``checkpointer=True``, an agent without one.

    Args:
        bound: gives a node its ports, where the graph around has another context.
    """
    graph = StateGraph(RetrievalState, context_schema=Context)
    nodes: Any = [
        ("plan", planner),
        ("review", review_plan),
        ("dispatch", dispatcher),
        ("execute", executor),
        ("reflect", reflector),
        ("review", review_reflect),
        ("merge", merger),
    ]
    for kind, node in nodes:  # the executor's input is a task, not the state
        graph.add_node(
            bound(logged(kind, node)), input_schema=StepTask if node is executor else None
        )
    graph.add_edge(START, "planner")
    graph.add_edge("planner", "review_plan")
    graph.add_conditional_edges("review_plan", after_review, ["planner", "dispatcher", "merger"])
    graph.add_conditional_edges("dispatcher", fan_out, ["planner", "executor", "reflector"])
    graph.add_edge("executor", "dispatcher")
    graph.add_edge("reflector", "review_reflect")
    graph.add_conditional_edges(
        "review_reflect", after_review, ["planner", "dispatcher", "reflector", "merger"]
    )
    graph.add_edge("merger", END)
    return graph


async def after_review(state: RetrievalState) -> str:
    """Return where a decision leads: stop and merge, plan again, judge again, or run what is ready."""
    if state.get("stop_reason"):
        return "merger"
    if state.get("replan"):
        return "planner"
    return "reflector" if state.get("rejudge") else "dispatcher"
