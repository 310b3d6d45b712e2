"""Counters of runs for Prometheus: how many, how long, what they took. ``WORKBENCH_METRICS=9464`` serves them.

No text of a run is a label: labels are a status, a role, a kind of tokens, or the name of a registered tool. So
incognito runs count too. What the tape of another run answered was done there, and is not counted again.
"""

from __future__ import annotations

import logging
import threading
import tomllib
from collections.abc import Container
from pathlib import Path
from typing import Any

from workbench.records.figures import own
from workbench.runs.recording import Recording
from workbench.settings import ROLES
from workbench.state import Json

_OTHER_LABEL = "other"
_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_served: dict[str, Metrics] = {}
_lock = threading.Lock()
_log = logging.getLogger(__name__)


class Metrics:
    """The counters that this process serves at one address, until it ends: a counter never goes back."""

    def __init__(self, address: str):
        from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server

        registry = CollectorRegistry()
        self._counters: Json = {
            name: Counter(f"workbench_{name}", description, labels, registry=registry)
            for name, (description, labels) in _TABLE["counters"].items()
        }
        self._seconds: Json = {
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
