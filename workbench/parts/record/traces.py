"""Traces that other tools recorded, as read-only runs: they are seen, compared and measured, and never replayed.

OpenTelemetry spans as JSON (GenAI conventions and OpenInference), exports of Phoenix and Langfuse, and LangSmith's run
JSON are read, all into the same six things: what ran, inside what, when, what went in, what came out, and tokens.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import RunError
from workbench.parts.record.elsewhere import Elsewhere
from workbench.parts.record.run import GraphRun
from workbench.records.tape import Effect
from workbench.state import Data, Json

KINDS: Mapping[str, str] = {
    **dict.fromkeys(("llm", "chat", "generation", "generate_content", "text_completion"), "model"),
    **dict.fromkeys(("tool", "execute_tool", "retriever", "reranker", "embedding", "embeddings"), "tool"),
}
"""What tools call their spans -> the kind of the effect; every other span is a node."""
_ID = ("id", "spanId", "context.span_id")
_TRACE = ("trace_id", "traceId", "context.trace_id")
_PARENT = ("parentObservationId", "parent_run_id", "parentSpanId", "parent_id")
_START, _END = ("start_time", "startTime", "startTimeUnixNano"), ("end_time", "endTime", "endTimeUnixNano")
_STATUS = ("status.code", "status_code", "level", "status")
_MESSAGE = ("statusMessage", "status_message", "status.message")
_KIND = ("run_type", "span_kind", "type", "openinference.span.kind", "gen_ai.operation.name")
_NAME = ("gen_ai.tool.name", "tool.name", "name")
_INPUT = ("inputs", "input", "input.value", "gen_ai.input.messages", "gen_ai.tool.call.arguments")
_OUTPUT = ("outputs", "output", "output.value", "gen_ai.output.messages", "gen_ai.tool.call.result")
_TOKENS = ("total_tokens", "totalTokens", "llm.token_count.total", "usage.total", "usageDetails.total")
_PARTS_OF_TOKENS = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    ("llm.token_count.prompt", "llm.token_count.completion"),
)
_DOCUMENTS = "retrieval.documents"


class Span(NamedTuple):
    """One span of a trace."""

    id: str
    trace: str
    parent: str
    kind: str
    name: str
    start: float
    end: float
    input: Any
    output: Any
    tokens: int
    error: str


class Traces(Elsewhere):
    """Traces of another tool under one name; its runs can be looked at and compared.

    Args:
        wb: the workspace.
        name: under which they are kept.
    """

    def __init__(self, wb: Any, name: str):
        super().__init__(wb, name, "A trace of another tool has no graph. Look at run.timeline and run.to_frame().")

    def read(self, path: str | Path) -> list[GraphRun]:
        """Keep the traces of a file (JSON or JSON Lines), and return a run for each.

        Raises:
            RunError: the file cannot be read, or has no spans of a known shape.
        """
        spans = read_spans(Path(path))
        if not spans:
            raise RunError(f"{path} has no spans. Known: OpenTelemetry JSON, Phoenix, Langfuse, LangSmith runs.")
        by_trace: dict[str, list[Span]] = defaultdict(list)
        for span in sorted(spans, key=lambda span: span.start):
            by_trace[span.trace].append(span)
        return [self._keep(trace) for trace in by_trace.values()]

    def _keep(self, spans: list[Span]) -> GraphRun:
        root = next((span for span in spans if not span.parent), spans[0])
        options = {"mode": "trace", "sources": [], "config": {}, "edits": {}}
        run_id = self.new_run(options, root.input).run_id
        for effect in _effects(spans):
            self._save(run_id, effect)
        result = root.output if isinstance(root.output, dict) else {"output": root.output}
        failed = "failed" if root.error else "done"
        self._runs.store.save_result(run_id, {"state": self.dump_text(result, "output")})
        self._runs.store.let_go(run_id, failed, root.error or None)
        return self.run(run_id)


def read_traces(wb: Any, path: str | Path, name: str = "") -> list[GraphRun]:
    """Read traces that another tool recorded, as read-only runs.

    Args:
        wb: the workspace.
        path: OpenTelemetry spans as JSON, an export of Phoenix or Langfuse, or LangSmith runs; JSON or JSON Lines.
        name: of the runs; by default the file's.

    Raises:
        RunError: the file cannot be read, or has no spans of a known shape.
    """
    return Traces(wb, name or Path(path).stem).read(path)


def read_spans(path: Path) -> list[Span]:
    """Return the spans of a file.

    Raises:
        RunError: it is no JSON, or cannot be read.
    """
    try:
        text = path.read_text("utf-8")
        try:
            content = json.loads(text)
        except ValueError:
            content = [json.loads(line) for line in text.splitlines() if line.strip()]
        return [_span(record) for record in _records(content)]
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RunError(f"{path} is no trace in JSON: {type(error).__name__}: {error}.") from None


def _records(content: Any) -> Iterator[Json]:
    """Yield everything that looks like a span, wherever it stands: exports nest them in different ways."""
    if isinstance(content, list):
        for inner in content:
            yield from _records(inner)
    elif isinstance(content, Mapping):
        nested = ("resourceSpans", "scopeSpans", "spans", "observations", "child_runs", "data", "runs")
        for name in nested:
            yield from _records(content.get(name) or [])
        if any(name in content for name in _START):
            yield {name: value for name, value in content.items() if name not in nested}


def _span(record: Json) -> Span:
    attributes = _attributes(record.get("attributes") or {})
    flat = {**attributes, **_flat({name: value for name, value in record.items() if name != "attributes"})}
    own_id, kind = str(_first(flat, _ID) or ""), str(_first(flat, _KIND) or "").lower()
    tokens = _first(flat, _TOKENS) or sum(int(flat.get(name) or 0) for pair in _PARTS_OF_TOKENS for name in pair)
    error, status = record.get("error"), str(_first(flat, _STATUS) or "")
    if not error and (status == "2" or "ERROR" in status.upper()):  # OpenTelemetry's number for an error is 2
        error = _first(flat, _MESSAGE) or status
    return Span(
        id=own_id,
        trace=str(_first(flat, _TRACE) or own_id),
        parent=str(_first(flat, _PARENT) or ""),
        kind=KINDS.get(kind, "node"),
        name=str(_first(flat, _NAME) or kind or "span"),
        start=_seconds(_first(record, _START)),
        end=_seconds(_first(record, _END)),
        input=_field(record, attributes, _INPUT),
        output=_documents(attributes) or _field(record, attributes, _OUTPUT),
        tokens=int(tokens),
        error=str(error or ""),
    )


def _effects(spans: Iterable[Span]) -> Iterator[Effect]:
    """Yield a trace's spans as effects; a call is placed in the node around it."""
    counts, places = Counter[str](), dict[str, str]()
    for span in spans:
        node = places.get(span.parent, "").partition(":")[0]
        place = span.name if span.kind == "node" or not node else f"{node}:{span.name}"
        counts[place] += 1
        places[span.id] = at = f"{place}/{counts[place]}"
        output = span.error or span.output
        seconds = max(0.0, span.end - span.start)
        where_and_when: Json = {"at": at, "task": span.id, "input": span.input, "started_at": span.start}
        yield Effect(span.kind, span.name, {}, output, seconds, span.tokens, **where_and_when)


