"""Whose turn it is: beside a thread that computes, a click waits for no more than half a millisecond at a time."""

from __future__ import annotations

import sys
import threading
from typing import ClassVar

_S = 0.0005


class ShortTurns:
    """Python hands the interpreter over after 5 ms at the earliest, and answering a click takes dozens of such turns
    (every query and every message gives it away): beside a tool in pure Python that adds up to a second. While any run
    is followed, turns are short; afterwards they are what they were.
    """

    _lock: ClassVar = threading.Lock()
    _taken: ClassVar[int] = 0
    _before: ClassVar[float] = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not ShortTurns._taken:
                ShortTurns._before = sys.getswitchinterval()
                sys.setswitchinterval(min(_S, ShortTurns._before))
            ShortTurns._taken += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            ShortTurns._taken -= 1
            if not ShortTurns._taken:
                sys.setswitchinterval(ShortTurns._before)
