"""The command that chooses in what order a search gives its probabilities out: from end to end, and its arithmetic."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def searching(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "experiments"))
    yield importlib.import_module("searching")
    for name in ("searching", "merging", "calibrate", "thresholds"):
        sys.modules.pop(name, None)


def test_a_small_set_is_searched_from_end_to_end(searching, small_set, workspace, capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["searching", str(workspace), str(small_set)])
    searching.main()
    said = capsys.readouterr()
    assert "cmrc          2  100.0 /100.0 /100.0" in said.out and "skipped: drcd" in said.err
    assert f"hybrid_search: {dict(searching.ORDER)}" in said.out, "nothing is left to gain, so nothing moves"


def questions(searching, right: str):
    """Of two passages one is covered well and the other reranked well: which one is right."""
    seen = np.zeros((2, len(searching.NAMES)))
    weights = np.array([searching.ORDER[name] for name in searching.NAMES])
    for row, name in enumerate(("covered", "reranked")):
        place = searching.NAMES.index(name)
        seen[row, place] = (1.0 if row else 0.9) / weights[place]
    return [searching.Question(seen, ["covered", "reranked"], frozenset([right]), ["reranked"])] * 9


def test_a_weight_moves_for_what_it_gains_and_the_set_left_out_chooses_nothing(searching) -> None:
    now = np.array([searching.ORDER[name] for name in searching.NAMES])
    wanting = {name: questions(searching, "covered") for name in ("one", "other")}
    found = searching.chosen_weights(wanting, now)
    ratio = (found / now)[[searching.NAMES.index(name) for name in ("covered", "reranked")]]
    assert ratio[0] > ratio[1] and searching.ranked(wanting["one"][0], found)[0] == "covered"
    lines = searching.report({"one": wanting["one"], "third": questions(searching, "reranked")}).splitlines()
    assert lines[1].count("100.0 /100.0 /100.0") < 2, "what would rank it right was chosen without it"
    assert "reranked" in lines[-1] and lines[2].startswith("third")


def test_what_gains_too_little_moves_nothing(searching) -> None:
    now = np.array([searching.ORDER[name] for name in searching.NAMES])
    settled = {"one": questions(searching, "reranked")}
    assert (searching.chosen_weights(settled, now) == now).all()
