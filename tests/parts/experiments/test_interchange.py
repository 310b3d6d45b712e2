"""What other tools bring and take: BEIR folders, TREC runs, Optuna's choices, the workers of a Dask cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.interchange import export, read_beir, read_trec, recall, write_beir, write_trec
from tests.parts.experiments.test_experiments import opened, place, rows, spec  # noqa: F401, a fixture
from workbench.errors import CorpusError


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
