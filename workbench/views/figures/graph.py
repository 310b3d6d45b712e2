"""The conversation graph with the graphs inside it in frames: where the run is, where it was, which ways it took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from plotly.graph_objects import Scatter

from workbench.views.figures.paper import (
    DIM,
    FAINT,
    INK,
    LINE,
    STRONG,
    Point,
    box,
    boxes,
    curve,
    edges,
    hidden,
    hover,
    inks,
    lines,
    paper,
    points,
    safe,
    short,
    statuses,
    stroke,
    words,
)
from workbench.views.figures.picture import Picture
from workbench.views.graph_trace import END, START, Edge, Node, Walked
from workbench.views.labels import Labels, milliseconds

_WIDE, _HIGH = 140, 62
"""A cell of the drawing in pixels."""
_HALF, _TALL = 0.45, 0.31
"""Half a node's width and height, in cells."""


def graph(walked: Walked, title: str, language: str = "en") -> Picture:
    """The graphs: the parent from left to right, the ones inside it downwards in their frames.

    A node that ran has how often and how long; where the run stands has a heavy border and a word; ways that were
    taken are heavy, and have their number when it was several times.
    """
    labels = Labels(language)
    nodes = {node["id"]: node for node in walked.nodes}
    ways = [(edge, _way(nodes[edge["source"]], nodes[edge["target"]], edge, walked)) for edge in walked.edges]
    right = max((node["x"] for node in walked.nodes), default=0) + 0.6
    tops = [frame["y0"] for frame in walked.frames] + [node["y"] - 0.5 for node in walked.nodes]
    lows = [frame["y1"] for frame in walked.frames] + [node["y"] + 0.5 for node in walked.nodes]
    top, low = min(tops, default=0) - 0.7, max(lows, default=0) + 0.7
    standing = next((node["status"] for node in walked.nodes if node["status"] not in ("done", "pending")), "")
    drawn = [(edge["times"] > 0, edge["conditional"] and not edge["times"], curve(*way.points)) for edge, way in ways]
    placed = [
        (node["status"], box(node["x"] - half, node["x"] + half, node["y"] - _TALL, node["y"] + _TALL))
        for node in walked.nodes
        for half in (_half(node),)
    ]
    layout = paper(
        title,
        width=_WIDE * right + 40,
        height=_HIGH * (low - top) + 110,
        under=_under(walked, labels),
        shapes=[*_frames(walked), *edges(drawn, 0.8), *boxes(placed, here=standing)],
        xaxis=hidden(0, right),
        yaxis=hidden(low, top),
    )
    said = points(((node["x"], node["y"], _hover(node, labels)) for node in walked.nodes), size=28)
    many = [(*way.middle, f"{edge['times']}×") for edge, way in ways if edge["times"] > 1]
    counts = [words(many, 10, STRONG, "top center")] if many else []
    legend = [
        *statuses((node["status"] for node in walked.nodes), labels),
        stroke(labels("taken"), color=STRONG, width=2.4),
        stroke(labels("not_taken"), color=FAINT, width=1),
        stroke(labels("either_way"), color=FAINT, width=1, dash="dot"),
    ]
    return Picture.of(walked.rows(), [_heads(ways), *_text(walked, labels), *counts, said, *legend], layout)


class Way(NamedTuple):
    """An edge as it is drawn: the points of its curve, and whither it points at its end."""

    points: tuple[Point, Point, Point, Point]
    angle: int

    @property
    def middle(self) -> Point:
        """Where its number stands."""
        x, y = ((a + 3 * b + 3 * c + d) / 8 for a, b, c, d in zip(*self.points, strict=True))
        return x, y


def _way(source: Node, target: Node, edge: Edge, walked: Walked) -> Way:
    """Down inside a frame, to the right in the parent; what leads back bows to the left, what skips a row to the right.

    An edge of the parent that would cross a frame goes around it.
    """
    (x0, y0), (x1, y1) = (source["x"], source["y"]), (target["x"], target["y"])
    if source["frame"] and source["frame"] == target["frame"]:
        return _inside(x0, y0, x1, y1, edge["back"])
    between = [frame for frame in walked.frames if x0 < frame["x0"] and frame["x1"] < x1]
    if between:
        above = y1 < y0
        far = min(f["y0"] for f in between) - 0.3 if above else max(f["y1"] for f in between) + 0.3
        side = -_TALL if above else _TALL
        bend = y0 + (far - y0) / 0.75
        around = ((x0, y0 + side), (x0 + 0.25, bend), (x1 - 0.25, bend), (x1, y1 + side))
        return Way(around, 180 if above else 0)
    bend = max((x1 - x0) / 2, 0.6) / 2
    x0, x1 = x0 + _half(source), x1 - _half(target)
    return Way(((x0, y0), (x0 + bend, y0), (x1 - bend, y1), (x1, y1)), 90)


