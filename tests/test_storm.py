"""A slice of the storm: kills -9 over the film run, adding documents and keeping order, and nothing is lost by any."""

from __future__ import annotations

import pytest

from tests.storm.scenarios import ADDINGS, KEEPINGS, QUESTIONS, TALKS
from tests.storm.storm import Storm


@pytest.mark.slow
@pytest.mark.parametrize("count", [4, pytest.param(30, marks=pytest.mark.full)])
def test_nothing_is_lost_doubled_repeated_or_answered_otherwise(film_index, tmp_path, count):
    every = tuple(scenario.name for scenario in (*QUESTIONS, *ADDINGS))
    only = every if count == 30 else (QUESTIONS[2].name, ADDINGS[1].name)
    with Storm(tmp_path, seed=20, only=only, knowledge=film_index / "knowledge") as storm:
        outcomes = list(storm.trials(kills=count, workers=2))
    kills = [kill for outcome in outcomes for kill in outcome.kills]
    assert [f"{outcome.scenario}, {outcome.moments}: {fault}" for outcome in outcomes for fault in outcome.faults] == []
    assert len(kills) >= count
    if count == 30:
        assert {kind for kind, _, _ in kills} == {"write", "event", "time"}
        assert len({place for _, _, place in kills}) >= 5


@pytest.mark.full
def test_of_200_turns_under_kills_every_message_episode_and_note_is_there_once(tmp_path):
    with Storm(tmp_path, seed=3, only=TALKS[0].name) as storm:
        outcomes = list(storm.trials(kills=8, workers=1))
    assert [f"{outcome.moments}: {fault}" for outcome in outcomes for fault in outcome.faults] == []
    assert sum(len(outcome.kills) for outcome in outcomes) >= 8


@pytest.mark.full
@pytest.mark.parametrize("only", sorted({scenario.name.partition(",")[0] for scenario in KEEPINGS}))
def test_a_killed_gc_or_removal_loses_nothing_and_the_next_ones_leave_nothing_of_it(tmp_path, only):
    with Storm(tmp_path, seed=5, only=only) as storm:
        outcomes = list(storm.trials(kills=8, workers=2))
    assert [f"{outcome.scenario}, {outcome.moments}: {fault}" for outcome in outcomes for fault in outcome.faults] == []
