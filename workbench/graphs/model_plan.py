"""The planner as a chat model: it fills in a bounded form, which becomes a plan and is checked like any other plan.

One repair is tried with the problems; then the deterministic planner takes over. ``plan.metadata`` says which of the
three it was, and why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from workbench.graphs.merge import collect
from workbench.graphs.plan import slug, summary
from workbench.graphs.roles import (
    NONE,
    ModelForm,
    ask_model,
    card,
    condition_faults,
    described,
    history_text,
    left,
    offered,
    read_window,
    steps_text,
    window_text,
)
from workbench.plans import Plan, PlanStep, last_records, work_seconds
from workbench.ports import Bases, Context, Tool, Tools
from workbench.state import Data, RetrievalState
from workbench.tools.langchain import model_input
from workbench.tools.registry import check


class From(ModelForm):
    """What an earlier step finds in place of a value."""

    source: str = Field(
        alias="$from", pattern=r"^[^.]+\.\w+$", max_length=80, description="As NAME.candidates"
    )


class Around(From):
    """What an earlier step finds within a text."""

    text: str = Field(
        min_length=1, max_length=500, description="The words around it, with {} in its place"
    )


class DraftStep(ModelForm):
    """One step as the model writes it, next to the inputs of its tool; names are the model's own, ids are ours."""

    name: str = Field(min_length=1, max_length=40)
    objective: str = Field(min_length=1, max_length=200)
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
    query = state["query"]
    decision = state["route_decision"]
    settings = context.settings
    tools = offered(context.tools, bases)
    form = plan_form(tools, bases, settings.max_tasks)
    route = summary(decision, bases)
    records = state.get("records", [])
    reflections = state.get("reflections", [])
    reading = {
        name: route[name] for name in ("query_intent", "filters", "entities") if route[name]
    }
    slots = {
        "question": json.dumps(query, ensure_ascii=False),
        "today": context.today,
        "corpus": card(bases),
        "tools": described(tools),
        "reading": json.dumps(reading, ensure_ascii=False),
        "history": history_text(state.get("history", []), settings.history_window),
        "before": _before(before, state, context),
        "needs": told_needs(reflections[-1]["signals"].get("needs", []) if reflections else []),
        "budget": left(context, settings.time_budget_s - work_seconds(records)),
        "wish": _wish(state),
        "most": str(settings.max_tasks),
    }

    def problems(filled: Any) -> list[str]:
        plan = _plan(filled, query, route, context)
        faults = [f"{p['message']} {p['fix']}" for p in check(plan, context.tools)]
        return [
            *faults,
            *(fault for step in plan.steps for fault in condition_faults(step.tool_input, bases)),
        ]

    reply = await ask_model(context, "planner", form, slots, question=query, problems=problems)
    if reply.form is None:
        return None, reply.refused
    answer = "repaired" if reply.mended else "first"
    metadata = {"planner": "llm", "answer": answer, "refused": reply.refused, "route": route}
    return _plan(reply.form, query, route, context).model_copy(
        update={"metadata": metadata}
    ), reply.refused


def _wish(state: RetrievalState) -> str:
    """Return what the reviewer asks for, or what a report is to say."""
    report = state.get("report") or {}
    aspects = ", ".join(title for title, _ in report.get("aspects", []))
    about = f"The answer is a report. Its aspects: {aspects or NONE}." if report else ""
    return "\n".join(filter(None, [state.get("wish"), report.get("preferences"), about])) or NONE


def told_needs(entries: Sequence[Data]) -> str:
    """Return the ledger in lines; nothing before the first pass, since the model itself says what is needed."""
    lines = [
        f"- {e['need']}: {e['met']:.2f}" + (f" (a person: {e['said']})" if e["said"] else "")
        for e in entries
    ]
    return "\n".join(lines) or NONE


