"""The last node of retrieval: evidence of every step -> one numbered context."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile
from typing import Any

from langgraph.runtime import Runtime

from workbench.events import Event, enrichment
from workbench.graphs.enrich import STEP, enriched
from workbench.graphs.route import AGENT_TOOLS, Worker, make_worker_name, workers_of
from workbench.plans import ENDED_WELL, IDLE, last_records
from workbench.ports import Bases, Context, RunLog, ordered
from workbench.records.figures import Found, Identity, identity, retrieval_seconds, winners
from workbench.state import (
    Data,
    Evidence,
    ExecutionRecord,
    Json,
    Merged,
    RagRun,
    Records,
    RetrievalResult,
    RetrievalState,
    RouteDecision,
)
from workbench.tools.scoring import MODELS, Logistic, descending, probability

Pieces = dict[Identity, RetrievalResult]
MODEL = "merge"
SECOND = "second_pass"
SEARCH, CHAIN, HOP = "hybrid_search", "chain_exploration", "next_hop"
UNSEEN = 0.0005
"""What a tool that looked says of a passage that it did not find; what it says less of counts as this much."""
SPAN = 10.0
"""Log odds that count as 1."""


def agreed(results_by_step: Found) -> dict[Identity, float]:
    """Return the probability of each passage that the search or the chain found; nothing unless both of them looked.

    >>> piece = {"source_id": "d", "granularity": "low_level", "score": 0.6}
    >>> by = {name: [{**piece, "metadata": {"tools": [name]}}] for name in (SEARCH, CHAIN)}
    >>> list(agreed(by)) == [("d", "low_level", "")], agreed({SEARCH: by[SEARCH]})
    (True, {})
    """
    others: dict[Identity, float] = {}
    for results in results_by_step.values():
        for result in results:
            if _tool(result) not in (SEARCH, CHAIN, HOP):
                one = identity(result)
                others[one] = max(others.get(one, 0.0), result["score"])
    told = signals_of(results_by_step)
    return {one: max(probability(MODEL, mine), others.get(one, 0.0)) for one, mine in told.items()}


def signals_of(results_by_step: Found) -> dict[Identity, dict[str, float]]:
    """Return what the model weighs of each passage: the search where no title led a chain anywhere, else both.

    ``first``: whether a search put it first.
    """
    worth: dict[str, dict[Identity, float]] = {}
    first, led = set[Identity](), False
    for results in results_by_step.values():
        for place, result in enumerate(results):
            tool, one = _tool(result), identity(result)
            if tool not in (SEARCH, CHAIN):
                continue
            found = worth.setdefault(tool, {})
            found[one] = max(found.get(one, 0.0), worth_of(result["score"]))
            if tool == SEARCH and place == 0:
                first.add(one)
            steps = result["metadata"].get("chain", {}).get("steps", [])
            led = led or (tool == CHAIN and bool(steps) and steps[-1]["by"] != "phrase")
    if len(worth) < 2:
        return {}
    search, chain = worth[SEARCH], worth[CHAIN]
    signals = {}
    for one in dict.fromkeys([*search, *chain]):
        said = {"search_led" if led else "search": search.get(one, 0.0), "chain_led": chain.get(one, 0.0) * led}
        signals[one] = {"search": 0.0, "search_led": 0.0, **said, "first": float(one in first)}
    return signals


def _tool(result: RetrievalResult) -> str:
    return str(next(iter(result["metadata"].get("tools") or []), ""))


def worth_of(score: float) -> float:
    """Return what a probability adds to not having found a passage: its log odds above those.

    >>> worth_of(0.0001), worth_of(0.5)
    (0.0, 0.76)
    """
    return round(max(0.0, (_log_odds(score) - _log_odds(UNSEEN)) / SPAN), 3)


def _log_odds(score: float) -> float:
    kept = min(max(score, 1e-6), 1 - 1e-6)
    return math.log(kept / (1 - kept))


# --- The last node of retrieval: evidence of every step -> one numbered context ---

CONTRADICTION = 0.5
"""What is left of a score when the document's typed fields contradict what the question asked for."""


