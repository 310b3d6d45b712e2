"""What is forgotten is in no file any more, whoever had it; nothing else is lost, wherever a process is killed."""

import asyncio
import json
import re
import sqlite3
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.shelves import CORE, corpus, shelved
from tests.storm import Scenario, Storm
from tests.test_store import empty_postgres, postgres  # noqa: F401  every database
from tests.test_store import store as conversations  # noqa: F401
from workbench.errors import RunError, WorkbenchError
from workbench.parts.memory.memories import Forgotten, forget, rewrite
from workbench.parts.memory.recall import Recalling, find_store
from workbench.parts.memory.store import MemoryStore
from workbench.records.conversations import SqliteConversations
from workbench.session import Workbench

REMEMBERING = {**CORE, "memory_core": True, "summary_from": 4, "summary_every": 1, "history_window": 2}
TALKS = {
    "en": (
        "I don't like zqhorror films.",
        "I like zqhorror films now.",
        "What did I say about zqhorror films?",
        "zqhorror",
    ),
    "zh": ("我不喜欢紫琥珀电影。", "我喜欢紫琥珀电影。", "关于紫琥珀电影，我说过什么？", "紫琥珀"),
}
CAT = "Remember that my cat is called Zqbiscuit."


def spellings(word: str) -> list[bytes]:
    cases = {word, word.lower(), word.capitalize()}
    return [
        told
        for one in cases
        for told in (one.encode(), one.encode("utf-16-le"), one.encode("utf-16-be"), json.dumps(one)[1:-1].encode())
    ]


def readings(file: Path) -> Iterator[bytes]:
    """The bytes of a file, and of everything in it that is packed: of a zip, of rows, of any stream that zlib reads."""
    content = file.read_bytes()
    yield content
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            yield from map(archive.read, archive.namelist())
    for found in re.finditer(b"\x78[\x01\x5e\x9c\xda]", content):
        try:
            yield zlib.decompressobj().decompress(content[found.start() : found.start() + (1 << 20)])
        except zlib.error:
            continue
    if content.startswith(b"SQLite format 3"):
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
            for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
                for row in connection.execute(f'SELECT * FROM "{table}"'):
                    for value in row:
                        if isinstance(value, bytes) and value[:1] == b"\x78":
                            yield zlib.decompress(value)
        connection.close()


def holders(folder: Path, *words: str) -> set[str]:
    """The files in which one of the words stands, in whatever way it is written."""
    wanted = [told for word in words for told in spellings(word)]
    return {
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file() and any(one in read for read in readings(file) for one in wanted)
    }


def kept(wb: Workbench, user: str | None = None) -> dict[str, Any]:
    """What is there, of everybody or of one person, each row as text."""
    runs, talks = wb._work.durable.runs, find_store(wb)
    found: dict[str, Any] = {}
    for row in map(runs.get, runs.ids(-1)):
        if user in (None, row["user_id"]):
            found[row["run_id"]] = json.dumps(runs.contents(row["run_id"]), sort_keys=True)
    owners, tables = dict[str, str](), ("conversations", "messages", "feedback", "episodes", "conversation_summaries")
    with talks._transaction() as execute:
        for table in (*tables, "memories"):
            for one in execute(f"SELECT * FROM {table}"):
                of = one.get("user_id") or owners[one.get("conversation_id") or one["message_id"]]
                owners[one["id"]] = of
                if user in (None, of):
                    found[f"{table} {one['id']}"] = json.dumps(one, default=repr, ensure_ascii=False, sort_keys=True)
    return found


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
def bench(request: pytest.FixtureRequest, tmp_path: Path, opens: Any) -> Callable[..., Workbench]:
    """Opens the same workspace again and again, over each database."""
    dsn = ""
    if request.param == "postgres":
        dsn = request.getfixturevalue("postgres")
        empty_postgres(dsn)
    corpus(tmp_path / "films.jsonl", 12)
    told = {**REMEMBERING, "postgres_dsn": dsn}
    return lambda **settings: opens(shelved(tmp_path / "w", tmp_path / "films.jsonl"), **{**told, **settings})


def told(wb: Workbench, session: str, *messages: str, user: str = "default") -> list[Any]:
    runs = []
    for message in messages:
        runs.append(wb.ask(message, kb="film", session=session, user=user))
        wb._work.loop.settle(10)
    return runs


