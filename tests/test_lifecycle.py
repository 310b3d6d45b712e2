"""The lifecycle card: what its conversations hold, who is right, and that a reader without memory is not."""

from __future__ import annotations

import json

from click.testing import CliRunner

from workbench.cli import main
from workbench.evaluating.lifecycle import (
    AIMS,
    LANGUAGES,
    Mark,
    _holds,
    _part,
    _planted,
    card,
    card_text,
    conversations,
    lifecycle,
)
from workbench.maintenance.forgetting import forget
from workbench.session import Workbench


def test_every_kind_is_said_in_a_dozen_ways_and_more_are_reserved():
    for language in LANGUAGES:
        for kind in ("ask", "fact", "update", "contradiction", "abstention", "freshness"):
            assert len(_part(language, kind, "open")) >= 12 and len(_part(language, kind, "reserved")) >= 4


def test_a_conversation_is_drawn_once_and_for_all_and_its_truth_stands_in_it():
    for one in conversations():
        assert _planted(one.language, one.split, int(one.name.rpartition("-")[2]), 100) == one
        assert one.turns[0] == ("retention", 0) and len(one.turns) == 100
        for kind, item in one.items.items():
            planted = [turn[1] for turn in one.turns if turn[0] == kind]
            assert planted == ([] if kind == "incognito" else [*range(len(item.said))]), (one.name, kind)
            assert kind == "abstention" or all(map(_holds, item.said, item.marks)), (one.name, kind, item)
            assert kind != "abstention" or item.about not in " ".join(t[0] for t in one.turns if t[0] != kind)
            assert not item.about or item.about in one.asks[kind]


def test_the_card_counts_each_kind_language_and_split_with_its_interval():
    marks = [
        Mark("update", "en", split, {"ours": n > 1, "window": False, "summary": True}, "What?", "That.")
        for split in ("open", "reserved")
        for n in range(4)
    ]
    summed = {"kept": 9, "planted": 10, "foreign": 1, "sentences": 20}
    made = card(marks, summed, 8, 30)
    row = made["kinds"]["update"]
    assert (row["n"], row["right"], row["share"], row["window"], row["summary"]) == (8, 4, 50.0, 0.0, 100.0)
    assert row["low"] < 50 < row["high"] and row["by"]["reserved"]["n"] == 4 and "zh" not in row["by"]
    assert made["summaries"]["faithfulness"]["share"] == 95.0 and made["summaries"]["recall"]["share"] == 90.0
    assert len(made["wrong"]) == 2, "what is reserved is not shown"
    assert "update" in card_text(made) and "50.0" in card_text(made)


def test_what_is_remembered_is_right_where_the_window_is_not(tmp_path):
    with Workbench.open(tmp_path, memory_core=True, embedding_model="hashing") as wb:
        made = lifecycle(wb, forget, turns=30, splits=["reserved"])
    kinds = made["kinds"]
    assert set(kinds) == set(AIMS) and kinds["scope"]["n"] == 3 * kinds["forgetting"]["n"]
    assert kinds["forgetting"]["share"] == kinds["scope"]["share"] == 100
    assert kinds["retention"]["share"] > kinds["retention"]["window"] == 0
    assert made["summaries"]["faithfulness"]["share"] >= 90


def test_the_command_needs_files_or_makes_the_card_itself(monkeypatch):
    refused = CliRunner().invoke(main, ["eval", "memory"])
    assert refused.exit_code and "--card" in refused.output
    asked = {}

    def small(wb, forget, told):
        asked["core"] = wb.settings.memory_core
        return card([], dict.fromkeys(("kept", "planted", "foreign", "sentences"), 0), 0, 0)

    monkeypatch.setattr("workbench.evaluating.lifecycle.lifecycle", small)
    done = CliRunner().invoke(main, ["eval", "memory", "--card", "--json"])
    assert done.exit_code == 0 and json.loads(done.stdout)["kinds"] == {} and asked["core"]