async def merger(state: RetrievalState, runtime: Runtime[Context]) -> Json:
    """Merge what the steps found, and say why the retrieval stopped."""
    settings, decision = runtime.context.settings, state.get("route_decision")
    records, found = state.get("records", []), collect(state, runtime.context)
    bases = runtime.context.bases(state.get("kb_prefixes", []))
    added = await enriched(state, runtime.context, found)
    if added:
        found = {**found, STEP: added.results} if added.results else found
        runtime.stream_writer(enrichment({**added.told, "found": added.found}))
    merged = merge(
        found,
        records,
        max_results=settings.merge_max_results,
        max_characters=settings.merge_max_characters,
        matching=matching_documents(decision, bases),
        by_score=settings.merge == "by_score",
    )
    if "merger" in runtime.context.parts:
        kept = await ordered(runtime.context, state["query"], merged["retrieval_results"])
        merged = _told(kept, merged["statistics"], settings.merge_max_characters)
    if added:
        merged["enrichment"] = added.told
        merged["statistics"]["enrichment"] = added.counts
    reflections = state.get("reflections", [])
    stop_reason = state.get("stop_reason") or (reflections[-1]["stop_reason"] if reflections else None)
    workers = workers_of(decision["worker_name"] if decision else "", state.get("kb_prefixes") or [state["kb_prefix"]])
    runs = _runs(records, found, merged, workers)
    for event in merged_events(merged, runs):
        runtime.stream_writer(event)
    return {"merged": merged, "runs": runs, "stop_reason": stop_reason or "no_further_action"}


def _runs(
    records: Sequence[ExecutionRecord],
    found: Found,
    merged: Merged,
    workers: Sequence[Worker],
) -> list[RagRun]:
    """Return what each worker did. Two of one base differ by their tools: what no other runs is the planner's."""
    runs = []
    for kb, agent_type, _ in workers:
        own = [r for r in records if (r["raw_input"].get("kb_prefix") or workers[0].kb_prefix) == kb]
        of_kb = [r for r in merged["retrieval_results"] if r["metadata"].get("kb_prefix", kb) == kb]
        beside = [w.agent_type for w in workers if w.kb_prefix == kb and w.agent_type != agent_type]
        if beside:
            others = {tool for name in beside for tool in AGENT_TOOLS.get(name, ())}
            tools = AGENT_TOOLS.get(agent_type)
            own = [r for r in own if (r["tool"] in tools if tools else r["tool"] not in others)]
            pieces = {identity(piece) for r in own for piece in found.get(r["step_id"], ())}
            of_kb = [r for r in of_kb if identity(r) in pieces]
        runs.append(
            RagRun(
                worker_name=make_worker_name(kb, agent_type),
                result_ids=[result["result_id"] for result in of_kb],
                error="; ".join(r["error"] for r in own if r["status"] in ("failed", "timeout") and r["error"]) or None,
                duration_ms=round(retrieval_seconds(own) * 1000, 3),
            )
        )
    return runs


def merged_events(merged: Merged, runs: Sequence[RagRun]) -> list[Event]:
    """What the debug collector is told of a merge: each agent's run with its evidence, the context, and the whole."""
    by_id = {result["result_id"]: (n, result) for n, result in enumerate(merged["retrieval_results"], 1)}
    told = []
    for run in runs:
        found = [by_id[one] for one in run["result_ids"] if one in by_id]
        context = "\n\n".join(_source(n, result) for n, result in found)
        results = [result for _, result in found]
        told.append({**run, "context": context, "retrieval_results": results})
    names = ("context", "retrieval_results", "reference", "statistics")
    return [
        {"rag_runs": told},
        {"combined_context": merged["context"]},
        {"retrieval_merged": {name: merged[name] for name in names}},  # type: ignore[literal-required]
    ]


def collect(state: RetrievalState, context: Context) -> dict[str, list[RetrievalResult]]:
    """Return what each step found."""
    return gather(state.get("records", []), context.runs, state.get("run_id", ""))


def evidence_of(state: RetrievalState, context: Context) -> list[RetrievalResult]:
    """Return the pieces that an answer would be written from now, in the order of their numbers."""
    bases = context.bases(state.get("kb_prefixes", []))
    matching = matching_documents(state.get("route_decision"), bases)
    return numbered(collect(state, context), matching, context.settings.merge == "by_score")


def gather(records: Records, runs: RunLog, run_id: str) -> dict[str, list[RetrievalResult]]:
    """Return what each step found, by step id, in the order in which passes and steps followed."""
    kept = [r for r in last_records(records).values() if r["status"] in ENDED_WELL and r["raw_output_ref"]]
    kept.sort(key=lambda record: (record["iteration"], record["step_id"]))
    return {r["step_id"]: runs.body(run_id, str(r["raw_output_ref"]))["results"] for r in kept}


def matching_documents(decision: RouteDecision | None, bases: Bases) -> frozenset[str] | None:
    """Ids of the documents that hold what a list or a recommendation was filtered by; None when nothing filters."""
    if not decision or not decision["filters"] or decision["query_intent"] not in ("list", "recommend"):
        return None
    return frozenset(doc_id for base in bases for doc_id in base.select(decision["filters"]))


