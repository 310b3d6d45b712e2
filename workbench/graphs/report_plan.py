"""The plan of a report: what the question's plan has, and a search for each aspect of the topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.graphs.plan import ONE
from workbench.graphs.recipes import say
from workbench.plans import Plan, PlanBudget, PlanStep, fresh_id
from workbench.ports import Tool
from workbench.settings import Settings
from workbench.tools.registry import check


def with_aspects(
    plan: Plan,
    query: str,
    aspects: Sequence[tuple[str, Sequence[str]]],
    stated: Sequence[str],
    prefixes: Sequence[str],
    settings: Settings,
) -> Plan:
    """The plan and its further searches; where there is no room for one each, aspects are searched together.

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
                step_id=fresh_id(plan, "aspect"),
                objective=say("plan_search", query),
                tool=ONE,
                tool_input={"query": f"{query} {group}", **own},
                budget=PlanBudget(
                    timeout_s=settings.step_timeout_s,
                    top_k=settings.step_top_k,
                    max_evidence_count=settings.step_max_evidence,
                    max_retries=settings.step_max_retries,
                ),
            )
            plan = plan.adding(step)
    return plan.model_copy(update={"assumptions": list(dict.fromkeys([*stated, *plan.assumptions]))})


def runnable(plan: Plan, tools: Mapping[str, Tool]) -> Plan:
    """The plan without the steps that cannot run and those that wait for them: what a lax signal runs."""
    while bad := {p["step_id"] for p in check(plan, tools)} & set(plan.by_id()):
        plan = plan.model_copy(update={"steps": [step for step in plan.steps if step.step_id not in bad]})
    return plan
