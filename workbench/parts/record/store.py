"""Where recorded graphs are kept: runs with tapes and decisions, like those of the workspace, in ``graphs.db``.

The session of a run is its graph, and its conversation the thread.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from workbench.extensions import Service
from workbench.parts.record.memory import WorkspaceStore
from workbench.records.checkpoints import Checkpoints
from workbench.records.store import RunStore

_MEMORY = """
    CREATE TABLE memory (
        position INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT, key TEXT, item TEXT NOT NULL,
        UNIQUE (namespace, key)
    );
"""


class GraphDriver:
    """The stores of recorded graphs, and the door through which the workspace works on their runs.

    Attributes:
        runs: what they did.
        saver: where they stand.
        memory: the store that graphs find which were compiled without one.
    """

    def __init__(self, path: Path):
        self.runs = RunStore(path / "graphs.db", _MEMORY)
        self.saver = Checkpoints.open(path / "graph-checkpoints.db")
        self.memory = WorkspaceStore(self.runs)

    async def drive(self, live: Any, run: Any, *_: Any) -> None:
        """Work on a run until it pauses or ends."""
        await run.agent.drive(live, run)

    async def close(self) -> None:
        """Close the stores."""
        self.runs.close()
        self.saver.conn.close()


class GraphRuns(Service):
    """The recorded graphs of an open workspace."""

    def __init__(self, wb: Any):
        super().__init__(wb)
        self._driver: GraphDriver | None = None
        self._lock = threading.Lock()
        self.agents: dict[str, Any] = {}

    @property
    def driver(self) -> GraphDriver:
        """Return the stores, opened when first used."""
        with self._lock:
            if self._driver is None:
                self._driver = GraphDriver(self._wb.path)
                self._wb._work.drivers.append(self._driver)
            return self._driver

    @property
    def store(self) -> RunStore:
        """Return the store of the runs."""
        return self.driver.runs

    def find(self, run_id: str) -> Any:
        """Return a recorded run, where its graph was recorded here or can be loaded; else None."""
        if not (self._wb.path / "graphs.db").exists() or not self.store.has(run_id):
            return None
        row = self.store.get(run_id)
        name, source = row["session_id"], row["options"].get("source")
        agent = self.agents.get(name) or (source and self._wb.record(source, name))
        return agent and agent.run(run_id)

    def waiting(self) -> list[Any]:
        """Return the runs that wait for a person, newest first; of graphs that are known here."""
        return [run for run_id in self.store.ids(status="paused") if (run := self.find(run_id)) is not None]