def merge(
    results_by_step: Found,
    records: Records = (),
    *,
    max_results: int = 50,
    max_characters: int = 10_000,
    matching: Collection[str] | None = None,
    by_score: bool = True,
) -> Merged:
    """Evidence without doubles, best first, as sources ``[1]``, ``[2]``, ... of a context.

    Args:
        results_by_step: what each step found.
        records: what the steps did, for the statistics.
        max_results: how many pieces are kept.
        max_characters: how long the context may be. It is cut between two pieces, and touches ``context`` only;
            the first piece always stays, so that evidence never gives an empty context.
        matching: documents that hold the question's filters; others with typed fields keep half of their score.
        by_score: best first; else one step's findings stand behind the other's, as each step gave them.

    >>> piece = {"source_id": "d1#0", "source_type": "chunk", "granularity": "low_level", "score": 0.5,
    ...          "evidence": "It is a 1993 novel.", "metadata": {"title": "Moss", "tools": ["naive_search"]}}
    >>> merged = merge({"a": [piece], "b": [{**piece, "score": 0.9, "metadata": {"tools": ["hybrid_search"]}}]})
    >>> merged["retrieval_results"][0]["score"], merged["retrieval_results"][0]["metadata"]["tools"]
    (0.9, ['hybrid_search', 'naive_search'])
    >>> merged["statistics"]["deduplication_rate"], merged["reference"]["chunks"]
    (0.5, [{'chunk_id': 'd1#0'}])
    """
    retrieved = sum(len(results) for results in results_by_step.values())
    unique = numbered(results_by_step, matching, by_score)
    counted = {
        **_execution(list(records)),
        "total_retrieved": retrieved,
        "after_dedup": len(unique),
        "deduplication_rate": round(1 - len(unique) / retrieved, 6) if retrieved else 0.0,
    }
    return _told(unique[:max_results], counted, max_characters)


def numbered(results_by_step: Found, matching: Collection[str] | None, by_score: bool) -> list[RetrievalResult]:
    """Return each piece once, in the order of its number."""
    unique = distinct(results_by_step, matching)
    if not by_score:
        places = {one: place for place, one in enumerate(as_found(results_by_step))}
        unique.sort(key=lambda result: places[identity(result)])
    return unique


def _told(kept: list[RetrievalResult], counted: Data, max_characters: int) -> Merged:
    """These pieces as the numbered sources of a context, with what was counted before them."""
    sources = _fitting([_source(n, result) for n, result in enumerate(kept, 1)], max_characters)
    context = "\n\n".join(sources)
    statistics = {
        **counted,
        "used": len(sources),
        "left_out": counted["after_dedup"] - len(sources),
        "total_evidence_count": len(kept),
        "context_length": len(context),
    }
    return {"context": context, "retrieval_results": kept, "reference": _reference(kept), "statistics": statistics}


def distinct(results_by_step: Found, matching: Collection[str] | None = None) -> list[RetrievalResult]:
    """One piece for each (source, granularity) of a base: the highest score wins, every tool that found it is kept.

    Where a search and a chain both looked, the score is what they say together. A way to a piece stays with it.
    """
    first = {step: [r for r in results if _tool(r) != HOP] for step, results in results_by_step.items()}
    found: dict[Identity, list[RetrievalResult]] = {}
    for results in first.values():
        for result in results:
            found.setdefault(identity(result), []).append(result)
    together, best = agreed(first), winners(first)
    pieces = [_kept(result, found[one], together.get(one), matching) for one, (_, result) in best.items()]
    pieces.sort(key=_order)
    hops = [r for results in results_by_step.values() for r in results if _tool(r) == HOP]
    return with_hops(pieces, hops) if hops else pieces


def _order(result: RetrievalResult) -> tuple[float, str, str, str]:
    return -result["score"], result["source_id"], result["granularity"], result["metadata"].get("kb_prefix", "")


# --- What the next hops find has places of its own among the first five ---

KEPT = 2
"""Documents of the first pass that stand in front, whatever a next hop finds."""
PLACES = 5
"""Documents for which there are places in front."""


