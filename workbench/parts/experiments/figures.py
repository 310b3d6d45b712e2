"""Configurations as points, lines and questions: quality against cost, parameters side by side, what turned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pandas import DataFrame, factorize
from plotly import express
from plotly.graph_objects import Parcoords

from workbench.state import Json
from workbench.views.drawing import COLOURS
from workbench.views.figures.picture import axis

if TYPE_CHECKING:
    from workbench.parts.experiments.results import Results


Figure = tuple[DataFrame, Sequence[Any], str, Json]
"""The rows, what is drawn of them, the line under it, and the axes."""


def quality_and_cost(experiment: Results, _: int) -> Figure:
    """Draw the figure of each configuration against the seconds of a cell; those that none beats are joined."""
    table = experiment.compare()
    measure = experiment.spec.measure
    scored = table.dropna(subset=[measure])
    by_time = scored.sort_values(["seconds", measure], ascending=[True, False])
    front = by_time[by_time[measure] > by_time[measure].cummax().shift(fill_value=-1)]
    bars = {}
    if "high" in scored:
        above = scored["high"] - scored["difference"]
        below = scored["difference"] - scored["low"]
        bars = {"error_y": above.fillna(0).clip(0), "error_y_minus": below.fillna(0).clip(0)}
    traces = [
        *_points(scored, "seconds", measure, "configuration", **bars),
        *_line(front["seconds"], front[measure]),
    ]
    under = "bars: interval of the difference to the first configuration; along the line none is better and faster"
    axes = _axes("seconds per cell", f"{measure}, %")
    return table, traces, under, axes


def parallel(experiment: Results, _: int) -> Figure:
    """Draw each configuration as a line through its parameters, its seconds and its figure."""
    table = experiment.compare()
    measure = experiment.spec.measure
    dimensions = []
    for name, texts in DataFrame(experiment.variants).astype(str).items():
        values, levels = factorize(texts)
        dimensions.append(
            {
                "label": name,
                "values": values,
                "tickvals": [*range(len(levels))],
                "ticktext": levels,
            }
        )
    dimensions += [
        {"label": name, "values": table[name].astype(float)} for name in ("seconds", measure)
    ]
    line = {"color": table[measure].astype(float), "colorscale": "Viridis", "showscale": True}
    under = "drag along an axis to keep some of the configurations"
    return table, [Parcoords(dimensions=dimensions, line=line)], under, {}


def by_question(experiment: Results, configuration: int) -> Figure:
    """Draw each question by its score in two configurations; points of one place are one, larger."""
    table = experiment.pair(configuration)
    first, second = table.columns
    rows = (100 * table).round().reset_index(names="question")
    places: Any = rows.groupby([first, second], as_index=False)["question"]
    spots = places.agg(", ".join).assign(n=places.size()["size"])
    under = "above the line the other configuration is better"
    traces = [*_line([0, 100], [0, 100]), *_points(spots, first, second, "question", size="n")]
    return table.reset_index(), traces, under, _axes(f"{first}, %", f"{second}, %")


def by_hiddenness(experiment: Results, configuration: int) -> Figure:
    """Draw the change of each question by how hidden its gold documents are."""
    table = experiment.hidden(configuration)
    points = _points((100 * table).reset_index(names="question"), "hidden", "change", "question")
    axes = _axes(
        "hidden, %: 100 less the mean percentile of the gold documents by words and meaning",
        "change, points",
    )
    under = "above 0 the other configuration is better; right of it are the questions that plain searches miss"
    traces = [*_line([0, 100], [0, 0]), *points]
    return table.reset_index(), traces, under, axes


KINDS = {
    "cost": quality_and_cost,
    "parallel": parallel,
    "questions": by_question,
    "hidden": by_hiddenness,
}


def _points(table: DataFrame, x: str, y: str, name: str, **more: Any) -> Sequence[Any]:
    colours = [COLOURS["run-fill"]]
    return express.scatter(
        table, x=x, y=y, hover_name=name, color_discrete_sequence=colours, **more
    ).data


def _line(x: Any, y: Any) -> Sequence[Any]:
    return express.line(
        x=x, y=y, color_discrete_sequence=[COLOURS["dim"]], line_dash_sequence=["dot"]
    ).data


def _axes(x: str, y: str) -> Json:
    return {"xaxis": axis(x), "yaxis": axis(y), "showlegend": False}
