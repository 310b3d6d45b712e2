"""The node that plans: with the role's model if there is one, else with the planner of the run; and replanning.

A new plan continues behind the steps that have begun: they stay, and new steps that would repeat one are left out. A
model fills in a bounded form, which becomes a plan and is checked like any other plan; one repair is tried with the
problems. ``plan.metadata`` says who planned, and why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, get_args, get_origin

from langgraph.runtime import Runtime
from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from workbench.extensions import required
from workbench.graphs.merge import collect
from workbench.graphs.plan import FIRST_SEARCH, PLANNED_BY, slug, summary
from workbench.graphs.roles import ModelForm, ask_model
from workbench.graphs.route import is_driven, model_plans, read_question
from workbench.graphs.slots import (
    NONE,
    card,
    described,
    history_text,
    left,
    offered,
    read_window,
    steps_text,
    window_text,
)
from workbench.plans import (
    ENDED_WELL,
    Plan,
    PlanStep,
    call_key,
    last_records,
    needed,
    step_renamed,
    work_seconds,
)
from workbench.ports import Bases, Context, Tool, Tools
from workbench.records.proposals import last_needs
from workbench.settings import BY_MODEL, RULES
from workbench.state import (
    Data,
    Decision,
    Json,
    Records,
    RetrievalState,
    RouteDecision,
    pick,
    unique,
    without_empty,
)
from workbench.text import to_json
from workbench.tools.langchain import model_input
from workbench.tools.registry import check, condition_faults, require


async def planner(state: RetrievalState, runtime: Runtime[Context]) -> Json:
    """Make the plan; after an answer that changed the question, plan again behind the steps that have run."""
    context = runtime.context
    prefixes = state.get("kb_prefixes") or [state["kb_prefix"]]
    before = Plan.load(state["plan"]) if state.get("replan") else None
    given_plan = None if before else state.get("given_plan")
    if given_plan:
        plan = Plan.load(given_plan)
    else:
        plan = await _make_plan(state, context, prefixes, before)
        if state.get("report"):
            plan = required("nodes", "plan", "reports")(plan, state, context, prefixes)
    if before:
        plan = continued(plan, before, state["records"])
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
    clarified = (d for d in state["decisions"] if d["point"] == "clarify")
    return change if before else {**fresh_state(clarified), **change}


async def _make_plan(
    state: RetrievalState, context: Context, prefixes: list[str], before: Plan | None
) -> Plan:
    """Return the plan of the model or, where it gives none, of the planner."""
    query = state["query"]
    decision = state["route_decision"]
    refused = []
    driven = is_driven(state)
    by_rules = context.settings.search_first and not (before or state.get("report") or driven)
    if not by_rules and (driven or model_plans(context)):
        make = required("nodes", "first_turn", "agent") if driven else planned_by_model
        bases = context.bases(prefixes)
        plan, refused = await make(state, context, bases, before)
        if plan is not None:
            return plan
        if wish := state.get("wish"):  # the rules read it as a part of the question
            query = f"{query} {wish}"
            decision = {**decision, **read_question(query, bases, context.today)}
    plan = await _by_planner(query, decision, context, prefixes)
    metadata = {**plan.metadata}
    if by_rules and model_plans(context):
        metadata[FIRST_SEARCH] = True
    if refused:
        metadata |= {"instead_of": "agent" if driven else BY_MODEL, "refused": refused}
    return plan.copy_with(metadata=metadata)


async def _by_planner(
    query: str, decision: RouteDecision, context: Context, prefixes: list[str]
) -> Plan:
    """Return the planner's plan: what it is asked is all that it may depend on."""
    bases = context.bases(prefixes)

    async def plan() -> Json:
        return (await context.planner(query, decision, bases, context.tools)).dump()

    tools = sorted(context.tools)
    args = {"query": query, "decision": decision, "bases": prefixes, "tools": tools}
    name = getattr(context.planner, "name", "registered")
    version = " ".join(base.fingerprint() for base in bases)
    settings = context.settings.model_dump(include=set(PLANNED_BY), exclude_defaults=True)
    # else a fork with another budget would get the plan with the old one
    if name == RULES and settings:
        args["settings"] = settings
    effect = await context.tape.effect("plan", name, args, plan, version=version)
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
    added = []
    for step_id in new_plan.topological_order():
        step = step_renamed(new_plan.step(step_id), ids)
        old = ran.get(call_key(step.tool, step.tool_input))
        if old:
            ids[step_id] = old
            continue
        label = re.sub(r"^step_\d+_?", "", step_id) or "step"
        ids[step_id] = f"step_{number}_{label}"
        number += 1
        added.append(step.copy_with(step_id=ids[step_id]))
    return new_plan.copy_with(version=before.version + 1, steps=[*begun, *added])


