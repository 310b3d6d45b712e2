"""What all figures share: paper, colours, and text that cannot become markup."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from workbench.text import visible

COLOURS: Mapping[str, tuple[str, str, str]] = {
    "done": ("#00705A", "#2A9D83", "#E6F4F0"),
    "running": ("#0B5CAD", "#2F7FD1", "#E8F1FB"),
    "person": ("#855000", "#EBAA2A", "#FFF5DD"),
    "failed": ("#A8201A", "#B3362B", "#FCECEA"),
    "idle": ("#666666", "#8C8C8C", "#F3F3F3"),
}
"""Family -> ink, fill, tint."""
FAMILY = {
    "success": "done",
    "partial": "person",
    "failed": "failed",
    "timeout": "failed",
    "running": "running",
    "waiting": "person",
}
INK, DIM, LINE, STRONG = "#1F1F1F", "#666666", "#E0E0E0", "#3A3A3A"
FONT = "system-ui, -apple-system, 'Segoe UI', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif"


def paper(title: str, width: int, height: int) -> dict[str, Any]:
    """A white page without plotly's own template, which would put six kilobytes into every saved figure."""
    return {
        "template": "none",
        "width": width,
        "height": height,
        "title": {"text": safe(short(title, 90)), "font": {"size": 15, "color": INK}, "x": 0.02, "xanchor": "left"},
        "font": {"family": FONT, "size": 12, "color": INK},
        "paper_bgcolor": "#FFFFFF",
        "plot_bgcolor": "#FFFFFF",
        "margin": {"l": 20, "r": 20, "t": 54, "b": 44},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.02, "yanchor": "top", "font": {"size": 11}},
        "hoverlabel": {"align": "left", "bgcolor": "#FFFFFF", "font": {"color": INK}, "bordercolor": "#9A9A9A"},
    }


def safe(text: str) -> str:
    """Text for plotly, which reads some HTML and hands dollar signs to MathJax: escaped, hidden characters spelled out.

    >>> safe('<a href="x">$1$</a>')
    '&lt;a href="x"&gt;&#36;1&#36;&lt;/a&gt;'
    """
    return escape(visible(text), quote=False).replace("$", "&#36;").replace("\n", " ")


def short(text: str, columns: int) -> str:
    """The text within so many columns, a Chinese character counted as two.

    >>> short("step_0_wedding_banquet", 12), short("饮食男女饮食男女", 9)
    ('step_0_wedd…', '饮食男女…')
    """
    width = 0
    for index, character in enumerate(text):
        width += 2 if character > "\u2e7f" else 1
        if width > columns - (index + 1 < len(text)):
            return text[:index] + "…"
    return text


def wrapped(text: str, columns: int = 60) -> str:
    """Long text for a hover label: lines of about so many characters, at most six of them."""
    from textwrap import wrap

    lines = wrap(visible(text), columns) or [""]
    return "<br>".join(safe(line) for line in [*lines[:6], *(["…"] if len(lines) > 6 else [])])
