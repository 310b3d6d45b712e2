"""A disk that fills while documents are added: the file is named with the mend, and the base stays as it was."""

from __future__ import annotations

import json
import resource

import pytest

from tests.shelves import opened, workbench
from workbench.knowledge.adding import growing as scratch


def write(path, documents, notes):
    rows = (
        {"id": f"d{n}", "title": f"Hill {n}", "text": f"Hill {n} has {n} sheep.", "notes": "z" * notes}
        for n in range(documents)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def limited(kib):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (kib * 1024, kib * 1024))


def content(wb):
    base = wb.knowledge.get("hills")
    return base.fingerprint(), base.counts(), base.vector_search("Hill 7 has 7 sheep.", 3)


@pytest.mark.parametrize(
    ("verb", "documents", "notes", "kib", "words"),
    [
        ("add", 100, 20_000, 1_000, ["SQLITE_TMPDIR", "is read and not yet added"]),
        ("add", 100, 20_000, 2_100, ["hills/index.db"]),
        ("add", 150, 10, 300, ["hills/index.db"]),
        ("rebuild", 150, 10, 300, ["index.db"]),
    ],
)
def test_a_disk_that_fills_while_adding(tmp_path, verb, documents, notes, kib, words):
    folder, path = tmp_path / "workspace", tmp_path / "hills.jsonl"
    write(path, 20, 10)
    with opened(folder) as wb:
        wb.add_knowledge("hills", [path])
        before = content(wb)
    write(path, documents, notes)
    given = ["hills", "hills.jsonl"] if verb == "add" else ["hills"]
    done = workbench(folder, "kb", verb, *given, preexec_fn=limited(kib))
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


def test_the_folder_of_temporary_files_is_the_one_that_sqlite_takes(tmp_path, monkeypatch):
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path / "not there"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    scratch.temporary_folder.cache_clear()
    assert scratch.temporary_folder() == str(tmp_path)
    scratch.temporary_folder.cache_clear()
