"""Runs written by hand, for tests of what only reads them: the shapes of ``state.py``, invented numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
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


def plan(question: str = QUESTION) -> Plan:
    return Plan(
        problem_statement=question,
        steps=[
            PlanStep(step_id="step_0_喜宴", objective="《喜宴》讲什么，谁拍的", tool="hybrid_search"),
            PlanStep(step_id="step_1_饮食男女", objective="《饮食男女》讲什么，谁拍的", tool="hybrid_search"),
            PlanStep(
                step_id="step_2_compare", objective="两片中的家庭、传统与婚姻", tool="naive_search",
                depends_on=["step_0_喜宴", "step_1_饮食男女"], priority=2,
            ),
            PlanStep(
                step_id="step_3_more", objective="《饮食男女》的家庭", tool="local_search",
                depends_on=["step_2_compare"], condition="if_insufficient",
            ),
        ],
    )  # fmt: skip


def records() -> list[dict[str, Any]]:
    return [
        record("step_0_喜宴", "hybrid_search", 20, 842, 24), record("step_1_饮食男女", "hybrid_search", 22, 892, 9),
        record("step_2_compare", "naive_search", 920, 410, 12),
        record(
            "step_3_more", "local_search", 43_400, 150, 0, status="timeout", error="No answer within 0.15 s.",
            sub_steps=[],
        ),
        record("step_3_more", "local_search", 43_560, 310, 8, attempt=2),
    ]  # fmt: skip


def log() -> list[dict[str, Any]]:
    def entry(node: str, start_ms: float, duration_ms: float) -> dict[str, Any]:
        return {
            "node": node, "node_type": "retrieval", "timestamp": at(start_ms), "duration_ms": duration_ms,
            "input": {}, "output": {}, "sub_steps": [],
        }  # fmt: skip

    return [
        entry("route", 0, 6), entry("planner", 8, 4), entry("executor", 20, 842), entry("executor", 22, 892),
        entry("executor", 920, 410), entry("reflector", 1335, 30), entry("executor", 43_400, 470),
        entry("merger", 43_880, 12), entry("generate", 43_895, 220), entry("persist", 44_118, 3),
    ]  # fmt: skip


def reflections() -> list[dict[str, Any]]:
    signals = {
        "evidence_count": 7, "top_score": 0.83,
        "coverage": [{"name": "喜宴", "found": 6, "needed": 2}, {"name": "饮食男女", "found": 1, "needed": 2}],
        "unknown": [], "missing": ["饮食男女"], "timeouts": [], "failures": [], "iteration": 1, "time_left_s": 28.7,
        "thresholds": {"min_evidence": 8, "min_top_score": 0.5},
    }  # fmt: skip
    step = PlanStep(step_id="step_3_more", objective="《饮食男女》的家庭", tool="local_search").model_dump(mode="json")
    enough = {"coverage": [], "missing": [], "evidence_count": 13, "iteration": 2}
    base = {"max_iterations": 3, "remaining_budget": 28.7, "activate": [], "rewrite_query": ""}
    return [
        {
            **base, "current_iteration": 1, "should_continue": True, "next_steps": [step],
            "rewrite_query": "饮食男女 家庭 传统", "stop_reason": None,
            "reasoning": "《饮食男女》只有 1 条证据，比较需要每边至少 2 条。", "signals": signals,
        },
        {
            **base, "current_iteration": 2, "should_continue": False, "next_steps": [],
            "stop_reason": "quality_satisfied", "reasoning": "两边都有足够的证据。", "signals": {**signals, **enough},
        },
    ]  # fmt: skip


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
    results = [evidence(1, "The Wedding Banquet", 0.83), evidence(2, "Eat Drink Man Woman", 0.79)]
    route = {
        "requested_kb_prefix": "film", "routed_kb_prefix": "film", "kb_prefix": "film", "confidence": 1.0,
        "method": "override", "reason": "asked for", "worker_name": "film:fusion_agent:retrieve_only",
        "query_intent": "compare", "media_type_hint": "film", "filters": [],
        "extracted_entities": {"low_level": ["The Wedding Banquet", "Eat Drink Man Woman"], "high_level": []},
    }  # fmt: skip
    decision = {
        "review_id": "r1", "point": "reflect", "action": "approve", "proposal": {}, "edits": {}, "message": "",
        "who": "person", "decided_at": at(43_398), "note": "the father is the point",
    }  # fmt: skip
    values: dict[str, Any] = {
        "run_id": "7f3a", "status": "done", "message": QUESTION, "query": QUESTION, "session_id": "default",
        "row": {"user_id": "default"}, "error": None, "stop_reason": "quality_satisfied", "review": None,
        "answer": "《喜宴》于 1993 年上映 [1]。\n《饮食男女》于 1994 年上映，讲述朱家的故事 [2]。",
        "citations": [
            {"n": n, "result_id": r["result_id"], "sentence": f"句子 {n}", "source": r["metadata"]}
            for n, r in enumerate(results, 1)
        ],
        "route_decision": route, "plan": plan(), "records": records(), "reflections": reflections(),
        "decisions": [decision],
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
