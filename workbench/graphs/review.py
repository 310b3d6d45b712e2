"""The review nodes: the request at plan, step and reflect, the answers that are allowed, and what each changes.

Requests and answers have the shape of LangChain's human-in-the-loop middleware, so that its clients can answer too.
LangGraph validates the answer inside ``interrupt``: an invalid answer is refused, and the run stays paused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Generic, TypeVar

from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from workbench.errors import InvalidAnswer
from workbench.graphs.execute import skip, unended
from workbench.graphs.needs import thresholds
from workbench.graphs.plan import SEARCH
from workbench.graphs.reviewers import from_agent_inbox
from workbench.graphs.route import is_driven, model_plans, read_question, with_preferences
from workbench.knowledge.dated import dated_bases
from workbench.plans import Plan, PlanStep, fresh_id, problem
from workbench.ports import Context
from workbench.records.proposals import JUDGED_BY, LONGEST_NEED, Mark, Verdict, asking, will_go_on
from workbench.records.tape import answered
from workbench.state import (
    ACTIONS,
    Action,
    Data,
    Decision,
    Json,
    Records,
    Reflection,
    RetrievalState,
    ReviewPoint,
    drop,
    pick,
)
from workbench.tools.registry import base_problems, check

# --- Where a person may decide: the request, the answer's schema, and what each answer changes ---


LONGEST = 10_000
"""Characters of a message, a query or a note."""
ARGS = ("decisions", 0, "edited_action", "args")
"""The place of edits in an answer, with which the place of a fault begins."""


class Strict(BaseModel, extra="forbid"):
    """A part of an answer. An unknown field is refused with the known ones: a typo must not be ignored."""

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, data: Any) -> Any:
        names = data if isinstance(data, Mapping) else ()
        fault = f"there is no such thing here. Known: {', '.join(cls.model_fields)}."
        refuse(((str(name),), fault) for name in names if name not in cls.model_fields)
        return data


class Thresholds(Strict):
    """When evidence is enough: ``min_evidence`` pieces, ``min_top_score`` and ``min_probability`` between 0 and 1."""

    min_evidence: int | None = Field(None, ge=0, le=1_000_000)
    min_top_score: float | None = Field(None, ge=0, le=1)
    min_probability: float | None = Field(None, ge=0, le=1)


Needs = Annotated[
    dict[Annotated[str, Field(pattern=r"\S", max_length=LONGEST_NEED)], Verdict],
    Field(max_length=50),
]
"""Need of the ledger -> a person's verdict: met, not needed, or open whatever is found; another text adds a need."""


Pieces = Annotated[
    dict[Annotated[str, Field(max_length=LONGEST_NEED)], Mark], Field(max_length=500)
]
"""Piece of evidence, as ``source/granularity/base`` -> a person's mark: first in the answer, or left out of it."""


class PlanEdits(Strict):
    """Edits before steps run: the plan, or the query (which makes a new plan), and the thresholds."""

    plan: Plan | None = None
    query: str | None = Field(None, pattern=r"\S", max_length=LONGEST)
    thresholds: Thresholds | None = None


class ReflectEdits(Strict):
    """Edits of a reflection's proposal. After ``JUDGED_BY`` alone the evidence is judged again."""

    next_steps: list[PlanStep] | None = None
    activate: list[str] | None = None
    rewrite_query: str | None = Field(None, max_length=LONGEST)
    should_continue: bool | None = None
    thresholds: Thresholds | None = None
    needs: Needs | None = None
    pieces: Pieces | None = None


Edits = TypeVar("Edits", bound=BaseModel)


class EditedAction(Strict, Generic[Edits]):
    """The middleware's edited action; ``args`` hold only what changed."""

    name: str
    args: Edits


class ReviewDecision(Strict, Generic[Edits]):
    """One decision; ``edit`` needs ``edited_action``, which no other has, and ``respond`` needs ``message``."""

    type: Action
    edited_action: EditedAction[Edits] | None = None
    message: str = Field("", max_length=LONGEST)

    @model_validator(mode="after")
    def _complete(self) -> ReviewDecision[Edits]:
        edited = self.edited_action is not None
        if edited != (self.type == "edit"):
            message = f"only an edit has an edited_action, and this is {self.type!r}"
            missing = "an edit needs edited_action: {'name': ..., 'args': {...}}"
            refuse([(("edited_action",), message if edited else missing)])
        if self.type == "respond" and not self.message.strip():
            refuse([(("message",), "a response needs a message")])
        return self


