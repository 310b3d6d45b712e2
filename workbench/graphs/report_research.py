"""New research for one section: a search of its own, joined to the plan; only that section is written anew."""

from __future__ import annotations

from typing import Any, cast

from langgraph.runtime import Runtime

from workbench.graphs.execute import executor
from workbench.graphs.generate import found
from workbench.graphs.merge import gather
from workbench.graphs.plan import ONE
from workbench.knowledge.dated import dated_bases, dates_asked
from workbench.plans import Plan, PlanStep, fresh_id
from workbench.ports import Context
from workbench.reports.extracting import sentences_in
from workbench.reports.outline import Meaning, least
from workbench.state import ConversationState, ExecutionRecord, SectionOutline, StepTask

MOST = 12
"""Pieces that a search adds to a section."""


async def research(state: ConversationState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Search for what a person wishes for a section, and give the section what was found."""
    context, redo = runtime.context, state["report"]["redo"]
    plan, wish = Plan.load(state["plan"]), redo["wish"]
    query = f"{state['query']} {wish}"
    step_id = fresh_id(plan, "research")
    records: list[ExecutionRecord] = []
    for number, kb in enumerate(state["kb_prefixes"]):
        name = step_id if len(state["kb_prefixes"]) == 1 else f"{step_id}_{number}"
        step = PlanStep(step_id=name, objective=wish, tool=ONE, tool_input={"query": query, "kb_prefix": kb})
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
            dates=dates_asked(state),
        )
        made = await executor(task, cast(Any, runtime))
        records += made["records"]
    pieces = [r for results in gather(records, context.runs, state["run_id"]).values() for r in results]
    pieces = [r for r in pieces if r["source_type"] == "chunk"]
    conditions, bases = state["route_decision"]["filters"], dated_bases(context, state)
    held = {doc_id for base in bases for doc_id in base.select(conditions)} if conditions else set[str]()
    pieces = ([r for r in pieces if r["metadata"].get("doc_id") in held] or pieces)[:MOST]
    known = {r["result_id"] for r in found(state)}
    merged = {
        **state["merged"],
        "retrieval_results": [*found(state), *(r for r in pieces if r["result_id"] not in known)],
    }
    says = Meaning(bases)
    told = [(piece, said.text) for piece in pieces for said in sentences_in(1, piece)]
    shares = says(wish, [text for _, text in told])
    fit = [(piece, text) for (piece, text), share in zip(told, shares, strict=True) if share >= least(wish, text)]
    own = list(dict.fromkeys(piece["result_id"] for piece, _ in fit))
    sections: list[SectionOutline] = []
    for section in state["outline"]["sections"]:
        if section["section_id"] == redo["section_id"]:
            ids = list(dict.fromkeys([*section["evidence_ids"], *own]))
            quotes = list(dict.fromkeys([*section["quotes"], *(text for _, text in fit)]))
            section = {**section, "evidence_ids": ids, "quotes": quotes}
        sections.append(section)
    outline = {**state["outline"], "sections": sections}
    return {"plan": plan.dump(), "records": records, "merged": merged, "outline": outline}
