"""What all figures share: paper, colours, and text that cannot become markup."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from textwrap import wrap
from typing import Any

from workbench.text import visible
from workbench.views.drawing import COLOURS, DARK, DIM, FONT, GROUND, INK, LINE, short

FAINT = "#9A9A9A"
IN_THE_DARK: Mapping[str, str] = {
    **{light: dark for family, colours in COLOURS.items() for light, dark in zip(colours, DARK[family], strict=True)},
    GROUND: "#111111",
    INK: "#E0E0E0",
    LINE: "#333333",
    FAINT: "#757575",
}


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


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """An axis with a grid."""
    named = {"title": {"text": safe(title), "font": {"size": 11, "color": DIM}, "standoff": 8}} if title else {}
    return {"tickfont": {"color": INK}, "gridcolor": LINE, "zeroline": False, **named, **more}


def lanes_axis(names: Mapping[int, str], ends: list[float], size: int = 11, **more: Any) -> dict[str, Any]:
    """An axis of lanes that have names."""
    font = {"size": size, "color": INK}
    return axis(tickvals=list(names), ticktext=list(names.values()), tickfont=font, range=ends, **more)


def safe(text: str) -> str:
    """Text for plotly, which reads some HTML and hands dollar signs to MathJax: escaped, hidden characters spelled out.

    >>> safe('<a href="x">$1$</a>')
    '&lt;a href="x"&gt;&#36;1&#36;&lt;/a&gt;'
    """
    return escape(visible(text), quote=False).replace("$", "&#36;").replace("\n", " ")


def hover(name: str, *told: str) -> str:
    """What stands under the pointer: a name, and lines of about 60 characters, of each text at most three."""
    parts = [f"<b>{safe(short(name, 100))}</b>"]
    for text in filter(None, told):
        found = wrap(visible(text[:300]), 60)
        parts += [*map(safe, found[:3]), *(["…"] if len(found) > 3 else [])]
    return "<br>".join(parts)
