"""Configurations as points: quality against cost, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from plotly.graph_objects import Scatter

from workbench.state import Data
from workbench.views.drawing import COLOURS, DIM
from workbench.views.figures.picture import Picture, axis, picture


def quality_and_cost(rows: Sequence[Data], measure: str, title: str) -> Picture:
    """Draw the figure of each configuration against the seconds of a cell; those that none beats are joined.

    Args:
        rows: of ``Experiment.compare``: ``configuration``, ``seconds``, the measure, ``difference``, ``low``, ``high``.
        measure: the figure, in percent.
        title: the heading.
    """
    scored = [row for row in rows if row[measure] is not None]
    front = [row for row in scored if not any(_beats(rival, row, measure) for rival in scored)]
    front.sort(key=lambda row: row["seconds"])
    above = [max(0.0, row["high"] - row["difference"]) if row.get("high") == row.get("high") else 0 for row in scored]
    below = [max(0.0, row["difference"] - row["low"]) if row.get("low") == row.get("low") else 0 for row in scored]
    points = Scatter(
        x=[row["seconds"] for row in scored],
        y=[row[measure] for row in scored],
        text=[row["configuration"] for row in scored],
        mode="markers",
        marker={"color": COLOURS["run"][1], "size": 10},
        error_y={"type": "data", "array": above, "arrayminus": below, "color": DIM, "thickness": 1},
        hovertemplate="%{text}<br>%{y:.1f} %, %{x:.2f} s<extra></extra>",
        name="configuration",
    )
    line = Scatter(
        x=[row["seconds"] for row in front],
        y=[row[measure] for row in front],
        mode="lines",
        line={"color": COLOURS["done"][1], "dash": "dot"},
        hoverinfo="skip",
        name="none is better and faster",
    )
    under = "bars: interval of the difference to the first configuration"
    axes = {"xaxis": axis("seconds per cell"), "yaxis": axis(f"{measure}, %")}
    return picture(rows, [points, line], title, under, 400, **axes)


def _beats(row: Data, rival: Data, measure: str) -> bool:
    pairs = [(row[measure], rival[measure]), (-row["seconds"], -rival["seconds"])]
    return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)
