"""The conversation graph with the graphs inside it in frames: where the run is, where it was, which ways it took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.records.walked import END, START, Edge, Frame, Node, Walked
from workbench.views.figures.paper import (
    CLEAR,
    COLOURS,
    DIM,
    FAINT,
    FAMILY,
    GROUND,
    INK,
    LINE,
    STRONG,
    box,
    entry,
    hidden,
    lines,
    paper,
    points,
    safe,
    short,
    words,
)
from workbench.views.labels import Labels, milliseconds

if TYPE_CHECKING:
    from workbench.views.figures.picture import Picture


_WIDE, _HIGH = 140, 62
"""A cell of the drawing in pixels."""
_HALF, _TALL = 0.45, 0.31
"""Half a node's width and height, in cells."""


def graph(walked: Walked, title: str, language: str = "en") -> Picture:
    """The graphs: the parent from left to right, the ones inside it downwards in their frames.

    A node that ran has how often and how long; where the run stands has a heavy border and a word; ways that were
    taken are heavy, and have their number when it was several times.
    """
    from workbench.views.figures.picture import Picture

    labels = Labels(language)
    nodes = {node["id"]: node for node in walked.nodes}
    ways = [(edge, _way(nodes[edge["source"]], nodes[edge["target"]], edge, walked)) for edge in walked.edges]
    right = max((node["x"] for node in walked.nodes), default=0) + 0.6
    top = min([frame["y0"] for frame in walked.frames] + [node["y"] - 0.5 for node in walked.nodes], default=0) - 0.7
    low = max([frame["y1"] for frame in walked.frames] + [node["y"] + 0.5 for node in walked.nodes], default=0) + 0.7
    layout = {
        **paper(
            title,
            width=round(_WIDE * right + 40),
            height=round(_HIGH * (low - top) + 110),
            under=_under(walked, labels),
        ),
        "shapes": [*_frames(walked.frames), *_lines(ways), *_boxes(walked.nodes)],
        "xaxis": hidden() | {"range": [0, right]},
        "yaxis": hidden() | {"range": [low, top]},
    }
    said = points(((node["x"], node["y"], _hover(node, labels)) for node in walked.nodes), size=28)
    data = [*_heads(ways), *_text(walked, labels), *_counts(ways), said, *_legend(walked, labels)]
    return Picture.of(walked.rows(), data, layout)


class Way(NamedTuple):
    """An edge as it is drawn: its path, where it ends, whither it points there, where its number stands."""

    path: str
    end: tuple[float, float]
    angle: int
    middle: tuple[float, float]


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
        return _curve((x0, y0 + side), (x0 + 0.25, bend), (x1 - 0.25, bend), (x1, y1 + side), 180 if above else 0)
    bend = max((x1 - x0) / 2, 0.6)
    start, end = (x0 + _edge_of(source), y0), (x1 - _edge_of(target), y1)
    return _curve(start, (start[0] + bend / 2, y0), (end[0] - bend / 2, y1), end, 90)


def _inside(x0: float, y0: float, x1: float, y1: float, back: bool) -> Way:
    if (x0, y0) == (x1, y1):
        return _curve((x0 - _HALF, y0 - 0.1), (x0 - 0.8, y0 - 0.5), (x0 - 0.8, y0 + 0.5), (x0 - _HALF, y0 + 0.1), 90)
    if not back and y1 - y0 <= 1:
        return _curve((x0, y0 + _TALL), (x0, y1 - 0.5), (x1, y0 + 0.5), (x1, y1 - _TALL), 180)
    side = -1 if back else 1
    bow = side * (0.32 + 0.13 * abs(y1 - y0))
    start, end = (x0 + side * _HALF, y0), (x1 + side * _HALF, y1)
    return _curve(start, (start[0] + bow, y0), (end[0] + bow, y1), end, 90 if back else 270)


Point = tuple[float, float]


def _curve(a: Point, b: Point, c: Point, d: Point, angle: int) -> Way:
    path = "M{:.4g},{:.4g}C{:.4g},{:.4g} {:.4g},{:.4g} {:.4g},{:.4g}".format(*a, *b, *c, *d)
    middle = [(a[i] + 3 * b[i] + 3 * c[i] + d[i]) / 8 for i in (0, 1)]
    return Way(path, d, angle, (middle[0], middle[1]))


def _edge_of(node: Node) -> float:
    return 0.2 if node["name"] in (START, END) else _HALF


def _lines(ways: Iterable[tuple[Edge, Way]]) -> list[dict[str, Any]]:
    """Taken ways heavy and dark, others thin; those of which one was chosen dotted while nobody took them."""
    kinds: dict[tuple[bool, bool], list[str]] = {}
    for edge, way in ways:
        kinds.setdefault((edge["times"] > 0, edge["conditional"]), []).append(way.path)
    return [
        lines(
            paths,
            color=STRONG if taken else FAINT,
            width=2.4 if taken else 1,
            dash="dot" if either and not taken else "solid",
        )
        for (taken, either), paths in sorted(kinds.items())
    ]


