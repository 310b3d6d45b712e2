"""The plan of a report: a search for each aspect; and a step whose findings were found wanting, which is done again.

A ``reflection`` step validates what others found. The newest attempt of a step counts: what the earlier one found is
out as soon as the step is tried again.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.graphs.plan import FULL, SEARCH, say, scaled_budget, slug
from workbench.plans import Plan, PlanStep, fresh_id, last_records
from workbench.ports import Context, Tools
from workbench.settings import Settings
from workbench.state import ExecutionRecord, Records, RetrievalState, unique
from workbench.tools.registry import check


def plan_report(
    plan: Plan, state: RetrievalState, context: Context, prefixes: Sequence[str]
) -> Plan:
    """Return the plan of a question with the searches of a report on it."""
    report = state["report"]
    stated = state.get("assumptions") or report.get("assumptions") or []
    stated = [*stated, *report.get("preferences", "").splitlines()]
    aspects = [] if "parts" in plan.metadata else report.get("aspects", [])
    plan = with_aspects(plan, state["query"], aspects, stated, prefixes, context.settings)
    return plan if context.settings.strict_plan_signal else runnable(plan, context.tools)


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
    return plan.copy_with(assumptions=unique([*stated, *plan.assumptions]))


def runnable(plan: Plan, tools: Tools) -> Plan:
    """Return the plan without the steps that cannot run and those that wait for them: what a lax signal runs."""
    while bad := {p["step_id"] for p in check(plan, tools)} & set(plan.by_id()):
        plan = plan.copy_with(steps=[step for step in plan.steps if step.step_id not in bad])
    return plan


def current_records(
    plan: Plan, records: Sequence[ExecutionRecord], settings: Settings
) -> list[ExecutionRecord]:
    """Return the records that count for what runs next, in the order in which they came.

    A step that a reflection found wanting is to run again with that reflection, as often as the settings allow.
    """
    max_retries = settings.reflection_max_retries if settings.reflection_allow_retry else 0
    current = list(records)
    for step in plan.steps:
        failures = [
            place
            for place, record in enumerate(current)
            if record["step_id"] == step.step_id and _missing(record) is not None
        ]
        if failures and len(failures) <= max_retries:
            again = {step.step_id, *validated(step)}
            current = [
                r
                for place, r in enumerate(current)
                if place > failures[-1] or r["step_id"] not in again
            ]
    return current


def asking_for_missing(plan: Plan, records: Records) -> Plan:
    """Return the plan with what the last reflection on a step found missing in the query of the step."""
    last = last_records(records)
    steps = plan.by_id()
    for reflection in plan.steps:
        if reflection.step_id in last and (words := _missing(last[reflection.step_id])):
            for step_id in validated(reflection):
                steps[step_id] = asking_for(plan.step(step_id), words)
    return plan.copy_with(steps=[steps[step.step_id] for step in plan.steps])


def asking_for(step: PlanStep, missing: Sequence[str]) -> PlanStep:
    """Return the step with what is missing in its query, once.

    >>> step = PlanStep(step_id="a", objective="", tool="t", tool_input={"query": "who built the mill"})
    >>> asking_for(step, ["died", "mill"]).tool_input["query"]
    'who built the mill died'
    """
    query = step.tool_input.get("query")
    if not isinstance(query, str):
        return step
    more = [word for word in missing if word.casefold() not in query.casefold()]
    return step.copy_with(tool_input={**step.tool_input, "query": " ".join([query, *more])})


def validated(step: PlanStep) -> list[str]:
    """Return the steps that a reflection is on."""
    return step.dependencies() if step.tool == "reflection" else []


def _missing(record: ExecutionRecord) -> list[str] | None:
    """Return what a reflection found missing; None for any other record, and where it was satisfied."""
    seen = [sub["detail"] for sub in record["sub_steps"] if sub["detail"].get("passed") is False]
    if record["tool"] != "reflection" or not seen:
        return None
    return [str(word) for detail in seen for word in detail["missing"]]
