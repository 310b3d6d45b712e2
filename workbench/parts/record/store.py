"""The store of a recorded graph: what its nodes read and write there is kept on the tape.

A fork and a replay find the store as their source found it, and what they write themselves is seen by them alone.

Graphs that were compiled without a store find one of the workspace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from workbench.errors import RunError
from workbench.extensions import Service
from workbench.records.sqlite import Tables
from workbench.records.tape import Effect
from workbench.state import Json

if TYPE_CHECKING:
    from workbench.parts.record.effects import Place

TABLES = """
    CREATE TABLE IF NOT EXISTS store (
        prefix TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
        created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        expires_at TIMESTAMP, ttl_minutes REAL, PRIMARY KEY (prefix, key)
    );
    CREATE INDEX IF NOT EXISTS store_prefix_idx ON store (prefix);
    CREATE INDEX IF NOT EXISTS idx_store_expires_at ON store (expires_at) WHERE expires_at IS NOT NULL;
    CREATE TABLE IF NOT EXISTS store_migrations (v INTEGER PRIMARY KEY);
    INSERT OR IGNORE INTO store_migrations VALUES (4);
"""
"""LangGraph's tables, made at once: a process that was killed in its own steps leaves a store that never opens."""


class RecordedStore(BaseStore):
    """A store whose use in the nodes of a recorded run is recorded.

    Args:
        store: the original.
        place: returns the place of the running code in a node, or None outside of nodes.
    """

    def __init__(self, store: BaseStore, place: Callable[[], Place | None]):
        self.store = store
        self._place = place
        self.supports_ttl = store.supports_ttl
        self.ttl_config = store.ttl_config

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations, or answer them as the source of a fork was answered."""
        ops = list(ops)
        place = self._place()
        if place is None:
            return self.store.batch(ops)
        recorder = place.recorder
        store = self.store if recorder.past is None else recorder.past
        return [recorder.memory_call(op, lambda op=op: store.batch([op])[0]) for op in ops]  # type: ignore[misc]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations, or answer them as the source of a fork was answered."""
        ops = list(ops)
        place = self._place()
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
    store = InMemoryStore()
    places = set()
    for effect in effects:
        if effect.name == "put":
            places.add((tuple(effect.value["namespace"]), effect.value["key"]))
        by_call = {"search": effect.value, "get": [effect.value]}
        items = by_call.get(effect.name, [])
        for item in filter(None, items):
            if (place := (tuple(item.namespace), item.key)) not in places:
                store.put(*place, item.value)
            places.add(place)
    return store


class GraphRuns(Service):
    """The recorded graphs of an open workspace."""

    def __init__(self, wb: Any):
        super().__init__(wb)
        self.agents: Json = {}

    @cached_property
    def store(self) -> SqliteStore:
        """Open the store, which graphs find that were compiled without one, when it is first used."""
        tables = Tables(self._wb.path / "graphs.db", TABLES, 1)
        self._wb._work.stores.callback(tables.close)
        store = SqliteStore(tables._db.conn)
        store.setup()  # the steps of a newer LangGraph
        return store

    def find(self, run_id: str) -> Any:
        """Return a recorded run; one whose graph was not recorded here and cannot be loaded can be looked at."""
        runs = self._wb._work.driver(run_id).runs
        row = runs.get(run_id) if runs.has(run_id) else None
        if not row or not row["graph"]:
            return None
        name = row["graph"]
        source = row["options"].get("source")
        why = (
            f"The graph {name!r} was recorded in another session. Run the cell with wb.record(..., name={name!r}) "
            "here, and its runs continue. A graph that is named ('module:graph') needs none."
        )
        if name not in self.agents:
            try:
                self.agents[name] = self._wb.record(source or None, name, why=why)
            except RunError as error:
                self.agents[name] = self._wb.record(None, name, why=str(error))
        return self.agents[name].run(run_id)
