"""Checkpoints, forks, comparisons and grafts as widgets: pressed as the browser presses them, read in the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.formatters import IPythonDisplayFormatter

from tests.test_draw_beside import words
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.views.labels import Labels
from workbench.widgets.display import register
from workbench.widgets.futures import Checkpoints, Compare, Forks, comparison_panel, forks_panel, past_panel

CHINESE, ENGLISH = "对比《喜宴》和《饮食男女》的风格", "Compare The Wedding Banquet and Eat Drink Man Woman"


@pytest.fixture(scope="module")
def wb(film_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """One workspace for all: runs are only added."""
    folder = tmp_path_factory.mktemp("beside")
    (folder / "knowledge").symlink_to(film_index / "knowledge", target_is_directory=True)
    with Workbench.open(folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def asked(wb: Workbench) -> Run:
    """A run that went on at its reflection, with a note."""
    run = wb.ask(ENGLISH, kb="film", review=["reflect"]).respond("the father", note="he is the point")
    while run.status == "paused":
        run.approve()
    return run


@pytest.fixture(scope="module")
def stopped(asked: Run) -> Run:
    """Its other future."""
    return asked.fork(at="0-reflect", decision={"action": "reject"})


@pytest.fixture
def contradicting(wb: Workbench) -> tuple[Run, Run, str]:
    """Two runs that read the same piece otherwise, and the step of the second that did."""

    @wb.tools.tool(name="says", description="says what it is asked")
    async def says(query: str) -> list[dict]:
        return [{"id": "x#0", "text": f"as {query} says", "metadata": {"doc_id": "x", "title": "X"}}]

    base = wb.ask(ENGLISH, kb="film")
    first, second = (step.step_id for step in base.plan.steps[:2])
    one = base.fork(plan=base.plan.replace(first, tool="says", tool_input={"query": "one"}))
    two = base.fork(plan=base.plan.replace(second, tool="says", tool_input={"query": "two"}))
    return one, two, second


def until(true: Callable[[], Any], seconds: float = 30) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)
    return found


def text(*picks: Any) -> str:
    return words(" ".join(pick.picture.html for pick in picks))


# checkpoints


def test_a_checkpoint_is_looked_at_and_forked_from(asked: Run) -> None:
    past = Checkpoints(Labels("en"))
    past.show(asked.to_dict(), asked.checkpoints())
    listed = past._list.picture
    said = words(listed.html)
    assert "wave 1" in said and "responded by you" in said and "“the father · he is the point”" in said
    assert "plan version 1" in said and "merger" in said and "proposed: stop" in said
    wave = next(key for key, html in listed.rows.items() if "wave 1" in html)
    past._list.press("choose", wave)
    assert 'aria-selected="true"' in past._list.picture.rows[wave]
    looked = text(past._detail)
    assert "What changed here" in looked and "step_0_wedding_banquet/1" in looked and "asks you at reflect 0" in looked
    past._detail.press("fork", wave)
    assert past.request == {"edits": {"at": wave}, "n": 1}
    fork = asked.fork(**past.request["edits"], wait=False).wait()
    assert (fork.status, fork.review["review_id"]) == ("paused", "0-reflect")
    assert all(record.get("replayed") for record in fork.records)


def test_where_no_decision_comes_after_no_fork_is_offered(asked: Run) -> None:
    past = Checkpoints(Labels("en"))
    past.show(asked.to_dict(), asked.checkpoints())
    merger = next(key for key, html in past._list.picture.rows.items() if "merger" in html)
    past._list.press("choose", merger)
    assert "No decision comes after" in text(past._detail) and 'data-do="fork' not in past._detail.picture.html
    few = len(past._list.picture.rows)
    past._list.press("every")
    assert len(past._list.picture.rows) == len(asked.checkpoints()) > few
    past._list.press("choose", "no such row")
    assert 'aria-selected="true"' in past._list.picture.rows[merger]


def test_every_fork_that_is_offered_can_be_made(asked: Run) -> None:
    past = Checkpoints(Labels("zh"))
    past.show(asked.to_dict(), asked.checkpoints())
    past._list.press("every")
    offered = []
    for key in past._list.picture.rows:
        past._list.press("choose", key)
        offered += [key] if 'data-do="fork"' in past._detail.picture.html else []
    assert len(offered) > 10
    for key in (offered[0], offered[-1]):
        past._detail.press("fork", key)
        fork = asked.fork(**past.request["edits"], wait=False).wait()
        assert fork.status == "paused"
        fork.cancel()


def test_a_paused_run_says_where_it_waits(wb: Workbench) -> None:
    run = wb.ask(CHINESE, kb="film", review=["reflect"])
    past = Checkpoints(Labels("zh"))
    past.show(run.to_dict(), run.checkpoints())
    assert "在此等待你决定" in text(past._list)


def test_checkpoints_in_a_cell_open_their_fork_below(wb: Workbench, asked: Run) -> None:
    root = past_panel(asked.checkpoints())
    listed, detail = root.children[1].children
    wave = next(key for key, html in listed.picture.rows.items() if "wave 2" in html)
    listed.press("choose", wave)
    before = {run.run_id for run in wb.runs.list()}
    detail.press("fork", wave)
    (new,) = {run.run_id for run in wb.runs.list()} - before
    assert wb.run(new).wait().review["review_id"] == "0-reflect" and root.children[2].children[0].run_id == new


# forks


def test_two_runs_are_marked_and_compared(wb: Workbench, asked: Run, stopped: Run) -> None:
    forks = Forks(Labels("en"))
    forks.show(asked.tree())
    assert forks._marked == [asked.run_id] and "fork at reflect" in text(forks._pick)
    assert f"{stopped.saved['steps']} recorded call" in text(forks._pick)
    forks._pick.press("compare")
    assert not forks.request
    forks._pick.press("mark", stopped.run_id)
    forks._pick.press("compare")
    assert forks.request == {"do": "compare", "runs": [asked.run_id, stopped.run_id], "n": 1}
    forks._pick.press("mark", asked.run_id)
    forks._pick.press("choose", stopped.run_id)
    forks._pick.press("choose", "nobody")
    assert forks.request == {"do": "open", "runs": [stopped.run_id], "n": 2}
    gone = stopped.fork()
    forks.show(wb.runs.tree())
    forks._pick.press("mark", gone.run_id)
    wb.runs.remove(gone.run_id)
    forks.show(wb.runs.tree())
    assert gone.run_id not in forks._marked


def test_in_a_plain_shell_they_show_their_static_form(asked: Run, stopped: Run) -> None:
    for one, said in (
        (asked.workspace.compare(asked, stopped), "They first differ in"),
        (asked.tree(), "stopped here"),
        (asked.checkpoints(), "persist"),
    ):
        bundle = one._repr_mimebundle_()
        assert said in bundle["text/plain"] and said in bundle["text/html"]


def test_in_a_kernel_each_is_shown_by_the_widget_that_is_registered_for_its_class(asked, stopped, monkeypatch) -> None:
    formatter = IPythonDisplayFormatter()
    kernel = SimpleNamespace(kernel=object(), display_formatter=SimpleNamespace(ipython_display_formatter=formatter))
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: kernel)
    displayed: list[Any] = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, **_: displayed.append(bundle))
    register()
    for one in (asked, asked.workspace.compare(asked, stopped), asked.tree(), asked.checkpoints()):
        assert formatter(one), type(one)
        assert "application/vnd.jupyter.widget-view+json" in displayed[-1], type(one)
    assert not formatter(object())


def test_a_tree_in_a_cell_opens_the_comparison_below_itself(asked: Run, stopped: Run) -> None:
    root = forks_panel(asked.tree())
    (pick,) = root.children[1].children
    pick.press("mark", stopped.run_id)
    pick.press("compare")
    (beside,) = root.children[2].children
    assert stopped.run_id in text(*beside.children[1].children)


# comparisons and grafts


def test_a_graft_by_pressing(wb: Workbench, asked: Run, stopped: Run) -> None:
    compare = Compare(Labels("en"))
    compare.show(wb.compare(stopped, asked))
    head, panel, _, body = compare._picks
    assert "stopped here" in text(body) and "+ gained" in text(body)
    whole = len(body.picture.html)
    head.press("differing")
    assert len(body.picture.html) < whole and 'aria-checked="true"' in head.picture.html
    assert panel.picture.html == ""
    head.press("panel")
    taken = next(row["step_id"] for row in compare._document["steps"] if row["changes"] == ["added"])
    panel.press("take", "1:no_such_step")
    panel.press("graft")
    assert not compare.request
    panel.press("take", f"1:{taken}")
    assert "new run from A with 1 step of B" in text(panel)
    panel.press("graft")
    assert compare.request == {"do": "graft", "steps": {taken: [asked.run_id]}, "base": stopped.run_id, "n": 1}
    made = compare.graft(compare.request)
    assert made and made.status == "done"
    assert taken in made.options["graft"]["steps"] and made.options["graft"]["base"] == stopped.run_id
    compare._note.press("open", made.run_id)
    assert compare.request == {"do": "open", "runs": [made.run_id], "n": 2}
    head.press("swap")
    assert compare.request == {"do": "swap", "runs": [asked.run_id, stopped.run_id], "n": 3}


def test_the_first_run_is_the_base(wb: Workbench, asked: Run, stopped: Run) -> None:
    compare = Compare(Labels("zh"))
    compare.show(wb.compare(asked, stopped))
    compare._head.press("panel")
    assert "没有可以嫁接的内容" in text(compare._panel), "the base has all that the other has"
    step = next(row["step_id"] for row in compare._document["steps"] if row["changes"] == ["removed"])
    compare.show(wb.compare(stopped, asked))
    compare._head.press("panel")
    compare._panel.press("take", f"1:{step}")
    compare._panel.press("graft")
    assert compare.request["base"] == stopped.run_id and compare.request["steps"] == {step: [asked.run_id]}


def test_a_comparison_in_a_cell_grafts_by_itself(wb: Workbench, asked: Run, stopped: Run) -> None:
    root = comparison_panel(wb.compare(stopped, asked))
    head, panel, note, body = root.children[1].children
    before = {run.run_id for run in wb.runs.list()}
    head.press("panel")
    step = next(step.step_id for step in asked.plan.steps if step.step_id not in stopped.plan.by_id())
    panel.press("take", f"1:{step}")
    panel.press("graft")
    until(lambda: "New run" in text(note))
    (new,) = {run.run_id for run in wb.runs.list()} - before
    assert new in text(note) and wb.run(new).status == "done" and step in wb.run(new).plan.by_id()
    head.press("swap")
    assert text(body).index(asked.run_id) < text(body).index(stopped.run_id)


def test_what_cannot_be_grafted_is_said(wb: Workbench, asked: Run) -> None:
    gone = asked.fork(at="0-reflect", decision={"action": "reject"})
    root = comparison_panel(wb.compare(gone, asked))
    head, panel, note, _ = root.children[1].children
    head.press("panel")
    step = next(step.step_id for step in asked.plan.steps if step.step_id not in gone.plan.by_id())
    panel.press("take", f"1:{step}")
    wb.runs.remove(gone.run_id)
    panel.press("graft")
    until(lambda: gone.run_id in text(note) and "Unknown run" in text(note))


def test_the_workspace_is_no_part_of_the_data(wb: Workbench, asked: Run, stopped: Run) -> None:
    found = wb.compare(asked, stopped)
    assert found.workspace is wb and "workspace" not in found.to_dict() and "Workbench" not in repr(found)
    assert (asked.tree().workspace is wb and wb.runs.tree() == asked.tree()) or wb.runs.tree().here is None
