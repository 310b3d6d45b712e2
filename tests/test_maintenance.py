"""A workspace that is no folder, read-only, full, damaged or old: what, where, the fix; what is freed, what never."""

import errno
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup

from tests import forked
from tests.shelves import ANSWER, PROJECT, QUESTION, corpus, environment, hills, opened, workbench
from workbench.errors import KnowledgeError, NotPaused, UnknownRun, WorkbenchError, WorkspaceError
from workbench.parts.fusion import canvases
from workbench.parts.upkeep.files import faults_in
from workbench.records import writing
from workbench.records.tape import canonical
from workbench.records.writing import write_file
from workbench.settings import Settings
from workbench.views.drawing import Drawing

PAGE = 4096


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A workspace with two bases, three runs that are done, one that was cancelled and one that waits."""
    folder = tmp_path_factory.mktemp("made") / "workspace"
    with opened(folder) as wb:
        wb.add_knowledge("film", [corpus(folder.parent / "films.jsonl")])
        wb.add_knowledge("other", [corpus(folder.parent / "others.jsonl", 3)])
        for number in (7, 8, 9):
            wb.ask(f"Who directed Film {number}?", kb="film")
        wb.ask("Who directed Film 3?", kb="film", review={"reflect"}).cancel()
        wb.ask(QUESTION, kb="film", review={"reflect"}, session="waits")
    return folder


@pytest.fixture
def folder(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "workspace"))


@pytest.fixture(scope="module")
def undisturbed(made, tmp_path_factory) -> bytes:
    copy = Path(shutil.copytree(made, tmp_path_factory.mktemp("undisturbed") / "workspace"))
    with opened(copy) as wb:
        return canonical(wb.ask(QUESTION, kb="film", session="new").to_dict())


def told(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """A short error with these words, and no traceback."""
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr and "fault of workbench" not in done.stderr, done.stderr
    assert 1 <= len(done.stderr.strip().splitlines()) <= 3, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def test_a_path_under_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match="Not a directory"):
        opened(tmp_path / "file" / "under")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_read_only(folder):
    """The folder on a file system that takes no writes, from root neither."""
    (place := folder.parent / "mounted").mkdir()
    if subprocess.run(["mount", "--bind", str(folder), str(place)], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(place)], check=True)
        with pytest.raises(WorkspaceError, match=r"is read-only|Read-only file system"):
            opened(place)
        for words in (["runs"], ["ask", "x"], ["kb", "list"], ["gc"]):
            told(workbench(place, *words), str(place), "Make the folder writable")
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_folder_that_takes_no_new_file(folder, monkeypatch):
    """As above where nobody may mount: the system says it, at the call that makes the lease."""
    real = os.open

    def refuses(path, flags, *rest, **named):
        if "leases" in str(path) and flags & os.O_CREAT:
            raise OSError(30, "Read-only file system", str(path))
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuses)
    with pytest.raises(WorkspaceError, match=r"lock cannot be written: Read-only file system\. Make the folder"):
        opened(folder)


def test_a_new_workspace_on_a_full_disk(tmp_path):
    corpus(tmp_path / "films.jsonl")
    told(workbench(tmp_path / "new", "ask", "x", kib=0), "Free some space")
    told(workbench(tmp_path / "new", "kb", "add", "film", "films.jsonl", kib=60), "pace")
    assert workbench(tmp_path / "new", "kb", "add", "film", "films.jsonl").returncode == 0
    with opened(tmp_path / "new") as wb:
        assert wb.ask(QUESTION, kb="film").answer == ANSWER


@pytest.mark.parametrize("kib", [32, 48, 64, 96, 256, 288])
@pytest.mark.few(2)
def test_a_run_on_a_disk_that_fills_goes_on_when_there_is_space(tmp_path, folder, undisturbed, kib):
    """At each limit another write is the first that fails: a store's, a checkpoint's, the row itself."""
    for database in ("workbench.db", "checkpoints.db"):
        (folder / database).unlink()
    done = workbench(folder, "ask", QUESTION, "--kb", "film", "--session", "new", kib=kib)
    assert done.returncode in (1, 4) and "Traceback" not in done.stderr
    assert "may be full" in done.stderr and "Free some space" in done.stderr
    with opened(folder) as wb:
        for run in wb.runs.list():
            assert run.status == "interrupted", "nothing runs any more, and it can go on"
            assert run.run_id in done.stderr, "the message names the run"
            run.resume()
            assert canonical(run.to_dict()) == undisturbed
        if not wb.runs.list():  # it could not even be noted
            assert kib <= 96


def test_when_even_the_row_cannot_be_written_the_caller_is_told_and_the_run_is_interrupted(folder):
    with opened(folder) as wb:
        run = wb.ask(QUESTION, kb="film", session="new", review={"plan"})
        runs = wb._work.durable.runs._db
        runs.execute("PRAGMA query_only = ON")  # as a disk that takes nothing any more, the row neither
        with pytest.raises(WorkspaceError):
            run.approve()
        runs.execute("PRAGMA query_only = OFF")
        assert run.status in ("paused", "interrupted")
        (run.approve if run.status == "paused" else run.resume)()
        assert run.status == "done" and run.answer == ANSWER


def test_a_disk_that_is_full_for_a_moment_interrupts_a_fork_which_then_goes_on(folder):
    with opened(folder) as wb:
        run = wb.ask(QUESTION, kb="film", session="new")
        ours, database = wb.tools["keyword_search"], wb._work.durable.runs._db

        @wb.tools.tool(name="keyword_search", description="Fills the disk", replace=True)
        def fills(query: str, top_k: int = 5) -> list[str]:
            pages = database.execute("PRAGMA page_count").fetchone()[0]
            database.execute(f"PRAGMA max_page_count = {pages}")
            return [f"{query} {'x' * 9_000} {number}" for number in range(50)]

        step = run.plan.steps[0].model_copy(update={"tool": "keyword_search", "tool_input": {"query": QUESTION}})
        fork = run.fork(plan=run.plan.model_copy(update={"steps": [step]}))
        assert fork.status == "interrupted" and "workbench.db cannot be written" in fork.error
        wb.tools.register(ours, replace=True)
        database.execute("PRAGMA max_page_count = 1000000")
        assert fork.resume().status == "done"


def damage(path: Path, where: str) -> None:
    if where == "middle":
        with closing(sqlite3.connect(path)) as database:
            database.execute("VACUUM")  # a page that holds nothing can be damaged without harm
    content, noise = bytearray(path.read_bytes()), random.Random(where)
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    pages = len(content) // PAGE
    if where == "empty":
        content.clear()
    elif where == "cut":
        del content[len(content) // 2 :]
    else:
        first, count = {"head": (0, 1), "middle": (pages // 2, 2), "everything": (0, pages)}[where]
        content[first * PAGE : (first + count) * PAGE] = noise.randbytes(count * PAGE)
    path.write_bytes(content)


WHERE = ["head", "middle", "cut", "empty", "everything"]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", ["workbench.db", "checkpoints.db"])
@pytest.mark.few(4)
def test_a_damaged_database_is_named_and_left_and_a_copy_takes_its_place(folder, name, where):
    with opened(folder) as wb:
        copy = wb.backup(folder.parent / "copy")
    damage(folder / name, where)
    broken = (folder / name).read_bytes()
    faults = list(faults_in(folder, Settings.load()))
    if where != "empty" or name == "workbench.db":
        assert [where for where, *_ in faults if where.endswith(".db")] == [name]
        assert str(folder / name) in faults[0][1] or "there are checkpoints" in faults[0][1]
    listed = workbench(folder, "runs")
    assert "Traceback" not in listed.stderr and "fault of workbench" not in listed.stderr
    if listed.returncode:
        told(listed, name, "workbench backup" if broken else "move checkpoints.db away")
    examined = workbench(folder, "doctor")
    assert "Traceback" not in examined.stderr and (examined.returncode == 0) == (not faults)
    assert not faults or (folder / name).read_bytes() == broken, "nobody wrote over it"
    shutil.rmtree(folder)
    with opened(Path(shutil.copytree(copy, folder))) as wb:
        assert len(wb.runs.list()) == 5 and not list(faults_in(folder, Settings.load()))
        assert wb.runs.list(status="paused")[0].approve().status == "done"
        assert wb.ask(QUESTION, kb="film").status == "done"


def test_a_copy_is_not_written_over_what_is_there_and_one_that_was_killed_is_made_again(folder):
    killed = folder.parent / ".copy.k1ll3d__"
    killed.mkdir()
    (killed / "workbench.db").write_text("half")
    done = workbench(folder, "backup", "copy")
    assert done.returncode == 0 and (folder.parent / "copy" / "workbench.db").exists(), done.stderr
    assert [*folder.parent.glob(".copy.*")] == [killed], "it may be another backup, at work: no one deletes it"
    told(workbench(folder, "backup", "copy"), "is there already")


def test_the_checkpoints_do_not_keep_one_from_what_is_done(folder):
    damage(folder / "checkpoints.db", "everything")
    with opened(folder) as wb:
        assert len(wb.runs.list()) == 5
        for run in wb.runs.list(status="done"):
            assert run.to_dict()["answer"] and workbench(folder, "show", run.run_id).returncode == 0
        [waiting] = wb.runs.list(status="paused")
        with pytest.raises(WorkspaceError, match=r"checkpoints.db is damaged.*move the file away"):
            waiting.approve()
        told(workbench(folder, "ask", QUESTION, "--kb", "film"), "checkpoints.db is damaged", "move the file away")


def test_a_run_whose_question_is_lost_is_not_answered_blindly(folder):
    for file in folder.glob("checkpoints.db*"):
        file.unlink()
    with opened(folder) as wb:
        [waiting] = wb.runs.list(status="paused")
        with pytest.raises(NotPaused, match=f"workbench resume {waiting.run_id}"):
            waiting.approve()
        assert waiting.resume().status == "paused" and waiting.approve().status == "done"


@pytest.mark.parametrize(
    "damage_to",
    [
        "writes SET value = x'c1' WHERE channel = '__interrupt__'",
        "checkpoints SET checkpoint = x'c1'",
        "checkpoints SET checkpoint = x'80'",
    ],
)
def test_a_checkpoint_that_only_its_reader_knows_to_be_damaged(folder, damage_to):
    with sqlite3.connect(folder / "checkpoints.db") as connection:
        connection.execute(f"UPDATE {damage_to}")
    with opened(folder) as wb:
        waiting = wb.runs.list(status="paused")[0].run_id
    told(workbench(folder, "resume", waiting, "--approve"), "move the file away")
    for file in folder.glob("checkpoints.db*"):
        file.unlink()
    with opened(folder) as wb:
        run = wb.run(waiting).resume()
        assert run.status == "paused" and run.approve().answer == ANSWER


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.few(3)
def test_a_damaged_index_is_named_and_rebuilt_and_stops_no_other(folder, where):
    with opened(folder) as wb:
        before = wb.knowledge.get("film").fingerprint()
    damage(folder / "knowledge" / "film" / "index.db", where)
    with opened(folder) as wb:
        assert wb.ask("Who directed Film 2?", kb="other").answer == "Film 2: directors Ang Lee [1]."
        assert all(run.to_dict() for run in wb.runs.list())
        run = wb.ask("Who directed Film 5?", kb="film")
        if where != "middle":  # what these pages hold may not be needed
            assert run.status == "failed" and "workbench kb rebuild film" in run.error
            listed = workbench(folder, "kb", "list")
            assert listed.returncode == 1 and "other" in listed.stdout and "workbench kb rebuild film" in listed.stderr
    assert [where for where, *_ in faults_in(folder, Settings.load())] == ["knowledge film"]
    assert workbench(folder, "kb", "rebuild", "film").returncode == 0
    with opened(folder) as wb:
        assert wb.knowledge.get("film").fingerprint() == before
        assert wb.knowledge.get("film").inspect()["chroma"]
        if wb.run(run.run_id).status == "done":  # the damage was not seen, or seen by nobody who needed it
            run = wb.ask("Who directed Film 5?", kb="film", session="again")
        assert wb.run(run.run_id).resume().answer == "Film 5: directors Ang Lee [1]."


def test_a_rebuild_takes_from_the_index_what_has_no_file_any_more(tmp_path):
    films = corpus(tmp_path / "films.jsonl")
    with opened(tmp_path / "workspace") as wb:
        wb.add_knowledge("film", [films])
        before = wb.knowledge.get("film").fingerprint()
        films.unlink()
        report = wb.knowledge.rebuild("film")
        assert (report.added, report.stored, report.missing) == (30, 30, [str(films)])
        assert wb.knowledge.get("film").fingerprint() == before
        damage(tmp_path / "workspace" / "knowledge" / "film" / "index.db", "everything")
        with pytest.raises(KnowledgeError, match=r"its files are gone: .*films.jsonl. Put them back"):
            wb.knowledge.rebuild("film")
        corpus(films)
        kept = wb.knowledge.rebuild("film").kept
        assert wb.knowledge.get("film").fingerprint() == before
        told_of = next(found["detail"] for found in wb.gc(yes=True) if found["kind"] == "damaged, kept by a rebuild")
        assert kept in told_of and Path(kept).exists()


@pytest.mark.parametrize("moved", ["nothing", "the new one", "both"])
def test_a_rebuild_killed_in_the_middle_of_its_swap_ends_with_the_next_open(folder, moved):
    base = folder / "knowledge" / "film"
    with opened(folder) as wb:
        before = wb.knowledge.get("film").fingerprint()
    ready, old = base.with_name(".film.ready"), base.with_name(".film.replaced-1")
    shutil.copytree(base, ready if moved != "nothing" else base.with_name(".film.rebuild-1"))
    if moved == "both":
        base.rename(old)
    (base.parent / ".other.removed-1").mkdir()
    with opened(folder) as wb:
        assert wb.knowledge.get("film").fingerprint() == before
        half = next(found for found in wb.gc(yes=True) if found["kind"] == "half of a rebuild or a removal")
        assert half["count"] == 2 and ".other.removed-1 (0.00 MB)" in half["detail"]
        assert sorted(p.name for p in base.parent.iterdir() if p.is_dir()) == ["film", "other"]
        wb.knowledge.remove("film")
        assert wb.knowledge.names() == ["other"]


def test_what_killed_processes_left_is_named_and_freed_and_what_a_live_one_writes_is_not(folder):
    knowledge, half = folder / "knowledge", "half of a rebuild or a removal"
    left = (knowledge / ".film.ready", knowledge / ".film.rebuild-1", knowledge / "film" / ".sources.json.01234567")
    live = (knowledge / ".other.rebuild-1", knowledge / "other" / ".arrays.01234567")
    for place in (*left, *live):
        place.mkdir()
        (place / "new.db").write_bytes(bytes(20_000))
    named = [f"{place.relative_to(folder)} (0.02 MB)" for place in left]
    with opened(folder) as wb, wb.knowledge.writing("other"):
        told_of = workbench(folder, "doctor").stdout
        [found] = [found for found in wb.gc() if found["kind"] == half]
        assert sorted(found["detail"].split(", ")) == sorted(named) and found["bytes"] == 60_000
        assert all(name in told_of for name in named) and ".other.rebuild-1" not in told_of
        wb.gc(yes=True)
        assert all(place.exists() for place in live) and not any(place.exists() for place in left)


def test_a_body_that_is_lost_is_named(folder):
    with sqlite3.connect(folder / "workbench.db") as connection:
        connection.execute("DELETE FROM bodies")
    with opened(folder) as wb:
        run = wb.runs.list(status="paused")[0].approve()
        assert run.status == "failed" and "is not in the workspace any more" in run.error


@pytest.mark.parametrize("where", ["head", "everything"])
def test_a_damaged_chroma_is_made_anew_from_the_index(folder, where):
    damage(folder / "knowledge" / "film" / "chroma" / "chroma.sqlite3", where)
    assert [where for where, *_ in faults_in(folder, Settings.load())] == ["knowledge film"]
    assert workbench(folder, "kb", "rebuild", "film").returncode == 0
    assert not list(faults_in(folder, Settings.load()))


def test_rows_that_sqlite_cannot_know_to_be_wrong(folder):
    with sqlite3.connect(folder / "workbench.db") as connection:
        connection.execute("UPDATE records SET record = substr(record, 9)")
    with opened(folder) as wb:
        run = wb.runs.list(status="done")[0]
        with pytest.raises(WorkspaceError, match=r"workbench.db is damaged: it does not hold what was written"):
            run.records  # noqa: B018 - the access is the test


def content(wb):
    base = wb.knowledge.get("hills")
    return base.fingerprint(), base.about()["counts"], base.search("meaning", "Hill 7 has 7 sheep.", 3)


@pytest.mark.parametrize(
    ("verb", "documents", "notes", "kib", "words"),
    [
        ("add", 100, 20_000, 1_000, ["SQLITE_TMPDIR", "is read and not yet added"]),
        ("add", 100, 20_000, 2_100, ["hills/index.db"]),
        ("add", 150, 10, 300, ["hills/index.db"]),
        ("rebuild", 150, 10, 300, ["index.db"]),
    ],
)
@pytest.mark.few(2)
def test_a_disk_that_fills_while_adding(tmp_path, verb, documents, notes, kib, words):
    folder, path = tmp_path / "workspace", tmp_path / "hills.jsonl"
    hills(path, 20, 10)
    with opened(folder) as wb:
        wb.add_knowledge("hills", [path])
        before = content(wb)
    hills(path, documents, notes)
    given = ["hills", "hills.jsonl"] if verb == "add" else ["hills"]
    done = workbench(folder, "kb", verb, *given, kib=kib)
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in [*words, "may be full. Free some space"]:
        assert word in done.stderr, done.stderr
    with opened(folder) as wb:
        assert content(wb) == before
        assert [found for found in wb.gc(yes=False) if found["kind"] == "half of a rebuild or a removal"] == []
        wb.add_knowledge("hills", [path])
        after = content(wb)
    with opened(tmp_path / "other") as wb:
        wb.add_knowledge("hills", [path])
        assert content(wb) == after


DOORS: dict[str, Callable[[Path], Path]] = {
    ".canvas": lambda target: canvases.write(target, "{}"),
    ".svg": lambda target: Drawing("a", Markup("<svg/>"), ()).save(target),
    ".zip": lambda target: write_file(target, b"whole"),
}
"""What writes files for a person, by the kind of file."""


@pytest.mark.parametrize("case", ["another file", "link", "link to nothing", "folder", "no room"])
@pytest.mark.parametrize("door", DOORS)
def test_a_file_is_written_whole_and_never_over_another_or_through_a_link(door, case, tmp_path, monkeypatch):
    target, other = tmp_path / f"a{door}", tmp_path / "other"
    other.write_text("somebody's")
    if case == "another file":
        target.write_text("somebody's")
    elif case == "folder":
        target.mkdir()
    elif case == "no room":
        monkeypatch.setattr(writing.os, "link", no_room)
    else:
        target.symlink_to(other if case == "link" else tmp_path / "nowhere")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(WorkbenchError, match=r"is there already|is a link|is a folder|disk|space"):
        DOORS[door](target)
    assert sorted(path.name for path in tmp_path.iterdir()) == before and other.read_text() == "somebody's"


def no_room(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("door", DOORS)
def test_the_same_file_may_be_written_again_and_another_is_replaced_when_told(door, tmp_path):
    target = tmp_path / f"a{door}"
    assert DOORS[door](target) == DOORS[door](target) == target
    assert write_file(target, b"newer", replace=True).read_bytes() == b"newer"
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(WorkbenchError, match="is a link"):
        write_file(tmp_path / "link", b"through it", replace=True)
    assert (tmp_path / "link").is_symlink() and target.read_bytes() == b"newer"


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


def test_the_command_says_it_and_does_it(folder):
    dry = workbench(folder, "gc")
    assert dry.returncode == 0 and "can be freed" in dry.stderr and "--yes" in dry.stderr
    done = json.loads(workbench(folder, "gc", "--yes", "--keep", "0", "--json").stdout)
    assert done["done"] is True and done["bytes"] > 0
    assert by_kind(done["freed"])["runs"]["count"] == 4
    assert "Nothing to free" in workbench(folder, "gc").stderr
