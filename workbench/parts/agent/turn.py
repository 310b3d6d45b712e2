"""The worker ``tool_agent``: a model calls tools, and each of its calls is a step of the plan before it runs.

A turn is one call of the model: it reads the question, the calls so far and what they returned, and calls tools or says
what it has found. The conversation is built from plan and records alone: what a reviewer changed is what the model is
shown, and a fork asks again only from where its conversation differs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, ToolMessage
from pydantic import BaseModel, Field, create_model

from workbench.errors import ModelError, UnknownTool
from workbench.extensions import required
from workbench.graphs.needs import Entry, passage_for
from workbench.graphs.plan import scaled_budget, slug, summary
from workbench.graphs.reflect import Pass, Proposal
from workbench.graphs.roles import ModelForm, accounted, budget_spent, read_form
from workbench.graphs.slots import FIRST, SEEN, card, is_listing, without_text
from workbench.models.chat import (
    Limits,
    filled_in,
    reply_text,
    thinking_text,
    token_usage,
    with_tools,
    without_tools,
)
from workbench.models.thinking import split
from workbench.plans import Frozen, Plan, PlanStep, call_key, calls, fresh_id, last_records
from workbench.ports import Bases, Context, Tool
from workbench.records.prompts import fenced
from workbench.state import Data, Json, Reflection, RetrievalState, pick, without_none
from workbench.text import clean, detect_language, to_json, without_secrets
from workbench.tools.evidence import passage_id
from workbench.tools.langchain import RESULTS, as_function, model_input, result_text
from workbench.tools.registry import check, condition_faults, names_for_agents
from workbench.tools.tool import FunctionTool, ToolOutput

CALLS = 6
"""Calls of one turn that run; the model learns which did not."""
LONGEST = 2_000
"""Characters that are kept of what the model says next to its calls, or at the end."""
NO_MODEL = (
    "An agent needs a model that calls tools. Set WORKBENCH_MODELS__AGENT or WORKBENCH_CHAT_MODEL, or give "
    "model=, a LangChain chat model."
)
Messages = list[list[str]]


class Thought(Frozen):
    """The input of ``think``."""

    thought: str = Field(min_length=1, max_length=LONGEST)
    """What is known, what is missing, what to try"""


THINK = FunctionTool(
    name="think",
    planned=False,
    description="Write down a thought before the next calls; it searches nothing.",
    input_schema=Thought,
    output_schema=ToolOutput,
    function=lambda thought, knowledge, log: {},
)


class ToolCall(ModelForm):
    """One call, as the model writes it."""

    tool: str = Field(max_length=100)
    input: Json = Field(default_factory=dict)


class Turn(ModelForm):
    """A reply of the model: its calls, or none and what it has found."""

    text: str = ""
    calls: list[ToolCall] = Field(default_factory=list)


class Taken(NamedTuple):
    """What becomes of a turn: its text, steps to run, and the calls that cannot run, each with the reason.

    ``parts`` are the turns of which it is made, by the aspects of a report.
    """

    text: str
    steps: list[PlanStep]
    faults: list[list[Any]]
    parts: Data = MappingProxyType({})

    def notes(self) -> Json:
        """Return what later turns are shown of it, as JSON."""
        ended = not self.steps and not self.faults
        notes = {
            "text": self.text,
            "faults": self.faults,
            "done": ended,
        }
        if self.parts:
            return {**notes, PARTS: {name: taken.notes() for name, taken in self.parts.items()}}
        return notes


async def first_turn(
    state: RetrievalState, context: Context, bases: Bases, before: Plan | None
) -> tuple[Plan | None, list[str]]:
    """Return the model's first calls as a plan; None and why, where it gives none that can be run."""
    plan = before or Plan(
        problem_statement=state["query"], execution_mode=context.settings.execution_mode
    )
    begun = last_records(state["records"])
    plan = plan.copy_with(steps=[step for step in plan.steps if step.step_id in begun])
    now = Pass(state, context, plan, bases, [])
    taken, refused = await _taken_by_all(now, "turn 1")
    if not taken or not taken.steps:
        refused = refused or ["it called no tool"]
        if context.settings.on_failure == "raise":
            raise ModelError(f"The agent's model called no tool that can run: {refused[-1]}")
        return None, refused
    route = summary(state["route_decision"], bases)
    metadata = {
        "planner": "llm",
        "answer": "first",
        "refused": refused,
        "route": route,
        **taken.notes(),
    }
    return plan.copy_with(steps=taken.steps, metadata=metadata), refused


