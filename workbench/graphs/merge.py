"""The last node of retrieval: evidence of every step -> one numbered context."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from langgraph.runtime import Runtime

from workbench.events import Event, enrichment
from workbench.extensions import call_node, provided
from workbench.graphs.route import (
    AGENT_TOOLS,
    Worker,
    make_worker_name,
    rules_bind,
    workers_by_base,
)
from workbench.plans import ENDED_WELL, is_idle, last_records
from workbench.ports import Context, RunLog, call_merger
from workbench.records.figures import (
    Identity,
    ResultsByStep,
    fitting,
    identity,
    numbered_source,
    retrieval_seconds,
    winners,
)
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
    pick,
    unique,
)


async def merger(state: RetrievalState, runtime: Runtime[Context]) -> Json:
    """Merge the evidence of all steps, and say why the retrieval stopped."""
    context = runtime.context
    decision = state.get("route_decision")
    settings = context.settings
    records = state["records"]
    results_by_step = collect(state, context)
    prefixes = state.get("kb_prefixes") or [state["kb_prefix"]]
    enrich = provided("nodes", "enriched")
    added = await enrich(state, context) if enrich else None
    if added:
        results, summary = added
        if results:
            results_by_step["enrichment"] = results
        runtime.stream_writer(enrichment(summary))
    merged = merge(
        results_by_step,
        records,
        max_results=settings.merge_max_results,
        max_characters=settings.merge_max_characters,
        matching=_matching(state, context),
        by_score=settings.merge == "by_score",
    )
    if "merger" in context.parts:
        results = await call_merger(context, state["query"], merged["retrieval_results"])
        merged = _merged(results, merged["statistics"], settings.merge_max_characters)
    if added:
        merged["enrichment"] = summary
        merged["statistics"]["enrichment"] = pick(summary, "asked", "found", "notes")
    stop_reason = state.get("stop_reason")
    if not stop_reason and state["reflections"]:
        stop_reason = state["reflections"][-1]["stop_reason"]
    workers = workers_by_base(decision["worker_name"] if decision else "", prefixes)
    runs = [*_runs(records, merged, workers)]
    for event in merged_events(merged, runs):
        runtime.stream_writer(event)
    return {"merged": merged, "runs": runs, "stop_reason": stop_reason or "no_further_action"}


def _runs(
    records: Sequence[ExecutionRecord], merged: Merged, workers: Sequence[Worker]
) -> Iterator[RagRun]:
    """Yield what each worker did: of two workers of one base, each by its tools."""
    for kb, agent_type, _ in workers:
        tools = set(AGENT_TOOLS.get(agent_type, ()))
        own = [
            r
            for r in records
            if (r["raw_input"].get("kb_prefix") or workers[0].kb_prefix) == kb
            and (not tools or r["tool"] in tools)
        ]
        results = [
            r
            for r in merged["retrieval_results"]
            if r["metadata"].get("kb_prefix", kb) == kb
            and (not tools or tools & set(r["metadata"]["tools"]))
        ]
        errors = [r["error"] for r in own if r["status"] in ("failed", "timeout") and r["error"]]
        yield RagRun(
            worker_name=make_worker_name(kb, agent_type),
            result_ids=[result["result_id"] for result in results],
            error="; ".join(errors) or None,
            duration_ms=round(retrieval_seconds(own) * 1000, 3),
        )


def merged_events(merged: Merged, runs: Sequence[RagRun]) -> list[Event]:
    """Return the debug events of a merge: the run of each worker with its evidence, the context, and the whole."""
    numbered = [*enumerate(merged["retrieval_results"], 1)]
    by_id = {result["result_id"]: (n, result) for n, result in numbered}
    rag_runs = []
    for run in runs:
        pieces = [by_id[result_id] for result_id in run["result_ids"] if result_id in by_id]
        context = "\n\n".join(_source(n, result) for n, result in pieces)
        results = [result for _, result in pieces]
        rag_runs.append({**run, "context": context, "retrieval_results": results})
    names = ("context", "retrieval_results", "reference", "statistics")
    return [
        {"rag_runs": rag_runs},
        {"combined_context": merged["context"]},
        {"retrieval_merged": pick(merged, *names)},
    ]


def collect(state: RetrievalState, context: Context) -> dict[str, list[RetrievalResult]]:
    """Return what each step found: what a person struck is left out, what they pinned is marked."""
    results_by_step = gather(state["records"], context.runs, state.get("run_id", ""))
    return marked(results_by_step, state.get("pieces") or {})


def marked(
    results_by_step: ResultsByStep, marks: Mapping[str, str]
) -> dict[str, list[RetrievalResult]]:
    """Return the results without those that were struck, and mark those that were pinned."""

    marked_results: dict[str, list[RetrievalResult]] = {step: [] for step in results_by_step}
    for step, results in results_by_step.items():
        for result in results:
            mark = marks.get("/".join(identity(result)))
            if mark == "pinned":
                result = {**result, "metadata": {**result["metadata"], "pinned": True}}
            if mark != "struck":
                marked_results[step].append(result)
    return marked_results


def current_evidence(state: RetrievalState, context: Context) -> list[RetrievalResult]:
    """Return the pieces that an answer would be written from now, in the order of their numbers."""
    return _in_order(
        collect(state, context), _matching(state, context), context.settings.merge == "by_score"
    )


def _matching(state: RetrievalState, context: Context) -> frozenset[str] | None:
    """Return the documents that match the conditions of a list or a recommendation.

    None without conditions, and where a model planned by what it read itself.
    """
    decision = state.get("route_decision")
    if not decision or not rules_bind(state.get("plan"), context.settings):
        return None
    filters = decision["filters"]
    if not filters or decision["query_intent"] not in ("list", "recommend"):
        return None
    bases = context.bases(state.get("kb_prefixes", []))
    return frozenset(doc_id for base in bases for doc_id in base.select(filters))


def gather(records: Records, runs: RunLog, run_id: str) -> dict[str, list[RetrievalResult]]:
    """Return what each step found, by step id, in the order in which passes and steps followed."""
    ended = [
        r
        for r in last_records(records).values()
        if r["status"] in ENDED_WELL and r["raw_output_ref"]
    ]
    ended.sort(key=lambda record: (record["iteration"], record["step_id"]))
    return {r["step_id"]: runs.body(run_id, str(r["raw_output_ref"]))["results"] for r in ended}


def merge(
    results_by_step: ResultsByStep,
    records: Records = (),
    *,
    max_results: int = 50,
    max_characters: int = 10_000,
    matching: Collection[str] | None = None,
    by_score: bool = True,
) -> Merged:
    """Return the evidence without duplicates, best first, as sources ``[1]``, ``[2]``, ... of a context.

    Args:
        results_by_step: the results of each step.
        records: of the steps, for the statistics.
        max_results: the most pieces.
        max_characters: the longest context. It is cut between two pieces, and the cut touches ``context`` only;
            the first piece always stays, so that evidence never gives an empty context.
        matching: documents that match the conditions; the scores of others with typed fields are halved.
        by_score: best first; else the results of one step behind those of another, for comparison.

    >>> piece = {"source_id": "d1#0", "source_type": "chunk", "granularity": "low_level", "score": 0.5,
    ...          "evidence": "It is a 1993 novel.", "metadata": {"title": "Moss", "tools": ["naive_search"]}}
    >>> merged = merge({"a": [piece], "b": [{**piece, "score": 0.9, "metadata": {"tools": ["hybrid_search"]}}]})
    >>> merged["retrieval_results"][0]["score"], merged["retrieval_results"][0]["metadata"]["tools"]
    (0.9, ['hybrid_search', 'naive_search'])
    >>> merged["statistics"]["deduplication_rate"], merged["reference"]["chunks"]
    (0.5, [{'chunk_id': 'd1#0'}])
    """
    retrieved = sum(len(results) for results in results_by_step.values())
    unique = _in_order(results_by_step, matching, by_score)
    statistics = {
        **_execution(records),
        "total_retrieved": retrieved,
        "after_dedup": len(unique),
        "deduplication_rate": round(1 - len(unique) / retrieved, 6) if retrieved else 0.0,
    }
    return _merged(unique[:max_results], statistics, max_characters)


def _in_order(
    results_by_step: ResultsByStep, matching: Collection[str] | None, by_score: bool
) -> list[RetrievalResult]:
    pieces = distinct(results_by_step, matching)
    if not by_score:
        places = unique(map(identity, chain.from_iterable(results_by_step.values())))
        pieces.sort(key=lambda result: places.index(identity(result)))
    # stable: the rest stays in its order
    pieces.sort(key=lambda result: not result["metadata"].get("pinned"))
    return pieces


def _merged(results: list[RetrievalResult], statistics: Data, max_characters: int) -> Merged:
    """Return these pieces as the numbered sources of a context, with statistics."""
    sources = [_source(n, result) for n, result in enumerate(results, 1)]
    sources = sources[: fitting(sources, max_characters)]
    context = "\n\n".join(sources)
    statistics = {
        **statistics,
        "used": len(sources),
        "left_out": statistics["after_dedup"] - len(sources),
        "total_evidence_count": len(results),
        "context_length": len(context),
    }
    return {
        "context": context,
        "retrieval_results": results,
        "reference": _reference(results),
        "statistics": statistics,
    }


def distinct(
    results_by_step: ResultsByStep, matching: Collection[str] | None = None
) -> list[RetrievalResult]:
    """Return one piece for each (source, granularity) of a base: the highest score, with every tool that found it.

    The part ``chains`` gives what a search and a chain found their joint probability. A chain to a piece stays with it.
    """
    duplicates = defaultdict[Identity, list[RetrievalResult]](list)
    for result in chain.from_iterable(results_by_step.values()):
        duplicates[identity(result)].append(result)
    joint = call_node("joint_scores", {}, results_by_step)
    best_pieces = winners(results_by_step).items()
    pieces = [
        _joined(best, duplicates[key], joint.get(key), matching) for key, (_, best) in best_pieces
    ]
    return sorted(pieces, key=lambda piece: (-piece["score"], *identity(piece)))


PLACES = 5
"""Documents that count as the first ones."""


def first_documents(evidence: Evidence) -> list[RetrievalResult]:
    """Return the best result of each of the first documents."""
    first: dict[str, RetrievalResult] = {}
    for result in evidence:
        first.setdefault(result["metadata"].get("doc_id") or result["source_id"], result)
    return list(first.values())[:PLACES]


def _joined(
    best: RetrievalResult,
    duplicates: Evidence,
    joint: float | None,
    matching: Collection[str] | None,
) -> RetrievalResult:
    tools = {tool for result in duplicates for tool in result["metadata"].get("tools", [])}
    chains = (pick(r["metadata"], "chain") for r in duplicates if "chain" in r["metadata"])
    metadata = {**next(chains, {}), **best["metadata"], "tools": sorted(tools)}
    score = best["score"] if joint is None else joint
    if matching is not None and metadata.get("fields") and metadata.get("doc_id") not in matching:
        metadata["contradicts_filters"] = True
        # a document whose typed fields contradict the conditions of the question counts half
        score *= 0.5
    return {**best, "score": round(score, 6), "metadata": metadata}


def _source(number: int, result: RetrievalResult) -> str:
    return numbered_source(number, result["metadata"].get("title"), result["evidence"])


def _reference(results: Iterable[RetrievalResult]) -> dict[str, list[dict[str, str]]]:
    ids: dict[str, list[dict[str, str]]] = {"chunks": [], "entities": [], "relationships": []}
    keys = {
        "chunk": ("chunks", "chunk_id"),
        "entity": ("entities", "id"),
        "relationship": ("relationships", "id"),
    }
    for result in results:
        plural, name = keys.get(result["source_type"], ("", ""))
        if plural:
            ids[plural].append({name: result["source_id"]})
    return ids


def _execution(records: Records) -> Json:
    # a conditional step that was not activated counts in no success rate
    ended = last_records(records).values()
    counted = [r for r in ended if not is_idle(r)]
    well = sum(r["status"] in ENDED_WELL for r in counted)
    return {
        "total_steps": len(counted),
        "total_duration_ms": round(retrieval_seconds(records) * 1000, 3),
        "tool_distribution": dict(sorted(Counter(r["tool"] for r in counted).items())),
        "success_rate": round(well / len(counted), 6) if counted else 0.0,
    }
