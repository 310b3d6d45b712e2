"""Observers of runs that have ended: spans for OpenTelemetry, counters for Prometheus. Neither can affect a run."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from workbench.errors import MissingExtra
from workbench.extensions import Service
from workbench.parts.serve import metrics, spans
from workbench.ports import Remembering
from workbench.runs.recording import Recording, recorded
from workbench.state import Json

_log = logging.getLogger(__name__)


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
        self.metrics = counters = metrics.serve(settings.metrics)
        if counters:
            self._observe["metrics"] = lambda run: counters.count(run, tools)
        if settings.spans:
            self._observe["spans"] = spans.send_run

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
                observe(recorded(run))
            except Exception as error:  # a failure of an observer is not one of the run
                text = f"{type(error).__name__}: {error}"
                _log.warning("The %s of run %s are lost: %s", name, run.run_id, text)

    def counted(self, name: str, seconds: float | None) -> None:
        """Count a task outside runs by its duration; None counts its failure."""
        if self.metrics:
            self.metrics.count_task(name, seconds)

    def memory(self, driver: Any, memory: Any) -> Any:
        """Return the memory, with its recalls counted where metrics are served."""
        return _TimedMemory(memory, self) if self.metrics and memory else memory

    def close(self) -> None:
        """Wait for observers at work."""
        for thread in self._threads:
            # How long closing waits for observers at work.
            thread.join(5)


def _check_library(library: str, setting: str, extra: str) -> None:
    with suppress(ModuleNotFoundError):  # of a parent
        if find_spec(library):
            return
    raise MissingExtra(setting, extra)


class _TimedMemory:
    """A memory whose recalls are timed."""

    def __init__(self, memory: Remembering, observers: Observers):
        self._memory = memory
        self._observers = observers

    def recall(self, message: str, **options: Any) -> Json:
        """Recall, and count how long it took."""
        started = time.perf_counter()
        memories = self._memory.recall(message, **options)
        self._observers.counted("vector_search", time.perf_counter() - started)
        return memories

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)
