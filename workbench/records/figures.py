"""The figures of a run, and what became of each finding: cited, in the prompt, or dropped, and why.

Pure data, from what a run keeps: the findings of each step, the merge, the citations. The rules by which findings are
one piece, and by which one of them represents it, are here; the merge goes by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal, cast

from typing_extensions import TypedDict

from workbench.plans import ENDED_WELL, last_records, work_seconds
from workbench.records.timeline import phases
from workbench.state import (
    Citation,
    Data,
    Evidence,
    ExecutionRecord,
    Json,
    Merged,
    Records,
    RetrievalResult,
    Supported,
)


class Figures(TypedDict):
    """Figures of a run so far: time, calls, evidence, support.

    ``total_s``: while any node of the graph was at work; waiting for a person, and what the tape answered, not at all.
    ``phases``: the seconds of each (``timeline.phases``), which add up to it.
    ``calls``: attempts at steps that this run made; ``saved_calls``: those that the tape of another run answered,
    and ``saved_s`` how long these had taken when they were made. ``found``: what the steps returned, doubles and
    all; ``evidence``: the distinct pieces of these, known from the first reflection; ``in_prompt``: those that
    fitted the prompt; ``cited``: those that the answer cites, its sources. ``passes``: of execute and reflect.
    ``statements``: of the answer; ``citation_recall``: the share of them that their sources support whole;
    ``citation_precision``: the share of citations that support their statement, wholly or in part; both None where
    there is nothing to count.
    """

    total_s: float
    phases: dict[str, float]
    calls: int
    saved_calls: int
    saved_s: float
    found: int
    evidence: int
    in_prompt: int
    cited: int
    passes: int
    statements: int
    citation_precision: float | None
    citation_recall: float | None


def figures(document: Data) -> Figures:
    """Return the figures of a run, from its document or what there is of it."""
    records = document["records"]
    log = document.get("log") or []
    statistics = document.get("statistics") or {}
    reflections = document.get("reflections") or []
    seen = reflections[-1]["signals"] if reflections else {}
    attempts = own(records)
    taped = [r for r in records if r.get("replayed")]
    worked = {
        name: sum(end - begin for begin, end in spans) / 1000
        for name, spans in phases(log, records).items()
    }
    ended = [r for r in last_records(records).values() if r["status"] in ENDED_WELL]
    return Figures(  # type: ignore[typeddict-item]
        total_s=round(sum(worked.values()), 6),
        phases={name: round(seconds, 6) for name, seconds in worked.items()},
        calls=sum(r["status"] != "skipped" for r in attempts),
        saved_calls=len(taped),
        saved_s=round(work_seconds(taped), 6),
        found=statistics.get(
            "total_retrieved", sum(r["output_summary"]["evidence_count"] for r in ended)
        ),
        evidence=statistics.get("after_dedup", seen.get("evidence_count", 0)),
        in_prompt=statistics.get("used", 0),
        cited=len({citation["n"] for citation in document.get("citations") or []}),
        passes=reflections[-1]["current_iteration"] if reflections else 0,
        **cast(Any, precision_and_recall(document.get("support") or [])),
    )


def precision_and_recall(support: Sequence[Supported]) -> dict[str, float | int | None]:
    """Of citations: how many support their sentence, and how many statements are supported whole.

    >>> one = {"sentence": "", "verdict": "supported", "cited": [1, 2], "by": [1]}
    >>> precision_and_recall([one, {**one, "verdict": "uncited", "cited": [], "by": []}])
    {'statements': 2, 'citation_precision': 0.5, 'citation_recall': 0.5}
    """
    cited = sum(len(statement["cited"]) for statement in support)
    right = sum(len(statement["by"]) for statement in support)
    supported = sum(statement["verdict"] == "supported" for statement in support)
    return {
        "statements": len(support),
        "citation_precision": round(right / cited, 6) if cited else None,
        "citation_recall": round(supported / len(support), 6) if support else None,
    }


def own(records: Records) -> list[ExecutionRecord]:
    """Return the attempts that a run made itself."""
    return [record for record in records if not record.get("replayed")]


def retrieval_seconds(records: Records) -> float:
    """Return how long at least one step of this run was at work; what the tape answered took none of its time."""
    return round(work_seconds(own(records)), 6)


Fate = Literal["found", "cited", "used", "dropped"]
Why = Literal["", "duplicate", "results", "characters", "struck"]
Identity = tuple[str, str, str]
ResultsByStep = Mapping[str, Evidence]
"""What each step found, by step."""


def identity(result: RetrievalResult) -> Identity:
    """Return what makes two findings one piece: source, granularity, knowledge base."""
    return (
        result["source_id"],
        result["granularity"],
        str(result["metadata"].get("kb_prefix", "")),
    )


def source_title(result: Data) -> str:
    """Return the title of a finding's document, else its id."""
    return str(result["metadata"].get("title") or result["source_id"])


