"""What all figures share: paper, colours, and text that cannot become markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from textwrap import wrap
from typing import Any

from plotly.graph_objects import Scatter

from workbench.text import visible
from workbench.views.labels import Labels

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
    "recorded": "done",
    "partial": "person",
    "failed": "failed",
    "timeout": "failed",
    "running": "running",
    "waiting": "person",
    "paused": "person",
    "interrupted": "person",
}
"""Status -> family; other statuses are idle."""
HOLLOW = ("pending", "skipped", "cancelled", "recorded")
"""Statuses of what did not run here: drawn dashed and empty."""
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


def inks(status: str) -> tuple[str, str, str]:
    """Ink, fill and tint of a status."""
    return COLOURS[FAMILY.get(status, "idle")]


def paper(
    title: str, width: float, height: float, under: str = "", below: int = 44, left: int = 20, **more: Any
) -> dict[str, Any]:
    """A white card without plotly's own template, which would put six kilobytes into every saved figure.

    White in every theme, like a printed page: a saved figure does not know where it is read, and no ink is legible on
    white and on black both. ``Picture.dark`` gives the other card. ``below`` has room for the legend, in pixels.
    """
    corner = {"x": 0, "xanchor": "left", "xref": "container", "y": 1, "yanchor": "top", "yref": "container"}
    return {
        "template": "none",
        "width": round(width),
        "height": round(height),
        "title": {
            "text": safe(short(title, 90)),
            "font": {"size": 15, "color": INK},
            "subtitle": {"text": safe(short(under, 150)), "font": {"size": 12, "color": DIM}},
            "pad": {"l": 20, "t": 16},
            **corner,
        },
        "font": {"family": FONT, "size": 12, "color": INK},
        "paper_bgcolor": GROUND,
        "plot_bgcolor": GROUND,
        "margin": {"l": left, "r": 20, "t": 70 if under else 52, "b": below},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 0, "yanchor": "bottom", "yref": "container"}
        | {"font": {"size": 11, "color": INK}, "itemclick": False, "itemdoubleclick": False},
        "hoverlabel": {"align": "left", "bgcolor": GROUND, "font": {"color": INK}, "bordercolor": FAINT},
        **more,
    }


def hidden(start: float, end: float) -> dict[str, Any]:
    """An axis that only holds places."""
    return {"visible": False, "range": [start, end]}


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """An axis with a grid."""
    named = {"title": {"text": safe(title), "font": {"size": 11, "color": DIM}, "standoff": 8}} if title else {}
    return {"tickfont": {"color": INK}, "gridcolor": LINE, "zeroline": False, **named, **more}


def swatch(name: str, fill: str = CLEAR, edge: str = CLEAR, symbol: str = "square") -> Any:
    """A line of the legend with a sign."""
    marker = {"symbol": symbol, "size": 11, "color": fill, "line": {"color": edge, "width": 1.4}}
    return Scatter(x=[None], y=[None], name=safe(name), hoverinfo="skip", mode="markers", marker=marker)


def stroke(name: str, **line: Any) -> Any:
    """A line of the legend with a line."""
    return Scatter(x=[None], y=[None], name=safe(name), hoverinfo="skip", mode="lines", line=line)


def statuses(found: Iterable[str], labels: Labels, solid: bool = False) -> list[Any]:
    """The legend of these statuses."""
    entries = []
    for status in dict.fromkeys(found):
        _, fill, tint = inks(status)
        name = f"┄ {labels('step_recorded')}" if status == "recorded" else labels.status(status)
        entries.append(swatch(name, CLEAR if status in HOLLOW else fill if solid else tint, fill))
    return entries


Point = tuple[float, float]
Said = tuple[float, float, str]
"""A place, and what is said there."""


def words(places: Iterable[Said], size: float, colour: str | list[str], anchor: str = "middle right") -> Any:
    """Texts, each beside its place, in one colour or each in its own; what they say has been made safe."""
    look = {"textposition": anchor, "textfont": {"size": size, "color": colour}, "hoverinfo": "skip"}
    return _scatter(places, "text", mode="text", cliponaxis=False, **look)


def points(places: Iterable[Said], size: float) -> Any:
    """Points without ink that carry the words of what stands there."""
    marker = {"size": size, "opacity": 0, "symbol": "square"}
    return _scatter(places, "hovertext", mode="markers", marker=marker, hoverinfo="text")


def _scatter(places: Iterable[Said], text: str, **look: Any) -> Any:
    found = list(places)
    x, y = [round(x, 3) for x, _, _ in found], [round(y, 3) for _, y, _ in found]
    return Scatter(x=x, y=y, showlegend=False, **{text: [said for _, _, said in found]}, **look)


def lines(paths: Iterable[str], **line: Any) -> dict[str, Any]:
    """Many lines or boxes of one look as one shape: two hundred steps stay small."""
    return {"type": "path", "path": "".join(paths), "line": line, "layer": "below"}


def box(x0: float, x1: float, y0: float, y1: float) -> str:
    """The path of a box."""
    return f"M{x0:.4g},{y0:.4g}L{x1:.4g},{y0:.4g}L{x1:.4g},{y1:.4g}L{x0:.4g},{y1:.4g}Z"


def curve(a: Point, b: Point, c: Point, d: Point) -> str:
    """The path of a curve from ``a`` to ``d``, bent towards ``b`` and ``c``."""
    return "M{:.4g},{:.4g}C{:.4g},{:.4g} {:.4g},{:.4g} {:.4g},{:.4g}".format(*a, *b, *c, *d)


def boxes(placed: Iterable[tuple[str, str]], here: str = "") -> list[dict[str, Any]]:
    """Boxes by status: tinted what ran, dashed and empty what did not, with a heavy border where the run stands."""
    kinds: dict[str, list[str]] = {}
    for status, path in placed:
        kinds.setdefault(status, []).append(path)
    shapes = []
    for status, paths in kinds.items():
        ink, fill, tint = inks(status)
        heavy, hollow = status == here, status in HOLLOW and status != here
        line = {"color": ink if heavy else fill, "width": 3 if heavy else 1.4, "dash": "dash" if hollow else "solid"}
        shapes.append(lines(paths, **line) | {"fillcolor": GROUND if hollow else tint})
    return shapes


def edges(drawn: Iterable[tuple[bool, bool, str]], width: float = 1) -> list[dict[str, Any]]:
    """Edges, each (whether it is heavy, whether it is dotted, its path)."""
    kinds: dict[tuple[bool, bool], list[str]] = {}
    for heavy, dotted, path in drawn:
        kinds.setdefault((heavy, dotted), []).append(path)
    looks = {True: {"color": STRONG, "width": 3 * width}, False: {"color": FAINT, "width": 1.3 * width}}
    return [
        lines(paths, **looks[heavy], dash="dot" if dotted else "solid")
        for (heavy, dotted), paths in sorted(kinds.items())
    ]


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


def hover(name: str, *told: str) -> str:
    """What stands under the pointer: a name, and lines of about 60 characters, of each text at most three."""
    parts = [f"<b>{safe(short(name, 100))}</b>"]
    for text in filter(None, told):
        found = wrap(visible(text[:300]), 60)
        parts += [*map(safe, found[:3]), *(["…"] if len(found) > 3 else [])]
    return "<br>".join(parts)
