"""The command that fits what the merge believes: a small set from end to end, and its arithmetic."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def merging(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "experiments"))
    yield importlib.import_module("merging")
    for name in ("merging", "calibrate", "thresholds"):
        sys.modules.pop(name, None)


def test_a_small_set_is_fitted_from_end_to_end(merging, wb, workspace, tmp_path, capsys, monkeypatch) -> None:
    texts = {
        "a": ("Ada Quill", "Ada Quill is a painter of Northby."),
        "b": ("Northby", "Northby is a town on the river Wend."),
        "c": ("Wend", "The Wend is a river with three bridges."),
    }
    corpus = tmp_path / "hotpot.jsonl"
    lines = [json.dumps({"id": i, "title": title, "text": text}) for i, (title, text) in texts.items()]
    corpus.write_text("\n".join(lines) + "\n", encoding="utf-8")
    wb.add_knowledge("hotpot", [corpus])
    wb.close()
    asked = [
        {"id": f"q{n}", "question": "On which river is the town of Ada Quill?", "gold": ["a", "b"]} for n in range(3)
    ]
    (tmp_path / "hotpot").mkdir()
    (tmp_path / "hotpot" / "questions.jsonl").write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["merging", str(workspace), str(tmp_path)])
    merging.main()
    said = capsys.readouterr()
    assert "merge: Logistic(" in said.out and "hotpot        3" in said.out and "skipped: cmrc" in said.err


def test_the_set_that_is_left_out_chooses_nothing(merging) -> None:
    def questions(right: str):
        """What a chain is sure of and what a search is sure of, of which one is right."""
        seen = np.zeros((2, len(merging.NAMES)))
        seen[0, merging.NAMES.index("chain_led")], seen[1, merging.NAMES.index("search")] = 1.0, 1.1
        documents, gold, alone = ["chained", "searched"], frozenset([right]), {tool: [] for tool in merging.ALONE}
        return [merging.Question(f"q{n}", seen, documents, gold, alone) for n in range(9)]

    said = merging.report({"one": questions("chained"), "other": questions("searched"), "third": questions("searched")})
    one, other = said.splitlines()[1:3]
    assert "100.0 /100.0 /100.0" not in one and other.count("100.0 /100.0 /100.0") == 3
    assert "merge: Logistic(" in said and "ECE of" in said


def test_worth_counts_documents(merging) -> None:
    assert merging.worth(["a", "x", "b"], frozenset("ab")) == (0.5, 1.0, 1.0)
    assert merging.worth(["x", *"uvwyz", "b"], frozenset("b")) == (0.0, 0.0, 0.0)