def planted(wb: Workbench, language: str) -> dict[str, Any]:
    """A preference that changed, with all that comes of it: a summary, forks, a replay, a capsule, what waits."""
    first, changed, asked, _ = TALKS[language]
    said = told(wb, "s", first, "Who directed Film 1?", changed, CAT, "Who directed Film 2?", asked)
    assert find_store(wb).get_summary(said[0].row["conversation_id"])
    fork = said[-1].fork(query="Who directed Film 3?").wait()
    of_first = said[0].fork(settings={"max_iterations": 1}).wait()
    again = wb.replay(said[-1].run_id)
    waiting = wb.ask("Who directed Film 4?", kb="film", session="s", review={"plan"})
    wb._work.durable.runs.save_draft(waiting.run_id, "note", first)
    said[1].feedback(True, f"as I said: {first}")
    elsewhere = told(wb, "t", "Who directed Film 5?")
    other = told(wb, "s", "I don't like westerns.", "Who directed Film 6?", user="bob")
    other[0].feedback(False, "a verdict")
    [memory] = [m for m in find_store(wb).memories("default") if m["section"] == "preferences"]
    runs = {"said": said, "fork": fork, "of_first": of_first, "again": again, "waiting": waiting}
    return {**runs, "memory": memory, "elsewhere": elsewhere, "other": other}


@pytest.mark.parametrize("language", TALKS)
def test_a_memory_is_in_no_file_any_more(bench, language):
    wb = bench()
    word = TALKS[language][3]
    there = planted(wb, language)
    before = kept(wb)
    assert {"checkpoints.db", "workbench.db"} <= {name.partition("-")[0] for name in holders(wb.path, word)}, (
        "it is seen"
    )
    only_said = forget(wb, memory=there["memory"]["id"], dry_run=True)
    assert kept(wb) == before and not only_said.done, "a dry run changes nothing"
    gone = {r.run_id for r in (*there["said"], there["fork"], there["of_first"], there["again"], there["waiting"])}
    assert set(only_said.runs) == gone | {there["elsewhere"][0].run_id}
    first, _, changed, *later = there["said"]
    assert set(only_said.dependents) >= {r.run_id for r in (*later[:-1], there["elsewhere"][0])}
    assert not {first.run_id, changed.run_id, there["of_first"].run_id} & set(only_said.dependents)
    assert only_said.counts["memories"] == 2
    done = forget(wb, memory=there["memory"]["id"])
    assert done.done and done.counts == only_said.counts and done.runs == only_said.runs
    after = kept(wb)
    assert word not in str(after).lower() and json.dumps(word)[1:-1] not in str(after)
    bobs = {one.run_id: before[one.run_id] for one in there["other"]}
    assert bobs.items() <= after.items(), "nothing of another person is lost"
    lost = {name for name, told in before.items() if after.get(name) != told}
    assert not any("bob" in before[name] or "western" in before[name] for name in lost)
    messages = {m["content"] for m in wb.messages("s")}
    assert {CAT, "Who directed Film 2?", "Who directed Film 4?"} <= messages, "what does not speak of it stays"
    assert [m["content"] for m in find_store(wb).memories("default")] == ["my cat is called Zqbiscuit"]
    run = told(wb, "s", "What is my cat called?")[0]
    assert run.status == "done" and word not in json.dumps(run.to_dict(), ensure_ascii=False).lower()
    answer = there["other"][1].answer
    assert holders(wb.path, word) == set(), "not even while it is open, in the logs"
    wb.close()
    assert holders(wb.path, word) == set()
    wb = bench()
    assert wb.replay(there["other"][1].run_id).answer == answer
    assert wb.ask(TALKS[language][2], kb="film", session="s").status == "done"


