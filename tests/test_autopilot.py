"""The reviewer that is fitted on decisions: what it learns, when it asks, and what it says of itself."""

from __future__ import annotations

import random

import pytest

from workbench.graphs.reviewers import FEWEST, ThresholdReviewer


def decision(evidence: int, accepted: bool, number: int = 0, **more) -> dict:
    enough = {"min_evidence": 10, "min_top_score": 0.6}
    signals = {"evidence_count": evidence, "top_score": 0.7, "unknown": [f"name {number}"], "thresholds": enough}
    proposal = {"signals": signals, "should_continue": False, "current_iteration": 1, "max_iterations": 3}
    action = "approve" if accepted else "respond"
    return {"review_id": f"{number}-reflect", "point": "reflect", "action": action, "proposal": proposal, **more}


def habit(count: int, strange: int = 0, seed: int = 3) -> list[dict]:
    """A person who accepts from ten pieces of evidence on, but for some strange days."""
    draw = random.Random(seed)
    seen = [draw.randint(0, 20) for _ in range(count)]
    return [decision(n, (n >= 10) != (i < strange), i) for i, n in enumerate(seen)]


def request(evidence: int, point: str = "reflect") -> dict:
    return {"point": point, "action_requests": [{"args": decision(evidence, True)["proposal"]}]}


def test_it_accepts_what_the_person_accepts_and_asks_about_the_rest():
    reviewer = ThresholdReviewer.fit(habit(80), trust=0.8)
    assert not reviewer.why
    assert reviewer(request(20))["decisions"] == [{"type": "approve"}] and reviewer(request(20))["who"] == "autopilot"
    assert reviewer(request(2)) is None and reviewer(request(20, "plan")) is None


def test_too_few_decisions_or_only_one_kind_are_not_trusted_and_it_says_why():
    few = ThresholdReviewer.fit(habit(FEWEST - 1))
    assert f"{FEWEST - 1} decisions" in few.why and few(request(20)) is None
    alike = ThresholdReviewer.fit([decision(20, True, i) for i in range(50)])
    assert alike.why and alike(request(20)) is None and ThresholdReviewer.fit([]).why


def test_a_coin_that_mostly_approves_is_not_trusted():
    draw = random.Random(5)
    coin = [decision(draw.randint(0, 20), draw.random() < 0.95, i) for i in range(200)]
    reviewer = ThresholdReviewer.fit(coin, trust=0.8)
    assert "no better than" in reviewer.why and reviewer(request(20)) is None


def test_a_decision_that_was_replayed_counts_once():
    once, often = ThresholdReviewer.fit(habit(80)), ThresholdReviewer.fit([d for d in habit(80) for _ in range(25)])
    assert often.limits == once.limits
    assert ThresholdReviewer.fit([row for row in habit(20) for _ in range(25)]).why


def test_answers_of_rules_and_at_other_points_do_not_count():
    rows = [*habit(FEWEST - 1), decision(20, True, 99, who="rules"), {**decision(20, True, 98), "point": "plan"}]
    assert f"{FEWEST - 1} decisions" in ThresholdReviewer.fit(rows).why


def test_trust_is_a_probability():
    with pytest.raises(ValueError, match=r"0\.5 to 1"):
        ThresholdReviewer.fit([], trust=1.5)


def test_it_answers_in_a_run_and_its_answer_is_kept_as_its_own(wb):
    sure = ThresholdReviewer.fit(habit(80), trust=0.5)
    run = wb.ask("推荐几部类似《喜宴》的电影", kb="film", review={"reflect"}, reviewer=sure)
    assert run.status == "done" and [d["who"] for d in run.decisions] == ["autopilot"]
