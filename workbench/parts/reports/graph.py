"""The subgraph that writes a report in place of an answer: outline -> sections -> consistency -> assemble.

Sections are written at once, each from its own evidence. What an earlier report of the same question wrote from the
same evidence is taken over. A person may decide at ``outline``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send
from typing_extensions import TypedDict

from workbench.errors import Divergence, KnowledgeError, SettingsError, WorkspaceError
from workbench.events import logged, progress
from workbench.graphs.execute import executor
from workbench.graphs.generate import merged_evidence
from workbench.graphs.merge import gather
from workbench.graphs.plan import SEARCH
from workbench.graphs.roles import budget_spent
from workbench.knowledge.dated import dated_bases, question_dates
from workbench.language.answer import judge
from workbench.language.citing import cite
from workbench.parts.reports import checking
from workbench.parts.reports.assembly import assemble
from workbench.parts.reports.checking import checked, consistency, section_print
from workbench.parts.reports.clarify import clarify, review_clarify
from workbench.parts.reports.extracting import section_text, sentences_in
from workbench.parts.reports.kinds import Aspect, ReportType, Topic, report_type
from workbench.parts.reports.outline import Meaning, Outliner, carried, threshold
from workbench.parts.reports.review import review_outline
from workbench.parts.reports.writer import Draft, outlined_by_model, section_by_model
from workbench.plans import Plan, PlanStep, fresh_id
from workbench.ports import Context, call_outliner, call_writer
from workbench.records.tape import RULES
from workbench.state import (
    ConversationState,
    Data,
    ExecutionRecord,
    Json,
    ReportOutline,
    RetrievalResult,
    RouteDecision,
    SectionContent,
    SectionOutline,
    StepTask,
)
from workbench.text import visible


class SectionTask(TypedDict):
    """What the writer of one section is given."""

    run_id: str
    message: str
    kb_prefixes: list[str]
    route_decision: RouteDecision
    dates: list[str]
    section: SectionOutline
    pieces: list[RetrievalResult]
    fingerprint: str
    wish: str
    total: int


def report_topic(state: Data) -> Topic:
    """Return the topic of a report's run, in its parts."""
    report = state["report"]
    return Topic(state["query"], tuple(Aspect(title, tuple(parts)) for title, parts in report.get("aspects", [])))


