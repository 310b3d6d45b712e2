"""Sweeps: checked before they run, shared by the tape, resumed, compared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml

from tests import forked
from tests.shelves import workbench
from workbench.errors import WorkbenchError
from workbench.parts.experiments import notebooks
from workbench.parts.experiments.experiment import Experiment
from workbench.parts.experiments.spec import Spec, load_spec
from workbench.session import Workbench

QUESTIONS = [
    {"id": "built", "question": "Who built Moss Mill?", "answer": "Ann Lee", "gold": ["mill"]},
    {"id": "burnt", "question": "When did Moss Mill burn down?", "answer": "1903", "gold": ["mill"]},
    {"id": "where", "question": "Where is Moss Mill?", "answer": "Tarn", "gold": ["mill"]},
]
TEXT = "Moss Mill is a water mill in Tarn. It was built in 1821 by Ann Lee. It burnt down in 1903."
SWEEP: dict[str, Any] = {
    "name": "sweep",
    "kb": "mill",
    "questions": QUESTIONS,
    "grid": {"max_iterations": [2, 1], "merge_max_results": [10, 1]},
    "measure": "holds",
}


def opened(folder: Path) -> Workbench:
    return Workbench.open(folder / "w", embedding_model="hashing")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("experiments")
    (folder / "mill.md").write_text(TEXT)
    with opened(folder) as wb:
        wb.add_knowledge("mill", [folder / "mill.md"])
    return folder


def spec(folder: Path, **changes: Any) -> Path:
    path = folder / f"{changes.get('name', 'sweep')}.yaml"
    path.write_text(yaml.safe_dump({**SWEEP, **changes}, sort_keys=False))
    return path


def test_a_sweep_shares_what_its_cells_have_in_common_and_equals_runs_alone(place: Path) -> None:
    with opened(place) as wb:
        done = wb.experiments.run(spec(place))
        status = done.status()
        assert (status["cells"], status["done"], status["failed"]) == (12, 12, 0)
        assert status["executed"] * 3 <= status["replayed"] + status["executed"]
        assert done.check(1) == [], "cells that were forked have the bytes of runs alone"
        frame = done.to_frame()
        assert (
            set(frame["merge_max_results"]) == {1, 10}
            and frame["run_id"].map(lambda run: wb.run(run).status).eq("done").all()
        )
        table = done.compare()
        assert list(table["asked"]) == [3] * 4 and list(table["scored"]) == [3] * 4
        assert len(done.figure().to_frame()) == 4
        assert [look["what"] for look in done.looks] == ["check", "look", "look"]


def test_more_values_run_what_is_missing_and_a_changed_question_runs_again(place: Path) -> None:
    with opened(place) as wb:
        wb.experiments.run(spec(place, name="amended", grid={"max_iterations": [1]}))
        before = {row["run_id"] for row in wb.experiments.get("amended")._store.cells("amended")}
        more = wb.experiments.run(spec(place, name="amended", grid={"max_iterations": [1, 2]}))
        runs = set(more.to_frame()["run_id"])
        assert before < runs and more.status()["cells"] == 6
        changed = [{**QUESTIONS[0], "answer": "Bea Lee"}, *QUESTIONS[1:]]
        again = wb.experiments.run(spec(place, name="amended", grid={"max_iterations": [1, 2]}, questions=changed))
        assert len(set(again.to_frame()["run_id"]) & runs) == 4
        assert {"what": "stale", "detail": "2 cells run again: question has changed"}.items() <= again.looks[-1].items()


def test_a_cell_whose_tool_breaks_stops_no_other_and_is_tried_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, calls = Experiment._alone, list[str]()

    def broken(self: Experiment, question: Any, options: Any) -> Any:
        calls.append(question["id"])
        if question["id"] == "built":
            raise ConnectionError("the server is gone")
        return alone(self, question, options)

    with opened(place) as wb:
        with monkeypatch.context() as patched:
            patched.setattr(Experiment, "_alone", broken)
            first = wb.experiments.run(spec(place, name="broken", grid={"max_iterations": [1]}))
            assert (
                first.status()["failed"] == 1 and first.status()["done"] == 2 and calls == ["built", "burnt", "where"]
            )
            assert "ConnectionError: the server is gone" in set(first.to_frame()["error"])
            assert list(first.compare()["failed"]) == [1] and list(first.compare()["scored"]) == [2]
        assert wb.experiments.run(spec(place, name="broken", grid={"max_iterations": [1]})).status()["done"] == 3


def test_an_interrupt_in_the_middle_leaves_the_rest_to_the_next_run(place: Path) -> None:
    def stop(name: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    path = spec(place, name="interrupted", grid={"max_iterations": [1, 2]})
    with opened(place) as wb:
        with pytest.raises(KeyboardInterrupt):
            wb.experiments.run(path, progress=stop)
        status = wb.experiments.get("interrupted").status()
        assert (status["done"], status["running"], status["waiting"]) == (2, 0, 4)
        assert wb.experiments.run(path).status()["done"] == 6


@pytest.mark.full
def test_two_workers_run_each_cell_once(place: Path) -> None:
    with opened(place) as wb:
        done = wb.experiments.run(spec(place, name="workers", repeats=3), workers=2)
        assert done.status()["done"] == len(done.to_frame()) == 36


def test_what_is_no_experiment_is_named_without_a_file_too(place: Path) -> None:
    with opened(place) as wb, pytest.raises(WorkbenchError, match=r"gird: Extra inputs are not permitted. Known: name"):
        wb.experiments.run({**SWEEP, "gird": {}})


def test_a_killed_sweep_ends_with_each_cell_once(place: Path) -> None:
    path = spec(place, name="killed", repeats=2)
    script = f"""
