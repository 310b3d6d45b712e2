"""How well tools rank, and how far their scores can be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from plotly.graph_objects import Scatter

from workbench.views.drawing import COLOURS, GROUND, short
from workbench.views.figures.paper import FAINT, axis, hover, lanes_axis, paper, safe
from workbench.views.figures.picture import Picture
from workbench.views.labels import Labels

Rows = Sequence[Mapping[str, Any]]
_INKS = [COLOURS[family][0] for family in ("run", "done", "person", "fail", "idle")]
_SIGNS = ("circle", "diamond", "square", "cross", "triangle-up", "x", "star", "hexagon")
_DASHES = ("solid", "dash", "dot", "dashdot")
_ROW = 34
_SMALLEST, _LARGEST = 5.0, 17.0


def rankings(table: Mapping[str, Any], measures: Sequence[str] = ("R@5", "all@5"), language: str = "en") -> Picture:
    """The figures of each tool in percent, with their intervals of 95 %, in the table's own order.

    Args:
        table: of ``evaluating.retrieval.eval_retrieval``.
        measures: which of its figures, at most four.
        language: of the words.
    """
    labels, tools = Labels(language), list(table["tools"])
    rows = [
        {"tool": tool, "measure": name, "value": line[name], "low": line["ci"][name][0], "high": line["ci"][name][1]}
        for tool, line in table["tools"].items()
        for name in measures
    ]
    layout = paper(
        labels("rankings", set=table["set"], n=table["questions"]),
        width=760,
        height=130 + _ROW * len(tools),
        under=labels("rankings_told"),
        below=72,
        left=180,
        xaxis=axis(fixedrange=True, range=[-2, 102], ticksuffix=" %"),
        yaxis=lanes_axis(
            {lane: safe(short(tool, 36)) for lane, tool in enumerate(tools)},
            [len(tools) - 0.5, -0.5],
            size=12,
            fixedrange=True,
            showgrid=False,
        ),
    )
    traces = []
    for number, name in enumerate(measures[:4]):
        here = [row for row in rows if row["measure"] == name]
        shift = ((number + 0.5) / len(measures) - 0.5) * 0.5
        off = {"type": "data", "symmetric": False, "color": _INKS[number], "thickness": 1.2, "width": 3}
        off["array"] = [round(row["high"] - row["value"], 2) for row in here]
        off["arrayminus"] = [round(row["value"] - row["low"], 2) for row in here]
        said = [
            hover(row["tool"], f"{name} {row['value']:.1f} % [{row['low']:.1f}, {row['high']:.1f}]") for row in here
        ]
        places = {"x": [row["value"] for row in here], "y": [round(place + shift, 2) for place in range(len(here))]}
        traces.append(_trace(name, number, said, **places, mode="markers", error_x=off))
    return Picture.of(rows, traces, layout)


def reliability(rows: Rows, title: str = "", language: str = "en") -> Picture:
    """For each tool the share of findings that are right, over the probability that was said of them.

    On the diagonal a score says what is; below it boasts, above it is too modest. A larger sign stands for more
    findings.

    Args:
        rows: ``{"tool", "low", "said", "right", "findings"}`` of each bin (``evaluating.retrieval.bins_of``).
        title: above it.
        language: of the words.
    """
    labels = Labels(language)
    most = max((row["findings"] for row in rows), default=1)
    grid: dict[str, Any] = {"range": [-0.03, 1.03], "dtick": 0.2}
    diagonal = {"x0": 0, "y0": 0, "x1": 1, "y1": 1, "line": {"color": FAINT, "dash": "dot", "width": 1}}
    layout = paper(
        title or labels("reliability"),
        width=720,
        height=620,
        under=labels("reliability_told"),
        below=110,
        left=64,
        xaxis=axis(labels("axis_said"), **grid),
        yaxis=axis(labels("axis_right"), **grid),
        shapes=[{"type": "line", **diagonal}],
    )
    traces = []
    for number, tool in enumerate(dict.fromkeys(str(row["tool"]) for row in rows)):
        here = [row for row in rows if row["tool"] == tool]
        said = [
            hover(
                tool,
                labels("reliability_bin", said=f"{row['said']:.2f}", right=f"{row['right']:.2f}", n=row["findings"]),
            )
            for row in here
        ]
        sizes = [round(_SMALLEST + (_LARGEST - _SMALLEST) * sqrt(row["findings"] / most), 1) for row in here]
        line = {"color": _INKS[number % len(_INKS)], "width": 1.4}
        line["dash"] = _DASHES[number // len(_INKS) % len(_DASHES)]
        places = {"x": [row["said"] for row in here], "y": [row["right"] for row in here]}
        traces.append(_trace(tool, number, said, sizes, **places, mode="lines+markers", line=line))
    return Picture.of((dict(row) for row in rows), traces, layout)


def _trace(name: str, number: int, said: Sequence[str], sizes: Any = 9, **look: Any) -> Any:
    """The points of one measure or tool, in a shape and a colour of their own."""
    marker = {"symbol": _SIGNS[number % len(_SIGNS)], "color": _INKS[number % len(_INKS)], "size": sizes}
    marker["line"] = {"width": 1, "color": GROUND}
    return Scatter(name=safe(short(name, 30)), marker=marker, hoverinfo="text", hovertext=said, **look)