async def outliner(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Return what the report will say: the model's outline, or the rules'; and what is there from before."""
    context, request, results = runtime.context, state["report"], merged_evidence(state)
    kind, plan = report_type(request["type"]), state.get("plan") or {}
    report_id = f"{plan.get('plan_id', '')}:{plan.get('version', 1)}:{kind.name}"
    who = context.settings.role_model("writer") if "writer" in context.models else RULES
    who = "writer" if "writer" in context.parts else who
    lookup = {"report_id": report_id, "user": state.get("user_id", "")}
    look: Any = context.runs.report if request.get("cached", True) else lambda **_: {}
    earlier = context.tape.effect("memory", "report", lookup, lambda: look(**lookup))
    words = checking.of_evidence(results)
    full_print = checking.fingerprint(
        words,
        state["message"],
        state["query"],
        request.get("assumptions"),
        request.get("preferences"),
        repr(kind),
        who,
        "outliner" in context.parts,
    )
    report = {
        **request,
        **{"report_id": report_id, "fingerprint": full_print, "by": who, "cache_hit": False},
        "numbers": earlier.get("numbers", {}),
        "outlined_by": earlier.get("outlined_by", RULES),
    }
    looked_at = "outline" in state.get("review", [])  # who wants to decide is asked
    if earlier.get("fingerprint") == full_print and earlier.get("sections") and not looked_at:
        reused = [cast(SectionContent, {**section, "reused": True}) for section in earlier["sections"]]
        return {"report": {**report, "cache_hit": True}, "outline": earlier["outline"], "sections": reused}
    if earlier.get("sections") and report["outlined_by"] != RULES:
        outline = carried(earlier["outline"], results, earlier["evidence"], Meaning(dated_bases(context, state)))
    else:
        outline, report["outlined_by"], report["notes"] = await _outlined(state, context, kind)
    by_print, by_id = {section["fingerprint"]: section for section in earlier.get("sections", [])}, _by_id(results)
    reused = []
    for section in outline["sections"]:
        own = section_print(section, by_id, who)
        if own in by_print:
            place = {"section_id": section["section_id"], "reused": True}
            reused.append(cast(SectionContent, {**by_print[own], **place}))
    return {"report": report, "outline": outline, "sections": reused}


def _by_id(results: Sequence[RetrievalResult]) -> dict[str, RetrievalResult]:
    return {r["result_id"]: r for r in results}


async def _outlined(
    state: ConversationState, context: Context, kind: ReportType
) -> tuple[ReportOutline, str, list[str]]:
    """Return the outline, who made it, and what is to be said of how it came about."""
    topic, results, bases = report_topic(state), merged_evidence(state), dated_bases(context, state)
    reading = state["route_decision"]["question"]
    known_nouns = (base.about()["nouns"] for base in bases)
    nouns: Data = next((words for words in known_nouns if words.get("en") or words.get("zh")), {})
    judged, says = judge(reading, results, bases), Meaning(bases)
    rules = Outliner(topic, reading, judged, results, nouns, says, kind).outline()
    rules["title"] = " ".join(state["message"].split())[:300]
    if not results:
        return rules, RULES, []
    if "outliner" in context.parts:
        proposals: Any = await call_outliner(context, state["query"], results)
    elif "writer" in context.models and not budget_spent(context):
        proposals = await outlined_by_model(context, state["message"], results, topic.titles())
    else:
        return rules, RULES, []
    if not proposals:
        return rules, RULES, ["outline: the model gave none that can be used, so it is the rules'"]
    sections = [
        SectionOutline(
            section_id=str(n),
            title=proposal["title"],
            summary=proposal["summary"],
            query=proposal["query"],
            evidence_ids=[results[place - 1]["result_id"] for place in proposal["evidence"]],
            estimated_words=max(60, 40 * len(proposal["evidence"])),
            quotes=[],
        )
        for n, proposal in enumerate(proposals, 1)
    ]
    sections = kind.shaped(sections)
    words = sum(s["estimated_words"] for s in sections)
    return {**rules, "sections": sections, "total_estimated_words": words}, "outliner", []


def fan_out(state: ConversationState) -> list[Send] | str:
    """Return one writer for each section that is not there yet."""
    by_id = _by_id(merged_evidence(state))
    prints = {section["section_id"]: section["fingerprint"] for section in state.get("sections", [])}
    tasks = []
    for section in state["outline"]["sections"]:
        own = section_print(section, by_id, state["report"]["by"])
        if prints.get(section["section_id"]) != own:
            tasks.append(_task(state, section, own))
    total = len(tasks)
    return [Send("section", {**task, "total": total}) for task in tasks] or "consistency"


def _task(state: ConversationState, section: SectionOutline, own: str) -> SectionTask:
    by_id = _by_id(merged_evidence(state))
    return SectionTask(
        run_id=state["run_id"],
        message=state["message"],
        kb_prefixes=state["kb_prefixes"],
        route_decision=state["route_decision"],
        dates=question_dates(state),
        section=section,
        pieces=[by_id[i] for i in section["evidence_ids"] if i in by_id],
        fingerprint=own,
        wish=state["report"].get("preferences", ""),
        total=1,
    )


async def section(task: SectionTask, runtime: Runtime[Context]) -> Json:
    """Write one section, and hold each of its sentences against what it cites."""
    context, outline, pieces = runtime.context, task["section"], task["pieces"]
    draft, by = await _drafted(task, context)
    text, _, unknown = cite(visible(draft.text), pieces)
    notes = [*draft.notes, *([f"citations of no evidence were removed: {unknown}"] if unknown else [])]
    content = SectionContent(
        **{name: outline[name] for name in ("section_id", "title", "summary")},  # type: ignore[typeddict-item]
        text=text.strip(),
        sources=[piece["result_id"] for piece in pieces],
        claims=[],
        fingerprint=task["fingerprint"],
        by=by,
        reused=False,
        notes=notes,
    )
    done = await checked(content, pieces, task["message"], task["kb_prefixes"], context)
    before = sum(e["execution_log"]["node"] == "section" for e in context.runs.events(task["run_id"]))
    completed = min(before + 1, task["total"])
    runtime.stream_writer(progress("report", completed=completed, total=task["total"], note=outline["title"]))
    return {"sections": [done]}


async def _drafted(task: SectionTask, context: Context) -> tuple[Draft, str]:
    """Return the section's text by a custom writer, the model, or the rules; and who wrote it."""
    outline, pieces, notes = task["section"], task["pieces"], list[str]()
    try:
        if pieces and "writer" in context.parts:
            return Draft(await call_writer(context, outline["query"], pieces), []), "writer"
        if pieces and "writer" in context.models:
            draft = await section_by_model(
                context,
                question=task["message"],
                title=outline["title"],
                summary=outline["summary"],
                pieces=pieces,
                wish=task["wish"],
            )
            if draft and draft.text:
                return draft, context.settings.role_model("writer")
            notes = draft.notes if draft else []
    except (WorkspaceError, KnowledgeError, SettingsError, Divergence):  # nothing that this section could help
        raise
    except Exception as unknown:  # one's own writer or strategy may raise anything; the note shows it
        notes = [visible(f"{type(unknown).__name__}: {unknown}")]
    reading = task["route_decision"]["question"]
    return Draft(section_text(outline, pieces, reading, dated_bases(context, task)), notes), RULES


def add_reporter(graph: StateGraph[Any, Context, Any, Any], after_clarify: Callable[[Any], str]) -> None:
    """Add to the conversation graph what a report needs: its questions before the retrieval, its writer after it."""
    graph.add_node(logged("clarify", clarify))
    graph.add_node(logged("clarify", review_clarify))
    graph.add_node("reporter", build_reporter().compile(checkpointer=True))
    graph.add_edge("clarify", "review_clarify")
    graph.add_conditional_edges("review_clarify", after_clarify, ["retrieval", "kb_handler", "generate", "reporter"])


def build_reporter() -> StateGraph[Any, Context, Any, Any]:
    """Return the subgraph, not compiled."""
    graph = StateGraph(ConversationState, context_schema=Context)
    writer: Any = logged("write", section)
    graph.add_node(logged("outline", outliner))
    graph.add_node(logged("decide", review_outline))
    graph.add_node("section", writer, input_schema=SectionTask)
    graph.add_node(logged("research", research))
    graph.add_node(logged("check", consistency))
    graph.add_node(logged("assemble", assemble))
    graph.add_edge(START, "outliner")
    graph.add_edge("outliner", "review_outline")
    graph.add_conditional_edges("review_outline", after_outline, ["research", "section", "consistency", "assemble"])
    graph.add_edge("research", "review_outline")
    graph.add_edge("section", "consistency")
    graph.add_edge("consistency", "assemble")
    graph.add_edge("assemble", END)
    return graph


def after_outline(state: ConversationState) -> list[Send] | str:
    """Return what follows the outline: research for a section that a person asked for, the writers, or the end."""
    report = state["report"]
    if report.get("stopped"):
        return "assemble"
    return "research" if report.get("redo") else fan_out(state)


RESEARCH_LIMIT = 12
"""Pieces that a search adds to a section."""


async def research(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Search for what a person wishes for a section, and give the section what was found."""
    context, redo = runtime.context, state["report"]["redo"]
    plan, wish = Plan.load(state["plan"]), redo["wish"]
    query, step_id = f"{state['query']} {wish}", fresh_id(plan, "research")
    records: list[ExecutionRecord] = []
    for number, kb in enumerate(state["kb_prefixes"]):
        name = step_id if len(state["kb_prefixes"]) == 1 else f"{step_id}_{number}"
        step = PlanStep(step_id=name, objective=wish, tool=SEARCH, tool_input={"query": query, "kb_prefix": kb})
        plan = plan.adding(step).model_copy(update={"version": plan.version + 1})
        context.runs.save_plan(state["run_id"], plan.dump(), redo.get("who", "person"), wish)
        task = StepTask(
            run_id=state["run_id"],
            query=query,
            kb_prefix=kb,
            step=step.model_dump(mode="json"),
            attempt=1,
            iteration=state.get("iteration", 1),
            remaining_s=context.settings.time_budget_s,
            sources={},
            upstream={},
            dates=question_dates(state),
        )
        records += (await executor(task, cast(Any, runtime)))["records"]
    gathered = [r for results in gather(records, context.runs, state["run_id"]).values() for r in results]
    pieces = [r for r in gathered if r["source_type"] == "chunk"][:RESEARCH_LIMIT]
    known_ids = _by_id(merged_evidence(state))
    results = [*merged_evidence(state), *(r for r in pieces if r["result_id"] not in known_ids)]
    quoted = [(piece["result_id"], sentence.text) for piece in pieces for sentence in sentences_in(1, piece)]
    shares = Meaning(dated_bases(context, state))(wish, [text for _, text in quoted])
    fit = [words for words, share in zip(quoted, shares, strict=True) if share >= threshold(wish, words[1])]
    sections = [dict(section) for section in state["outline"]["sections"]]
    outlined: Any = next(section for section in sections if section["section_id"] == redo["section_id"])
    outlined["evidence_ids"] = list(dict.fromkeys([*outlined["evidence_ids"], *(piece for piece, _ in fit)]))
    outlined["quotes"] = list(dict.fromkeys([*outlined["quotes"], *(text for _, text in fit)]))
    outline = {**state["outline"], "sections": sections}
    return {
        "plan": plan.dump(),
        "records": records,
        "merged": {**state["merged"], "retrieval_results": results},
        "outline": outline,
    }
