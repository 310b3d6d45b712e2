"""What all figures share: paper, colours, and text that cannot become markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
DARK: Mapping[str, tuple[str, str, str]] = {
    "done": ("#62D2B6", "#35B095", "#17352E"),
    "running": ("#86BDF6", "#4F9BEA", "#1B2F45"),
    "person": ("#F5C566", "#DDA02B", "#3A2E14"),
    "failed": ("#FFA298", "#E0645A", "#43211D"),
    "idle": ("#ABABAB", "#8A8A8A", "#333333"),
}
"""The same on dark ground."""
FAMILY = {
    "done": "done",
    "success": "done",
    "partial": "person",
    "failed": "failed",
    "timeout": "failed",
    "running": "running",
    "waiting": "person",
    "paused": "person",
    "interrupted": "person",
}
GROUND, INK, DIM, LINE = "#FFFFFF", "#1F1F1F", "#666666", "#E0E0E0"
STRONG, FAINT, NODE = "#3A3A3A", "#9A9A9A", "#6E6E6E"
CLEAR = "rgba(0,0,0,0)"
IN_THE_DARK: Mapping[str, str] = {
    **{light: dark for family, colours in COLOURS.items() for light, dark in zip(colours, DARK[family], strict=True)},
    GROUND: "#111111",
    INK: "#E0E0E0",
    LINE: "#333333",
    STRONG: "#D0D0D0",
    FAINT: "#757575",
    NODE: "#A0A0A0",
}
FONT = "system-ui, -apple-system, 'Segoe UI', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif"


def paper(title: str, width: int, height: int, under: str = "", below: int = 44) -> dict[str, Any]:
    """A white card without plotly's own template, which would put six kilobytes into every saved figure.

    White in every theme, like a printed page: a saved figure does not know where it is read, and no ink is legible on
    white and on black both. ``Picture.dark`` gives the other card. ``below`` has room for the legend, in pixels.
    """
    return {
        "template": "none",
        "width": width,
        "height": height,
        "title": {
            "text": safe(short(title, 90)),
            "font": {"size": 15, "color": INK},
            "subtitle": {"text": safe(short(under, 150)), "font": {"size": 12, "color": DIM}},
            "x": 0,
            "xanchor": "left",
            "xref": "container",
            "pad": {"l": 20, "t": 16},
            "y": 1,
            "yanchor": "top",
            "yref": "container",
        },
        "font": {"family": FONT, "size": 12, "color": INK},
        "paper_bgcolor": GROUND,
        "plot_bgcolor": GROUND,
        "margin": {"l": 20, "r": 20, "t": 70 if under else 52, "b": below},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 0, "yanchor": "bottom", "yref": "container"}
        | {"font": {"size": 11, "color": INK}, "itemclick": False, "itemdoubleclick": False},
        "hoverlabel": {"align": "left", "bgcolor": GROUND, "font": {"color": INK}, "bordercolor": FAINT},
    }


def hidden() -> dict[str, Any]:
    """An axis that only holds places."""
    return {"visible": False}


def entry(name: str, **look: Any) -> Any:
    """A line of the legend."""
    from plotly.graph_objects import Scatter

    return Scatter(x=[None], y=[None], name=safe(name), hoverinfo="skip", **look)


def words(places: Iterable[tuple[float, float, str]], size: float, colour: str, anchor: str = "middle right") -> Any:
    """Texts of one look, each beside its place; what they say has been made safe."""
    from plotly.graph_objects import Scatter

    found = list(places)
    return Scatter(
        x=[round(x, 3) for x, _, _ in found],
        y=[round(y, 3) for _, y, _ in found],
        text=[text for _, _, text in found],
        mode="text",
        textposition=anchor,
        textfont={"size": size, "color": colour},
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
    )


def points(places: Iterable[tuple[float, float, str]], size: float) -> Any:
    """Points without ink that carry the words of what stands there."""
    from plotly.graph_objects import Scatter

    found = list(places)
    return Scatter(
        x=[round(x, 3) for x, _, _ in found],
        y=[round(y, 3) for _, y, _ in found],
        mode="markers",
        marker={"size": size, "opacity": 0, "symbol": "square"},
        hoverinfo="text",
        hovertext=[text for _, _, text in found],
        showlegend=False,
    )


def lines(paths: Iterable[str], **line: Any) -> dict[str, Any]:
    """Many lines or boxes of one look as one shape: two hundred steps stay small."""
    return {"type": "path", "path": "".join(paths), "line": line, "layer": "below"}


def box(x0: float, x1: float, y0: float, y1: float) -> str:
    """The path of a box."""
    return f"M{x0:.4g},{y0:.4g}L{x1:.4g},{y0:.4g}L{x1:.4g},{y1:.4g}L{x0:.4g},{y1:.4g}Z"


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


def wrapped(text: str, columns: int = 60, most: int = 6) -> str:
    """Long text for a hover label: lines of about so many characters, at most so many of them."""
    from textwrap import wrap

    found = wrap(visible(text[: columns * (most + 2)]), columns) or [""]
    return "<br>".join(safe(line) for line in [*found[:most], *(["…"] if len(found) > most else [])])
