"""Holding a report against its evidence: each section as it is written, then all of them together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from langgraph.runtime import Runtime

from workbench.graphs.check import supported, with_marks
from workbench.graphs.generate import found
from workbench.graphs.report_assembly import standing
from workbench.ports import Context
from workbench.reports import checking
from workbench.reports.validating import meant_by, validate
from workbench.state import Claim, ConversationState, RetrievalResult, SectionContent


async def checked(
    content: SectionContent,
    pieces: Sequence[RetrievalResult],
    question: str,
    kb_prefixes: Sequence[str],
    context: Context,
) -> SectionContent:
    """A section with its statements, and a word behind each that its sources do not bear out."""
    if not context.settings.consistency_check or not pieces:
        return content
    support = await supported(context, content["text"], pieces, question)
    bases = context.bases(kb_prefixes)
    claims = [
        Claim(
            claim_id=checking.claim_id(content["section_id"], said["sentence"]),
            section_id=content["section_id"],
            text=checking.without_marks(said["sentence"]),
            evidence_ids=[pieces[n - 1]["result_id"] for n in said["cited"] if n <= len(pieces)],
            entities=sorted({m["surface"] for base in bases for m in base.link(said["sentence"])}),
            verdict=said["verdict"],
            why=said["why"],
        )
        for said in support
    ]
    return {**content, "text": with_marks(content["text"], support), "claims": claims}


async def consistency(state: ConversationState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Hold the sections against one another and against all the evidence."""
    if not runtime.context.settings.consistency_check:
        return {"report": {**state["report"], "consistency": {}}}
    sections = standing(state)
    empty = sum(not one["sources"] for one in sections)
    check = await asyncio.to_thread(checking.consistency, sections, found(state), empty)
    bases = runtime.context.bases(state["kb_prefixes"])
    text, reading = "\n".join(one["text"] for one in sections), state["route_decision"]["question"]
    check["validation"] = dict(validate(reading, text, meant_by(state["query"], bases[0]) if bases else None))
    return {"report": {**state["report"], "consistency": check}}
