"""Before a report is planned: what its question leaves open is asked, and added to the query, or assumed.

Two nodes, so that a model that has questions is asked once: ``clarify`` finds them, ``review_clarify`` asks a person
where the run is to stop for that, and reads the question again with the answers. Without a model two things are asked:
which document a name means that several have, and which subject where the question has no word of the bases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from langgraph.runtime import Runtime
from pydantic import AfterValidator, Field

from workbench.events import progress
from workbench.graphs.review import ARGS, LONGEST, Strict, ask_person, refuse, reread
from workbench.graphs.roles import ModelForm, ask_model
from workbench.graphs.route import model_plans
from workbench.graphs.slots import NONE, card
from workbench.language.answer import name_left_open
from workbench.ports import Bases, Context
from workbench.state import Clarification, ConversationState, Json, Question
from workbench.text import detect_language, to_json
from workbench.views.labels import Labels

MODEL_LIMIT = 3
"""Questions that a model may ask."""
Line = Annotated[
    str, Field(min_length=1, max_length=200), AfterValidator(lambda text: " ".join(text.split()))
]


class ModelQuestion(ModelForm):
    """A question that a model would ask the person before it plans."""

    question: Line
    options: list[Line] = Field(default_factory=list, max_length=5)
    assumed: Line


class ModelQuestions(ModelForm):
    """The questions, none where all is clear."""

    questions: list[ModelQuestion] = Field(max_length=MODEL_LIMIT)


class ClarifyEdits(Strict):
    """What a person says: ``answers`` by the id of their question, or the whole ``query`` in other words.

    A question that is left out goes by what is assumed.
    """

    answers: dict[str, Annotated[str, Field(max_length=LONGEST)]] | None = Field(
        None, max_length=20
    )
    query: str | None = Field(None, pattern=r"\S", max_length=LONGEST)


async def clarify(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Find what the question of a report leaves open."""
    if not state.get("report") or not state.get("kb_prefixes"):
        return {}
    context = runtime.context
    reading = state["route_decision"]["question"]
    runtime.stream_writer(progress("clarify"))
    questions = open_questions(
        reading, context.bases(state["kb_prefixes"]), context.settings.default_domain
    )
    if model_plans(context):
        questions += await _by_model(state, context, questions)
    return {"clarifications": questions}


