"""Where recorded graphs are kept: their runs next to those of the workspace, their checkpoints in ``graphs.db``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from workbench.errors import RunError
from workbench.extensions import Service
from workbench.parts.record.memory import workspace_store
from workbench.records.checkpoints import Checkpoints


class GraphDriver:
    """The door through which the workspace works on runs of recorded graphs.

    Attributes:
        runs: what they did; the store of the workspace.
        saver: where they stand.
        memory: the store that graphs find which were compiled without one.
    """

    def __init__(self, wb: Any):
        self.runs, self._path = wb._work.durable.runs, wb.path / "graphs.db"

    @cached_property
    def saver(self) -> Checkpoints:
        """Open the checkpoints when they are first used."""
        return Checkpoints.open(self._path)

    @cached_property
    def memory(self) -> Any:
        """Open the store when it is first used."""
        return workspace_store(self._path)

    def has(self, run_id: str) -> bool:
        """Return whether it is a run of a recorded graph."""
        return bool(self.runs.rows("SELECT 1 FROM runs WHERE run_id = ? AND graph != ''", (run_id,)))

    async def drive(self, live: Any, run: Any, *_: Any) -> None:
        """Work on a run until it pauses or ends."""
        await run.agent.drive(live, run)

    async def forget(self, run_ids: Sequence[str]) -> None:
        """Delete runs: where they stood, and what they did."""
        await self.saver.delete_threads(run_ids)
        self.runs.remove(run_ids)

    async def close(self) -> None:
        """Close what was opened."""
        for opened in vars(self).keys() & {"saver", "memory"}:
            getattr(self, opened).conn.close()


class GraphRuns(Service):
    """The recorded graphs of an open workspace."""

    def __init__(self, wb: Any):
        super().__init__(wb)
        self.driver = GraphDriver(wb)
        self.agents: dict[str, Any] = {}
        wb._work.drivers.append(self.driver)

    def find(self, run_id: str) -> Any:
        """Return a recorded run; one whose graph was not recorded here and cannot be loaded can be looked at."""
        if not self.driver.has(run_id):
            return None
        row = self.driver.runs.get(run_id)
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
