"""A run as OpenTelemetry spans: its nodes, the route's decision, its steps and its calls of models.

Names and attributes are those of OpenTelemetry's conventions for generative AI (``gen_ai.*``); what is ours is named
``workbench.*``. What was asked and said is not sent, but for the first 200 characters of the message with the route's
decision. ``WORKBENCH_SPANS=otlp`` sends them over HTTP to where ``OTEL_EXPORTER_OTLP_ENDPOINT`` says, when a run has
ended; Langfuse takes them there too. A collector that is away never touches a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from importlib.util import find_spec
from typing import Any, NamedTuple

from workbench.errors import MissingExtra
from workbench.runs.calls import Call
from workbench.runs.recording import Recording
from workbench.state import Data, Json

_EXPORTER = "opentelemetry.exporter.otlp.proto.http"
_PARENTS = [place for place, sign in enumerate(f"{_EXPORTER}.") if sign == "."]
_PREVIEW = 200
_ROUTE = ("intent_detect", "apply_override_policy", "worker_select")


class Span(NamedTuple):
    """One span: nanoseconds since 1970; ``inside`` is the place of the span that holds it, None for the run's own."""

    name: str
    start: int
    end: int
    attributes: dict[str, str | int | float | bool]
    inside: int | None = 0
    failed: str = ""


def required(setting: str) -> None:
    """Refuse a setting that cannot be followed here.

    Raises:
        MissingExtra: the exporter is not installed.
    """
    if setting and not all(find_spec(_EXPORTER[:end]) for end in _PARENTS):
        raise MissingExtra("WORKBENCH_SPANS=otlp", "tracing")


def spans_of(run: Recording) -> list[Span]:
    """Return the spans of a run, a parent always before what it holds."""
    document, calls = run.to_dict(), list(run.calls())
    log, began = document["log"], _ns(run.row["created_at"])
    ended = max([began, *(_ns(e["timestamp"]) + _ms(e["duration_ms"]) for e in log)])
    about: Json = {
        "workbench.run_id": run.run_id,
        "workbench.status": run.status,
        "gen_ai.operation.name": "invoke_agent",
    }
    about |= {"gen_ai.conversation.id": run.session_id, "gen_ai.agent.name": document["kb_prefix"] or "general"}
    found = [Span("invoke_agent workbench", began, ended, about, None, document["error"] or "")]
    found += _route(run, log)
    for entry in log:
        start = _ns(entry["timestamp"])
        found.append(Span(entry["node"], start, start + _ms(entry["duration_ms"]), {"workbench.node": entry["node"]}))
        of_node = [call for call in calls if call["node"] == entry["node"] and not call["replayed"]]
        if entry["node"] == "reflector":  # one entry a pass
            one = sum(e["node"] == "reflector" and e["timestamp"] <= entry["timestamp"] for e in log)
            of_node = [call for call in of_node if call["at"].startswith(f"pass {one}")]
        found += _chats(of_node, start, len(found) - 1)
    return [*found, *_steps(document["records"])]


def _route(run: Recording, log: Sequence[Data]) -> Iterator[Span]:
    """``route_decision``: what the message begins with, and what was decided."""
    at, decision = [entry for entry in log if entry["node"] in _ROUTE], run.state.get("route_decision")
    if not at or not decision:
        return
    start, last = _ns(at[0]["timestamp"]), at[-1]
    told: Json = {"message_preview": run.message[:_PREVIEW], "routing_ms": sum(e["duration_ms"] for e in at)}
    told |= {f"workbench.route.{n}": decision[n] for n in ("kb_prefix", "method", "confidence", "query_intent")}
    yield Span("route_decision", start, _ns(last["timestamp"]) + _ms(last["duration_ms"]), told)


def _chats(calls: Sequence[Call], start: int, inside: int) -> Iterator[Span]:
    """Yield the calls of a node, one behind the other from its beginning: a tape keeps how long they took, not when."""
    for call in calls:
        end = start + int(call["seconds"] * 1e9)
        provider, _, model = call["model"].partition(":")
        told: Json = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider}
        told |= {"gen_ai.request.model": model, "workbench.role": call["role"], "workbench.prompt": call["prompt"]}
        told |= {f"gen_ai.request.{name}": value for name, value in call["sampling"].items()}
        if call["input"] is not None:
            told |= {"gen_ai.usage.input_tokens": call["input"], "gen_ai.usage.output_tokens": call["output"]}
        if call["money"] is not None:
            told["workbench.money"] = call["money"]
        yield Span(f"chat {model}", start, end, told, inside, "the call failed" if call["failed"] else "")
        start = end


def _steps(records: Sequence[Data]) -> Iterator[Span]:
    for record in records:
        if record["started_at"] and not record.get("replayed") and record["status"] != "skipped":
            start = _ns(record["started_at"])
            told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": record["tool"]}
            told |= {"workbench.step": record["step_id"], "workbench.status": record["status"]}
            told["workbench.found"] = record["output_summary"].get("evidence_count", 0)
            end = start + _ms(record["duration_ms"])
            yield Span(f"execute_tool {record['tool']}", start, end, told, 0, record["error"] or "")


def send(spans: Sequence[Span], exporter: Any = None) -> None:
    """Give the spans to an exporter of OpenTelemetry's SDK; None for OTLP over HTTP."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.trace import Status, StatusCode, set_span_in_context

    if exporter is None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter()
    provider = TracerProvider(resource=Resource.create({"service.name": "workbench"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer, made = provider.get_tracer("workbench"), list[Any]()
    for span in spans:
        within = None if span.inside is None else set_span_in_context(made[span.inside])
        one = tracer.start_span(span.name, within, attributes=span.attributes, start_time=span.start)
        if span.failed:
            one.set_status(Status(StatusCode.ERROR, span.failed[:_PREVIEW]))
        made.append(one)
    for one, span in reversed(list(zip(made, spans, strict=True))):
        one.end(end_time=span.end)
    provider.shutdown()


def sent(run: Recording) -> None:
    """Send the spans of a run; of an incognito one no one hears."""
    if not run.options.get("incognito"):
        send(spans_of(run))


def _ns(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp() * 1e9)


def _ms(duration: float) -> int:
    return int(duration * 1e6)
