"""The subgraph that writes a report in place of an answer: outline -> sections -> consistency -> assemble.

Before it is planned, what its question leaves open is asked, and added to the query, or assumed. Two nodes, so that a
model that has questions is asked once: ``clarify`` finds them, ``review_clarify`` asks a person
where the run is to stop for that, and reads the question again with the answers. Without a model two things are asked:
which document a name means that several have, and which subject where the question has no word of the bases.

Sections are written at once, each from its own evidence. What an earlier report of the same question wrote from the
same evidence is taken over. A person may decide at ``outline``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Annotated, Any, cast

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send
from pydantic import AfterValidator, Field

from workbench.errors import (
    Divergence,
    KnowledgeError,
    SettingsError,
    WorkbenchError,
    WorkspaceError,
    shown,
)
from workbench.events import logged, progress
from workbench.graphs.execute import executor
from workbench.graphs.merge import gather
from workbench.graphs.review import ARGS, LONGEST, Strict, ask_person, refuse, reread
from workbench.graphs.roles import ModelForm, ask_model
from workbench.graphs.route import model_plans
from workbench.graphs.slots import NONE, card
from workbench.graphs.writer_prompt import merged_evidence
from workbench.knowledge.dated import dated_bases, question_dates
from workbench.language.answer import name_left_open
from workbench.language.citing import cite
from workbench.parts.reports.assembly import assemble, checked, consistency, fingerprint
from workbench.parts.reports.kinds import report_type
from workbench.parts.reports.planning import with_aspects
from workbench.parts.reports.writer import (
    Draft,
    by_aspect,
    carried,
    new_outline,
    outlined,
    outlined_by_model,
    placed,
    plain_outline,
    section_by_model,
    section_text,
    writes,
)
from workbench.plans import Plan
from workbench.ports import Bases, Context, call_part, call_writer
from workbench.records.figures import source_title
from workbench.settings import RULES
from workbench.state import (
    Clarification,
    ConversationState,
    Data,
    Json,
    Question,
    ReportOutline,
    RetrievalResult,
    SectionContent,
    SectionOutline,
    StepTask,
    pick,
    unique,
)
from workbench.text import detect_language, to_json, visible
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
        options=unique(options),
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


_SHARED = ("run_id", "message", "kb_prefixes", "route_decision", "report")
"""What the writer of a section is given of the state."""


async def call_outliner(context: Context, query: str, evidence: Sequence[Any]) -> list[Json]:
    """Return the sections of the registered outliner.

    Raises:
        WorkbenchError: it gives anything but a list of sections over this evidence.
    """
    sections = await call_part("outliner", context, query, list(evidence))
    numbers = set(range(1, len(evidence) + 1))
    with suppress(AttributeError, KeyError, TypeError):
        filled = [{"summary": "", "query": query, **section} for section in sections]
        if filled and all(
            section["title"].strip() and numbers.issuperset(section["evidence"])
            for section in filled
        ):
            return filled
    raise WorkbenchError(
        f"The outliner gave {shown(sections)}. Give a list of {{'title', 'evidence'}}, the evidence as numbers from 1 "
        f"to {len(evidence)}."
    )


async def outliner(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Return what the report will say: the model's outline, or the rules'; and the sections of an earlier report."""
    context = runtime.context
    request = state["report"]
    results = merged_evidence(state)
    plan = state.get("plan") or {}
    writer = RULES
    if "writer" in context.parts:
        writer = "writer"
    elif "writer" in context.models:
        writer = context.settings.role_model("writer")
    lookup = {
        "report_id": f"{plan.get('plan_id', '')}:{plan.get('version', 1)}:{request['report_type']}",
        "user": state.get("user_id", ""),
    }
    look = context.runs.report if request["cached"] else lambda **_: {}
    earlier = context.tape.effect_value("memory", "report", lookup, lambda: look(**lookup))
    report = {
        **request,
        "report_id": lookup["report_id"],
        "by": writer,
        "numbers": earlier.get("numbers") or {},
    }
    sections_before = {section["fingerprint"]: section for section in earlier.get("sections", [])}
    if sections_before and earlier["outlined_by"] != RULES:
        report["outlined_by"] = earlier["outlined_by"]
        outline = carried(
            earlier["outline"], results, earlier["evidence"], dated_bases(context, state)
        )
    else:
        outline, report["outlined_by"], report["notes"] = await _outlined(state, context)
    reused = []
    for section, _, key in _with_pieces({**state, "report": report, "outline": outline}):
        if key in sections_before:
            reused.append(
                {**sections_before[key], "section_id": section["section_id"], "reused": True}
            )
    reviewed = "outline" in state.get("review", [])
    report["cache_hit"] = (
        bool(reused) and len(reused) == len(outline["sections"]) and not reviewed
    )
    return {"report": report, "outline": outline, "sections": reused}


def _with_pieces(state: Data) -> Iterator[tuple[SectionOutline, list[RetrievalResult], str]]:
    """Yield each section of the outline with its evidence, and a fingerprint of what it is written from."""
    by_id = {r["result_id"]: r for r in merged_evidence(state)}
    for section in state["outline"]["sections"]:
        pieces = [by_id[i] for i in section["evidence_ids"] if i in by_id]
        yield section, pieces, fingerprint(section, pieces, state["report"]["by"])


