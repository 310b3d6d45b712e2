"""Every checkpoint of a run, inside its graphs too: what ran, what changed, and a fork from there."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from workbench.errors import RunError
from workbench.runs.past import Checkpoint
from workbench.session import Workbench
from workbench.views.labels import Labels
from workbench.views.past import past_blocks
from workbench.views.terminal import plain

CHINESE = "对比《喜宴》和《饮食男女》的风格"


@pytest.fixture(scope="module")
def wb(shared_wb: Workbench) -> Workbench:
    return shared_wb


def added(one: Checkpoint, key: str) -> list[str]:
    return [name for change in one.changes or () if change["key"] == key for name in change.get("added", [])]


def test_what_ran_and_what_changed(wb: Workbench) -> None:
    run = wb.ask(CHINESE, kb="film", review=["plan", "reflect"])
    seen = run.checkpoints()
    assert seen[-1].asks == "0-plan" and seen[-1].graph == "retrieval" and seen[-1].next == ("review_plan",)
    run.approve()
    run.approve()
    found = run.checkpoints()
    assert [one.id for one in found] == sorted(one.id for one in found) and found[: len(seen)] == seen
    assert {one.graph for one in found} == {"conversation", "route", "retrieval"}
    child = [one for one in found if one.graph == "retrieval"]
    assert [one.step for one in child] == list(range(-1, len(child) - 1))
    for before, after in pairwise(child):
        assert sorted(before.next) == sorted(after.ran or ["__start__"])
    assert [one.asks for one in found if one.asks] == ["0-plan", "1-reflect"]
    steps = [step.step_id for step in run.plans[0]["plan"].steps]
    (planned,) = [one for one in child if "planner" in one.ran]
    assert added(planned, "plan") == steps
    ran = [name for one in child for name in added(one, "records")]
    assert sorted(ran) == sorted(f"{step}/1" for step in steps)
    assert [added(one, "decisions") for one in child if added(one, "decisions")] == [["0-plan"], ["1-reflect"]]
    assert [added(one, "reflections") for one in child if added(one, "reflections")] == [["1"]]
    (merger,) = [one for one in child if "merger" in one.ran]
    assert "retrieval_results" in next(c["after"] for c in merger.changes if c["key"] == "merged")
    assert "The Wedding Banquet" in merger.values["merged"]
    assert found.find(merger.id) == merger
    assert json.loads(json.dumps(merger.to_dict()))["ran"] == ["merger"]
    text = plain(past_blocks(run.to_dict(), [one.to_dict() for one in found], Labels("en")), 140)
    assert all(one.id[:18] in text for one in found) and "approve" in text


def test_a_fork_at_a_checkpoint_asks_anew_what_came_after_it(wb: Workbench) -> None:
    run = wb.ask(CHINESE, kb="film", review=["plan", "reflect"]).approve()
    run.approve()
    by_decided: dict[int, list[Checkpoint]] = {}
    for one in run.checkpoints():
        if one.graph == "retrieval":
            by_decided.setdefault(one.decided, []).append(one)
    assert sorted(by_decided) == [0, 1, 2]
    for one in (by_decided[0][-1], by_decided[1][0]):
        fork = run.fork(at=one.id)
        assert fork.status == "paused"
        assert fork.review["review_id"] == run.decisions[one.decided]["review_id"]
        assert [d["review_id"] for d in fork.decisions] == [d["review_id"] for d in run.decisions[: one.decided]]
        fork.cancel()
    stopped = run.fork(at=by_decided[1][-1].id, decision={"action": "reject"})
    assert [d["action"] for d in stopped.decisions] == ["approve", "reject"]
    whole = run.fork(at=by_decided[2][-1].id)
    assert (whole.status, whole.answer) == ("done", run.answer)
    with pytest.raises(RunError, match="Nothing was decided at '2'"):
        run.fork(at=by_decided[2][-1].id, decision={"action": "reject"})
    with pytest.raises(RunError, match="No checkpoint"):
        run.fork(at="1f1e61e9-97d6-6783-8006-e12ef8231a3a")
    with pytest.raises(RunError, match=r"No review point '7-plan'.*0-plan, 1-reflect"):
        run.fork(at="7-plan")


def test_a_fork_at_the_checkpoint_where_a_run_waits(wb: Workbench) -> None:
    run = wb.ask(CHINESE, kb="film", review=["reflect"])
    last = run.checkpoints()[-1]
    assert last.asks == "0-reflect"
    fork = run.fork(at=last.id, decision={"action": "reject"})
    assert (fork.status, [d["action"] for d in fork.decisions]) == ("done", ["reject"])
    assert run.status == "paused"


def test_a_run_that_asked_nobody(wb: Workbench) -> None:
    run = wb.ask(CHINESE, kb="film")
    one = next(one for one in run.checkpoints() if "reflector" in one.ran)
    with pytest.raises(RunError, match="has no review point"):
        run.fork(at=one.id)
    assert run.fork(at=one.id, review=["reflect"]).review["point"] == "reflect"


def test_the_past_of_a_run_that_has_ended_is_folded_and_can_be_forked_from_after_gc(wb: Workbench) -> None:
    run = wb.ask(CHINESE, kb="film", review=["reflect"])
    run.approve()
    wb._work.loop.settle(10)
    assert not wb._work.loop.call(wb._work.durable.past(run.run_id)), "LangGraph's own are gone"
    found = run.checkpoints()
    wb.gc(yes=True)
    assert [one.to_dict() for one in run.checkpoints()] == [one.to_dict() for one in found]
    assert found[-1].values["answer"] == run.answer and found.find(found[-1].id).values == found[-1].values
    pause = next(one for one in found if one.asks == "0-reflect")
    assert run.fork(at=pause.id).review["review_id"] == "0-reflect" == run.fork(at="0-reflect").review["review_id"]


def test_what_is_left_of_a_cancelled_run_says_so(wb: Workbench) -> None:
    run = wb.ask(CHINESE, kb="film", review=["reflect"]).cancel()
    wb.gc(yes=True)
    left = run.checkpoints()
    assert left and all(one.changes is None for one in left if one.graph == "retrieval")
    rows = [one.to_dict() for one in left]
    assert "cleaned up" in plain(past_blocks(run.to_dict(), rows, Labels("en")), 140)


def test_incognito_runs_have_a_past_too(wb: Workbench) -> None:
    run = wb.ask(CHINESE, kb="film", incognito=True)
    assert {one.graph for one in run.checkpoints()} == {"conversation", "route", "retrieval"}