def test_a_conversation_and_a_person_are_in_no_file_any_more(bench):
    wb = bench(memory_scope="user")
    there = planted(wb, "en")
    told(wb, "s", "Remember that my dog is called Zqrover.", "Who directed Film 7?")
    quoting = told(wb, "t", "What did I say about Zqrover?", "Who directed Film 8?")
    assert "Zqrover" in quoting[0].answer
    mine = told(wb, "u", "Remember that my boat is called Zqdory.")
    before = kept(wb)
    report = forget(wb, session="s", dry_run=True)
    recalled = {r.run_id for r in (*there["elsewhere"], quoting[1], *mine)}
    assert set(report.dependents) == recalled
    forget(wb, session="s")
    after = kept(wb)
    assert all(before[one.run_id] in after.values() for one in there["other"]), (
        "bob's has the same name, and is another"
    )
    assert [m["content"] for m in wb.messages("t")][:1] == ["Who directed Film 5?"]
    assert "Who directed Film 8?" in [m["content"] for m in wb.messages("t")]
    assert [m["content"] for m in find_store(wb).memories("default")] == ["my boat is called Zqdory"]
    assert not wb.messages("s") and wb.messages("s", "bob")
    wb.close()
    assert holders(wb.path, "zqhorror", "Zqbiscuit", "Zqrover") == set()
    wb = bench()
    before = kept(wb, user="bob")
    assert "Zqdory" in str(kept(wb))
    forget(wb, user="default")
    assert kept(wb) == kept(wb, user="bob") == before, "all that is left is bob's, as it was"
    assert not any(forget(wb, user="default").counts.values()), "once more: nothing is left to forget"
    wb.close()
    assert holders(wb.path, "Zqdory") == set()


def test_what_is_cleared_or_has_moved_is_written_over(tmp_path):
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.executescript("CREATE TABLE t (words TEXT); INSERT INTO t VALUES ('zqremnant'); DELETE FROM t;")
    connection.close()
    assert holders(tmp_path, "zqremnant") == {"a.db"}
    rewrite(path)
    assert holders(tmp_path, "zqremnant") == set()
    with SqliteConversations(tmp_path / "workbench.db") as kept_here:
        for session in ("s", "t"):
            conversation = kept_here.get_or_create_conversation_id("ann", session)
            kept_here.append_message(conversation, "user", f"zq{session}word")
        assert kept_here.clear("ann", "s") == 1
    content = (tmp_path / "workbench.db").read_bytes()
    assert b"zqsword" not in content and b"zqtword" in content


def test_an_exchange_goes_with_what_was_noted_of_it(bench):
    wb = bench()
    _, second, third = told(
        wb, "s", "Remember that I am allergic to zqnuts.", "Who directed Film 1?", "Who directed Film 2?"
    )
    answer = wb.messages("s")[1]["id"]
    report = forget(wb, message=answer)
    assert report.counts["memories"] == 1 and report.counts["messages"] == 2
    assert set(report.dependents) == {second.run_id, third.run_id}
    assert [m["content"] for m in wb.messages("s")][::2] == ["Who directed Film 1?", "Who directed Film 2?"]
    with pytest.raises(WorkbenchError, match="no exchange"):
        forget(wb, message=answer)
    wb.close()
    assert holders(wb.path, "zqnuts") == set()


def test_who_had_it_only_from_a_summary_or_the_beginning_is_found_and_who_came_back_under_another_id(bench, tmp_path):
    wb = bench(memory_core=False, memory_episodes=False)
    asked = ("Who directed zqfilm?", *["Hello!"] * 4, "Who directed Film 1?", "Who directed zqlater?")
    *_, last, later = told(wb, "s", *asked)
    kept_parts = {part["part"]: part["text"] for part in last.state["remembered"]}
    assert set(kept_parts) == {"summary", "history"} and "zqfilm" in kept_parts["summary"]
    copied = wb.import_capsule(wb.export(later.run_id, tmp_path / "a.zip"), as_new=True)
    assert copied.run_id in forget(wb, message=wb.messages("s")[-1]["id"]).runs
    report = forget(wb, message=wb.messages("s")[0]["id"])
    assert last.run_id in report.dependents and report.counts["messages"] == 2
    wb.close()
    assert holders(wb.path, "zqfilm", "zqlater") == set()


def test_an_answer_that_quotes_it_goes_though_its_run_was_removed(bench):
    wb = bench(memory_scope="user", memory_least=0.0)
    told(wb, "s", "Who directed zqfilm?", "Who directed Film 1?")
    quoting, *_ = told(wb, "t", "What did I ask about zqfilm?", "Who directed Film 2?")
    assert "Who directed zqfilm?" in quoting.answer
    for run in wb.runs.list(session_id="t"):
        wb.runs.remove(run.run_id)
    assert forget(wb, message=wb.messages("s")[0]["id"]).counts["messages"] == 4
    assert [m["content"] for m in wb.messages("t")][::2] == ["Who directed Film 2?"]
    wb.close()
    assert holders(wb.path, "zqfilm") == set()


