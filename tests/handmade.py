"""Runs written by hand, for tests of what only reads them: the shapes of ``state.py``, invented numbers."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from workbench.plans import Plan, PlanStep

BEGIN = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


def at(ms: float) -> str:
    return (BEGIN + timedelta(milliseconds=ms)).isoformat()


def record(step_id: str, tool: str, start_ms: float, duration_ms: float, found: int, **more: Any) -> dict[str, Any]:
    return {
        "step_id": step_id, "attempt": 1, "iteration": 1, "tool": tool, "status": "success", "error": None,
        "started_at": at(start_ms), "duration_ms": duration_ms,
        "input_summary": {"tool": tool, "objective": "", "input_keys": ["query"]},
        "output_summary": {"evidence_count": found, "context_length": found * 100, "top_score": 0.83},
        "raw_input": {"query": "喜宴"}, "raw_output_ref": f"{step_id}/1",
        "sub_steps": [
            {"name": "bm25", "offset_ms": 0, "duration_ms": duration_ms * 0.3, "detail": {"hits": 14}},
            {"name": "rerank", "offset_ms": duration_ms * 0.3, "duration_ms": duration_ms * 0.6, "detail": {}},
        ],
        **more,
    }  # fmt: skip


QUESTION = "对比《喜宴》和《饮食男女》的风格"


def _saved(name: str) -> Any:
    """Read a part of the run anew, which a test may change."""
    return json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))[name]


def records() -> list[dict[str, Any]]:
    return list(_saved("records"))


def log() -> list[dict[str, Any]]:
    return list(_saved("log"))


def evidence(number: int, title: str, score: float) -> dict[str, Any]:
    return {
        "result_id": f"low_level:film-{number}#0", "source_id": f"film-{number}#0", "source_type": "chunk",
        "granularity": "low_level", "score": score, "evidence": f"{title} is a film.",
        "metadata": {
            "title": title, "doc_id": f"film-{number}", "url": f"https://en.wikipedia.org/wiki/{number}",
            "licence": "CC BY-SA 4.0", "kb_prefix": "film", "tools": ["hybrid_search", "naive_search"], "position": 0,
        },
    }  # fmt: skip


def run(**changes: Any) -> SimpleNamespace:
    """A finished comparison with one human decision; ``changes`` replace attributes."""
    plan = Plan(problem_statement=QUESTION, steps=[PlanStep(**step) for step in _saved("steps")])
    results = [evidence(1, "The Wedding Banquet", 0.83), evidence(2, "Eat Drink Man Woman", 0.79)]
    values: dict[str, Any] = {
        "run_id": "7f3a", "status": "done", "message": QUESTION, "query": QUESTION, "session_id": "default",
        "row": {"user_id": "default"}, "error": None, "stop_reason": "quality_satisfied", "review": None,
        "answer": "《喜宴》于 1993 年上映 [1]。\n《饮食男女》于 1994 年上映，讲述朱家的故事 [2]。",
        "citations": [
            {"n": n, "result_id": r["result_id"], "sentence": f"句子 {n}", "source": r["metadata"]}
            for n, r in enumerate(results, 1)
        ],
        "route_decision": _saved("route_decision"), "plan": plan, "records": records(),
        "reflections": _saved("reflections"), "decisions": _saved("decisions"),
        "merged": {"context": "[1] ...", "retrieval_results": results, "reference": {}, "statistics": {}},
        "statistics": {"total_steps": 4, "success_rate": 1.0, "used": 2}, "log": log(), "options": {}, **changes,
    }  # fmt: skip
    merged = {**(values["merged"] or {}), "statistics": values["statistics"]}
    state = {"route_decision": values["route_decision"], "stop_reason": values["stop_reason"], "merged": merged}
    return SimpleNamespace(**values, state=state)


def review_request(point: str = "plan", **args: Any) -> dict[str, Any]:
    asked = {"name": point, "args": {"wave": ["step_0_喜宴"], **args}, "description": "Three steps, two at once."}
    allowed = {"allowed_decisions": ["approve", "edit", "reject", "respond"], "args_schema": {"type": "object"}}
    told = {"run_id": "7f3a", "review_id": "r1", "point": point}
    return {"action_requests": [asked], "review_configs": [{"action_name": point, **allowed}], **told}


def paused() -> SimpleNamespace:
    """The same question, waiting for a person at the plan."""
    return run(
        status="paused", review=review_request(), answer=None, citations=[], records=[], reflections=[], decisions=[],
        merged=None, statistics={}, stop_reason=None, log=log()[:2],
    )  # fmt: skip
