"""Traces that other tools recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workbench.errors import RunError


def attribute(key: str, value: str | int) -> dict[str, Any]:
    return {"key": key, "value": {"intValue": value} if isinstance(value, int) else {"stringValue": value}}


OTEL = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "t1",
                            "spanId": "a",
                            "name": "invoke_agent mill",
                            "startTimeUnixNano": "1767225600000000000",
                            "endTimeUnixNano": "1767225603000000000",
                            "attributes": [
                                attribute("gen_ai.operation.name", "invoke_agent"),
                                attribute("input.value", '{"question": "Who built Moss Mill?"}'),
                                attribute("output.value", "Ann Lee."),
                            ],
                        },
                        {
                            "traceId": "t1",
                            "spanId": "b",
                            "parentSpanId": "a",
                            "name": "search",
                            "startTimeUnixNano": "1767225600500000000",
                            "endTimeUnixNano": "1767225601000000000",
                            "attributes": [
                                attribute("openinference.span.kind", "RETRIEVER"),
                                attribute("retrieval.documents.0.document.id", "mill"),
                                attribute("retrieval.documents.0.document.content", "Built in 1821 by Ann Lee."),
                                attribute("retrieval.documents.0.document.score", "0.9"),
                            ],
                        },
                        {
                            "traceId": "t1",
                            "spanId": "c",
                            "parentSpanId": "a",
                            "name": "chat gpt",
                            "startTimeUnixNano": "1767225601000000000",
                            "endTimeUnixNano": "1767225602000000000",
                            "attributes": [
                                attribute("gen_ai.operation.name", "chat"),
                                attribute("gen_ai.usage.input_tokens", 40),
                                attribute("gen_ai.usage.output_tokens", 2),
                            ],
                        },
                    ]
                }
            ]
        }
    ]
}
LANGSMITH = {
    "id": "a",
    "trace_id": "t",
    "run_type": "chain",
    "name": "mill",
    "start_time": "2026-01-01T00:00:00",
    "end_time": "2026-01-01T00:00:03",
    "inputs": {"question": "Who built Moss Mill?"},
    "outputs": {"answer": "Ann Lee."},
    "child_runs": [
        {
            "id": "b",
            "trace_id": "t",
            "parent_run_id": "a",
            "run_type": "llm",
            "name": "chat gpt",
            "start_time": "2026-01-01T00:00:01",
            "end_time": "2026-01-01T00:00:02",
            "inputs": {"messages": []},
            "outputs": {"text": "Ann Lee."},
            "total_tokens": 42,
        }
    ],
}
LANGFUSE = [
    {
        "id": "a",
        "traceId": "t",
        "type": "SPAN",
        "name": "mill",
        "startTime": "2026-01-01T00:00:00Z",
        "endTime": "2026-01-01T00:00:03Z",
        "input": {"question": "Who built Moss Mill?"},
        "output": "Ann Lee.",
    },
    {
        "id": "b",
        "traceId": "t",
        "parentObservationId": "a",
        "type": "GENERATION",
        "name": "chat gpt",
        "startTime": "2026-01-01T00:00:01Z",
        "endTime": "2026-01-01T00:00:02Z",
        "usageDetails": {"input": 40, "output": 2, "total": 42},
        "level": "DEFAULT",
    },
]
PHOENIX = [
    {
        "name": "mill",
        "span_kind": "CHAIN",
        "parent_id": None,
        "context": {"trace_id": "t", "span_id": "a"},
        "start_time": "2026-01-01T00:00:00+00:00",
        "end_time": "2026-01-01T00:00:03+00:00",
        "attributes": {"input": {"value": '{"question": "Who built Moss Mill?"}'}, "output": {"value": "Ann Lee."}},
        "status_code": "OK",
    },
    {
        "name": "chat gpt",
        "span_kind": "LLM",
        "parent_id": "a",
        "context": {"trace_id": "t", "span_id": "b"},
        "start_time": "2026-01-01T00:00:01+00:00",
        "end_time": "2026-01-01T00:00:02+00:00",
        "attributes": {"llm": {"token_count": {"prompt": 40, "completion": 2, "total": 42}}},
        "status_code": "ERROR",
        "status_message": "the server was away",
    },
]


@pytest.mark.parametrize(
    ("content", "lines"),
    [(OTEL, False), (LANGSMITH, False), (LANGFUSE, True), (PHOENIX, False)],
    ids=["opentelemetry", "langsmith", "langfuse", "phoenix"],
)
def test_a_trace_is_a_run_that_is_seen_and_compared_and_never_replayed(wb, tmp_path: Path, content, lines):
    path = tmp_path / "export.json"
    path.write_text("\n".join(map(json.dumps, content)) if lines else json.dumps(content))
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
    span = OTEL["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    (tmp_path / "spans.json").write_text(json.dumps([{**span, "status": {"code": 2, "message": "no more quota"}}]))
    [run] = wb.read_traces(tmp_path / "spans.json")
    assert (run.status, run.error) == ("failed", "no more quota")


def test_documents_of_a_trace_are_evidence(wb, tmp_path: Path):
    (tmp_path / "spans.json").write_text(json.dumps(OTEL))
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
