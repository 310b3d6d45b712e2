"""The recorded graphs of a workspace, and the store that those find which were compiled without one."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from langgraph.store.sqlite import SqliteStore

from workbench.errors import RunError
from workbench.extensions import Service
from workbench.parts.record.memory import workspace_store


class GraphRuns(Service):
    """The recorded graphs of an open workspace."""

    def __init__(self, wb: Any):
        super().__init__(wb)
        self.agents: dict[str, Any] = {}

    @cached_property
    def store(self) -> SqliteStore:
        """Open the store when it is first used."""
        store = workspace_store(self._wb.path / "graphs.db")
        self._wb._work.stores.callback(store.conn.close)
        return store

    def find(self, run_id: str) -> Any:
        """Return a recorded run; one whose graph was not recorded here and cannot be loaded can be looked at."""
        runs = self._wb._work.driver(run_id).runs
        row = runs.get(run_id) if runs.has(run_id) else None
        if not row or not row["graph"]:
            return None
        name, source = row["graph"], row["options"].get("source")
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