async def review_clarify(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Ask a person if the run is to stop for that, and continue with the question in its new words."""
    if "clarifications" not in state:
        return {}
    questions = state["clarifications"]
    settings = runtime.context.settings
    must = settings.stop_on_clarification and any(question["must"] for question in questions)
    wanted = must or "clarify" in state.get("review", []) or not settings.allow_unclarified_plan
    if not (questions and wanted):
        return _resume(state, runtime, questions, state["query"])
    ids = [question["question_id"] for question in questions]

    def check_ids(edits: ClarifyEdits) -> None:
        refuse(
            ((*ARGS, "answers", name), f"{name!r} was not asked. Known: {', '.join(ids)}.")
            for name in edits.answers or {}
            if name not in ids
        )

    words = " ".join(q["question"] for q in questions)
    details = {"in_force": {"query": state["query"], "answers": {}}}
    proposal = {"questions": questions}
    decision = ask_person(
        "clarify", state, runtime, proposal, words, ClarifyEdits, check_ids, details=details
    )
    change = {"decisions": [decision]}
    if decision["action"] == "reject":
        end = {
            "stop_reason": "stopped_by_reviewer",
            "use_retrieval": False,
            "answerer": "generate",
        }
        return {**change, **end, "report": {**state["report"], "stopped": True}}
    edits = decision["edits"]
    if "query" in edits:  # a person's own words leave nothing to ask
        return {**change, **_resume(state, runtime, [], edits["query"])}
    answers = {ids[0]: decision["message"]} | edits.get("answers", {})
    return {**change, **_resume(state, runtime, answered(questions, answers), state["query"])}


def _resume(
    state: ConversationState,
    runtime: Runtime[Context],
    questions: list[Clarification],
    query: str,
) -> Json:
    """Return the state with what was answered, the query that is searched for, and what the plan and the report state.

    Where no person says which document a name means, the first is searched for: a report is about one of them.
    """
    query = refined(query, questions)
    assumptions = [*state["report"]["assumptions"], *stated(questions, detect_language(query))]
    change = {"clarifications": questions, "assumptions": assumptions}
    if query != state["query"]:
        change |= reread(state, runtime, query)
        runtime.stream_writer({"route_decision": change["route_decision"]})
    return change


async def _by_model(
    state: ConversationState, context: Context, questions: Sequence[Clarification]
) -> list[Clarification]:
    """Return what the model that plans would ask besides; nothing where its reply cannot be used."""
    query = state["query"]
    covered = [*state["report"]["assumptions"], *(question["question"] for question in questions)]
    slots = {
        "question": to_json(query),
        "corpus": card(context.bases(state["kb_prefixes"])),
        "reading": to_json(state["route_decision"]["question"]),
        "known": "\n".join(f"- {line}" for line in covered) or NONE,
        "most": str(MODEL_LIMIT),
    }
    reply = await ask_model(
        context, "planner", ModelQuestions, slots, question=query, prompt="clarify", quiet=True
    )
    forms = enumerate(reply.form.questions if reply.form else (), 1)
    return [
        _clarification(f"model:{n}", form.question, form.options, form.assumed)
        for n, form in forms
    ]


def _clarification(
    question_id: str, question: str, options: Sequence[str], assumed: str
) -> Clarification:
    kind: Any = question_id.partition(":")[0]
    return Clarification(
        question_id=question_id,
        kind=kind,
        question=question,
        options=list(dict.fromkeys(options)),
        assumed=assumed,
        must=kind == "name",
        answer="",
    )


# what a question leaves open without a model


def open_questions(reading: Question, bases: Bases, domain: str = "") -> list[Clarification]:
    """Return what a question leaves open: a name that several documents have, else a subject that is not said.

    Args:
        reading: of it.
        bases: that are asked.
        domain: what is assumed where the question says no subject; empty: all that the bases hold.
    """
    labels = Labels(reading["language"])
    namesakes = name_left_open(reading["text"], bases)
    if namesakes:
        options = [document.text for document in namesakes.readings]
        name = namesakes.word
        return [
            _clarification(
                f"name:{name}", labels("clarify_which", name=name), options, options[0]
            )
        ]
    has_words = any(base.search("words", word, 1) for base in bases for word in reading["words"])
    if has_words or reading["names"] or reading["conditions"]:
        return []
    number = sum(base.about()["counts"]["documents"] for base in bases)
    everything = labels(
        "clarify_everything", names=", ".join(base.name for base in bases), n=f"{number:,}"
    )
    assumed = everything if domain in ("", "通用", "general") else domain
    return [_clarification("scope", labels("clarify_about"), [assumed, everything], assumed)]


def answered(
    clarifications: Iterable[Clarification], answers: Mapping[str, str]
) -> list[Clarification]:
    """Return the questions with these answers, by id; the number of an option is that option.

    >>> asked = Clarification(question_id="scope", kind="scope", question="Which?", must=False, answer="",
    ...                       options=["all of it", "tea"], assumed="all of it")
    >>> [one["answer"] for text in ("2", "oolong") for one in answered([asked], {"scope": text})]
    ['tea', 'oolong']
    """
    results: list[Clarification] = []
    for clarification in clarifications:
        text = " ".join(answers.get(clarification["question_id"], "").split())
        numbered = {str(n): option for n, option in enumerate(clarification["options"], 1)}
        results.append({**clarification, "answer": numbered.get(text, text)})
    return results


def refined(query: str, clarifications: Iterable[Clarification]) -> str:
    """Return the query with the answers behind it; of a name without one, what is assumed.

    >>> one = Clarification(question_id="name:Dune", kind="name", question="Which Dune is meant?", must=True,
    ...                     options=["Dune (1984)", "Dune (2021)"], assumed="Dune (1984)", answer="Dune (2021)")
    >>> refined("How was Dune received?", [one])
    'How was Dune received? (Dune (2021))'
    """
    for clarification in clarifications:
        answer = clarification["answer"]
        kind = clarification["kind"]
        if kind == "name":
            answer = answer or clarification["assumed"]
        elif kind == "scope" and answer == clarification["assumed"]:
            continue
        if answer and answer not in query:
            query += (
                f" ({clarification['question']} {answer})" if kind == "model" else f" ({answer})"
            )
    return query


def stated(clarifications: Iterable[Clarification], language: str) -> list[str]:
    """Return what was answered or is assumed, a sentence each, for a plan and a report to state.

    >>> one = Clarification(question_id="name:沙丘", kind="name", question="", must=True, options=[],
    ...                     assumed="沙丘（2021）", answer="")
    >>> stated([one], "zh"), stated([{**one, "answer": "沙丘（1984）"}], "en")
    (['假定：“沙丘”指沙丘（2021）。'], ['“沙丘” means 沙丘（1984）.'])
    """
    labels = Labels(language)
    lines = []
    for clarification in clarifications:
        what = (clarification["answer"] or clarification["assumed"]).rstrip(".。")
        name = clarification["question_id"].partition(":")[2]
        words = {"name": name, "question": clarification["question"], "what": what}
        assumed = "" if clarification["answer"] else labels("clarified_assumed")
        lines.append(assumed + labels(f"clarified_{clarification['kind']}", **words))
    return lines
