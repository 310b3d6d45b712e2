"""Before a report is planned: what its question leaves open is asked, and added to the query, or assumed.

Two nodes, so that a model that has questions is asked once: ``clarify`` finds them, ``review_clarify`` asks a person
where the run is to stop for that, and reads the question again with the answers. Rules ask two things only: whom a name
means that several entities of a base have, and which subject is meant where the question has no word of the bases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

from langgraph.runtime import Runtime
from pydantic import BaseModel, Field

from workbench.events import progress
from workbench.graphs.review import ARGS, LONGEST, Strict, ask_person, refuse, reread
from workbench.graphs.roles import NONE, ask_model, card, model_plans
from workbench.ports import Context, KnowledgeBase
from workbench.settings import Settings
from workbench.state import Clarification, ConversationState, Data, Entity, Json, Question
from workbench.text import detect_language, fold
from workbench.views.labels import Labels

MODEL_LIMIT = 3


class ModelQuestion(BaseModel, extra="forbid"):
    """A question that a model would ask the person before it plans."""

    question: str = Field(min_length=1, max_length=200)
    options: list[str] = Field(default_factory=list, max_length=5)
    assumed: str = Field(min_length=1, max_length=200)


class ModelQuestions(BaseModel, extra="forbid"):
    """The questions, none where all is clear."""

    questions: list[ModelQuestion] = Field(max_length=MODEL_LIMIT)


class ClarifyEdits(Strict):
    """What a person says: ``answers`` by the id of their question, or the whole ``query`` in other words.

    A question that is left out goes by what is assumed.
    """

    answers: dict[str, Annotated[str, Field(max_length=LONGEST)]] | None = Field(None, max_length=20)
    query: str | None = Field(None, pattern=r"\S", max_length=LONGEST)


async def clarify(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Find what the question of a report leaves open."""
    if not state.get("report") or not state.get("kb_prefixes"):
        return {}
    context = runtime.context
    runtime.stream_writer(progress("clarify"))
    questions = open_questions(
        state["query"],
        state["route_decision"]["question"],
        context.bases(state["kb_prefixes"]),
        context.settings.default_domain,
    )
    if model_plans(context):
        questions += await _by_model(state, context, questions)
    return {"clarifications": questions[:LIMIT]}


