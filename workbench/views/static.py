"""A run as something to read: static HTML for notebooks, plain text for everything else, rich text for a terminal.

``outline`` turns the document of a run into a few blocks of plain data; each form is one small renderer of blocks.
Everything in a document is untrusted: hidden characters are spelled out, HTML is escaped, nothing is markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.records.timeline import bars
from workbench.state import ExecutionRecord
from workbench.views.labels import Labels, labels_for
from workbench.views.outline import IN_TERMINAL, Block, Document, outline, plan_table, timeline_table
from workbench.views.page import block_html
from workbench.views.terminal import plain, renderable, status_look

__all__ = [
    "IN_TERMINAL",
    "Block",
    "Document",
    "Shown",
    "outline",
    "page_html",
    "plain",
    "plan_text",
    "renderable",
    "run_html",
    "run_text",
    "status_look",
    "timeline_text",
]


CLASSES = "wb-static mathjax_ignore tex2jax_ignore"
"""The last two keep MathJax from reading dollar signs as formulas: in JupyterLab, and in pages made by nbconvert."""


def run_html(document: Document) -> str:
    """A run as static HTML: no script, no colour, readable in both themes and without a front-end."""
    return page_html(outline(document), labels_for(document["message"]))


def page_html(blocks: Iterable[Block], labels: Labels) -> str:
    """Blocks as static HTML, in the language of these labels."""
    body = "\n".join(block_html(block) for block in blocks)
    return f'<div class="{CLASSES}" lang="{labels.html_lang}">\n{body}\n</div>'


class Shown:
    """Something that shows itself as ``blocks``, in the language of its ``message``: as text, and in a notebook."""

    message: str

    def blocks(self) -> list[Block]:
        """What there is to see."""
        raise NotImplementedError

    def __str__(self) -> str:
        return plain(self.blocks(), 100)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        return page_html(self.blocks(), labels_for(self.message))


def run_text(document: Document, width: int = 100, parts: Sequence[str] = IN_TERMINAL) -> str:
    """A run as plain text of at most ``width`` columns, Chinese characters counted as two."""
    return plain(outline(document, parts), width)


def plan_text(plan: Document, records: Iterable[ExecutionRecord] = (), width: int = 100) -> str:
    """A plan as plain text."""
    return plain([plan_table(plan, records, labels_for(plan["problem_statement"]))], width)


def timeline_text(
    log: Iterable[Mapping[str, Any]], records: Iterable[ExecutionRecord], language: str = "en", width: int = 100
) -> str:
    """A timeline as plain text."""
    return plain([timeline_table(bars(log, records), Labels(language))], width)
