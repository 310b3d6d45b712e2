"""Checkpoints, forks and comparisons as widgets: pressed as the browser presses them, read in the store."""

from __future__ import annotations

from collections.abc import Iterator
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
from workbench.widgets.futures import Checkpoints, Compare, Forks

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


def text(*picks: Any) -> str:
    return words(" ".join(pick.picture.html for pick in picks))


# checkpoints


def test_a_checkpoint_is_looked_at_and_forked_from(asked: Run) -> None:
    past = Checkpoints(Labels("en"))
    past.show(asked.to_dict(), asked.checkpoints())
    listed = past._list.picture
    said = words(listed.html)
    assert "executor" in said and "responded by you “the father” “he is the point”" in said
    assert "planner" in said and "merger" in said and "proposed: stop" in said
    wave = next(key for key, html in listed.rows.items() if "executor" in html)
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


# forks


def test_two_runs_are_marked_and_compared(wb: Workbench, asked: Run, stopped: Run) -> None:
    forks = Forks(Labels("en"))
    forks.show(wb.runs.tree(asked))
    assert forks._marked == [asked.run_id] and "fork at reflect" in text(forks._pick)
    assert f"{stopped.to_dict()['figures']['saved_calls']} recorded call" in text(forks._pick)
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
        (asked._workspace.compare(asked, stopped), "They first differ in"),
        (asked._workspace.runs.tree(asked), "stopped here"),
        (asked.checkpoints(), "persist"),
    ):
        bundle = one._repr_mimebundle_()
        assert said in bundle["text/plain"] and said in bundle["text/html"]


# comparisons


def test_a_comparison_by_pressing(wb: Workbench, asked: Run, stopped: Run) -> None:
    compare = Compare(Labels("en"))
    compare.show(wb.compare(stopped, asked))
    assert "stopped here" in text(compare._body) and "+ gained" in text(compare._body)
    whole = len(compare._body.picture.html)
    compare._head.press("differing")
    assert len(compare._body.picture.html) < whole and 'aria-checked="true"' in compare._head.picture.html
    compare._head.press("open", asked.run_id)
    assert compare.request == {"do": "open", "runs": [asked.run_id], "n": 1}
    compare._head.press("swap")
    assert compare.request == {"do": "swap", "runs": [asked.run_id, stopped.run_id], "n": 2}


def test_in_a_kernel_a_run_is_shown_by_the_widget_that_is_registered_for_its_class(asked, monkeypatch) -> None:
    formatter = IPythonDisplayFormatter()
    kernel = SimpleNamespace(kernel=object(), display_formatter=SimpleNamespace(ipython_display_formatter=formatter))
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: kernel)
    displayed: list[Any] = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, **_: displayed.append(bundle))
    register()
    assert formatter(asked) and "application/vnd.jupyter.widget-view+json" in displayed[-1]
    assert not formatter(object())
