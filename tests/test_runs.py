"""The run store and the lease: each thing once, and nobody's run taken from under them."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from tests import forked
from workbench.errors import UnknownRun, WorkspaceError
from workbench.records.lease import Lease
from workbench.records.store import RunStore

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


def test_another_schema_is_refused(tmp_path):
    store = RunStore(tmp_path / "w.db")
    store._db.execute("PRAGMA user_version = 99")
    store._db.commit()
    store.close()
    with pytest.raises(WorkspaceError, match=r"tables 99, here \d+\). Open another workspace"):
        RunStore(tmp_path / "w.db")


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
