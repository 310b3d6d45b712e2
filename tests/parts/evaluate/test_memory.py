"""The instrument that says how well earlier turns are recalled; both languages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.test_ranking import ASKED, numbered
from workbench.cli import main
from workbench.parts.evaluate.memory import eval_memory
from workbench.settings import Settings

HASHING = Settings.load(embedding_model="hashing")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    asked = [{"id": f"q{n}", "conv": c, "question": q, "gold": g, "type": t} for n, (c, q, g, t) in enumerate(ASKED)]
    for name, rows in (("turns", numbered()), ("questions", asked)):
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "turns.jsonl", tmp_path / "questions.jsonl"


def test_the_instrument_counts_turns_and_sessions_by_type(files):
    table = eval_memory(HASHING, *files, cuts=(1, 5))
    turns, sessions = table["turn"]["methods"], table["session"]["methods"]
    assert set(turns) == {"window", "bm25", "vectors", "fused", "ours"}
    assert table["clustered"] == "conversation" and table["questions"] == 4
    # the window has the last six turns: all of both conversations, the newest first
    assert turns["window"]["R@5"] == 75.0 and turns["window"]["by"]["type"]["zh"]["R@5"] == 100.0
    assert sessions["ours"]["R@1"] >= turns["ours"]["R@1"] >= 50.0
    assert "by turn" in str(table) and "ours by type" in str(table)


def test_the_terminal_prints_it(files, monkeypatch):
    monkeypatch.setenv("WORKBENCH_EMBEDDING_MODEL", "hashing")
    given = ["eval", "memory", "--conversations", str(files[0]), "--questions", str(files[1]), "--k", "1,5"]
    done = CliRunner().invoke(main, [*given, "--json"])
    assert done.exit_code == 0 and json.loads(done.stdout)["turn"]["methods"]["ours"]
    assert "fused" in CliRunner().invoke(main, given).output
