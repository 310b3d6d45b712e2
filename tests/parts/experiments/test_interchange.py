"""What other tools bring and take: BEIR folders, TREC runs, Inspect logs, crates, Optuna, Dask."""

from __future__ import annotations

import json
import re
import zipfile
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import httpx
import pytest
import yaml

from experiments.crate import PROFILES, write_crate
from experiments.interchange import (
    export,
    export_mlflow,
    prml,
    read_beir,
    read_inspect,
    read_trec,
    recall,
    write_beir,
    write_inspect,
    write_trec,
)
from tests.parts.experiments.test_experiments import QUESTIONS, opened, place, rows, spec  # noqa: F401, a fixture
from workbench.errors import CorpusError
from workbench.parts.experiments.spec import load_spec


def test_a_folder_of_beir_goes_out_and_comes_back(tmp_path: Path) -> None:
    questions = [{"id": "a", "question": "Who?", "gold": ["d1", "d2"]}, {"id": "b", "question": "谁？", "gold": ["d2"]}]
    write_beir(tmp_path, questions, [{"id": "d1", "title": "One", "text": "a"}, {"id": "d2", "title": "", "text": "b"}])
    assert read_beir(tmp_path) == questions
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\na\td1\tmany\n")
    with pytest.raises(CorpusError, match=r"test.tsv cannot be read"):
        read_beir(tmp_path)


def test_runs_and_qrels_of_trec_go_out_and_come_back(tmp_path: Path) -> None:
    run, qrels = {"q": {"b": 2.0, "a": 1.0}}, {"q": {"a": 1.0, "c": 1.0}}
    write_trec(tmp_path / "a.run", run, "mine")
    write_trec(tmp_path / "qrels.txt", qrels)
    assert (tmp_path / "a.run").read_text() == "q Q0 b 1 2.000000 mine\nq Q0 a 2 1.000000 mine\n"
    assert read_trec(tmp_path / "a.run") == run and read_trec(tmp_path / "qrels.txt") == qrels
    assert recall(run, qrels) == {"q": 0.5} and recall(run, qrels, 1) == {"q": 0.0}


def test_an_experiment_gives_its_rankings(place: Path) -> None:  # noqa: F811
    with opened(place) as wb:
        done = wb.experiments.run(spec(place, name="trec", grid={"max_iterations": [1, 2]}))
        export(done, place / "trec")
    qrels = read_trec(place / "trec" / "qrels.txt")
    assert set(qrels) == {"built", "burnt", "where"}
    assert set(read_trec(place / "trec" / "1.run")) == set(qrels)


def test_logs_of_inspect_go_out_and_come_back(place: Path) -> None:  # noqa: F811
    with opened(place) as wb:
        done = wb.experiments.run(spec(place, name="inspected", grid={"max_iterations": [1, 2]}, repeats=2))
        paths = write_inspect(done, place / "logs")
        answers = {row["question"]: wb.run(row["run_id"]).answer for _, row in done.to_frame().iterrows()}
    rows = read_inspect(paths[1])
    assert len(paths) == 2 and len(rows) == 6 and {"built", "built_epoch_2"} <= {row["id"] for row in rows}
    first = next(row for row in rows if row["id"] == "built")
    assert (first["question"], first["answers"]) == ("Who built Moss Mill?", ["Ann Lee"])
    assert first["given"] == answers["built"] and {"right", "R@5"} <= first["scores"].keys()
    with zipfile.ZipFile(paths[1]) as archive:
        header = json.loads(archive.read("header.json"))
    assert header["eval"]["task_args"] == {"max_iterations": 2} and header["results"]["total_samples"] == 6
    (place / "no.eval").write_text("{}")
    with pytest.raises(CorpusError, match=r"no\.eval cannot be read as a log of Inspect"):
        read_inspect(place / "no.eval")


def test_each_configuration_is_a_run_of_mlflow(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    mlflow = pytest.importorskip("mlflow", reason="make apart installs it")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((place / "mlruns").as_uri())
    with opened(place) as wb:
        ids = export_mlflow(wb.experiments.run(spec(place, name="logged", grid={"max_iterations": [1, 2]})))
    first, other = (mlflow.get_run(run_id).data for run_id in ids)
    assert (first.params, other.params) == ({"max_iterations": "1"}, {"max_iterations": "2"})
    assert {"asked", "difference", "n_both"} <= other.metrics.keys() and other.tags["decision"]


def test_what_is_claimed_is_written_down_before_the_first_look(place: Path) -> None:  # noqa: F811
    read = load_spec(spec(place, name="claimed", smallest_difference=4))
    first, again = (prml(read, QUESTIONS, datetime(2026, 11, 27, tzinfo=UTC)) for _ in range(2))
    manifest = yaml.safe_load(first)
    assert first == again and manifest["version"] == "prml/0.1" and manifest["threshold"] == 4.0
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}", manifest["claim_id"])
    other = yaml.safe_load(prml(read, QUESTIONS[:2], datetime(2026, 11, 27, tzinfo=UTC)))
    assert other["dataset"]["hash"] != manifest["dataset"]["hash"]


@pytest.fixture
def crate(place: Path) -> Path:  # noqa: F811
    with opened(place) as wb:
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


def test_optuna_chooses_and_claims_nothing_on_what_it_chose_by(place: Path) -> None:  # noqa: F811
    pytest.importorskip("optuna")
    grid = {"max_iterations": [1, 2, 3], "merge_max_results": [1, 5, 10]}
    with opened(place) as wb:
        done = wb.experiments.run(spec(place, name="chosen", grid=grid, optuna={"n": 4}))
        first = done.variants
        assert len(first) == 4 and done.status()["done"] == 12
        assert set(done.compare()["decision"].dropna()) == {
            "not decided: it was chosen by these questions, compare it on others"
        }
        more = wb.experiments.run(spec(place, name="chosen", grid=grid, optuna={"n": 5}))
        assert more.variants[:4] == first and len(more.variants) == 5


@pytest.mark.full
def test_a_worker_of_a_cluster_that_is_killed_leaves_the_same_rows(place: Path) -> None:  # noqa: F811
    distributed = pytest.importorskip("distributed")
    killed = list[int]()

    def kill(name: str, done: int, total: int) -> None:
        if not killed:
            worker = next(iter(cluster.workers.values()))
            killed.append(worker.pid)
            worker.process.process._process.kill()

    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, opened(place) as wb:
        wb.experiments.run(spec(place, name="cluster", repeats=8), dask=cluster.scheduler_address, progress=kill)
        wb.experiments.run(spec(place, name="here", repeats=8))
        assert killed and rows(wb, "cluster") == rows(wb, "here")