class ReviewAnswer(Strict, Generic[Edits]):
    """The answer to one request: exactly one decision, with an optional note that is kept."""

    decisions: list[ReviewDecision[Edits]] = Field(min_length=1, max_length=1)
    note: str = Field("", max_length=LONGEST)
    who: str = Field("person", max_length=200)


EDITS: dict[ReviewPoint, type[BaseModel]] = {
    "plan": PlanEdits,
    "step": PlanEdits,
    "reflect": ReflectEdits,
}


async def review_plan(state: RetrievalState, runtime: Runtime[Context]) -> Json:
    """Ask about the plan before it runs, if the run has this review point."""
    if "plan" not in state.get("review", []):
        return {}
    action, change = ask_about_plan(
        "plan", state, runtime, f"{len(state['plan']['steps'])} steps: run this plan?"
    )
    if action == "reject":
        return stop(state, runtime, {**change, "stop_reason": "stopped_by_reviewer"})
    return change


def ask_about_plan(
    point: ReviewPoint,
    state: RetrievalState,
    runtime: Runtime[Context],
    description: str,
    **proposal: Any,
) -> tuple[str, Json]:
    """Ask about the plan, or about its steps that have not started; return the answer's action and what it changes."""
    context = runtime.context
    plan = Plan.load(state["plan"])
    records = state["records"]

    def edited(edits: BaseModel) -> None:
        new = getattr(edits, "plan", None)
        if new is not None:
            problems = check(new, context.tools)
            problems = problems or [*base_problems(new, context, state["kb_prefix"])]
            problems += _rewritten_history(plan, new, records)
            _refuse_steps(("plan", "steps"), [step.step_id for step in new.steps], problems)

    decision = _ask(
        point, state, runtime, {"plan": state["plan"], **proposal}, description, edited
    )
    action = decision["action"]
    edits = decision["edits"]
    change: Json = {"decisions": [decision], **_merge_criteria(state, edits)}
    if action == "respond":
        change |= apply_response(state, runtime, decision["message"])
    if edits.get("plan"):
        new = Plan.load(edits["plan"]).copy_with(version=plan.version + 1)
        change |= _need_verdicts(plan, new, state)
        context.runs.save_plan(
            state["run_id"], new.dump(), decision["who"], decision["note"] or "edited"
        )
        change["plan"] = new.dump()
        if edits.get("query"):
            change["query"] = edits["query"]
    elif edits.get("query"):
        change |= {**reread(state, runtime, edits["query"]), "replan": True}
    return action, change


def _merge_criteria(state: RetrievalState, edits: Data) -> Json:
    """Return the thresholds, needs and marks together with a person's."""
    current: Data = state
    return {
        name: {**current.get(name, {}), **edits[name]} for name in JUDGED_BY if edits.get(name)
    }


def _need_verdicts(old: Plan, new: Plan, state: RetrievalState) -> Json:
    """Return the verdicts of an edited plan: a criterion that was added is open, one that was removed is struck."""
    before = old.acceptance_criteria
    now = new.acceptance_criteria
    verdicts = {need: "open" for need in now if need not in before}
    verdicts |= {need: "struck" for need in before if need not in now}
    return {"needs": {**state.get("needs", {}), **verdicts}} if verdicts else {}


async def review_reflect(state: RetrievalState, runtime: Runtime[Context]) -> Json:
    """Follow the reflection's proposal, or what a person makes of it."""
    return {"rejudge": False, **_decided(state, runtime)}


def _decided(state: RetrievalState, runtime: Runtime[Context]) -> Json:
    context = runtime.context
    reflection = state["reflections"][-1]
    if "reflect" not in state.get("review", []):
        return follow(
            state, runtime, reflection, author="reflector", reason=reflection["reasoning"]
        )

    def edited(edits: BaseModel) -> None:
        plan = Plan.load(state["plan"])
        steps = getattr(edits, "next_steps", None) or []
        problems = check(plan.adding(*steps), context.tools)
        problems = problems or [*base_problems(Plan(steps=steps), context, state["kb_prefix"])]
        _refuse_steps(("next_steps",), [step.step_id for step in steps], problems)
        steps_by_id = plan.by_id()
        known_ids = ", ".join(steps_by_id)
        refuse(
            ((*ARGS, "activate", place), f"{name!r} is not in the plan. Known: {known_ids}.")
            for place, name in enumerate(getattr(edits, "activate", None) or [])
            if name not in steps_by_id
        )

    decision = _ask("reflect", state, runtime, dict(reflection), reflection["reasoning"], edited)
    action = decision["action"]
    edits = decision["edits"]
    change: Json = {"decisions": [decision]}
    if action == "reject":
        return stop(state, runtime, {**change, "stop_reason": "stopped_by_reviewer"})
    if action == "respond":
        more = apply_response(state, runtime, decision["message"])
        return {**change, **more, "iteration": state["iteration"] + 1}
    change |= _merge_criteria(state, edits)
    if edits and set(edits) <= set(JUDGED_BY):
        return {**change, "rejudge": True}
    proposal = amended(reflection, edits, state["query"], Plan.load(state["plan"]))
    who = decision["who"] if edits else "reflector"
    reason = decision["note"] or proposal["reasoning"]
    return {**change, **follow(state, runtime, proposal, author=who, reason=reason)}


