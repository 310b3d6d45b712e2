"""Blocks as static HTML and plain text, for notebooks, pages and logs; ``terminal`` has them in colour.

``outline`` turns the document of a run into a few blocks of plain data; each form is one small renderer of blocks.
Everything in a document is untrusted: hidden characters are spelled out, HTML is escaped, nothing is markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from workbench.state import Data
from workbench.views.labels import Labels, labels_for
from workbench.views.outline import IN_TERMINAL, Block, Lines, outline
from workbench.views.page import draw
from workbench.views.terminal import plain

CLASSES = "wb-static mathjax_ignore tex2jax_ignore"
"""The last two keep MathJax from reading dollar signs as formulas: in JupyterLab, and in pages made by nbconvert."""


def run_html(document: Data) -> str:
    """Return a run as static HTML: no script, no colour, readable in both themes and without a front-end."""
    return page_html(outline(document), labels_for(document["message"]))


def run_text(document: Data, width: int = 100, parts: Sequence[str] = IN_TERMINAL) -> str:
    """Return a run as plain text of at most ``width`` columns, Chinese characters counted as two."""
    return plain(outline(document, parts), width)


def without_clock(document: Data) -> Data:
    """Return the run's document without its times, so that a cell that is executed again shows the same."""
    return {**document, "log": [], "figures": {**document["figures"], "saved_calls": 0}}


def page_html(blocks: Iterable[Block], labels: Labels, classes: str = CLASSES) -> str:
    """Blocks as static HTML, in the language of these labels."""
    drawn = (draw("blocks.lines" if isinstance(block, Lines) else "blocks.table", block=block) for block in blocks)
    body = "\n".join(drawn)
    return f'<div class="{classes}" lang="{labels.html_lang}">\n{body}\n</div>'


def display_data(blocks: Sequence[Block], labels: Labels) -> dict[str, str]:
    """Blocks as what a notebook keeps of a cell without its widget: text and static HTML."""
    return {"text/plain": plain(blocks, 100), "text/html": page_html(blocks, labels)}


class Shown:
    """Something that shows itself as ``blocks``, in the language of its ``message``: as text, and in a notebook."""

    message: str

    def blocks(self) -> list[Block]:
        """Return what there is to see."""
        raise NotImplementedError

    def __str__(self) -> str:
        return plain(self.blocks(), 100)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return display_data(self.blocks(), labels_for(self.message))

    def _repr_html_(self) -> str:
        return page_html(self.blocks(), labels_for(self.message))
