"""Where each run stands: LangGraph's checkpoints in a SQLite file, whose errors are ours."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from workbench.errors import WorkspaceBusy, WorkspaceError
from workbench.records.sqlite import PATIENCE_S, begin_with_log, translate_errors

FIX = "Put back a copy that `workbench backup` made, or move the file away: runs go on from what they have stored."
_PARTS = {"id", "ts", "channel_values", "channel_versions", "versions_seen"}
Result = TypeVar("Result")


def serializer() -> JsonPlusSerializer:
    """Plain data in, plain data out: nothing is pickled, and no class is made of what is read."""
    return JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)


class Checkpoints(SqliteSaver):
    """The saver of one workspace; ``Checkpoints.open`` makes it.

    What a run writes is a few kilobytes, and done before another thread could have been woken for it: LangGraph's
    asynchronous saver wakes one three times for each of the forty writes of a run, which took a third of the run. Where
    another process holds the file, the loop continues with its other work.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | str):
        super().__init__(connection, serde=serializer())
        self._path = path

    @classmethod
    def open(cls, path: Path | str) -> Checkpoints:
        """Open the file, or make it.

        Raises:
            WorkspaceError: it is damaged, full, held or read-only.
        """
        with _translate_errors(path):
            connection = sqlite3.connect(path, timeout=PATIENCE_S, check_same_thread=False)
            try:
                begin_with_log(connection)
                saver = cls(connection, path)
                saver.setup()
                # SQLite must not sleep on the thread of the event loop: `_patiently` waits in asyncio instead.
                connection.execute("PRAGMA busy_timeout = 0")
            except BaseException:
                connection.close()
                raise
            return saver

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """As the saver's; what was not written to its end is undone, so that the file is left to others."""
        with self.lock, closing(self.conn.cursor()) as cursor:
            if not transaction:
                yield cursor
                return
            with self.conn:
                yield cursor

    async def aget_tuple(self, config: Any) -> Any:
        """Override the saver's method with a patient one."""
        return await self._patiently(lambda: _checked_parts(self.get_tuple(config)))

    async def aput(self, *args: Any, **options: Any) -> Any:
        """Override the saver's method with a patient one."""
        return await self._patiently(partial(self.put, *args, **options))

    async def aput_writes(self, *args: Any, **options: Any) -> None:
        """Override the saver's method with a patient one."""
        await self._patiently(partial(self.put_writes, *args, **options))

    async def delete_threads(self, thread_ids: Sequence[str]) -> None:
        """Delete the checkpoints of threads, all or nothing."""

        def work() -> None:
            with self.cursor() as cursor:
                for table in ("checkpoints", "writes"):
                    cursor.executemany(
                        f"DELETE FROM {table} WHERE thread_id = ?",
                        [(thread_id,) for thread_id in thread_ids],
                    )

        await self._patiently(work)

    async def _patiently(self, work: Callable[[], Result]) -> Result:
        """Do it; while another process holds the file, look again and again without holding up the loop."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                with _translate_errors(self._path):
                    return work()
            except WorkspaceBusy:
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(0.01)


def _checked_parts(checkpoint: Any) -> Any:
    """Return the checkpoint, when it has the parts that every one has."""
    if checkpoint is not None and not checkpoint.checkpoint.keys() >= _PARTS:
        raise KeyError(f"without {', '.join(sorted(_PARTS - checkpoint.checkpoint.keys()))}")
    return checkpoint


@contextmanager
def _translate_errors(path: Path | str) -> Iterator[None]:
    try:
        with translate_errors(path, WorkspaceError, FIX):
            yield
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        NotImplementedError,
    ) as error:  # what is packed is not what was written
        raise WorkspaceError(
            f"{path} is damaged: a checkpoint cannot be read ({error}). {FIX}"
        ) from error
