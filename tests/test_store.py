"""One list of tests for the conversation store, run against each of its databases."""

from __future__ import annotations

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

import pytest

from tests import forked
from tests.servers import postgres_server
from workbench.errors import SettingsError, WorkbenchError, WorkspaceError
from workbench.records.conversations import VERSION, SqlConversations, SqliteConversations, _dsn, open_conversations
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


def test_limit_takes_the_newest_and_before_pages_back(store):
    conversation = store.get_or_create_conversation_id("ann", "films")
    ids = [store.append_message(conversation, "user", str(i)) for i in range(10)]
    assert contents(store, conversation, limit=3) == ["7", "8", "9"]
    assert contents(store, conversation, limit=3, before=ids[7]) == ["4", "5", "6"]
    assert contents(store, conversation, before=ids[2]) == ["0", "1"]
    assert contents(store, conversation, limit=0) == []
    assert contents(store, conversation, before="not there") == []
    assert store.count_messages(conversation) == 10


def test_storing_a_key_again_stores_once(store):
    conversation = store.get_or_create_conversation_id("ann", "films")
    first = store.append_message(conversation, "user", "hello", message_key="run-1:user")
    assert store.append_message(conversation, "user", "hello again", message_key="run-1:user") == first
    assert contents(store, conversation) == ["hello"]
    store.append_message(conversation, "user", "no key")
    store.append_message(conversation, "user", "no key")
    other = store.get_or_create_conversation_id("bob", "films")
    assert store.append_message(other, "user", "same key, other conversation", message_key="run-1:user") != first
    assert store.count_messages(conversation) == 3


def test_a_partial_answer_is_completed_where_it_stands_and_a_complete_one_stays(store):
    conversation = store.get_or_create_conversation_id("ann", "films")
    key = "run-1:assistant"
    cut = store.append_message(conversation, "assistant", "The Wedd", message_key=key, partial=True)
    store.append_message(conversation, "user", "Still there?")
    assert store.append_message(conversation, "assistant", "The Wedding Banquet.", message_key=key) == cut
    store.append_message(conversation, "assistant", "The Wed", message_key=key, partial=True)
    assert contents(store, conversation) == ["The Wedding Banquet.", "Still there?"]
    assert [m["partial"] for m in store.list_messages(conversation)] == [False, False]


def test_text_that_no_database_takes_is_cleaned(store):
    conversation = store.get_or_create_conversation_id("ann", "films")
    store.append_message(
        conversation, "user", "a\x00b\ud800c '; DROP TABLE messages; -- %s ?", debug={"x": "\ud800\x00"}
    )
    (message,) = store.list_messages(conversation)
    assert message["content"] == "a b?c '; DROP TABLE messages; -- %s ?"


def test_wrong_names_are_errors_that_name_them(store):
    conversation = store.get_or_create_conversation_id("ann", "films")
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
    from psycopg.conninfo import conninfo_to_dict

    for dsn, error in [("host=127.0.0.1 port=1 password=hush", WorkspaceError), ("hush = hush hush", SettingsError)]:
        with pytest.raises(error, match="WORKBENCH_POSTGRES_DSN") as raised:
            open_conversations(tmp_path / "workbench.db", Settings(_env_file=None, postgres_dsn=dsn))
        assert "hush" not in str(raised.value)
    parts = dict(
        zip(["HOST", "PORT", "USER", "PASSWORD", "DB"], ("127.0.0.1", "1", "ada", "it's hush", "notes"), strict=True)
    )
    for name, value in parts.items():
        monkeypatch.setenv(f"POSTGRES_{name}", value)
    given = conninfo_to_dict(_dsn())
    assert "it's hush" not in without_secrets("password it's hush"), "kept out of every log, tape and export"
    assert sorted(given.values()) == sorted(parts.values()), "without a DSN, its parts"
    with pytest.raises(WorkspaceError, match="HOST") as raised:
        open_conversations(tmp_path / "workbench.db", Settings.load())
    assert "hush" not in str(raised.value)


def test_a_dropped_postgres_connection_is_opened_anew(postgres):
    store = empty_postgres(postgres)()
    conversation = store.get_or_create_conversation_id("ann", "films")
    pid = store._connection.info.backend_pid
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (pid,))
    assert store.count_messages(conversation) == 0, "the first call after it, too"
    store.close()
