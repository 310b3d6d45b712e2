"""Where recorded graphs are kept: runs with tapes and decisions, like those of the workspace, in ``graphs.db``.

The session of a run is its graph, and its conversation the thread.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.errors import RunError
from workbench.extensions import Service
from workbench.parts.record.memory import workspace_store
from workbench.records.checkpoints import Checkpoints
from workbench.records.store import RunStore


def beginning(run_id: str) -> str:
    """Return the thread that holds the checkpoints at which a run began, where it continues a conversation."""
    return f"{run_id} beginning"


class GraphDriver:
    """The stores of recorded graphs, and the door through which the workspace works on their runs.

    Attributes:
        runs: what they did.
        saver: where they stand.
        memory: the store that graphs find which were compiled without one.
    """

    def __init__(self, path: Path):
        self.runs = RunStore(path / "graphs.db")
        self.saver = Checkpoints.open(path / "graph-checkpoints.db")
        self.memory = workspace_store(path / "graphs.db")

    async def drive(self, live: Any, run: Any, *_: Any) -> None:
        """Work on a run until it pauses or ends."""
        await run.agent.drive(live, run)

    async def forget(self, run_ids: Sequence[str]) -> None:
        """Delete runs: where they stood, and what they did."""
        await self.saver.delete_threads([thread for run_id in run_ids for thread in (run_id, beginning(run_id))])
        self.runs.remove(run_ids)

    async def close(self) -> None:
        """Close the stores."""
        self.runs.close()
        self.saver.conn.close()
        self.memory.conn.close()


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
        row = self.store.get(run_id)
        name, source = row["session_id"], row["options"].get("source")
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

    def lines(self, **equals: str) -> list[Any]:
        """Return what a list shows of each run, newest first; no graph is loaded for it."""
        lines = self.store.lines(self.store.ids(200, **equals)) if self._are_there else []
        return [
            {"graph": line["session_id"], "status": self._wb._work.status(line["run_id"]), "query": "", "holder": ""}
            | {name: line[name] for name in ("run_id", "message", "created_at")}
            for line in lines
        ]

    @property
    def _are_there(self) -> bool:
        return (self._wb.path / "graphs.db").exists()
