"""The command that measures the fusion graph: from end to end, and its arithmetic."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture
def fusing(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "experiments"))
    yield importlib.import_module("fusing")
    for name in ("fusing", "second_pass", "searching", "merging", "calibrate", "thresholds"):
        sys.modules.pop(name, None)


def test_a_small_set_is_fused_from_end_to_end(fusing, small_set, workspace, capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["fusing", str(workspace), str(small_set)])
    fusing.main()
    said = capsys.readouterr()
    assert "R@5, reread" in said.out and "skipped: drcd" in said.err
    assert "cmrc             2 100.0" in said.out and "one source was enough" in said.out


def asked(fusing, *qualities: float):
    """A question whose passes find more and more, of these qualities."""
    found = [["a"], ["b"], ["a", "b"]][: len(qualities)]
    passes = [(documents, q, 1 + n) for n, (documents, q) in enumerate(zip(found, qualities, strict=True))]
    return fusing.Asked("q", frozenset("ab"), "plain", {}, {}, passes)


def test_the_best_pass_up_to_the_threshold_stands(fusing) -> None:
    assert fusing.standing(asked(fusing, 0.5, 0.4, 0.9), 0.7) == (2, 2)
    assert fusing.standing(asked(fusing, 0.8, 0.9, 0.9), 0.7) == (0, 0)
    assert fusing.standing(asked(fusing, 0.6, 0.5, 0.4), 0.7) == (0, 2), "at the limit the best one"
    line = list(fusing.retries({fusing.REPORTED: [asked(fusing, 0.5, 0.4, 0.9)] * 3}))[1 + fusing.THRESHOLDS.index(0.7)]
    assert "50.0  100.0 +50.0" in line and line.split()[-1] == "6.00", "what it costs is told"
