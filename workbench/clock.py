"""The clock of a process: wall time that never goes back, because it is read once and counted on from there."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any


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


@dataclass(frozen=True)
class Ahead:
    """A clock, and by how much it is to be ahead."""

    clock: Any
    by: timedelta

    def now(self) -> datetime:
        """UTC, and later by so much."""
        return self.clock.now() + self.by

    def monotonic(self) -> float:
        """Seconds since some moment, as the clock has them."""
        return self.clock.monotonic()


def going_on(clock: Any, moments: Iterable[datetime]) -> Any:
    """The clock, never before any of these moments: what another process wrote down has been.

    Without this, a wall clock that was set back while a run waited would lay new work over old, and count both once.

    >>> from workbench.testing import EPOCH, ManualClock
    >>> going_on(ManualClock(), [EPOCH + timedelta(days=1)]).now() - EPOCH
    datetime.timedelta(days=1)
    """
    late = max(moments, default=clock.now()) - clock.now()
    return Ahead(clock, late) if late > timedelta(0) else clock