async def next_turn(now: Pass, proposal: Proposal) -> tuple[Reflection | None, list[str]]:
    """Return what the model calls next, or its conclusion; None and why, where its server fails."""
    # How often the model is asked for one question.
    most_turns = 12
    context = now.context
    turns = max(most_turns, context.settings.max_iterations)
    last = now.state["iteration"] >= turns
    at = f"turn {now.state['iteration'] + 1}"
    taken, refused = await _taken_by_all(now, at, last)
    if taken is None:
        if context.settings.on_failure == "raise" and not budget_spent(context):
            raise ModelError(f"The agent's model cannot be followed: {refused[-1]}")
        return None, refused
    proposal.seen |= {"judge": context.settings.role_model("agent"), "needs": [], **taken.notes()}
    done = not taken.steps and not taken.faults
    if done:
        proposal.seen["conclusion"] = taken.text
    for need, text in (taken.parts or {now.state["query"]: taken}).items() if done else ():
        if by := [piece for piece in now.evidence if passage_id(piece) in text.text]:
            title, quote = passage_for(need, by)
            ids = [piece["result_id"] for piece in by]
            entry = Entry(
                need=need, kind="answer", met=1.0, by=ids, title=title, quote=quote, said=""
            )
            proposal.seen["needs"].append(entry)
    for step in [] if last else taken.steps:
        proposal.steps.append(step)
        proposal.reasons.append(proposal.say("reflect_ask", query=step.objective))
    facts = list(filter(None, [taken.text, *(why for _, why in taken.faults)])) or [
        proposal.say("reflect_model")
    ]
    return proposal.conclude(
        done and bool(now.evidence), turns, [fact.rstrip("。. ") for fact in facts]
    ), refused


# --- A report's aspects: each has an agent of its own, with its own conversation, and all of them are asked at once ---

PARTS = "parts"


async def _taken_by_all(now: Pass, at: str, last: bool = False) -> tuple[Taken | None, list[str]]:
    """Return the turn of the agent or, for a report with aspects, of the agents that have not ended, as one."""
    state, _, plan, *_ = now
    aspects = [
        " ".join([title, *parts])
        for title, parts in (state.get("report") or {}).get("aspects", [])
    ]
    if len(aspects) < 2:
        return await _take(now, at, last)
    notes = _notes(now)
    before = notes[-1].get(PARTS, {})

    async def take(number: int, aspect: str) -> tuple[Taken | None, list[str]]:
        if before.get(aspect, {}).get("done"):
            return Taken(before[aspect]["text"], [], []), []
        mark = f"_aspect{number}"
        own = [step for step in plan.steps if step.step_id.endswith(mark)]
        first, *later = [note.get(PARTS, {}).get(aspect, {}) for note in notes]
        reflections = [{"signals": note} for note in later]
        about: Any = {**state, "query": f"{state['query']}: {aspect}", "reflections": reflections}
        own_plan = plan.copy_with(steps=own, metadata=first)
        own_pass = now._replace(state=about, plan=own_plan)
        taken, refused = await _take(own_pass, f"{at}, {aspect}", last)
        if taken:
            steps = [s.copy_with(step_id=s.step_id + mark) for s in taken.steps]
            taken = taken._replace(steps=steps)
        return taken, refused

    turns = await asyncio.gather(
        *(take(number, aspect) for number, aspect in enumerate(aspects, 1))
    )
    refused = [why for _, reasons in turns for why in reasons]
    parts = {aspect: taken for aspect, (taken, _) in zip(aspects, turns, strict=True) if taken}
    if not parts:
        return None, refused
    text = "\n".join(f"{aspect}: {taken.text}" for aspect, taken in parts.items() if taken.text)
    steps = [step for taken in parts.values() for step in taken.steps]
    faults = [fault for taken in parts.values() for fault in taken.faults]
    return Taken(text, steps, faults, parts), refused


