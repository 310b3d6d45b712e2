"""The other views of the bench: all runs and their forks, runs side by side, the knowledge graph around the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets

from workbench.errors import GraftConflict
from workbench.labels import Labels
from workbench.run import Run
from workbench.widgets.beside import Compare
from workbench.widgets.knowledge import Explore
from workbench.widgets.tree import Forks
from workbench.widgets.working import Act, displayed

Document = Mapping[str, Any]


class Futures:
    """What is made of runs, and what an answer stands in.

    Args:
        wb: the workspace.
        labels: the words.
        act: does what somebody asked for, and shows the bench anew.
        opens: puts another run on the bench.
        goes: opens another view.
    """

    def __init__(self, wb: Any, labels: Labels, act: Act, opens: Callable[[Run], None], goes: Callable[[str], None]):
        self._wb, self._labels, self._act, self._opens, self._goes = wb, labels, act, opens, goes
        self.forks, self.compare, self.knowledge = Forks(labels), Compare(labels), Explore(labels)
        self._compared: list[str] = []
        self._explored = ""
        parts = (self.forks.region, self.compare.region, self.knowledge.region)
        self.region = ipywidgets.VBox(parts)
        self.region.add_class("wb-futures")
        self.forks.observe(lambda change: self._act(lambda: self._on_forks(change.new)), "chosen")
        self.compare.observe(lambda change: self._act(lambda: self._on_compare(change.new)), "asked")

    def show(self, view: str, run: Run | None, document: Document | None) -> None:
        """Show one of the views."""
        for name, part in (("runs", self.forks), ("compare", self.compare), ("knowledge", self.knowledge)):
            displayed(part.region, name == view)
        if view == "runs":
            self.forks.show(self._wb.tree())
        elif view == "compare":
            self._show_comparison(run)
        elif run and document and self._explored != f"{run.run_id} {document['status']}":
            self._explored = f"{run.run_id} {document['status']}"
            self.knowledge.show(run)

    def beside(self, run_ids: Sequence[str]) -> None:
        """Compare these runs."""
        self._compared = list(run_ids)
        self._goes("compare")

    def _show_comparison(self, run: Run | None) -> None:
        """The runs that were chosen; else this one beside the run that it was made from, or its first fork."""
        ids = self._compared or _relatives(run)
        if len(ids) > 1:
            self.compare.show(self._wb.compare(*ids))

    def _on_forks(self, chosen: Mapping[str, Any]) -> None:
        if chosen.get("do") == "open":
            self._opens(self._wb.run(chosen["runs"][0]))
        elif chosen.get("do") == "compare":
            self.beside(chosen["runs"])

    def _on_compare(self, asked: Mapping[str, Any]) -> None:
        if asked.get("do") == "open":
            self._opens(self._wb.run(asked["run"]))
        elif asked.get("do") == "swap":
            self._compared = list(asked["runs"])
        elif asked.get("do") == "graft":
            self._graft(asked)

    def _graft(self, asked: Mapping[str, Any]) -> None:
        try:
            made = self._wb.graft(asked["steps"], base=asked["base"], prefer=asked.get("prefer"))
        except GraftConflict as conflict:
            self.compare.refuse(str(conflict), conflict.conflicts)
            return
        self._opens(made)


def _relatives(run: Run | None) -> list[str]:
    """The run from which this one was made, and this one; or this one and what was made of it last."""
    if run is None:
        return []
    if run.origin:
        return [run.origin, run.run_id]
    children = [node["run_id"] for node in run.tree().nodes if node["parent"] == run.run_id]
    return [run.run_id, children[-1]] if children else []