import os
from workbench.session import Workbench
with Workbench.open({str(place / "w")!r}, embedding_model="hashing") as wb:
    wb.experiments.run({str(path)!r}, progress=lambda name, done, total: done == 5 and os._exit(9))
"""
    assert forked.run([sys.executable, "-c", script], check=False).returncode == 9
    with opened(place) as wb:
        assert wb.experiments.get("killed").status()["done"] in (5, 6)
        done = wb.experiments.run(path)
        assert done.status()["done"] == 24 and len(done.to_frame()) == 24


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gird": {}}, r":\d+: gird: Extra inputs are not permitted. Known: name, notebook"),
        ({"grid": {"max_iterations": []}}, r":\d+: grid.max_iterations has no values"),
        ({"grid": {f"a{n}": list(range(10)) for n in range(6)}}, r"more than 100,000 configurations"),
        ({"questions": "missing.jsonl"}, r":\d+: questions: .*missing.jsonl does not exist"),
        ({"repeats": 0}, r":\d+: repeats: Input should be greater than or equal to 1"),
        ({"questions": "", "notebook": ""}, "name either questions or a notebook"),
    ],
)
def test_a_wrong_specification_names_key_and_line_before_anything_runs(
    place: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(WorkbenchError, match=message):
        load_spec(spec(place, name="wrong", **changes))


def test_an_unknown_parameter_is_refused_before_anything_runs(place: Path) -> None:
    with opened(place) as wb, pytest.raises(WorkbenchError, match="'max_iteration' is neither"):
        wb.experiments.run(spec(place, name="unknown", grid={"max_iteration": [1]}))


def test_an_experiment_is_run_and_reported_from_the_terminal(place: Path) -> None:
    path = spec(place, name="terminal", grid={"max_iterations": [1, 2]})
    done = workbench(place / "w", "experiment", "run", str(path))
    assert done.returncode == 0 and "max_iterations=2" in done.stdout, done.stderr
    assert "done 6" in workbench(place / "w", "experiment", "status", "terminal").stdout
    page = place / "page.html"
    workbench(place / "w", "experiment", "report", "terminal", "--out", str(page))
    assert "no difference" in page.read_text() or "not decided" in page.read_text()


def test_the_experiments_here_are_valid_and_their_schema_is_the_one_for_editors(project: Path) -> None:
    folder = project / "experiments"
    assert json.loads((folder / "experiment.schema.json").read_text()) == Spec.model_json_schema()
    counts = {path.stem: len(load_spec(path).variants()) for path in folder.glob("*.yaml")}
    assert counts == {"agents": 4, "merge": 4, "reflect_policy": 8}


# notebooks


IMPORT = "from workbench.experiments import parameters, result"


def notebook(folder: Path, body: str = "result('double', 2 * top_k)") -> Path:
    cells = [
        nbformat.v4.new_code_cell("top_k: int = 8\nnames: list[str] = []", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(f"{IMPORT}\nparameters(globals())\n{body}"),
    ]
    path = folder / "one.ipynb"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    return path


def test_parameters_of_a_notebook_are_checked_before_it_runs(tmp_path: Path) -> None:
    path = notebook(tmp_path)
    assert notebooks.checked(path, {"names": '["a"]', "top_k": "3"}) == {"names": ["a"], "top_k": 3}
    with pytest.raises(WorkbenchError, match=r"no parameter 'topk'. Known: top_k: int, names: list"):
        notebooks.checked(path, {"topk": 3})
    with pytest.raises(WorkbenchError, match="top_k is 'many', but input should be a valid integer"):
        notebooks.checked(path, {"top_k": "many"})


def test_stock_papermill_refuses_what_the_notebook_does_not_declare(tmp_path: Path) -> None:
    def run(*parameters: str) -> subprocess.CompletedProcess[str]:
        papermill = [sys.executable, "-m", "papermill", "--no-progress-bar"]
        command = [*papermill, str(notebook(tmp_path)), str(tmp_path / "out.ipynb")]
        return subprocess.run([*command, *parameters], capture_output=True, text=True, check=False)

    assert run("-p", "top_k", "4").returncode == 0
    wrong = run("-p", "topk", "4")
    assert wrong.returncode == 1 and "no parameter 'topk'" in wrong.stderr


def test_a_sweep_over_a_notebook_keeps_a_failing_one_with_its_error(place: Path) -> None:
    path = notebook(place, "result('double', 2 * top_k)\nassert top_k < 3, 'too many'")
    with opened(place) as wb:
        data = {"name": "notebooks", "notebook": str(path), "grid": {"top_k": [2, 3]}, "measure": "double"}
        frame = wb.experiments.run(data).to_frame()
    assert list(frame["status"]) == ["done", "failed"] and list(frame["double"]) == [4, 6]
    assert frame["error"][1] == "AssertionError: too many" and Path(frame["run_id"][1]).is_file()
    assert json.loads(Path(frame["run_id"][1]).read_text())["cells"]


OWN_GRAPH = """
from typing import TypedDict
from langchain_core.documents import Document
from langgraph.graph import START, StateGraph