def _before(before: Plan | None, state: RetrievalState, context: Context) -> str:
    """Return what the plan so far is, what ran of it, and the best of what that found."""
    if before is None:
        return NONE
    waiting = [
        f"- {step.step_id}: {step.tool}, not run: {step.objective}" for step in before.steps
    ]
    ran = last_records(state.get("records", []))
    waiting = [
        line for line, step in zip(waiting, before.steps, strict=True) if step.step_id not in ran
    ]
    passages, groups = read_window(
        before, collect(state, context), [], context.settings.reflector_window
    )
    shown = window_text(passages, groups, context.settings.merge_max_characters // 2)
    parts = [steps_text(before, state.get("records", [])), *waiting, shown]
    return "\n".join(part for part in parts if part and part != NONE) or NONE


def _plan(drafted: Any, query: str, route: Data, context: Context) -> Plan:
    return Plan(
        problem_statement=query,
        assumptions=drafted.assumptions,
        steps=make_steps(drafted.steps),
        execution_mode=context.settings.execution_mode,
        acceptance_criteria=list(dict.fromkeys(filter(str.strip, drafted.acceptance_criteria))),
    )


def make_steps(drafted: Sequence[Any], first: int = 0) -> list[PlanStep]:
    """Return filled-in steps as plan steps, numbered from ``first``."""
    ids = {
        step.name: f"step_{n}_{slug(step.name)}"
        for n, step in reversed(list(enumerate(drafted, first)))
    }
    return [
        _step(step, f"step_{n}_{slug(step.name)}", ids) for n, step in enumerate(drafted, first)
    ]


def plan_form(tools: Tools, bases: Bases, max_steps: int) -> type[BaseModel]:
    """Return the form: every list bounded, every tool with its own inputs, every base one of those that exist.

    >>> form = plan_form({}, [], 6)
    >>> form.model_json_schema()["properties"]["steps"]["maxItems"]
    6
    """
    steps: Any = list[step_form(tools, bases)]  # type: ignore[misc]
    return create_model(
        "PlannedSearch",
        __base__=ModelForm,
        steps=(steps, Field(min_length=1, max_length=max_steps)),
        assumptions=(list[str], Field(default_factory=list, max_length=5)),
        acceptance_criteria=(list[str], Field(default_factory=list, max_length=8)),
    )


def step_form(tools: Tools, bases: Bases) -> Any:
    """Return the form of a step: a choice of tools, each with its own inputs; those with the same share a form."""
    alike: dict[str, list[str]] = {}
    inputs = {name: _inputs(tool, bases) for name, tool in tools.items()}
    for name, fields in inputs.items():
        alike.setdefault(repr(sorted(fields.items())), []).append(name)
    forms = [_step_form(names, inputs[names[0]]) for names in alike.values()]
    if len(forms) < 2:
        return forms[0] if forms else DraftStep
    return Annotated[reduce(or_, forms), Field(discriminator="tool")]


def _step_form(names: Sequence[str], inputs: Mapping[str, Any]) -> Any:
    one_of: Any = Literal
    fields: Any = {_field(name): _annotated(info) for name, info in inputs.items()}
    return create_model(
        f"step_{names[0]}", __base__=DraftStep, tool=(one_of[tuple(names)], ...), **fields
    )


def _inputs(tool: Tool, bases: Bases) -> dict[str, Any]:
    inputs: dict[str, Any] = {**model_input(tool, bases).model_fields}
    if "top_k" in inputs:  # without it a step returns what its budget says
        inputs["top_k"] = FieldInfo(
            annotation=int | None, default=None, description="How many results at most"
        )
    return {name: info for name, info in inputs.items() if name != "timeout_s"}


def _field(name: str) -> str:
    """Return an input's name in the form, where a step's own field may have it."""
    return f"{name}_" if name in (*DraftStep.model_fields, "tool") else name


def _annotated(info: Any) -> Any:
    """Return an input's type and field; what an earlier step finds may take a list's place, or a part of a text."""
    kind = info.annotation
    if kind is str:  # its limits hold for a text alone
        text: Any = Annotated[str, *info.metadata] if info.metadata else str
        return text | Around, FieldInfo(default=info.default, description=info.description)
    return (kind | From if get_origin(kind) is list and get_args(kind) == (str,) else kind), info


def _step(drafted: Any, step_id: str, ids: Mapping[str, str]) -> PlanStep:
    """Return a filled-in step; unknown steps are left for the check."""
    names = {_field(name): name for name in (*DraftStep.model_fields, "tool")}
    own = {*DraftStep.model_fields, "tool"}
    values = drafted.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=own)
    tool_input = {
        names.get(name, name): value
        for name, value in values.items()
        if value not in ("", [], {})
    }
    step = PlanStep(
        step_id=step_id,
        objective=drafted.objective,
        tool=drafted.tool,
        tool_input=tool_input,
        depends_on=[ids.get(name, name) for name in drafted.depends_on],
        condition=drafted.condition,
    )
    return step.model_copy(
        update={"tool_input": step.input_with(lambda source: ids.get(source, source))}
    )
