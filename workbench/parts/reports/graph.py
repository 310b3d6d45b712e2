"""The subgraph that writes a report in place of an answer: outline -> sections -> consistency -> assemble.

Sections are written at once, each from its own evidence. What an earlier report of the same question wrote from the
same evidence is taken over. A person may decide at ``outline``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, cast

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send
from pydantic import Field

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
from workbench.graphs.generate import merged_evidence
from workbench.graphs.merge import gather
from workbench.graphs.review import ARGS, LONGEST, Strict, ask_person, refuse
from workbench.knowledge.dated import dated_bases, question_dates
from workbench.language.citing import cite
from workbench.parts.reports.assembly import assemble
from workbench.parts.reports.checking import checked, consistency, fingerprint
from workbench.parts.reports.clarify import clarify, review_clarify
from workbench.parts.reports.kinds import report_type
from workbench.parts.reports.outline import (
    by_aspect,
    carried,
    new_outline,
    outlined,
    placed,
    plain_outline,
)
from workbench.parts.reports.planning import with_aspects
from workbench.parts.reports.writer import (
    Draft,
    outlined_by_model,
    section_by_model,
    section_text,
    writes,
)
from workbench.plans import Plan
from workbench.ports import Context, call_part, call_writer
from workbench.records.figures import source_title
from workbench.settings import RULES
from workbench.state import (
    ConversationState,
    Data,
    Json,
    ReportOutline,
    RetrievalResult,
    SectionContent,
    SectionOutline,
    StepTask,
)
from workbench.text import visible

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
    plan = plan.model_copy(update={"version": before.version + 1})
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
    shared = {name: state[name] for name in _SHARED}  # type: ignore[literal-required]
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
