"""The bytes in which runs agree."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.records.tape import canonical

from . import handmade


def document(**changes: Any) -> dict[str, Any]:
    run = handmade.run()
    base = {
        "run_id": run.run_id,
        "plan": run.plan.dump(),
        "evidence": run.state["merged"]["retrieval_results"],
        "decisions": run.decisions,
        "merged": run.state["merged"],
        "answer": run.answer,
    }
    return {**base, **changes}


def test_ids_and_times_do_not_tell_runs_apart() -> None:
    decisions = [{**handmade.run().decisions[0], "review_id": "other", "decided_at": "2030-01-01T00:00:00+00:00"}]
    merged = {**handmade.run().merged, "statistics": {"total_duration_ms": 12.5}}
    one = document(run_id="a", merged={**merged, "statistics": {"total_duration_ms": 99.0}})
    assert canonical(one) == canonical(document(run_id="b", merged=merged, decisions=decisions))


def test_what_was_said_tells_runs_apart() -> None:
    assert canonical(document()) != canonical(document(answer="otherwise"))
    other = [handmade.evidence(1, "The Wedding Banquet", 0.84), handmade.evidence(2, "Eat Drink Man Woman", 0.79)]
    assert canonical(document()) != canonical(document(evidence=other))


def test_a_number_without_json_form_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        canonical({"evidence": [float("nan")]})