async def _outlined(
    state: ConversationState, context: Context
) -> tuple[ReportOutline, str, list[str]]:
    """Return the outline, who made it, and the notes on how it came about."""
    results = merged_evidence(state)
    proposals: Any = None
    notes = []
    if results and "outliner" in context.parts:
        proposals = await call_outliner(context, state["query"], results)
    elif results and writes(context):
        aspects = state["report"].get("aspects", [])
        titles = [title for aspect, parts in aspects for title in (aspect, *parts)]
        proposals = await outlined_by_model(context, state["message"], results, titles)
        notes = (
            []
            if proposals
            else ["outline: the model gave none that can be used, so it is the plain one"]
        )
    if not proposals:
        return plain_outline(state, results, dated_bases(context, state)), RULES, notes
    sections = [
        outlined(
            proposal["title"],
            proposal["query"] or proposal["title"],
            [results[place - 1] for place in proposal["evidence"]],
            summary=proposal["summary"],
        )
        for proposal in proposals[: report_type(state["report"]["report_type"]).sections]
    ]
    return new_outline(state, placed(sections)), "outliner", []


# where a person decides: to respond to the outline asks for one more section


class SectionEdit(Strict):
    """A section of an edited outline; a new one needs no id."""

    section_id: str = Field("", max_length=20)
    title: str = Field(pattern=r"\S", max_length=300)
    summary: str = Field("", max_length=LONGEST)
    query: str = Field("", max_length=LONGEST)
    evidence_ids: list[str] = Field(default_factory=list, max_length=1_000)
    estimated_words: int = Field(0, ge=0)
    quotes: list[str] = Field(default_factory=list, max_length=1_000)


class OutlineEdits(Strict):
    """What can be changed of an outline: its title, and which sections there are, in which order."""

    title: str | None = Field(None, pattern=r"\S", max_length=300)
    sections: list[SectionEdit] | None = Field(None, min_length=1, max_length=50)


