"""Counters of runs for Prometheus: how many, how long, what they took. ``WORKBENCH_METRICS=9464`` serves them.

Nothing that was asked, found, said or named is a label: labels are a status, a role, a kind of tokens, or the name of a
registered tool. So incognito runs count too. What the tape of another run answered was done there, and counts nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Container
from importlib.util import find_spec
from typing import Any

from workbench.errors import MissingExtra
from workbench.records.figures import own
from workbench.runs.recording import Recording
from workbench.settings import ROLES
from workbench.state import Json

_OTHER = "other"
_COUNTERS = {
    "runs": ("Runs that have ended.", ("status",)),
    "steps": ("Attempts at steps.", ("tool", "status")),
    "reflections": ("Judgements on what was found.", ("continued",)),
    "model_calls": ("Calls of models.", ("role", "outcome")),
    "tokens": ("Tokens as the servers count them; those read include the cached ones.", ("role", "kind")),
    "money": ("What models cost, by the prices.", ("role",)),
    "summary_generation_errors": ("Summaries for which the model failed, so that the rules made them.", ()),
}
_SECONDS = {
    "run": ("What runs took, without waiting for a person.", ("status",)),
    "step": ("What attempts at steps took.", ("tool",)),
    "model_call": ("What calls of models took.", ("role",)),
    "summary_generation": ("What it took to bring a conversation's summary up.", ()),
    "vector_search": ("What recalling earlier exchanges took.", ()),
}
"""Name -> what it is, and its labels. A metric more is a line here, and one in ``Metrics.count``."""
_BUCKETS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_served: dict[str, Metrics] = {}
_refused: set[str] = set()
_lock = threading.Lock()
_log = logging.getLogger(__name__)


class Metrics:
    """The counters of this process that are served at one address."""

    def __init__(self, address: str):
        from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server

        registry, self._address, self.users = CollectorRegistry(), address, 0
        self._counters: Json = {
            name: Counter(f"workbench_{name}", what, labels, registry=registry)
            for name, (what, labels) in _COUNTERS.items()
        }
        self._seconds: Json = {
            name: Histogram(f"workbench_{name}_seconds", what, labels, registry=registry, buckets=_BUCKETS)
            for name, (what, labels) in _SECONDS.items()
        }
        self._before: dict[str, tuple[int, int, int]] = {}
        host, _, port = address.rpartition(":")
        self._server, self._thread = start_http_server(int(port), host.strip("[]") or "127.0.0.1", registry)

    def count(self, run: Recording, tools: Container[str]) -> None:
        """Count a run that has ended; of one that had failed and went on, what it did since."""
        document, calls = run.to_dict(), list(run.calls())
        records, judged, status = document["records"], document["reflections"], document["status"]
        seen = self._before.pop(run.run_id, (0, 0, 0))
        if status == "failed":
            self._before[run.run_id] = len(records), len(judged), len(calls)
        self._counters["runs"].labels(status).inc()
        self._seconds["run"].labels(status).observe(document["figures"]["total_s"])
        for record in own(records[seen[0] :]):
            tool = record["tool"] if record["tool"] in tools else _OTHER
            self._counters["steps"].labels(tool, record["status"]).inc()
            if record["status"] != "skipped":
                self._seconds["step"].labels(tool).observe(record["duration_ms"] / 1000)
        for judgement in judged[seen[1] :]:
            self._counters["reflections"].labels(str(bool(judgement["should_continue"])).lower()).inc()
        for call in calls[seen[2] :]:
            if not call["replayed"]:
                self._count_call(call)

    def _count_call(self, call: Any) -> None:
        role = call["role"] if call["role"] in ROLES else _OTHER
        self._counters["model_calls"].labels(role, "failed" if call["failed"] else "ok").inc()
        self._seconds["model_call"].labels(role).observe(call["seconds"])
        for kind in ("input", "cached", "output"):
            self._counters["tokens"].labels(role, kind).inc(call[kind] or 0)
        self._counters["money"].labels(role).inc(call["money"] or 0)

    def took(self, name: str, seconds: float) -> None:
        """Count what is done next to runs."""
        self._seconds[name].observe(seconds)

    def failed(self, name: str) -> None:
        """Count a failure of it."""
        self._counters[f"{name}_errors"].inc()

    def close(self) -> None:
        """Serve them no longer, when no open workspace of this process counts here any more."""
        with _lock:
            self.users -= 1
            if self.users:
                return
            del _served[self._address]
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def required(setting: str) -> None:
    """Refuse a setting that cannot be followed here.

    Raises:
        MissingExtra: the library is not installed.
    """
    if setting and not find_spec("prometheus_client"):
        raise MissingExtra("WORKBENCH_METRICS", "metrics")


def opened(address: str) -> Metrics | None:
    """The counters that are served at ``HOST:PORT``; None for "", and where that cannot be had, which is said once."""
    if not address:
        return None
    with _lock:
        try:
            found = _served.get(address) or Metrics(address)
        except Exception as error:  # a port that is taken, or whatever the library says, is none of the runs
            if address not in _refused:
                told = "WORKBENCH_METRICS=%s cannot be served, and nothing is counted here: %s: %s. Name another port."
                _log.warning(told, address, type(error).__name__, error)
            _refused.add(address)
            return None
        found.users += 1
        _served[address] = found
        return found
