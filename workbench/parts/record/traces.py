"""Traces that other tools recorded, as read-only runs: they are seen, compared and measured, and never replayed.

OpenTelemetry spans as JSON (GenAI conventions and OpenInference), exports of Phoenix and Langfuse, and LangSmith's run
JSON are read, all into the same six things: what ran, inside what, when, what went in, what came out, and tokens.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.errors import RunError
from workbench.parts.record.agent import GraphRun, RecordedGraph, record
from workbench.parts.record.questions import read_json
from workbench.records.tape import Effect
from workbench.state import Data, Json, drop
from workbench.text import own_table

_TABLES = own_table(__file__)
_KEYS: Mapping[str, Sequence[str]] = _TABLES["keys"]
_NESTED: Sequence[str] = _TABLES["nested"]
_DOCUMENT = re.compile(r"@\.retrieval\.documents\.(\d+)\.document\.(\w+)")


def read_traces(wb: Any, path: str | Path) -> list[GraphRun]:
    """Read traces that another tool recorded, as read-only runs.

    Args:
        wb: the workspace.
        path: OpenTelemetry spans as JSON, an export of Phoenix or Langfuse, or LangSmith runs; JSON or JSON Lines.

    Raises:
        RunError: the file cannot be read, or has no spans of a known shape.
    """
    spans = read_spans(Path(path))
    if not spans:
        raise RunError(
            f"{path} has no spans. Known: OpenTelemetry JSON, Phoenix, Langfuse, LangSmith runs."
        )
    why = "A trace of another tool has no graph. Look at run.timeline and run.to_frame()."
    agent = record(wb, None, Path(path).stem, why=why)
    by_trace = defaultdict(list)
    for span in sorted(spans, key=lambda span: span["start"]):
        by_trace[span["trace"] or span["id"]].append(span)
    return [_keep(agent, trace) for trace in by_trace.values()]


def _keep(agent: RecordedGraph, spans: list[Json]) -> GraphRun:
    root = next((span for span in spans if not span["parent"]), spans[0])
    options = {"tape": {"mode": "trace", "sources": []}, "config": {}, "results": {}}
    run_id = agent.new_run(options, root["input"]).run_id
    agent.save(run_id, _effects(spans))
    result = root["output"] if isinstance(root["output"], dict) else {"output": root["output"]}
    agent.save_end(run_id, result, root["error"])
    return agent.run(run_id)


def read_spans(path: Path) -> list[Json]:
    """Return the spans of a file: what is in ``_KEYS``, times in seconds, input and output as data.

    Raises:
        RunError: it is no JSON, or cannot be read.
    """
    try:
        text = path.read_text("utf-8")
        try:
            content = json.loads(text)
        except ValueError:
            content = [json.loads(line) for line in text.splitlines() if line.strip()]
        return [_span(each) for each in _spans_in(content)]
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RunError(f"{path} is no trace in JSON: {type(error).__name__}: {error}.") from None


def _spans_in(content: Any) -> Iterator[Json]:
    """Yield everything that looks like a span, wherever it stands: exports nest them in different ways."""
    if isinstance(content, list):
        for inner in content:
            yield from _spans_in(inner)
    elif isinstance(content, Mapping):
        for name in _NESTED:
            yield from _spans_in(content.get(name) or [])
        if any(name in content for name in _KEYS["start"]):
            yield drop(content, *_NESTED)


def _span(fields: Json) -> Json:
    attributes = fields.pop("attributes", None) or {}
    if isinstance(attributes, list):  # OpenTelemetry lists them, Phoenix nests them
        attributes = {f"{a.get('key')}": _any_value(a.get("value") or {}) for a in attributes}
    values = dict(_flat({**fields, "@": attributes}))
    span = {
        name: next((values[key] for key in keys if values.get(key) not in (None, "")), "")
        for name, keys in _KEYS.items()
    }
    status = str(span["status"])
    # OpenTelemetry's number for an error is 2
    failed = status == "2" or "ERROR" in status.upper()
    kind = str(span["kind"]).lower()
    tokens = span["tokens"] or int(span["read"] or 0) + int(span["written"] or 0)
    return {
        **{name: str(span[name]) for name in ("id", "trace", "parent")},
        "kind": _TABLES["kinds"].get(kind, "node"),
        "name": str(span["name"] or kind or "span"),
        "start": _seconds(span["start"]),
        "end": _seconds(span["end"]),
        "input": _decoded(span["input"]),
        "output": _documents(values) or _decoded(span["output"]),
        "tokens": int(tokens),
        "error": str(span["error"] or (failed and (span["message"] or status)) or ""),
    }


def _effects(spans: Iterable[Json]) -> Iterator[Effect]:
    """Yield a trace's spans as effects; a call is placed in the node around it."""
    counts = Counter[str]()
    places = dict[str, str]()
    for span in spans:
        kind = span["kind"]
        name = span["name"]
        start = span["start"]
        node = places.get(span["parent"], "").partition(":")[0]
        place = name if kind == "node" or not node else f"{node}:{name}"
        counts[place] += 1
        places[span["id"]] = at = f"{place}/{counts[place]}"
        yield Effect(
            kind,
            name,
            {},
            span["error"] or span["output"],
            max(0.0, span["end"] - start),
            span["tokens"],
            at=at,
            input=span["input"],
            started_at=start,
        )


def _any_value(value: Data) -> Any:
    if "arrayValue" in value:
        return [_any_value(inner) for inner in value["arrayValue"].get("values", [])]
    return next(iter(value.values()), None)


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value at any depth with its dotted path."""
    yield path, value
    inside: Iterable[tuple[Any, Any]] = enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, Mapping):
        inside = value.items()
    for name, inner in inside:
        yield from _flat(inner, f"{path}.{name}" if path else str(name))


def _documents(values: Data) -> list[Json]:
    """Return the documents of an OpenInference retriever as LangChain documents in JSON."""
    rows: dict[int, Json] = defaultdict(lambda: {"id": "", "content": "", "score": 0})
    for path, value in values.items():
        if match := _DOCUMENT.fullmatch(path):
            rows[int(match[1])][match[2]] = value
    return [
        {
            "type": "Document",
            "id": str(row["id"] or n),
            "page_content": str(row["content"]),
            "metadata": {"score": float(row["score"])},
        }
        for n, row in sorted(rows.items())
    ]


def _decoded(value: Any) -> Any:
    """Return a value; text that is a JSON object or list as that."""
    is_json = isinstance(value, str) and value.startswith(("{", "["))
    return read_json(value) if is_json else value


def _seconds(moment: Any) -> float:
    """Return seconds since the epoch of an ISO text, nanoseconds or seconds; 0 of nothing.

    >>> _seconds("2026-01-01T00:00:00Z"), _seconds("1767225600000000000"), _seconds(None)
    (1767225600.0, 1767225600.0, 0.0)
    """
    try:
        number = float(moment or 0)
    except ValueError:
        parsed = datetime.fromisoformat(moment)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    return number / 1e9 if number > 1e12 else number
