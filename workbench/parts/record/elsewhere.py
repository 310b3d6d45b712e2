"""Runs whose graph is not loaded: they can be shown, and name what is missing before they can continue."""

from __future__ import annotations

from itertools import chain
from types import SimpleNamespace
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from workbench.errors import RunError
from workbench.parts.record.agent import RecordedGraph
from workbench.parts.record.run import GraphRun


class Elsewhere(RecordedGraph):
    """A graph that was recorded in another session, and cannot be loaded by its name.

    Args:
        wb: the workspace.
        name: under which its runs are kept.
        why: what is to be done.
    """

    def __init__(self, wb: Any, name: str, why: str = ""):
        self.name, self.graph, self._wb, self._runs = name, None, wb, wb._services["record"]
        self._serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        self._why = why or (
            f"The graph {name!r} was recorded in another session. Run the cell with wb.record(..., name={name!r}) "
            "here, and its runs continue. A graph that is named ('module:graph') needs none."
        )

    @property
    def _copy(self) -> Any:  # type: ignore[override]
        raise RunError(self._why)

    def run(self, run_id: str) -> GraphRun:
        """Return a run of this graph."""
        return ElsewhereRun(self, run_id)


class ElsewhereRun(GraphRun):
    """A run whose graph is not loaded: its questions are read from its tape."""

    def _snapshot(self) -> Any:
        last = {effect.at: effect for effect in self.effects if effect.kind in ("node", "edge")}
        waiting = [effect.value for effect in last.values() if effect.outcome != "value"]
        return SimpleNamespace(values={}, interrupts=list(chain(*waiting)), next=())
