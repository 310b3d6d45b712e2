"""Decisions, forks and comparisons as widgets: pressed as the browser presses them, read in the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.formatters import IPythonDisplayFormatter

from tests.test_hostile import read
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.views.labels import Labels
from workbench.widgets.display import register
from workbench.widgets.futures import Decisions
from workbench.widgets.runs import RunTable

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
    return asked.fork(at="0-reflect", decision={"action": "reject"})


def words(html: str) -> str:
    return " ".join(read(html).text.split())


def text(*picks: Any) -> str:
    return words(" ".join(pick.picture.html for pick in picks))


def test_decisions_are_listed_and_each_is_made_again_in_a_fork(asked: Run) -> None:
    past = Decisions(Labels("en"))
    past.show(asked.to_dict())
    said = words(past.region.picture.html)
    assert "1 · reflect" in said and "responded by you “the father” “he is the point”" in said
    past.region.press("fork", "no such row")
    past.region.press("fork", "0-reflect")
    assert past.request == {"edits": {"at": "0-reflect"}, "n": 1}
    fork = asked.fork(**past.request["edits"], wait=False).wait()
    assert (fork.status, fork.review["review_id"]) == ("paused", "0-reflect")
    assert all(record.get("replayed") for record in fork.records)


def test_runs_are_searched_sorted_marked_and_acted_on(wb: Workbench, asked: Run, stopped: Run) -> None:
    runs = RunTable(Labels("en"), wb)
    runs.show(asked.run_id)
    assert {asked.run_id, stopped.run_id} <= set(runs.table.picture.rows) and runs._marked == [asked.run_id]
    assert f"forked from {asked.run_id}" in words(runs.table.picture.rows[stopped.run_id])
    assert asked.answer.splitlines()[0][2:42] in words(runs.table.picture.rows[asked.run_id])
    runs.table.press("mark", stopped.run_id)
    runs.table.press("compare")
    assert runs.request == {"do": "compare", "runs": [asked.run_id, stopped.run_id], "n": 1}
    runs.table.press("choose", stopped.run_id)
    assert runs.request == {"do": "open", "runs": [stopped.run_id], "n": 2}
    runs.tags.value, runs.note.value = "fathers, draft", "look again"
    runs.save.click()
    tagged, noted = ({run.run_id for run in wb.runs.find(**by)} for by in ({"tag": "draft"}, {"text": "look again"}))
    assert tagged == noted == {asked.run_id, stopped.run_id}
    runs.search.value = "no such words"
    assert not runs.table.picture.rows and "No runs" in text(runs.table)
    runs.search.value = "fathers"
    assert set(runs.table.picture.rows) == {asked.run_id, stopped.run_id}
    runs.status.value = "paused"
    assert not runs.table.picture.rows
    runs.search.value = runs.status.value = ""
    runs.table.press("sort:title")
    titles = [wb.runs.lines(text=run_id)[0]["title"] for run_id in runs.table.picture.rows]
    assert titles == sorted(titles, key=str.casefold)
    runs.table.press("export")
    assert (wb.path / "exports" / f"{asked.run_id}.zip").is_file() and "2 runs exported" in runs.message.value
    gone = stopped.fork()
    runs.show(asked.run_id)
    for marked in (*runs._marked, gone.run_id):
        runs.table.press("mark", marked)
    assert "Delete 1 run with all" in text(runs.table)
    runs.table.press("delete")
    assert gone.run_id not in wb.runs and gone.run_id not in runs.table.picture.rows and not runs._marked


def test_the_table_of_runs_is_a_frame_too(wb: Workbench, asked: Run) -> None:
    wb.runs.annotate(asked.run_id, title="Fathers")
    frame = wb.runs.to_frame(text="Fathers").set_index("run_id")
    assert frame.loc[asked.run_id, "title"] == "Fathers" and frame.loc[asked.run_id, "message"] == ENGLISH
    assert {"answer", "status", "kb", "model", "tokens", "money", "tags", "note"} <= set(frame)
    assert frame.loc[asked.run_id, "answer"] == asked.answer.splitlines()[0][:200]
    wb.runs.annotate(asked.run_id, title="")
    assert wb.runs.lines(text=asked.run_id)[0]["title"] == ENGLISH


def test_in_a_kernel_a_run_is_shown_by_the_widget_that_is_registered_for_its_class(asked, monkeypatch) -> None:
    formatter = IPythonDisplayFormatter()
    kernel = SimpleNamespace(kernel=object(), display_formatter=SimpleNamespace(ipython_display_formatter=formatter))
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: kernel)
    displayed: list[Any] = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, **_: displayed.append(bundle))
    register()
    assert formatter(asked) and "application/vnd.jupyter.widget-view+json" in displayed[-1]
    assert not formatter(object())
