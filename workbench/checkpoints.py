"""Where each run stands: LangGraph's checkpoints in a SQLite file, whose errors are ours."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiosqlite
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from workbench.errors import WorkspaceError
from workbench.sqlite import PATIENCE_S, REPAIR, begin_with_log, named

_MEND = f"{REPAIR} Runs that are done can still be shown."
_PARTS = {"id", "ts", "channel_values", "channel_versions", "versions_seen"}


def serializer() -> JsonPlusSerializer:
    """Plain data in, plain data out: nothing is pickled, and no class is made of what is read."""
    return JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)


class Checkpoints(AsyncSqliteSaver):
    """The saver of one workspace; ``Checkpoints.open`` makes it."""

    def __init__(self, connection: aiosqlite.Connection, path: Path):
        super().__init__(connection, serde=serializer())
        self._path = path

    @classmethod
    async def open(cls, path: Path) -> Checkpoints:
        """Open the file, or make it.

        Raises:
            WorkspaceError: it is damaged, full, held or read-only.
        """
        with _named(path):
            first = sqlite3.connect(path, timeout=PATIENCE_S)
            try:
                begin_with_log(first)
            finally:
                first.close()
            saver = cls(await aiosqlite.connect(path, timeout=PATIENCE_S), path)
            try:
                await saver.setup()
                await saver.conn.execute("PRAGMA synchronous = NORMAL")
            except BaseException:
                await saver.conn.close()
                raise
            return saver

    async def aget_tuple(self, config: Any) -> Any:
        """As the saver's."""
        with _named(self._path):
            return _whole(await super().aget_tuple(config))

    async def alist(self, config: Any, **how: Any) -> AsyncIterator[Any]:
        """As the saver's."""
        with _named(self._path):
            async for found in super().alist(config, **how):
                yield _whole(found)

    async def aput(self, *given: Any, **named: Any) -> Any:
        """As the saver's; what was not written to its end is undone, so that the file is left to others."""
        return await self._undone(super().aput(*given, **named))

    async def aput_writes(self, *given: Any, **named: Any) -> None:
        """As the saver's; what was not written to its end is undone, so that the file is left to others."""
        await self._undone(super().aput_writes(*given, **named))

    async def adelete_thread(self, thread_id: str) -> None:
        """As the saver's; all or nothing."""
        await self._undone(super().adelete_thread(thread_id))

    async def _undone(self, writing: Any) -> Any:
        with _named(self._path):
            try:
                return await writing
            except sqlite3.Error:
                async with self.lock:
                    await self.conn.rollback()
                raise


def _whole(found: Any) -> Any:
    """The checkpoint, when it has the parts that every one has."""
    if found is not None and not found.checkpoint.keys() >= _PARTS:
        raise KeyError(f"without {', '.join(sorted(_PARTS - found.checkpoint.keys()))}")
    return found


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        with named(path, WorkspaceError, _MEND):
            yield
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        NotImplementedError,
    ) as error:  # what is packed is not what was written
        raise WorkspaceError(f"{path} is damaged: a checkpoint cannot be read ({error}). {_MEND}") from error
