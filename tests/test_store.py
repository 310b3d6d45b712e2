"""The conversation store against each of its databases; what is kept of a run, and each thing in its store once."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from tests import forked, handmade
from tests.servers.postgres import postgres_server
from workbench.errors import SettingsError, UnknownRun, WorkbenchError, WorkspaceError
from workbench.records.conversations import VERSION, SqlConversations, SqliteConversations, open_conversations
from workbench.records.document import SCHEMA_FILE, schema_text
from workbench.records.lease import Lease
from workbench.records.sqlite import explained
from workbench.records.store import RunStore
from workbench.records.tape import canonical
from workbench.settings import Settings
from workbench.text import without_secrets


def ticking():
    ticks = count()
    return lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(ticks))


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with postgres_server() as dsn:
        if dsn is None:
            pytest.skip("no PostgreSQL on this machine (initdb, pg_ctl): the store was not tested against it")
        yield dsn


def empty_postgres(dsn: str):
    psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    from workbench.parts.sources.postgres import PostgresConversations

    return lambda: PostgresConversations(dsn, ticking())


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request, tmp_path) -> Iterator[SqlConversations]:
    if request.param == "postgres":
        opened = empty_postgres(request.getfixturevalue("postgres"))()
    elif request.param == "sqlite":
        opened = SqliteConversations(tmp_path / "workbench.db", ticking())
    else:
        opened = SqliteConversations(":memory:", ticking())
    with opened as ready:
        yield ready


@pytest.fixture(params=["sqlite", "postgres"])
def opener(request, tmp_path):
    """Opens the same kept store again and again."""
    if request.param == "postgres":
        return empty_postgres(request.getfixturevalue("postgres"))
    return lambda: SqliteConversations(tmp_path / "workbench.db", ticking())


def contents(store, conversation, **how):
    return [message["content"] for message in store.list_messages(conversation, **how)]


def test_messages_come_back_in_order_as_they_were_stored(store):
    conversation = store.get_or_create_conversation_id("ann", "films")
    assert store.get_or_create_conversation_id("ann", "films") == conversation
    others = [
        store.get_or_create_conversation_id(*who) for who in [("bob", "films"), ("ann", "books"), ("a", "nnfilms")]
    ]
    assert len({conversation, *others}) == 4
    text, more = (
        "《喜宴》于 1993 年上映 [1]。",
        {"citations": [{"n": 1, "source": {"title": "喜宴"}}], "debug": {"a": "b"}},
    )
    store.append_message(conversation, "user", "喜宴哪一年上映？")
    answer = store.append_message(conversation, "assistant", text, **more)
    asked, answered = store.list_messages(conversation)
    assert [asked[name] for name in ("role", "content", "citations", "debug")] == ["user", "喜宴哪一年上映？", [], None]
    about = {"conversation_id": conversation, "created_at": "2026-01-01T00:00:06+00:00", "partial": False}
    assert answered == {"id": answer, "role": "assistant", "content": text, **about, **more}
    assert contents(store, others[0], before=answer) == [], "of another conversation"


def test_messages_are_paged_stored_once_and_completed(store):
    conversation = store.get_or_create_conversation_id("ann", "films")
    ids = [store.append_message(conversation, "user", str(i)) for i in range(10)]
    assert contents(store, conversation, limit=3) == ["7", "8", "9"]
    assert contents(store, conversation, limit=3, before=ids[7]) == ["4", "5", "6"]
    assert contents(store, conversation, before=ids[2]) == ["0", "1"]
    assert contents(store, conversation, limit=0) == []
    assert contents(store, conversation, before="not there") == []
    assert store.count_messages(conversation) == 10
    conversation = store.get_or_create_conversation_id("ann", "books")
    key = "run-1:assistant"
    cut = store.append_message(conversation, "assistant", "The Wedd", message_key=key, partial=True)
    store.append_message(conversation, "user", "Still there?")
    assert store.append_message(conversation, "assistant", "The Wedding Banquet.", message_key=key) == cut
    store.append_message(conversation, "assistant", "The Wed", message_key=key, partial=True)
    assert contents(store, conversation) == ["The Wedding Banquet.", "Still there?"]
    assert [m["partial"] for m in store.list_messages(conversation)] == [False, False]
    other = store.get_or_create_conversation_id("bob", "films")
    assert store.append_message(other, "user", "same key, other conversation", message_key=key) != cut
    for _ in range(2):
        store.append_message(conversation, "user", "no key")
    assert store.count_messages(conversation) == 4


def test_text_is_cleaned_and_wrong_names_are_errors(store):
    conversation = store.get_or_create_conversation_id("ann", "films")
    store.append_message(
        conversation, "user", "a\x00b\ud800c '; DROP TABLE messages; -- %s ?", debug={"x": "\ud800\x00"}
    )
    (message,) = store.list_messages(conversation)
    assert message["content"] == "a b?c '; DROP TABLE messages; -- %s ?"
    conversation = store.get_or_create_conversation_id("ann", "books")
    with pytest.raises(WorkbenchError, match=r"'nowhere'.*cleared"):
        store.append_message("nowhere", "user", "hello")
    with pytest.raises(WorkbenchError, match=r"'robot'.*user, assistant"):
        store.append_message(conversation, "robot", "hello")
    with pytest.raises(WorkbenchError, match="'no-message'"):
        store.add_feedback("no-message", True)
    assert store.count_messages(conversation) == 0


def test_clearing_messages_leaves_the_conversation_and_takes_the_feedback(store):
    conversation, other = (store.get_or_create_conversation_id("ann", name) for name in ("films", "books"))
    answer = store.append_message(conversation, "assistant", "1993")
    store.append_message(other, "user", "stays")
    store.add_feedback(answer, False)
    assert store.clear_messages(conversation) == 1
    assert store.clear_messages(conversation) == 0
    assert store.list_feedback(answer) == []
    store.append_message(conversation, "user", "again")
    assert contents(store, conversation) == ["again"]
    assert contents(store, other) == ["stays"]


@pytest.mark.parametrize(
    ("named", "left"),
    [
        ({"user_id": "ann"}, [("bob", "films")]),
        ({"user_id": "ann", "session_id": "films"}, [("ann", "books"), ("bob", "films")]),
    ],
)
def test_clear_takes_a_conversation_or_a_user_and_nobody_elses(store, named, left):
    owners = [("ann", "films"), ("ann", "books"), ("bob", "films")]
    conversations = {who: store.get_or_create_conversation_id(*who) for who in owners}
    for conversation in conversations.values():
        store.append_message(conversation, "user", "hello")
    assert store.clear(**named) == 3 - len(left)
    assert [who for who in owners if store.count_messages(conversations[who])] == left


def test_feedback_under_a_key_is_replaced_taken_back_and_found_by_whose_it_is(store):
    answers = dict[str, str]()
    for user, session in (("ann", "films"), ("bob", "films")):
        conversation = store.get_or_create_conversation_id(user, session)
        answers[user] = store.append_message(conversation, "assistant", "1993", message_key=f"{user}:assistant")
        assert answers[user] == store.message_id(store.conversation_id(user, session), f"{user}:assistant")
        store.add_feedback(answers[user], True, thread_id=f"run of {user}", key="who")
    assert store.add_feedback(answers["ann"], False, key="who", metadata={"note": "短"}) != store.add_feedback(
        answers["ann"], True, key="another"
    )
    first, second = store.list_feedback(answers["ann"])
    assert (first["is_positive"], first["metadata"], second["is_positive"]) == (False, {"note": "短"}, True)
    assert (first["thread_id"], first["user_id"], first["session_id"]) == ("run of ann", "ann", "films")
    assert [len(store.list_feedback(**of)) for of in ({}, {"user_id": "bob"}, {"session_id": "films"})] == [3, 1, 3]
    assert [one["user_id"] for one in store.list_feedback(thread_id="run of bob")] == ["bob"]
    store.remove_feedback(answers["ann"], "who")
    assert [one["is_positive"] for one in store.list_feedback(answers["ann"])] == [True]
    assert store.message(answers["bob"])["content"] == "1993" and store.message("nowhere") is None


def test_many_threads_lose_nothing_and_keep_each_ones_order(store):
    conversation = store.get_or_create_conversation_id("ann", "films")

    def write(worker: int) -> None:
        for i in range(20):
            store.append_message(conversation, "user", f"{worker}:{i}", message_key=f"{worker}:{i}")

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(write, range(5)))
    written = contents(store, conversation)
    assert len(written) == 100
    for worker in range(5):
        assert [c for c in written if c.startswith(f"{worker}:")] == [f"{worker}:{i}" for i in range(20)]


def test_what_was_stored_is_there_when_opened_again_and_by_two_at_once(opener):
    with opener() as one, opener() as two:
        conversation = one.get_or_create_conversation_id("ann", "films")
        one.append_message(conversation, "user", "from one")
        two.append_message(conversation, "user", "from two")
    with opener() as again:
        assert contents(again, conversation) == ["from one", "from two"]


WRITER = """
import sys
from workbench.records.conversations import SqliteConversations
store = SqliteConversations(sys.argv[1])
conversation = store.get_or_create_conversation_id("ann", "films")
for i in range(1_000_000):
    store.append_message(conversation, "user", str(i), message_key=str(i))
    print(i, flush=True)
