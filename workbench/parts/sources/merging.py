"""Enrichment: an external source is asked once, by a step or at the merge, for a name or a field that is missing.

A replay takes the answer from the tape, and asks nothing where the tape has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workbench.ports import Context
from workbench.records.tape import Tape
from workbench.state import (
    Data,
    Enrichment,
    ExecutionRecord,
    Json,
    RetrievalResult,
    RetrievalState,
)
from workbench.tools.tool import StepLog

STEP = "enrichment"
"""The tool that is asked, and where its evidence is merged; it is not a step of the plan."""


class Added(NamedTuple):
    """The evidence of an external source that no step has, its summary, and the number of its pieces."""

    results: list[RetrievalResult]
    summary: Enrichment
    pieces: int

    @property
    def counts(self) -> Json:
        """Return the statistics: the names asked for, the number of pieces, and what went wrong."""
        return {
            "asked": self.summary["asked"],
            "found": self.pieces,
            "notes": self.summary["notes"],
        }


async def enriched(state: RetrievalState, context: Context) -> Added | None:
    """Return what an external source adds to the evidence; None when nothing is missing or no source can be asked."""
    decision = state.get("route_decision")
    question = decision.get("question") if decision else None
    steps = [record for record in state.get("records", []) if record["tool"] == STEP]
    stopped = state.get("stop_reason") == "stopped_by_reviewer"
    if steps or stopped or not state.get("reflections"):  # nothing was judged
        return _by_steps(state, context, steps)
    # "Who edited Salt Road (1982)?" selects by a year, but asks for a field of what it names.
    lists = (
        question
        and question["intent"] in ("list", "recommend")
        and not (question["names"] and question["fields"])
    )
    kb = _base_to_ask(state, context) if question and not lists else None
    names = missing_names(state) if kb else []
    if not kb or not names:
        return None
    args = {"query": state["query"], "names": names}

    async def ask() -> Json:
        tool = context.tools[STEP]
        request = tool.input_schema.model_validate(args)
        output = await tool(request, context.searched.get(kb), StepLog(context.clock))
        return output.model_dump(mode="json")

    output = (await context.tape.aeffect(STEP, kb, args, ask)).value
    return Added(output["results"], _summary(names, [output]), len(output["results"]))


def _by_steps(
    state: RetrievalState, context: Context, records: Sequence[ExecutionRecord]
) -> Added | None:
    """Return what steps asked of the source; their evidence is that of the plan."""
    bodies = [
        context.runs.body(state["run_id"], ref)
        for ref in (r["raw_output_ref"] for r in records)
        if ref
    ]
    if not bodies:
        return None
    names = dict.fromkeys(
        name for record in records for name in record["raw_input"].get("names", [])
    )
    summary = _summary(list(names), [body["output"] for body in bodies])
    return Added([], summary, sum(len(body["results"]) for body in bodies))


def _summary(names: list[str], outputs: Sequence[Data]) -> Enrichment:
    graphs = [output["subgraph"] for output in outputs]
    return Enrichment(
        asked=names,
        notes=[note for output in outputs for note in output["notes"]],
        entities=[entity for graph in graphs for entity in graph.get("entities", [])],
        relations=[relation for graph in graphs for relation in graph.get("relations", [])],
    )


def _from_tape(context: Context) -> Tape | None:
    """Return the tape that answers instead of a source, if this run is a replay."""
    tape = context.tape
    return tape if isinstance(tape, Tape) and tape.mode == "replay" else None


def _base_to_ask(state: RetrievalState, context: Context) -> str | None:
    """Return the first base with an external source; in a replay the base whose source was asked."""
    if tape := _from_tape(context):
        return next((effect.name for effect in tape.known if effect.kind == STEP), None)
    available = set(context.searched.names())  # a fork may be in a workspace without the corpus
    prefixes = [kb for kb in state.get("kb_prefixes", []) if kb in available]
    return next((kb for kb in prefixes if context.searched.get(kb).enricher), None)


def can_enrich(state: RetrievalState, context: Context) -> bool:
    """Check whether an external source is ready to be asked; in a replay, whether a step asked it."""
    if tape := _from_tape(context):
        return any((effect.kind, effect.name) == ("tool", STEP) for effect in tape.known)
    kb = _base_to_ask(state, context)
    enricher = context.searched.get(kb).enricher if kb else None
    return enricher is not None and enricher.ready


def missing_names(state: RetrievalState) -> list[str]:
    """Return the names of the question without evidence, and those without a field that the source may know."""
    signals = state["reflections"][-1]["signals"]
    names = [
        *signals.get("unknown", []),
        *(c["name"] for c in signals.get("coverage", []) if not c["found"]),
    ]
    # only now: most questions ask no source
    from workbench.parts.sources.tmdb import FIELDS

    titles = {title for title, field in signals.get("missing_fields", []) if field in FIELDS}
    return list(dict.fromkeys([*names, *sorted(titles)]))
