"""Enrichment: an external source is asked once, by a step or at the merge, for a name or a field that is missing.

A replay takes what was said from the tape; a run whose tape has nothing of it asked nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workbench.extensions import provided
from workbench.language.answer import judge
from workbench.ports import Bases, Context
from workbench.records.figures import Found
from workbench.records.tape import FROM_TAPE, Tape
from workbench.state import Data, Enrichment, ExecutionRecord, Json, RetrievalResult, RetrievalState
from workbench.tools import enrichment
from workbench.tools.tool import StepLog

STEP = "enrichment"
"""Under which the evidence is merged: no step of the plan."""


class Added(NamedTuple):
    """What came from outside: evidence that no step has, what there is to tell of it, and how many pieces came."""

    results: list[RetrievalResult]
    told: Enrichment
    found: int

    @property
    def counts(self) -> Json:
        """For the statistics: what was asked for, how much came, and what went wrong."""
        return {"asked": self.told["asked"], "found": self.found, "notes": self.told["notes"]}


async def enriched(state: RetrievalState, context: Context, found: Found) -> Added | None:
    """What a source outside adds to the evidence of the steps; None when nothing is lacking or nobody can be asked."""
    tape, decision = context.tape, state.get("route_decision")
    if (steps := [record for record in state.get("records", []) if record["tool"] == STEP]) or _is_stopped(state):
        return _by_steps(state, context, steps)
    if not decision or "question" not in decision:
        return None
    question = decision["question"]
    # "Who edited Salt Road (1982)?" selects by a year, but asks for a field of what it names.
    if question["intent"] in ("list", "recommend") and not (question["names"] and question["fields"]):
        return None
    kb = _base_to_ask(state, context)
    if kb is None:
        return None
    names = lacking(state, found, context.bases([kb]))
    if not names:
        return None
    query = state["query"]

    async def ask() -> Json:
        given = enrichment.EnrichmentInput.model_validate({"query": query, "names": names})
        output = await enrichment.search(given, context.searched.get(kb), StepLog(context.clock))
        return output.model_dump(mode="json")

    effect = await tape.aeffect(STEP, kb, {"query": query, "names": names}, ask, clock=context.clock.monotonic)
    output = effect.value
    return Added(output["results"], _told(names, [output]), len(output["results"]))


def _by_steps(state: RetrievalState, context: Context, records: Sequence[ExecutionRecord]) -> Added | None:
    """Return what steps brought from outside; their evidence is that of the plan."""
    bodies = [context.runs.body(state["run_id"], ref) for r in records if (ref := r["raw_output_ref"])]
    if not bodies:
        return None
    names = dict.fromkeys(name for record in records for name in record["raw_input"].get("names", []))
    told = _told(list(names), [body["output"] for body in bodies])
    return Added([], told, sum(len(body["results"]) for body in bodies))


def _told(names: list[str], outputs: Sequence[Data]) -> Enrichment:
    graphs = [output["subgraph"] for output in outputs]
    return Enrichment(
        asked=names,
        notes=[note for output in outputs for note in output["notes"]],
        entities=[entity for graph in graphs for entity in graph.get("entities", [])],
        relations=[relation for graph in graphs for relation in graph.get("relations", [])],
    )


def _base_to_ask(state: RetrievalState, context: Context) -> str | None:
    """Return the first base that has a source outside; in a replay the one whose source was asked."""
    tape = context.tape
    if isinstance(tape, Tape) and tape.mode in FROM_TAPE:
        return next((effect.name for effect in tape.known.values() if effect.kind == STEP), None)
    here = set(context.searched.names())  # a fork may be in a workspace without the corpus
    return next((kb for kb in state.get("kb_prefixes", []) if kb in here and context.searched.get(kb).enricher), None)


def can_enrich(state: RetrievalState, context: Context) -> bool:
    """Check whether a source outside has a key and can be asked; in a replay, whether a step asked it."""
    tape = context.tape
    if isinstance(tape, Tape) and tape.mode in FROM_TAPE:
        return any((effect.kind, effect.name) == ("tool", STEP) for effect in tape.known.values())
    return bool(context.settings.tmdb_key.get_secret_value()) and _base_to_ask(state, context) is not None


def _is_stopped(state: RetrievalState) -> bool:
    """Check whether a person wants no more, or nothing was judged."""
    return state.get("stop_reason") == "stopped_by_reviewer" or not state.get("reflections")


def lacking(state: RetrievalState, found: Found, bases: Bases) -> list[str]:
    """The names of the question that no evidence speaks of, or of which a field that is asked for is not said."""
    seen, reading = state["reflections"][-1]["signals"], state["route_decision"]["question"]
    evidence = [result for results in found.values() for result in results]
    judgement = judge(reading, evidence, bases)
    lost = [*seen.get("unknown", []), *(c["name"] for c in seen.get("coverage", []) if not c["found"])]
    fields = provided("sources", "fields") or ()
    titles = {title for title, field in judgement.missing_fields if field in fields}
    return list(dict.fromkeys([*lost, *judgement.missing_names, *titles]))
