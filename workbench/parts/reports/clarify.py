"""Before a report is planned: what its question leaves open is asked, and added to the query, or assumed.

Two nodes, so that a model that has questions is asked once: ``clarify`` finds them, ``review_clarify`` asks a person
where the run is to stop for that, and reads the question again with the answers. Rules ask two things only: whom a name
means that several entities of a base have, and which subject is meant where the question has no word of the bases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from langgraph.runtime import Runtime
from pydantic import AfterValidator, Field

from workbench.events import progress
from workbench.graphs.review import ARGS, LONGEST, Strict, ask_person, refuse, reread
from workbench.graphs.roles import NONE, ModelForm, ask_model, card, model_plans
from workbench.ports import Bases, Context, KnowledgeBase
from workbench.settings import Settings
from workbench.state import Clarification, ConversationState, Entity, Json, Question
from workbench.text import detect_language, fold
from workbench.views.labels import Labels

LIMIT, MODEL_LIMIT, MOST_OPTIONS = 5, 3, 6
"""Questions that a person is asked at once, those of a model, and options of one."""
Line = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(lambda text: " ".join(text.split()))]


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

    answers: dict[str, Annotated[str, Field(max_length=LONGEST)]] | None = Field(None, max_length=20)
    query: str | None = Field(None, pattern=r"\S", max_length=LONGEST)


async def clarify(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Find what the question of a report leaves open."""
    if not state.get("report") or not state.get("kb_prefixes"):
        return {}
    context, reading = runtime.context, state["route_decision"]["question"]
    runtime.stream_writer(progress("clarify"))
    bases = context.bases(state["kb_prefixes"])
    questions = open_questions(state["query"], reading, bases, context.settings.default_domain)
    if model_plans(context):
        questions += await _by_model(state, context, questions)
    return {"clarifications": questions[:LIMIT]}


