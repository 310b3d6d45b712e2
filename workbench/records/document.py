"""The JSON document of a run: what ``--json`` prints, ``Run.to_dict()`` gives and ``run.schema.json`` promises.

One flat object that a script can read without this package; ``python -m workbench.records.document`` prints its schema.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from workbench.plans import PlanStep
from workbench.records.figures import Figures, figures, source_title
from workbench.state import (
    Citation,
    Claim,
    Data,
    Decision,
    ExecutionRecord,
    Json,
    Reflection,
    ReviewPoint,
    RouteDecision,
    Supported,
    pick,
)

SCHEMA_FILE = Path(__file__).with_name("run.schema.json")
RunStatus = Literal["running", "paused", "interrupted", "done", "failed", "cancelled"]


class PlanDocument(TypedDict):
    """A plan as people and schedulers read it."""

    plan_id: str
    version: int
    problem_statement: str
    assumptions: list[str]
    steps: list[PlanStep]
    execution_mode: str
    acceptance_criteria: list[str]
    metadata: Json


class ReviewRequest(TypedDict):
    """The request of a paused run, in the shape of LangChain's human-in-the-loop middleware.

    ``in_force`` is what can be edited besides the proposal, with the current values: query, thresholds, needs.
    ``ahead`` names the steps that will run again when it is approved. Of a report, ``evidence`` lists the pieces that
    sections may rest on, and ``unsupported`` the statements that their sources do not bear out.
    """

    action_requests: list[Json]
    review_configs: list[Json]
    run_id: str
    review_id: str
    point: ReviewPoint
    in_force: NotRequired[Json]
    ahead: NotRequired[list[str]]
    evidence: NotRequired[list[Json]]
    unsupported: NotRequired[list[Claim]]


class EvidenceLine(TypedDict):
    """One merged piece of evidence without its text; ``n`` is its number in the prompt and in the answer's ``[n]``."""

    n: int
    result_id: str
    source_type: str
    score: float
    title: str
    url: str
    licence: str
    kb_prefix: str
    tools: list[str]


class LogEntry(TypedDict):
    """One graph node that ran: ``timestamp`` is when it began (UTC, ISO 8601)."""

    node: str
    node_type: str
    timestamp: str
    duration_ms: float


class NestedEntry(LogEntry):
    """An entry with what it took, what it gave and what is within it: subgraph, node, step, what its tool did."""

    input: Json
    output: Json
    sub_steps: list[Json]
    event: NotRequired[str]


class RunDocument(TypedDict):
    """A run. Lists are empty and objects null while nothing is known of them yet."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    document: Literal["workbench.run/1"]
    run_id: str
    status: RunStatus
    holder: str | None
    message: str
    as_of: NotRequired[list[str]]
    query: str
    session_id: str
    user_id: str
    kb_prefix: str
    answer: str | None
    answer_kind: NotRequired[str]
    citations: list[Citation]
    support: list[Supported]
    error: str | None
    stop_reason: str | None
    review: ReviewRequest | None
    route_decision: RouteDecision | None
    plan: PlanDocument | None
    records: list[ExecutionRecord]
    reflections: list[Reflection]
    decisions: list[Decision]
    evidence: list[EvidenceLine]
    statistics: Json
    log: list[LogEntry]
    execution_log: NotRequired[list[NestedEntry]]
    figures: Figures


_TEXTS = ("run_id", "status", "message", "query", "session_id")
_OBJECTS = ("answer", "error", "review")
_LISTS = ("citations", "records", "reflections", "decisions")


def run_document(run: Any, holder: str | None = None, as_of: Sequence[str] = ()) -> Json:
    """Return the document of a run in any status: plain data, equal to what JSON gives back.

    Args:
        run: a ``Recording``, or anything else with the attributes that the document is made of.
        holder: who works on it now, in words.
        as_of: the dates of what was to hold and to be known.
    """
    state = run.state
    route = state.get("route_decision") or None
    merged = state.get("merged") or {}
    document = {
        **{name: getattr(run, name) for name in _TEXTS},
        **{name: getattr(run, name) or None for name in _OBJECTS},
        **{name: getattr(run, name) or [] for name in _LISTS},
        "holder": holder,
        "user_id": run.row["user_id"],
        "stop_reason": state.get("stop_reason"),
        "support": state.get("support") or [],
        "document": "workbench.run/1",
        "kb_prefix": route["kb_prefix"] if route else "",
        "route_decision": route,
        "plan": run.plan.dump() if run.plan else None,
        "evidence": evidence_lines(merged.get("retrieval_results", [])),
        "statistics": merged.get("statistics") or {},
        "log": [pick(entry, *LogEntry.__annotations__) for entry in run.log or []],
    }
    document["figures"] = figures(document)
    if kind := state.get("answer_kind"):
        document["answer_kind"] = kind
    if as_of:
        document["as_of"] = as_of
    return json.loads(
        json.dumps(
            {name: document[name] for name in RunDocument.__annotations__ if name in document}
        )
    )


def evidence_lines(results: Iterable[Data]) -> list[EvidenceLine]:
    """Return merged evidence in its order, numbered from 1, without the texts."""
    return [
        {
            "n": n,
            "result_id": result["result_id"],
            "source_type": result["source_type"],
            "score": result["score"],
            "title": source_title(result),
            "url": str(result["metadata"].get("url") or ""),
            "licence": str(result["metadata"].get("licence") or ""),
            "kb_prefix": str(result["metadata"].get("kb_prefix") or ""),
            "tools": [str(tool) for tool in result["metadata"].get("tools") or []],
        }
        for n, result in enumerate(results, 1)
    ]


def schema_text() -> str:
    """Return the bytes of ``run.schema.json``: the JSON Schema (2020-12) of the types above."""
    schema = TypeAdapter(RunDocument).json_schema(mode="serialization")
    dialect = "https://json-schema.org/draft/2020-12/schema"
    schema |= {"$schema": dialect, "title": "Workbench run"}
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
