"""The bench without a browser: what is pressed, what becomes of the run in the store, what is shown."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from workbench.errors import WorkbenchError
from workbench.graphs.reviewers import answer
from workbench.plans import Plan, PlanStep
from workbench.runs.asking import LONGEST_MESSAGE
from workbench.runs.recording import origin_of
from workbench.session import Workbench
from workbench.widgets.bench import Bench
from workbench.widgets.follow import Now

QUESTION = "Compare The Wedding Banquet and Eat Drink Man Woman"
SECONDS = 60


def text(pick: Any) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", pick.picture.html)).split())


def ask(bench: Bench, message: str = QUESTION, review: tuple[str, ...] = ("reflect",)) -> Bench:
    bench.ask.message.value = message
    for point, box in bench.ask.points.items():
        box.value = point in review
    bench.ask.submit()
    return bench.wait(SECONDS)


def shown(widget: Any) -> bool:
    return widget.layout.display != "none"


@pytest.fixture
def bench(wb: Workbench) -> Bench:
    return wb.bench(kb="film")


def test_a_bench_can_be_shown_without_langgraph() -> None:
    """Its import is most of a second, which only a run has to pay for."""
    code = "import workbench.widgets.bench, sys; sys.exit('langgraph' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_empty_bench_asks(bench: Bench) -> None:
    assert "Ask a question" in text(bench.head) and shown(bench.ask.region)
    assert not shown(bench.working.evidence) and bench.ask.kb.value == "film"
    assert len(bench.ask.examples.children) == 2
    bench.ask.examples.children[0].click()
    assert bench.ask.message.value.startswith("Compare ")
    bench.ask.message.value = "   "
    bench.ask.submit()
    assert bench.run is None


def test_a_model_and_its_effort_are_chosen_for_each_role(wb: Workbench, bench: Bench) -> None:
    form = bench.ask
    assert form.effort.disabled  # an effort is that of a model
    form.model.value = "rules"
    form.role.value = "writer"
    assert (form.model.value, form.effort.value) == ("", "") and form.effort.disabled
    form.model.value, form.effort.value = "openai:m", "high"
    form.role.value = "all"
    assert (form.model.value, form.effort.value) == ("rules", "")
    assert form.models == {"all": "rules", "writer": "openai:m?effort=high"}
    form.role.value = "writer"
    assert (form.model.value, form.effort.value) == ("openai:m", "high")
    form.model.value = ""
    assert form.models == {"all": "rules"}
    ask(bench, review=())
    settings = bench.run.options["settings"]
    assert set(settings["models"].values()) == {"rules"} and not bench.run.calls()


def test_a_bench_opens_on_what_waits_in_its_conversation(wb: Workbench, bench: Bench) -> None:
    run = ask(bench).run
    again = wb.bench(kb="film")
    assert again.run_id == run.run_id and "still waiting" in text(again.head)
    assert wb.bench(kb="film", session="another").run_id == ""
    again.head.press("new_question")
    assert again.run_id == "" and run.status == "paused"


def test_a_bench_keeps_a_conversation_of_its_own(wb: Workbench, bench: Bench) -> None:
    wb.ask("Who directed Inception?", kb="film", review="plan")
    assert wb.bench(kb="film").run_id == "", "what is asked elsewhere is no business of a bench"
    first = ask(bench, "Who directed The Wedding Banquet?", ()).run
    bench.head.press("new_question")
    again = ask(bench, "When was it released?", ())
    assert again.run.session_id == first.session_id and "The Wedding Banquet" in again.run.query
    assert f"Read as: {again.run.query}" in text(again.head)
    assert not wb.bench(kb="film").follows_up(), "another bench has another conversation"


def test_an_answer_given_elsewhere_is_shown(wb: Workbench, bench: Bench) -> None:
    run = ask(bench).run
    wb.run(run.run_id).approve()
    bench.working.review.submit()
    bench.wait(SECONDS)
    assert run.status == "done" and len(run.decisions) == 1
    assert "It was continued elsewhere" in text(bench.head)
    assert run.answer[2:30] in text(bench.working.answer)


def test_a_run_whose_process_died_is_gone_on_with(workspace: Path) -> None:
    asked = "from workbench import Workbench; import os, sys\n"
    asked += f"wb = Workbench.open({str(workspace)!r})\n"
    asked += "@wb.tools.tool(name='slow', description='slow', intents=['compare'])\n"
    asked += "async def slow(query: str) -> list[str]:\n    os._exit(9)\n"
    asked += f"wb.ask({QUESTION!r}, kb='film', session='bench film')\n"
    assert forked.run([sys.executable, "-c", asked], timeout=120).returncode == 9
    with Workbench.open(workspace) as wb:

        @wb.tools.tool(name="slow", description="slow", intents=["compare"])
        async def slow(query: str) -> list[str]:
            return ["It was shot in Taipei."]

        bench = wb.bench(kb="film")
        assert bench.run.status == "interrupted" and "Resume" in text(bench.head)
        finished = {record["step_id"]: record["started_at"] for record in bench.run.records}
        bench.head.press("resume")
        bench.wait(SECONDS)
        assert bench.run.status == "done"
        assert finished.items() <= {r["step_id"]: r["started_at"] for r in bench.run.records}.items()


def test_an_edited_plan_of_a_finished_run_becomes_a_fork(bench: Bench) -> None:
    run = ask(bench, review=()).run
    editor = bench.working.editor
    plan = Plan.load(editor.plan)
    editor._edit(
        plan.adding(
            PlanStep(step_id="mine", objective="fathers", tool="keyword_search", tool_input={"query": "father"})
        )
    )
    assert shown(bench.working.fork_bar) and "Fork with 1 edit" in text(bench.working.fork_bar)
    bench.working.fork_bar.press("fork")
    bench.wait(SECONDS)
    fork = bench.run
    assert (
        origin_of(fork) == run.run_id
        and fork.plan.step("mine")
        and fork.to_dict()["figures"]["saved_calls"] == len(plan.steps)
    )


def comes(true: Callable[[], Any]) -> bool:
    until = time.monotonic() + SECONDS
    while not true() and time.monotonic() < until:
        time.sleep(0.02)
    return bool(true())


def test_a_bench_follows_its_run_whoever_moves_it(workspace: Path) -> None:
    with Workbench.open(workspace) as wb, Workbench.open(workspace) as elsewhere:
        run = wb.ask(QUESTION, kb="film", review=["plan", "reflect"])
        bench = wb.bench(run)
        review = bench.working.review
        elsewhere.run(run.run_id).approve()  # as another process does
        assert comes(lambda: "waiting for you · reflect" in text(bench.head) and shown(review.dock))
        wb.run(run.run_id).approve()  # as another cell does
        assert comes(lambda: not shown(review.dock) and run.answer[2:30] in text(bench.working.answer))
        gone = wb.ask(QUESTION, kb="film", review=["plan"])
        bench.put(gone)
        elsewhere.runs.remove(gone.run_id)
        assert comes(lambda: "This run is gone" in text(bench.head) and not shown(bench.working.dock))


def test_a_bench_goes_on_with_a_run_that_was_answered_before_its_pause_was_shown(
    wb: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, answered = Bench._ended, []

    def late(bench: Bench, now: Now, fault: WorkbenchError | None) -> None:
        if not answered and bench.run and bench.run.status == "paused":
            answered.append(bench.run.answer_review(answer("approve"), wait=False))
        ended(bench, now, fault)

    monkeypatch.setattr(Bench, "_ended", late)
    bench = ask(wb.bench(kb="film"), review=("reflect",))
    assert comes(lambda: answered and answered[0].answer and answered[0].answer[2:30] in text(bench.working.answer))
    assert not shown(bench.working.review.dock)


def test_a_note_and_the_language_survive_a_restart_and_a_new_conversation_begins_with_nothing(wb: Workbench) -> None:
    first = ask(wb.bench(kb="film", lang="zh"), QUESTION)
    first.working.review.note.value = "太少"
    again = wb.bench(kb="film")
    assert again.run_id == first.run_id and again.labels.language == "zh"
    assert again.working.review.note.value == "太少"
    again.working.review.submit()
    again.wait(SECONDS)
    assert again.run.decisions[0]["note"] == "太少"
    again.head.press("new_question")
    assert again.ask.message.placeholder == again.labels("follow_up")
    again.head.press("new_conversation")
    assert again.ask.message.placeholder != again.labels("follow_up")
    assert ask(again, QUESTION).run.session_id != first.run.session_id


def test_the_conversation_before_opens_its_runs(bench: Bench) -> None:
    first = ask(bench, review=()).run
    second = ask(bench, "Who directed it?", review=()).run
    assert QUESTION in text(bench.working.turns)
    bench.working.turns.press("open", first.run_id)
    assert bench.run_id == first.run_id != second.run_id


def test_what_is_refused_is_told_and_changes_nothing(bench: Bench, wb: Workbench) -> None:
    ask(bench, "x" * (LONGEST_MESSAGE + 1))
    assert bench.run is None and "characters" in text(bench.head)
    bench.working.turns.press("open", "no-such-run")
    assert "no-such-run" in text(bench.head)


def test_a_closed_workspace_is_told_in_the_head(workspace: Path) -> None:
    wb = Workbench.open(workspace)
    bench = wb.bench(kb="film")
    ask(bench)
    wb.close()
    bench._refreshed(None)
    assert "closed" in text(bench.head)
