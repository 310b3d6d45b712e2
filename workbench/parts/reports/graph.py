"""The subgraph that writes a report in place of an answer: outline -> sections -> consistency -> assemble.

Sections are written at once, each from its own evidence. What an earlier report of the same question wrote from the
same evidence is taken over. A person may decide at ``outline``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
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
from workbench.parts.reports.assembly import assemble
from workbench.parts.reports.checking import checked, consistency, section_print
from workbench.parts.reports.clarify import clarify, review_clarify
from workbench.parts.reports.extracting import section_text
from workbench.parts.reports.kinds import Aspect, ReportType, Topic, report_type
from workbench.parts.reports.outline import Meaning, Outliner, carried
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


async def outliner(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Return what the report will say: the model's outline, or the rules'; and the sections of an earlier report."""
    context, request, results = runtime.context, state["report"], merged_evidence(state)
    kind, plan = report_type(request["type"]), state.get("plan") or {}
    report_id = f"{plan.get('plan_id', '')}:{plan.get('version', 1)}:{kind.name}"
    who = context.settings.role_model("writer") if "writer" in context.models else RULES
    who = "writer" if "writer" in context.parts else who
    lookup = {"report_id": report_id, "user": state.get("user_id", "")}
    look: Any = context.runs.report if request.get("cached", True) else lambda **_: {}
    earlier = context.tape.effect("memory", "report", lookup, lambda: look(**lookup))
    report = {**request, "report_id": report_id, "by": who, "numbers": earlier.get("numbers") or {}}
    report["outlined_by"] = earlier.get("outlined_by") or RULES
    if earlier.get("sections") and report["outlined_by"] != RULES:
        outline = carried(earlier["outline"], results, earlier["evidence"], Meaning(dated_bases(context, state)))
    else:
        outline, report["outlined_by"], report["notes"] = await _outlined(state, context, kind)
    by_print, by_id = {section["fingerprint"]: section for section in earlier.get("sections", [])}, _by_id(results)
    reused: list[Any] = []
    for section in outline["sections"]:
        fingerprint = section_print(section, by_id, who)
        if fingerprint in by_print:
            reused.append({**by_print[fingerprint], "section_id": section["section_id"], "reused": True})
    reviewed = "outline" in state.get("review", [])
    report["cache_hit"] = bool(reused) and len(reused) == len(outline["sections"]) and not reviewed
    return {"report": report, "outline": outline, "sections": reused}


def _by_id(results: Sequence[RetrievalResult]) -> dict[str, RetrievalResult]:
    return {r["result_id"]: r for r in results}


async def _outlined(
    state: ConversationState, context: Context, kind: ReportType
) -> tuple[ReportOutline, str, list[str]]:
    """Return the outline, who made it, and the notes on how it came about."""
    results, aspects = merged_evidence(state), state["report"].get("aspects", [])
    topic = Topic(state["query"], tuple(Aspect(title, tuple(parts)) for title, parts in aspects))
    rules = _outlined_by_rules(state, context, results, topic)
    rules["title"] = " ".join(state["message"].split())[:300]
    proposals: Any = None
    if results and "outliner" in context.parts:
        proposals = await call_outliner(context, state["query"], results)
    elif results and "writer" in context.models and not budget_spent(context):
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
        for n, proposal in enumerate(proposals[: kind.sections], 1)
    ]
    words = sum(section["estimated_words"] for section in sections)
    return {**rules, "sections": sections, "total_estimated_words": words}, "outliner", []


def _outlined_by_rules(
    state: ConversationState, context: Context, results: Sequence[RetrievalResult], topic: Topic
) -> ReportOutline:
    bases, reading = dated_bases(context, state), state["route_decision"]["question"]
    known_nouns = (base.about()["nouns"] for base in bases)
    nouns: Data = next((words for words in known_nouns if words.get("en") or words.get("zh")), {})
    judged, kind = judge(reading, results, bases), report_type(state["report"]["type"])
    return Outliner(topic, reading, judged, results, nouns, Meaning(bases), kind).outline()


def fan_out(state: ConversationState) -> list[Send] | str:
    """Return one writer for each section that is not there yet."""
    by_id = _by_id(merged_evidence(state))
    prints = {section["section_id"]: section["fingerprint"] for section in state.get("sections", [])}
    tasks = [
        SectionTask(
            run_id=state["run_id"],
            message=state["message"],
            kb_prefixes=state["kb_prefixes"],
            route_decision=state["route_decision"],
            dates=question_dates(state),
            section=section,
            pieces=[by_id[i] for i in section["evidence_ids"] if i in by_id],
            fingerprint=section_print(section, by_id, state["report"]["by"]),
            wish=state["report"].get("preferences", ""),
            total=0,
        )
        for section in state["outline"]["sections"]
    ]
    tasks = [task for task in tasks if prints.get(task["section"]["section_id"]) != task["fingerprint"]]
    return [Send("section", {**task, "total": len(tasks)}) for task in tasks] or "consistency"


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
    way = [START, "outliner", "review_outline"], ["research", "review_outline"]
    for nodes in (*way, ["section", "consistency", "assemble", END]):
        for start, end in pairwise(nodes):
            graph.add_edge(start, end)
    graph.add_conditional_edges("review_outline", after_outline, ["research", "section", "consistency", "assemble"])
    return graph


def after_outline(state: ConversationState) -> list[Send] | str:
    """Return what follows the outline: research for a section that a person asked for, the writers, or the end."""
    report = state["report"]
    if report.get("stopped"):
        return "assemble"
    return "research" if report.get("redo") else fan_out(state)


async def research(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Search for what a person wishes for a section, and give the section what was found."""
    context, redo = runtime.context, state["report"]["redo"]
    plan, wish = Plan.load(state["plan"]), redo["wish"]
    query, records = f"{state['query']} {wish}", list[ExecutionRecord]()
    for kb in state["kb_prefixes"]:
        tool_input = {"query": query, "kb_prefix": kb}
        step = PlanStep(step_id=fresh_id(plan, "research"), objective=wish, tool=SEARCH, tool_input=tool_input)
        plan = plan.adding(step).model_copy(update={"version": plan.version + 1})
        context.runs.save_plan(state["run_id"], plan.dump(), redo["who"], wish)
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
    # Pieces that a search adds to a section.
    pieces = [r for r in gathered if r["source_type"] == "chunk"][:12]
    new = _outlined_by_rules(state, context, pieces, Topic(state["query"], (Aspect(wish),)))["sections"][0]
    content = {name: new[name] for name in ("evidence_ids", "quotes", "estimated_words")}
    sections = [
        {**section, **content} if section["section_id"] == redo["section_id"] else section
        for section in state["outline"]["sections"]
    ]
    results = list({**_by_id(merged_evidence(state)), **_by_id(pieces)}.values())
    return {
        "plan": plan.dump(),
        "records": records,
        "merged": {**state["merged"], "retrieval_results": results},
        "outline": {**state["outline"], "sections": sections},
    }
