"""Where recorded graphs are kept: runs with tapes and decisions, like those of the workspace, in ``graphs.db``.

The session of a run is its graph, and its conversation the thread.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from workbench.errors import RunError
from workbench.extensions import Service, load
from workbench.parts.record.memory import WorkspaceStore
from workbench.records.checkpoints import Checkpoints
from workbench.records.store import RunStore

_NOT_LOADED = "workbench.parts.record.elsewhere:Elsewhere"
"""The class of graphs that are not loaded; it builds on what is recorded here."""
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
        """Return a recorded run; one whose graph was not recorded here and cannot be loaded can be looked at."""
        if not self._are_there or not self.store.has(run_id):
            return None
        row, why = self.store.get(run_id), ""
        name, source = row["session_id"], row["options"].get("source")
        if name not in self.agents:
            try:
                agent = self._wb.record(source, name) if source else None
            except RunError as error:
                agent, why = None, str(error)
            self.agents[name] = agent or load(_NOT_LOADED)(self._wb, name, why)
        return self.agents[name].run(run_id)

    def lines(self) -> list[Any]:
        """Return what a list shows of each run, newest first; no graph is loaded for it."""
        lines, status = self.store.lines(self.store.ids(200)) if self._are_there else [], self._wb._work.status
        return [
            {"graph": line["session_id"], "status": status(line["run_id"]), "query": "", "holder": ""}
            | {name: line[name] for name in ("run_id", "message", "created_at")}
            for line in lines
        ]

    def waiting(self) -> list[Any]:
        """Return the runs that wait for a person, newest first."""
        return [self.find(run_id) for run_id in self.store.ids(status="paused")] if self._are_there else []

    @property
    def _are_there(self) -> bool:
        return (self._wb.path / "graphs.db").exists()