async def review_clarify(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Ask a person if the run is to stop for that, and continue with the question in its new words."""
    if "clarifications" not in state:
        return {}
    questions = state["clarifications"]
    if not must_ask(questions, state.get("review", []), runtime.context.settings):
        return _resume(state, runtime, questions, state["query"])
    ids = [question["question_id"] for question in questions]

    def check_ids(edits: ClarifyEdits) -> None:
        refuse(
            ((*ARGS, "answers", name), f"{name!r} was not asked. Known: {', '.join(ids)}.")
            for name in edits.answers or {}
            if name not in ids
        )

    words, details = " ".join(q["question"] for q in questions), {"in_force": {"query": state["query"], "answers": {}}}
    proposal = {"questions": questions}
    decision = ask_person("clarify", state, runtime, proposal, words, ClarifyEdits, check_ids, details=details)
    change: Json = {"decisions": [decision]}
    if decision["action"] == "reject":
        end = {"stop_reason": "stopped_by_reviewer", "use_retrieval": False, "answerer": "generate"}
        return {**change, **end, "report": {**state["report"], "stopped": True}}
    edits, message = decision["edits"], decision["message"].strip()
    if "query" in edits:  # a person's own words leave nothing to ask
        return {**change, **_resume(state, runtime, [], edits["query"])}
    answers = {q["question_id"]: chosen(message, q["options"]) for q in questions} | edits.get("answers", {})
    query = f"{state['query']} {message}".strip()
    return {**change, **_resume(state, runtime, answered(questions, answers), query)}


def must_ask(questions: Sequence[Clarification], review: Sequence[str], settings: Settings) -> bool:
    """Return whether a run stops for a person: they want to be asked, or it must not continue without an answer."""
    must = settings.stop_on_clarification and any(question["must"] for question in questions)
    return bool(questions) and ("clarify" in review or must or not settings.allow_unclarified_plan)


def _resume(state: ConversationState, runtime: Runtime[Context], questions: list[Clarification], query: str) -> Json:
    """Return the state with what was answered, the query that is searched for, and what the plan and the report state.

    Where no person says which thing a name means, the likeliest is searched for: a report is about one of them.
    """
    likeliest = {q["question_id"]: q["answer"] or q["assumed"] for q in questions if q["kind"] == "name"}
    query = refined(query, answered(questions, likeliest))
    assumptions = [*state["report"]["assumptions"], *stated(questions, detect_language(query))]
    change: Json = {"clarifications": questions, "assumptions": assumptions}
    if query != state["query"]:
        change |= reread(state, runtime, query)
        runtime.stream_writer({"route_decision": change["route_decision"]})
    return change


def _clarification(question_id: str, question: str, options: Iterable[str], **more: Any) -> Clarification:
    """Return a question whose first option is assumed."""
    kind: Any = question_id.partition(":")[0]
    own = list(dict.fromkeys(options))
    assumed = own[0] if own else ""
    more = {"must": False, "assumed": assumed, "answer": "", **more}
    return Clarification(question_id=question_id, kind=kind, question=question, options=own, **more)  # type: ignore


async def _by_model(
    state: ConversationState, context: Context, questions: Sequence[Clarification]
) -> list[Clarification]:
    """Return what the model that plans would ask besides; nothing where its reply cannot be used."""
    query = state["query"]
    covered = [*state["report"]["assumptions"], *(question["question"] for question in questions)]
    slots = {
        "question": json.dumps(query, ensure_ascii=False),
        "corpus": card(context.bases(state["kb_prefixes"])),
        "reading": json.dumps(state["route_decision"]["question"], ensure_ascii=False),
        "known": "\n".join(f"- {line}" for line in covered) or NONE,
        "most": str(MODEL_LIMIT),
    }
    reply = await ask_model(context, "planner", ModelQuestions, slots, question=query, prompt="clarify", quiet=True)
    forms = enumerate(reply.form.questions if reply.form else (), 1)
    return [_clarification(f"model:{n}", form.question, form.options, assumed=form.assumed) for n, form in forms]


# what a question leaves open, by rules


def open_questions(query: str, reading: Question, bases: Bases, domain: str = "") -> list[Clarification]:
    """Return what the question leaves open, the weightiest first.

    Args:
        query: as it stands alone.
        reading: of it.
        bases: that are asked.
        domain: what is assumed where the question says no subject; empty: all that the bases hold.
    """
    return [*_names(query, reading, bases), *_scope(reading, bases, domain)]


def _subject(question: Clarification) -> str:
    """Return the name that a question is about."""
    return question["question_id"].partition(":")[2]


def answered(clarifications: Iterable[Clarification], answers: Mapping[str, str]) -> list[Clarification]:
    """Return the questions with these answers, by id; one that means an option is that option.

    >>> asked = Clarification(question_id="scope", kind="scope", question="Which?", must=False, answer="",
    ...                       options=["all of it", "tea"], assumed="all of it")
    >>> [one["answer"] for text in ("2", "oolong") for one in answered([asked], {"scope": text})]
    ['tea', 'oolong']
    """
    results: list[Clarification] = []
    for clarification in clarifications:
        text = " ".join(answers.get(clarification["question_id"], "").split())
        answer = chosen(text, clarification["options"]) or text or clarification["answer"]
        results.append({**clarification, "answer": answer})
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
        what = (clarification["answer"] or clarification["assumed"]).rstrip(".。")
        words = {"name": _subject(clarification), "question": clarification["question"], "what": what}
        assumed = "" if clarification["answer"] else labels("clarified_assumed")
        lines.append(assumed + labels(f"clarified_{clarification['kind']}", **words))
    return lines


def _names(query: str, reading: Question, bases: Bases) -> Iterator[Clarification]:
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
            options = _described(written_of or entities, base, reading["language"])
            if len(options) > 1:
                surfaces.add(surface)
                question = Labels(reading["language"])("clarify_which", name=surface)
                yield _clarification(f"name:{surface}", question, options, must=bool(written_of))


def _described(entities: Sequence[Entity], base: KnowledgeBase, language: str) -> list[str]:
    """Return each entity by its name and the first two fields in which it differs from the others, else its id."""
    documents = [base.passages(doc_ids=[e["doc_id"]])[:1] if e["doc_id"] else [] for e in entities]
    rows = [passages[0]["fields"] if passages else {} for passages in documents]
    fields = sorted(base.about()["fields"], key=lambda field: field["type"] != "date")  # when comes to mind first
    names = [field["name"] for field in fields if field["type"] != "text"]
    columns = [[_field_text(row.get(name)) for row in rows] for name in names]
    apart = [column for column in columns if len(set(column)) > 1][:2]
    comma, form = ("，", "{}（{}）") if language == "zh" else (", ", "{} ({})")
    details = [comma.join(filter(None, (column[n] for column in apart))) for n in range(len(entities))]
    own = [form.format(e["name"], detail or e["entity_id"]) for e, detail in zip(entities, details, strict=True)]
    return list(dict.fromkeys(own))


def _field_text(value: object) -> str:
    values = value[:2] if isinstance(value, list) else [value]
    return ", ".join(str(value)[:80] for value in values if value is not None)


def _scope(reading: Question, bases: Bases, domain: str) -> Iterator[Clarification]:
    """Yield the subject, where the question has no word of the knowledge bases."""
    if reading["names"] or reading["conditions"]:
        return
    if not any(base.search("words", word, 1) for base in bases for word in reading["words"]):
        labels, number = Labels(reading["language"]), sum(base.about()["counts"]["documents"] for base in bases)
        everything = labels("clarify_everything", names=", ".join(base.name for base in bases), n=f"{number:,}")
        assumed = everything if domain in ("", "通用", "general") else domain
        yield _clarification("scope", labels("clarify_about"), [assumed, everything])
