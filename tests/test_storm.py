"""A slice of the storm: kills -9 over the film run, adding documents and keeping order, and nothing is lost by any."""

from __future__ import annotations

import pytest

from tests.storm import ledger
from tests.storm.scenarios import ADDINGS, KEEPINGS, QUESTIONS
from tests.storm.storm import Storm


@pytest.mark.slow
def test_nothing_is_lost_doubled_repeated_or_answered_otherwise(film_index, tmp_path):
    only = tuple(scenario.name for scenario in (*QUESTIONS, *ADDINGS))
    with Storm(tmp_path, seed=20, only=only, knowledge=film_index / "knowledge") as storm:
        outcomes = list(storm.trials(kills=30, workers=2))
    kills = [kill for outcome in outcomes for kill in outcome.kills]
    assert [f"{outcome.scenario}, {outcome.moments}: {fault}" for outcome in outcomes for fault in outcome.faults] == []
    assert len(kills) >= 30 and {kind for kind, _, _ in kills} == {"write", "event", "time"}
    assert len({place for _, _, place in kills}) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("only", sorted({scenario.name.partition(",")[0] for scenario in KEEPINGS}))
def test_a_killed_repair_gc_or_removal_loses_nothing_and_the_next_ones_leave_nothing_of_it(tmp_path, only):
    with Storm(tmp_path, seed=5, only=only) as storm:
        outcomes = list(storm.trials(kills=8, workers=2))
    assert [f"{outcome.scenario}, {outcome.moments}: {fault}" for outcome in outcomes for fault in outcome.faults] == []


def test_the_harness_sees_what_is_lost_and_what_was_changed():
    before = {
        ("records", "r1", "s0", "1"): ["a"],
        ("messages", "m1"): ["user", "now", "[]", "Who?", 0],
        ("messages", "m2"): ["assistant", "now", "[]", "Christ", 1],
        ("runs", "r1"): ["Who?", "{}", "now", None],
    }
    well = {
        **before,
        ("messages", "m2"): ["assistant", "now", "[]", "Christopher", 0],
        ("runs", "r1"): ["Who?", "{}", "now", "{}"],
    }
    assert ledger.lost(before, well) == []
    assert ledger.lost(before, {**well, ("records", "r1", "s0", "1"): ["b"]}) == ["records r1 s0 1 was changed"]
    assert ledger.lost(before, {key: row for key, row in well.items() if key[0] != "messages"}) == [
        "messages m1 is gone",
        "messages m2 is gone",
    ]
    assert ledger.counts(well) - ledger.counts(before) == {"assistant: Christopher": 1}
    assert ledger.finished_steps(before) == {("s0", 1)}