"""


def test_many_can_open_a_new_store_at_the_same_moment(opener):
    barrier = threading.Barrier(6)

    def opened() -> None:
        barrier.wait()
        with opener() as store:
            store.append_message(store.get_or_create_conversation_id("ann", "films"), "user", "hello")

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(opened) for _ in range(6)]:
            done.result()
    with opener() as store:
        assert store.count_messages(store.get_or_create_conversation_id("ann", "films")) == 6


def test_a_killed_writer_loses_nothing_that_it_was_told_was_stored(tmp_path):
    path = tmp_path / "workbench.db"
    writer = forked.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    told = [int(writer.stdout.readline()) for _ in range(50)]
    os.kill(writer.pid, signal.SIGKILL)
    told += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
    writer.wait()
    with SqliteConversations(path) as store:
        conversation = store.get_or_create_conversation_id("ann", "films")
        assert contents(store, conversation)[: len(told)] == [str(i) for i in range(len(told))]
        store.append_message(conversation, "user", "on we go")


def test_a_database_of_another_version_is_refused(tmp_path):
    path = tmp_path / "workbench.db"
    SqliteConversations(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE conversation_version SET version = 999")
    with pytest.raises(WorkspaceError, match=f"999, here {VERSION}"):
        SqliteConversations(path)


def test_a_dsn_or_its_parts_lead_to_postgres_and_no_password_is_told(tmp_path, monkeypatch):
    from workbench.parts.sources.postgres import environment

    for dsn, error in [("host=127.0.0.1 port=1 password=hush", WorkspaceError), ("hush = hush hush", SettingsError)]:
        with pytest.raises(error, match="WORKBENCH_POSTGRES_DSN") as raised:
            open_conversations(tmp_path / "workbench.db", Settings(_env_file=None, postgres_dsn=dsn))
        assert "hush" not in str(raised.value)
    parts = dict(
        zip(["HOST", "PORT", "USER", "PASSWORD", "DB"], ("127.0.0.1", "1", "ada", "it's hush", "notes"), strict=True)
    )
    for name, value in parts.items():
        monkeypatch.setenv(f"POSTGRES_{name}", value)
    assert sorted(environment().values()) == sorted(parts.values()), "without a DSN, its parts"
    with pytest.raises(WorkspaceError, match="HOST") as raised:
        open_conversations(tmp_path / "workbench.db", Settings.load())
    assert "hush" not in str(raised.value)
    assert "it's hush" not in without_secrets("password it's hush"), "kept out of every log, tape and export"


def test_a_dropped_postgres_connection_is_opened_anew(postgres):
    store = empty_postgres(postgres)()
    conversation = store.get_or_create_conversation_id("ann", "films")
    pid = store._connection.info.backend_pid
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (pid,))
    assert store.count_messages(conversation) == 0, "the first call after it, too"
    store.close()


def test_only_what_was_said_tells_runs_apart() -> None:
    assert SCHEMA_FILE.read_text("utf-8") == schema_text(), (
        "python -m workbench.records.document > workbench/records/run.schema.json"
    )
    decisions = [{**handmade.run().decisions[0], "review_id": "other", "decided_at": "2030-01-01T00:00:00+00:00"}]
    merged = {**handmade.run().merged, "statistics": {"total_duration_ms": 12.5}}
    one = document(run_id="a", merged={**merged, "statistics": {"total_duration_ms": 99.0}})
    assert canonical(one) == canonical(document(run_id="b", merged=merged, decisions=decisions))
    assert canonical(document()) != canonical(document(answer="otherwise"))
    other = [handmade.evidence(1, "The Wedding Banquet", 0.84), handmade.evidence(2, "Eat Drink Man Woman", 0.79)]
    assert canonical(document()) != canonical(document(evidence=other))
    with pytest.raises(ValueError, match="finite"):
        canonical({"evidence": [float("nan")]})


def document(**changes: Any) -> dict[str, Any]:
    run, merged = handmade.run(), handmade.run().state["merged"]
    said = {"plan": run.plan.dump(), "decisions": run.decisions, "answer": run.answer}
    return {"run_id": run.run_id, "evidence": merged["retrieval_results"], "merged": merged, **said, **changes}


RECORD = {
    **{"step_id": "a", "attempt": 1, "iteration": 1, "started_at": "2026-01-01T00:00:00.000002+00:00"},
    **{"raw_output_ref": "a/1", "status": "success"},
}


@pytest.fixture
def runs(tmp_path):
    runs = RunStore(tmp_path / "workbench.db")
    runs.create("r1", "喜宴哪一年上映？", {"kb": ["film"]}, owner="me", session_id="s")
    yield runs
    runs.close()


def test_writing_again_changes_nothing(runs):
    runs.save_record("r1", RECORD, {"results": [1], "output": {}})
    runs.save_record("r1", {**RECORD, "status": "failed"}, {"results": [2], "output": {}})
    assert runs.records("r1") == [RECORD]
    assert runs.body("r1", "a/1")["results"] == [1]
    for answer in ("approve", "reject"):
        kept = runs.save_decision("r1", {"review_id": "0-plan", "action": answer})
    assert kept["action"] == "approve" and len(runs.decisions("r1")) == 1
    for _ in range(2):
        runs.save_event("r1", "task", {"execution_log": {"node": "planner"}})
        runs.save_plan("r1", {"version": 1}, "planner", "")
    assert len(runs.events("r1")) == len(runs.plans("r1")) == 1
    runs.save_result("r1", {"answer": "1993"})
    runs.save_result("r1", {"answer": "other"})
    assert runs.get("r1", whole=True)["result"] == {"answer": "1993"}


def test_attempts_stand_in_order_and_removing_leaves_nothing(runs):
    before = {**RECORD, "step_id": "b", "raw_output_ref": None, "started_at": "2026-01-01T00:00:00.000001+00:00"}
    later = {**before, "step_id": "0", "iteration": 2}
    for ended in (later, RECORD, before):
        runs.save_record("r1", ended, None)
    assert [r["step_id"] for r in runs.records("r1")] == ["b", "a", "0"]
    with pytest.raises(UnknownRun, match="newest: r1"):
        runs.get("zzz")
    runs.create("r2", "b", {}, owner="me", session_id="t")
    assert runs.ids(session_id="t") == ["r2"]
    runs.save_record("r1", RECORD, {"results": [], "output": {}})
    runs.remove(["r1"])
    assert not runs.has("r1") and runs.records("r1") == []
    with pytest.raises(WorkspaceError, match="not in the workspace any more"):
        runs.body("r1", "a/1")


def test_many_who_ask_at_once_do_not_take_each_other_for_the_owner(tmp_path):
    dead = Lease(tmp_path)
    dead._lock.release()  # as the kernel does when the process dies: its files stay
    (tmp_path / f"{dead.owner}.lock").touch()
    asking = [Lease(tmp_path / "of-others") for _ in range(6)]
    for lease in asking:
        lease.folder = tmp_path

    def ask(lease):
        barrier.wait()
        return any(lease.alive(dead.owner) for _ in range(300))

    barrier = threading.Barrier(6)
    with ThreadPoolExecutor(6) as pool:
        assert not any(pool.map(ask, asking))


@pytest.mark.parametrize(("made", "said"), [(True, "is read-only"), (False, "cannot be opened")])
def test_a_folder_that_is_gone_is_not_called_read_only(made: bool, said: str, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    folder = tmp_path / "base"
    with pytest.raises(sqlite3.OperationalError) as failed:
        sqlite3.connect(folder / "index.db")
    if made:
        folder.mkdir()
    assert said in str(explained(failed.value, folder / "index.db"))
