"""The knowledge graph around an answer, to be walked through: choose, expand, the way from one entity to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets

from workbench.errors import WorkbenchError
from workbench.runs.pictures import around_answer
from workbench.views.knowledge import entity_card, knowledge_graph, way_told
from workbench.views.labels import Labels
from workbench.views.neighbourhood import Around, around, way
from workbench.views.page import BLANK, draw
from workbench.widgets.panel import Event, Pick

if TYPE_CHECKING:
    from workbench.runs.run import Run


class Explore:
    """Data in: a run. The graph around its answer, in the knowledge base that it asked.

    Attributes:
        found: what is shown, as data.
        chosen: id of the entity that is looked at.
        region: the widget.
    """

    def __init__(self, labels: Labels):
        self._labels = labels
        self.found, self.chosen = Around(), ""
        self._start = ""
        self._knowledge: Any = None
        self.graph, self.card, self.told = Pick(heard=self._pressed), Pick(heard=self._pressed), Pick()
        self.region = ipywidgets.Box([self.graph, ipywidgets.VBox([self.told, self.card])]).add_class("wb-explore")

    def show(self, run: Run) -> None:
        """Show what is around the answer of a run; says so, when its knowledge base is not here."""
        self.chosen, self._start = "", ""
        self.told.show()
        try:
            self.found = around_answer(run)
            self._knowledge = run.workspace.knowledge.get(run.kb_prefix)
        except WorkbenchError as error:
            self.found = Around()
            self.told.show(draw("knowledge.note", text=str(error), status=False))
        self._draw()

    def expand(self, one: str) -> None:
        """Show the neighbours of an entity, or hide them again."""
        opened = [*self.found.opened, one]
        if one in self.found.opened:
            opened = [other for other in self.found.opened if other != one]
        self.found = around(self._knowledge, self.found.seeds, opened, self.found.path)
        self._draw()

    def way(self, start: str, end: str) -> list[str]:
        """Show the shortest way from one entity to another, and give its ids."""
        path = way(self._knowledge, start, end)
        self.found = around(self._knowledge, self.found.seeds, self.found.opened, path)
        self._start = ""
        self.told.show(draw("knowledge.note", text=way_told(self.found, self._labels), status=True))
        self._draw()
        return path

    def _pressed(self, event: Event) -> None:
        if event.key not in self.found.entities:
            return
        if event.kind == "way" and self._start in self.found.entities:
            self.way(self._start, event.key)
        elif event.kind == "expand":
            self.expand(event.key)
        elif event.kind in ("choose", "start"):
            self.chosen = event.key
            self._start = event.key if event.kind == "start" else self._start
            self._draw()

    def _draw(self) -> None:
        self.graph.show(knowledge_graph(self.found, self._labels, self.chosen) if self.found.entities else BLANK)
        self.card.show(entity_card(self.found, self.chosen, self._labels, self._start))
