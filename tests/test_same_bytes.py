"""A run is the same bytes from two fresh indexes, in two processes, with two hash seeds: a fifth of the film table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.parts.evaluate.answers import ask_all
from workbench.parts.evaluate.questions import read_rows
from workbench.records.tape import canonical

PROJECT = Path(__file__).resolve().parent.parent


def main(folder: str, every: str = "1") -> None:
    """Index the films, ask every nth question of the table, and print the canonical bytes of each run."""
    with Workbench.open(folder) as wb:
        wb.add_knowledge("film", [PROJECT / "data" / "films.jsonl"])
        rows = read_rows(PROJECT / "experiments" / "film_questions.jsonl", "id", "question")[:: int(every)]
        for row, run in zip(rows, ask_all(wb, rows, kb="film"), strict=True):
            document = {**run.to_dict(), "evidence": run.evidence, "merged": run.state.get("merged")}
            print(json.dumps([row["id"], canonical(document).decode()], ensure_ascii=False), flush=True)


@pytest.mark.full
def test_a_fifth_of_the_table_twice(project: Path, tmp_path: Path) -> None:
    def begin(seed: str) -> subprocess.Popen[str]:
        command = [sys.executable, __file__, str(tmp_path / seed), "5"]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.Popen(
            command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    answers = []
    for process in [begin("1"), begin("2024")]:
        out, err = process.communicate(timeout=900)
        assert process.returncode == 0, err[-2000:]
        answers.append(dict(json.loads(line) for line in out.splitlines()))
    one, two = answers
    assert len(one) >= 30 and list(one) == list(two)
    assert [name for name in one if one[name] != two[name]] == []


if __name__ == "__main__":
    main(*sys.argv[1:])