# --- The planner as a chat model ---


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


_OWN_FIELDS = {*DraftStep.model_fields, "tool"}


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
    records = state["records"]
    reading = without_empty(pick(route, "query_intent", "filters", "entities"))
    slots = {
        "question": to_json(query),
        "today": context.today,
        "corpus": card(bases),
        "tools": described(tools),
        "reading": to_json(reading),
        "history": history_text(state.get("history", []), settings.history_window),
        "before": _before(before, state, context),
        "needs": told_needs(last_needs(state["reflections"])),
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
    metadata = {"planner": BY_MODEL, "answer": answer, "refused": reply.refused, "route": route}
    plan = _plan(reply.form, query, route, context)
    return plan.copy_with(metadata=metadata), reply.refused


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
    ran = last_records(state["records"])
    waiting = [
        f"- {step.step_id}: {step.tool}, not run: {step.objective}"
        for step in before.steps
        if step.step_id not in ran
    ]
    passages, groups = read_window(
        before, collect(state, context), [], context.settings.reflector_window
    )
    shown = window_text(passages, groups, context.settings.merge_max_characters // 2)
    parts = [steps_text(before, state["records"]), *waiting, shown]
    return "\n".join(part for part in parts if part not in ("", NONE)) or NONE


def _plan(drafted: Any, query: str, route: Data, context: Context) -> Plan:
    return Plan(
        problem_statement=query,
        assumptions=drafted.assumptions,
        steps=make_steps(drafted.steps),
        execution_mode=context.settings.execution_mode,
        acceptance_criteria=unique(filter(str.strip, drafted.acceptance_criteria)),
    )


def make_steps(drafted: Sequence[Any], first: int = 0) -> list[PlanStep]:
    """Return filled-in steps as plan steps, numbered from ``first``."""
    numbered = [(f"step_{n}_{slug(step.name)}", step) for n, step in enumerate(drafted, first)]
    ids = {step.name: step_id for step_id, step in reversed(numbered)}
    return [_step(step, step_id, ids) for step_id, step in numbered]


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


def _step_form(names: Sequence[str], inputs: Data) -> Any:
    one_of: Any = Literal
    fields = {_field(name): _annotated(info) for name, info in inputs.items()}
    return create_model(
        f"step_{names[0]}", __base__=DraftStep, tool=(one_of[tuple(names)], ...), **fields
    )


def _inputs(tool: Tool, bases: Bases) -> Json:
    inputs = {**model_input(tool, bases).model_fields}
    if "top_k" in inputs:  # without it a step returns what its budget says
        inputs["top_k"] = FieldInfo(
            annotation=int | None, default=None, description="How many results at most"
        )
    return {name: info for name, info in inputs.items() if name != "timeout_s"}


def _field(name: str) -> str:
    """Return an input's name in the form, where a step's own field may have it."""
    return f"{name}_" if name in _OWN_FIELDS else name


def _annotated(info: Any) -> Any:
    """Return an input's type and field; what an earlier step finds may take a list's place, or a part of a text."""
    kind = info.annotation
    if kind is str:  # its limits hold for a text alone
        text = Annotated[str, *info.metadata] if info.metadata else str
        return text | Around, FieldInfo(default=info.default, description=info.description)
    return (kind | From if get_origin(kind) is list and get_args(kind) == (str,) else kind), info


def _step(drafted: Any, step_id: str, ids: Mapping[str, str]) -> PlanStep:
    """Return a filled-in step; unknown steps are left for the check."""
    names = {_field(name): name for name in _OWN_FIELDS}
    values = drafted.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude=_OWN_FIELDS
    )
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
    return step.copy_with(tool_input=step.input_with(lambda source: ids.get(source, source)))