def test_what_is_named_is_one_thing_that_is_there_and_of_that_person(bench):
    wb = bench()
    told(wb, "s", CAT)
    [memory] = find_store(wb).memories("default")
    for wrong, why in (
        ({}, "Name one thing"),
        ({"memory": "a", "session": "s"}, "Name one thing"),
        ({"memory": "nowhere"}, "no memory 'nowhere'"),
        ({"memory": memory["id"], "user": "bob"}, "no memory"),
    ):
        with pytest.raises(WorkbenchError, match=why):
            forget(wb, **wrong)
    assert not any(forget(wb, session="never", user="bob").counts.values())
    assert len(wb.messages("s")) == 2 and find_store(wb).memories("default") == [memory]


def test_a_run_at_work_with_it_is_waited_for_by_the_person(bench):
    wb = bench()
    told(wb, "s", CAT)
    [memory] = find_store(wb).memories("default")
    reached, go_on = threading.Event(), threading.Event()

    async def planner(query, decision, knowledge, tools):
        reached.set()
        while not go_on.is_set():
            await asyncio.sleep(0.01)
        raise RuntimeError("no plan")

    wb.register("planner", planner)
    run = wb.start("Who directed Film 3?", kb="film", session="s")
    assert reached.wait(20)
    with pytest.raises(RunError, match=run.run_id):
        forget(wb, memory=memory["id"])
    assert find_store(wb).memories("default") == [memory] and len(wb.messages("s")) == 3
    go_on.set()
    run.wait()
    assert forget(wb, memory=memory["id"]).dependents == (run.run_id,), "a run that failed had it too"
    wb.close()
    assert holders(wb.path, "Zqbiscuit") == set()


def test_tapes_that_were_pruned_and_runs_that_came_back_are_found(bench, tmp_path):
    wb = bench()
    said, had = told(wb, "s", CAT, "Who directed Film 3?")
    outside = wb.export(said.run_id, tmp_path / "outside.zip")
    wb.import_capsule(outside, as_new=True)
    wb.gc(tapes=True, yes=True)
    [memory] = find_store(wb).memories("default")
    (wb.path / "notes.txt").write_text("Zqbiscuit, by hand", encoding="utf-8")
    (wb.path / "mine.txt").write_text(f"I wrote: {CAT}", encoding="utf-8")
    report = forget(wb, memory=memory["id"])
    assert report.counts["runs"] == 3 and had.run_id in report.dependents
    wb.close()
    assert holders(wb.path, "Zqbiscuit") == {"notes.txt", "mine.txt"} and outside.exists()


def test_a_report_says_it_in_both_languages_and_escapes_what_it_names(bench):
    wb = bench()
    told(wb, "s", "记住我的猫叫紫琥珀。", "Who directed Film 3?")
    [memory] = find_store(wb).memories("default")
    report = forget(wb, memory=memory["id"], dry_run=True)
    assert "将会忘记：一条记忆" in str(report) and "从记忆中得到过" in str(report) and "紫琥珀" not in str(report)
    hostile = Forgotten("user", True, {"runs": 1}, ("<b>",), ())
    page = hostile._repr_html_()
    assert "Forgotten: everything of a person" in str(hostile)
    assert not re.search("<b>", page) and "&lt;b&gt;" in page


def test_what_comes_late_or_was_replaced_names_nothing_forgotten(conversations):  # noqa: F811
    store = MemoryStore(conversations)
    conversation = store.get_or_create_conversation_id("ann", "s")
    ids = [store.append_message(conversation, "user", text) for text in ("zq one", "two", "three")]
    store.save_summary(conversation, "of zq one", 1, message_ids=ids[:1])
    store.forget(ids[:1])
    assert store.get_summary(conversation) is None
    store.save_summary(conversation, "of zq one and two", 2, message_ids=ids[:2])
    assert store.get_summary(conversation) is None
    store.save_summary(conversation, "of two and three", 2, message_ids=ids[1:])
    assert store.get_summary(conversation)["summary"] == "of two and three"
    old = store.remember("ann", "preferences", "likes tea", about="tea")
    new = store.remember("ann", "preferences", "no zqtea", about="tea", replaces=[old], why="no zqtea")
    other = store.remember("bob", "facts", "zqtea too")
    store.forget([new])
    [left] = store.memories("ann", ended=True)
    assert (left["id"], left["ended_why"], left["replaced_by"]) == (old, "", "") and left["ended_at"]
    assert [m["id"] for m in store.memories("bob")] == [other]


