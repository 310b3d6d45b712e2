"""What is kept of a run: its document, the bytes in which runs agree, and each thing in the store once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

import jsonschema
import pytest

from tests import forked, handmade
from workbench.errors import UnknownRun, WorkspaceError
from workbench.records.document import SCHEMA_FILE, RunDocument, json_schema, run_document, schema_text
from workbench.records.lease import Lease
from workbench.records.store import RunStore
from workbench.records.tape import canonical


def fresh():
    nothing = dict.fromkeys(["answer", "error", "stop_reason", "review", "route_decision", "plan", "merged"])
    empty = {name: [] for name in ["citations", "records", "reflections", "decisions", "log"]}
    return handmade.run(status="running", **nothing, **empty, statistics={})


def test_the_published_schema_is_the_generated_one():
    assert SCHEMA_FILE.read_text("utf-8") == schema_text(), (
        "python -m workbench.records.document > workbench/records/run.schema.json"
    )


@pytest.mark.parametrize("run", [handmade.run(), handmade.paused(), fresh()], ids=["done", "paused", "fresh"])
def test_documents_keep_to_the_schema(run):
    document = run_document(run)
    jsonschema.Draft202012Validator(json_schema()).validate(document)
    assert json.loads(json.dumps(document)) == document
    # Where a date was in play; of an answer without a model; joined by Run.to_dict.
    sometimes = {"as_of", "answer_kind", "execution_log"}
    assert set(document) == set(RunDocument.__annotations__) - sometimes


def document(**changes: Any) -> dict[str, Any]:
    run, merged = handmade.run(), handmade.run().state["merged"]
    said = {"plan": run.plan.dump(), "decisions": run.decisions, "answer": run.answer}
    return {"run_id": run.run_id, "evidence": merged["retrieval_results"], "merged": merged, **said, **changes}


def test_ids_and_times_do_not_tell_runs_apart() -> None:
    decisions = [{**handmade.run().decisions[0], "review_id": "other", "decided_at": "2030-01-01T00:00:00+00:00"}]
    merged = {**handmade.run().merged, "statistics": {"total_duration_ms": 12.5}}
    one = document(run_id="a", merged={**merged, "statistics": {"total_duration_ms": 99.0}})
    assert canonical(one) == canonical(document(run_id="b", merged=merged, decisions=decisions))


def test_what_was_said_tells_runs_apart() -> None:
    assert canonical(document()) != canonical(document(answer="otherwise"))
    other = [handmade.evidence(1, "The Wedding Banquet", 0.84), handmade.evidence(2, "Eat Drink Man Woman", 0.79)]
    assert canonical(document()) != canonical(document(evidence=other))
    with pytest.raises(ValueError, match="finite"):
        canonical({"evidence": [float("nan")]})


RECORD = {
    **{"step_id": "a", "attempt": 1, "iteration": 1, "started_at": "2026-01-01T00:00:00.000002+00:00"},
    **{"raw_output_ref": "a/1", "status": "success"},
}


@pytest.fixture
def store(tmp_path):
    store = RunStore(tmp_path / "workbench.db")
    store.create("r1", "喜宴哪一年上映？", {"kb": ["film"]}, owner="me", session_id="s")
    yield store
    store.close()


def test_writing_again_changes_nothing(store):
    store.save_record("r1", RECORD, {"results": [1], "output": {}})
    store.save_record("r1", {**RECORD, "status": "failed"}, {"results": [2], "output": {}})
    assert store.records("r1") == [RECORD]
    assert store.body("r1", "a/1")["results"] == [1]
    for answer in ("approve", "reject"):
        kept = store.save_decision("r1", {"review_id": "0-plan", "action": answer})
    assert kept["action"] == "approve" and len(store.decisions("r1")) == 1
    for _ in range(2):
        store.save_event("r1", "task", {"execution_log": {"node": "planner"}})
        store.save_plan("r1", {"version": 1}, "planner", "")
    assert len(store.events("r1")) == len(store.plans("r1")) == 1
    store.save_result("r1", {"answer": "1993"})
    store.save_result("r1", {"answer": "other"})
    assert store.get("r1", whole=True)["result"] == {"answer": "1993"}


def test_attempts_stand_in_the_order_in_which_they_began(store):
    before = {**RECORD, "step_id": "b", "raw_output_ref": None, "started_at": "2026-01-01T00:00:00.000001+00:00"}
    later = {**before, "step_id": "0", "iteration": 2}
    for ended in (later, RECORD, before):
        store.save_record("r1", ended, None)
    assert [r["step_id"] for r in store.records("r1")] == ["b", "a", "0"]


def test_a_run_has_one_owner(store):
    seen = store.get("r1")
    assert store.claim(seen, "you")
    assert not store.claim(seen, "third")
    store.let_go("r1", "paused")
    wins, seen = [], store.get("r1")
    threads = [threading.Thread(target=lambda n=n: wins.append(store.claim(seen, f"owner{n}"))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(wins) == 1
    store.let_go("r1", "done")
    assert not store.claim(seen, "late"), "what was seen paused has ended since"


def test_unknown_run_lists_the_newest(store):
    with pytest.raises(UnknownRun, match="newest: r1"):
        store.get("zzz")


def test_listing_narrows_and_removing_leaves_nothing(store):
    store.create("r2", "b", {}, owner="me", session_id="t")
    assert store.ids(session_id="t") == ["r2"]
    store.save_record("r1", RECORD, {"results": [], "output": {}})
    store.remove(["r1"])
    assert not store.has("r1") and store.records("r1") == []
    with pytest.raises(WorkspaceError, match="not in the workspace any more"):
        store.body("r1", "a/1")


def test_a_lease_dies_with_its_process(tmp_path):
    code = (
        "import sys; from pathlib import Path; from workbench.records.lease import Lease;"
        "lease = Lease(Path(sys.argv[1])); print(lease.owner, flush=True); sys.stdin.read()"
    )
    process = forked.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    owner = process.stdout.readline().strip()
    mine = Lease(tmp_path)
    assert mine.alive(owner) and mine.alive(mine.owner)
    assert f"process {process.pid}" in mine.holder(owner)
    process.kill()
    process.wait()
    assert not mine.alive(owner)
    mine.release()
    process.stdin.close()
    process.stdout.close()


def test_many_who_ask_at_once_do_not_take_each_other_for_the_owner(tmp_path):
    dead = Lease(tmp_path)
    dead._lock.release()  # as the kernel does when the process dies: its files stay
    (tmp_path / f"{dead.owner}.lock").touch()
    asking, said = [Lease(tmp_path / "of-others") for _ in range(6)], list[bool]()
    for lease in asking:
        lease.folder = tmp_path

    def ask(lease):
        said.extend(lease.alive(dead.owner) for _ in range(300))

    threads = [threading.Thread(target=ask, args=(lease,)) for lease in asking]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 1800 and not any(said)
