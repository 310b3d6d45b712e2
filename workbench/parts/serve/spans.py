"""A run as OpenTelemetry spans: its nodes, the route's decision, its steps and its calls of models.

Names and attributes follow OpenTelemetry's conventions for generative AI (``gen_ai.*``); our own are named
``workbench.*``. No text of a run is sent, except the first 200 characters of the message with the route's decision.
``WORKBENCH_SPANS=otlp`` sends them over HTTP to ``OTEL_EXPORTER_OTLP_ENDPOINT``, when a run has ended; Langfuse accepts
them there too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from workbench.runs.calls import Call
from workbench.runs.stored import Recording
from workbench.state import Data, Json, without_none

_PREVIEW = 200
_ROUTE = ("intent_detect", "apply_override_policy", "worker_select")


class Span(NamedTuple):
    """One span: nanoseconds since 1970; ``inside`` is the index of the span that holds it, None for the run's own."""

    name: str
    start: int
    end: int
    attributes: dict[str, str | int | float | bool]
    inside: int | None = 0
    failed: str = ""


def run_spans(run: Recording) -> list[Span]:
    """Return the spans of a run, each after the span that holds it."""
    document = run.to_dict()
    calls = [call for call in run.calls() if not call["replayed"]]
    log = document["log"]
    start = _ns(run.row["created_at"])
    attributes = {
        "workbench.run_id": run.run_id,
        "workbench.status": run.status,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": run.session_id,
        "gen_ai.agent.name": document["kb_prefix"] or "general",
    }
    nodes = [_span(entry["node"], entry, {"workbench.node": entry["node"]}) for entry in log]
    end = max([start, *(node.end for node in nodes)])
    spans = [
        Span("invoke_agent workbench", start, end, attributes, None, document["error"] or "")
    ]
    route = [node for node in nodes if node.name in _ROUTE]
    decision = run.state.get("route_decision")
    if route and decision:
        attributes = {
            "message_preview": run.message[:_PREVIEW],
            "routing_ms": sum(node.end - node.start for node in route) / 1e6,
            **{
                f"workbench.route.{n}": decision[n]
                for n in ("kb_prefix", "method", "confidence", "query_intent")
            },
        }
        spans.append(Span("route_decision", route[0].start, route[-1].end, attributes))
    passes = Counter[str]()
    for node in nodes:
        passes[node.name] += 1
        own = [call for call in calls if call["node"] == node.name]
        if node.name == "reflector":  # one entry of the log per pass
            own = [call for call in own if call["at"].startswith(f"pass {passes[node.name]}")]
        spans += [node, *_chats(own, node.start, len(spans))]
    return [*spans, *_steps(document["records"])]


def _span(name: str, entry: Data, attributes: Json) -> Span:
    start = _ns(entry.get("timestamp") or entry["started_at"])
    return Span(
        name,
        start,
        start + int(entry["duration_ms"] * 1e6),
        attributes,
        0,
        entry.get("error") or "",
    )


def _chats(calls: Sequence[Call], start: int, inside: int) -> Iterator[Span]:
    """Yield the calls of a node, one after the other from its start: a tape has their durations, not their times."""
    for call in calls:
        end = start + int(call["seconds"] * 1e9)
        provider, _, model = call["model"].partition(":")
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "workbench.role": call["role"],
            "workbench.prompt": call["prompt"],
            **{f"gen_ai.request.{name}": value for name, value in call["sampling"].items()},
            "gen_ai.usage.input_tokens": call["input"],
            "gen_ai.usage.output_tokens": call["output"],
            "workbench.money": call["money"],
        }
        attributes = without_none(attributes)
        yield Span(
            f"chat {model}",
            start,
            end,
            attributes,
            inside,
            "the call failed" if call["failed"] else "",
        )
        start = end


def _steps(records: Sequence[Data]) -> Iterator[Span]:
    for record in records:
        if record["started_at"] and not record.get("replayed") and record["status"] != "skipped":
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": record["tool"],
                "workbench.step": record["step_id"],
                "workbench.status": record["status"],
                "workbench.found": record["output_summary"].get("evidence_count", 0),
            }
            yield _span(f"execute_tool {record['tool']}", record, attributes)


def send(run: Recording) -> None:
    """Send the spans of a run over OTLP, unless it is incognito."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.trace import Status, StatusCode, set_span_in_context

    if run.options.get("incognito"):
        return
    spans = run_spans(run)
    provider = TracerProvider(
        resource=Resource.create({"service.name": "workbench"}), shutdown_on_exit=False
    )
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("workbench")
    started = list[Any]()
    for span in spans:
        parent = None if span.inside is None else set_span_in_context(started[span.inside])
        started.append(
            tracer.start_span(
                span.name, parent, attributes=span.attributes, start_time=span.start
            )
        )
        if span.failed:
            started[-1].set_status(Status(StatusCode.ERROR, span.failed[:_PREVIEW]))
    for otel_span, span in reversed(list(zip(started, spans, strict=True))):
        otel_span.end(end_time=span.end)
    provider.shutdown()


def _ns(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp() * 1e9)
