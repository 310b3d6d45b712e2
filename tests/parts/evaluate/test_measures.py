"""Figures over questions: the measures of rankings, their intervals, and the table that is printed."""

from __future__ import annotations

import sys

import pytest

from workbench.errors import MissingExtra
from workbench.parts.evaluate.measures import means, score_rankings


def test_without_the_library_the_error_ends_with_the_install_line(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(MissingExtra, match=r"pip install 'workbench\[eval\]'$"):
        score_rankings({"q": ["a"]}, {"q": ["a"]}, [1])


def test_measures_by_hand() -> None:
    gold = {"1": ["a"], "2": ["b", "c"], "3": ["d"]}
    found = score_rankings(gold, {"1": ["x", "a"], "2": [*"vwxyzc", "b"], "3": []}, [1, 5])
    assert found["MRR"] == {"1": 0.5, "2": pytest.approx(1 / 6), "3": 0.0}
    assert found["R@1"] == {"1": 0.0, "2": 0.0, "3": 0.0} and found["R@5"] == {"1": 1.0, "2": 0.0, "3": 0.0}
    assert found["all@5"] == {"1": 1.0, "2": 0.0, "3": 0.0}
    assert means(found, ["1", "3"])["R@5"] == 50.0
    many = [f"d{n:02}" for n in range(60)]  # as ordered, not as named
    assert score_rankings({"q": ["d00"]}, {"q": many[::-1]}, [59])["R@59"]["q"] == 0.0