def winners(results_by_step: ResultsByStep) -> dict[Identity, tuple[str, RetrievalResult]]:
    """Return for each piece the step and finding that represent it: the highest score, the first of equal ones.

    >>> piece = {"source_id": "d", "granularity": "low_level", "metadata": {}}
    >>> best = winners({"a": [{**piece, "score": 1}], "b": [{**piece, "score": 2}]})
    >>> [(step, result["score"]) for step, result in best.values()]
    [('b', 2)]
    """
    best: dict[Identity, tuple[str, RetrievalResult]] = {}
    for step_id, results in results_by_step.items():
        for result in results:
            _, leader = best.setdefault(identity(result), (step_id, result))
            if result["score"] > leader["score"]:
                best[identity(result)] = (step_id, result)
    return best


def numbered_source(number: int, title: str | None, text: str) -> str:
    """Return a piece as a context has it."""
    return f"[{number}] {title}\n{text}" if title else f"[{number}] {text}"


def fitting(sources: Sequence[str], max_characters: int) -> int:
    """Return how many sources fit a context: at least the first, and all before the first that does not."""
    lengths = accumulate(len(source) + 2 for source in sources)  # with what stands between
    return max(1, sum(length - 2 <= max_characters for length in lengths))


class Piece(TypedDict):
    """One finding of a step, or the representative of several.

    ``n`` is its place in the merge, None when it did not come so far; ``step`` found it, with the highest score where
    several ``steps`` did. ``score`` is after the merge. ``why`` it was dropped: ``results`` and ``characters`` are the
    two limits of the merge, ``duplicate`` the same piece again, ``struck`` a person's decision. ``mark`` is that of a
    person, ``signals`` are the parts of its score, ``fields`` its document's.
    """

    key: str
    n: int | None
    result_id: str
    step: str
    title: str
    url: str
    text: str
    score: float
    tools: list[str]
    fate: Fate
    in_prompt: bool
    why: Why
    steps: list[str]
    mark: str
    signals: dict[str, float]
    fields: Json


def pieces(
    results_by_step: ResultsByStep,
    evidence: Evidence,
    merged: Merged | None = None,
    citations: Iterable[Citation] = (),
    marks: Mapping[str, str] = {},
) -> list[Piece]:
    """Return every finding, those in the merge first, in its order; then what was dropped, best first.

    Args:
        results_by_step: what each step found.
        evidence: the distinct pieces, best first; with a merge those that it kept.
        merged: the merge, once there is one: then each piece has its fate.
        citations: of the answer.
        marks: ``pinned`` or ``struck``, by the keys of pieces.
    """
    best = winners(results_by_step)
    identities = {step: {*map(identity, results)} for step, results in results_by_step.items()}
    cited = {citation["result_id"] for citation in citations}
    used = merged["statistics"]["used"] if merged else 0

    def piece(
        step_id: str, result: RetrievalResult, n: int | None, fate: Fate, why: Why, key: str = ""
    ) -> Piece:
        own = identity(result)
        metadata = result["metadata"]
        return Piece(
            key=key or "/".join(own),
            n=n,
            result_id=result["result_id"],
            step=step_id,
            title=source_title(result),
            url=str(metadata.get("url") or ""),
            text=result["evidence"],
            score=result["score"],
            tools=[str(tool) for tool in metadata.get("tools") or []],
            fate=fate,
            in_prompt=n is not None and n <= used,
            why=why,
            steps=[step for step, keys in identities.items() if own in keys],
            mark=marks.get("/".join(own), ""),
            signals=metadata.get("signals") or {},
            fields=metadata.get("fields") or {},
        )

    rows = []
    for n, result in enumerate(evidence, 1):
        step_id, _ = best.get(identity(result), ("", result))
        fate: Fate = "used" if n <= used else "dropped"
        if merged is None:
            fate = "found"
        elif result["result_id"] in cited:
            fate = "cited"
        rows.append(piece(step_id, result, n, fate, "characters" if fate == "dropped" else ""))
    dropped = []
    in_merge = {*map(identity, evidence)}
    for step_id, results in results_by_step.items():
        for rank, result in enumerate(results, 1):
            own = identity(result)
            key = "/".join((*own, step_id, str(rank)))
            if best[own][0] != step_id or best[own][1] is not result:
                dropped.append(piece(step_id, result, None, "dropped", "duplicate", key))
            elif own not in in_merge:
                why: Why = "struck" if marks.get("/".join(own)) == "struck" else "results"
                dropped.append(piece(step_id, result, None, "dropped", why))
    if merged is None:  # nothing is dropped yet but what a person struck
        dropped = [entry for entry in dropped if entry["why"] == "struck"]
    order = ("struck", "results", "duplicate")
    return [*rows, *sorted(dropped, key=lambda p: (order.index(p["why"]), -p["score"], p["key"]))]
