"""Blocks for a terminal: rich's renderables, and the same without colour as plain text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from workbench.text import visible
from workbench.views.blocks import Block, Lines, Table
from workbench.views.labels import SIGNS

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text


def plain(blocks: Iterable[Block], width: int, wrap: bool = True) -> str:
    """Return blocks as lines of at most ``width`` columns, Chinese characters counted as two.

    Without ``wrap`` a paragraph stays on one line, for other programs.
    """
    from io import StringIO

    from rich.console import Console

    page = StringIO()
    console = Console(
        force_jupyter=False,
        file=page,
        width=width,
        color_system=None,
        force_terminal=False,
        _environ={},
    )
    for block in blocks:
        console.print(
            renderable(block), soft_wrap=not wrap and isinstance(block, Lines) and not block.mark
        )
        console.print()
    return "\n".join(line.rstrip() for line in page.getvalue().rstrip().splitlines())


_LOOKS = {"strong": "bold", "letter": "bold", "dim": "dim", "code": "cyan", "bar": "bright_blue"}
_SIGN_LOOKS = {
    "✓": "green",
    **dict.fromkeys("◐‖↻!", "yellow"),
    **dict.fromkeys("✗◷", "red"),
    "▸": "bright_blue",
}


def sign_look(text: str, default: str = "") -> str:
    """Return the colour of a line that begins with a sign.

    >>> sign_look("✓ done"), sign_look("○ not begun", "dim")
    ('green', 'dim')
    """
    return _SIGN_LOOKS.get(text[:1], default)


def renderable(block: Block) -> RenderableType:
    """Return a block for rich's console."""
    return _lines(block) if isinstance(block, Lines) else _table(block)


def _lines(block: Lines) -> RenderableType:
    from rich import box
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    heading = [Text(block.heading, "bold")] if block.heading else []
    lines = Group(
        *heading, *(Text.assemble(*(_text(*span) for span in line)) for line in block.spans())
    )
    if not block.mark:
        return lines
    return Panel(
        lines,
        border_style=_SIGN_LOOKS[SIGNS[block.mark]],
        box=box.ROUNDED,
        expand=False,
        padding=(0, 1),
    )


def _table(block: Table) -> RenderableType:
    """Return a table; an address is below the text of its row, where it is not broken."""
    from rich import box
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="dim",
        show_edge=False,
    )
    shown = [i for i, column in enumerate(block.columns) if column.kind != "url"]
    addresses = [i for i, column in enumerate(block.columns) if column.kind == "url"]
    first = next((i for i in shown if block.columns[i].kind == "text"), None)
    for i in shown:
        column = block.columns[i]
        table.add_column(
            Text(visible(column.name)),
            justify="right" if column.kind == "number" else "left",
            no_wrap=column.whole or column.kind in ("bar", "number", "status"),
            overflow="fold",
        )
    for row in block.rows:
        below = "".join(f"\n{row[i]}" for i in addresses if row[i])
        table.add_row(
            *(_text(row[i] + (below if i == first else ""), block.columns[i].kind) for i in shown)
        )
    title = [Text(visible(block.title), "bold")] if block.title else []
    return Group(
        *title,
        *map(renderable, block.inside),
        *([table] if block.rows else []),
        *(Text(visible(note)) for note in block.notes),
    )


def _text(value: str, look: str) -> Text:
    """Return a cell or span in its look, with the lines after the first dimmed."""
    from rich.text import Text

    value = "█" * max(round(24 * float(value)), 1) if look == "bar" else visible(value)
    style = sign_look(value, "dim") if look == "status" else _LOOKS.get(look, "")
    first, _, rest = value.partition("\n")
    return Text(first, style).append(f"\n{rest}", "dim") if rest else Text(value, style)