def _notes(now: Pass) -> list[Json]:
    """Return what was kept of each turn so far."""
    reflections = now.state["reflections"]
    return [now.plan.metadata, *(reflection["signals"] for reflection in reflections)]


async def _take(now: Pass, at: str, last: bool) -> tuple[Taken | None, list[str]]:
    """Ask for a turn, again where nothing in it can be run; None and why, where the model cannot be asked.

    In the last turn the model can only say what it has found.
    """
    # How often a turn is asked in which nothing can be run.
    attempts = 3
    _, context, plan, bases, _ = now
    if "agent" not in context.models:
        raise ModelError(NO_MODEL)
    tools = pick(context.tools, *names_for_agents(context.tools, bases), THINK.name)
    messages = _conversation(now)
    messages += [["human", "No further call can be made: say what was found."]] if last else []
    refused = list[str]()
    taken = Taken("", [], [])
    for attempt in range(1, attempts + 1):
        if over := budget_spent(context):
            return None, [*refused, over]
        # a server may take tools and not pass them on: the last attempt is made by the form
        by_form = attempt == attempts and not taken.faults and not plan.steps
        place = at if attempt == 1 else f"{at} repair"
        reply = await _reply(now, messages, tools, place, by_form)
        if reply.get("error"):
            return None, [*refused, reply["error"]]
        turn, faults = read_form(reply["text"], Turn)
        taken = _taken(turn or Turn(text=reply["text"]), now, tools)
        if by_form and taken.steps:
            without_tools(context.models["agent"])
        if last or taken.steps or (plan.steps and not taken.faults):
            return taken, refused
        refused += (
            [why for _, why in taken.faults] or faults or ["it called no tool before it answered"]
        )
        messages = [*messages, *_turn_messages(taken, [])]
        messages += [["human", "Call a tool that can answer this."]] if not taken.faults else []
    return taken, refused


def _taken(turn: Turn, now: Pass, tools: Mapping[str, Tool]) -> Taken:
    """Return the calls that can run as steps, and why the others cannot."""
    state, context, plan, bases, _ = now
    done = calls(plan, state["records"])
    steps = list[PlanStep]()
    faults = []
    for call in turn.calls:
        step = _step(call, plan.adding(*steps), context)
        problems = [
            f"{fault['message'].partition(': ')[2]} {fault['fix']}"
            for fault in check(plan.adding(*steps, step), context.tools)
        ]
        problems = problems or condition_faults(step.tool_input, bases)
        if call.tool not in tools:
            why = f"There is no tool {call.tool!r}. Known: {', '.join(tools)}."
        elif problems:
            why = " ".join(problems)
        elif (key := call_key(step.tool, step.tool_input)) in done:
            why = "This call was made already; its results stand above."
        elif len(steps) >= CALLS:
            why = f"Only {CALLS} calls run in a turn. Make it again if it is still needed."
        else:
            done.add(key)
            steps.append(step)
            continue
        faults.append([call.model_dump(), why])
    return Taken(clean(turn.text).strip()[:LONGEST], steps, faults[: 2 * CALLS])


def _step(call: ToolCall, plan: Plan, context: Context) -> PlanStep:
    values = without_none(call.input)
    results = values.pop("top_k", RESULTS)
    if type(results) is not int or results < 1:
        values["top_k"] = results  # the check says what is wrong with it
        results = RESULTS
    objective = next(
        (value for value in values.values() if isinstance(value, str) and value.strip()), ""
    )
    budget = scaled_budget(context.settings, 15.0, 50).copy_with(top_k=min(results, 50))
    return PlanStep(
        step_id=fresh_id(plan, slug(call.tool)),
        objective=objective or json.dumps(values, ensure_ascii=False, default=str),
        tool=call.tool,
        tool_input=values,
        budget=budget,
    )


# --- The conversation, from plan and records ---


