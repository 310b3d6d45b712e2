"""A run sealed in a file: whole, the same bytes each time, without a secret; and what is refused on the way in."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import sqlite3
import stat
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.servers import Reply, only, scripted_server
from tests.shelves import ANSWER, CORE, PROJECT, QUESTION, corpus, environment, opened, workbench
from workbench.errors import CapsuleError, Divergence, RunError
from workbench.futures.replay import whole
from workbench.records.tape import canonical
from workbench.session import Workbench
from workbench.settings import ROLES, Settings

KEY = "sk-planted-0123456789"
SAID = Reply(["Ang Lee ", "directed it [1]."])
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
    return next(run for run in wb.runs() if run.message == message and run.origin is None)


@pytest.fixture
def sealed(folder, tmp_path) -> Path:
    with opened(folder) as wb:
        return wb.export(first(wb).run_id, tmp_path / "run.zip")


@pytest.fixture
def no_sockets(monkeypatch):
    def refuse(*_):
        raise AssertionError("a connection was attempted")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)


def bytes_of(run) -> bytes:
    return canonical(whole(run))


# --- out and in ---


def test_the_same_run_gives_the_same_bytes_here_and_where_it_was_brought(folder, sealed, elsewhere, tmp_path):
    with opened(folder) as wb:
        again = wb.export(first(wb).run_id, tmp_path / "again.zip")
    run = elsewhere.import_capsule(sealed)
    there = elsewhere.export(run.run_id, tmp_path / "there.zip")
    assert sealed.read_bytes() == again.read_bytes() == there.read_bytes()
    assert run.status == "done" and run.answer == ANSWER


def test_five_decisions_replay_elsewhere_without_a_person_a_corpus_or_a_connection(
    folder, elsewhere, tmp_path, no_sockets
):
    with opened(folder) as wb:
        run = first(wb, FIVE)
        path, expected = wb.export(run.run_id, tmp_path / "five.zip"), bytes_of(run)
    run = elsewhere.import_capsule(path)
    assert bytes_of(run) == expected == bytes_of(elsewhere.replay(run.run_id))


def test_a_changed_document_is_named(sealed, elsewhere, tmp_path):
    run = elsewhere.import_capsule(sealed)
    films = corpus(tmp_path / "films.jsonl")
    elsewhere.add_knowledge("film", [films])
    assert bytes_of(elsewhere.replay(run.run_id)) == bytes_of(run)
    films.write_text(films.read_text().replace("is a film of 1987", "is a movie of 1987"))
    elsewhere.add_knowledge("film", [films])
    with pytest.raises(Divergence, match=r"'film'.*document f7") as raised:
        elsewhere.replay(run.run_id)
    assert raised.value.got["input"] == {"documents": ["f7"]}
    assert bytes_of(elsewhere.replay(run.run_id, corpus="tape")) == bytes_of(run)


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
        told = {
            "WORKBENCH_CHAT_MODEL": "openai:m",
            "WORKBENCH_CHAT_BASE_URL": server.url,
            "WORKBENCH_CHAT_API_KEY": KEY,
            **{f"WORKBENCH_{name.upper()}": value for name, value in only("writer").items()},
        }
        command = [sys.executable, "-c", KILLED, str(folder)]
        patched = subprocess.run(command, env={**environment(), **told}, cwd=PROJECT, timeout=120)
        assert patched.returncode == 9
        server.answer(Reply(["The second answer [1]."]))
        with Workbench.open(folder, model(server.url)) as wb:
            [run] = [run for run in wb.runs() if run.status == "interrupted"]
            assert run.resume().answer.startswith("The second answer [1]")
            path, expected = wb.export(run.run_id, tmp_path / "killed.zip"), bytes_of(run)
    with opened(tmp_path / "fresh") as wb:
        assert bytes_of(wb.replay(wb.import_capsule(path).run_id)) == expected


def model(url: str, *roles: str) -> Settings:
    opened = {"chat_model": "openai:m", "chat_base_url": url, "chat_api_key": KEY, "model_retries": 0}
    return Settings.load(**CORE, **opened, **only("writer", *roles))


@pytest.mark.parametrize("roles", [(), ("planner",), ROLES], ids=["writer", "planner", "every role"])
def test_a_run_with_a_model_replays_with_its_server_off(folder, tmp_path, roles, monkeypatch):
    with scripted_server(SAID) as server:
        settings = model(server.url, *roles)
        with Workbench.open(folder, settings) as wb:
            run = wb.ask(QUESTION, kb="film")
            assert run.answer == "Ang Lee directed it [1]."
            path, expected, asked = wb.export(run.run_id, tmp_path / "m.zip"), bytes_of(run), len(server.requests)
    for secret in (KEY, server.url):
        with zipfile.ZipFile(path) as archive:
            assert not [n for n in archive.namelist() if secret.encode() in archive.read(n)]
    tried = []
    monkeypatch.setattr(socket.socket, "connect", lambda *a: tried.append(a))
    with Workbench.open(folder, settings) as wb:
        assert bytes_of(wb.replay(run.run_id)) == expected
    with opened(tmp_path / "fresh") as wb:  # where no model is configured
        assert bytes_of(wb.replay(wb.import_capsule(path).run_id)) == expected
        assert wb.replay(run.run_id, "check").status == "done"
        with pytest.raises(RunError, match="WORKBENCH_CHAT_MODEL"):
            wb.replay(run.run_id, "regression")
    assert not tried and len(server.requests) == asked


def test_regression_asks_the_model_again_and_nothing_else(folder):
    with scripted_server(SAID) as server, Workbench.open(folder, model(server.url)) as wb:
        run = wb.ask(QUESTION, kb="film")
        server.answer(Reply(["It was Ang Lee [1]."]))
        again = wb.replay(run.run_id, "regression")
        assert again.answer.startswith("It was Ang Lee [1]") and again.evidence == run.evidence
        assert all(record.get("replayed") for record in again.records if "effect" in record)


def test_tools_of_ones_own_need_not_be_there(folder, elsewhere, tmp_path):
    with opened(folder) as wb:

        @wb.tools.tool(description="Award winners by name", intents={"qa"})
        def awards(query: str, knowledge) -> list[str]:
            return [f"Film 7 won an award: {query}"]

        run = wb.ask(QUESTION, kb="film")
        assert "awards" in {step.tool for step in run.plan.steps}
        path, expected = wb.export(run.run_id, tmp_path / "own.zip"), bytes_of(run)
    run = elsewhere.import_capsule(path)
    assert bytes_of(elsewhere.replay(run.run_id)) == expected
    assert elsewhere.replay(run.run_id, "check").status == "done"


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


def test_a_secret_that_a_tool_said_is_in_no_file(folder, tmp_path):
    settings = Settings.load(**CORE, chat_api_key=KEY, postgres_dsn="")
    with Workbench.open(folder, settings) as wb:

        @wb.tools.tool(description="Says too much", intents={"qa"})
        def leaky(query: str, knowledge) -> list[str]:
            raise ValueError(f"401 for {KEY}")

        run = wb.ask(QUESTION, kb="film")
        assert KEY not in json.dumps(run.records), "it is masked on the way in"
        path = wb.export(run.run_id, tmp_path / "leak.zip")
        assert wb.import_capsule(path).run_id == run.run_id
    with zipfile.ZipFile(path) as archive:
        assert all(KEY.encode() not in archive.read(name) for name in archive.namelist())
        assert b"401 for [secret]" in archive.read("records.jsonl")


def test_the_crate_describes_every_file_the_run_and_the_licences(tmp_path, elsewhere):
    path = tmp_path / "l.jsonl"
    film = {
        "id": "a",
        "title": "喜宴",
        "overview": "《喜宴》是一部1993年的电影。",
        "licence": "CC BY-SA 4.0",
        "url": "https://a.org/x",
    }
    path.write_text(json.dumps(film, ensure_ascii=False) + "\n", encoding="utf-8")
    elsewhere.add_knowledge("film", [path])
    run = elsewhere.ask("喜宴哪一年上映？", kb="film")
    with zipfile.ZipFile(elsewhere.export(run.run_id, tmp_path / "r.zip")) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    crate = json.loads(files["ro-crate-metadata.json"])
    by_id = {entity["@id"]: entity for entity in crate["@graph"]}
    assert crate["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    assert by_id["ro-crate-metadata.json"]["conformsTo"]["@id"] == "https://w3id.org/ro/crate/1.1"
    root = by_id["./"]
    assert {part["@id"] for part in root["hasPart"]} == files.keys() - {"ro-crate-metadata.json"}
    for name, content in files.items():
        if name not in ("ro-crate-metadata.json", "manifest.json"):
            assert by_id[name]["sha256"] == hashlib.sha256(content).hexdigest()
            assert by_id[name]["contentSize"] == str(len(content))
    action = by_id["#run"]
    assert action["@type"] == "CreateAction" and action["name"] == "喜宴哪一年上映？"
    assert [by_id[licence["@id"]]["name"] for licence in root["license"]] == ["CC BY-SA 4.0"]
    used = [given["@id"] for values in by_id.values() for given in _references(values)]
    assert not [
        name for name in used if name not in by_id and not name.startswith(("http://schema.org/", "https://w3id"))
    ]
    [text] = json.loads(files["licences.json"])
    assert text == {
        "kb_prefix": "film",
        "doc_id": "a",
        "title": "喜宴",
        "url": "https://a.org/x",
        "licence": "CC BY-SA 4.0",
    }
    assert "喜宴哪一年上映？" in files["run.html"].decode() and b"<script" not in files["run.html"]
    assert list(json.loads(files["knowledge.json"])) == ["film"]
    assert set(json.loads(files["manifest.json"])["versions"]) == {"workbench", "python", "langgraph"}


def _references(values):
    for value in values.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                yield item


# --- one run there already ---


def test_the_same_run_again_changes_nothing_and_another_one_is_refused(sealed, elsewhere, tmp_path):
    run = elsewhere.import_capsule(sealed)
    before = dump(elsewhere)
    assert elsewhere.import_capsule(sealed).run_id == run.run_id and dump(elsewhere) == before
    other = rewritten(
        sealed,
        tmp_path / "other.zip",
        lambda files: files.update({"run.json": files["run.json"].replace(QUESTION.encode(), b"Who directed Film 8?")}),
    )
    with pytest.raises(CapsuleError, match="--as-new"):
        elsewhere.import_capsule(other)
    assert dump(elsewhere) == before
    new = elsewhere.import_capsule(other, as_new=True)
    assert new.run_id != run.run_id and new.message == "Who directed Film 8?" and len(elsewhere.runs()) == 2
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


IMPORT = """
import os, sys
from tests.shelves import opened
from workbench.records import store as runs
packed, left = runs.packed, [int(sys.argv[3])]
class Dying(list):
    pass
