"""The steps of a plan as rows: how each went, where it stands in the drawing, since which version it is there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypedDict

from workbench.plans import Plan, last_records
from workbench.state import ExecutionRecord


class Row(TypedDict):
    """A step: how it went, its layer and row in the drawing, whether it is critical, and since which version it is.

    ``added_in`` and ``changed_in`` are versions of the plan, None for the first one; ``duration_ms`` is that of the
    last attempt.
    """

    step_id: str
    objective: str
    tool: str
    condition: str
    depends_on: list[str]
    status: str
    replayed: bool
    attempts: int
    duration_ms: float | None
    evidence_count: int | None
    error: str | None
    layer: int
    row: float
    critical: bool
    added_in: int | None
    changed_in: int | None


def dag_rows(
    plan: Plan,
    records: Iterable[ExecutionRecord] = (),
    versions: Sequence[Plan] = (),
    running: Collection[str] = (),
) -> list[Row]:
    """One row a step, in the order of the plan.

    A step's layer is one more than the deepest step it waits for; the critical path is the chain that took longest, or
    may take longest by time-outs while nothing has run.

    Args:
        plan: what is drawn.
        records: what its steps did.
        versions: every version of the plan, oldest first.
        running: the steps that are at work.

    Raises:
        PlanError: the steps form a cycle.
    """
    last, layers = last_records(records), dict[str, int]()
    steps = plan.by_id()
    for step_id in plan.topological_order():
        layers[step_id] = max((layers[d] + 1 for d in steps[step_id].dependencies()), default=0)
    seconds = {step_id: record["duration_ms"] / 1000 for step_id, record in last.items()}
    critical = plan.critical_path(seconds or None)
    places = _rows_in_layers(plan, layers)
    added, changed = _since(plan, versions)
    rows = []
    for step in plan.steps:
        record: Mapping[str, Any] = last.get(step.step_id) or {}
        rows.append(
            Row(
                step_id=step.step_id,
                objective=step.objective,
                tool=step.tool,
                condition=step.condition,
                depends_on=step.dependencies(),
                status="running" if step.step_id in running else record.get("status", "pending"),
                replayed=bool(record.get("replayed")),
                attempts=record.get("attempt", 0),
                duration_ms=record.get("duration_ms"),
                evidence_count=record.get("output_summary", {}).get("evidence_count"),
                error=record.get("error"),
                layer=layers[step.step_id],
                row=places[step.step_id],
                critical=step.step_id in critical and len(critical) > 1,
                added_in=added.get(step.step_id),
                changed_in=changed.get(step.step_id),
            )
        )
    return rows


def _rows_in_layers(plan: Plan, layers: Mapping[str, int]) -> dict[str, float]:
    """Rows, centred on 0: a step stands near the middle of what it waits for, so that few edges cross."""
    rows, steps = dict[str, float](), plan.by_id()
    for layer in range(max(layers.values(), default=-1) + 1):
        here = [step.step_id for step in plan.steps if layers[step.step_id] == layer]

        def middle(step_id: str) -> float:
            above = [rows[d] for d in steps[step_id].dependencies()]
            return sum(above) / len(above) if above else 0.0

        for index, step_id in enumerate(sorted(here, key=middle)):
            rows[step_id] = index - (len(here) - 1) / 2
    return rows


def _since(plan: Plan, versions: Sequence[Plan]) -> tuple[dict[str, int], dict[str, int]]:
    """Step -> the version that added it, and the last one that changed it; what the first version had is not told."""
    added, changed = dict[str, int](), dict[str, int]()
    known = [*(one for one in versions if one.version < plan.version), plan]
    for before, after in pairwise(known):
        difference = before.diff(after)
        added |= dict.fromkeys(difference["added"], after.version)
        changed |= dict.fromkeys(difference["changed"], after.version)
    return added, changed
