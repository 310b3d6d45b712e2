"""Before a report is planned: what its question leaves open is found, asked, and said in the query, or assumed.

Two nodes, so that a model that has questions is asked once: ``clarify`` finds them, ``review_clarify`` asks a person
where the run is to stop for that, and reads the question again with what they said. Both stand between
``prepare_retrieval`` and the retrieval graph, and do nothing where no report is written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field

from workbench.events import progress
from workbench.graphs.review import ARGS, LONGEST, Strict, ask_person, refuse, reread
from workbench.graphs.roles import NONE, card, model_plans, say
from workbench.graphs.route import read_question
from workbench.parts.reports.clarifying import MOST, answered, open_questions, refined, stated, unanswered
from workbench.ports import Context
from workbench.settings import Settings
from workbench.state import Clarification, ConversationState
from workbench.text import language_of

MOST_OF_MODEL = 3


class ModelQuestion(BaseModel):
    """What a model would ask the person before it plans."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=200)
    options: list[str] = Field(default_factory=list, max_length=5)
    assumed: str = Field(min_length=1, max_length=200)


class ModelQuestions(BaseModel):
    """The questions, none where all is clear."""

    model_config = ConfigDict(extra="forbid")

    questions: list[ModelQuestion] = Field(max_length=MOST_OF_MODEL)


class ClarifyEdits(Strict):
    """What a person says: ``answers`` by the id of their question, or the whole ``query`` in other words.

    A question that is left out goes by what is assumed.
    """

    answers: dict[str, Annotated[str, Field(max_length=LONGEST)]] | None = Field(None, max_length=20)
    query: str | None = Field(None, pattern=r"\S", max_length=LONGEST)


async def clarify(state: ConversationState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Find what the question of a report leaves open, and what the person's own assumptions say of that."""
    if not state.get("report") or not state.get("kb_prefixes"):
        return {}
    runtime.stream_writer(progress("clarify"))
    found = _open(state, runtime.context, state["query"])
    if model_plans(runtime.context):
        found = [*found, *await _of_model(state, runtime.context, found)][:MOST]
    return {"clarifications": found}


async def review_clarify(state: ConversationState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Ask a person where the run is to stop for that; go on with the question as it is understood then."""
    if not state.get("report") or not state.get("kb_prefixes"):
        return {}
    asked = state.get("clarifications", [])
    if not must_ask(asked, state.get("review", []), runtime.context.settings):
        return _goes_on(state, runtime, asked, state["query"])

    def known(edits: ClarifyEdits) -> None:
        ids = [one["question_id"] for one in asked]
        refuse(
            ((*ARGS, "answers", name), f"{name!r} was not asked. Known: {', '.join(ids)}.")
            for name in edits.answers or {}
            if name not in ids
        )

    decision = ask_person(
        "clarify",
        state,
        runtime,
        {"questions": unanswered(asked)},
        " ".join(one["question"] for one in unanswered(asked)),
        ClarifyEdits,
        known,
        told={"in_force": {"query": state["query"], "answers": {}}},
    )
    kept: dict[str, Any] = {"decisions": [decision]}
    if decision["action"] == "reject":
        ended = {"stop_reason": "stopped_by_reviewer", "use_retrieval": False, "answerer": "generate"}
        return {**kept, **ended, "report": {**state["report"], "stopped": True}}
    edits, words = decision["edits"], decision["message"].strip()
    query = edits.get("query") or f"{state['query']} {words}".strip()
    given = answered(asked, edits.get("answers", {}))
    if query != state["query"]:
        given = _still_open(given, _open(state, runtime.context, query, [words] if words else []))
    return {**kept, **_goes_on(state, runtime, given, query)}


def must_ask(asked: Sequence[Clarification], review: Sequence[str], settings: Settings) -> bool:
    """Whether a run stops for a person: they want to be asked, or it must not go on without an answer."""
    left = unanswered(asked)
    if not left:
        return False
    must = settings.stop_on_clarification and any(one["must"] for one in left)
    return "clarify" in review or must or not settings.allow_unclarified_plan


def _open(state: ConversationState, context: Context, query: str, more: Sequence[str] = ()) -> list[Clarification]:
    """What a query leaves open, by rules."""
    bases, assumptions = context.bases(state["kb_prefixes"]), state["report"].get("assumptions", [])
    reading = state["route_decision"].get("question") if query == state["query"] else None
    reading = reading or read_question(query, bases, context.today)["question"]
    return open_questions(query, reading, bases, [*assumptions, *more], context.settings.default_domain)


def _still_open(before: Sequence[Clarification], now: Sequence[Clarification]) -> list[Clarification]:
    """What was answered or only a model can ask, and what the query in its new words leaves open."""
    kept = [one for one in before if one["answer"] or one["kind"] == "model"]
    ids = {one["question_id"] for one in kept}
    return [*kept, *(one for one in now if one["question_id"] not in ids)]


def _goes_on(
    state: ConversationState, runtime: Runtime[Context], asked: list[Clarification], query: str
) -> dict[str, Any]:
    """The state with what was answered, the query as it is searched for, and what the plan and the report state.

    Where nobody says whom a name means, the likeliest is searched for: what one report says is of one of them.
    """
    assumed = [one for one in unanswered(asked) if one["kind"] == "name"]
    likeliest = {one["question_id"]: one["assumed"] for one in assumed}
    searched = refined(query, answered(asked, likeliest))
    told = [*state["report"].get("assumptions", []), *stated(asked, language_of(query))]
    change: dict[str, Any] = {"clarifications": asked, "assumptions": told}
    if searched == state["query"]:
        return change
    change |= reread(state, runtime, searched)
    runtime.stream_writer({"route_decision": change["route_decision"]})
    return change


async def _of_model(state: ConversationState, context: Context, found: Sequence[Clarification]) -> list[Clarification]:
    """What the model that plans would ask besides; nothing where it says nothing usable."""
    decision, query = state["route_decision"], state["query"]
    known = [*state["report"].get("assumptions", []), *(one["question"] for one in found)]
    slots = {
        "question": json.dumps(query, ensure_ascii=False),
        "corpus": card(context.bases(state["kb_prefixes"])),
        "reading": json.dumps(decision.get("question", {}), ensure_ascii=False),
        "known": "\n".join(f"- {line}" for line in known) or NONE,
        "most": str(MOST_OF_MODEL),
    }
    said = await say(context, "planner", ModelQuestions, slots, question=query, prompt="clarify", quiet=True)
    return [
        Clarification(
            question_id=f"model:{number}",
            kind="model",
            question=" ".join(one.question.split()),
            options=[" ".join(option.split())[:200] for option in one.options if option.strip()],
            assumed=" ".join(one.assumed.split()),
            must=False,
            answer="",
        )
        for number, one in enumerate(said.form.questions if said.form else (), 1)
    ]
