"""What is forgotten is in no file any more, whoever had it; nothing else is lost, wherever a process is killed."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.shelves import CORE, PROJECT, corpus, environment
from tests.test_store import empty_postgres, postgres, store  # noqa: F401  every database
from workbench.errors import RunError, WorkbenchError
from workbench.maintenance.forgetting import Forgotten, forget
from workbench.memory.remembered import SqlRemembered
from workbench.session import Workbench
from workbench.settings import Settings

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
CAT = "My cat is called Zqbiscuit."


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


def rows(wb: Workbench) -> str:
    """Everything in the conversation store, as text."""
    with wb._work.durable.conversations._transaction() as execute:
        tables = ("conversations", "messages", "feedback", "conversation_summaries", "episodes", "memories")
        return json.dumps([execute(f"SELECT * FROM {table} ORDER BY 1") for table in tables], default=repr)


def kept(wb: Workbench, *, user: str | None = None, but: str = "\0") -> dict[str, Any]:
    """What is there, by ids, without what is of a run or a text of these words."""
    runs, store = wb._work.durable.runs, wb._work.durable.conversations
    found: dict[str, Any] = {}
    for row in runs.newest(-1):
        if user in (None, row["user_id"]):
            found[row["run_id"]] = json.dumps(runs.contents(row["run_id"]), sort_keys=True)
    with store._transaction() as execute:
        for table in ("messages", "memories", "episodes", "conversation_summaries", "feedback", "conversations"):
            for one in execute(f"SELECT * FROM {table}"):
                found[f"{table} {one['id']}"] = json.dumps(one, default=repr, ensure_ascii=False, sort_keys=True)
    return {name: told for name, told in found.items() if but.lower() not in told.lower()}


@pytest.fixture(params=["sqlite", "postgres"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Workbench]]:
    """Opens the same workspace again and again, over each database."""
    dsn = ""
    if request.param == "postgres":
        dsn = request.getfixturevalue("postgres")
        empty_postgres(dsn)
    corpus(tmp_path / "films.jsonl", 12)
    opened: list[Workbench] = []

    def make(**settings: Any) -> Workbench:
        opened.append(Workbench.open(tmp_path / "w", Settings.load(**REMEMBERING, postgres_dsn=dsn, **settings)))
        if "film" not in opened[-1].knowledge.names():
            opened[-1].add_knowledge("film", [tmp_path / "films.jsonl"])
        return opened[-1]

    yield make
    for wb in opened:
        wb.close()


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
    assert wb._work.durable.conversations.get_summary(said[0].conversation_id)
    fork = said[-1].fork(query="Who directed Film 3?").wait()
    of_first = said[0].fork(settings={"max_iterations": 1}).wait()
    again = wb.replay(said[-1].run_id)
    waiting = wb.ask("Who directed Film 4?", kb="film", session="s", review={"plan"})
    wb._work.durable.runs.save_draft(waiting.run_id, "note", first)
    (wb.path / "carried").mkdir()
    capsules = [wb.export(one.run_id, wb.path / "carried" / f"{n}.zip") for n, one in enumerate((said[0], said[-1]))]
    said[1].feedback(True, f"as I said: {first}")
    elsewhere = told(wb, "t", "Who directed Film 5?")
    other = told(wb, "s", "I don't like westerns.", "Who directed Film 6?", user="bob")
    other[0].feedback(False, "a verdict")
    [memory] = [
        m
        for m in wb._work.durable.conversations.memories("default")
        if "film" in m["content"] + "films电影" and m["section"] == "preferences"
    ]
    return {
        "said": said,
        "fork": fork,
        "of_first": of_first,
        "again": again,
        "waiting": waiting,
        "memory": memory,
        "capsules": capsules,
        "elsewhere": elsewhere,
        "other": other,
    }


@pytest.mark.parametrize("language", TALKS)
def test_a_memory_is_in_no_file_any_more(bench, language):
    wb = bench()
    word = TALKS[language][3]
    there = planted(wb, language)
    before, everything = kept(wb), rows(wb)
    only_said = forget(wb, memory=there["memory"]["id"], dry_run=True)
    assert kept(wb) == before and rows(wb) == everything and not only_said.done, "a dry run changes nothing"
    assert all(path.exists() for path in there["capsules"])
    gone = {r.run_id for r in (*there["said"], there["fork"], there["of_first"], there["again"], there["waiting"])}
    assert set(only_said.runs) == gone | {there["elsewhere"][0].run_id}
    first, middle, changed, *later = there["said"]
    assert set(only_said.dependents) >= {r.run_id for r in (*later, there["elsewhere"][0], there["fork"])}
    assert not {first.run_id, changed.run_id} & set(only_said.dependents)
    assert only_said.waiting == (there["waiting"].run_id,)
    assert only_said.counts["memories"] == 2 and only_said.counts["capsules"] == 2
    done = forget(wb, memory=there["memory"]["id"])
    assert done.done and done.counts == only_said.counts and done.runs == only_said.runs
    after = kept(wb)
    assert word not in rows(wb).lower() and json.dumps(word)[1:-1] not in rows(wb)
    bobs = {one.run_id: before[one.run_id] for one in there["other"]}
    assert bobs.items() <= after.items(), "nothing of another person is lost"
    lost = {name for name, told in before.items() if after.get(name) != told}
    assert not any("bob" in before[name] or "western" in before[name] for name in lost)
    messages = {m["content"] for m in wb.messages("s")}
    assert {CAT, "Who directed Film 2?", "Who directed Film 4?"} <= messages, "what does not speak of it stays"
    assert [m["content"] for m in wb._work.durable.conversations.memories("default")] == [CAT.rstrip(".")]
    run = told(wb, "s", "What is my cat called?")[0]
    assert run.status == "done" and word not in json.dumps(run.to_dict(), ensure_ascii=False).lower()
    answer = there["other"][1].answer
    wb.close()
    assert holders(wb.path, word) == set()
    wb = bench()
    assert wb.replay(there["other"][1].run_id).answer == answer
    assert wb.ask(TALKS[language][2], kb="film", session="s").status == "done"


def test_every_plant_was_there(bench):
    """The search sees what is to be found: in rows, in tapes that are packed, in checkpoints, in capsules."""
    wb = bench()
    planted(wb, "zh")
    wb.close()
    found = holders(wb.path, "紫琥珀")
    assert {"checkpoints.db", "carried/0.zip", "carried/1.zip", "workbench.db"} <= found
