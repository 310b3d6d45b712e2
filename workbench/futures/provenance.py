"""Which run and step each piece of evidence came from: a table beside the run, which changes none of its bytes."""

from __future__ import annotations

from typing import Any

from workbench.errors import UnknownRun
from workbench.fates import identity
from workbench.plans import last_records
from workbench.retrieval.merge import gather
from workbench.run import Run
from workbench.state import ExecutionRecord
from workbench.tape import key_of_record


def provenance(run: Run) -> list[dict[str, Any]]:
    """See ``Run.provenance``."""
    records = last_records(run.records)
    made = {step_id: _made_in(run, record) for step_id, record in records.items() if "effect" in record}
    origins = (run._row["options"].get("graft") or {}).get("steps", {})
    finders: dict[tuple[str, str, str], list[str]] = {}
    for step_id, results in gather(run.records, run._store, run.run_id).items():
        for result in results:
            finders.setdefault(identity(result), []).append(step_id)
    rows = []
    for n, piece in enumerate(run.evidence, 1):
        for step_id in dict.fromkeys(finders.get(identity(piece), ())):
            in_run, as_step = made[step_id]
            origin = origins.get(step_id, {"run_id": in_run, "step_id": as_step})
            rows.append(
                {
                    "n": n,
                    "result_id": piece["result_id"],
                    "title": piece["metadata"].get("title", ""),
                    "score": piece["score"],
                    "step_id": step_id,
                    "tool": records[step_id]["tool"],
                    "from_run": origin["run_id"],
                    "from_step": origin["step_id"],
                    "made_in": in_run,
                }
            )
    return rows


def _made_in(run: Run, record: ExecutionRecord) -> tuple[str, str]:
    """The run that made this call, and the step that it was there: through the tapes from which it was taken."""
    place = (run.run_id, record["step_id"])
    if not record.get("replayed"):
        return place
    key = key_of_record(record)
    for source in (run._row["options"].get("tape") or {}).get("sources", []):
        earlier = Run(run._work, source)
        try:
            same = next((r for r in earlier.records if "effect" in r and key_of_record(r) == key), None)
            if same is not None:
                return _made_in(earlier, same)
        except UnknownRun:  # forgotten since: this run's own record is all that is left
            continue
    return place
