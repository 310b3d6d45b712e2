"""A run sealed in a file: whole, the same bytes each time, without a secret; and what is refused on the way in."""

import json
import shutil
import socket
import sqlite3
import stat
import struct
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.servers import Reply, only, scripted_server
from tests.shelves import ANSWER, CORE, PROJECT, QUESTION, corpus, environment, jsonl, opened, workbench
from tests.storm import Scenario, Storm
from workbench.errors import CapsuleError
from workbench.futures.capsule import read
from workbench.futures.replay import full_document
from workbench.records.tape import canonical
from workbench.session import Workbench
from workbench.settings import Settings

KEY = "sk-planted-0123456789"
FIVE = "Which film about number 7 did Ang Lee direct?"


@pytest.fixture(scope="module")
def shelf(tmp_path_factory) -> Path:
    """A workspace with an index, a run that is done, and one that a person answered five times."""
    folder = tmp_path_factory.mktemp("shelf") / "workspace"
    with opened(folder) as wb:
        wb.add_knowledge("film", [corpus(folder.parent / "films.jsonl")])
        wb.ask(QUESTION, kb="film")
        five(wb)
    return folder


@pytest.fixture
def folder(shelf, tmp_path) -> Path:
    return Path(shutil.copytree(shelf, tmp_path / "here"))


@pytest.fixture
def elsewhere(tmp_path):
    with opened(tmp_path / "elsewhere") as wb:
        yield wb


def five(wb: Workbench):
    """Approve, edit, respond, edit again, reject: a rejection ends it, so it comes last."""
    run = wb.ask(FIVE, kb="film", review=True)
    run.approve("go")
    plan = run.plan.model_copy(deep=True)
    plan.steps[0].tool_input["query"] = "Film 7 Ang Lee"
    run.edit(plan=plan, note="shorter")
    run.respond("and what is it about?")
    while run.review["point"] != "reflect":
        run.edit(thresholds={"min_evidence": 1})
    run.edit(thresholds={"min_top_score": 0.99, "min_evidence": 40})
    while run.review:
        run.reject("enough")
    assert run.status == "done" and {d["action"] for d in run.decisions} == {"approve", "edit", "respond", "reject"}
    assert len(run.decisions) >= 5
    return run


def first(wb: Workbench, message: str = QUESTION):
    return next(run for run in wb.runs.list() if run.message == message)


@pytest.fixture
def sealed(folder, tmp_path) -> Path:
    with opened(folder) as wb:
        return wb.export(first(wb).run_id, tmp_path / "run.zip")


def bytes_of(run) -> bytes:
    return canonical(full_document(run))


def test_the_same_run_gives_the_same_bytes_here_and_where_it_was_brought(folder, sealed, elsewhere, tmp_path):
    with opened(folder) as wb:
        again = wb.export(first(wb).run_id, tmp_path / "again.zip")
    run = elsewhere.import_capsule(sealed)
    there = elsewhere.export(run.run_id, tmp_path / "there.zip")
    assert sealed.read_bytes() == again.read_bytes() == there.read_bytes()
    assert run.status == "done" and run.answer == ANSWER


def test_five_decisions_replay_elsewhere_without_a_person_a_corpus_or_a_connection(
    folder, elsewhere, tmp_path, monkeypatch
):
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, lambda *_: pytest.fail("a connection was attempted"))
    with opened(folder) as wb:
        run = first(wb, FIVE)
        path, expected = wb.export(run.run_id, tmp_path / "five.zip"), bytes_of(run)
    run = elsewhere.import_capsule(path)
    assert bytes_of(run) == expected == bytes_of(elsewhere.replay(run.run_id))


def test_a_fork_and_a_replay_hold_all_that_they_used(folder, tmp_path):
    with opened(folder) as wb:
        run = first(wb)
        plan = run.plan.model_copy(deep=True)
        plan.steps[0].tool_input["query"] = "Film 7"
        made = {"fork": run.fork(), "edited": run.fork(plan=plan), "replay": wb.replay(run.run_id)}
        made["fork of a fork"] = made["edited"].fork()
        paths = {name: (wb.export(r.run_id, tmp_path / f"{name}.zip"), bytes_of(r)) for name, r in made.items()}
    for name, (path, expected) in paths.items():
        with opened(tmp_path / name) as wb:
            assert bytes_of(wb.replay(wb.import_capsule(path).run_id)) == expected, name


