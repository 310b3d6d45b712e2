"""Traces that other tools recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.errors import RunError

EXPORTS = json.loads(Path(__file__).with_name("traces.json").read_text("utf-8"))
"""One question as four tools export it."""


@pytest.mark.parametrize("tool", EXPORTS)
def test_a_trace_is_a_run_that_is_seen_and_compared_and_never_replayed(wb, tmp_path: Path, tool):
    path, content = tmp_path / "export.json", EXPORTS[tool]
    path.write_text("\n".join(map(json.dumps, content)) if tool == "langfuse" else json.dumps(content))
    [run] = wb.read_traces(path)
    question = {"question": run.message, "answer": run.reply}
    assert question == {"question": "Who built Moss Mill?", "answer": "Ann Lee."}, "a row of a set of questions"
    assert run.input == {"question": "Who built Moss Mill?"} and "Ann Lee." in run.state.values()
    frame = run.to_frame()
    assert frame["tokens"].sum() == 42 and frame["seconds"].max() == 3
    assert any(at.endswith(":chat gpt/1") for at in frame["at"])
    assert wb.compare(run, run).parts is None and "svg" in run.timeline._repr_html_()
    for again in (run.replay, lambda: run.fork(input={}), lambda: run.dag):
        with pytest.raises(RunError, match="trace of another tool"):
            again()


def test_a_span_that_failed_is_a_run_that_failed(wb, tmp_path: Path):
    span = EXPORTS["opentelemetry"]["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    (tmp_path / "spans.json").write_text(json.dumps([{**span, "status": {"code": 2, "message": "no more quota"}}]))
    [run] = wb.read_traces(tmp_path / "spans.json")
    assert (run.status, run.error) == ("failed", "no more quota")


def test_documents_of_a_trace_are_evidence(wb, tmp_path: Path):
    (tmp_path / "spans.json").write_text(json.dumps(EXPORTS["opentelemetry"]))
    [run] = wb.read_traces(tmp_path / "spans.json")
    assert [(piece["result_id"], piece["score"]) for piece in run.evidence] == [("mill", 0.9)]


BROKEN = [
    "",
    "no json",
    "[]",
    '{"a": 1}',
    "[" * 100_000,
    '{"start_time": 1, "context": 3, "attributes": {"llm": {"token_count": {"total": "many"}}}}',
    '{"start_time": 1, "attributes": [{"key": "retrieval.documents.0.document.score", "value": {"stringValue": "x"}}]}',
]


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_trace_is_said(wb, tmp_path: Path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(RunError, match=r"spans|JSON"):
        wb.read_traces(tmp_path / "x.json")
