"""A plotly figure that carries its rows; its texts cannot become markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from plotly.graph_objects import Figure

from workbench.state import Data, Json
from workbench.text import visible
from workbench.views.drawing import FONT, short

if TYPE_CHECKING:
    import pandas


INK, LINE, CLEAR = "#7c7c7c", "#8c8c8c44", "#0000"
"""Read on a light page as on a dark one, as are the fills of ``COLOURS``."""


class Picture(Figure):
    """A plotly figure with the rows behind it."""

    _rows: tuple[Data, ...] = ()

    def to_frame(self) -> pandas.DataFrame:
        """Return the rows as a table."""
        import pandas

        return pandas.DataFrame(list(self._rows))


def picture(
    rows: Iterable[Data],
    traces: Sequence[Any],
    title: str,
    subtitle: str,
    height: float,
    **layout: Any,
) -> Picture:
    """Draw traces on the page's own ground; plotly's template would put six kilobytes into a saved figure.

    Args:
        rows: the data of the figure.
        traces: of plotly.
        title: the heading.
        subtitle: a line under it.
        height: in pixels.
        layout: further settings of plotly's layout.
    """
    card: Json = {
        "template": "none",
        "autosize": True,
        "height": round(height),
        "title": {
            "text": safe(short(title, 90)),
            "subtitle": {"text": safe(short(subtitle, 130)), "font": {"color": INK}},
        },
        "font": {"family": FONT, "color": INK},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "margin": {"l": 60, "r": 20, "t": 80, "b": 100},
        "legend": {"orientation": "h", "y": 0, "yref": "container"},
    }
    figure = Picture(data=list(traces), layout=card | layout)
    figure._rows = tuple(dict(row) for row in rows)
    return figure


def axis(title: str = "", **more: Any) -> Json:
    """Return an axis with a grid."""
    return {
        "title": {"text": safe(title)},
        "gridcolor": LINE,
        "zeroline": False,
        "automargin": True,
        **more,
    }


def safe(text: str) -> str:
    """Escape a text for plotly, which reads some HTML and passes dollar signs to MathJax; spell out hidden characters.

    >>> safe('<a href="x">$1$</a>')
    '&lt;a href="x"&gt;&#36;1&#36;&lt;/a&gt;'
    """
    return escape(visible(text), quote=False).replace("$", "&#36;").replace("\n", " ")
