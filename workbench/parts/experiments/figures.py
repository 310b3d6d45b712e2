"""Configurations as points, quality against cost; and what turned, by how hidden its documents are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pandas import DataFrame
from plotly import express

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
    traces = [
        *_points(scored, "seconds", measure, "configuration"),
        *_line(front["seconds"], front[measure]),
    ]
    under = "along the line none is better and faster"
    axes = _axes("seconds per cell", f"{measure}, %")
    return table, traces, under, axes


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
    "hidden": by_hiddenness,
}


def _points(table: DataFrame, x: str, y: str, name: str) -> Sequence[Any]:
    colours = [COLOURS["run-fill"]]
    return express.scatter(table, x=x, y=y, hover_name=name, color_discrete_sequence=colours).data


def _line(x: Any, y: Any) -> Sequence[Any]:
    return express.line(
        x=x, y=y, color_discrete_sequence=[COLOURS["dim"]], line_dash_sequence=["dot"]
    ).data


def _axes(x: str, y: str) -> Json:
    return {"xaxis": axis(x), "yaxis": axis(y), "showlegend": False}
