"""A canvas that is open: shown, edited, saved, worked on with what a knowledge base says; and canvases made of runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from workbench.errors import shown
from workbench.knowledge.reading.canvas import SUFFIX, Canvas, CanvasError, text_of
from workbench.knowledge.reading.files import Unreadable
from workbench.views.canvas import canvas_blocks, drawn
from workbench.views.labels import labels_for
from workbench.views.outline import Block
from workbench.views.render import Shown, page_html


class CanvasFile(Canvas, Shown):
    """A canvas in a file, as ``wb.canvas`` opens it.

    Attributes:
        path: the file.
        nodes, edges: by id, as the file has them; edit them with ``edit``, ``add``, ``connect`` and ``remove``.
        problems: what is wrong in it, with line and mend; it stays in the file as it is.
    """

    def __init__(self, path: Path, workspace: Any):
        try:
            if path.suffix.lower() != SUFFIX:
                raise Unreadable(f"a canvas ends in {SUFFIX}: rename it")
            super().__init__(self.raw_of(path))
        except (Unreadable, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise CanvasError(f"{shown(str(path))} cannot be opened: {why}.") from None
        self.path, self.workspace = path, workspace

    @property
    def message(self) -> str:  # type: ignore[override]
        """A text of it, which says the language."""
        return next((said for node in self.nodes.values() if (said := text_of(node, "text"))), "")

    def blocks(self) -> list[Block]:
        """Nodes, edges and problems as tables."""
        return list(canvas_blocks(self, self.path.name, labels_for(self.message)))

    def _repr_html_(self) -> str:
        labels = labels_for(self.message)
        return drawn(self, labels) + page_html(self.blocks(), labels)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}

    def __repr__(self) -> str:
        return f"<Canvas {self.path.name}: {len(self.nodes)} nodes, {len(self.edges)} edges>"

    def save(self, path: str | Path | None = None) -> Path:
        """Write it: into its file, or into a new one. What was not touched stays as it was, to the byte.

        Raises:
            CanvasError: somebody else has changed the file meanwhile, or the new one is there already.
        """
        place = self.path if path is None else Path(path).expanduser()
        if path is None and self.raw_of(place) != self.was:
            raise CanvasError(f"{shown(str(place))} was changed since it was opened: open it again, or save a copy.")
        return write(place, self.written(), over=path is None)


def write(place: Path, text: str, *, over: bool = False) -> Path:
    """Put a canvas into a file, wholly or not at all.

    Raises:
        CanvasError: it is there already, with something else in it, and may not be replaced; or cannot be written.
    """
    raw, aside = text.encode("utf-8"), place.with_name(f".{place.name}.{os.getpid()}")
    if place.suffix.lower() != SUFFIX:
        raise CanvasError(f"{shown(str(place))} is no name of a canvas: end it in {SUFFIX}.")
    try:
        if not over and place.exists() and place.read_bytes() != raw:
            raise CanvasError(f"{shown(str(place))} is there already: name another file, or remove it.")
        aside.write_bytes(raw)
        aside.replace(place)
    except OSError as error:
        raise CanvasError(f"{shown(str(place))} cannot be written: {error.strerror}.") from None
    return place
