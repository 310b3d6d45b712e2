"""How far scores can be believed: what was said against what was right, a line a tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

from workbench.views.figures.paper import COLOURS, DIM, FAINT, GROUND, INK, LINE, paper, safe, short
from workbench.views.labels import Labels

if TYPE_CHECKING:
    from workbench.views.figures.picture import Picture


# --- How well tools rank a set's documents, a row a tool, each figure with its interval ---

_LOOKS = (("circle", "running"), ("diamond", "done"), ("square", "person"), ("cross", "failed"))
_ROW = 34


def rankings(table: Mapping[str, Any], measures: Sequence[str] = ("R@5", "all@5"), language: str = "en") -> Picture:
    """The figures of each tool in percent, with their intervals of 95 %, in the table's own order.

    Args:
        table: of ``evaluating.bench.eval_retrieval``.
        measures: which of its figures, at most four.
        language: of the words.
    """
    from workbench.views.figures.picture import Picture

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


# --- How far scores can be believed: what was said against what was right, a line a tool ---

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
    from workbench.views.figures.picture import Picture

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
        _bin_trace(tool, [row for row in rows if row["tool"] == tool], number, most, labels)
        for number, tool in enumerate(tools)
    ]
    return Picture.of((dict(row) for row in rows), traces, layout)


def _axis(text: str) -> dict[str, Any]:
    return {"text": safe(text), "font": {"size": 11, "color": DIM}, "standoff": 8}


def _bin_trace(tool: str, rows: Sequence[Mapping[str, Any]], number: int, most: int, labels: Labels) -> Any:
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
