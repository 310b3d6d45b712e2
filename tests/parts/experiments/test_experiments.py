"""Sweeps: checked before they run, shared by the tape, resumed, compared; brought from and taken by other tools."""

import json
import shutil
import sys
import threading
import typing
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import httpx
import pytest
import yaml
from langchain_core.language_models import FakeListChatModel
from pydantic import SecretStr

from experiments import interchange
from experiments.crate import PROFILES, write_crate
from tests.shelves import workbench
from tests.storm import Scenario, Storm
from workbench.errors import CorpusError, WorkbenchError
from workbench.parts.experiments import results
from workbench.parts.experiments.experiment import Experiment
from workbench.parts.experiments.live import Live
from workbench.parts.experiments.spec import Spec, check_spec, load_spec
from workbench.runs.asking import RunOptions
from workbench.session import Workbench
from workbench.settings import all_settings, model_name

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


def over(name: str, ways: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return a sweep over configurations by hand."""
    first = {"kb": "mill", "questions": QUESTIONS[:1], "measure": "holds"}
    return {**first, "name": name, "configurations": ways, **more}


def opened(folder: Path) -> Workbench:
    return Workbench.open(folder / "w", embedding_model="hashing")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("experiments")
    (folder / "mill.md").write_text(TEXT)
    with opened(folder) as wb:
        wb.add_knowledge("mill", [folder / "mill.md"])
    return folder


@pytest.fixture(scope="module")
def wb(place: Path) -> Iterator[Workbench]:
    with opened(place) as opened_there:
        yield opened_there


def spec(folder: Path, **changes: Any) -> Path:
    path = folder / f"{changes.get('name', 'sweep')}.yaml"
    path.write_text(yaml.safe_dump({**SWEEP, **changes}, sort_keys=False))
    return path


def test_a_sweep_shares_what_its_cells_have_in_common_and_equals_runs_alone(place: Path, wb: Workbench) -> None:
    done = wb.experiments.run(spec(place))
    status = done.status()
    assert (status["cells"], status["done"], status["failed"]) == (12, 12, 0)
    assert status["executed"] * 3 <= status["replayed"] + status["executed"]
    assert done.check(1) == [], "cells that were forked have the bytes of runs alone"
    frame = done.to_frame()
    assert set(frame["merge_max_results"]) == {1, 10}
    assert frame["run_id"].map(lambda run: wb.run(run).status).eq("done").all()
    table = done.compare()
    assert list(table["asked"]) == [3] * 4 and list(table["scored"]) == [3] * 4
    assert len(done.figure().to_frame()) == 4
    hidden = done.figure("hidden").to_frame()
    assert len(hidden) == 3 and hidden["hidden"].between(0, 1).all()
    assert [look["what"] for look in done.looks][:3] == ["check", "look", "look"]


def test_more_values_run_what_is_missing_and_a_changed_question_runs_again(place: Path, wb: Workbench) -> None:
    wb.experiments.run(spec(place, name="amended", grid={"max_iterations": [1]}))
    before = {row["run_id"] for row in wb.experiments.get("amended")._store.cells()}
    more = wb.experiments.run(spec(place, name="amended", grid={"max_iterations": [1, 2]}))
    runs = set(more.to_frame()["run_id"])
    assert before < runs and more.status()["cells"] == 6
    changed = [{**QUESTIONS[0], "answer": "Bea Lee"}, *QUESTIONS[1:]]
    path = spec(place, name="amended", grid={"max_iterations": [1, 2]}, questions=changed)
    assert "2 again: question has changed" in wb.experiments.prepare(path).forecast()["text"]
    again = wb.experiments.run(path)
    assert len(set(again.to_frame()["run_id"]) & runs) == 4
    assert {"what": "stale", "detail": "2 cells run again: question has changed"}.items() <= again.looks[-1].items()


class Apprise:
    sent = list[str]()  # noqa: RUF012

    def add(self, url: str) -> bool:
        return url.startswith("json://")

    def notify(self, body: str, title: str) -> None:
        self.sent.append(body)


def test_a_cell_whose_tool_breaks_stops_no_other_is_told_to_an_address_and_tried_again(place, monkeypatch, wb):
    start, calls = Experiment._start, list[str]()
    path = spec(place, name="broken", grid={"max_iterations": [1]})

    def broken(self: Experiment, question: Any, options: Any) -> Any:
        calls.append(question["id"])
        if question["id"] == "built":
            raise ConnectionError("the server is gone")
        return start(self, question, options)

    with monkeypatch.context() as patched:
        patched.setattr(Experiment, "_start", broken)
        patched.setitem(sys.modules, "apprise", SimpleNamespace(Apprise=Apprise))
        first = wb.experiments.run(path, notify=["json://localhost"])
        assert Apprise.sent[0] == "broken has cells that fail."
        assert Apprise.sent[-1].startswith("broken has ended") and "1 failed" in Apprise.sent[-1]
        with pytest.raises(WorkbenchError, match="does not know fax://"):
            wb.experiments.run(path, notify=["fax://secret"])
        assert first.status()["failed"] == 1 and first.status()["done"] == 2
        assert calls == ["built", "burnt", "where"]
        assert "ConnectionError: the server is gone" in set(first.to_frame()["error"])
        assert list(first.compare()["failed"]) == [1] and list(first.compare()["scored"]) == [2]
    assert wb.experiments.run(path).status()["done"] == 3
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(WorkbenchError, match="Apprise needs a library"):
        wb.experiments.run(path, notify=["json://localhost"])


def test_an_interrupt_in_the_middle_leaves_the_rest_to_the_next_run_and_a_pause_waits(
    place: Path, wb: Workbench
) -> None:
    ended = list[int]()

    def stop(name: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    def pause(name: str, done: int, total: int) -> None:
        ended.append(done)
        if done == 4:
            wb.experiments.get(name).steer("pause")
            threading.Timer(0.5, wb.experiments.get(name).steer, ["resume"]).start()

    path = spec(place, name="interrupted", grid={"max_iterations": [1, 2]})
    with pytest.raises(KeyboardInterrupt):
        wb.experiments.run(path, progress=stop)
    status = wb.experiments.get("interrupted").status()
    assert (status["done"], status["running"], status["waiting"]) == (2, 0, 4)
    assert wb.experiments.run(path, progress=pause).status()["done"] == 6
    looks = [look["what"] for look in wb.experiments.get("interrupted").looks]
    assert ended[-3:] == [4, 5, 6] and looks[-2:] == ["pause", "resume"]


@pytest.mark.full
def test_two_workers_run_each_cell_once(place: Path, wb: Workbench) -> None:
    done = wb.experiments.run(spec(place, name="workers", repeats=3), workers=2)
    assert done.status()["done"] == len(done.to_frame()) == 36


SAME = ("configuration", "question", "repeat", "status", "scores", "executed", "replayed", "tokens")


def rows(wb: Workbench, name: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in SAME) for row in wb.experiments.get(name)._store.cells()]


class Sweep(Scenario):
    appends = False

    def prepare(self, wb: Workbench) -> None:
        (wb.path / "mill.md").write_text(TEXT)
        wb.add_knowledge("mill", [wb.path / "mill.md"])

    def work(self, wb: Workbench, tell: Any) -> None:
        wb.experiments.run({**SWEEP, "repeats": 2})

    def look(self, wb: Workbench) -> dict[str, Any]:
        return {"rows": rows(wb, "sweep")}


@pytest.mark.parametrize("kills", [2, pytest.param(8, marks=pytest.mark.full)])
def test_a_sweep_that_is_killed_ends_with_the_rows_of_an_undisturbed_one(tmp_path: Path, kills: int) -> None:
    assert Storm(Sweep("sweep", {"embedding_model": "hashing"}), tmp_path / "storm").trials(kills) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gird": {}}, r":\d+: gird: Extra inputs are not permitted. Known: name, notebook"),
        ({"grid": {"max_iterations": []}}, r":\d+: grid.max_iterations: List should have at least 1 item"),
        ({"grid": {f"a{n}": list(range(10)) for n in range(6)}}, r"more than 100,000 configurations"),
        ({"questions": "missing.jsonl"}, r":\d+: questions: .*missing.jsonl does not exist"),
        ({"grid": {"max_iterations": [1, 2, 1]}}, r":\d+: max_iterations has a value twice"),
        ({"measure": "rihgt"}, r":\d+: measure 'rihgt' is not one. Known: right, EM"),
        ({"include": "unknown.yaml"}, r"unknown.yaml:\d+: include: unknown.yaml includes this file in turn"),
        ({"grid": {"max_iteration": [1]}}, r"unknown.yaml:\d+: grid.max_iteration: 'max_iteration' is neither"),
        ({"grid": {"max_iterations": [1, "two"]}}, r":\d+: grid.max_iterations: .*two"),
        ({"base": {"thresholds.min_evidence": -1}}, r":\d+: base.thresholds.min_evidence: "),
        ({"grid": {"reviewer": ["never", "nobody"]}}, r":\d+: grid.reviewer: reviewer is 'nobody'"),
        ({"questions": [{"question": "Who?"}, {"id": "a"}]}, r":\d+: questions.1.question: Field required"),
    ],
)
def test_a_wrong_specification_or_parameter_names_key_and_line_before_anything_runs(place, changes, message, wb):
    with pytest.raises(WorkbenchError, match=message):
        wb.experiments.run(spec(place, name="unknown", **changes))
    assert "unknown" not in [experiment.name for experiment in wb.experiments]


def test_a_key_that_stands_twice_and_a_file_that_is_included(place: Path) -> None:
    twice = place / "twice.yaml"
    twice.write_text("name: a\ngrid:\n  top_k: [1]\n  top_k: [2]\n")
    with pytest.raises(WorkbenchError, match=r"twice.yaml:4: grid.top_k stands here twice"):
        load_spec(twice)
    spec(place, name="shared", grid={"max_iterations": [1, 3]})
    over = place / "over.yaml"
    over.write_text("include: shared.yaml\nname: over\nrepeats: 2\n")
    read = load_spec(over)
    assert (read.name, read.repeats, read.grid) == ("over", 2, {"max_iterations": [1, 3]})
    over.write_text("include: shared.yaml\nname: over\nmeasure: none\n")
    with pytest.raises(WorkbenchError, match=r"over.yaml:3: measure"):
        load_spec(over)


def test_reviewers_decide_where_no_person_does_and_what_shares_a_tape_takes_no_decision_of_another(place, wb):
    said = {"go": "Go on, please.", "stop": "Stop.", "vague": "Hm."}
    models = [{"model": model_name("models.judge", FakeListChatModel(responses=[text]))} for text in said.values()]
    stop, go_on = ([{"point": "reflect", "action": action}] for action in ("reject", "approve"))
    reviewers = [stop, go_on, "never", "rules", {"threshold": 99}, {"threshold": 0}, *models]
    ways = [{"reviewer": reviewer} for reviewer in reviewers]
    done = wb.experiments.run(over("reviewers", [*ways, {"thresholds.min_evidence": 40}]))
    frame = done.to_frame()
    assert set(frame["status"]) == {"done"} and done.check(1) == []
    decisions = [[(d["who"], d["action"]) for d in wb.run(run).decisions] for run in frame["run_id"]]
    assert [action for _, action in decisions[0]] == ["reject"] and decisions[1][0][1] == "approve"
    assert decisions[2:4] == [[], [("rules", "approve")]] and decisions[5] == [("threshold", "approve")]
    assert decisions[4][0] == ("threshold", "edit") and decisions[6][0] == ("model", "edit")
    assert decisions[7:] == [[("model", "reject")], [("model", "approve")], []]
    assert wb.experiments.get("reviewers").spec.configurations[4] == ways[4]


def test_an_experiment_is_steered_while_it_runs(place: Path, wb: Workbench) -> None:
    acts = list[str]()

    def steer(name: str, done: int, total: int) -> None:
        if done == 1 and not acts:
            other = wb.experiments.get(name)
            other.steer("drop", 1)
            other.steer("clone", 0, {"max_iterations": 3})
            other.steer("change", 2, {"merge_max_results": 5})
            acts.append("steered")

    path = spec(place, name="steered", grid={"merge_max_results": [10, 1, 2]})
    done = wb.experiments.run(path, progress=steer)
    frame, table = done.to_frame(), done.compare()
    assert done.labels[3:] == ["merge_max_results=10, max_iterations=3", "merge_max_results=5"]
    assert list(table["scored"]) == [3, 0, 0, 3, 3] and list(table["dropped"]) == [0, 3, 3, 0, 0]
    assert (frame["status"] == "dropped").sum() == 6
    assert [look["what"] for look in done.looks][:3] == ["drop", "clone", "change"]
    done.steer("take", 1)
    assert wb.experiments.run(path).status()["done"] == 12, "what was added and dropped holds for the next run"
    for act, number, message in [("drop", 0, "baseline"), ("drop", 9, "Known: 0"), ("fly", None, "Known: pause")]:
        with pytest.raises(WorkbenchError, match=message):
            done.steer(act, number)
    with pytest.raises(WorkbenchError, match="'max_iteration' is neither"):
        done.steer("add", values={"max_iteration": 3})


def test_a_notebook_shows_progress_over_the_one_table_of_runs(place: Path, wb: Workbench) -> None:
    lives = list[Live]()

    def follow(name: str, done: int, total: int) -> None:
        lives.append(lives[0] if lives else Live(wb.experiments.get(name)))
        lives[0].tell(name, done, total)

    done = wb.experiments.run(spec(place, name="watched", grid={"max_iterations": [1, 2]}), progress=follow)
    live = lives[0]
    assert (live.bar.value, live.bar.max) == (6, 6) and "6 of 6 cells; about 0 s left" in live.text.value
    assert {row["run_id"] for row in live.table._rows} == set(done.to_frame()["run_id"])
    assert {tag for row in live.table._rows for tag in row["tags"]} == {"watched", *done.labels}
    live.table.table.press("sort:title")
    live.table.table.press("choose", live.table._rows[0]["run_id"])
    assert live.table.request["do"] == "open" and "6 of 6" in live._repr_mimebundle_()["text/plain"]


def test_every_look_is_logged_and_spends_from_the_error(place: Path, wb: Workbench) -> None:
    def look(name: str, done: int, total: int) -> None:
        if done == 5:
            assert "still runs" in set(wb.experiments.get(name).compare()["decision"].dropna()).pop()

    path = spec(place, name="looks", grid={"max_iterations": [1, 2]})
    done = wb.experiments.run(path, progress=look)
    done.compare()
    done.compare()
    assert done.error_budget() == {
        "error": 0.05, "spent": 0.045, "next": 0.0025, "looks": 2, "distinct": 1, "live": 1,
    }  # fmt: skip
    wb.experiments.run(spec(place, name="looks", grid={"max_iterations": [1, 2]}, measure="F1"))
    assert "measure was 'holds', after a look 'F1'" in done.looks[-1]["detail"]


def test_a_page_moves_its_thresholds_and_names_no_markup_of_others(place: Path, wb: Workbench) -> None:
    questions = [{**QUESTIONS[0], "question": "Who built </script><b>Moss Mill?"}, *QUESTIONS[1:]]
    done = wb.experiments.run(spec(place, name="page", questions=questions, hypothesis="<i>more is better</i>"))
    page = done.report(place / "page.html", done.pauses()).read_text()
    data = json.loads(page.partition('type="application/json">')[2].partition("</script>")[0])
    assert len(data["scores"]) == 4 and data["pauses"] and {"margin", "alone", "person"} <= data["pauses"][0].keys()
    assert "<i>more" not in page and "Moss Mill?" in page and 'id="threshold"' in page and "<b>Moss" not in page


def test_each_pause_is_played_both_ways_and_a_threshold_has_a_bound(place: Path, wb: Workbench) -> None:
    sweep = {**SWEEP, "name": "persons", "grid": {"max_iterations": [2]}}
    sweep["reviewer"] = [{"point": "reflect", "action": "reject", "who": "ann"}]
    pauses = wb.experiments.run(sweep).pauses()
    frame = pauses.to_frame()
    assert list(frame["action"]) == ["reject"] * 3 and (frame["other_run"] != frame["run_id"]).all()
    never = pauses.above(-1)
    assert never["asked"] == 0 and never["missed_support"] == frame["mattered"].mean()
    assert pauses.above(float("inf"))["asked"] == 1
    assert pauses.threshold()["margin"] == float("inf"), "three pauses show nothing"


def test_an_experiment_is_run_and_reported_from_the_terminal(place: Path) -> None:
    path = spec(place, name="terminal", grid={"max_iterations": [1, 2]})
    done = workbench(place / "w", "experiment", "run", str(path))
    assert done.returncode == 0 and "max_iterations=2" in done.stdout, done.stderr
    assert "done 6" in workbench(place / "w", "experiment", "status", "terminal").stdout
    told = workbench(place / "w", "experiment", "report", "terminal", "--json").stdout
    assert [row["n_both"] for row in json.loads(told, parse_constant=pytest.fail)] == [None, 3]
    page = place / "page.html"
    workbench(place / "w", "experiment", "report", "terminal", "--out", str(page))
    assert "no difference" in page.read_text() or "not decided" in page.read_text()


def test_the_experiments_here_are_valid_and_their_schema_is_the_one_for_editors(project: Path) -> None:
    folder = project / "experiments"
    schema = json.loads((folder / "experiment.schema.json").read_text())
    assert schema["properties"].pop("include")["type"] == "string" and schema == Spec.model_json_schema()
    counts = {path.stem: len(load_spec(path).variants()) for path in folder.glob("*.yaml")}
    assert counts == {"agents": 4, "merge": 4, "reflect_policy": 8, "sharing": 96}


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


def test_a_graph_of_ones_own_answers_the_same_questions_in_the_same_table(place: Path, wb: Workbench) -> None:
    (place / "own_graph.py").write_text(OWN_GRAPH)
    own = {"graph": f"{place}/own_graph.py:graph", "field": "question"}
    ways = [{"worker": "mill:naive_rag_agent:retrieve_only"}, own]
    sweep = over("ways", ways, questions=QUESTIONS, measure="right")
    done = wb.experiments.run(sweep)
    frame = done.to_frame()
    rows_of_own = frame[frame["graph"].notna()]
    assert len(frame) == 6 and set(frame["status"]) == {"done"}
    assert list(rows_of_own["right"]) == [1.0, 0.0, 0.0] and list(rows_of_own["R@5"]) == [1.0, 1.0, 1.0]
    assert rows_of_own["run_id"].map(wb.record(own["graph"]).run).map(lambda run: run.status).eq("done").all()
    assert wb.experiments.run(sweep).status()["done"] == 6
    assert not [look for look in done.looks if look["kind"] == "stale"]
    (place / "own_graph.py").write_text(OWN_GRAPH.replace("Ann Lee [mill", "Nobody [mill"))
    changed = wb.experiments.get("ways")
    changed.prepare()
    assert any("graph has changed" in str(look) for look in changed.looks)

    for folder, builder in (("first", "Ann Lee"), ("second", "Nobody")):
        (place / folder).mkdir()
        (place / folder / "agent.py").write_text(OWN_GRAPH.replace("Ann Lee [mill", f"{builder} [mill"))
    ways = [{"graph": f"{place}/{folder}/agent.py:graph", "field": "question"} for folder in ("first", "second")]
    sweep = over("alike", ways)
    assert list(wb.experiments.run(sweep).to_frame()["holds"]) == [1.0, 0.0], "two files of one name are two graphs"
    with pytest.raises(WorkbenchError, match="takes no 'max_iterations'"):
        wb.experiments.run({**sweep, "configurations": [{**ways[0], "max_iterations": 1}]})
    with pytest.raises(WorkbenchError, match="no plan"):
        wb.experiments.get("alike").why(1)


def test_beir_and_trec_go_out_and_come_back(tmp_path: Path) -> None:
    questions = [{"id": "a", "question": "Who?", "gold": ["d1", "d2"]}, {"id": "b", "question": "谁？", "gold": ["d2"]}]
    interchange.write_beir(
        tmp_path, questions, [{"id": "d1", "title": "One", "text": "a"}, {"id": "d2", "title": "", "text": "b"}]
    )
    assert interchange.read_beir(tmp_path) == questions
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\na\td1\tmany\n")
    with pytest.raises(CorpusError, match=r"test.tsv cannot be read"):
        interchange.read_beir(tmp_path)


def test_rankings_and_logs_of_inspect_go_out_and_come_back(place: Path, wb: Workbench) -> None:
    done = wb.experiments.run(spec(place, name="trec", grid={"max_iterations": [1, 2]}))
    interchange.export(done, place / "trec")
    qrels = interchange.read_trec(place / "trec" / "qrels.txt")
    assert set(qrels) == {"built", "burnt", "where"}
    assert set(interchange.read_trec(place / "trec" / "1.run")) == set(qrels)
    done = wb.experiments.run(spec(place, name="inspected", grid={"max_iterations": [1, 2]}, repeats=2))
    paths = interchange.write_inspect(done, place / "logs")
    answers = {row["question"]: wb.run(row["run_id"]).answer for _, row in done.to_frame().iterrows()}
    rows = interchange.read_inspect(paths[1])
    assert len(paths) == 2 and len(rows) == 6 and {"built", "built_epoch_2"} <= {row["id"] for row in rows}
    first = next(row for row in rows if row["id"] == "built")
    assert (first["question"], first["answers"]) == ("Who built Moss Mill?", ["Ann Lee"])
    assert first["given"] == answers["built"] and {"right", "R@5"} <= first["scores"].keys()
    with zipfile.ZipFile(paths[1]) as archive:
        header = json.loads(archive.read("header.json"))
    assert header["eval"]["task_args"] == {"max_iterations": 2} and header["results"]["total_samples"] == 6
    (place / "no.eval").write_text("{}")
    with pytest.raises(CorpusError, match=r"no\.eval cannot be read as a log of Inspect"):
        interchange.read_inspect(place / "no.eval")


def test_each_configuration_is_a_run_of_mlflow(place: Path, monkeypatch: pytest.MonkeyPatch, wb: Workbench) -> None:
    mlflow = pytest.importorskip("mlflow", reason="make apart installs it")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((place / "mlruns").as_uri())
    ids = interchange.export_mlflow(wb.experiments.run(spec(place, name="logged", grid={"max_iterations": [1, 2]})))
    first, other = (mlflow.get_run(run_id).data for run_id in ids)
    assert (first.params, other.params) == ({"max_iterations": "1"}, {"max_iterations": "2"})
    assert {"asked", "difference", "n_both"} <= other.metrics.keys() and other.tags["decision"]


def test_what_is_claimed_is_written_down_before_the_first_look(place: Path) -> None:
    read, day = load_spec(spec(place, name="claimed", smallest_difference=4)), datetime(2026, 11, 27, tzinfo=UTC)
    first, again, fewer = (interchange.prml(read, asked, day) for asked in (QUESTIONS, QUESTIONS, QUESTIONS[:2]))
    manifest = yaml.safe_load(first)
    assert first == again and (manifest["version"], manifest["threshold"]) == ("prml/0.1", 4.0)
    assert manifest["dataset"]["hash"] != yaml.safe_load(fewer)["dataset"]["hash"]


@pytest.fixture
def crate(place: Path, wb: Workbench) -> Path:
    return write_crate(wb.experiments.run(spec(place, name="crate")), place / "crate.zip")


def test_a_crate_holds_the_files_that_it_names(crate: Path) -> None:
    with zipfile.ZipFile(crate) as archive:
        entities = {row["@id"]: row for row in json.loads(archive.read("ro-crate-metadata.json"))["@graph"]}
        files = {row["@id"] for row in entities.values() if "File" in row["@type"]}
        assert set(archive.namelist()) == files | {"ro-crate-metadata.json"}
        assert yaml.safe_load(archive.read("experiment.yaml").decode())["name"] == "crate"
    assert {part["@id"] for part in entities["./"]["conformsTo"]} == set(PROFILES)


def test_the_validator_of_crates_finds_it_valid_offline(crate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services = pytest.importorskip("rocrate_validator.services", reason="make apart installs it")
    context = resources.files("rocrate").joinpath("data", "ro-crate.jsonld").read_text(encoding="utf-8")
    context = context.replace("bioschemas.org/terms/", "bioschemas.org/")  # as in 1.1, which the profiles build on
    answer = httpx.Response(200, text=context, headers={"content-type": "application/ld+json"})
    monkeypatch.setattr("rocrate_validator.utils.http.HttpRequester.get", lambda self, url, **_: answer, raising=False)

    def issues(path: Path) -> list[str]:
        settings = {"rocrate_uri": str(path), "profile_identifier": "workflow-run-crate", "offline": True}
        return [issue.message for issue in services.validate(settings).get_issues()]

    assert issues(crate) == []
    folder = crate.with_name("broken-crate")
    with zipfile.ZipFile(crate) as archive:
        archive.extractall(folder)
    metadata = folder / "ro-crate-metadata.json"
    metadata.write_text(metadata.read_text().replace("CreateAction", "Thing"))
    assert "At least one CreateAction" in str(issues(folder))


def test_optuna_chooses_and_claims_nothing_on_what_it_chose_by(place: Path, wb: Workbench) -> None:
    pytest.importorskip("optuna")
    grid = {"max_iterations": [1, 2, 3], "merge_max_results": [1, 5, 10]}
    done = wb.experiments.run(spec(place, name="chosen", grid=grid, optuna={"n": 4}))
    first = done.variants
    assert len(first) == 4 and done.status()["done"] == 12
    assert set(done.compare()["decision"].dropna()) == {
        "not decided: it was chosen by these questions, compare it on others"
    }
    more = wb.experiments.run(spec(place, name="chosen", grid=grid, optuna={"n": 5}))
    assert more.variants[:4] == first and len(more.variants) == 5


@pytest.mark.full
def test_a_worker_of_a_cluster_that_is_killed_leaves_the_same_rows(place: Path, wb: Workbench) -> None:
    distributed = pytest.importorskip("distributed")
    killed = list[int]()

    def kill(name: str, done: int, total: int) -> None:
        if not killed:
            worker = next(iter(cluster.workers.values()))
            killed.append(worker.pid)
            worker.process.process._process.kill()

    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster:
        wb.experiments.run(spec(place, name="cluster", repeats=8), dask=cluster.scheduler_address, progress=kill)
        wb.experiments.run(spec(place, name="here", repeats=8))
        assert killed and rows(wb, "cluster") == rows(wb, "here")


STEP = {"step_id": "s", "objective": "o", "tool": "keyword_search", "tool_input": {"query": "mill"}}
OPTIONS: dict[str, Any] = {
    "kb": ["other"], "user": "bob", "worker": "mill:naive_rag_agent:retrieve_only", "thresholds": {"min_evidence": 7},
    "as_of": "1900", "known": "1900", "reviewer": "rules", "decisions": [{"point": "plan", "action": "approve"}],
    "models": {"writer": "rules"}, "prompts": {"writer.en": {"system": "Be short."}},
    "plan": {"problem_statement": "q", "steps": [STEP]}, "settings": {"max_iterations": 1},
    "report": {"report_type": "short"}, "review": ["plan"],
}  # fmt: skip
NO_LEAK = {"session", "incognito", "debug"}
"""Options of a run that an experiment sets itself, or that only say what is shown."""


def another(name: str) -> Any:
    """Another value than a setting's own, made from its type."""
    field = all_settings().model_fields[name]
    if field.annotation is bool:
        return not field.default
    if typing.get_origin(field.annotation) is Literal:
        return next(value for value in typing.get_args(field.annotation) if value != field.default)
    if field.annotation in (int, float):
        return field.default / 2 if 0 < field.default < 1 else field.default + 1
    return {"writer": "rules"} if name == "models" else "another"


SETTINGS = [name for name, field in all_settings().model_fields.items() if field.annotation is not SecretStr]
PROMPTS = [f"{role}.{language}" for role in ("writer", "planner", "reflector", "router") for language in ("en", "zh")]
ENVIRONMENT = ["WORKBENCH_MERGE", "MA_MAX_ITERATIONS", "KB_FOLDER", "OPENAI_ORGANIZATION", "OPENAI_BASE_URL"]


def _prompt(name: str, wb: Workbench, patch: pytest.MonkeyPatch) -> None:
    wb.prompts[name] = {"system": "Be short."}


def _variable(name: str, wb: Workbench, patch: pytest.MonkeyPatch) -> None:
    patch.setenv(name, "another")


def _setting(name: str, wb: Workbench, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(wb, "settings", wb.settings.model_copy(update={name: another(name)}))


def version_one(query: str) -> list[str]:
    """Find the mill."""
    return ["Moss Mill"]


def version_two(query: str) -> list[str]:
    """Find the mill."""
    return ["Fern Mill"]


async def handler(state: Any, context: Any) -> str:
    return "42"


class Sampled(FakeListChatModel):
    temperature: float = 0.0

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"temperature": self.temperature}


MODEL = Sampled(responses=["Ann Lee [1]."])
MODELS = {"writer": model_name("models.writer", MODEL)}
LEAK: dict[str, Any] = {
    "name": "leak", "kb": "mill", "questions": QUESTIONS[:1],
    "base": {"user": "ann", "max_iterations": 2, "models": MODELS},
}  # fmt: skip
Plant = Callable[[Workbench, pytest.MonkeyPatch], object]


def tool(wb: Workbench, function: Callable[[str], list[str]]) -> None:
    wb.tools.tool(function, name="own_tool", replace=True)


PLANTS: dict[str, tuple[str, Plant]] = {
    "corpus": ("corpus", lambda wb, _: wb.add_knowledge("mill", [wb.path.parent / "changing"])),
    "a fact of the user": ("memory", lambda wb, _: wb.memory.core_memory_update("name", "Ann", user="ann")),
    "the user's archive": ("memory", lambda wb, _: wb.memory.archival_memory_insert("Ann likes mills.", user="ann")),
    "a tool's code": ("tools", lambda wb, _: tool(wb, version_two)),
    "another tool": ("tools", lambda wb, _: wb.tools.tool(version_one, name="second_tool")),
    "a reranker": ("tools", lambda wb, _: wb.register("reranker", lambda query, texts: [1.0] * len(texts))),
    "a handler": ("tools", lambda wb, _: wb.register("handler", handler, kb="other")),
    "a model's sampling": ("models", lambda wb, patch: patch.setattr(MODEL, "temperature", 1.0)),
    "code of the package": ("code", lambda wb, patch: patch.setattr(results, "code_version", lambda: "another")),
    **{f"prompt {name}": ("prompts", partial(_prompt, name)) for name in PROMPTS},
    **{f"variable {name}": ("environment", partial(_variable, name)) for name in ENVIRONMENT},
    **{f"setting {name}": ("settings", partial(_setting, name)) for name in SETTINGS},
}
SPECS: dict[str, tuple[str, dict[str, Any]]] = {
    "gold": ("question", {"questions": [{**QUESTIONS[0], "answer": "Bea Orr"}]}),
    "words": ("question", {"questions": [{**QUESTIONS[0], "question": "Who made Moss Mill?"}]}),
    "reviewer": ("reviewer", {"reviewer": "rules"}),
    "decisions": ("reviewer", {"reviewer": [{"point": "reflect", "action": "approve"}]}),
    "kb": ("corpus", {"kb": "other"}),
    **{f"option {name}": ("parameters", {"base": {name: value}}) for name, value in OPTIONS.items()},
    **{
        f"parameter {name}": ("parameters", {"base": {name: another(name)}}) for name in SETTINGS if name not in OPTIONS
    },
}


@pytest.fixture
def done(place: Path, tmp_path: Path) -> Iterator[Experiment]:
    """An experiment that has ended, in a workspace of its own."""
    shutil.copytree(place / "w", tmp_path / "w")
    (tmp_path / "changing").mkdir()
    (tmp_path / "changing" / "other.md").write_text("Fern Mill was built by Bea Orr.")
    with opened(tmp_path) as wb:
        wb.add_knowledge("other", [tmp_path / "changing"])
        tool(wb, version_one)
        yield wb.experiments.run(LEAK)


def proof(experiment: Experiment, spec: dict[str, Any] | None = None) -> dict[str, str]:
    """What the cell depends on, by part."""
    again = Experiment(experiment._wb, experiment._store.tables, check_spec(spec or LEAK))
    return dict(again.proof(again.variants[0], again.questions[0], 0))


def test_whatever_a_cell_depends_on_changes_that_part_of_its_proof_alone(done, monkeypatch):
    assert set(OPTIONS) | NO_LEAK == set(RunOptions.model_fields)
    assert len(PLANTS) + len(SPECS) >= 150
    wb, first, missed = done._wb, proof(done), dict[str, Any]()
    assert proof(done) == first and done.stale(done.cells()) == {}
    for name, (part, spec) in SPECS.items():
        base = {**LEAK["base"], **spec.get("base", {})}
        other = proof(done, {**LEAK, **spec, "base": base})
        parts = {name for name, value in first.items() if value != other[name]}
        if part not in parts or len(parts - {"parameters", "memory"}) > 1:
            missed[name] = parts
    for name, (part, plant) in PLANTS.items():
        with monkeypatch.context() as patch:
            before = proof(done)
            plant(wb, patch)
            after = proof(done)
            if (parts := {name for name, value in before.items() if value != after[name]}) != {part}:
                missed[name] = parts
    assert missed == {}
    assert {"corpus", "memory", "tools", "prompts"} <= set(done.stale(done.cells())), "what stays changed is said"
    alone = {name for name, value in OPTIONS.items() if done.shared({name: value}) != done.shared({})}
    assert set(OPTIONS) - alone == {"settings", "thresholds", "reviewer", "decisions", "review"}
    settings = {name for name in SETTINGS if done.shared({name: another(name)}) != done.shared({})}
    assert {"models", "memory_top_k", "memory_scope"} <= settings and "max_iterations" not in settings


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in SETTINGS if all_settings().model_fields[name].annotation is not str])
def test_a_cell_that_differs_in_one_setting_has_the_bytes_of_a_run_alone(done: Experiment, name: str) -> None:
    ways = [{}, {f"settings.{name}": another(name)}]
    for order in (ways, ways[::-1]):
        sweep = {**LEAK, "name": f"one_{len(order[0])}", "configurations": order, "base": {}}
        both = done._wb.experiments.run(sweep)
        assert both.check(1) == [], (name, order)
