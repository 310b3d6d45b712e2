"""A run is the same bytes from two fresh indexes, in two processes, with two hash seeds: a fifth of the film table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.full
def test_a_fifth_of_the_table_twice(project: Path, tmp_path: Path) -> None:
    def begin(seed: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(project / "tests" / "ask_the_table.py"), str(tmp_path / seed), "5"]
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
