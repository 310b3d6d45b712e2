"""Nothing of one person, or of an incognito conversation, is seen by another, whatever is done in whatever order.

Every text has a mark that says who said it, where, and which it is, so that whatever is recalled, prompted, taped or
written can be read for the marks of others, and for those of what was forgotten.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parts.memory.test_forgetting import holders
from tests.shelves import CORE, corpus, shelved
from tests.test_store import empty_postgres, postgres, ticking  # noqa: F401  every database
from workbench.errors import WorkbenchError
from workbench.models.embeddings import HashingEmbeddings
from workbench.parts.memory.memories import forget
from workbench.parts.memory.recall import Recalling, find_store
from workbench.parts.memory.store import MemoryStore
from workbench.records.conversations import SqliteConversations
from workbench.session import Workbench
from workbench.settings import Settings

USERS, SESSIONS = ("ann", "bob", "cai"), ("x", "y")
MARK = re.compile(r"zq(ann|bob|cai)(x|y)(h?)(\d+)q")
WHO = st.tuples(st.sampled_from(USERS), st.sampled_from(SESSIONS))


def marks(value: Any) -> set[tuple[str, str, str, str]]:
    """The marks in something, however it is written."""
    return set(MARK.findall(value if isinstance(value, str) else json.dumps(value, default=str)))


@dataclass
class Said:
    """What was said, by its marks, and what of it was forgotten."""

    count: int = 0
    gone: set[tuple[str, str, str, str]] = field(default_factory=set)
    all: set[tuple[str, str, str, str]] = field(default_factory=set)

    def new(self, who: str, session: str, hidden: bool = False) -> str:
        self.count += 1
        one = (who, session, "h" * hidden, str(self.count))
        self.all.add(one)
        return f"zq{''.join(one)}q"

    def of(self, who: str, session: str = "") -> set[tuple[str, str, str, str]]:
        return {one for one in self.all if one[0] == who and session in ("", one[1]) and not one[2]}

    def check(self, found: set[tuple[str, str, str, str]], who: str, where: str) -> None:
        assert all(one[0] == who for one in found), f"{where}: {who} sees {found}"
        assert not found & self.gone, f"{where}: {found & self.gone} was forgotten"


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.full)])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Makes an empty store, as often as it is asked to."""
    opened: list[MemoryStore] = []

    def make() -> MemoryStore:
        while opened:
            opened.pop().close()
        if request.param == "postgres":
            store = empty_postgres(request.getfixturevalue("postgres"))()
        else:
            file = Path(tempfile.mkdtemp(dir=tmp_path)) / "workbench.db" if request.param == "sqlite" else ":memory:"
            store = SqliteConversations(file, ticking())
        opened.append(MemoryStore(store))
        return opened[-1]

    yield make
    while opened:
        opened.pop().close()


DEEDS = ["say"] * 6 + ["recall"] * 6 + ["remember", "remember", "sum up", "embed"]
DEEDS += ["forget message", "forget memory", "forget conversation", "clear"]
DONE = st.tuples(
    st.sampled_from(DEEDS), st.tuples(st.sampled_from(["ann", "ann", "bob", "cai"]), st.sampled_from("xxy"))
)


@settings(max_examples=20)
@given(steps=st.lists(DONE, min_size=10, max_size=40), scope=st.sampled_from(["conversation", "user"]))
def test_what_is_recalled_is_ones_own_and_was_not_forgotten(fresh, steps, scope):
    store, said = fresh(), Said()
    wanted = {"memory_scope": scope, "memory_core": True, "memory_least": 0.0, "memory_top_k": 50, "history_window": 1}
    recalling = Recalling(store, Settings.load(**CORE, **wanted), HashingEmbeddings())
    for what, (who, session) in [*steps, *(("recall", (who, session)) for who in USERS for session in SESSIONS)]:
        conversation = store.get_or_create_conversation_id(who, session)
        messages, memories = store.list_messages(conversation), store.memories(who, ended=True)
        if what == "say":
            mark = said.new(who, session)
            asked = store.append_message(conversation, "user", f"Where is {mark}?")
            store.append_message(conversation, "assistant", f"{mark} is here.", answers=asked)
        elif what == "remember":
            old = [m["id"] for m in memories if not m["ended_at"]][-1:]
            text = f"likes {said.new(who, session)}"
            store.remember(who, "facts", text, conversation_id=conversation, replaces=old, why=text)
        elif what == "sum up" and messages:
            text = " ".join(m["content"] for m in messages)
            store.save_summary(conversation, text, len(messages), message_ids=[m["id"] for m in messages])
        elif what == "embed":
            recalling.embed(conversation)
        elif what == "forget message" and messages:
            pair = messages[:2]
            store.forget([m["id"] for m in pair])
            said.gone |= marks([m["content"] for m in pair])
        elif what == "forget memory" and memories:
            store.forget([memories[-1]["id"]])
            said.gone |= marks(memories[-1]["content"])
        elif what in ("forget conversation", "clear"):
            told = marks([m["content"] for m in messages])
            ids = [m["id"] for m in messages]
            store.forget([*ids, conversation]) if what != "clear" else store.clear(who, session)
            said.gone |= told
        if what == "recall":
            found = recalling.recall("Where is it?", user_id=who, conversation_id=conversation)
            said.check(marks(found), who, "recalled")
            said.check(marks(store.list_messages(conversation)), who, "the window")
            if scope == "conversation":
                here = marks({part: found[part] for part in ("summary", "episodes")})
                assert all(one[1] == session for one in here), f"another conversation: {here}"