def test_a_run_that_reads_it_in_this_moment_is_found_too(bench, monkeypatch):
    wb = bench()
    told(wb, "s", CAT)
    [memory] = find_store(wb).memories("default")
    read, go_on, real = threading.Event(), threading.Event(), Recalling.recall

    def slow(self: Recalling, *given: Any, **how: Any) -> Any:
        found = real(self, *given, **how)
        read.set()
        assert go_on.wait(20)
        return found

    monkeypatch.setattr(Recalling, "recall", slow)
    run = wb.start("Who directed Film 3?", kb="film", session="t")
    assert read.wait(20)
    threading.Timer(0.5, go_on.set).start()
    try:
        forget(wb, memory=memory["id"])
    except RunError:
        run.wait()
        forget(wb, memory=memory["id"])
    assert run.run_id not in wb.runs
    wb.close()
    assert holders(wb.path, "Zqbiscuit") == set()


def test_nothing_that_was_forgotten_stays_at_hand(bench):
    wb, other = bench(), bench()
    told(wb, "s", "Remember that I am allergic to zqnuts.", "Who directed Film 1?")
    conversation = wb.runs.list()[0].row["conversation_id"]

    def recalled() -> str:
        asked = "zqnuts, or who directed Film 2?"
        return json.dumps(wb.ports().memory.recall(asked, user_id="default", conversation_id=conversation))

    assert "zqnuts" in recalled()
    forget(wb, message=wb.messages("s")[0]["id"])
    told(other, "s", "Who directed Film 2?")  # so that there are as many exchanges as before
    assert "zqnuts" not in recalled() and "Film 2" in recalled()
    wb.clear("s")
    told(other, "s", *(f"Who directed Film {n}?" for n in (3, 4)))
    assert "Film 2" not in recalled()


def test_what_only_a_removed_run_led_to_goes_with_the_call_after_a_kill(bench, monkeypatch):
    wb = bench()
    [said] = told(wb, "s", CAT)
    fork = said.fork(query="Who directed Film 3?").session_id
    [memory] = find_store(wb).memories("default")

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(MemoryStore, "forget", die)  # the runs are gone by then
        forget(wb, memory=memory["id"])
    wb.close()
    wb = bench()
    assert not wb.runs.list() and wb.messages(fork), "no run says any more whose exchange this is"
    forget(wb, memory=memory["id"])
    assert not wb.messages(fork) and not wb.messages("s") and not find_store(wb).memories("default")
    assert not [*wb.path.glob(".forgetting*")]


class Forgetting(Scenario):
    appends = False

    def prepare(self, wb: Workbench) -> None:
        wb.add_knowledge("film", [corpus(wb.path / "films.jsonl", 12)])
        (wb.path / "id").write_text(planted(wb, "en")["memory"]["id"])

    def work(self, wb: Workbench, tell: Any) -> None:
        with suppress(WorkbenchError):  # it was gone already
            forget(wb, memory=(wb.path / "id").read_text())

    def look(self, wb: Workbench) -> dict[str, Any]:
        mine = [memory["content"] for memory in find_store(wb).memories("default")]
        return {"another's": kept(wb, "bob"), "mine": mine, "in files": sorted(holders(wb.path, "zqhorror"))}


@pytest.mark.slow
@pytest.mark.parametrize("kills", [2, pytest.param(8, marks=pytest.mark.full)])
def test_a_killed_forgetting_is_ended_by_the_next(tmp_path: Path, kills: int) -> None:
    assert Storm(Forgetting("forgetting", REMEMBERING), tmp_path / "storm").trials(kills) == []


def test_everything_is_forgotten_of_a_person_who_asked_the_same_report_twice(bench):
    wb = bench()
    first, second = (wb.report("Film 1 and Film 2", kb="film", session=name) for name in ("s", "t"))
    assert first.status == second.status == "done" and second.report.text
    report = forget(wb, session="s", dry_run=True)
    assert {*report.runs} == {first.run_id, second.run_id} and report.dependents == (second.run_id,)
    assert forget(wb, user="default").done and not wb.runs.list()