def _conversation(now: Pass) -> Messages:
    """Return the messages of a turn: instructions, the question, and each turn so far with what its calls returned."""
    state, context, plan, bases, _ = now
    query = state["query"]
    prompt = context.prompts.for_language("agent", detect_language(query))
    messages = prompt.messages({"corpus": card(bases), "question": query, "today": context.today})
    messages += [
        ["human", fenced(d["message"])] for d in state["decisions"] if d["action"] == "respond"
    ]
    last = last_records(state["records"])
    shown = set[str]()
    notes_by_turn = _notes(now)
    for turn in range(1, state.get("iteration", 1) + 1):
        steps = [
            step
            for step in plan.steps
            if step.step_id in last and last[step.step_id]["iteration"] == turn
        ]
        notes = notes_by_turn[turn - 1] if turn <= len(notes_by_turn) else {}
        faults = notes.get("faults", [])
        results = [_result(now, last[step.step_id], shown) for step in steps]
        if steps or faults:
            messages += _turn_messages(Taken(str(notes.get("text", "")), steps, faults), results)
    return messages


def _turn_messages(taken: Taken, results: Sequence[str]) -> Messages:
    """Return a turn as messages: its calls in the form of ``Turn``, then one message for what each of them gave."""
    calls = [{"tool": step.tool, "input": step.tool_input} for step in taken.steps]
    turn = {"text": taken.text, "calls": [*calls, *(call for call, _ in taken.faults)]}
    answers = [*results, *(why for _, why in taken.faults)]
    return [
        ["ai", to_json(turn)],
        *(["tool", fenced(answer)] for answer in answers),
    ]


def _result(now: Pass, record: Data, shown: set[str]) -> str:
    """Return what a step gave, as the model reads it; passages that it has read are only named."""
    if not record["raw_output_ref"]:
        return without_secrets(str(record["error"] or record["status"]))
    if record["tool"] == THINK.name:
        return "Go on."
    body = now.context.runs.body(now.state["run_id"], str(record["raw_output_ref"]))
    pieces = [
        piece for n, piece in enumerate(body["results"]) if n < FIRST or piece["score"] >= SEEN
    ]
    if is_listing(record["tool"], record["raw_input"]):
        return result_text(
            {**body["output"], "results": [without_text(piece) for piece in pieces]}
        )
    text = result_text({**body["output"], "results": pieces}, shown)
    shown |= {piece["result_id"] for piece in pieces}
    return text


# --- One call of the model: with tools of its own kind, or by a form ---


async def _reply(
    now: Pass, messages: Messages, tools: Mapping[str, Tool], at: str, by_form: bool
) -> Json:
    """Return the model's reply in the form of ``Turn``, as one effect; ``by_form`` offers no tools."""
    state, context, _, bases, _ = now
    model = context.models["agent"]
    limits = Limits.from_settings(context.settings)
    inputs = {name: model_input(tool, bases) for name, tool in tools.items()}
    functions = [as_function(tool, inputs[name]) for name, tool in tools.items()]

    async def call() -> Json:
        try:
            message: Any = (
                None if by_form else await with_tools(model, _native(messages), functions, limits)
            )
            if message is None:
                message = await filled_in(model, _in_turn(messages), _form(tools, inputs), limits)
                text = reply_text(message)
            else:
                pairs = [(call["name"], call["args"]) for call in message.tool_calls]
                pairs += [(str(call["name"]), {}) for call in message.invalid_tool_calls]
                calls = [{"tool": name, "input": args} for name, args in pairs]
                text = to_json({"text": split(str(message.text))[0], "calls": calls})
        except ModelError as error:  # kept on the tape; the run goes on without the model
            return {"error": str(error), "at": at}
        thought = clean(thinking_text(message))
        own = context.prompts.for_language("agent", detect_language(state["query"]))
        return {
            "text": clean(text),
            "at": at,
            **accounted(context, "agent", own, token_usage(message), thought),
        }

    args = {
        "model": context.settings.role_model("agent"),
        "messages": messages,
        "tools": functions,
    }
    effect = await context.tape.effect("model", "agent", args, call)
    return dict(effect.value)


