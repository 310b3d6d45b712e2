"""Blocks as static HTML: no script and no colour, so that it reads the same in both themes and without a front-end."""

from __future__ import annotations

import re
from html import escape

from workbench.show.outline import Block, Column, Lines
from workbench.text import visible


def block_html(block: Block) -> str:
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


def _html_span(text: str, look: str) -> str:
    tag = {"strong": "strong", "code": "code", "status": "strong"}.get(look)
    return f"<{tag}>{_safe(text)}</{tag}>" if tag else _safe(text)


def _html_cell(column: Column, cell: str) -> str:
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
