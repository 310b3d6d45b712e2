"""The clock of a process: wall time that never goes back, because it is read once and counted on from there."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """UTC from one reading of the wall clock plus elapsed monotonic time: changing the clock changes no duration."""

    def __init__(self) -> None:
        self._wall, self._began = datetime.now(UTC), time.monotonic()

    def now(self) -> datetime:
        """UTC, with microseconds."""
        return self._wall + timedelta(seconds=time.monotonic() - self._began)

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return time.perf_counter()