KILLED = """
import os, sys
from tests.shelves import opened, QUESTION
from workbench.records.store import RunStore
keep = RunStore.save_event
def dying(self, run_id, key, event):
    if event.get("execution_log", {}).get("node") == "generate":
        os._exit(9)  # its effects are on the tape, its checkpoint is not there
    keep(self, run_id, key, event)
RunStore.save_event = dying
with opened(sys.argv[1]) as wb:
    wb.ask(QUESTION, kb="film")
"""


def test_what_was_killed_and_resumed_holds_what_came_last(folder, tmp_path):
    with scripted_server(Reply(["The first answer [1]."])) as server:
        told = {"WORKBENCH_CHAT_MODEL": "openai:m", "WORKBENCH_CHAT_BASE_URL": server.url}
        told |= {"WORKBENCH_CHAT_API_KEY": KEY, "WORKBENCH_MODELS": json.dumps(only("writer")["models"])}
        command = [sys.executable, "-c", KILLED, str(folder)]
        patched = forked.run(command, env={**environment(), **told}, cwd=PROJECT, timeout=120)
        assert patched.returncode == 9
        server.answer(Reply(["The second answer [1]."]))
        model = {"chat_model": "openai:m", "chat_base_url": server.url, "chat_api_key": KEY, **only("writer")}
        with Workbench.open(folder, **CORE, **model) as wb:
            [run] = [run for run in wb.runs.list() if run.status == "interrupted"]
            assert run.resume().answer.startswith("The second answer [1]")
            path, expected = wb.export(run.run_id, tmp_path / "killed.zip"), bytes_of(run)
    with zipfile.ZipFile(path) as archive:
        kept = b"".join(map(archive.read, archive.namelist()))
        assert KEY.encode() not in kept and server.url.encode() not in kept
    with opened(tmp_path / "fresh") as wb:  # where no model is configured
        assert bytes_of(wb.replay(wb.import_capsule(path).run_id)) == expected


def test_only_what_has_ended_is_sealed_and_a_cancelled_run_can_be_looked_at(folder, elsewhere, tmp_path):
    with opened(folder) as wb:
        run = wb.ask(QUESTION, kb="film", review={"reflect"})
        with pytest.raises(CapsuleError, match="is paused: only what has ended"):
            wb.export(run.run_id, tmp_path / "p.zip")
        private = wb.ask(QUESTION, kb="film", incognito=True)
        with pytest.raises(CapsuleError, match="incognito"):
            wb.export(private.run_id, tmp_path / "p.zip")
        assert not (tmp_path / "p.zip").exists()
        run.cancel()
        path, document = wb.export(run.run_id, tmp_path / "p.zip"), run.to_dict()
        assert wb.import_capsule(path).run_id == run.run_id
    assert elsewhere.import_capsule(path).to_dict() == document


def test_a_secret_that_a_tool_said_is_in_no_file_and_the_tool_need_not_be_there(folder, elsewhere, tmp_path):
    settings = Settings.load(**CORE, chat_api_key=KEY, postgres_dsn="")
    with Workbench.open(folder, settings) as wb:

        @wb.tools.tool(description="Says too much", intents={"qa"})
        def leaky(query: str, knowledge) -> list[str]:
            raise ValueError(f"401 for {KEY}")

        run = wb.ask(QUESTION, kb="film")
        assert KEY not in json.dumps(run.records), "it is masked on the way in"
        assert "leaky" in {step.tool for step in run.plan.steps}
        path, expected = wb.export(run.run_id, tmp_path / "leak.zip"), bytes_of(run)
        assert wb.import_capsule(path).run_id == run.run_id
    assert bytes_of(elsewhere.replay(elsewhere.import_capsule(path).run_id)) == expected
    with zipfile.ZipFile(path) as archive:
        assert all(KEY.encode() not in archive.read(name) for name in archive.namelist())
        assert b"401 for [secret]" in archive.read("run.json")


