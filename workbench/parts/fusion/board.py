"""A canvas in a cell: nodes chosen in the drawing or in a list, an operation on them, its results, and a copy."""

from __future__ import annotations

from typing import Any

import ipywidgets
from markupsafe import Markup

from workbench.errors import WorkbenchError
from workbench.knowledge.reading.canvas import Canvas, node_title
from workbench.parts.fusion.canvas_work import OPERATIONS
from workbench.parts.fusion.canvases import CanvasFile, Worked
from workbench.parts.fusion.drawing import MOST_DRAWN, drawn
from workbench.text import visible
from workbench.views.labels import labels_for
from workbench.views.page import Picture, el, glyph
from workbench.views.render import page_html
from workbench.widgets.panel import CellRoot, Event, Pick, press_button


class Board(CellRoot):
    """A canvas with its operations as a widget.

    Attributes:
        canvas: the canvas.
        worked: the results of the last operation; None before the first.
    """

    def __init__(self, canvas: CanvasFile):
        self.canvas = canvas
        self._shown: Canvas = canvas
        self.worked: Worked | None = None
        self.labels = labels = labels_for(canvas.message)
        self._ids = list(canvas.nodes)[:MOST_DRAWN]
        self.picture, self.told, self.found = Pick(listener=self._pressed).add_class("wb-board-picture"), Pick(), Pick()
        kinds = {i: labels(f"canvas_{canvas.nodes[i]['type']}") for i in self._ids}
        options = [(visible(f"{node_title(canvas.nodes[i]) or i} · {kind}"), i) for i, kind in kinds.items()]
        self.nodes = ipywidgets.SelectMultiple(options=options, description=labels("canvas_choose"), rows=6)
        self.operation = ipywidgets.ToggleButtons(options=[(labels(f"canvas_{name}"), name) for name in OPERATIONS])
        self.work = press_button(labels("canvas_work"), self._work, "wb-primary")
        self.copy = ipywidgets.Text(description=labels("canvas_copy"))
        self.write = press_button(labels("canvas_write"), self._write)
        asking = ipywidgets.HBox([self.operation, self.work]).add_class("wb-buttons")
        writing = ipywidgets.HBox([self.copy, self.write]).add_class("wb-buttons")
        parts = [self.picture, self.nodes, asking, self.told, self.found, writing]
        super().__init__(parts, lang=labels.html_lang)
        self.add_class("wb-board")
        self.nodes.observe(lambda _: self._draw(), "value")
        self._draw()

    def _draw(self) -> None:
        self.picture.show(drawn(self._shown, self.labels, self.nodes.value))
        self.copy.disabled = self.write.disabled = self.worked is None
        self._tell("" if self.nodes.value else self.labels("canvas_all"))

    def _tell(self, text: str, wrong: bool = False) -> None:
        sign = glyph("invalid", self.labels) if wrong else None
        self.told.show(Picture(el("p", sign, " ", text, cls="wb-alert" if wrong else "wb-dim", role="status")))

    def _pressed(self, event: Event) -> None:
        """Toggle the choice of a node."""
        if event.kind == "choose" and event.key.isdecimal() and int(event.key) < len(self._ids):
            node_id, chosen = self._ids[int(event.key)], self.nodes.value
            without = tuple(i for i in chosen if i != node_id)
            self.nodes.value = without if node_id in chosen else (*chosen, node_id)

    def _work(self) -> None:
        self.work.disabled = True
        try:
            self.worked = worked = self.canvas.work(self.operation.value, self.nodes.value)
            self._shown = worked.copy()
            self.copy.value = f"{self.canvas.path.stem}.{worked.operation}{self.canvas.path.suffix}"
            self.found.show(Picture(Markup(page_html(worked.blocks(), self.labels, "wb-worked"))))
            self._draw()
            self.update_static_form()
        except WorkbenchError as error:
            self._tell(str(error), wrong=True)
        finally:
            self.work.disabled = False

    def _write(self) -> None:
        try:
            if self.worked:
                place = self.worked.save(self.canvas.path.parent / self.copy.value).path
                self._tell(self.labels("canvas_written", path=place.name))
        except WorkbenchError as error:
            self._tell(str(error), wrong=True)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the bundle of the canvas, or of the last results."""
        return (self.worked or self.canvas)._repr_mimebundle_()
