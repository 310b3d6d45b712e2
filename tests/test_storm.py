"""A slice of the storm: kills -9 over the film run, adding documents and keeping order, and nothing is lost by any."""

from __future__ import annotations

import pytest

from tests.storm import ledger
from tests.storm.scenarios import ADDINGS, KEEPINGS, QUESTIONS, TALKS, Talk
from tests.storm.storm import Storm
from tests.storm.trial import talked
from workbench.parts.memory.summarizing import summarize


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


def test_the_harness_sees_what_is_wrong_with_a_conversation():
    short = Talk("short", 9)
    rows = [
        (role, text, 0, f"{n} {role}")
        for n in range(1, 10)
        for role, text in (("user", short.message(n)), ("assistant", "So."))
    ]
    summary = summarize([{"role": row[0], "content": row[1]} for row in rows[:12]])
    notes = [(f"I like shelf {n}",) for n in range(1, 10) if n % 3]
    episodes = [(f"{n} user", f"{n} assistant") for n in range(1, 10)]
    well = {"messages": rows, "episodes": episodes, "memories": notes, "bare": 0, "summaries": [(summary, 12, "rules")]}
    assert talked(short, well) == []
    for part, value, fault in (
        ("messages", rows[:4] + rows[2:], "20 messages"),
        ("messages", [(*rows[0][:2], 1, rows[0][3]), *rows[1:]], "partial"),
        ("episodes", episodes[1:], "8 episodes"),
        ("memories", [*notes, notes[0]], "7 notes"),
        ("bare", 2, "2 episodes have no vector"),
        ("summaries", [(summary, 4, "rules")], "covers 4 of 18"),
        ("summaries", [("The person: I am a baker", 12, "rules")], "a baker"),
    ):
        assert fault in talked(short, {**well, part: value})[0]


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
