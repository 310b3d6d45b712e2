"""The review panel: what stands in it is the answer, the button says what it does, and the run keeps what was sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import ipywidgets
import pytest

from tests.test_hostile import ALL, STEERING, read
from workbench.errors import InvalidAnswer
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.views.labels import Labels
from workbench.widgets.review import Review

QUESTION = "Compare The Wedding Banquet and Eat Drink Man Woman"
UNKNOWN = "Who directed Zorblax the Unseen?"


@pytest.fixture(scope="module")
def wb(shared_wb: Workbench) -> Workbench:
    return shared_wb


@pytest.fixture(scope="module")
def waiting(wb: Workbench) -> Run:
    return wb.ask(QUESTION, kb="film", review=["plan"])


def panel(run: Run, lang: str = "en", **more: Any) -> Review:
    review = Review(Labels(lang))
    review.show(run.to_dict(), **more)

    def give(change: Any) -> None:
        try:
            run.answer_review(dict(change.new))
        except InvalidAnswer as error:
            review.refuse(str(error))

    review.observe(give, "response")
    return review


def field(review: Review, label: str) -> Any:
    """The control under a label, found as a person does."""
    return next(
        box.children[1]
        for box in whole(review)
        if isinstance(box, ipywidgets.VBox) and box.children and f">{label}</label>" in _html(box.children[0])
    )


def whole(review: Review) -> list[Any]:
    return [*every(review.inside), *every(review.dock)]


def every(widget: Any) -> list[Any]:
    return [widget, *(inner for child in getattr(widget, "children", ()) for inner in every(child))]


def _html(widget: Any) -> str:
    return widget.value if isinstance(widget, ipywidgets.HTML) else ""


def goes_on(review: Review) -> ipywidgets.ToggleButtons:
    return next(one for one in whole(review) if isinstance(one, ipywidgets.ToggleButtons))


def text(review: Review) -> str:
    return " ".join([review.band.html, review.why.html, review.refusal.html, *map(_html, whole(review))])


@pytest.mark.parametrize(
    ("point", "says"),
    [
        ("plan", "Approve: run 3 steps"),
        ("step", "Approve: run 2 steps"),
        ("reflect", "Approve: answer with this evidence"),
    ],
)
def test_approve_says_what_will_happen_and_is_kept_with_its_note(wb: Workbench, point: str, says: str) -> None:
    run = wb.ask(QUESTION, kb="film", review=[point])
    review = panel(run)
    assert review.primary.description == says and not review.primary.disabled
    review.note.value = "looks right"
    review.primary.click()
    decision = run.decisions[0]
    assert (decision["action"], decision["note"], decision["edits"]) == ("approve", "looks right", {})


@pytest.mark.parametrize("send", [lambda review: review.send.click(), lambda review: review.submit()])
def test_respond_opens_a_field_and_sends_its_text(wb: Workbench, send: Callable[[Review], None]) -> None:
    run = wb.ask(QUESTION, kb="film", review=["plan"])
    review = panel(run)
    saying = review.message
    assert review._message_box.layout.display == "none"
    review.respond.click()
    assert review._message_box.layout.display is None and review.send.disabled
    saying.value = "only the fathers"
    send(review)  # by its button, or by control and enter
    assert run.decisions[0]["action"] == "respond" and run.decisions[0]["message"] == "only the fathers"
    assert "fathers" in run.query


def test_problems_of_the_plan_keep_it_from_running(waiting: Run) -> None:
    review, run = panel(waiting), waiting
    problems = [{"step_id": "a", "field": "top_k", "message": "top_k is 0.", "fix": "Give 1 or more."}] * 2
    review.show(run.to_dict(), plan=run.plan.dump(), problems=problems)  # type: ignore[union-attr]
    assert review.primary.disabled and review.primary.description == "2 problems to fix first"
    assert "2 problems to fix first" in review.band.html
    review.submit()
    assert not run.decisions and review.response == {}
    review.show(run.to_dict())
    assert not review.primary.disabled


def test_thresholds_begin_at_what_was_judged_by_and_are_judged_again(wb: Workbench) -> None:
    run = wb.ask(QUESTION, kb="film", review=["reflect"])
    review = panel(run)
    least = field(review, "Minimum evidence, pieces")
    judged = run.reflections[-1]["signals"]["thresholds"]["min_evidence"]
    assert least.value == str(judged) != "8" and "8 pieces are asked for" in review.why.html
    assert field(review, "Minimum top score, 0 to 1").value == "0.5"
    least.value = "60"
    assert review.primary.description == "Reflect again as edited"
    review.primary.click()
    assert run.decisions[0]["edits"] == {"thresholds": {"min_evidence": 60}}
    assert run.status == "paused"


@pytest.mark.parametrize("edit", ["none", "a step left out", "searched on"])
@pytest.mark.parametrize("question", [QUESTION, UNKNOWN])
@pytest.mark.parametrize("point", ["plan", "reflect"])
def test_what_is_announced_is_what_runs(wb: Workbench, question: str, point: str, edit: str) -> None:
    """The bar says how many steps will run; these run, whatever was edited."""
    run = wb.ask(question, kb="film", review=["plan", "reflect"])
    if point == "reflect":
        run.approve()
    review, before = Review(Labels("en"), forecast=partial(wb.runs.forecast, run)), len(run.records)
    plan = run.plan
    if edit == "a step left out" and point == "plan":
        plan = plan.without(plan.steps[0].step_id)
    review.show(run.to_dict(), plan=plan.dump() if edit == "a step left out" else None)
    if edit == "searched on" and point == "reflect":
        goes_on(review).value = True
    announced = re.search(r"(\d+) steps? will run", review.band.html)
    review.observe(lambda change: run.answer_review(dict(change.new)) if change.new else None, "response")
    review.submit()
    ran = {record["step_id"] for record in run.records[before:] if record["status"] != "skipped"}
    assert len(ran) == (int(announced[1]) if announced else 0)


def test_the_same_question_keeps_what_was_typed_and_another_begins_anew(wb: Workbench) -> None:
    run = wb.ask(QUESTION, kb="film", review=["plan", "reflect"])
    review = panel(run)
    review.note.value = "my note"
    field(review, "Minimum evidence, pieces").value = "4"
    review.show(run.to_dict())
    assert review.note.value == "my note" and field(review, "Minimum evidence, pieces").value == "4"
    review.primary.click()
    review.show(run.to_dict())
    assert run.review["point"] == "reflect" and review.note.value == ""  # type: ignore[index]
    assert review.primary.description == "Approve: answer with this evidence"
    assert field(review, "Minimum evidence, pieces").value == "4"  # what was decided is in force


def test_a_refused_answer_is_explained_and_everything_stays(wb: Workbench) -> None:
    run = wb.ask(QUESTION, kb="film", review=["plan"])
    review, plan = panel(run), run.plan
    assert plan is not None
    review.note.value = "try"
    review.show(run.to_dict(), plan=plan.replace("step_2_naive", tool="teleport").dump())
    review.primary.click()  # only the server knows the tools
    assert run.status == "paused" and not run.decisions
    assert 'role="alert"' in review.refusal.html and "teleport" in review.refusal.html
    assert review.note.value == "try" and not review.primary.disabled
    review.show(run.to_dict())
    review.primary.click()
    assert run.decisions[0]["note"] == "try" and review.refusal.html == ""


FORM = {
    "type": "object",
    "properties": {
        "to": {"type": "string"}, "copies": {"type": "integer", "minimum": 1}, "colour": {"enum": ["red", "blue"]},
        "urgent": {"type": "boolean", "default": False}, "more": {"type": "object", "additionalProperties": True},
    },
    "required": ["to"],
}  # fmt: skip


def request(point: str, args: Mapping[str, Any], form: Any = None, allowed: Any = None) -> dict[str, Any]:
    config = {"action_name": point, "args_schema": form or {"type": "object", "properties": {}}}
    if allowed:
        config["allowed_decisions"] = allowed
    action = {"name": point, "args": dict(args), "description": f"Do {point}?"}
    return {"action_requests": [action], "review_configs": [config], "review_id": f"0-{point}", "run_id": "r"}


def document(asked: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"records": [], "reflections": [], "decisions": [], "plan": None, "route_decision": None}
    return {"run_id": "r", "status": "paused", "review": asked, **empty, **more}


def test_an_unknown_point_gets_a_whole_form() -> None:
    values = {"to": "a@b", "copies": 1, "urgent": False, "colour": "red", "more": {"x": [1]}}
    review = Review(Labels("en"))
    review.show(document(request("send_mail", values, FORM, ["approve", "reject"])))
    assert [name for name in ("stop", "respond", "form") if getattr(review, name).layout.display is None] == ["stop"]
    review.show(document(request("send_mail", values, FORM)))
    assert "Do send_mail?" in review.band.html and "a@b" in review.why.html
    assert review.primary.description == "Approve"
    field(review, "copies").value = "2"
    field(review, "more").value = '{"x": [1, 2]}'
    assert review.primary.description == "Continue as edited"
    review.submit()
    edited = review.response["decisions"][0]["edited_action"]
    assert edited == {"name": "send_mail", "args": {"to": "a@b", "copies": 2, "more": {"x": [1, 2]}}}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_whatever_stands_in_a_request_or_a_refusal_is_text(lang: str) -> None:
    needs = [{"need": ALL, "kind": "words", "met": 0.2, "by": [], "title": ALL, "said": ""}]
    signals = {
        "evidence_count": 1,
        "needs": needs,
        "missing": [ALL],
        "unknown": [ALL],
        "thresholds": {"min_evidence": 8},
    }
    judged = {"next_steps": [], "activate": [], "rewrite_query": ALL, "should_continue": True, "reasoning": ALL}
    judged |= {"current_iteration": 1, "max_iterations": 3, "signals": signals}
    for asked in (request("reflect", judged), request(ALL, {ALL: ALL})):
        review = Review(Labels(lang))
        review.show(document(asked, plan={"steps": []}))
        review.refuse(ALL)
        page = read(text(review))
        assert "alert" in review.refusal.html and not page.tags & {"a", "iframe", "img", "link", "script", "style"}
        assert not [name for name in page.attributes if name.startswith(("on", "href", "src"))]
        assert not STEERING.search(text(review).replace("\n", " "))