def test_a_capsule_has_a_page_that_names_the_source_and_its_licence(tmp_path, elsewhere):
    film = {"id": "a", "title": "喜宴", "overview": "《喜宴》是一部1993年的电影。", "licence": "CC BY-SA 4.0"}
    elsewhere.add_knowledge("film", [jsonl(tmp_path / "l.jsonl", [film])])
    run = elsewhere.ask("喜宴哪一年上映？", kb="film")
    with zipfile.ZipFile(elsewhere.export(run.run_id, tmp_path / "r.zip")) as archive:
        assert archive.namelist() == ["run.json", "run.html"]
        page = archive.read("run.html").decode()
    assert "<title>喜宴哪一年上映？</title>" in page and "CC BY-SA 4.0" in page and "<script" not in page


def test_the_same_run_again_changes_nothing_and_another_one_is_refused(sealed, elsewhere, tmp_path):
    run = elsewhere.import_capsule(sealed)
    before = dump(elsewhere)
    assert elsewhere.import_capsule(sealed).run_id == run.run_id and dump(elsewhere) == before

    other = rewritten(sealed, tmp_path / "other.zip", lambda c: c["run"].update(message="Who directed Film 8?"))
    with pytest.raises(CapsuleError, match="--as-new"):
        elsewhere.import_capsule(other)
    assert dump(elsewhere) == before
    new = elsewhere.import_capsule(other, as_new=True)
    assert new.run_id != run.run_id and new.message == "Who directed Film 8?" and len(elsewhere.runs.list()) == 2
    assert bytes_of(elsewhere.replay(run.run_id)) == bytes_of(run)


def dump(wb: Workbench) -> list[str]:
    with sqlite3.connect(wb.path / "workbench.db") as connection:
        return list(connection.iterdump())


def test_gc_keeps_a_tape_with_its_run(sealed, elsewhere):
    run = elsewhere.import_capsule(sealed)
    elsewhere.gc(yes=True)
    assert bytes_of(elsewhere.replay(run.run_id)) == bytes_of(run)
    elsewhere.gc(keep=0, yes=True)
    with sqlite3.connect(elsewhere.path / "workbench.db") as connection:
        assert connection.execute("SELECT count(*) FROM tapes").fetchone() == (0,)


class Importing(Scenario):
    appends, reads = False, True

    def prepare(self, wb: Workbench) -> None:
        wb.add_knowledge("film", [corpus(wb.path / "films.jsonl")])
        run_id = wb.ask(QUESTION, kb="film").run_id
        wb.export(run_id, wb.path / "run.zip")
        wb.runs.remove(run_id)

    def work(self, wb: Workbench, tell: Any) -> None:
        wb.import_capsule(wb.path / "run.zip")

    def look(self, wb: Workbench) -> dict[str, Any]:
        return {"runs": [bytes_of(run).decode() for run in wb.runs.list()]}


@pytest.mark.parametrize("kills", [2, pytest.param(8, marks=pytest.mark.full)])
def test_a_killed_import_leaves_nothing_half(tmp_path: Path, kills: int) -> None:
    assert Storm(Importing("import"), tmp_path / "storm").trials(kills) == []


def rewritten(sealed: Path, path: Path, change) -> Path:
    """The capsule with its contents changed, or replaced by the bytes that the change returns."""
    with zipfile.ZipFile(sealed) as archive:
        contents = json.loads(archive.read("run.json"))
    made = change(contents)
    return packed(path, made if made is not None else json.dumps(contents).encode())


def packed(path: Path, content: bytes, name: str = "run.json") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return path


CONTENT = {
    "no JSON": (lambda c: b"{", "Expecting property name"),
    "an endless number": (lambda c: b'{"a": 1e999}', "not JSON compliant"),
    "deep JSON": (lambda c: b"[" * 100_000, "recursion"),
    "no tape": (lambda c: c.pop("tapes") and None, "tapes: Field required"),
    "a wrong type": (lambda c: c["run"].update(message=1), "run.message"),
    "a run that waits": (lambda c: c["run"].update(status="paused"), "run.status"),
    "a result of another shape": (lambda c: c["run"]["result"].update(merged=[]), "run.result.merged"),
    "an option of another type": (lambda c: c["run"]["options"].update(review="all"), "run.options.review"),
    "an id like an option": (lambda c: c["run"].update(run_id="-rf"), "run.run_id"),
    "an id that leads outside": (lambda c: c["run"].update(run_id="../../x"), "run.run_id"),
    "no plan": (lambda c: c["plans"][0].update(plan={"steps": 1}), "is refused"),
}


