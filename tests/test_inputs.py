"""A slice of the generated inputs, the worst files by hand, and the table of the docs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.inputs import table
from tests.inputs.__main__ import COLUMNS, feed_one
from tests.inputs.feeds import KINDS, Place
from tests.inputs.wild import Random
from workbench.errors import RunError
from workbench.knowledge.reading import corpus
from workbench.runs.asking import LONGEST_MESSAGE


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("inputs"))
    yield made
    made.wb.close()


SLICE = {
    "options": 6, "questions": 8, "answers": 6, "knowledge bases": 2, "command line": 6,
    "command line, own process": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in KINDS if SLICE.get(name, 1)])
def test_a_slice_of_each_class_breaks_nothing(place: Place, name: str) -> None:
    became = [feed_one(place, KINDS[name], Random(f"test/{name}/{n}")) for n in range(SLICE.get(name, 15))]
    broken = [(how, why) for how, why in became if how not in ("answered", "refused")]
    assert not broken and {how for how, _ in became} <= set(COLUMNS)
    assert place.lost() == 0


GOOD = b'{"id": "good", "text": "kept"}\n'


def test_a_line_of_a_gigabyte_is_passed_over_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.write(b'{"id": "first", "text": "kept"}\n')
        file.seek(2**30)
        file.write(b"\n" + GOOD)
    code = (
        "import re, sys; from workbench.knowledge.reading.corpus import load; found = load([sys.argv[1]]); "
        "print([d.doc_id for d in found.documents], found.problems[0]['line'], found.problems[0]['reason'], "
        "int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) // 1024, sep='|')"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    ids, line, reason, megabytes = done.stdout.strip().split("|")
    assert (ids, line) == ("['first', 'good']", "2")
    assert "1,024 MB" in reason and "cut it" in reason
    assert int(megabytes) < 400


def test_a_folder_with_pipes_loops_links_to_nothing_and_open_quotes_is_read(tmp_path: Path) -> None:
    (folder := tmp_path / "corpus").mkdir()
    (folder / "good.txt").write_text("kept")
    (folder / "quote.csv").write_bytes(b'id,text\n1,one\n2,"open\n3,three\n4,"x" y\n5,five\n')
    os.mkfifo(folder / "pipe.txt")
    (folder / "zero.txt").symlink_to("/dev/zero")
    (folder / "nothing.txt").symlink_to("nowhere")
    (folder / "loop.txt").symlink_to("loop.txt")
    (folder / "up").symlink_to(folder)
    loaded = corpus.load([folder])
    assert [d.doc_id for d in loaded.documents] == ["good.txt", "1", "3", "4", "5"], "no good row is swallowed"
    bad = {"pipe.txt", "zero.txt", "nothing.txt", "loop.txt", "up", "quote.csv"}
    assert {Path(problem["file"]).name for problem in loaded.problems} == bad


@pytest.mark.parametrize("one", ["喜宴和", "《", "e\u0301", "films directed by Ang Lee after 1990 or "])
@pytest.mark.few(2)
def test_the_longest_question_is_answered_in_seconds_and_a_longer_one_refused(place: Place, one: str) -> None:
    longest = LONGEST_MESSAGE
    begun = time.monotonic()
    run = place.wb.ask((one * longest)[:longest], kb="film", session=f"long {one}")
    assert run.status == "done" and time.monotonic() - begun < 60  # 1 to 7 s; the machine may be busy
    begun = time.monotonic()
    with pytest.raises(RunError, match="100,000 characters"):
        place.wb.ask((one * 100_000)[:100_000], kb="film")
    assert time.monotonic() - begun < 1


def test_the_table_says_what_is_printed(project: Path) -> None:
    assert (project / table.FILE).read_text("utf-8") == table.page(), "python -m tests.inputs.table"
