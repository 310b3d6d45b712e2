"""How far scores can be believed: what was said against what was right, a line a tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

from workbench.figures.paper import COLOURS, DIM, FAINT, GROUND, INK, LINE, paper, safe, short
from workbench.labels import Labels

if TYPE_CHECKING:
    from workbench.figures.picture import Picture

_SIGNS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")
_DASHES = ("solid", "dash", "dot", "dashdot")
_INKS = [COLOURS[family][0] for family in ("running", "done", "person", "failed", "idle")]
_SMALLEST, _LARGEST = 5.0, 17.0


def reliability(rows: Sequence[Mapping[str, Any]], title: str = "", language: str = "en") -> Picture:
    """For each tool the share of findings that are right, over the probability that was said of them.

    On the diagonal a score says what is; below it boasts, above it is too modest. A larger sign stands for more
    findings.

    Args:
        rows: ``{"tool", "low", "said", "right", "findings"}`` of each bin (``evaluating.calibration.rows_of``).
        title: above it.
        language: of the words.
    """
    from workbench.figures.picture import Picture

    labels = Labels(language)
    tools = list(dict.fromkeys(str(row["tool"]) for row in rows))
    most = max((row["findings"] for row in rows), default=1)
    axis = {"range": [-0.03, 1.03], "gridcolor": LINE, "zeroline": False, "tickfont": {"color": INK}, "dtick": 0.2}
    layout = {
        **paper(title or labels("reliability"), width=720, height=620, under=labels("reliability_told"), below=110),
        "xaxis": {**axis, "title": _axis(labels("axis_said"))},
        "yaxis": {**axis, "title": _axis(labels("axis_right"))},
        "shapes": [
            {"type": "line", "x0": 0, "y0": 0, "x1": 1, "y1": 1, "line": {"color": FAINT, "dash": "dot", "width": 1}}
        ],
    }
    layout["margin"] = {**layout["margin"], "l": 64}
    traces = [
        _trace(tool, [row for row in rows if row["tool"] == tool], number, most, labels)
        for number, tool in enumerate(tools)
    ]
    return Picture.of((dict(row) for row in rows), traces, layout)


def _axis(text: str) -> dict[str, Any]:
    return {"text": safe(text), "font": {"size": 11, "color": DIM}, "standoff": 8}


def _trace(tool: str, rows: Sequence[Mapping[str, Any]], number: int, most: int, labels: Labels) -> Any:
    from plotly.graph_objects import Scatter

    ink = _INKS[number % len(_INKS)]
    return Scatter(
        x=[row["said"] for row in rows],
        y=[row["right"] for row in rows],
        mode="lines+markers",
        name=safe(short(tool, 30)),
        line={"color": ink, "width": 1.4, "dash": _DASHES[number // len(_INKS) % len(_DASHES)]},
        marker={
            "symbol": _SIGNS[number % len(_SIGNS)],
            "color": ink,
            "size": [_size(row["findings"], most) for row in rows],
            "line": {"width": 1, "color": GROUND},
        },
        hoverinfo="text",
        hovertext=[_hover(tool, row, labels) for row in rows],
    )


def _size(findings: int, most: int) -> float:
    return round(_SMALLEST + (_LARGEST - _SMALLEST) * sqrt(findings / most), 1)


def _hover(tool: str, row: Mapping[str, Any], labels: Labels) -> str:
    told = labels("reliability_bin", said=f"{row['said']:.2f}", right=f"{row['right']:.2f}", n=row["findings"])
    return f"<b>{safe(short(tool, 40))}</b><br>{safe(told)}"
