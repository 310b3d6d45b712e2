"""Where recorded graphs are kept: runs with tapes and decisions, like those of the workspace, in ``graphs.db``.

The session of a run is its graph, and its conversation the thread.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any
from weakref import WeakValueDictionary

from workbench.extensions import Service
from workbench.records.store import RunStore

_MEMORY = """
    CREATE TABLE memory (
        position INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT, key TEXT, item TEXT NOT NULL,
        UNIQUE (namespace, key)
    );
"""


class GraphRuns(Service):
    """The recorded graphs of an open workspace: their store, opened when first used, and who works on runs."""

    def __init__(self, wb: Any):
        super().__init__(wb)
        self._store: RunStore | None = None
        self._saver: Any = None
        self._memory: Any = None
        self._lock = threading.Lock()
        self.working: WeakValueDictionary[str, Future[None]] = WeakValueDictionary()
        self.agents: dict[str, Any] = {}

    def find(self, run_id: str) -> Any:
        """Return a recorded run, where its graph was recorded here or can be loaded; else None."""
        if not self.store.has(run_id):
            return None
        row = self.store.get(run_id)
        name, source = row["session_id"], row["options"].get("source")
        agent = self.agents.get(name) or (source and self._wb.record(source, name))
        return agent and agent.run(run_id)

    def waiting(self) -> list[Any]:
        """Return the runs that wait for a person, newest first; of graphs that are known here."""
        return [run for run_id in self.store.ids(status="paused") if (run := self.find(run_id)) is not None]

    @property
    def store(self) -> RunStore:
        """Return the store."""
        with self._lock:
            if self._store is None:
                self._store = RunStore(self._wb.path / "graphs.db", _MEMORY)
            return self._store

    def saver(self) -> Any:
        """Return the keeper of checkpoints."""
        from workbench.records.checkpoints import Checkpoints

        with self._lock:
            if self._saver is None:
                self._saver = Checkpoints.open(self._wb.path / "graph-checkpoints.db")
            return self._saver

    def shared_store(self) -> Any:
        """Return the store that graphs find which were compiled without one."""
        from workbench.parts.record.memory import WorkspaceStore

        store = self.store
        with self._lock:
            if self._memory is None:
                self._memory = WorkspaceStore(store)
            return self._memory

    def close(self) -> None:
        """Stop what runs (it stays resumable), and close what was opened."""
        for work in list(self.working.values()):
            work.cancel()
        if self.working:
            self._wb._work.loop.settle(10)
        for opened in (self._store, self._saver and self._saver.conn):
            if opened is not None:
                opened.close()
