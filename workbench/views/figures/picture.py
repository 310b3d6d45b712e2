"""A plotly figure on white paper, in our colours, that carries its data; text in it cannot become markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from plotly.graph_objects import Figure

from workbench.state import Data, Json
from workbench.text import visible
from workbench.views.drawing import DIM, FONT, GROUND, INK, LINE, short

if TYPE_CHECKING:
    import pandas


class Picture(Figure):
    """A figure like any other of plotly's, static, with the rows that it was drawn from."""

    _rows: tuple[Data, ...] = ()

    def to_frame(self) -> pandas.DataFrame:
        """Return what is drawn, as a table."""
        import pandas

        return pandas.DataFrame(list(self._rows))


def picture(
    rows: Iterable[Data], traces: Sequence[Any], title: str, under: str, height: float, **layout: Any
) -> Picture:
    """Draw traces on a white card without plotly's own template, which would put six kilobytes into a saved figure.

    Args:
        rows: what is drawn.
        traces: of plotly.
        title: what stands above.
        under: a line under the title.
        height: in pixels.
        layout: plotly's, as further names.
    """
    card: Json = {
        "template": "none",
        "width": 860,
        "height": round(height),
        "title": {
            "text": safe(short(title, 90)),
            "subtitle": {"text": safe(short(under, 130)), "font": {"color": DIM}},
        },
        "font": {"family": FONT, "color": INK},
        "paper_bgcolor": GROUND,
        "plot_bgcolor": GROUND,
        "margin": {"l": 60, "r": 20, "t": 80, "b": 100},
        "legend": {"orientation": "h", "y": 0, "yref": "container"},
    }
    figure = Picture(data=list(traces), layout=card | layout)
    figure._rows = tuple(dict(row) for row in rows)
    return figure


def axis(title: str = "", **more: Any) -> Json:
    """Return an axis with a grid."""
    return {"title": {"text": safe(title)}, "gridcolor": LINE, "zeroline": False, "automargin": True, **more}


def safe(text: str) -> str:
    """Text for plotly, which reads some HTML and hands dollar signs to MathJax: escaped, hidden characters spelled out.

    >>> safe('<a href="x">$1$</a>')
    '&lt;a href="x"&gt;&#36;1&#36;&lt;/a&gt;'
    """
    return escape(visible(text), quote=False).replace("$", "&#36;").replace("\n", " ")


def hover(name: str, *lines: str) -> str:
    """Return what stands under the pointer: a name, and lines of at most 80 columns."""
    return "<br>".join([f"<b>{safe(short(name, 80))}</b>", *(safe(short(line, 80)) for line in lines)])
