"""What a run would have been: reflect points played both ways."""

from __future__ import annotations

import pytest

from workbench.runs.recording import found_pieces

COMPARE = {"zh": "比较《喜宴》和《饮食男女》", "en": "Compare The Wedding Banquet and Eat Drink Man Woman"}
UNKNOWN = "Who directed The Zorgon Chronicles?"


@pytest.mark.parametrize("message", [COMPARE["zh"], "When was The Wedding Banquet released?"])
def test_a_stop_is_played_on_and_what_ran_is_said(wb, message):
    run = wb.ask(message, kb="film")
    before = run.to_dict()
    found = wb.runs.what_if(run, gold={"mv26628"})
    [point] = found
    assert point["recorded"] == "stop" and point["stop"] == run.run_id
    more, before_it = ({p["result_id"] for p in found_pieces(r)} for r in (wb.run(point["go_on"]), run))
    assert set(point["pieces"]) == more - before_it and point["recall"] == 0.0
    assert point["calls"] == len(point["live"]) == 1 and point["seconds"] > 0
    assert run.to_dict() == before
    assert len(found.to_frame()) == 1 and point["live"][0] in found._repr_html_()


def test_where_the_rules_know_nothing_more_to_do_it_is_said(wb):
    found = wb.runs.what_if(wb.ask(COMPARE["en"], kb="film"))
    [point] = found
    assert point["go_on"] is None and not point["pieces"] and len(found.to_frame()) == 1


def test_every_pass_that_went_on_is_stopped_from_the_tape_alone(wb):
    run = wb.ask(UNKNOWN, kb="film")
    assert len(run.reflections) > 1, "the question was to need more than one pass"
    found = wb.runs.what_if(run)
    assert [p["iteration"] for p in found] == [r["current_iteration"] for r in run.reflections]
    went = [p for p in found if p["recorded"] == "go_on"]
    assert went and all(not p["live"] and p["go_on"] == run.run_id and p["calls"] > 0 for p in went)


def test_a_run_with_reviews_is_played_otherwise_at_its_own_points(wb):
    run = wb.ask(COMPARE["en"], kb="film", review={"plan", "reflect"}).approve()
    run.edit(should_continue=True)
    while run.status == "paused":
        run.approve()
    found = wb.runs.what_if(run)
    assert found[0]["recorded"] == "go_on"
    assert len(found) == sum(d["point"] == "reflect" for d in run.decisions)
    stopped = wb.run(found[0]["stop"])
    assert stopped.state["stop_reason"] == "stopped_by_reviewer" and len(stopped.reflections) == 1
