"""When a model's server is asked once more: after 429 and 5xx, and when it cannot be reached; shown, and bounded.

The client library would retry too, but silently, and a ``Retry-After`` of an hour it ignores and asks again at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

from workbench.models.failures import LimitReached

if TYPE_CHECKING:
    from workbench.settings import Settings

T = TypeVar("T")
LONGEST_BACKOFF_S = 8.0
_PASSING = {408, 409, 425, 429}
_UNREACHED = {"APIConnectionError", "ConnectError", "ReadError", "RemoteProtocolError"}
_SLOW = {"APITimeoutError", "TimeoutException"}
_log = logging.getLogger(__name__)
_hears: ContextVar[Callable[[str], object]] = ContextVar("_hears", default=_log.warning)


@dataclass(frozen=True)
class Patience:
    """How often to ask again, the first pause in seconds (each next is twice as long), the longest that is waited."""

    retries: int = 2
    backoff_s: float = 0.5
    longest_s: float = 60.0

    @classmethod
    def of(cls, settings: Settings) -> Patience:
        """As the settings say."""
        return cls(settings.model_retries, settings.model_backoff_s, settings.model_longest_wait_s)

    def pause(self, error: Exception, failures: int) -> float | None:
        """Seconds until the next try; None when there is to be none.

        Args:
            error: what the last try raised.
            failures: how many tries have failed.
        """
        if failures > self.retries or not passing(error):
            return None
        asked = retry_after(getattr(getattr(error, "response", None), "headers", {}))
        if asked is not None:
            return asked if asked <= self.longest_s else None
        return min(self.backoff_s * 2 ** (failures - 1), LONGEST_BACKOFF_S, self.longest_s)


def passing(error: BaseException) -> bool:
    """Whether asking again may help: the server is busy, in trouble or away. A slow one has had its time already."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return (status in _PASSING or status >= 500) and getattr(error, "code", None) != "insufficient_quota"
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return bool(kinds & _UNREACHED) and not kinds & _SLOW and not isinstance(error.__cause__, LimitReached)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait: a number, or a date that is read by the server's own clock.

    >>> retry_after({"retry-after": "3"}), retry_after({"retry-after-ms": "250"}), retry_after({})
    (3.0, 0.25, None)
    >>> retry_after({"retry-after": "Fri, 02 Jan 2026 00:00:05 GMT", "date": "Fri, 02 Jan 2026 00:00:00 GMT"})
    5.0
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        return seconds if 0 <= seconds < float("inf") else None
    try:
        until = parsedate_to_datetime(headers["retry-after"]).timestamp()
        now = parsedate_to_datetime(headers["date"]).timestamp() if "date" in headers else time.time()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    return max(0.0, until - now)


@contextmanager
def hearing(listener: Callable[[str], object]) -> Iterator[None]:
    """Within this block, what there is to say of a model goes to the listener; otherwise it is logged as a warning."""
    token = _hears.set(listener)
    try:
        yield
    finally:
        _hears.reset(token)


def tell(note: str) -> None:
    """Say something about a model to whoever is hearing."""
    _hears.get()(note)


async def patiently(call: Callable[[], Awaitable[T]], patience: Patience, explain: Callable[[Exception], str]) -> T:
    """What the call gives, after as many tries as patience allows.

    Raises:
        Exception: what the last try raised.
    """
    failures = 0
    while True:
        try:
            return await call()
        except Exception as error:
            failures += 1
            pause = patience.pause(error, failures)
            if pause is None:
                raise
            tell(_once_more(explain(error), pause, failures, patience))
            await asyncio.sleep(pause)


def patiently_sync(call: Callable[[], T], patience: Patience, explain: Callable[[Exception], str]) -> T:
    """``patiently`` for a thread that may block."""
    failures = 0
    while True:
        try:
            return call()
        except Exception as error:
            failures += 1
            pause = patience.pause(error, failures)
            if pause is None:
                raise
            tell(_once_more(explain(error), pause, failures, patience))
            time.sleep(pause)


def _once_more(what: str, pause: float, failures: int, patience: Patience) -> str:
    return f"{what} It is asked again in {pause:g} s ({failures} of {patience.retries})."
