"""``gc``: it says what it would free, frees that and nothing else, and may be killed while it does."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked
from tests.shelves import ANSWER, PROJECT, QUESTION, corpus, environment, opened, workbench
from workbench.errors import UnknownRun
from workbench.records.tape import canonical


@pytest.fixture(scope="module")
def used(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("used") / "workspace"
    with opened(folder) as wb:
        wb.add_knowledge("film", [corpus(folder.parent / "films.jsonl")])
        for number in (7, 8, 9):
            wb.ask(f"Who directed Film {number}?", kb="film")
        wb.ask("Who directed Film 3?", kb="film", review={"reflect"}).cancel()
        wb.ask(QUESTION, kb="film", review={"reflect"}, session="waits")
    return folder


@pytest.fixture
def folder(used, tmp_path) -> Path:
    return Path(shutil.copytree(used, tmp_path / "workspace"))


def by_kind(freed: list[dict]) -> dict[str, dict]:
    return {found["kind"]: found for found in freed}


def threads(folder: Path) -> set[str]:
    with sqlite3.connect(folder / "checkpoints.db") as connection:
        return {row[0] for row in connection.execute("SELECT DISTINCT thread_id FROM checkpoints")}


def test_checkpoints_of_what_is_done_go_and_every_run_still_shows_the_same(folder):
    with opened(folder) as wb:
        before = {run.run_id: canonical(run.to_dict()) for run in wb.runs.list()}
        waiting, asked = threads(folder), by_kind(wb.gc(keep=1))["runs"]
        assert asked["count"] == 3 and asked["bytes"] > 0 and threads(folder) == waiting, "it only says it"
        said, done = by_kind(wb.gc()), by_kind(wb.gc(yes=True))
        kind = "earlier checkpoints of ended runs"
        assert said[kind]["count"] == done[kind]["count"] > 0 and said[kind]["bytes"] == done[kind]["bytes"]
        assert "checkpoints of finished runs" not in said, "they went when the runs ended"
        assert done["free pages of checkpoints.db"]["bytes"] > 0
        assert {run.run_id: canonical(run.to_dict()) for run in wb.runs.list()} == before
        assert wb.gc() == []
    with opened(folder) as wb:
        assert {run.run_id: canonical(run.to_dict()) for run in wb.runs.list()} == before
        [waiting] = wb.runs.list(status="paused")
        assert waiting.approve().answer == ANSWER


def test_old_runs_go_and_what_waits_stays_however_old(folder):
    with opened(folder) as wb:
        ended = [run.run_id for run in wb.runs.list() if run.status != "paused"]
        messages = wb._work.durable.conversations
        with sqlite3.connect(folder / "workbench.db") as connection:
            connection.execute("UPDATE runs SET created_at = '2001-01-01', ended_at = '2001-01-01' WHERE 1")
            select = "SELECT conversation_id FROM runs WHERE run_id = ?"
            [conversation] = connection.execute(select, ended[:1]).fetchone()
        said = messages.count_messages(conversation)
        assert by_kind(wb.gc(older_than=30, yes=True))["runs"]["count"] == len(ended)
        assert [run.status for run in wb.runs.list()] == ["paused"]
        assert len(threads(folder)) == 1
        assert messages.count_messages(conversation) == said, "what was said stays"
        with pytest.raises(UnknownRun):
            wb.run(ended[0])


def test_orphans_and_dead_leases(folder):
    with sqlite3.connect(folder / "checkpoints.db") as connection:
        row = "(thread_id, checkpoint_id, checkpoint, metadata) VALUES ('gone', 'c', x'00', x'00')"
        connection.execute(f"INSERT INTO checkpoints {row}")
    (folder / "leases").mkdir(exist_ok=True)
    with opened(folder) as wb:
        (folder / "leases" / "0123.json").write_text("{}")
        freed = by_kind(wb.gc(yes=True))
        assert freed["checkpoints of removed runs"]["count"] == 1
        assert freed["leases of dead processes"]["count"] == 1
        assert wb.gc() == []
        assert wb.ask(QUESTION, kb="film").answer == ANSWER


WAITING = """
import sys, asyncio; from tests.shelves import opened
wb = opened(sys.argv[1])
@wb.register("planner")
async def waits(*_):
    print("at work", flush=True)
    await asyncio.sleep(600)
run = wb.start("Who directed Film 5?", kb="film"); print(run.run_id, flush=True); run.wait()
"""


def test_runs_of_another_process_are_never_touched(folder):
    how = {"stdout": subprocess.PIPE, "text": True, "cwd": PROJECT, "env": environment()}
    process = forked.Popen([sys.executable, "-c", WAITING, str(folder)], **how)
    try:
        said = {process.stdout.readline().strip(), process.stdout.readline().strip()}
        [run_id] = said - {"at work"}
        done = workbench(folder, "gc", "--keep", "0", "--yes", "--json")
        assert done.returncode == 0, done.stderr
        with opened(folder) as wb:
            assert wb.run(run_id).status == "running"
            assert {run.status for run in wb.runs.list()} == {"running", "paused"}
            process.kill()
            process.wait()
            assert wb.run(run_id).status == "interrupted"
            wb.gc(keep=0, yes=True)
            assert wb.run(run_id).resume().answer == "Film 5: directors Ang Lee [1]."
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


KILLED = """
import os, signal, sqlite3, sys; from tests.shelves import opened
class Killed(sqlite3.Connection):
    def execute(self, sql, *given):
        done = super().execute(sql, *given)
        if sql.startswith(sys.argv[2]): os.kill(os.getpid(), signal.SIGKILL)
        return done
wb = opened(sys.argv[1])
real = sqlite3.connect
sqlite3.connect = lambda *a, **k: real(*a, factory=Killed, **k)
wb.gc(keep=1, yes=True)
"""


@pytest.mark.parametrize(
    "statement", ["DELETE FROM events", "DELETE FROM runs", "DELETE FROM writes", "DELETE FROM checkpoints", "VACUUM"]
)
@pytest.mark.few(2)
def test_killed_in_the_middle_it_leaves_a_workspace_that_opens(folder, statement):
    done = forked.run([sys.executable, "-c", KILLED, str(folder), statement], cwd=PROJECT, env=environment())
    assert done.returncode == -signal.SIGKILL
    with opened(folder) as wb:
        assert len(wb.runs.list()) in (2, 5)
        wb.gc(keep=1, yes=True)
        assert wb.gc(keep=1) == []
        [waiting] = wb.runs.list(status="paused")
        assert waiting.approve().answer == ANSWER
        assert all(run.to_dict()["answer"] for run in wb.runs.list(status="done"))


def test_the_command_says_it_and_does_it(folder):
    dry = workbench(folder, "gc")
    assert dry.returncode == 0 and "can be freed" in dry.stderr and "--yes" in dry.stderr
    done = json.loads(workbench(folder, "gc", "--yes", "--keep", "0", "--json").stdout)
    assert done["done"] is True and done["bytes"] > 0
    assert by_kind(done["freed"])["runs"]["count"] == 4
    assert "Nothing to free" in workbench(folder, "gc").stderr
