"""The store of a recorded graph: what its nodes read and write there is kept on the tape.

A fork and a replay find the store as their source found it, and what they write themselves is seen by them alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from workbench.records.sqlite import PATIENCE_S, begin_with_log

if TYPE_CHECKING:
    from workbench.parts.record.effects import Place
    from workbench.records.tape import Effect


def workspace_store(path: Path) -> SqliteStore:
    """Open the store of a workspace, which graphs find that were compiled without one."""
    connection = sqlite3.connect(
        path, timeout=PATIENCE_S, check_same_thread=False, isolation_level=None
    )
    begin_with_log(connection)
    store = SqliteStore(connection)
    store.setup()
    return store


class RecordedStore(BaseStore):
    """A store whose use in the nodes of a recorded run is recorded.

    Args:
        store: the original.
        place: returns the place of the running code in a node, or None outside of nodes.
    """

    def __init__(self, store: BaseStore, place: Callable[[], Place | None]):
        self.store, self._place = store, place
        self.supports_ttl, self.ttl_config = store.supports_ttl, store.ttl_config

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations, or answer them as the source of a fork was answered."""
        ops, place = list(ops), self._place()
        if place is None:
            return self.store.batch(ops)
        recorder = place.recorder
        store = self.store if recorder.past is None else recorder.past
        return [recorder.memory_call(op, lambda op=op: store.batch([op])[0]) for op in ops]  # type: ignore[misc]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations, or answer them as the source of a fork was answered."""
        ops, place = list(ops), self._place()
        # SQLite takes less time than waking a thread
        if isinstance(self.store, SqliteStore) or (place and place.recorder.past is not None):
            return self.batch(ops)
        results = await self.store.abatch(ops)
        if place is None:
            return results
        return [
            place.recorder.memory_call(op, partial(results.__getitem__, index))
            for index, op in enumerate(ops)
        ]


def past_store(effects: Iterable[Effect]) -> InMemoryStore:
    """Return a store with what runs read from theirs before they wrote it: as they found it."""
    store, places = InMemoryStore(), set[tuple[tuple[str, ...], str]]()
    for effect in effects:
        if effect.name == "put":
            places.add((tuple(effect.value["namespace"]), effect.value["key"]))
        items = (
            effect.value
            if effect.name == "search"
            else [effect.value]
            if effect.name == "get"
            else []
        )
        for item in filter(None, items):
            if (place := (tuple(item.namespace), item.key)) not in places:
                store.put(*place, item.value)
            places.add(place)
    return store
