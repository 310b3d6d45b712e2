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
    for name in ("fusing", "searching", "merging", "calibrate"):
        sys.modules.pop(name, None)


def test_a_small_set_is_fused_from_end_to_end(fusing, small_set, workspace, capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["fusing", str(workspace), str(small_set)])
    fusing.main()
    said = capsys.readouterr()
    assert "R@5, reread" in said.out and "skipped: drcd" in said.err
    assert "cmrc             2 100.0" in said.out and "one source was enough" in said.out
