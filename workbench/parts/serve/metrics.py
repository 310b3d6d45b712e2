"""Who watches runs that have ended: counters for Prometheus, and spans of OpenTelemetry.

``WORKBENCH_METRICS=9464`` serves how many runs there were, how long they took and what.
No text of a run is a label: labels are a status, a role, a kind of tokens, or the name of a registered tool. So
incognito runs count too. What the tape of another run answered was done there, and is not counted again.

``WORKBENCH_SPANS=otlp`` sends a run, when it has ended, over HTTP to ``OTEL_EXPORTER_OTLP_ENDPOINT``; Langfuse accepts
it there too. Names and attributes follow OpenTelemetry's conventions for generative AI (``gen_ai.*``); our own are
named ``workbench.*``. No text of a run is sent, except the first 200 characters of the message with the route's
decision.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from workbench.errors import needing
from workbench.extensions import Service
from workbench.records.figures import own
from workbench.runs.calls import Call
from workbench.runs.stored import Recording, snapshot
from workbench.settings import ROLES
from workbench.state import Data, Json, without_none
from workbench.text import own_table

_OTHER_LABEL = "other"
_TABLE = own_table(__file__)
_lock = threading.Lock()
_log = logging.getLogger(__name__)


class Metrics:
    """The counters that this process serves at one address, until it ends: a counter never goes back."""

    def __init__(self, address: str):
        import prometheus_client

        registry = prometheus_client.CollectorRegistry()
        self._counters = {
            name: prometheus_client.Counter(
                f"workbench_{name}", description, labels, registry=registry
            )
            for name, (description, labels) in _TABLE["counters"].items()
        }
        self._seconds = {
            name: prometheus_client.Histogram(
                f"workbench_{name}_seconds",
                description,
                labels,
                registry=registry,
                buckets=_TABLE["buckets"],
            )
            for name, (description, labels) in _TABLE["seconds"].items()
        }
        host, _, port = address.rpartition(":")
        self.server, _ = prometheus_client.start_http_server(
            int(port), host.strip("[]") or "127.0.0.1", registry
        )

    def count(self, run: Recording, tools: Container[str]) -> None:
        """Count a run that has ended; one that is resumed after a failure is counted again, whole."""
        document = run.to_dict()
        status = document["status"]
        for record in own(document["records"]):
            tool = record["tool"] if record["tool"] in tools else _OTHER_LABEL
            self._counters["steps"].labels(tool, record["status"]).inc()
            if record["status"] != "skipped":
                self._seconds["step"].labels(tool).observe(record["duration_ms"] / 1000)
        for reflection in document["reflections"]:
            self._counters["reflections"].labels(
                str(bool(reflection["should_continue"])).lower()
            ).inc()
        for call in run.calls():
            if not call["replayed"]:
                self._count_call(call)
        self._seconds["run"].labels(status).observe(document["figures"]["total_s"])
        self._counters["runs"].labels(status).inc()  # last: whoever sees the run, sees all of it

    def _count_call(self, call: Any) -> None:
        role = call["role"] if call["role"] in ROLES else _OTHER_LABEL
        self._counters["model_calls"].labels(role, "failed" if call["failed"] else "ok").inc()
        self._seconds["model_call"].labels(role).observe(call["seconds"])
        for kind in ("input", "cached", "output"):
            self._counters["tokens"].labels(role, kind).inc(call[kind] or 0)
        self._counters["money"].labels(role).inc(call["money"] or 0)

    def count_task(self, name: str, seconds: float | None) -> None:
        """Count a task outside runs by its duration; None counts its failure."""
        if seconds is None:
            self._counters[f"{name}_errors"].inc()
        else:
            self._seconds[name].observe(seconds)


_metrics = cache(Metrics)


def serve(address: str) -> Metrics | None:
    """Return the counters that are served at ``HOST:PORT``; None, with a warning, where that fails."""
    with _lock:
        try:
            return _metrics(address)
        except Exception as error:
            # a port that is taken, or whatever the library raises, must not stop a run
            text = "WORKBENCH_METRICS=%s cannot be served, and nothing is counted here: %s: %s. Name another port."
            _log.warning(text, address, type(error).__name__, error)
            return None


# who watches runs that have ended: spans and counters; neither can affect a run


class Observers(Service):
    """The observers that the settings ``spans`` and ``metrics`` name.

    A label of a metric may have the names of the workspace's tools; any other tool is "other".

    Raises:
        MissingExtra: a library is not installed.
    """

    def __init__(self, wb: Any):
        super().__init__(wb)
        self._observe: dict[str, Callable[[Recording], None]] = {}
        self._threads: list[threading.Thread] = []
        self.metrics = None
        if wb.settings.spans:
            with needing("WORKBENCH_SPANS=otlp", "tracing"):
                import opentelemetry.exporter.otlp.proto.http  # noqa: F401
            self._observe["spans"] = send
        if wb.settings.metrics:
            with needing("WORKBENCH_METRICS", "metrics"):
                import prometheus_client  # noqa: F401
            self.metrics = serve(wb.settings.metrics)
        if counters := self.metrics:
            self._observe["metrics"] = lambda run: counters.count(run, wb.tools)

    def ended(self, run: Recording) -> None:
        """Observe a run that has ended, in a thread of its own."""
        if self._observe:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self._threads.append(
                threading.Thread(target=self._run, args=(run,), name="observers", daemon=True)
            )
            self._threads[-1].start()

    def _run(self, run: Recording) -> None:
        for name, observe in self._observe.items():
            try:
                observe(snapshot(run))
            except Exception as error:  # a failure of an observer is not one of the run
                text = f"{type(error).__name__}: {error}"
                _log.warning("The %s of run %s are lost: %s", name, run.run_id, text)

    def counted(self, name: str, seconds: float | None) -> None:
        """Count a task outside runs by its duration; None counts its failure."""
        if self.metrics:
            self.metrics.count_task(name, seconds)

    def close(self) -> None:
        """Wait for observers at work."""
        for thread in self._threads:
            # How long closing waits for observers at work.
            thread.join(5)


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
    provider = TracerProvider(
        resource=Resource.create({"service.name": "workbench"}), shutdown_on_exit=False
    )
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("workbench")
    started = list[Any]()
    for span in run_spans(run):
        parent = None if span.inside is None else set_span_in_context(started[span.inside])
        started.append(
            tracer.start_span(
                span.name, parent, attributes=span.attributes, start_time=span.start
            )
        )
        if span.failed:
            started[-1].set_status(Status(StatusCode.ERROR, span.failed[:_PREVIEW]))
        started[-1].end(end_time=span.end)
    provider.shutdown()


def _ns(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp() * 1e9)
