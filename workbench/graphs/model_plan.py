"""The planner as a chat model: it fills in a bounded form, which becomes a plan and is checked like any other plan.

One repair is tried with the problems; then the deterministic planner takes over. ``plan.metadata`` says which of the
three it was, and why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from workbench.graphs.needs import read_needs
from workbench.graphs.plan import slug, summary
from workbench.graphs.roles import (
    NONE,
    OF_ALL,
    ModelForm,
    ask_model,
    card,
    described,
    history_text,
    left,
    offered,
    steps_text,
)
from workbench.plans import Plan, PlanStep, work_seconds
from workbench.ports import Bases, Context, Tools
from workbench.state import Data, Json, Op, RetrievalState
from workbench.tools.registry import BUILT_IN, check


class DraftCondition(ModelForm):
    """A condition of ``discover``: one typed field, compared with one value, or several for in, not_in, between."""

    field: str = Field(min_length=1, max_length=80)
    op: Op
    values: list[str] = Field(default_factory=list, max_length=10)


class DraftStep(ModelForm):
    """One step as the model writes it; names are the model's own, ids are ours."""

    name: str = Field(min_length=1, max_length=40)
    objective: str = Field(min_length=1, max_length=200)
    query: str = Field(min_length=1, max_length=300)
    entities: list[str] = Field(default_factory=list, max_length=8)
    conditions: list[DraftCondition] = Field(default_factory=list, max_length=6)
    sort_by: str = Field("", max_length=80)
    descending: bool = True
    candidates_from: str = Field("", max_length=40)
    entities_from: str = Field("", max_length=40)
    depends_on: list[str] = Field(default_factory=list, max_length=6)
    condition: Literal["always", "if_insufficient"] = "always"


async def planned_by_model(
    state: RetrievalState, context: Context, bases: Bases, before: Plan | None
) -> tuple[Plan | None, list[str]]:
    """Return the model's plan, or None and why it cannot be run.

    Args:
        state: of the run so far.
        context: the ports.
        bases: the knowledge bases that are asked.
        before: the plan so far, when a new plan replaces it.
    """
    query, decision, settings = state["query"], state["route_decision"], context.settings
    tools = offered(context.tools, bases)
    form = plan_form(tools, [base.name for base in bases], settings.max_tasks)
    route, records = summary(decision, bases), state.get("records", [])
    reflections = state.get("reflections", [])
    slots = {
        "question": json.dumps(query, ensure_ascii=False),
        "today": context.today,
        "corpus": card(bases),
        "tools": described(tools),
        "reading": json.dumps(route, ensure_ascii=False),
        "history": history_text(state.get("history", []), settings.history_window),
        "before": steps_text(before, records) if before else NONE,
        "needs": told_needs(reflections[-1]["signals"].get("needs", []) if reflections else [], query, state),
        "budget": left(context, settings.time_budget_s - work_seconds(records)),
        "wish": state.get("wish") or (state.get("report") or {}).get("preferences") or NONE,
        "most": str(settings.max_tasks),
    }

    def problems(filled: Any) -> list[str]:
        plan = _plan(filled, query, route, context)
        return [f"{p['message']} {p['fix']}" for p in check(plan, context.tools)]

    reply = await ask_model(context, "planner", form, slots, question=query, problems=problems)
    if reply.form is None:
        return None, reply.refused
    answer = "repaired" if reply.mended else "first"
    metadata = {"planner": "llm", "answer": answer, "refused": reply.refused, "route": route}
    return _plan(reply.form, query, route, context).model_copy(update={"metadata": metadata}), reply.refused


def told_needs(entries: Sequence[Data], query: str, state: RetrievalState) -> str:
    """Return the ledger in lines; before the first pass, what the rules take to be needed."""
    if entries:
        return "\n".join(
            f"- {e['need']}: {e['met']:.2f}" + (f" (a person: {e['said']})" if e["said"] else "") for e in entries
        )
    return "\n".join(f"- {need.text}" for need in read_needs(query, state["route_decision"])) or NONE


