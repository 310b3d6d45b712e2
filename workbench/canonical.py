"""The bytes in which two equal runs agree: what was planned, found, decided and answered, without ids and times."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from workbench.plans import canonical_json

PARTS = ("plan", "evidence", "decisions", "merged", "answer")
_OF_ONE_RUN = re.compile(
    r"(?:run|plan|review|session|user|conversation|request|message|user_message|thread|interrupt)_id|raw_output_ref|"
    r".*_ms|.*_at|timestamp|remaining_budget|remaining_s|time_left_s|time"
)


def canonical(document: Mapping[str, Any]) -> bytes:
    """Canonical JSON of a run's plan, evidence, decisions, merged and answer, for comparing runs (contracts, 1).

    Ids of the run, times and durations are left out; scores have six digits; evidence of equal score stands by id.

    >>> piece = {"result_id": "b", "score": 0.5}
    >>> one = {"plan": {"plan_id": "a1", "steps": []}, "answer": "1993 [1]", "evidence": [piece]}
    >>> two = {**one, "evidence": [{**piece, "score": 0.50000004}], "run_id": "another", "log": []}
    >>> canonical(one) == canonical(two)
    True
    >>> canonical(one).decode()
    '{"answer":"1993 [1]","evidence":[{"result_id":"b","score":0.5}],"plan":{"steps":[]}}'
    """
    return canonical_json({name: comparable(document[name]) for name in PARTS if name in document}).encode()


def comparable(value: Any) -> Any:
    """A value as two runs may share it: no ids of a run, no times, scores to six digits, evidence by score and id."""
    if isinstance(value, Mapping):
        return {name: comparable(inner) for name, inner in value.items() if not _OF_ONE_RUN.fullmatch(name)}
    if isinstance(value, (list, tuple)):
        items = [comparable(inner) for inner in value]
        scored = items and all(isinstance(i, dict) and "score" in i and "result_id" in i for i in items)
        return sorted(items, key=lambda i: (-i["score"], i["result_id"])) if scored else items
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} has no JSON form: a run's document holds finite numbers only.")
        return round(value, 6) + 0.0  # no negative zero
    return value
