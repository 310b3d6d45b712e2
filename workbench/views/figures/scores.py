"""How far the scores of tools can be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from plotly.graph_objects import Scatter

from workbench.views.drawing import COLOURS, DIM, short
from workbench.views.figures.picture import Picture, axis, hover, picture, safe
from workbench.views.labels import Labels

_INKS = [ink for ink, _, _ in COLOURS.values()]
_SIGNS = ("circle", "diamond", "square", "cross", "triangle-up", "x", "star", "hexagon")


def reliability(rows: Sequence[Mapping[str, Any]], title: str = "", language: str = "en") -> Picture:
    """For each tool the share of findings that are right, over the probability that was said of them.

    On the diagonal a score says what is; below it boasts, above it is too modest. A larger sign means more
    findings.

    Args:
        rows: ``{"tool", "low", "said", "right", "findings"}`` of each bin (``parts.evaluate.retrieval.bins_of``).
        title: above it.
        language: of the words.
    """
    labels = Labels(language)
    most = max((row["findings"] for row in rows), default=1)
    traces = [
        _trace(number, tool, [row for row in rows if row["tool"] == tool], most, labels)
        for number, tool in enumerate(dict.fromkeys(str(row["tool"]) for row in rows))
    ]
    diagonal = {"type": "line", "x0": 0, "y0": 0, "x1": 1, "y1": 1, "line": {"color": DIM, "dash": "dot"}}
    axes = {"xaxis": axis(labels("axis_said"), range=[0, 1]), "yaxis": axis(labels("axis_right"), range=[0, 1])}
    heading, under = title or labels("reliability"), labels("reliability_told")
    return picture(rows, traces, heading, under, 620, shapes=[diagonal], **axes)


def _trace(number: int, tool: str, rows: Sequence[Mapping[str, Any]], most: int, labels: Labels) -> Scatter:
    """The points of one tool, in a shape and a colour of its own."""
    ink, symbol = _INKS[number % len(_INKS)], _SIGNS[number % len(_SIGNS)]
    words = ({"said": f"{r['said']:.2f}", "right": f"{r['right']:.2f}", "n": r["findings"]} for r in rows)
    return Scatter(
        x=[row["said"] for row in rows],
        y=[row["right"] for row in rows],
        mode="lines+markers",
        name=safe(short(tool, 30)),
        line={"color": ink},
        marker={"symbol": symbol, "size": [5 + round(12 * sqrt(row["findings"] / most), 1) for row in rows]},
        hoverinfo="text",
        hovertext=[hover(tool, labels("reliability_bin", **values)) for values in words],
    )