def _heads(ways: Iterable[tuple[Edge, Way]]) -> list[Any]:
    from plotly.graph_objects import Scatter

    heads = []
    for taken in (False, True):
        ends = [way for edge, way in ways if (edge["times"] > 0) == taken]
        marker = {
            "symbol": "triangle-up",
            "size": 8 if taken else 6,
            "angle": [way.angle for way in ends],
            "color": STRONG if taken else FAINT,
            "standoff": 0,
        }
        x, y = [round(way.end[0], 3) for way in ends], [round(way.end[1], 3) for way in ends]
        heads.append(Scatter(x=x, y=y, mode="markers", marker=marker, hoverinfo="skip", showlegend=False))
    return heads


def _counts(ways: Iterable[tuple[Edge, Way]]) -> list[Any]:
    many = [(*way.middle, f"{edge['times']}×") for edge, way in ways if edge["times"] > 1]
    return [words(many, 10, STRONG, "top center")] if many else []


def _frames(frames: Iterable[Frame]) -> list[dict[str, Any]]:
    inset = 0.04
    return [
        lines(
            [box(f["x0"] + inset, f["x1"] - inset, f["y0"] - 0.35, f["y1"] + 0.12)],
            color=LINE if f["status"] == "pending" else FAINT,
            width=1,
        )
        for f in frames
    ]


def _boxes(nodes: Iterable[Node]) -> list[dict[str, Any]]:
    """Dashed and empty what has not run, tinted what ran, with a heavy border where the run stands."""
    kinds: dict[str, list[str]] = {}
    for node in nodes:
        half = _edge_of(node)
        path = box(node["x"] - half, node["x"] + half, node["y"] - _TALL, node["y"] + _TALL)
        kinds.setdefault(node["status"], []).append(path)
    shapes = []
    for status, paths in kinds.items():
        ink, fill, tint = _colours(status)
        waits = status == "pending"
        look = {"width": 1.2, "dash": "dash"} if waits else {"width": 1.3 if status == "done" else 3}
        line = {"color": fill if waits or status == "done" else ink, **look}
        shapes.append(lines(paths, **line) | {"fillcolor": GROUND if waits else tint})
    return shapes


def _colours(status: str) -> tuple[str, str, str]:
    return COLOURS[FAMILY.get(status, "idle")]


def _text(walked: Walked, labels: Labels) -> list[Any]:
    ends = [node for node in walked.nodes if node["name"] in (START, END)]
    named = [node for node in walked.nodes if node not in ends]
    traces = [words(((n["x"], n["y"], safe(_end(n, labels))) for n in ends), 10, DIM, "middle center")]
    for status in dict.fromkeys(node["status"] for node in named):
        here = [node for node in named if node["status"] == status]
        ink = DIM if status == "pending" else INK
        up = 0.0 if status == "pending" else 0.13
        names = ((n["x"], n["y"] - up, safe(short(n["name"], 21))) for n in here)
        traces.append(words(names, 11, ink, "middle center"))
        if status != "pending":
            facts = ((n["x"], n["y"] + 0.14, safe(_facts(n, labels))) for n in here)
            traces.append(words(facts, 10, _colours(status)[0], "middle center"))
    frames = ((f["x0"] + 0.08, f["y0"] - 0.18, safe(f["name"])) for f in walked.frames)
    return [*traces, words(frames, 11, DIM, "middle right")]


def _end(node: Node, labels: Labels) -> str:
    return labels("start" if node["name"] == START else "end")


def _facts(node: Node, labels: Labels) -> str:
    """Sign, how often and how long; where the run stands the word of that."""
    ran = f"{node['times']}× {milliseconds(node['duration_ms'])}" if node["times"] else ""
    if node["status"] == "done":
        return f"✓ {ran}"
    return labels.status(node["status"])


def _hover(node: Node, labels: Labels) -> str:
    name = _end(node, labels) if node["name"] in (START, END) else node["name"]
    told = [f"<b>{safe(name)}</b>", *([safe(node["frame"])] if node["frame"] else [])]
    told.append(safe(labels.status(node["status"])))
    if node["times"]:
        told.append(safe(f"{node['times']}× · {milliseconds(node['duration_ms'])}"))
    return "<br>".join(told)


def _under(walked: Walked, labels: Labels) -> str:
    """Where the run stands, in words."""
    here: list[Mapping[str, Any]] = [n for n in walked.nodes if n["status"] not in ("done", "pending")]
    here = here or [f for f in walked.frames if f["status"] not in ("done", "pending")]
    told = [f"{labels.status(one['status'])}{labels('colon')}{one['name']}" for one in here]
    if not told and any(node["name"] == END and node["status"] == "done" for node in walked.nodes):
        told = [labels.status("done")]
    return labels("comma").join(told)


def _legend(walked: Walked, labels: Labels) -> list[Any]:
    entries = []
    for status in dict.fromkeys(node["status"] for node in walked.nodes):
        _, fill, tint = _colours(status)
        marker = {"symbol": "square", "size": 11, "color": CLEAR if status == "pending" else tint}
        entries.append(
            entry(labels.status(status), mode="markers", marker=marker | {"line": {"color": fill, "width": 1.4}})
        )
    entries.append(entry(labels("taken"), mode="lines", line={"color": STRONG, "width": 2.4}))
    entries.append(entry(labels("not_taken"), mode="lines", line={"color": FAINT, "width": 1}))
    return [*entries, entry(labels("either_way"), mode="lines", line={"color": FAINT, "width": 1, "dash": "dot"})]
