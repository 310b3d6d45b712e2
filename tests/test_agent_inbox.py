"""An Agent Inbox can show what a run asks, and answer: each of its responses decides as the same answer of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.errors import InvalidAnswer
from workbench.graphs.agent_inbox import to_agent_inbox
from workbench.runs.run import Run
from workbench.session import Workbench

QUESTION = "Compare The Wedding Banquet and Eat Drink Man Woman"


def edited_in_an_inbox(run: Run, **edits: Any) -> list[dict[str, Any]]:
    """What its editor sends: every argument as a string, with the edits in their place."""
    asked = to_agent_inbox(run.review)
    assert asked is not None
    action = asked["action_request"]
    args = {name: _as_written(value) for name, value in {**action["args"], **edits}.items()}
    return [{"type": "edit", "args": {"action": action["action"], "args": args}}]


def _as_written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.fixture(scope="module")
def wb(shared_wb: Workbench) -> Workbench:
    return shared_wb


@pytest.fixture(scope="module")
def waiting(wb: Workbench, request: pytest.FixtureRequest) -> Run:
    """Return a run that is looked at, and given no answer that it takes."""
    return wb.ask(QUESTION, kb="film", review=[request.param])


@pytest.fixture
def paused(wb: Workbench, request: pytest.FixtureRequest) -> Run:
    return wb.ask(QUESTION, kb="film", review=[request.param])


at = pytest.mark.parametrize("paused", ["plan", "step", "reflect"], indirect=True)
waiting_at = pytest.mark.parametrize("waiting", ["plan", "step", "reflect"], indirect=True, scope="module")


@waiting_at
def test_an_inbox_reads_what_is_asked(waiting: Run) -> None:
    asked = to_agent_inbox(waiting.review)
    assert asked is not None and waiting.review is not None
    assert set(asked) == {"action_request", "config", "description"}
    assert asked["action_request"]["action"] == waiting.review["point"]
    assert all(asked["config"].values()) and len(asked["config"]) == 4
    assert asked["action_request"]["args"]["thresholds"]["min_top_score"] == 0.5
    assert asked["description"] == waiting.review["action_requests"][0]["description"]
    json.dumps(asked)


@at
@pytest.mark.parametrize(
    ("kind", "args", "action"),
    [("accept", None, "approve"), ("ignore", None, "reject"), ("response", "only the fathers", "respond")],
)
@pytest.mark.few(4)
def test_each_response_is_an_answer(paused: Run, kind: str, args: Any, action: str) -> None:
    paused.answer_review([{"type": kind, "args": args}])
    assert paused.decisions[0]["action"] == action
    assert paused.decisions[0]["message"] == (args or "")


@at
def test_an_edit_that_changes_nothing_is_approval(paused: Run) -> None:
    paused.answer_review(edited_in_an_inbox(paused))
    assert paused.decisions[0]["action"] == "approve"


def test_an_edited_plan_comes_back_as_a_string(wb: Workbench) -> None:
    run = wb.ask(QUESTION, kb="film", review=["plan"])
    plan = dict(run.review["action_requests"][0]["args"]["plan"])  # type: ignore[index]
    plan["steps"] = plan["steps"][:1]
    run.answer_review(edited_in_an_inbox(run, plan=plan))
    assert run.decisions[0]["action"] == "edit" and list(run.decisions[0]["edits"]) == ["plan"]
    assert [step.step_id for step in run.plan.steps] == ["step_0_wedding_banquet"]  # type: ignore[union-attr]


def test_an_edit_holds_only_what_changed(wb: Workbench) -> None:
    run = wb.ask(QUESTION, kb="film", review=["reflect"])
    run.answer_review(edited_in_an_inbox(run, thresholds={"min_evidence": "7", "min_top_score": 0.5}))
    assert run.decisions[0]["edits"] == {"thresholds": {"min_evidence": 7}}
    assert run.status == "paused"  # thresholds alone: it is judged again


def test_the_middleware_s_shape_from_an_editor_of_strings(wb: Workbench) -> None:
    """The newest inbox reads the middleware's request, and sends all of it back as strings, signals too."""
    run = wb.ask(QUESTION, kb="film", review=["reflect"])
    shown = run.review["action_requests"][0]["args"]  # type: ignore[index]
    args = {name: _as_written(value) for name, value in shown.items() if value is not None}
    args["rewrite_query"] = "Ang Lee fathers"
    action = {"name": "reflect", "args": {**args, "should_continue": "true"}}
    run.answer_review({"decisions": [{"type": "edit", "edited_action": action}]})
    edits = run.decisions[0]["edits"]
    assert edits["rewrite_query"] == "Ang Lee fathers" and edits["should_continue"] is True
    assert not set(edits) & {"signals", "reasoning", "current_iteration"}
    assert len(run.records) > 3


@waiting_at
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([{"type": "agree", "args": None}], "accept, edit, response, ignore"),
        ([{"type": "response", "args": None}], "text"),
        ([{"type": "response", "args": "  "}], "needs a message"),
        ([{"type": "edit", "args": None}], "action"),
        ([{"type": "edit", "args": {"action": "merge", "args": {"thresholds": "{}"}}}], "merge"),
        ([{"type": "accept", "args": None, "why": "x"}], "why"),
        ([{"type": "accept"}, {"type": "accept"}], "an answer is"),
    ],
)
def test_a_response_that_does_not_fit_is_explained_and_the_run_waits(waiting: Run, given: Any, told: str) -> None:
    with pytest.raises(InvalidAnswer, match=told):
        waiting.answer_review(given)
    assert waiting.status == "paused" and not waiting.decisions


@waiting_at
@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ({"thresholds": "{min_evidence: 3}"}, "thresholds .*JSON"),
        ({"thresholds": {"min_evidence": "many"}}, r"thresholds.min_evidence: .*integer"),
        ({"thresholds": {"min_top_score": "7"}}, "less than or equal to 1"),
        ({"moods": "x"}, "moods"),
    ],
)
def test_an_edit_that_does_not_fit_is_explained_and_the_run_stays_paused(waiting, edits, told):
    with pytest.raises(InvalidAnswer, match=told):
        waiting.answer_review(edited_in_an_inbox(waiting, **edits))
    assert waiting.status == "paused" and not waiting.decisions
