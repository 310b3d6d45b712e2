"""Counters of runs for Prometheus: how many, how long, what they took. ``WORKBENCH_METRICS=9464`` serves them.

No text of a run is a label: labels are a status, a role, a kind of tokens, or the name of a registered tool. So
incognito runs count too. What the tape of another run answered was done there, and is not counted again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Container
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from workbench.errors import MissingExtra
from workbench.extensions import Service
from workbench.parts.serve import spans
from workbench.records.figures import own
from workbench.runs.stored import Recording, snapshot
from workbench.settings import ROLES
from workbench.text import own_table

_OTHER_LABEL = "other"
_TABLE = own_table(__file__)
_served: dict[str, Metrics] = {}
_lock = threading.Lock()
_log = logging.getLogger(__name__)


class Metrics:
    """The counters that this process serves at one address, until it ends: a counter never goes back."""

    def __init__(self, address: str):
        from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server

        registry = CollectorRegistry()
        self._counters = {
            name: Counter(f"workbench_{name}", description, labels, registry=registry)
            for name, (description, labels) in _TABLE["counters"].items()
        }
        self._seconds = {
            name: Histogram(
                f"workbench_{name}_seconds",
                description,
                labels,
                registry=registry,
                buckets=_TABLE["buckets"],
            )
            for name, (description, labels) in _TABLE["seconds"].items()
        }
        host, _, port = address.rpartition(":")
        self.server, _ = start_http_server(int(port), host.strip("[]") or "127.0.0.1", registry)

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


def serve(address: str) -> Metrics | None:
    """Return the counters that are served at ``HOST:PORT``; None for "", and, with a warning, where that fails."""
    if not address:
        return None
    with _lock:
        try:
            return _served.setdefault(address, _served.get(address) or Metrics(address))
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
        settings = wb.settings
        tools = wb.tools
        if settings.spans:
            _check_library(
                "opentelemetry.exporter.otlp.proto.http", "WORKBENCH_SPANS=otlp", "tracing"
            )
        if settings.metrics:
            _check_library("prometheus_client", "WORKBENCH_METRICS", "metrics")
        self._observe: dict[str, Callable[[Recording], None]] = {}
        self._threads: list[threading.Thread] = []
        self.metrics = counters = serve(settings.metrics)
        if counters:
            self._observe["metrics"] = lambda run: counters.count(run, tools)
        if settings.spans:
            self._observe["spans"] = spans.send

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


def observers(wb: Any) -> Observers | None:
    """Return the observers of a workspace; None where its settings name none."""
    return Observers(wb) if wb.settings.spans or wb.settings.metrics else None


def _check_library(library: str, setting: str, extra: str) -> None:
    with suppress(ModuleNotFoundError):  # of a parent
        if find_spec(library):
            return
    raise MissingExtra(setting, extra)
