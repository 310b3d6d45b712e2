"""Blocks as static HTML and plain text, for notebooks, pages and logs; ``terminal`` has them in colour.

A document is untrusted: hidden characters are spelled out, and ``markup.py`` escapes HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from markupsafe import Markup

from workbench.state import Json
from workbench.views.blocks import Block
from workbench.views.labels import Labels, labels_for
from workbench.views.markup import draw
from workbench.views.terminal import plain

if TYPE_CHECKING:
    import pandas

Row = TypeVar("Row")

CLASSES = "wb-static mathjax_ignore tex2jax_ignore"
"""The last two keep MathJax from reading dollar signs as formulas: in JupyterLab, and in pages made by nbconvert."""


def page_html(blocks: Iterable[Block], labels: Labels, classes: str = CLASSES) -> Markup:
    """Return blocks as static HTML, marked with the language of the labels."""
    return draw("blocks.page", labels, blocks=blocks, classes=classes)


def display_data(blocks: Sequence[Block], labels: Labels) -> dict[str, str]:
    """Return blocks as text and static HTML, which a notebook keeps of a cell without its widget."""
    return {"text/plain": plain(blocks, 100), "text/html": str(page_html(blocks, labels))}


class Shown:
    """A result that is shown as ``blocks``, in the language of its ``message``: as text, and in a notebook."""

    message: str

    def blocks(self) -> list[Block]:
        """Return the blocks."""
        raise NotImplementedError

    def __str__(self) -> str:
        return plain(self.blocks(), 100)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        return str(page_html(self.blocks(), labels_for(self.message)))


class FrameList(list[Row]):
    """Rows that a notebook shows as a table; a subclass names ``columns``, or says what a row of it is."""

    columns: Sequence[str] = ()

    def rows(self) -> list[Json]:
        """Return a row per entry."""
        return [dict(entry) for entry in cast(Any, self)]

    def to_frame(self) -> pandas.DataFrame:
        """Return one row per entry."""
        import pandas

        return pandas.DataFrame(self.rows(), columns=list(self.columns) or None)

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False))
