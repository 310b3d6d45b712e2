"""The store of a recorded graph: what its nodes read and write there goes on the tape.

A fork and a replay find the store as their source found it, and what they write themselves is seen by them alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from langgraph.store.base import BaseStore, Item, Op, PutOp, Result, SearchItem
from langgraph.store.memory import InMemoryStore

from workbench.parts.record.digests import digest, plain

if TYPE_CHECKING:
    from workbench.parts.record.effects import GraphEffect

_NAMES: Mapping[str, str] = {"GetOp": "get", "SearchOp": "search", "PutOp": "put", "ListNamespacesOp": "list"}


class WorkspaceStore(InMemoryStore):
    """The store of a workspace, which graphs find that were compiled without one.

    Args:
        tables: where it is kept; other processes write there too.
    """

    def __init__(self, tables: Any):
        super().__init__()
        self._tables, self._version = tables, None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations, and keep what is written."""
        ops = list(ops)
        [(version,)] = self._tables.rows("SELECT max(position) FROM memory")
        if version != self._version:
            self._version = version
            rows = self._tables.rows("SELECT namespace, key, item FROM memory ORDER BY position")
            super().batch([PutOp(tuple(json.loads(n)), key, json.loads(item)) for n, key, item in rows])
        results = super().batch(ops)
        for op in ops:
            if isinstance(op, PutOp):
                place = (json.dumps(op.namespace), op.key)
                statement = "INSERT OR REPLACE INTO memory (namespace, key, item) VALUES (?, ?, ?)"
                self._tables.write(statement, (*place, json.dumps(op.value)))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations, and keep what is written."""
        return self.batch(ops)


class RecordedStore(BaseStore):
    """A store whose use in the nodes of a recorded run is recorded.

    Args:
        store: the original.
        recorder: returns the recorder of the current run, or None outside of runs.
    """

    def __init__(self, store: BaseStore, recorder: Any):
        self.store, self._recorder = store, recorder
        self.supports_ttl, self.ttl_config = store.supports_ttl, store.ttl_config

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations, or answer them as the source of a fork was answered."""
        ops, recorder = list(ops), self._recorder()
        if recorder is not None and recorder.past is not None:
            results: list[Result] = [recorder.past.answer(op, recorder.next_place(_name(op))) for op in ops]
        else:
            results = self.store.batch(ops)
        return self._kept(recorder, ops, results)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations, or answer them as the source of a fork was answered."""
        ops, recorder = list(ops), self._recorder()
        if recorder is not None and recorder.past is not None:
            return self.batch(ops)
        return self._kept(recorder, ops, await self.store.abatch(ops))

    @staticmethod
    def _kept(recorder: Any, ops: list[Op], results: list[Result]) -> list[Result]:
        if recorder is not None:
            for op, result in zip(ops, results, strict=True):
                recorder.keep_call("memory", _name(op), plain(op), _as_data(op, result))
        return results


class PastStore:
    """What the nodes of a fork or a replay find in the store.

    Args:
        effects: of the runs that it was made from.
    """

    def __init__(self, effects: Iterable[GraphEffect]):
        self._store = InMemoryStore()
        self._recorded: dict[tuple[str, str], GraphEffect] = {}
        self._writes = set[str]()
        self._changed = set[tuple[tuple[str, ...], str]]()
        written = set[tuple[tuple[str, ...], str]]()
        for effect in effects:
            self._recorded[effect.at, digest(effect.input)] = effect
            if effect.name == "put":
                self._writes.add(digest(effect.value))
            for item in _items(effect):
                place = (tuple(item["namespace"]), item["key"])
                if effect.name != "put" and place not in written:
                    self._store.put(*place, item["value"])
                written.add(place)

    def answer(self, op: Op, at: str) -> Result:
        """Return what an operation gives here."""
        if isinstance(op, PutOp):
            self.put(_as_data(op, None))
            return None
        name, args = _name(op), plain(op)
        effect = self._recorded.get((at, digest(args)))
        if effect is None or self.has_changed(name, args):
            return self._store.batch([op])[0]
        return _as_result(name, effect.value)

    def put(self, item: Any) -> None:
        """Write an item; one that no source wrote so changes what reads it."""
        namespace, key = tuple(item["namespace"]), item["key"]
        self._store.batch([PutOp(namespace, key, item["value"])])
        if digest(item) not in self._writes:
            self._changed.add((namespace, key))

    def has_changed(self, name: str, args: Any) -> bool:
        """Return whether a read would find something else than it did in the source."""
        if name in ("put", "list"):
            return name == "list" and bool(self._changed)
        prefix = tuple(args[0])
        if name == "get":
            return (prefix, args[1]) in self._changed
        return any(namespace[: len(prefix)] == prefix for namespace, _ in self._changed)


def _name(op: Op) -> str:
    return _NAMES[type(op).__name__]


def _as_data(op: Op, result: Result) -> Any:
    if isinstance(op, PutOp):
        return {"namespace": list(op.namespace), "key": op.key, "value": op.value}
    if isinstance(result, Item):
        return result.dict()
    return [item.dict() if isinstance(item, Item) else item for item in result] if result is not None else None


def _as_result(name: str, value: Any) -> Any:
    if name == "search":
        return [SearchItem(**{**item, "namespace": tuple(item["namespace"])}) for item in value]
    if name == "get":
        return value and Item(**{**value, "namespace": tuple(value["namespace"])})
    return [tuple(namespace) for namespace in value]


def _items(effect: GraphEffect) -> list[Any]:
    if effect.name == "list" or effect.value is None:
        return []
    return list(effect.value) if effect.name == "search" else [effect.value]