def _inside(x0: float, y0: float, x1: float, y1: float, back: bool) -> Way:
    if (x0, y0) == (x1, y1):
        return Way(((x0 - _HALF, y0 - 0.1), (x0 - 0.8, y0 - 0.5), (x0 - 0.8, y0 + 0.5), (x0 - _HALF, y0 + 0.1)), 90)
    if not back and y1 - y0 <= 1:
        return Way(((x0, y0 + _TALL), (x0, y1 - 0.5), (x1, y0 + 0.5), (x1, y1 - _TALL)), 180)
    side = -1 if back else 1
    bow = side * (0.32 + 0.13 * abs(y1 - y0))
    x0, x1 = x0 + side * _HALF, x1 + side * _HALF
    return Way(((x0, y0), (x0 + bow, y0), (x1 + bow, y1), (x1, y1)), 90 if back else 270)


def _half(node: Node) -> float:
    """Half its width."""
    return 0.2 if node["name"] in (START, END) else _HALF


def _heads(ways: Iterable[tuple[Edge, Way]]) -> Any:
    """The heads of the arrows, those of ways that were taken last."""
    ends = sorted(((edge["times"] > 0, way) for edge, way in ways), key=lambda end: end[0])
    marker = {
        "symbol": "triangle-up",
        "size": [8 if taken else 6 for taken, _ in ends],
        "angle": [way.angle for _, way in ends],
        "color": [STRONG if taken else FAINT for taken, _ in ends],
        "standoff": 0,
    }
    x, y = ([round(way.points[3][axis], 3) for _, way in ends] for axis in (0, 1))
    return Scatter(x=x, y=y, mode="markers", marker=marker, hoverinfo="skip", showlegend=False)


def _frames(walked: Walked) -> list[dict[str, Any]]:
    inset = 0.04
    return [
        lines(
            [box(f["x0"] + inset, f["x1"] - inset, f["y0"] - 0.35, f["y1"] + 0.12)],
            color=LINE if f["status"] == "pending" else FAINT,
            width=1,
        )
        for f in walked.frames
    ]


def _text(walked: Walked, labels: Labels) -> list[Any]:
    ends = [node for node in walked.nodes if node["name"] in (START, END)]
    named = [node for node in walked.nodes if node not in ends]
    begun = [node for node in named if node["status"] != "pending"]
    names = [(n["x"], n["y"] - (0.13 if n in begun else 0), safe(short(n["name"], 21))) for n in named]
    facts = [(n["x"], n["y"] + 0.14, safe(_facts(n, labels))) for n in begun]
    frames = ((f["x0"] + 0.08, f["y0"] - 0.18, safe(f["name"])) for f in walked.frames)
    return [
        words(((n["x"], n["y"], safe(_name(n, labels))) for n in ends), 10, DIM, "middle center"),
        words(names, 11, [INK if n in begun else DIM for n in named], "middle center"),
        words(facts, 10, [inks(n["status"])[0] for n in begun], "middle center"),
        words(frames, 11, DIM, "middle right"),
    ]


def _name(node: Node, labels: Labels) -> str:
    return {START: labels("start"), END: labels("end")}.get(node["name"], node["name"])


def _facts(node: Node, labels: Labels) -> str:
    """Sign, how often and how long; where the run stands the word of that."""
    if node["status"] != "done":
        return labels.status(node["status"])
    return f"✓ {node['times']}× {milliseconds(node['duration_ms'])}" if node["times"] else "✓ "


def _hover(node: Node, labels: Labels) -> str:
    ran = f"{node['times']}× · {milliseconds(node['duration_ms'])}" if node["times"] else ""
    return hover(_name(node, labels), node["frame"], labels.status(node["status"]), ran)


def _under(walked: Walked, labels: Labels) -> str:
    """Where the run stands, in words."""
    here: list[Mapping[str, Any]] = [n for n in walked.nodes if n["status"] not in ("done", "pending")]
    here = here or [f for f in walked.frames if f["status"] not in ("done", "pending")]
    told = [f"{labels.status(one['status'])}{labels('colon')}{one['name']}" for one in here]
    if not told and any(node["name"] == END and node["status"] == "done" for node in walked.nodes):
        told = [labels.status("done")]
    return labels("comma").join(told)