def amended(reflection: Reflection, edits: Data, query: str, plan: Plan) -> Reflection:
    """Return the proposal with a person's edits: new steps continue the run, a new query also replaces it in steps."""
    changed: Reflection = {**reflection, **drop(edits, *JUDGED_BY)}  # type: ignore[typeddict-item]
    old = reflection["rewrite_query"]
    new = changed["rewrite_query"]
    if new and new != old and "next_steps" not in edits:
        changed["next_steps"] = [
            asking(step, old or query, new) for step in changed["next_steps"]
        ]
    if "should_continue" not in edits:
        changed["should_continue"] = will_go_on(reflection, edits)
    if changed["should_continue"] and not changed["next_steps"] and not changed["activate"]:
        new_query = new or query
        step = PlanStep(
            step_id=fresh_id(plan, "more"),
            objective=new_query,
            tool=SEARCH,
            tool_input={"query": new_query},
        )
        changed["next_steps"] = [step.model_dump(mode="json")]
    if not changed["should_continue"] and reflection["should_continue"]:
        changed["stop_reason"] = "stopped_by_reviewer"
    return changed


def follow(
    state: RetrievalState,
    runtime: Runtime[Context],
    proposal: Reflection,
    *,
    author: str,
    reason: str,
) -> Json:
    """Stop, or take the proposal's steps into the plan and begin the next pass."""
    if not proposal["should_continue"]:
        return stop(
            state, runtime, {"stop_reason": proposal["stop_reason"] or "no_further_action"}
        )
    change: Json = {
        "activated": [*state["activated"], *proposal["activate"]],
        "iteration": state["iteration"] + 1,
    }
    if proposal["next_steps"]:
        plan = Plan.load(state["plan"])
        new = plan.adding(*map(PlanStep.model_validate, proposal["next_steps"]))
        new = new.copy_with(version=plan.version + 1)
        runtime.context.runs.save_plan(state["run_id"], new.dump(), author, reason)
        change["plan"] = new.dump()
    return change


def stop(state: RetrievalState, runtime: Runtime[Context], change: Json) -> Json:
    """End retrieval: every step that has no end yet gets a record that says why."""
    reasons = unended(state, change["stop_reason"], stops=True)
    return {**change, "records": skip(state, runtime.context, reasons)}


def apply_response(state: RetrievalState, runtime: Runtime[Context], words: str) -> Json:
    """Return the change of a free text: an instruction to a model that plans, and a part of the question to rules."""
    if is_driven(state) or model_plans(runtime.context):
        return {"wish": words.strip(), "replan": True}
    return {**reread(state, runtime, f"{state['query']} {words}".strip()), "replan": True}


def reread(state: RetrievalState, runtime: Runtime[Context], query: str) -> Json:
    """Return the state with another query, which is read again with what is known of the person."""
    bases = runtime.context.bases(state["kb_prefixes"])
    read: Any = {**state["route_decision"], **read_question(query, bases, runtime.context.today)}
    return {"query": query, "route_decision": with_preferences(state, read, bases)}


def _ask(
    point: ReviewPoint,
    state: RetrievalState,
    runtime: Runtime[Context],
    proposal: Json,
    description: str,
    check_edits: Callable[[BaseModel], None],
) -> Decision:
    """Ask where there is a plan: the request says which steps will run, and what holds now."""
    limits = thresholds(state["route_decision"]["query_intent"], state.get("thresholds"))
    details: Json = {
        "ahead": ahead(point, state, runtime.context, proposal),
        "in_force": {
            "query": state["query"],
            "thresholds": pick(limits, *Thresholds.model_fields),
            "needs": dict(state.get("needs", {})),
        },
    }
    return ask_person(
        point, state, runtime, proposal, description, EDITS[point], check_edits, details=details
    )


