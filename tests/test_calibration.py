"""Scores as probabilities: monotone by construction, fitted and measured by a command."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from workbench.tools.scoring import MODELS, Logistic, probability, rank_scores

EXPERIMENTS = Path(__file__).resolve().parent.parent / "experiments"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXPERIMENTS / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def calibrate() -> ModuleType:
    return loaded("calibrate")


@pytest.mark.parametrize("tool", list(MODELS))
def test_more_of_a_signal_never_lowers_a_probability(tool):
    for name in MODELS[tool].weights:
        scores = [probability(tool, {name: value / 4}) for value in range(5)]
        assert scores == sorted(scores), name
        assert all(0 < score < 1 for score in scores)


@pytest.mark.parametrize("tool", ["keyword_search", "naive_search", "local_search", "hybrid_search"])
def test_nothing_in_common_is_improbable_and_everything_is_probable(tool):
    nothing = {"bm25": 1.0, "reranked": 1.0, "lead": 0.3}
    everything = dict.fromkeys(MODELS[tool].weights, 1.0)
    assert probability(tool, nothing) < 0.4 < 0.9 < probability(tool, everything)


def test_probabilities_have_six_digits_and_no_overflow():
    assert Logistic(1e9, {})({}) == pytest.approx(1) and Logistic(-1e9, {})({}) == pytest.approx(0)
    assert probability("hybrid_search", {"covered": 0.3333333333}) == round(
        probability("hybrid_search", {"covered": 1 / 3}), 6
    )


def test_an_order_without_scores_stays_an_order():
    assert rank_scores(0) == [] and rank_scores(1) == [1.0]
    assert rank_scores(50) == sorted(rank_scores(50), reverse=True) and min(rank_scores(50)) == 0.95


def test_the_fit_finds_what_made_the_labels_and_keeps_the_signs(calibrate):
    rows = [
        {"signals": {"covered": c / 20, "subject": s, "noise": -s}, "right": s == 1 and c > 10}
        for c in range(21)
        for s in (0, 1)
    ]
    model = calibrate.fit(rows, ["covered", "subject", "noise"])
    assert model.weights["covered"] > 1 and model.weights["subject"] > 1
    assert model.weights["noise"] == 0
    assert model({"covered": 1, "subject": 1}) > 0.8 > 0.2 > model({})


def test_calibration_error_is_zero_for_honest_scores_and_large_for_boasting(calibrate):
    import numpy as np

    said, right = np.full(1000, 0.25), np.arange(1000) % 4 == 0
    assert calibrate.ece(said, right.astype(float)) == pytest.approx(0.0)
    assert calibrate.ece(np.full(1000, 0.95), right.astype(float)) == pytest.approx(0.7)


def test_sets_that_are_not_there_are_skipped_and_that_is_said(calibrate, tmp_path, capsys):
    corpora = calibrate.load(tmp_path, tmp_path, questions=10, passages=10)
    assert [corpus.name for corpus in corpora if corpus.questions] == ["films"]
    said = capsys.readouterr().err
    for name in ("cmrc", "xquad", "hotpot", "2wiki", "metaqa"):
        assert f"skipped: there is no {tmp_path / name / 'questions.jsonl'}" in said


def test_the_command_measures_a_small_set_from_end_to_end(calibrate, tmp_path, capsys, monkeypatch):
    data = tmp_path / "data" / "cmrc"
    data.mkdir(parents=True)
    texts = {"a": "锣鼓经是戏曲的打击乐记谱方法。", "b": "莱索托于1966年独立。", "c": "五羊新城在广州。"}
    lines = [json.dumps({"id": i, "title": text[:3], "text": text}, ensure_ascii=False) for i, text in texts.items()]
    (data / "corpus.jsonl.gz").write_bytes(__import__("gzip").compress("\n".join(lines).encode()))
    asked = [{"id": f"{i}{n}", "question": f"{texts[i][:3]}是什么？", "gold": [i]} for n in range(4) for i in texts]
    (data / "questions.jsonl").write_text("\n".join(json.dumps(q, ensure_ascii=False) for q in asked), encoding="utf-8")
    films = tmp_path / "films.jsonl"
    films.write_text('{"id": "f", "title": "Hulk", "overview": "Hulk is a 2003 film."}\n', encoding="utf-8")
    monkeypatch.setattr(calibrate, "FILMS", films)
    plot = tmp_path / "plot.html"
    words = ["calibrate", str(tmp_path / "data"), "--embeddings", "hashing", "--fit", "--plot", str(plot)]
    monkeypatch.setattr("sys.argv", words)
    calibrate.main()
    said = capsys.readouterr().out
    assert "hybrid_search" in plot.read_text(encoding="utf-8") and "hybrid_search: Logistic(" in said
    assert "hybrid_search: Logistic(" in said and "min-max of 'reranked' instead: ECE" in said
    assert "cmrc" in said and "films" in said and "global_search: nothing to measure" in said