def _native(messages: Messages) -> list[Any]:
    """Return the messages as a model with tools reads them: each result after the call with its id."""
    native = list[Any]()
    ids = iter(())
    for kind, text in messages:
        if kind == "ai":
            turn = json.loads(text)
            calls = [
                {"name": call["tool"], "args": call["input"], "id": f"call_{len(native)}_{n}"}
                for n, call in enumerate(turn["calls"])
            ]
            ids = iter([call["id"] for call in calls])
            native.append(AIMessage(turn["text"], tool_calls=calls))
        elif kind == "tool":
            native.append(ToolMessage(text, tool_call_id=next(ids)))
        else:
            native.append((kind, text))
    return native


def _in_turn(messages: Messages) -> list[Any]:
    """Return the messages for a model without tools: results are said to it, those of a turn at once."""
    turned = list[tuple[str, str]]()
    for kind, text in messages:
        if kind == "tool" and turned[-1][0] == "human":
            turned[-1] = ("human", f"{turned[-1][1]}\n\n{text}")
        else:
            turned.append(("human" if kind == "tool" else kind, text))
    return turned


def _form(tools: Mapping[str, Tool], inputs: Mapping[str, type[BaseModel]]) -> type[BaseModel]:
    """Return the form of ``Turn`` in which each tool has its own input."""
    one_of: Any = Literal
    called = [
        create_model(
            f"call_{name}",
            __base__=ModelForm,
            tool=(one_of[name], Field(description=tool.description)),
            input=(inputs[name], ...),
        )
        for name, tool in tools.items()
    ]
    union: Any = called[0]
    for each in called[1:]:
        union |= each
    call_list = list[union]
    return create_model(
        "AgentTurn",
        __base__=ModelForm,
        text=(str, Field("", description="What was found, once no further call is needed")),
        calls=(call_list, Field(default_factory=list, max_length=CALLS)),
    )


# LangChain's own agent over the same tools, as a recorded graph


def agent(
    wb: Any,
    kb: str,
    *,
    model: Any = None,
    tools: Sequence[str] = (),
    review: bool | str | Sequence[str] = False,
    name: str = "",
) -> Any:
    """Return an agent over a knowledge base: a model calls tools until it answers, and everything is on a tape.

    It is LangChain's ``create_agent``, as ``wb.record`` returns it: ``agent.ask("Who built Moss Mill?")``.

    Args:
        kb: the knowledge base.
        model: a LangChain chat model that calls tools; by default that of the role ``agent``.
        tools: names of tools; by default as ``wb.tools.as_langchain`` chooses them.
        review: True asks a person before each call of a tool; names ask before calls of these.
        name: of its runs.

    Raises:
        ModelError: there is no model.
        UnknownKnowledge: lists the known bases.
        UnknownTool: lists the tools that it has.
    """
    # How many calls of tools it may make for one question.
    tool_calls = 24
    # How often an agent may ask its model for one question.
    calls = 12
    from langchain.agents import create_agent
    from langchain.agents.middleware import (
        HumanInTheLoopMiddleware,
        ModelCallLimitMiddleware,
        ToolCallLimitMiddleware,
    )

    base = wb.knowledge.get(kb)
    model = model or wb.ports().models.get("agent")
    if model is None:
        raise ModelError(NO_MODEL)
    tools_of_base = wb.tools.as_langchain(kb, tools)
    middleware: list[Any] = [
        ModelCallLimitMiddleware(run_limit=calls, exit_behavior="end"),
        ToolCallLimitMiddleware(run_limit=tool_calls, exit_behavior="continue"),
    ]
    if review:
        offered = [tool.name for tool in tools_of_base]
        names = [review] if isinstance(review, str) else review
        names = offered if names is True else list(names)
        if unknown := [name for name in names if name not in offered]:
            raise UnknownTool(unknown[0], offered)
        middleware.append(HumanInTheLoopMiddleware(interrupt_on=dict.fromkeys(names, True)))
    prompt = wb.prompts.for_language("agent", wb.settings.lang or "en")
    [[_, system], _] = prompt.messages({"corpus": card([base]), "question": "", "today": ""})
    graph = create_agent(
        model,
        tools_of_base,
        system_prompt=system,
        middleware=middleware,
        name=name or f"agent {kb}",
    )
    return required("workbench", "record", "record")(wb, graph)
