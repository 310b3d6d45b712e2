"""Who hears of runs that have ended: spans for OpenTelemetry, counters for Prometheus. Neither ever touches a run."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from workbench.extensions import Service
from workbench.parts.serve import metrics, spans
from workbench.ports import Remembering
from workbench.runs.recording import Recording
from workbench.settings import Settings
from workbench.state import Json

_SENDING_S = 5
"""How long closing waits for what is under way."""
_log = logging.getLogger(__name__)


def required(settings: Settings) -> None:
    """Refuse settings that cannot be followed here.

    Raises:
        MissingExtra: a library is not installed.
    """
    spans.required(settings.spans)
    metrics.required(settings.metrics)


class Observers(Service):
    """Those that ``spans`` and ``metrics`` of the settings name; without any, nothing is done.

    A label of a metric may have the names of the workspace's tools; any other tool is "other".
    """

    def __init__(self, wb: Any):
        super().__init__(wb)
        settings, tools = wb.settings, wb.tools
        required(settings)
        self._hear: dict[str, Callable[[Recording], None]] = {}
        self._sending: list[threading.Thread] = []
        self._counters = metrics.opened(settings.metrics)
        if self._counters:
            counters = self._counters
            self._hear["metrics"] = lambda run: counters.count(run, tools)
        if settings.spans:
            self._hear["spans"] = spans.sent

    def ended(self, run: Recording) -> None:
        """Tell them of a run that has ended, in a thread of its own."""
        if not self._hear:
            return
        self._sending = [sending for sending in self._sending if sending.is_alive()]
        thread = threading.Thread(target=self._tell, args=(run,), name="observers", daemon=True)
        self._sending.append(thread)
        thread.start()

    def _tell(self, run: Recording) -> None:
        for name, hear in self._hear.items():
            try:
                hear(run.recording())
            except Exception as error:  # a failure of observing is none of the run
                told = f"{type(error).__name__}: {error}"
                _log.warning("The %s of run %s are lost: %s", name, run.run_id, told)

    def counted(self, name: str, seconds: float | None) -> None:
        """Count what was done next to runs, or that it failed."""
        if self._counters and seconds is None:
            self._counters.failed(name)
        elif self._counters and seconds is not None:
            self._counters.took(name, seconds)

    def memory(self, driver: Any, memory: Any) -> Any:
        """Return the memory, with its recalls counted where anything is."""
        return _Watched(memory, self) if self._counters and memory else memory

    def close(self) -> None:
        """Wait for what is under way, and serve the counters no longer."""
        for sending in self._sending:
            sending.join(_SENDING_S)
        if self._counters:
            self._counters.close()


class _Watched:
    """A memory whose recalls are timed."""

    def __init__(self, memory: Remembering, observers: Observers):
        self._memory, self._observers = memory, observers

    def recall(self, message: str, **whose: Any) -> Json:
        """As the memory does it."""
        begun = time.perf_counter()
        told = self._memory.recall(message, **whose)
        self._observers.counted("vector_search", time.perf_counter() - begun)
        return told

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)
