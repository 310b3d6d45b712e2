"""The inbox: everything that waits, answered where it stands or by an Agent Inbox; it sees what others did."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import until
from workbench.errors import InvalidAnswer
from workbench.graphs.reviewers import to_agent_inbox
from workbench.runs.run import Run, asked_words
from workbench.session import Workbench
from workbench.views.plan import step_titles

QUESTION = "Compare The Wedding Banquet and Eat Drink Man Woman"
UNKNOWN = "Who directed Zorblax the Unseen?"
CHINESE = "喜宴哪一年上映？"


@pytest.fixture
def wb(shared_wb: Workbench) -> Iterator[Workbench]:
    """Lend the workspace of this file; nothing waits in it afterwards."""
    yield shared_wb
    for status in ("paused", "running"):
        for run in shared_wb.runs.list(100, status=status):
            run.cancel()


@pytest.fixture
def three(wb: Workbench) -> list[Run]:
    """Runs that wait at each review point, oldest first."""
    asked = (("plan", CHINESE), ("step", QUESTION), ("reflect", UNKNOWN))
    return [wb.ask(message, kb="film", review=[point]) for point, message in asked]


def test_everything_that_waits_newest_first(wb: Workbench, three: list[Run]) -> None:
    wb.ask(QUESTION, kb="film")
    box = wb.inbox(lang="en")
    assert [run.run_id for run in box.waiting] == [run.run_id for run in reversed(three)]
    newest, step, plan = box.list.picture.rows.values()
    assert "Zorblax" in newest and "reflect · " in newest and "Approve: run 1 step" in newest
    assert "step · The Wedding Banquet, Eat Drink Man Woman" in step
    titles = step_titles(three[0].plan, asked=asked_words(three[0]))  # type: ignore[arg-type]
    assert all(title in plan for title in titles.values()) and "plan · " in plan
    assert CHINESE in plan and three[0].run_id in plan
    assert "3 runs" in box.list.html
    assert box.list.html.count('role="row"') == 3 and box.list.html.count('data-do="approve"') == 1
    for run in three[:2]:
        box.list.press("open", run.run_id)
        assert [bench.run_id for bench in box.below.children] == [run.run_id]


def test_a_run_is_answered_right_there_and_not_when_it_was_answered_elsewhere(wb: Workbench, three: list[Run]) -> None:
    box = wb.inbox(lang="en")
    box.list.press("choose", box.waiting[1].run_id)
    box.list.press("approve:from the inbox", box.waiting[1].run_id)
    assert [run.run_id for run in box.waiting] == [three[2].run_id, three[0].run_id]
    assert "data-do" not in box.list.html  # a second click answers nothing else
    until(lambda: three[1].decisions)
    assert (three[1].decisions[0]["action"], three[1].decisions[0]["note"]) == ("approve", "from the inbox")
    box = wb.inbox(lang="en")
    three[2].reject("from a script")
    box.list.press("approve", three[2].run_id)  # what is shown was answered meanwhile: it is not answered again
    assert [d["action"] for d in three[2].decisions] == ["reject"]
    assert three[2].run_id not in "".join(box.list.picture.rows.values())


def test_an_answer_to_another_question_of_the_run_is_never_given(wb: Workbench) -> None:
    run = wb.ask(QUESTION, kb="film", review=["plan", "reflect"])
    box = wb.inbox(lang="en")
    run.approve()
    assert run.review["point"] == "reflect"  # type: ignore[index]
    box.list.press("reject", run.run_id)
    assert run.status == "paused" and [d["action"] for d in run.decisions] == ["approve"]
    assert [run.point for run in box.waiting] == ["reflect"]


def test_a_closed_workspace_is_told_and_ends_the_looking(workspace: Path) -> None:
    with Workbench.open(workspace) as wb:
        run = wb.ask(UNKNOWN, kb="film", review=["plan"])
        box = wb.inbox(lang="en")
        box._view_count = 1
    box.tick()
    assert not box._ticks and "is closed" in box.list.html
    box.list.press("approve", run.run_id)
    box.refresh()
    assert "is closed" in box.list.html


def edited_in_an_inbox(run: Run, **edits: Any) -> list[dict[str, Any]]:
    """What its editor sends: every argument as a string, with the edits in their place."""
    asked = to_agent_inbox(run.review)
    assert asked is not None
    action = asked["action_request"]
    given = {**action["args"], **edits}
    args = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
    return [{"type": "edit", "args": {"action": action["action"], "args": args}}]


@pytest.mark.parametrize("point", ["plan", "step", "reflect"])
def test_an_inbox_reads_what_is_asked_and_each_response_is_an_answer(shared_wb: Workbench, point: str) -> None:
    run = shared_wb.ask(QUESTION, kb="film", review=[point])
    asked = to_agent_inbox(run.review)
    assert asked is not None and set(asked) == {"action_request", "config", "description"}
    assert asked["action_request"]["action"] == point and list(asked["config"].values()) == [True] * 4
    assert asked["action_request"]["args"]["thresholds"]["min_top_score"] == 0.5
    given = {"plan": ("ignore", None), "step": ("accept", None), "reflect": ("response", "only the fathers")}
    (kind, args), action = given[point], {"plan": "reject", "step": "approve", "reflect": "respond"}[point]
    run.answer_review(json.loads(json.dumps([{"type": kind, "args": args}])))
    assert (run.decisions[0]["action"], run.decisions[0]["message"]) == (action, args or "")


def test_an_edit_holds_only_what_changed(shared_wb: Workbench) -> None:
    run = shared_wb.ask(QUESTION, kb="film", review=["plan", "reflect"])
    plan = dict(run.review["action_requests"][0]["args"]["plan"])  # type: ignore[index]
    plan["steps"] = plan["steps"][:1]
    run.answer_review(edited_in_an_inbox(run, plan=plan))
    assert run.decisions[0]["action"] == "edit" and list(run.decisions[0]["edits"]) == ["plan"]
    assert [step.step_id for step in run.plan.steps] == ["step_0_wedding_banquet"]  # type: ignore[union-attr]
    run.answer_review(edited_in_an_inbox(run, thresholds={"min_evidence": "7", "min_top_score": 0.5}))
    assert run.decisions[1]["edits"] == {"thresholds": {"min_evidence": 7}}
    assert run.status == "paused"  # thresholds alone: it is judged again
    run.answer_review(edited_in_an_inbox(run))
    assert run.decisions[2]["action"] == "approve", "an edit that changes nothing"


WRONG = [
    ([{"type": "agree", "args": None}], "accept, edit, response, ignore"),
    ([{"type": "response", "args": "  "}], "needs a message"),
    ([{"type": "edit", "args": {"action": "merge", "args": {"thresholds": "{}"}}}], "merge"),
    ([{"type": "accept", "args": None, "why": "x"}], "why"),
    ({"thresholds": "{min_evidence: 3}"}, "thresholds .*JSON"),
    ({"thresholds": {"min_evidence": "many"}}, r"thresholds.min_evidence: .*integer"),
    ({"moods": "x"}, "moods"),
]


@pytest.mark.parametrize("point", ["plan", "step", "reflect"])
def test_a_response_that_does_not_fit_is_explained_and_the_run_waits(shared_wb: Workbench, point: str) -> None:
    run = shared_wb.ask(QUESTION, kb="film", review=[point])
    for given, told in WRONG:
        with pytest.raises(InvalidAnswer, match=told):
            run.answer_review(edited_in_an_inbox(run, **given) if isinstance(given, dict) else given)
        assert run.status == "paused" and not run.decisions
