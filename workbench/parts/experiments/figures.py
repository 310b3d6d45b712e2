"""Configurations as points, lines and questions: quality against cost, parameters side by side, what turned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pandas import DataFrame, factorize
from plotly.graph_objects import Parcoords, Scatter

from workbench.state import Json
from workbench.views.drawing import COLOURS, DIM
from workbench.views.figures.picture import Picture, axis, picture


def quality_and_cost(table: DataFrame, _: object, measure: str, title: str) -> Picture:
    """Draw the figure of each configuration against the seconds of a cell; those that none beats are joined.

    Args:
        table: of ``Experiment.compare``.
        _: what the other figures of configurations draw too.
        measure: the figure, in percent.
        title: the heading.
    """
    scored = table.dropna(subset=[measure])
    by_time = scored.sort_values(["seconds", measure], ascending=[True, False])
    front = by_time[by_time[measure] > by_time[measure].cummax().shift(fill_value=-1)]
    bars: Json = {"color": DIM, "thickness": 1}
    if "high" in scored:
        above, below = (scored["high"] - scored["difference"], scored["difference"] - scored["low"])
        bars |= {"type": "data", "array": above.fillna(0).clip(0), "arrayminus": below.fillna(0).clip(0)}
    points = _points(scored["seconds"], scored[measure], scored["configuration"], error_y=bars)
    line = _line(front["seconds"], front[measure], "none is better and faster", COLOURS["done"][1])
    under = "bars: interval of the difference to the first configuration"
    return picture(_rows(table), [points, line], title, under, 400, **_axes("seconds per cell", f"{measure}, %"))


def parallel(table: DataFrame, variants: Sequence[Json], measure: str, title: str) -> Picture:
    """Draw each configuration as a line through its parameters, its seconds and its figure."""
    dimensions: list[Json] = []
    for name, texts in DataFrame(variants).astype(str).items():
        values, levels = factorize(texts)
        dimensions.append({"label": name, "values": values, "tickvals": [*range(len(levels))], "ticktext": levels})
    dimensions += [{"label": name, "values": table[name].astype(float)} for name in ("seconds", measure)]
    line = {"color": table[measure].astype(float), "colorscale": "Viridis", "showscale": True}
    under = "drag along an axis to keep some of the configurations"
    return picture(_rows(table), [Parcoords(dimensions=dimensions, line=line)], title, under, 440)


def by_question(table: DataFrame, title: str) -> Picture:
    """Draw each question by its score in two configurations, the columns; points of one place are one, larger."""
    first, second = table.columns
    groups: Any = table.round(2).groupby([first, second]).groups
    texts = [f"{len(names)}: {', '.join(map(str, names[:8]))}" for names in groups.values()]
    sizes = [8 + 4 * len(names) ** 0.5 for names in groups.values()]
    points = _points([100 * x for x, _ in groups], [100 * y for _, y in groups], texts, marker_size=sizes)
    under = "above the line the other configuration is better"
    traces = [_line([0, 100], [0, 100], "equal", DIM), points]
    return picture(_rows(table.reset_index()), traces, title, under, 460, **_axes(f"{first}, %", f"{second}, %"))


def by_hiddenness(table: DataFrame, title: str) -> Picture:
    """Draw the ``change`` of each question by how ``hidden`` its gold documents are, the columns of the table."""
    points = _points(table["hidden"], 100 * table["change"], [str(name) for name in table.index])
    axes = _axes("hidden: 1 less the mean percentile of the gold documents by words and by meaning", "change, points")
    under = "above 0 the other configuration is better; right of it are the questions that plain searches miss"
    return picture(_rows(table.reset_index()), [_line([0, 1], [0, 0], "equal", DIM), points], title, under, 420, **axes)


def slices(table: DataFrame, variants: Sequence[Json], measure: str, title: str) -> Picture:
    """Draw each value of each parameter, with the figures of the configurations that have it."""
    pairs = [(f"{name}={value}", row) for row, variant in enumerate(variants) for name, value in variant.items()]
    pairs.sort(key=lambda pair: pair[0])
    rows = [row for _, row in pairs]
    look = {"hovertemplate": "%{text}<br>%{y:.1f} %"}
    points = _points([name for name, _ in pairs], table[measure].iloc[rows], table["configuration"].iloc[rows], **look)
    under = "a point is a configuration: values that matter lie apart"
    return picture(_rows(table), [points], title, under, 420, **_axes("", f"{measure}, %"))


def _points(x: Any, y: Any, text: Any, **more: Any) -> Scatter:
    look = {"marker_color": COLOURS["run"][1], "marker_size": 10, "hovertemplate": "%{text}<br>%{y:.1f} %, %{x:.2f}"}
    return Scatter(x=x, y=y, text=text, mode="markers", name="", **(look | more))


def _line(x: Any, y: Any, name: str, colour: str) -> Scatter:
    return Scatter(x=x, y=y, mode="lines", line={"color": colour, "dash": "dot"}, hoverinfo="skip", name=name)


def _axes(x: str, y: str) -> Json:
    return {"xaxis": axis(x), "yaxis": axis(y), "showlegend": False}


def _rows(table: DataFrame) -> list[Json]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