import sqlite3
real = sqlite3.connect
class Connection(sqlite3.Connection):
    def executemany(self, sql, rows):
        left[0] -= 1
        if left[0] == 0:
            os._exit(9)
        return super().executemany(sql, rows)
sqlite3.connect = lambda *a, **k: real(*a, **{"factory": Connection, **k})
with opened(sys.argv[1]) as wb:
    wb.import_capsule(sys.argv[2])
"""


@pytest.mark.parametrize("at", [1, 4, 6])
def test_a_killed_import_leaves_nothing_half(sealed, tmp_path, at):
    folder = tmp_path / "killed"
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, str(folder), str(sealed), str(at)], env=environment(), cwd=PROJECT, timeout=120
    )
    assert done.returncode == 9
    with opened(folder) as wb:
        assert wb.runs() == []
        run = wb.import_capsule(sealed)
        assert wb.replay(run.run_id).status == "done"


# --- refused ---


def rewritten(sealed: Path, path: Path, change, hashes: bool = True) -> Path:
    """The capsule with its files changed, with the hashes remade or not."""
    with zipfile.ZipFile(sealed) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    manifest = json.loads(files.get("manifest.json", b"[]"))
    if hashes and manifest:
        for name in manifest["files"]:
            if name in files:
                content = files[name]
                manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        files["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def in_manifest(**change):
    def do(files):
        files["manifest.json"] = json.dumps({**json.loads(files["manifest.json"]), **change}).encode()

    return do


def in_run(change):
    def do(files):
        run = json.loads(files["run.json"])
        change(run)
        files["run.json"] = json.dumps(run).encode()

    return do


def in_tape(name, value):
    def do(files):
        effects = [json.loads(line) for line in files["tape.jsonl"].splitlines()]
        for effect in effects:
            if (effect["kind"], effect["name"]) == ("begin", name):
                effect["value"] = value
        files["tape.jsonl"] = b"".join(json.dumps(effect).encode() + b"\n" for effect in effects)

    return do


NO_PLAN = b'{"version":1,"author":"","reason":"","plan":{"steps":1}}\n'
CONTENT = {
    "a missing file": (lambda f: f.pop("tape.jsonl"), "'tape.jsonl' is missing"),
    "an extra file": (lambda f: f.update({"x.bin": b"x"}), "'x.bin' is not in its manifest"),
    "no manifest": (lambda f: f.pop("manifest.json"), "no manifest.json"),
    "an absolute path": (lambda f: f.update({"/etc/passwd": b"x"}), "lead outside"),
    "a way up": (lambda f: f.update({"../../x": b"x"}), "lead outside"),
    "a drive": (lambda f: f.update({"C:x": b"x"}), "lead outside"),
    "a backslash": (lambda f: f.update({"..\\x": b"x"}), "lead outside"),
    "a folder": (lambda f: f.update({"a/": b""}), "lead outside"),
    "a newer format": (in_manifest(format=2), "newer workbench"),
    "another kind": (in_manifest(kind="x"), "not that of a capsule"),
    "a list as manifest": (lambda f: f.update({"manifest.json": b"[]"}), "not that of a capsule"),
    "no JSON": (lambda f: f.update({"run.json": b"{"}), "run.json is not JSON"),
    "no number": (lambda f: f.update({"run.json": b'{"a": NaN}'}), "run.json is not JSON"),
    "an endless number": (lambda f: f.update({"run.json": b'{"a": 1e999}'}), "run.json is not JSON"),
    "half a character": (lambda f: f.update({"run.json": b'"\\ud800"'}), "run.json is not JSON"),
    "deep JSON": (lambda f: f.update({"tape.jsonl": b"[" * 100_000}), "nested too deeply"),
    "a list as run": (lambda f: f.update({"run.json": b"[]"}), "no run"),
    "an unknown field": (in_run(lambda r: r.update(owner="me")), "no run"),
    "a wrong type": (in_run(lambda r: r.update(message=1)), "no run"),
    "a run that waits": (in_run(lambda r: r.update(status="paused")), "no run"),
    "a result of another shape": (in_run(lambda r: r["result"].update(merged=[])), "no run"),
    "an option of another type": (in_run(lambda r: r["options"].update(review="all")), "no run"),
    "settings as a list": (in_tape("settings", []), "tape.begin.settings"),
    "a setting of another type": (in_tape("settings", {"max_iterations": "x"}), "tape.begin.settings.max_iterations"),
    "a clock that is no date": (in_tape("clock", "noon"), "tape.begin.clock"),
    "an id like an option": (in_run(lambda r: r.update(run_id="-rf")), "run.run_id"),
    "a signal of another type": (
        in_run(lambda r: r["result"]["reflections"][0]["signals"].update(top_score={})),
        "run.result.reflections.0.signals.top_score",
    ),
    "another run's manifest": (in_manifest(run_id="x"), "names another run"),
    "a line twice": (lambda f: f.update({"plans.jsonl": f["plans.jsonl"] * 2}), "a line twice"),
    "records without bodies": (lambda f: f.update({"bodies.jsonl": b""}), "do not fit together"),
    "no plan": (
        lambda f: f.update({"plans.jsonl": b'{"version":1,"author":"","reason":"","plan":{"steps":1}}\n'}),
        "no run",
    ),
}


@pytest.mark.parametrize("what", CONTENT)
def test_refused_in_one_line_with_nothing_written(sealed, elsewhere, tmp_path, what):
    change, says = CONTENT[what]
    refused(elsewhere, rewritten(sealed, tmp_path / "bad.zip", change), says)


def refused(wb: Workbench, path: Path, says: str) -> None:
    before = {
        p: p.stat().st_size for p in wb.path.parent.rglob("*") if "leases" not in p.parts and p.suffix != ".db-shm"
    }
    with pytest.raises(CapsuleError) as raised:
        wb.import_capsule(path)
    assert says in str(raised.value) and "\n" not in str(raised.value) and str(path) in str(raised.value)
    assert wb.runs() == []
    after = {
        p: p.stat().st_size for p in wb.path.parent.rglob("*") if "leases" not in p.parts and p.suffix != ".db-shm"
    }
    assert before == after


def test_a_broken_hash_is_refused(sealed, elsewhere, tmp_path):
    def change(files):
        files["bodies.jsonl"] = files["bodies.jsonl"].replace(b"1987", b"1988")

    refused(elsewhere, rewritten(sealed, tmp_path / "bad.zip", change, hashes=False), "not what its hash says")


@pytest.mark.parametrize("cut", [0, 1, 100, 0.5, 0.99, -1])
def test_what_is_cut_off_is_refused(sealed, elsewhere, tmp_path, cut):
    whole_file = sealed.read_bytes()
    bad = tmp_path / "cut.zip"
    bad.write_bytes(whole_file[: int(len(whole_file) * cut) if isinstance(cut, float) else cut])
    refused(elsewhere, bad, str(bad))


def test_every_flipped_byte_is_refused_or_changes_nothing(sealed, elsewhere, tmp_path):
    content = sealed.read_bytes()
    for place in range(0, len(content), max(1, len(content) // 150)):
        bad = tmp_path / f"{place}.zip"
        bad.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            elsewhere.import_capsule(bad)
        except CapsuleError as error:
            assert "\n" not in str(error)
        else:  # a date, a permission: nothing that the hashes are of
            with zipfile.ZipFile(bad) as one, zipfile.ZipFile(sealed) as two:
                assert {n: one.read(n) for n in one.namelist()} == {n: two.read(n) for n in two.namelist()}


def test_no_zip_no_file_a_folder(elsewhere, tmp_path):
    text = tmp_path / "x.zip"
    text.write_text("no zip at all " * 100)
    refused(elsewhere, text, "not a zip")
    refused(elsewhere, tmp_path / "nothing.zip", "No such file")
    refused(elsewhere, tmp_path, "directory")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_link_and_a_name_twice_are_refused(sealed, elsewhere, tmp_path):
    link = zipfile.ZipInfo("link")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    for entry, says in ((link, "is a link"), ("run.json", "two files named 'run.json'")):
        bad = Path(shutil.copy(sealed, tmp_path / "bad.zip"))
        with zipfile.ZipFile(bad, "a") as archive:
            archive.writestr(entry, "/etc/passwd")
        refused(elsewhere, bad, says)


def test_bombs_are_refused_before_they_burst(sealed, elsewhere, tmp_path):
    refused(elsewhere, rewritten(sealed, tmp_path / "zeros.zip", zeros), "unpacks to more")
    refused(elsewhere, rewritten(sealed, tmp_path / "many.zip", many), "larger than a capsule")
    lying = bytearray(rewritten(sealed, tmp_path / "lying.zip", zeros).read_bytes())
    for at in [i for i in range(len(lying)) if lying[i : i + 4] == b"PK\x01\x02"]:
        struct.pack_into("<L", lying, at + 24, 10)  # every header says ten bytes
    (tmp_path / "lying.zip").write_bytes(lying)
    refused(elsewhere, tmp_path / "lying.zip", str(tmp_path))


def zeros(files):
    files["tape.jsonl"] = b" " * 60_000_000


def many(files):
    files.update({f"f{n}": b"" for n in range(5_000)})


# --- the command line ---


def test_the_command_line(folder, sealed, tmp_path):
    with opened(folder) as wb:
        run_id = first(wb).run_id
    there = tmp_path / "there"
    assert workbench(folder, "export", run_id, str(tmp_path / "cli.zip")).returncode == 0
    assert (tmp_path / "cli.zip").read_bytes() == sealed.read_bytes()
    assert "brought in" in workbench(there, "import", str(sealed)).stderr
    assert "here already, with the same content" in workbench(there, "import", str(sealed)).stderr
    told = json.loads(workbench(there, "replay", run_id, "--json").stdout)
    assert told["divergence"] is None and told["answer"] == ANSWER
    films = corpus(tmp_path / "films.jsonl", count=29)
    with opened(there) as wb:
        wb.add_knowledge("film", [films])
    said = workbench(there, "replay", run_id)
    lines = said.stderr.strip().splitlines()
    assert said.returncode == 1 and len(lines) == 2, said.stderr
    assert "'film'" in lines[0] and "document f29 (gone)" in lines[0] and lines[1].startswith("Expected")
    assert workbench(there, "replay", run_id, "--corpus", "tape").returncode == 0
    bad = workbench(there, "import", __file__)
    assert bad.returncode == 1 and len(bad.stderr.strip().splitlines()) == 1