class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    answer: str

def search(state):
    return {"documents": [Document("Built by Ann Lee.", id="mill#0", metadata={"doc_id": "mill", "score": 1.0})]}

def say(state):
    return {"answer": "Ann Lee [mill#0]"}

graph = StateGraph(State).add_sequence([search, say]).add_edge(START, "search").compile()
"""


def test_a_graph_of_ones_own_answers_the_same_questions_in_the_same_table(place: Path) -> None:
    (place / "own_graph.py").write_text(OWN_GRAPH)
    ways = [
        {"worker": "mill:naive_rag_agent:retrieve_only"},
        {"graph": f"{place}/own_graph.py:graph", "field": "question"},
    ]
    sweep = {**SWEEP, "name": "ways", "configurations": ways, "measure": "right"}
    del sweep["grid"]
    with opened(place) as wb:
        done = wb.experiments.run(sweep)
        frame = done.to_frame()
        own = frame[frame["graph"].notna()]
        assert len(frame) == 6 and set(frame["status"]) == {"done"}
        assert list(own["right"]) == [1.0, 0.0, 0.0] and list(own["R@5"]) == [1.0, 1.0, 1.0]
        assert own["run_id"].map(wb.record(ways[1]["graph"]).run).map(lambda run: run.status).eq("done").all()
        assert wb.experiments.run(sweep).status()["done"] == 6
        assert not [look for look in done.looks if look["kind"] == "stale"]
        (place / "own_graph.py").write_text(OWN_GRAPH.replace("Ann Lee [mill", "Nobody [mill"))
        changed = wb.experiments.get("ways")
        changed.prepare()
        assert any("graph has changed" in str(look) for look in changed.looks)


@pytest.mark.parametrize(
    ("settings", "gold", "stage"),
    [
        ({}, "nowhere", "not in the corpus"),
        ({"step_top_k": 1}, "far.md", "not found"),
        ({"merge_max_results": 1}, "far.md", "cut in the merge"),
        ({"merge_max_characters": 100}, "far.md", "beyond the prompt"),
        ({}, "mill.md", "used, and the answer is wrong"),
    ],
)
def test_a_wrong_answer_is_traced_to_where_its_document_was_lost(
    tmp_path: Path, settings: dict[str, Any], gold: str, stage: str
) -> None:
    (tmp_path / "mill.md").write_text(TEXT)
    (tmp_path / "far.md").write_text("Grain was ground in the county at a place by the water until a fire in Moss.")
    question = {"id": "q", "question": "Who built Moss Mill?", "answer": "Zoe Zed", "gold": [gold]}
    sweep = {"name": "lost", "kb": "mill", "questions": [question], "base": settings, "measure": "holds"}
    with opened(tmp_path) as wb:
        wb.add_knowledge("mill", [tmp_path / "mill.md", tmp_path / "far.md"])
        table = wb.experiments.run(sweep).why(try_changes=True)
        assert list(table["lost"]) == [stage] and list(table["document"]) == [gold]
        if stage == "not found":
            assert table["rank_by_words"][0] == 2 and table["right_with_wider_limits"][0] == 0


def test_two_files_of_one_name_are_two_graphs_and_other_parameters_are_refused(place: Path) -> None:
    for folder, builder in (("first", "Ann Lee"), ("second", "Nobody")):
        (place / folder).mkdir()
        (place / folder / "agent.py").write_text(OWN_GRAPH.replace("Ann Lee [mill", f"{builder} [mill"))
    ways = [{"graph": f"{place}/{folder}/agent.py:graph", "field": "question"} for folder in ("first", "second")]
    sweep = {"name": "alike", "kb": "mill", "questions": QUESTIONS[:1], "configurations": ways, "measure": "holds"}
    with opened(place) as wb:
        assert list(wb.experiments.run(sweep).to_frame()["holds"]) == [1.0, 0.0]
        with pytest.raises(WorkbenchError, match="takes no 'max_iterations'"):
            wb.experiments.run({**sweep, "configurations": [{**ways[0], "max_iterations": 1}]})
        with pytest.raises(WorkbenchError, match="no plan"):
            wb.experiments.get("alike").why(1)