async def review_clarify(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Ask a person if the run is to stop for that, and continue with the question in its new words."""
    if not state.get("report") or not state.get("kb_prefixes"):
        return {}
    questions = state.get("clarifications", [])
    if not must_ask(questions, state.get("review", []), runtime.context.settings):
        return _resume(state, runtime, questions, state["query"])
    ids = [question["question_id"] for question in questions]

    def check_ids(edits: ClarifyEdits) -> None:
        refuse(
            ((*ARGS, "answers", name), f"{name!r} was not asked. Known: {', '.join(ids)}.")
            for name in edits.answers or {}
            if name not in ids
        )

    words = " ".join(question["question"] for question in questions)
    in_force = {"query": state["query"], "answers": {}}
    proposal = {"questions": questions}
    decision = ask_person(
        "clarify", state, runtime, proposal, words, ClarifyEdits, check_ids, details={"in_force": in_force}
    )
    change: Json = {"decisions": [decision]}
    if decision["action"] == "reject":
        end = {"stop_reason": "stopped_by_reviewer", "use_retrieval": False, "answerer": "generate"}
        return {**change, **end, "report": {**state["report"], "stopped": True}}
    edits, message = decision["edits"], decision["message"].strip()
    if "query" in edits:  # a person's own words leave nothing to ask
        return {**change, **_resume(state, runtime, [], edits["query"])}
    meant = {question["question_id"]: chosen(message, question["options"]) for question in questions}
    questions = answered(questions, {**meant, **edits.get("answers", {})})
    return {**change, **_resume(state, runtime, questions, f"{state['query']} {message}".strip())}


def must_ask(questions: Sequence[Clarification], review: Sequence[str], settings: Settings) -> bool:
    """Return whether a run stops for a person: they want to be asked, or it must not continue without an answer."""
    left = unanswered(questions)
    must = settings.stop_on_clarification and any(question["must"] for question in left)
    return bool(left) and ("clarify" in review or must or not settings.allow_unclarified_plan)


def _resume(state: ConversationState, runtime: Runtime[Context], questions: list[Clarification], query: str) -> Json:
    """Return the state with what was answered, the query that is searched for, and what the plan and the report state.

    Where no person says which thing a name means, the likeliest is searched for: a report is about one of them.
    """
    likeliest = {q["question_id"]: q["assumed"] for q in unanswered(questions) if q["kind"] == "name"}
    query = refined(query, answered(questions, likeliest))
    assumptions = [*state["report"].get("assumptions", []), *stated(questions, detect_language(query))]
    change: Json = {"clarifications": questions, "assumptions": assumptions}
    if query != state["query"]:
        change |= reread(state, runtime, query)
        runtime.stream_writer({"route_decision": change["route_decision"]})
    return change


async def _by_model(
    state: ConversationState, context: Context, questions: Sequence[Clarification]
) -> list[Clarification]:
    """Return what the model that plans would ask besides; nothing where its reply cannot be used."""
    decision, query = state["route_decision"], state["query"]
    covered = [*state["report"].get("assumptions", []), *(question["question"] for question in questions)]
    slots = {
        "question": json.dumps(query, ensure_ascii=False),
        "corpus": card(context.bases(state["kb_prefixes"])),
        "reading": json.dumps(decision.get("question", {}), ensure_ascii=False),
        "known": "\n".join(f"- {line}" for line in covered) or NONE,
        "most": str(MODEL_LIMIT),
    }
    reply = await ask_model(context, "planner", ModelQuestions, slots, question=query, prompt="clarify", quiet=True)
    return [
        Clarification(
            question_id=f"model:{number}",
            kind="model",
            question=" ".join(form.question.split()),
            options=[" ".join(option.split())[:200] for option in form.options if option.strip()],
            assumed=" ".join(form.assumed.split()),
            must=False,
            answer="",
        )
        for number, form in enumerate(reply.form.questions if reply.form else (), 1)
    ]


# what a question leaves open, by rules

LIMIT, MOST_OPTIONS = 5, 6
"""Questions that a person is asked at once, and options of one."""


def open_questions(
    query: str, reading: Question, bases: Sequence[KnowledgeBase], domain: str = ""
) -> list[Clarification]:
    """Return what the question leaves open, the weightiest first, at most ``LIMIT``.

    Args:
        query: as it stands alone.
        reading: of it.
        bases: that are asked.
        domain: what is assumed where the question says no subject; empty: all that the bases hold.
    """
    return [*_names(query, reading, bases), *_scope(reading, bases, domain)][:LIMIT]


def _subject(question: Clarification) -> str:
    """Return the name that a question is about, or ""."""
    return question["question_id"].partition(":")[2] if question["kind"] == "name" else ""


def unanswered(clarifications: Iterable[Clarification]) -> list[Clarification]:
    """Return those without an answer."""
    return [clarification for clarification in clarifications if not clarification["answer"]]


def answered(clarifications: Iterable[Clarification], answers: Mapping[str, str]) -> list[Clarification]:
    """Return the questions with these answers, by id; one that means an option is that option.

    >>> asked = Clarification(question_id="scope", kind="scope", question="Which?", must=False, answer="",
    ...                       options=["all of it", "tea"], assumed="all of it")
    >>> [one["answer"] for text in ("2", "oolong") for one in answered([asked], {"scope": text})]
    ['tea', 'oolong']
    """
    results = []
    for clarification in clarifications:
        text = " ".join(str(answers.get(clarification["question_id"]) or "").split())
        answer = chosen(text, clarification["options"]) or text or clarification["answer"]
        results.append(Clarification(**{**clarification, "answer": answer}))
    return results


def chosen(answer: str, options: Sequence[str]) -> str:
    """Return the option that an answer means, by its number, or by a detail that no other has; "" for none or several.

    >>> books = ["Emma (1815, Jane Austen)", "Emma (2021, Ida Brandt)"]
    >>> [chosen(text, books) for text in ("2", "the one by Jane Austen", "Emma", "that of 2021")]
    ['Emma (2021, Ida Brandt)', 'Emma (1815, Jane Austen)', '', 'Emma (2021, Ida Brandt)']
    """
    text = fold(answer.strip().rstrip(".。"))
    for number, option in enumerate(options, 1):
        if text in (str(number), fold(option)):
            return option
    meant = [option for option in options if any(fold(part) in text for part in _details(option, options))]
    return meant[0] if len(meant) == 1 else ""


def _details(option: str, options: Sequence[str]) -> list[str]:
    """Return the parts of an option that no other option has."""
    rest = "\n".join(text for text in options if text != option)
    parts = re.split(r"\s*[,，()（）]\s*", option)
    return [part for part in parts if part and part not in rest]


def refined(query: str, clarifications: Iterable[Clarification]) -> str:
    """Return the query with the answers in it, each behind the name that it is of, or at the end.

    >>> one = Clarification(question_id="name:Dune", kind="name", question="Which Dune is meant?", must=True,
    ...                     options=["Dune (1984)", "Dune (2021)"], assumed="Dune (1984)", answer="Dune (2021)")
    >>> refined("How was Dune received?", [one])
    'How was Dune (2021) received?'
    >>> refined("《沙丘》反响如何？", [{**one, "question_id": "name:沙丘"}])
    '《沙丘》（2021）反响如何？'
    """
    for clarification in clarifications:
        answer, end = clarification["answer"], len(query)
        if not answer or (clarification["kind"] == "scope" and fold(answer) == fold(clarification["assumed"])):
            continue
        if clarification["kind"] == "name":
            # one detail is enough; a whole description would ask for more things
            answer = next(iter(_details(answer, clarification["options"])), answer)
            name = re.search(rf"{re.escape(_subject(clarification))}[》〉」』”\"'`]*", query)
            end = name.end() if name else 0
        elif clarification["kind"] == "model":
            answer = f"{clarification['question']} {answer}"
        if end and answer not in query:
            aside = f"（{answer}）" if detect_language(query) == "zh" else f" ({answer})"
            query = query[:end] + aside + query[end:]
    return query


def stated(clarifications: Iterable[Clarification], language: str) -> list[str]:
    """Return what was answered or is assumed, a sentence each, for a plan and a report to state.

    >>> one = Clarification(question_id="name:沙丘", kind="name", question="", must=True, options=[],
    ...                     assumed="沙丘（2021）", answer="")
    >>> stated([one], "zh"), stated([{**one, "answer": "沙丘（1984）"}], "en")
    (['假定：“沙丘”指沙丘（2021）。'], ['“沙丘” means 沙丘（1984）.'])
    """
    labels, lines = Labels(language), []
    for clarification in clarifications:
        if what := clarification["answer"] or clarification["assumed"]:
            words = {"name": _subject(clarification), "question": clarification["question"], "what": what.rstrip(".。")}
            assumed = "" if clarification["answer"] else labels("clarified_assumed")
            lines.append(assumed + labels(f"clarified_{clarification['kind']}", **words))
    return lines


def _names(query: str, reading: Question, bases: Sequence[KnowledgeBase]) -> Iterator[Clarification]:
    """Yield a question for each name that several entities of a base have, unless the reading has settled it."""
    surfaces = set[str]()
    for base in bases:
        for mention in base.link(query):
            surface, ids = mention["surface"], [mention["entity_id"], *mention.get("others", [])]
            read = any(n["start"] <= mention["start"] and mention["end"] <= n["end"] for n in reading["names"])
            if len(ids) < 2 or not read or surface in surfaces:
                continue
            entities = [entity for entity in map(base.entity, ids[:MOST_OPTIONS]) if entity]
            written_of = [entity for entity in entities if entity["doc_id"]]
            # what no document is about is rarely meant beside what one is
            options = list(dict.fromkeys(_described(written_of or entities, base, reading["language"])))
            if len(options) < 2:
                continue
            surfaces.add(surface)
            yield Clarification(
                question_id=f"name:{surface}",
                kind="name",
                question=Labels(reading["language"])("clarify_which", name=surface),
                options=options,
                assumed=options[0],
                must=bool(written_of),
                answer="",
            )


def _described(entities: Sequence[Entity], base: KnowledgeBase, language: str) -> Iterator[str]:
    """Yield each entity by its name and the first two fields in which it differs from the others, else its id."""
    rows = [_fields(entity, base) for entity in entities]
    fields = sorted(base.about()["fields"], key=lambda field: field["type"] != "date")  # when comes to mind first
    names = [field["name"] for field in fields if field["type"] in ("date", "name", "category", "number")]
    columns = [[_field_text(row.get(name)) for row in rows] for name in names]
    apart = [column for column in columns if len(set(column)) > 1][:2]
    comma, form = ("，", "{}（{}）") if language == "zh" else (", ", "{} ({})")
    for place, entity in enumerate(entities):
        details = comma.join(filter(None, (column[place] for column in apart)))
        yield form.format(entity["name"], details or entity["entity_id"])


def _fields(entity: Entity, base: KnowledgeBase) -> Data:
    """Return the typed fields of the document that an entity is."""
    passages = base.passages(doc_ids=[entity["doc_id"]]) if entity["doc_id"] else []
    return passages[0]["fields"] if passages else {}


def _field_text(value: object) -> str:
    values = value[:2] if isinstance(value, list) else [value]
    return ", ".join(str(value)[:80] for value in values if value is not None)


def _scope(reading: Question, bases: Sequence[KnowledgeBase], domain: str) -> Iterator[Clarification]:
    """Yield the subject, where the question has no word of the knowledge bases."""
    has_words = any(base.search("words", word, 1) for base in bases for word in reading["words"])
    if reading["names"] or reading["conditions"] or has_words:
        return
    labels, number = Labels(reading["language"]), sum(base.about()["counts"]["documents"] for base in bases)
    everything = labels("clarify_everything", names=", ".join(base.name for base in bases), n=f"{number:,}")
    assumed = everything if domain in ("", "通用", "general") else domain
    yield Clarification(
        question_id="scope",
        kind="scope",
        question=labels("clarify_about"),
        options=list(dict.fromkeys([assumed, everything])),
        assumed=assumed,
        must=False,
        answer="",
    )
