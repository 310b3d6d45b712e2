"""The inbox: everything that waits, answered where it stands; it sees what others did."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.widgets.inbox import Inbox

QUESTION = "Compare The Wedding Banquet and Eat Drink Man Woman"
UNKNOWN = "Who directed Zorblax the Unseen?"
CHINESE = "喜宴哪一年上映？"


def until(true: Callable[[], Any], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


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


def rows(box: Inbox) -> list[str]:
    return list(box.list.picture.rows.values())


def test_everything_that_waits_newest_first(wb: Workbench, three: list[Run]) -> None:
    wb.ask(QUESTION, kb="film")
    box = wb.inbox(lang="en")
    assert [run.run_id for run in box.waiting] == [run.run_id for run in reversed(three)]
    newest, step, plan = rows(box)
    assert "Zorblax" in newest and "reflect · " in newest and "Approve: run 1 step" in newest
    assert "step · Approve: run 2 steps step_0_wedding_banquet, step_1_eat_drink_man_woman" in step
    assert CHINESE in plan and "plan · Approve: run " in plan and three[0].run_id in plan
    assert "3 runs" in box.list.html
    assert box.list.html.count('role="row"') == 3 and box.list.html.count('data-do="approve"') == 1


def test_open_tells_the_run(wb: Workbench, three: list[Run]) -> None:
    box = wb.inbox(lang="en")
    for run in three[:2]:
        box.list.press("open", run.run_id)
        assert [bench.run_id for bench in box.below.children] == [run.run_id]


@pytest.mark.parametrize("action", ["approve", "reject"])
def test_answer_right_there(wb: Workbench, three: list[Run], action: str) -> None:
    box = wb.inbox(lang="en")
    box.list.press("choose", box.waiting[1].run_id)
    box.note.value = "from the inbox"
    box.list.press(action, box.waiting[1].run_id)
    assert box.note.value == "" and [run.run_id for run in box.waiting] == [
        three[2].run_id,
        three[0].run_id,
    ]
    assert "data-do" not in box.list.html  # a second click answers nothing else
    until(lambda: three[1].decisions)
    assert (three[1].decisions[0]["action"], three[1].decisions[0]["note"]) == (action, "from the inbox")
    box.refresh()
    assert three[1].run_id not in {run.run_id for run in box.waiting if run.point == "plan"}


def test_what_was_answered_elsewhere_is_not_answered_again(wb: Workbench, three: list[Run]) -> None:
    box = wb.inbox(lang="en")
    assert box.picked == box.waiting[0].run_id
    three[2].reject("from a script")
    box.list.press("approve", three[2].run_id)  # what is shown was answered meanwhile: it is not answered again
    assert [d["action"] for d in three[2].decisions] == ["reject"]
    assert three[2].run_id not in "".join(rows(box))


def test_an_answer_to_another_question_of_the_run_is_never_given(wb: Workbench) -> None:
    run = wb.ask(QUESTION, kb="film", review=["plan", "reflect"])
    box = wb.inbox(lang="en")
    run.approve()
    assert run.review["point"] == "reflect"  # type: ignore[index]
    box.list.press("reject", run.run_id)
    assert run.status == "paused" and [d["action"] for d in run.decisions] == ["approve"]
    assert [run.point for run in box.waiting] == ["reflect"]


def test_a_run_whose_process_died_while_it_waited_waits_still(workspace: Path) -> None:
    script = f"""
import os
from workbench.session import Workbench
wb = Workbench.open({str(workspace)!r})
wb.ask({UNKNOWN!r}, kb="film", review=["plan"])
os._exit(9)
"""
    assert forked.run([sys.executable, "-c", script], timeout=120).returncode == 9
    with Workbench.open(workspace) as wb:
        box = wb.inbox(lang="en")
        [run] = box.waiting
        box.list.press("approve", run.run_id)
        wb.run(run.run_id).wait(30)
        assert wb.run(run.run_id).status == "done"


def test_a_closed_workspace_is_told_and_ends_the_looking(workspace: Path) -> None:
    with Workbench.open(workspace) as wb:
        run = wb.ask(UNKNOWN, kb="film", review=["plan"])
        box = wb.inbox(lang="en")
        box._view_count = 1
    assert box.tick() is False and "is closed" in box.list.html
    box.list.press("approve", run.run_id)
    box.refresh()
    assert "is closed" in box.list.html


def test_importing_the_session_loads_no_widgets() -> None:
    script = "import sys, workbench.session; sys.exit('ipywidgets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0
