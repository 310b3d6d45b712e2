"""One event loop in one thread: the only place where a workspace's runs do their work.

A notebook cell, a script and papermill all call from outside of it, so none of them needs a loop of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """An event loop that runs until ``close``."""

    def __init__(self, name: str):
        self._loop = asyncio.new_event_loop()
        self._pool = ThreadPoolExecutor(thread_name_prefix=name)
        self._loop.set_default_executor(self._pool)
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin the work; cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work and wait for it; never from inside the loop."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("This would wait for itself: use the twin whose name begins with `a`.")
        return self.submit(work).result()

    def settle(self, timeout: float) -> None:
        """Wait, at most so many seconds, for what was begun in the background: checkpoints of cancelled work too."""

        async def rest() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            if tasks:
                await asyncio.wait(tasks, timeout=timeout)

        self.call(rest())

    def close(self) -> None:
        """Stop the loop and its thread. A synchronous tool that is late ends by itself; nobody waits for it."""
        if self._loop.is_closed():
            return
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
