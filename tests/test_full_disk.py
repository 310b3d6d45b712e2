"""Adding while the disk fills, files that a person names, and a checkpoint file that somebody holds."""

from __future__ import annotations

import asyncio
import errno
import json
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup

from experiments.pairs import idle
from tests.shelves import opened, workbench
from workbench.errors import WorkbenchError
from workbench.parts.fusion import canvases
from workbench.records import writing
from workbench.records.writing import write_file
from workbench.session import Workbench
from workbench.views.drawing import Drawing


def write(path, documents, notes):
    rows = ({"id": f"d{n}", "text": f"Hill {n} has {n} sheep.", "notes": "z" * notes} for n in range(documents))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


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
    write(path, 20, 10)
    with opened(folder) as wb:
        wb.add_knowledge("hills", [path])
        before = content(wb)
    write(path, documents, notes)
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


def test_a_file_that_another_process_holds_does_not_hold_up_the_loop(tmp_path, monkeypatch):
    with Workbench.open(tmp_path / "ws") as wb, ThreadPoolExecutor(1) as pool:
        ask, refused = idle(wb, tmp_path), threading.Event()
        ask("first")
        saver = wb._work.durable.graph.checkpointer
        put = saver.put

        def held(*given):
            try:
                return put(*given)
            except sqlite3.OperationalError:
                refused.set()
                raise

        monkeypatch.setattr(saver, "put", held)
        with closing(sqlite3.connect(tmp_path / "ws" / "checkpoints.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            second = pool.submit(ask, "second")
            assert refused.wait(10)
            assert wb._work.loop.call(asyncio.sleep(0, "free")) == "free" and not second.done()
            other.execute("ROLLBACK")
        assert second.result(30).status == "done"