ASKED = ("I like {} films.", "My cat is called {}.", "我喜欢{}电影。", "What did I say about {}?")
ACTS = st.one_of(
    st.tuples(st.just("ask"), WHO, st.sampled_from(ASKED)),
    st.tuples(st.just("ask"), WHO, st.sampled_from(ASKED)),
    st.tuples(st.just("incognito"), WHO, st.sampled_from(ASKED)),
    st.tuples(st.just("recall"), WHO, st.sampled_from(["What did I say about films?", "Recommend some films."])),
    st.tuples(st.sampled_from(["fork", "replay"]), WHO, st.just("")),
    st.tuples(st.sampled_from(["memory", "exchange", "session", "user"]), WHO, st.just("")),
)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus(tmp_path_factory.mktemp("shelf") / "films.jsonl", 5)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
def dsn(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue("postgres") if request.param == "postgres" else ""


def forgotten(wb: Workbench, said: Said, what: str, who: str, session: str) -> None:
    """Forget something of a person, if there is something."""
    store = find_store(wb)
    if what == "memory":
        for memory in store.memories(who)[-1:]:
            forget(wb, memory=memory["id"], user=who)
            said.gone |= marks(memory["content"])
    elif what == "exchange":
        for message in wb.messages(session, who)[:1]:
            forget(wb, message=message["id"], user=who)
            said.gone |= marks(message["content"])
    elif what == "session":
        said.gone |= said.of(who, session)
        forget(wb, session=session, user=who)
    else:
        said.gone |= said.of(who)
        forget(wb, user=who)


@pytest.mark.full
@settings(max_examples=6)
@given(acts=st.lists(ACTS, min_size=4, max_size=12), scope=st.sampled_from(["conversation", "user"]))
def test_no_run_has_anything_of_another_and_incognito_leaves_no_byte(shelf, dsn, acts, scope):
    said = Said()
    if dsn:
        empty_postgres(dsn)
    folder = shelved(Path(tempfile.mkdtemp()) / "w", shelf)
    wanted = {"memory_core": True, "memory_scope": scope, "memory_least": 0.0, "history_window": 2, "postgres_dsn": dsn}
    wanted |= {"summary_from": 2, "summary_every": 1}
    with Workbench.open(folder, Settings.load(**CORE, **wanted)) as wb:
        for what, (who, session), text in acts:
            hidden = what == "incognito"
            run: Any = None
            if what in ("ask", "incognito", "recall"):
                message = text.format(said.new(who, session, hidden))
                run = wb.ask(message, kb="film", user=who, session=session, incognito=hidden)
            elif what in ("fork", "replay"):
                for origin in wb.runs.list(1, user_id=who):
                    run = wb.replay(origin.run_id) if what == "replay" else origin.fork(query="Which films?").wait()
            else:
                forgotten(wb, said, what, who, session)
            wb._work.loop.settle(10)
            if run is not None and run.status == "done":
                kept = wb._work.driver(run.run_id).runs.contents(run.run_id)
                found = marks([kept, wb._work.values(run.run_id)])
                said.check(found, who, what)
                assert {bool(one[2]) for one in found} <= {hidden}, f"{what}: {found}"
        assert not any(one[2] for user in USERS for one in marks(find_store(wb).memories(user)))
    gone = [f"zq{''.join(one)}q" for one in said.all if one[2] or one in said.gone]
    assert holders(folder, *gone) == set()


def test_incognito_leaves_no_byte_and_is_refused_what_would_leave_one(shelf, tmp_path):
    with Workbench.open(shelved(tmp_path / "w", shelf), Settings.load(**CORE, memory_core=True)) as wb:
        run = wb.ask("I like zqhidden films.", kb="film", incognito=True, review={"plan"})
        again = wb.ask("What did I say about zqhidden films?", kb="film", incognito=True, session=run.session_id)
        assert "zqhidden" in again.answer, "it remembers as long as it is open"
        for leaving in (
            lambda: again.fork(query="x"),
            lambda: wb.export(again.run_id, tmp_path / "w" / "a.zip"),
            lambda: again.feedback(True, "zqhidden"),
        ):
            with pytest.raises(WorkbenchError, match="incognito"):
                leaving()
        run.cancel()
        plain = wb.ask("What did I say about films?", kb="film", session=run.session_id)
        assert "zqhidden" not in json.dumps(plain.to_dict(), default=str)
        wb._work.loop.settle(10)
    assert holders(tmp_path / "w", "zqhidden") == set()
