"""The node that plans: with the role's model if there is one, else with the planner of the run; and replanning.

A new plan continues behind the steps that have begun: they stay, and new steps that would repeat one are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from langgraph.runtime import Runtime

from workbench.extensions import required
from workbench.graphs.model_plan import planned_by_model
from workbench.graphs.plan import FIRST_SEARCH, FULL, PLANNED_BY, SEARCH, say, scaled_budget, slug
from workbench.graphs.roles import model_plans
from workbench.graphs.route import is_driven, read_question
from workbench.plans import (
    ENDED_WELL,
    Plan,
    PlanStep,
    call_key,
    fresh_id,
    last_records,
    needed,
    step_renamed,
)
from workbench.ports import Context, Tools
from workbench.records.tape import RULES
from workbench.settings import Settings
from workbench.state import Decision, Json, Records, RetrievalState, RouteDecision
from workbench.tools.registry import check, require


async def planner(state: RetrievalState, runtime: Runtime[Context]) -> Json:
    """Make the plan; after an answer that changed the question, plan again behind the steps that have run."""
    context = runtime.context
    prefixes = state.get("kb_prefixes") or [state["kb_prefix"]]
    before = Plan.load(state["plan"]) if state.get("replan") else None
    given_plan = None if before else state.get("given_plan")
    plan = (
        Plan.load(given_plan)
        if given_plan
        else await _make_plan(state, context, prefixes, before)
    )
    if state.get("report") and not given_plan:
        stated = state.get("assumptions") or state["report"].get("assumptions") or []
        stated = [*stated, *state["report"].get("preferences", "").splitlines()]
        aspects = [] if "parts" in plan.metadata else state["report"].get("aspects", [])
        plan = with_aspects(plan, state["query"], aspects, stated, prefixes, context.settings)
        plan = plan if context.settings.strict_plan_signal else runnable(plan, context.tools)
    if before:
        plan = continued(plan, before, state.get("records", []))
    require(plan, context.tools)
    reason = "planned again for the changed question" if before else "planned for the question"
    if before and before.metadata.get(FIRST_SEARCH):
        reason = "planned by a model: the first search does not answer"
    author, why = ("fork", "given") if given_plan else ("planner", reason)
    context.runs.save_plan(state.get("run_id", ""), plan.dump(), author=author, reason=why)
    change = {
        "plan": plan.dump(),
        "kb_prefixes": prefixes,
        "iteration": state.get("iteration") or 1,
        "replan": False,
    }
    if state.get("wish"):
        change["wish"] = ""
    clarified = (d for d in state.get("decisions", []) if d["point"] == "clarify")
    return change if before else {**fresh_state(clarified), **change}


async def _make_plan(
    state: RetrievalState, context: Context, prefixes: list[str], before: Plan | None
) -> Plan:
    """Return the plan of the model or, where it gives none, of the planner."""
    query = state["query"]
    decision = state["route_decision"]
    refused: list[str] = []
    first = (
        context.settings.search_first
        and not before
        and not state.get("report")
        and not is_driven(state)
    )
    if not first and (is_driven(state) or model_plans(context)):
        make = required("nodes", "first_turn", "agent") if is_driven(state) else planned_by_model
        plan, refused = await make(state, context, context.bases(prefixes), before)
        if plan is not None:
            return plan
        if wish := state.get("wish"):  # the rules read it as a part of the question
            query = f"{query} {wish}"
            decision = {
                **decision,
                **read_question(query, context.bases(prefixes), context.today),
            }
    plan = await _by_planner(query, decision, context, prefixes)
    if first and model_plans(context):
        return plan.model_copy(update={"metadata": {**plan.metadata, FIRST_SEARCH: True}})
    if not refused:
        return plan
    metadata = {
        **plan.metadata,
        "instead_of": "agent" if is_driven(state) else "llm",
        "refused": refused,
    }
    return plan.model_copy(update={"metadata": metadata})


async def _by_planner(
    query: str, decision: RouteDecision, context: Context, prefixes: list[str]
) -> Plan:
    """Return the planner's plan: what it is asked is all that it may depend on."""
    bases = context.bases(prefixes)

    async def plan() -> Json:
        return (await context.planner(query, decision, bases, context.tools)).dump()

    args = {
        "query": query,
        "decision": decision,
        "bases": prefixes,
        "tools": sorted(context.tools),
    }
    name = getattr(context.planner, "name", "registered")
    version = " ".join([*(b.fingerprint() for b in bases), ""])
    settings = context.settings.model_dump(include=set(PLANNED_BY), exclude_defaults=True)
    # else a fork with another budget would get the plan with the old one
    if name == RULES and settings:
        args["settings"] = settings
    effect = await context.tape.aeffect("plan", name, args, plan, version=version)
    return Plan.load(effect.value)