def _attributes(attributes: Any) -> Json:
    """Return attributes by their dotted names: OpenTelemetry lists them, Phoenix nests them."""
    if isinstance(attributes, list):
        return {str(a.get("key")): _any_value(a.get("value") or {}) for a in attributes if isinstance(a, Mapping)}
    return _flat(attributes)


def _any_value(value: Data) -> Any:
    if "arrayValue" in value:
        return [_any_value(inner) for inner in value["arrayValue"].get("values", [])]
    return next(iter(value.values()), None)


def _flat(value: Any, path: str = "") -> Json:
    if not isinstance(value, Mapping):
        return {path: value}
    flat: Json = {}
    for name, inner in value.items():
        flat |= _flat(inner, f"{path}.{name}" if path else str(name))
    return flat


def _documents(attributes: Data) -> list[Json]:
    """Return the documents of an OpenInference retriever as LangChain documents in JSON."""
    listed = attributes.get(_DOCUMENTS)
    rows: dict[int, Json] = defaultdict(dict)
    if isinstance(listed, list):
        rows |= {n: _flat(row.get("document", row)) for n, row in enumerate(listed) if isinstance(row, Mapping)}
    for name, value in attributes.items():
        number, _, field = name.removeprefix(f"{_DOCUMENTS}.").partition(".document.")
        if name.startswith(f"{_DOCUMENTS}.") and number.isdecimal():
            rows[int(number)][field] = value
    return [
        {
            "type": "Document",
            "id": str(row.get("id") or n),
            "page_content": str(row.get("content") or ""),
            "metadata": {"score": float(row.get("score") or 0.0)},
        }
        for n, row in sorted(rows.items())
    ]


def _field(record: Data, attributes: Data, names: Iterable[str]) -> Any:
    value = _first(record, names)
    value = _first(attributes, names) if value is None else value
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _first(values: Data, names: Iterable[str]) -> Any:
    return next((values[name] for name in names if values.get(name) not in (None, "")), None)


def _seconds(moment: Any) -> float:
    """Return seconds since the epoch of an ISO text, nanoseconds or seconds; 0 of nothing.

    >>> _seconds("2026-01-01T00:00:00Z"), _seconds("1767225600000000000"), _seconds(None)
    (1767225600.0, 1767225600.0, 0.0)
    """
    if moment in (None, ""):
        return 0.0
    try:
        number = float(moment)
    except (TypeError, ValueError):
        try:
            parsed = datetime.fromisoformat(str(moment))
        except ValueError:
            return 0.0
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    return number / 1e9 if number > 1e12 else number