def _plan(drafted: Any, query: str, route: Data, context: Context) -> Plan:
    several = len(route["kb_prefixes"]) > 1
    return Plan(
        problem_statement=query,
        assumptions=drafted.assumptions,
        steps=make_steps(drafted.steps, several, context.tools),
        execution_mode=context.settings.execution_mode,
        acceptance_criteria=list(dict.fromkeys(filter(str.strip, drafted.acceptance_criteria))),
    )


def make_steps(drafted: Sequence[Any], several: bool, tools: Tools, first: int = 0) -> list[PlanStep]:
    """Return filled-in steps as plan steps, numbered from ``first``."""
    ids = {step.name: f"step_{n}_{slug(step.name)}" for n, step in reversed(list(enumerate(drafted, first)))}
    return [_step(step, f"step_{n}_{slug(step.name)}", ids, several, tools) for n, step in enumerate(drafted, first)]


def plan_form(tools: Tools, knowledge: Sequence[str], max_steps: int) -> type[BaseModel]:
    """Return the form: every list and string bounded, every tool and knowledge base one of those that exist.

    >>> form = plan_form({}, ["papers"], 6)
    >>> form.model_json_schema()["properties"]["steps"]["maxItems"]
    6
    """
    steps: Any = list[step_form(tools, knowledge)]  # type: ignore[misc]
    return create_model(
        "PlannedSearch",
        __base__=ModelForm,
        steps=(steps, Field(min_length=1, max_length=max_steps)),
        assumptions=(list[str], Field(default_factory=list, max_length=5)),
        acceptance_criteria=(list[str], Field(default_factory=list, max_length=8)),
    )


def step_form(tools: Tools, knowledge: Sequence[str]) -> Any:
    """Return the form of a step: a choice of tools and bases, and the inputs of registered tools."""
    one_of: Any = Literal
    choices: Json = {
        "tool": (one_of[tuple(tools)] if tools else str, ...),
        "kb_prefix": (one_of[tuple(knowledge)], knowledge[0]),
    }
    for name, tool in tools.items():
        for field, info in tool.input_schema.model_fields.items() if name not in BUILT_IN else ():
            if field not in (*OF_ALL, *DraftStep.model_fields):
                kind: Any = info.annotation
                before = choices.get(field, (None,))[0]
                choices[field] = (kind | None if before is None else before | kind, None)
    return create_model("PlannedStep", __base__=DraftStep, **choices)


def _condition(drafted: DraftCondition) -> Json:
    several = drafted.op in ("in", "not_in", "between")
    value = drafted.values if several else drafted.op == "exists" or "".join(drafted.values[:1])
    return {"field": drafted.field, "op": drafted.op, "value": value}


def _step(drafted: Any, step_id: str, ids: Mapping[str, str], several: bool, tools: Tools) -> PlanStep:
    """Return a filled-in step without inputs that its tool lacks; unknown steps are left for the check."""
    fields = tools[drafted.tool].input_schema.model_fields
    tool_input: Json = {"query": drafted.query} if "query" in fields else {}
    if several and "kb_prefix" in fields:
        tool_input["kb_prefix"] = drafted.kb_prefix
    if drafted.entities and "entities" in fields:
        tool_input["entities"] = drafted.entities
    if drafted.conditions and "conditions" in fields:
        tool_input["conditions"] = list(map(_condition, drafted.conditions))
    if drafted.sort_by and "sort" in fields:
        tool_input["sort"] = {"field": drafted.sort_by, "descending": drafted.descending}
    for name in set(type(drafted).model_fields) - set(DraftStep.model_fields) - {"tool", "kb_prefix"}:
        value = getattr(drafted, name)
        if value is not None and name in fields:
            tool_input[name] = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    if "found" in fields and drafted.depends_on:
        tool_input["found"] = {"$from": f"{ids.get(drafted.depends_on[0], drafted.depends_on[0])}.results"}
    for name, source in (("candidates", drafted.candidates_from), ("entities", drafted.entities_from)):
        if source and name in fields:
            tool_input[name] = {"$from": f"{ids.get(source, source)}.{name}"}
    return PlanStep(
        step_id=step_id,
        objective=drafted.objective,
        tool=drafted.tool,
        tool_input=tool_input,
        depends_on=[ids.get(name, name) for name in drafted.depends_on],
        condition=drafted.condition,
    )