def with_hops(
    first: Evidence,
    hops: Evidence,
    model: Logistic = MODELS[SECOND],
    kept: int = KEPT,
) -> list[RetrievalResult]:
    """The first pass and what the next hops found: its first documents stand, behind them the likeliest come first.

    Args:
        first: what the first pass found, best first.
        hops: what every ``next_hop`` found.
        model: of what both say of a document.
        kept: how many documents of the first pass stand in front.
    """
    known = {identity(result): result for result in first}
    best: Pieces = {}
    for hop in sorted(hops, key=_order):
        best.setdefault(identity(hop), hop)
    front = list(dict.fromkeys(map(_document, first)))[:PLACES]
    standing = list(takewhile(lambda result: _document(result) in front[:kept], first))
    signals = signals_of_second(first, list(best.values()), front)
    behind = list[tuple[Any, ...]]()
    for one in {**known, **best}:
        both = [found[one] for found in (known, best) if one in found]
        if known.get(one) in standing:
            continue
        # of one document's passages the one comes first of which anything says most
        likeliest = max(result["score"] for result in both)
        piece = both[0].copy()
        piece["score"] = round(model(signals[_document(piece)]), 6)
        if len(both) > 1:
            tools = sorted({tool for result in both for tool in result["metadata"]["tools"]})
            piece["metadata"] = {**both[1]["metadata"], **both[0]["metadata"], "tools": tools}
        behind.append((-piece["score"], -likeliest, *_order(piece)[1:], piece))
    ordered: list[RetrievalResult] = [*standing, *(piece for *_, piece in sorted(behind, key=lambda row: row[:-1]))]
    scores = descending([result["score"] for result in ordered])
    return [{**result, "score": score} for result, score in zip(ordered, scores, strict=True)]


def signals_of_second(first: Evidence, hops: Evidence, front: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return what the model of the second pass weighs of each document.

    Returns:
        ``first`` and ``hop``: log odds of the most that the first pass and a hop say of a passage of it; ``front``:
        whether it is among the first five.
    """
    found: dict[str, dict[str, float]] = {}
    for name, results in (("first", first), ("hop", hops)):
        for result in results:
            said = found.setdefault(_document(result), {"first": _log_odds(UNSEEN), "hop": _log_odds(UNSEEN)})
            said[name] = max(said[name], _log_odds(result["score"]))
    return {document: {**said, "front": float(document in front)} for document, said in found.items()}


def _document(result: RetrievalResult) -> str:
    return str(result["metadata"].get("doc_id") or result["source_id"])


def first_documents(evidence: Evidence) -> list[RetrievalResult]:
    """Return the best result of each of the first documents."""
    first: dict[str, RetrievalResult] = {}
    for result in evidence:
        first.setdefault(_document(result), result)
    return list(first.values())[:PLACES]


def as_found(results_by_step: Found) -> list[Identity]:
    """Return every piece once, in the order of the steps and of what each found."""
    return list(dict.fromkeys(identity(result) for results in results_by_step.values() for result in results))


def _kept(
    best: RetrievalResult,
    every: Evidence,
    together: float | None,
    matching: Collection[str] | None,
) -> RetrievalResult:
    tools = {tool for result in every for tool in result["metadata"].get("tools", [])}
    way = next((result["metadata"]["chain"] for result in every if "chain" in result["metadata"]), None)
    metadata = {**({"chain": way} if way else {}), **best["metadata"], "tools": sorted(tools)}
    score = best["score"] if together is None else together
    if matching is not None and metadata.get("fields") and metadata.get("doc_id") not in matching:
        metadata["contradicts_filters"] = True
        score *= CONTRADICTION
    return {**best, "score": round(score, 6), "metadata": metadata}


def _source(number: int, result: RetrievalResult) -> str:
    title = result["metadata"].get("title")
    return f"[{number}] {title}\n{result['evidence']}" if title else f"[{number}] {result['evidence']}"


def _fitting(sources: list[str], max_characters: int) -> list[str]:
    length = 0
    for count, source in enumerate(sources):
        length += len(source) + (2 if count else 0)
        if length > max_characters and count:
            return sources[:count]
    return sources


def _reference(results: Iterable[RetrievalResult]) -> dict[str, list[dict[str, str]]]:
    ids: dict[str, list[dict[str, str]]] = {"chunks": [], "entities": [], "relationships": []}
    for result in results:
        if kind := _REFERENCES.get(result["source_type"]):
            plural, name = kind
            ids[plural].append({name: result["source_id"]})
    return ids


_REFERENCES = {"chunk": ("chunks", "chunk_id"), "entity": ("entities", "id"), "relationship": ("relationships", "id")}
"""Source type -> its place in the reference, and what an id is called there."""


def _execution(records: list[ExecutionRecord]) -> Json:
    counted = [r for r in last_records(records).values() if not not_needed(r)]
    well = sum(r["status"] in ENDED_WELL for r in counted)
    return {
        "total_steps": len(counted),
        "total_duration_ms": round(retrieval_seconds(records) * 1000, 3),
        "tool_distribution": dict(sorted(Counter(r["tool"] for r in counted).items())),
        "success_rate": round(well / len(counted), 6) if counted else 0.0,
    }


def not_needed(record: ExecutionRecord) -> bool:
    """Check whether a conditional step was skipped because nobody asked for it: it counts in no success rate."""
    return record["status"] == "skipped" and record["error"] in IDLE