def fresh_state(decided: Iterable[Decision] = ()) -> Json:
    """Return the state before a first plan: nothing of an earlier question, when a server's thread has several.

    ``decided`` are the decisions on this question before it was planned.
    """
    from langgraph.types import Overwrite

    lists = {
        "records": Overwrite([]),
        "reflections": Overwrite([]),
        "decisions": Overwrite(list(decided)),
    }
    return {**lists, "activated": [], "stop_reason": None}


def continued(new_plan: Plan, before: Plan, records: Records) -> Plan:
    """Return a new plan behind what has run: begun steps stay, so that their records keep their meaning; numbers go on.

    A new step that would only repeat one that ended well is left out, and whatever needs it takes the old one.
    """
    last = last_records(records)
    # what a begun step depends on stays too, begun or not
    needed_ids = {
        step_id
        for step in before.steps
        if step.step_id in last
        for step_id in needed(before, step.step_id)
    }
    begun = [step for step in before.steps if step.step_id in needed_ids]
    ran = {
        call_key(step.tool, step.tool_input): step.step_id
        for step in begun
        if step.step_id in last and last[step.step_id]["status"] in ENDED_WELL
    }
    numbers = [int(n) + 1 for step in begun for n in re.findall(r"^step_(\d+)", step.step_id)]
    number = max([len(begun), *numbers])
    ids: dict[str, str] = {}
    added: list[PlanStep] = []
    for step_id in new_plan.topological_order():
        step = step_renamed(new_plan.step(step_id), ids)
        old = ran.get(call_key(step.tool, step.tool_input))
        if old:
            ids[step_id] = old
            continue
        label = re.sub(r"^step_\d+_?", "", step_id) or "step"
        ids[step_id] = f"step_{number}_{label}"
        number += 1
        added.append(step.model_copy(update={"step_id": ids[step_id]}))
    return new_plan.model_copy(update={"version": before.version + 1, "steps": [*begun, *added]})


def with_aspects(
    plan: Plan,
    query: str,
    aspects: Sequence[tuple[str, Sequence[str]]],
    stated: Sequence[str],
    prefixes: Sequence[str],
    settings: Settings,
) -> Plan:
    """Return the plan and its further searches; where there is no room for one each, aspects are searched together.

    Args:
        plan: for what the topic is about.
        query: the same.
        aspects: each with its parts.
        stated: what is assumed.
        prefixes: the knowledge bases.
        settings: how many tasks a plan may have, and a step's budget.
    """
    wanted = [" ".join([title, *parts]) for title, parts in aspects]
    room = max(1, (settings.max_tasks - len(plan.steps)) // max(1, len(prefixes)))
    groups = [" ".join(wanted[n::room]) for n in range(min(room, len(wanted)))]
    for group in groups:
        for kb in prefixes:
            own = {"kb_prefix": kb} if len(prefixes) > 1 else {}
            step = PlanStep(
                step_id=fresh_id(plan, slug(group)),
                objective=say("plan_search", f"{query}: {group}"),
                tool=SEARCH,
                tool_input={"query": f"{query} {group}", **own},
                budget=scaled_budget(settings, *FULL),
            )
            plan = plan.adding(step)
    return plan.model_copy(
        update={"assumptions": list(dict.fromkeys([*stated, *plan.assumptions]))}
    )


def runnable(plan: Plan, tools: Tools) -> Plan:
    """Return the plan without the steps that cannot run and those that wait for them: what a lax signal runs."""
    while bad := {p["step_id"] for p in check(plan, tools)} & set(plan.by_id()):
        plan = plan.model_copy(
            update={"steps": [step for step in plan.steps if step.step_id not in bad]}
        )
    return plan
