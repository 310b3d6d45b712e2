"""How well tools rank a set's documents, a row a tool, each figure with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.figures.paper import COLOURS, GROUND, INK, LINE, paper, safe, short
from workbench.labels import Labels

if TYPE_CHECKING:
    from workbench.figures.picture import Picture

_LOOKS = (("circle", "running"), ("diamond", "done"), ("square", "person"), ("cross", "failed"))
_ROW = 34


def rankings(table: Mapping[str, Any], measures: Sequence[str] = ("R@5", "all@5"), language: str = "en") -> Picture:
    """The figures of each tool in percent, with their intervals of 95 %, in the table's own order.

    Args:
        table: of ``evaluating.bench.eval_retrieval``.
        measures: which of its figures, at most four.
        language: of the words.
    """
    from workbench.figures.picture import Picture

    labels, tools = Labels(language), list(table["tools"])
    rows = [
        {"tool": tool, "measure": name, "value": line[name], "low": line["ci"][name][0], "high": line["ci"][name][1]}
        for tool, line in table["tools"].items()
        for name in measures
    ]
    title = labels("rankings", set=table["set"], n=table["questions"])
    axis = {"zeroline": False, "tickfont": {"color": INK}, "gridcolor": LINE, "fixedrange": True}
    layout = {
        **paper(title, width=760, height=130 + _ROW * len(tools), under=labels("rankings_told"), below=72),
        "xaxis": {**axis, "range": [-2, 102], "ticksuffix": " %"},
        "yaxis": {**axis, "range": [len(tools) - 0.5, -0.5], "showgrid": False, "tickmode": "array"}
        | {"tickvals": list(range(len(tools))), "ticktext": [safe(short(tool, 36)) for tool in tools]},
    }
    layout["margin"] = {**layout["margin"], "l": 180}
    traces = [
        _trace([row for row in rows if row["measure"] == name], look, (number + 0.5) / len(measures) - 0.5)
        for number, (name, look) in enumerate(zip(measures, _LOOKS, strict=False))
    ]
    return Picture.of(rows, traces, layout)


def _trace(rows: Sequence[Mapping[str, Any]], look: tuple[str, str], shift: float) -> Any:
    from plotly.graph_objects import Scatter

    sign, family = look
    ink = COLOURS[family][0]
    return Scatter(
        x=[row["value"] for row in rows],
        y=[round(place + shift * 0.5, 2) for place in range(len(rows))],
        mode="markers",
        name=safe(rows[0]["measure"]) if rows else "",
        marker={"symbol": sign, "color": ink, "size": 9, "line": {"width": 1, "color": GROUND}},
        error_x={"type": "data", "symmetric": False, "color": ink, "thickness": 1.2, "width": 3}
        | {"array": [round(row["high"] - row["value"], 2) for row in rows]}
        | {"arrayminus": [round(row["value"] - row["low"], 2) for row in rows]},
        hoverinfo="text",
        hovertext=[
            f"<b>{safe(short(row['tool'], 40))}</b><br>{safe(row['measure'])} {row['value']:.1f} % "
            f"[{row['low']:.1f}, {row['high']:.1f}]"
            for row in rows
        ],
    )