async def review_outline(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Ask about the outline before anything is written, if the run's policy wants it."""
    report = state["report"]
    outline = state["outline"]
    if "outline" not in state.get("review", []) or not outline["sections"]:
        return {}
    pieces = [
        {"result_id": r["result_id"], "title": source_title(r), "score": r["score"]}
        for r in merged_evidence(state)
    ]
    known_ids = {piece["result_id"] for piece in pieces}

    def check(edits: OutlineEdits) -> None:
        refuse(
            (
                (*ARGS, "sections", n, "evidence_ids", m),
                f"{entry!r} is not a piece of the evidence.",
            )
            for n, section in enumerate(edits.sections or [])
            for m, entry in enumerate(section.evidence_ids)
            if entry not in known_ids
        )

    words = f"{len(outline['sections'])} sections, about {outline['total_estimated_words']} words: write them?"
    details = {"evidence": pieces}
    decision = ask_person(
        "outline", state, runtime, dict(outline), words, OutlineEdits, check, details=details
    )
    change: Json = {"decisions": [decision]}
    if decision["action"] == "reject":
        return {
            **change,
            "report": {**report, "stopped": True},
            "outline": {**outline, "sections": []},
        }
    if decision["action"] == "approve":
        return change
    change["report"] = {**report, "outlined_by": decision["who"]}
    if decision["action"] == "respond":
        return {
            **change,
            **await _one_more(state, runtime, decision["message"].strip(), decision["who"]),
        }
    edits = decision["edits"]
    sections = [
        {**entry, "query": entry["query"] or entry["title"]}
        for entry in edits.get("sections", [])
    ]
    new = {**outline, "title": edits.get("title", outline["title"])}
    new["sections"] = placed(cast(list[SectionOutline], sections)) or outline["sections"]
    new["total_estimated_words"] = sum(entry["estimated_words"] for entry in new["sections"])
    return {**change, "outline": new}


async def _one_more(
    state: ConversationState, runtime: Runtime[Context], wish: str, who: str
) -> Json:
    """Search for a section that a person wishes, and return the outline with it: it is asked about again."""
    # Pieces that a search adds to a section.
    most_pieces = 12
    context = runtime.context
    before = Plan.load(state["plan"])
    records = []
    plan = with_aspects(
        before, state["query"], [(wish, [])], (), state["kb_prefixes"], context.settings
    )
    plan = plan.copy_with(version=before.version + 1)
    context.runs.save_plan(state["run_id"], plan.dump(), who, wish)
    for step in plan.steps[len(before.steps) :]:
        task = StepTask(
            run_id=state["run_id"],
            kb_prefix=step.tool_input.get("kb_prefix", state["kb_prefix"]),
            step=step.model_dump(mode="json"),
            attempt=1,
            iteration=state.get("iteration", 1),
            remaining_s=context.settings.time_budget_s,
            sources={},
            upstream={},
            dates=question_dates(state),
        )
        records += (await executor(task, runtime))["records"]
    searched = [
        r for results in gather(records, context.runs, state["run_id"]).values() for r in results
    ]
    pieces = [r for r in searched if r["source_type"] == "chunk"][:most_pieces]
    [section] = by_aspect([wish], "", pieces, dated_bases(context, state))
    outline = state["outline"]
    merged = merged_evidence(state)
    known_ids = {r["result_id"] for r in merged}
    results = [*merged, *(r for r in pieces if r["result_id"] not in known_ids)]
    return {
        "plan": plan.dump(),
        "records": records,
        "merged": {**state["merged"], "retrieval_results": results},
        "outline": {**outline, "sections": placed([*outline["sections"], section])},
    }


async def fan_out(state: ConversationState) -> list[Send] | str:
    """Return what follows the outline: the outline again with one more section, the writers, or the end."""
    last = state["decisions"][-1] if state.get("decisions") else None
    if last and (last["point"], last["action"]) == ("outline", "respond"):
        return "review_outline"
    if state["report"].get("stopped"):
        return "assemble"
    prints = {
        section["section_id"]: section["fingerprint"] for section in state.get("sections", [])
    }
    shared = pick(state, *_SHARED)
    tasks = [
        {
            **shared,
            "dates": question_dates(state),
            "section": section,
            "pieces": pieces,
            "fingerprint": key,
        }
        for section, pieces, key in _with_pieces(state)
        if prints.get(section["section_id"]) != key
    ]
    return [Send("section", {**task, "total": len(tasks)}) for task in tasks] or "consistency"


async def section(task: Data, runtime: Runtime[Context]) -> Json:
    """Write one section, and hold each of its sentences against what it cites."""
    context = runtime.context
    outline = task["section"]
    pieces = task["pieces"]
    draft = await _drafted(task, context)
    text, _, unknown = cite(visible(draft.text), pieces)
    content = SectionContent(
        section_id=outline["section_id"],
        title=outline["title"],
        summary=outline["summary"],
        text=text.strip(),
        sources=[piece["result_id"] for piece in pieces],
        claims=[],
        fingerprint=task["fingerprint"],
        by=draft.by,
        reused=False,
        notes=[
            *draft.notes,
            *([f"citations of no evidence were removed: {unknown}"] if unknown else []),
        ],
    )
    done = await checked(content, pieces, task["message"], task["kb_prefixes"], context)
    before = sum(
        e["execution_log"]["node"] == "section" for e in context.runs.events(task["run_id"])
    )
    completed = min(before + 1, task["total"])
    runtime.stream_writer(
        progress("report", completed=completed, total=task["total"], note=outline["title"])
    )
    return {"sections": [done]}


async def _drafted(task: Data, context: Context) -> Draft:
    """Return the section's text by a custom writer, the model, or the rules."""
    outline = task["section"]
    pieces = task["pieces"]
    notes = []
    try:
        if pieces and "writer" in context.parts:
            return Draft(await call_writer(context, outline["query"], pieces), [], "writer")
        if pieces and writes(context):
            wish = task["report"].get("preferences", "")
            draft = await section_by_model(context, task["message"], outline, pieces, wish)
            if draft.text:
                return draft
            notes = draft.notes
    except (WorkspaceError, KnowledgeError, SettingsError, Divergence):
        # nothing that this section could help
        raise
    except Exception as unknown:
        # one's own writer or strategy may raise anything; the note shows it
        notes = [visible(f"{type(unknown).__name__}: {unknown}")]
    reading = task["route_decision"]["question"]
    kind = report_type(task["report"]["report_type"])
    return Draft(
        section_text(outline, pieces, reading, dated_bases(context, task), kind), notes, RULES
    )


def add_reporter(
    graph: StateGraph[Any, Context, Any, Any], after_clarify: Callable[[Any], Awaitable[str]]
) -> None:
    """Add to the conversation graph what a report needs: its questions before the retrieval, its writer after it."""
    graph.add_node(logged("clarify", clarify))
    graph.add_node(logged("clarify", review_clarify))
    graph.add_node("reporter", build_reporter().compile(checkpointer=True))
    graph.add_edge("clarify", "review_clarify")
    graph.add_conditional_edges(
        "review_clarify", after_clarify, ["retrieval", "kb_handler", "generate", "reporter"]
    )


def build_reporter() -> StateGraph[Any, Context, Any, Any]:
    """Return the subgraph, not compiled."""
    graph = StateGraph(ConversationState, context_schema=Context)
    writer: Any = logged("write", section)
    graph.add_node(logged("outline", outliner))
    graph.add_node(logged("decide", review_outline))
    graph.add_node("section", writer)
    graph.add_node(logged("check", consistency))
    graph.add_node(logged("assemble", assemble))
    for nodes in (
        [START, "outliner", "review_outline"],
        ["section", "consistency", "assemble", END],
    ):
        for start, end in pairwise(nodes):
            graph.add_edge(start, end)
    graph.add_conditional_edges(
        "review_outline", fan_out, ["review_outline", "section", "consistency", "assemble"]
    )
    return graph