def test_refused_in_one_line_with_nothing_written(sealed, elsewhere, tmp_path):
    for what, (change, says) in CONTENT.items():
        refused(elsewhere, rewritten(sealed, tmp_path / f"{what}.zip", change), says)
    text = tmp_path / "x.zip"
    text.write_text("no zip at all " * 100)
    refused(elsewhere, text, "not a zip")
    refused(elsewhere, tmp_path / "nothing.zip", "No such file")
    refused(elsewhere, tmp_path, "directory")
    refused(elsewhere, packed(tmp_path / "other.zip", b"{}", "../run.json"), "no item named 'run.json'")
    whole = sealed.read_bytes()
    for cut in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        text.write_bytes(whole[:cut])
        refused(elsewhere, text, str(text))


def refused(wb: Workbench, path: Path, says: str) -> None:
    def files():
        there = (p for p in wb.path.parent.rglob("*") if "leases" not in p.parts and p.suffix != ".db-shm")
        return {p: p.stat().st_size for p in there}

    before = files()
    with pytest.raises(CapsuleError) as raised:
        wb.import_capsule(path)
    assert says in str(raised.value) and "\n" not in str(raised.value) and str(path) in str(raised.value)
    assert wb.runs.list() == [] and before == files()


def test_every_flipped_byte_is_refused_or_changes_nothing(sealed, elsewhere, tmp_path):
    content = sealed.read_bytes()
    with zipfile.ZipFile(sealed) as archive:
        expected = json.loads(archive.read("run.json"))
    for place in range(0, len(content), max(1, len(content) // 150)):
        bad = tmp_path / f"{place}.zip"
        bad.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            assert read(bad) == expected  # a date, a permission, a byte of the page
        except CapsuleError as error:
            assert "\n" not in str(error)


def test_what_else_is_in_the_zip_is_left_there(sealed, elsewhere, tmp_path):
    """A name that leads outside, or a link, is never unpacked."""
    link = zipfile.ZipInfo("link")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(sealed, "a") as archive:
        for entry in (link, "/etc/passwd2", "../../x", "..\\x"):
            archive.writestr(entry, "/etc/passwd")
    before = set(tmp_path.rglob("*"))
    assert elsewhere.import_capsule(sealed).answer == ANSWER
    new = {path for path in tmp_path.rglob("*") if elsewhere.path not in path.parents} - before
    assert not new and not Path("/etc/passwd2").exists()


def test_bombs_are_refused_before_they_burst(sealed, elsewhere, tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.futures.capsule.LIMIT", 2**20)
    zeros = packed(tmp_path / "zeros.zip", b" " * 60_000_000)
    tracemalloc.start()
    refused(elsewhere, zeros, "unpacks to more")
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    lying = bytearray(zeros.read_bytes())
    for at in [i for i in range(len(lying)) if lying[i : i + 4] == b"PK\x01\x02"]:
        struct.pack_into("<L", lying, at + 24, 10)  # the header says ten bytes
    (tmp_path / "lying.zip").write_bytes(lying)
    refused(elsewhere, tmp_path / "lying.zip", str(tmp_path))
    (tmp_path / "large.zip").write_bytes(sealed.read_bytes() + bytes(2**20))
    refused(elsewhere, tmp_path / "large.zip", "larger than")


def test_the_command_line(folder, sealed, tmp_path):
    with opened(folder) as wb:
        run_id = first(wb).run_id
    there = tmp_path / "there"
    assert workbench(folder, "export", run_id, str(tmp_path / "cli.zip")).returncode == 0
    assert (tmp_path / "cli.zip").read_bytes() == sealed.read_bytes()
    for _ in range(2):
        assert f"Run {run_id} is here" in workbench(there, "import", str(sealed)).stderr
    told = json.loads(workbench(there, "replay", run_id, "--json").stdout)
    assert told["divergence"] is None and told["answer"] == ANSWER
    films = corpus(tmp_path / "films.jsonl", count=29)
    with opened(there) as wb:
        wb.add_knowledge("film", [films])
    assert workbench(there, "replay", run_id).returncode == 0, "the tape answers, whatever the corpus is by now"
    bad = workbench(there, "import", __file__)
    assert bad.returncode == 1 and len(bad.stderr.strip().splitlines()) == 1
