"""The tree of forks: runs are opened with a click, two to four are marked and compared."""

from __future__ import annotations

from typing import Any

import ipywidgets
import traitlets

from workbench.draw.tree import LETTERS, forks
from workbench.labels import Labels, labels_for
from workbench.lineage import Tree
from workbench.widgets.pick import Event, Pick, Root


class Forks(traitlets.HasTraits):
    """Runs and what was made of them.

    Attributes:
        chosen: what somebody asked for: ``{"do": "open" | "compare", "runs": [run ids], "n": count}``.
        region: the widget, to be put into another.
    """

    chosen = traitlets.Dict()

    def __init__(self, labels: Labels | None = None):
        super().__init__()
        self._given, self._marked, self._tree = labels, list[str](), Tree(())
        self._pick = Pick()
        self._pick.on_event(self._heard)
        self.region = ipywidgets.VBox([self._pick])
        self._draw()

    def show(self, tree: Tree) -> None:
        """Show this tree; the run from which it is looked at is marked first."""
        known = [node["run_id"] for node in tree.nodes]
        if tree.here != self._tree.here or not self._tree.nodes:
            self._marked = [tree.here] if tree.here else []
        self._marked = [run_id for run_id in self._marked if run_id in known]
        self._tree = tree
        self._draw()

    def widget(self) -> Root:
        """It alone, for a cell."""
        return Root([self.region], self.labels.html_lang)

    @property
    def labels(self) -> Labels:
        """The words: those given, or else in the language of the newest question."""
        return self._given or labels_for(self._tree.nodes[0]["message"] if self._tree.nodes else "")

    def _draw(self) -> None:
        self._pick.show(forks(self._tree.to_dict(), self.labels, self._marked))

    def _heard(self, event: Event) -> None:
        known = {node["run_id"] for node in self._tree.nodes}
        if event.kind == "choose" and event.key in known:
            self._tell("open", [event.key])
        elif event.kind == "mark" and event.key in known:
            self._mark(event.key)
        elif event.kind == "compare" and len(self._marked) >= 2:
            self._tell("compare", list(self._marked))

    def _mark(self, run_id: str) -> None:
        """Take a run into the comparison, or out of it; the fifth takes the place of the fourth."""
        if run_id in self._marked:
            self._marked.remove(run_id)
        else:
            self._marked = [*self._marked[: len(LETTERS) - 1], run_id]
        self._draw()

    def _tell(self, do: str, runs: list[str]) -> None:
        self.chosen = {"do": do, "runs": runs, "n": self.chosen.get("n", 0) + 1}


def forks_of(tree: Tree) -> Root:
    """What a tree shows of itself in a cell: a comparison that is asked for opens below it."""
    below = ipywidgets.VBox()
    told = Forks()
    told.show(tree)

    def act(change: Any) -> None:
        if tree.workspace is None:
            return
        from workbench.widgets.beside import beside_of

        asked = change["new"]
        if asked["do"] == "compare":
            below.children = [beside_of(tree.workspace.compare(*asked["runs"]))]
        else:
            below.children = [tree.workspace.bench(asked["runs"][0])]

    told.observe(act, "chosen")
    return Root([told.region, below], told.labels.html_lang)
