"""Where a person decides in a report: at the outline. To respond there asks for one more section."""

from __future__ import annotations

from typing import cast

from langgraph.runtime import Runtime
from pydantic import Field

from workbench.graphs.generate import merged_evidence
from workbench.graphs.review import ARGS, LONGEST, Strict, ask_person, refuse
from workbench.parts.reports.outline import capitalised, placed
from workbench.ports import Context
from workbench.state import ConversationState, Json, SectionOutline


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
    report = {name: value for name, value in state["report"].items() if name != "redo"}
    if "outline" not in state.get("review", []) or not state["outline"]["sections"]:
        return {"report": report}
    outline = state["outline"]
    pieces = [
        {"result_id": r["result_id"], "title": str(r["metadata"].get("title") or r["source_id"]), "score": r["score"]}
        for r in merged_evidence(state)
    ]
    known_ids = {piece["result_id"] for piece in pieces}

    def check(edits: OutlineEdits) -> None:
        refuse(
            ((*ARGS, "sections", n, "evidence_ids", m), f"{entry!r} is not a piece of the evidence.")
            for n, section in enumerate(edits.sections or [])
            for m, entry in enumerate(section.evidence_ids)
            if entry not in known_ids
        )

    words = f"{len(outline['sections'])} sections, about {outline['total_estimated_words']} words: write them?"
    decision = ask_person(
        "outline", state, runtime, dict(outline), words, OutlineEdits, check, details={"evidence": pieces}
    )
    change: Json = {"decisions": [decision], "report": report}
    if decision["action"] == "reject":
        return {**change, "report": {**report, "stopped": True}, "outline": {**outline, "sections": []}}
    if decision["action"] == "respond":
        return {**change, **_one_more(state, decision["message"], decision["who"])}
    edits = decision["edits"]
    if not edits:
        return change
    change["report"] = {**report, "outlined_by": decision["who"]}
    sections = outline["sections"]
    if "sections" in edits:
        sections = [
            cast(SectionOutline, {**entry, "query": entry["query"] or entry["title"]}) for entry in edits["sections"]
        ]
    new = {**outline, "title": edits.get("title", outline["title"]), "sections": placed(sections)}
    new["total_estimated_words"] = sum(entry["estimated_words"] for entry in new["sections"])
    return {**change, "outline": new}


def _one_more(state: ConversationState, wish: str, who: str) -> Json:
    """Return an outline with one more section, which is searched before it is written."""
    outline = state["outline"]
    number = 1 + max((int(s["section_id"].split(".")[0]) for s in outline["sections"]), default=0)
    section = SectionOutline(
        section_id=str(number),
        title=capitalised(wish.strip())[:300],
        summary="",
        query=wish,
        evidence_ids=[],
        estimated_words=0,
        quotes=[],
    )
    redo = {"section_id": section["section_id"], "wish": wish, "who": who}
    return {
        "outline": {**outline, "sections": [*outline["sections"], section]},
        "report": {**state["report"], "redo": redo, "outlined_by": who},
    }
