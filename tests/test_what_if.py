"""What a run would have been: reflect points played both ways, and the answer without single parts of it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from workbench.errors import RunError
from workbench.futures.replay import whole
from workbench.records.tape import canonical

COMPARE = {"zh": "比较《喜宴》和《饮食男女》", "en": "Compare The Wedding Banquet and Eat Drink Man Woman"}
UNKNOWN = "Who directed The Zorgon Chronicles?"


@pytest.mark.parametrize("message", [COMPARE["zh"], "When was The Wedding Banquet released?"])
def test_a_stop_is_played_on_and_what_ran_is_said(wb, message):
    run = wb.ask(message, kb="film")
    before = run.to_dict()
    found = run.what_if(gold={"mv26628"})
    [point] = found.points
    assert point["recorded"] == "stop" and point["stop"]["run_id"] == run.run_id
    assert point["gain"]["pieces"] == len(point["gain"]["new"]) == point["go_on"]["pieces"] - point["stop"]["pieces"]
    assert point["stop"]["recall"] == 1.0 and point["gain"]["recall"] == 0.0
    assert point["cost"]["calls"] == len(point["go_on"]["live"]) == 1 and point["cost"]["seconds"] > 0
    assert run.to_dict() == before
    assert len(found.to_frame()) == 1 and json.loads(json.dumps(found.to_dict()))["points"] == found.points
    assert point["go_on"]["live"][0] in str(found) and "<table>" in found._repr_mimebundle_()["text/html"]


def test_where_the_rules_know_nothing_more_to_do_it_is_said(wb):
    found = wb.ask(COMPARE["en"], kb="film").what_if()
    [point] = found.points
    assert point["go_on"] is None and point["gain"] is None and "have nothing more to try" in str(found)
    assert len(found.to_frame()) == 1


def test_every_pass_that_went_on_is_stopped_from_the_tape_alone(wb):
    run = wb.ask(UNKNOWN, kb="film")
    assert len(run.reflections) > 1, "the question was to need more than one pass"
    found = run.what_if()
    assert [p["iteration"] for p in found.points] == [r["current_iteration"] for r in run.reflections]
    went = [p for p in found.points if p["recorded"] == "go_on"]
    assert went and all(not p["stop"]["live"] and p["go_on"]["run_id"] == run.run_id for p in went)
    assert all(p["cost"]["calls"] > 0 for p in went)
    kept = len(wb.runs(1000))
    run.what_if(keep=False)
    assert len(wb.runs(1000)) == kept


def test_a_run_with_reviews_is_played_otherwise_at_its_own_points(wb):
    run = wb.ask(COMPARE["en"], kb="film", review={"plan", "reflect"}).approve()
    run.edit(should_continue=True)
    while run.status == "paused":
        run.approve()
    found = run.what_if()
    assert found.points[0]["recorded"] == "go_on"
    assert len(found.points) == sum(d["point"] == "reflect" for d in run.decisions)
    stopped = wb.run(found.points[0]["stop"]["run_id"])
    assert stopped.stop_reason == "stopped_by_reviewer" and len(stopped.reflections) == 1


def test_what_is_left_out_is_gone_and_no_tool_is_called(wb, calls):
    base = wb.ask(COMPARE["en"], kb="film")
    step = base.plan.steps[0].step_id
    run = base.fork(plan=base.plan.replace(step, tool="look", tool_input={"query": "the banquet"}))
    calls.clear()
    fork = run.fork(without={"steps": [step]})
    assert fork.status == "done" and not calls and all(r["replayed"] for r in fork.records if "effect" in r)
    assert "the banquet was looked up." not in {p["evidence"] for p in fork.evidence}
    assert fork.plan == run.plan
    first = run.evidence[0]["result_id"]
    assert first not in {p["result_id"] for p in run.fork(without={"evidence": [first]}).evidence}
    assert canonical(whole(run.fork(without={}))) == canonical(whole(run))
    for without, said in (
        ({"steps": ["step_9"]}, "no 'step_9'"),
        ({"evidence": ["nothing"]}, "no 'nothing'"),
        ({"stpes": []}, "Known: steps, evidence, pieces"),
        ({"steps": "step_0"}, "Give a list"),
        ({"pieces": [["a"]]}, "is not \\[step_id, result_id\\]"),
    ):
        with pytest.raises(RunError, match=said):
            run.fork(without=without)


def test_the_script_says_which_sentence_rests_on_which_step(wb, calls, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "experiments"))
    found = importlib.import_module("leave_one_out")
    run = wb.ask("When was The Wedding Banquet released?", kb="film")
    before, runs = run.to_dict(), len(wb.runs(1000))
    frame = found.leave_one_out(wb, run)
    assert len(wb.runs(1000)) == runs and run.to_dict() == before and not calls
    said = {(row.kind, row.left_out): " ".join(row.gone) for row in frame.itertuples()}
    assert "1993" in said["steps", run.plan.steps[0].step_id]
    assert "1993" in said["evidence", run.citations[0]["result_id"]]