def ask_person(
    point: ReviewPoint,
    state: RetrievalState,
    runtime: Runtime[Context],
    proposal: Json,
    description: str,
    edits: type[BaseModel],
    check_edits: Callable[[Any], None],
    *,
    details: Data = MappingProxyType({}),
) -> Decision:
    """Pause for an answer. The code before this call runs again on resume, so it must not have effects.

    Args:
        point: the review point.
        state: its ``run_id`` and ``decisions`` are read.
        runtime: of the node.
        proposal: what is proposed, as JSON.
        description: why, in a sentence.
        edits: what may be changed of it; a ``Strict`` model whose values say None where nothing changes.
        check_edits: refuses edits that fit the model and yet cannot be (see ``refuse``).
        details: further keys of the request: ``ahead``, ``in_force``.
    """
    review_id = f"{len(state.get('decisions', []))}-{point}"
    request = {
        "action_requests": [{"name": point, "args": proposal, "description": description}],
        "review_configs": [
            {
                "action_name": point,
                "allowed_decisions": list(ACTIONS),
                "args_schema": edits.model_json_schema(),
            }
        ],
        "run_id": state.get("run_id", ""),
        "review_id": review_id,
        "point": point,
        **details,
    }
    answer = interrupt(request, response_schema=_answer_model(request, edits, check_edits))
    answer_decision = answer.decisions[0]
    edited = answer_decision.edited_action
    decision = Decision(
        review_id=review_id,
        point=point,
        action=answer_decision.type,
        proposal=proposal,
        edits=edited.args.model_dump(mode="json", exclude_none=True) if edited else {},
        message=answer_decision.message,
        who=answer.who,
        decided_at=runtime.context.clock.now().isoformat(),
        note=answer.note,
    )
    return runtime.context.runs.save_decision(state["run_id"], decision)


def ahead(point: str, state: RetrievalState, context: Context, proposal: Data) -> list[str]:
    """Return the steps that the proposal will run: not those that are done, not yet activated, or on the tape."""
    plan = Plan.load(state["plan"])
    activated = [*state["activated"], *proposal.get("activate", [])]
    plan = plan.adding(*map(PlanStep.model_validate, proposal.get("next_steps", [])))
    if plan.problems():
        return []
    versions = {base.name: base.fingerprint() for base in dated_bases(context, state)}
    taped = answered(plan, context.tape.known, [], state["kb_prefix"], versions)
    steps = plan.ahead(state["records"], activated, taped)
    return [step.step_id for step in steps if point != "step" or step.step_id in proposal["wave"]]


def _answer_model(
    request: Data, edits: type[BaseModel], check_edits: Callable[[Any], None]
) -> type[ReviewAnswer[Any]]:
    """Return the answer's schema at this point, with a check that knows the plan and the tools."""
    point: ReviewPoint = request["point"]
    shape: Any = ReviewAnswer[edits]  # type: ignore[valid-type]

    class PointAnswer(shape):
        @model_validator(mode="before")
        @classmethod
        def _either_shape(cls, data: Any) -> Any:
            try:
                return from_agent_inbox(data, request)
            except InvalidAnswer as error:
                refuse([((), str(error))])

        @model_validator(mode="after")
        def _checked(self) -> PointAnswer:
            action = self.decisions[0].edited_action
            if action is not None:
                if action.name != point:
                    fault = f"{action.name!r} is not what is asked; it is {point!r}"
                    refuse([((*ARGS[:-1], "name"), fault)])
                check_edits(action.args)
            return self

    return PointAnswer


def refuse(faults: Iterable[tuple[tuple[str | int, ...], str]]) -> None:
    """Raise a pydantic error with these faults, each at its place in the answer; return without faults."""
    errors = [
        InitErrorDetails(
            type=PydanticCustomError("refused", "{text}", {"text": text}), loc=place, input=None
        )
        for place, text in faults
    ]
    if errors:
        raise ValidationError.from_exception_data("answer", errors)


def _refuse_steps(
    where: tuple[str, ...], step_ids: Sequence[str], problems: Iterable[Data]
) -> None:
    """Refuse an edit for what is wrong with its steps, at the step and the field."""

    def place(problem: Mapping[str, str]) -> tuple[str | int, ...]:
        if problem["step_id"] not in step_ids:
            return (*ARGS, *where)
        return (*ARGS, *where, step_ids.index(problem["step_id"]), *problem["field"].split("."))

    refuse((place(p), f"{p['message']} {p['fix']}") for p in problems)


def _rewritten_history(old: Plan, new: Plan, records: Records) -> list[Json]:
    """Return a problem for each step that an edit changes or drops although it has run."""
    before = old.by_id()
    after = new.by_id()
    ran = dict.fromkeys(record["step_id"] for record in records)
    fix = "Leave it unchanged, and add a step with another id."
    return [
        problem(step_id, "step_id", f"{step_id} has already run.", fix)
        for step_id in ran
        if step_id in before and after.get(step_id) != before[step_id]
    ]
