"""Blocks as static HTML and plain text, for notebooks, pages and logs; ``terminal`` has them in colour.

``outline`` turns the document of a run into a few blocks of plain data; each form is one small renderer of blocks.
Everything in a document is untrusted: hidden characters are spelled out, HTML is escaped, nothing is markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from workbench.text import visible
from workbench.views.labels import Labels, labels_for
from workbench.views.outline import IN_TERMINAL, Block, Column, Lines, outline
from workbench.views.page import Data
from workbench.views.terminal import plain

CLASSES = "wb-static mathjax_ignore tex2jax_ignore"
"""The last two keep MathJax from reading dollar signs as formulas: in JupyterLab, and in pages made by nbconvert."""


def run_html(document: Data) -> str:
    """A run as static HTML: no script, no colour, readable in both themes and without a front-end."""
    return page_html(outline(document), labels_for(document["message"]))


def without_clock(document: Data) -> Data:
    """Return the run's document without its times, so that a cell that is executed again shows the same."""
    return {**document, "log": [], "figures": {**document["figures"], "saved_calls": 0}}


def page_html(blocks: Iterable[Block], labels: Labels, classes: str = CLASSES) -> str:
    """Blocks as static HTML, in the language of these labels."""
    body = "\n".join(_block(block) for block in blocks)
    return f'<div class="{classes}" lang="{labels.html_lang}">\n{body}\n</div>'


def display_data(blocks: Sequence[Block], labels: Labels) -> dict[str, str]:
    """Blocks as what a notebook keeps of a cell without its widget: text and static HTML."""
    return {"text/plain": plain(blocks, 100), "text/html": page_html(blocks, labels)}


class Shown:
    """Something that shows itself as ``blocks``, in the language of its ``message``: as text, and in a notebook."""

    message: str

    def blocks(self) -> list[Block]:
        """What there is to see."""
        raise NotImplementedError

    def __str__(self) -> str:
        return plain(self.blocks(), 100)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return display_data(self.blocks(), labels_for(self.message))

    def _repr_html_(self) -> str:
        return page_html(self.blocks(), labels_for(self.message))


def run_text(document: Data, width: int = 100, parts: Sequence[str] = IN_TERMINAL) -> str:
    """A run as plain text of at most ``width`` columns, Chinese characters counted as two."""
    return plain(outline(document, parts), width)


def _block(block: Block) -> str:
    """Paragraphs as they are; a table inside ``<details>``, folded when the block is."""
    if isinstance(block, Lines):
        return "\n".join(f"<p>{''.join(_html_span(*span) for span in line)}</p>" for line in block.paragraphs)
    heads = "".join(
        f'<th style="text-align:{_align(c)};white-space:nowrap">{_safe(c.name)}</th>' for c in block.columns
    )
    body = "\n".join(
        f"<tr>{''.join(_html_cell(column, cell) for column, cell in zip(block.columns, row, strict=True))}</tr>"
        for row in block.rows
    )
    notes = "".join(f"<p>{_safe(note)}</p>" for note in block.notes)
    table = f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>" if block.rows else ""
    opened = " open" if block.opened else ""
    return f"<details{opened}><summary>{_safe(block.title)}</summary>\n{table}{notes}</details>"


_INKS = {"+": "run", "−": "fail", "~": "person"}
"""Sign of a change -> its family of colour."""


def _html_span(text: str, look: str) -> str:
    tag = {"strong": "strong", "code": "code", "status": "strong"}.get(look)
    return f"<{tag}>{_safe(text)}</{tag}>" if tag else _safe(text)


def _html_cell(column: Column, cell: str) -> str:
    if column.kind == "change":
        lines = (f'<b class="wb-ink wb-{_INKS.get(line[:1], "idle")}">{_safe(line)}</b>' for line in cell.split("\n"))
        return f'<td class="wb-change">{"<br>".join(lines)}</td>'
    first, *rest = cell.split("\n")
    inside = _safe(first)
    if column.kind in ("code", "bar") or rest:
        inside = f"<code>{inside}</code>" if first else ""
    if column.kind == "url" and re.match(r"https?://[^\s]+$", cell):
        inside = f'<a href="{_safe(cell)}" rel="noreferrer">{inside}</a>'
    for line in rest:
        inside += f"<br><code>{_safe(line)}</code>" if column.kind == "code" else f"<br>{_safe(line)}"
    broken = column.kind in ("text", "url") and not column.whole
    whole = "" if broken else ";white-space:nowrap"
    return f'<td style="text-align:{_align(column)};vertical-align:top{whole}">{inside}</td>'


def _align(column: Column) -> str:
    return "right" if column.kind == "number" else "left"


def _safe(text: str) -> str:
    return escape(visible(text), quote=True)
