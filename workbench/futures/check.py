"""A recorded run against today's code: route, plans, steps, judgements, decisions, evidence, citations, in this order.

What a model words is left out: its recorded words stand in for it, and nothing is said of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workbench.canonical import comparable
from workbench.errors import Divergence
from workbench.run import Run
from workbench.tape import differences

_OF_REFLECTION = ("current_iteration", "should_continue", "next_steps", "activate", "rewrite_query", "stop_reason")
_OF_ROUTE = ("kb_prefix", "method", "worker_name", "query_intent", "filters", "extracted_entities")
_OF_DECISION = ("review_id", "action", "edits", "message")


def same_course(run: Run, again: Run) -> None:
    """Two runs went the same way; of one that stopped early, as far as it went.

    Raises:
        Divergence: the first stage at which they did not, with what was expected and what came.
    """
    done, words = again.status == "done", _words(run)
    for (stage, name, expected), (_, _, got) in zip(_course(run, words), _course(again, words), strict=True):
        if not done:
            if got in (None, [], "", {}):
                continue
            expected = expected[: len(got)] if isinstance(got, list) and isinstance(expected, list) else expected
        paths = differences(expected, got)
        if paths:
            differs = [f"input{path}" for path in paths]
            raise Divergence(stage, name, {"version": "", "input": expected}, {"version": "", "input": got}, differs)


def _words(run: Run) -> bool:
    """Whether the answer was written by rules, so that its words are theirs too."""
    return not any(
        effect.kind == "handler" or (effect.kind, effect.name) == ("model", "answer") for effect in run.tape()
    )


def _course(run: Run, words: bool) -> Iterator[tuple[str, str, Any]]:
    """What a run did, stage by stage: ``(stage, name, value)``."""
    route, reflections = run.route_decision, run.reflections
    yield "route", "question", run.query if route else None
    yield "route", "decision", _some(route, _OF_ROUTE) if route else None
    yield "plan", "versions", [comparable(row["plan"]) for row in run.plan_history]
    steps = sorted(run.records, key=lambda r: (r["iteration"], r["step_id"], r["attempt"]))
    yield "step", "attempts", [{name: r[name] for name in ("step_id", "attempt", "tool", "status")} for r in steps]
    yield "reflection", "judgements", [comparable(_some(r, _OF_REFLECTION)) for r in reflections]
    yield "decision", "answers", [comparable(_some(d, _OF_DECISION)) for d in run.decisions]
    yield "retrieval", "stop_reason", run.stop_reason
    yield "evidence", "merged", [_piece(result) for result in run.merged.get("retrieval_results", [])]
    yield "citations", "sources", [{"n": c["n"], "id": c["result_id"]} for c in run.citations] if words else []
    yield "answer", "text", run.answer if words else ""


def _some(value: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value[name] for name in names}


def _piece(result: Any) -> dict[str, Any]:
    metadata = result["metadata"]
    return {
        "id": result["source_id"],
        "granularity": result["granularity"],
        "kb": metadata.get("kb_prefix", ""),
        "score": round(result["score"], 6),
        "tools": metadata.get("tools", []),
    }
