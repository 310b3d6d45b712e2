"""A canvas to look at: its nodes where they stand, as SVG without a script; its rows, and what an operation found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import dist
from operator import mul
from typing import Any

from markupsafe import Markup

from workbench.parts.fusion.canvas import (
    COLORS,
    SIDES,
    Canvas,
    node_color,
    node_text,
    node_title,
    title_and_text,
)
from workbench.state import Data
from workbench.views.blocks import Block, Lines, clipped, columns
from workbench.views.drawing import SHARES, Patch, free_patch, width, zoomable
from workbench.views.labels import Labels
from workbench.views.markup import cut, draw, el
from workbench.views.render import page_html

MOST_DRAWN = 1_000
"""Nodes and edges that a picture shows; the rest is counted."""
_SCALE = 0.75
"""Pixels for a unit of the canvas where it is not fitted to a page."""
_FITTED = 800
"""Pixels of a page to which it is fitted: text keeps its size, so more of it is seen in a larger picture."""
_MOST_ROUTED = 10_000
"""Nodes times edges up to which edges avoid nodes: beyond it that would take seconds."""
_CLEAR = 16
"""Units of the canvas between an edge and a node that it passes."""
_WIDEST = 20_000
"""Pixels; a browser draws no more."""
_OUT = {"left": (-1, 0), "right": (1, 0), "top": (0, -1), "bottom": (0, 1)}
_BOWS, _DETOUR = (0.15, 0.4, 0.8, 1.5, 2.5), 3
"""How far an edge goes straight on from its node, as shares of its length; how much longer than the shortest it is."""
Point = tuple[float, float]
Route = tuple[Data, Sequence[Point]]
_INK = dict(
    zip(
        COLORS.values(),
        ("#e93147", "#ec7500", "#d9a800", "#08b94e", "#00a8a5", "#7852ee"),
        strict=True,
    )
)  # readable on white and on black


def drawn(canvas: Canvas, labels: Labels) -> Markup:
    """Return the picture: groups behind, then nodes, then edges; everything in it is text."""
    nodes = sorted(canvas.nodes.values(), key=lambda node: node["type"] != "group")[:MOST_DRAWN]
    if not nodes:
        return el("p", labels("canvas_empty"))
    shown = {node["id"] for node in nodes}
    edges = [e for e in canvas.edges.values() if {e["fromNode"], e["toNode"]} <= shown][:MOST_DRAWN]
    hidden = len(canvas.nodes) + len(canvas.edges) - len(nodes) - len(edges)
    note = el("p", labels("canvas_hidden", n=hidden)) if hidden else None
    cards = [node for node in nodes if node["type"] != "group"]
    boxes = [
        Patch(n["x"] + n["width"] / 2, n["y"] + n["height"] / 2, n["width"], n["height"])
        for n in cards
    ]
    around = boxes if len(boxes) * len(edges) < _MOST_ROUTED else []
    routes = [(edge, _route(edge, canvas.nodes, around)) for edge in edges]
    corners = [(n["x"], n["y"]) for n in nodes] + [
        (n["x"] + n["width"], n["y"] + n["height"]) for n in nodes
    ]
    points = [*corners, *(_at(route, n / 12) for _, route in routes for n in range(1, 12))]
    (left, right), (top, low) = (
        (min(places) - 50, max(places) + 50) for places in zip(*points, strict=True)
    )
    wide, high = right - left, low - top
    frame = {
        "left": left,
        "top": top,
        "wide": wide,
        "high": high,
        "scale": min(_SCALE, _WIDEST / max(wide, high)),
    }
    unit, values = (
        max(wide / _FITTED, 1 / _SCALE),
        {"nodes": nodes, "cards": cards, "routes": routes},
    )
    values |= {
        "words": _words(routes, boxes, unit),
        "ink": _ink,
        "parts": title_and_text,
        "tip": 9 * unit,
    }
    return el(
        "div",
        zoomable(draw("canvas.picture", name=_counted(canvas, labels), **frame, **values)),
        note,
    )


def beside(canvas: Canvas, blocks: Iterable[Block], labels: Labels, order: int = 1) -> Markup:
    """Return the picture with tables next to it, or below it where there is no room; ``order`` -1 puts them first."""
    style = f"flex:1 1 340px;max-height:{400 if order < 0 else 680}px;overflow:auto;order:{order}"
    tables = el("div", Markup(page_html(blocks, labels)), style=style)
    picture = el("div", drawn(canvas, labels), style="flex:2 1 640px;min-width:0")
    return el("div", picture, tables, style="display:flex;flex-wrap:wrap;gap:16px")


def _counted(canvas: Canvas, labels: Labels) -> str:
    return labels("canvas_told", n=len(canvas.nodes), m=len(canvas.edges), g=len(canvas.groups))


def _ink(element: Data) -> str:
    color = node_color(element)
    return _INK.get(color) or color or "currentColor"


def _words(
    routes: Iterable[Route], boxes: Iterable[Patch], unit: float
) -> Iterator[tuple[Point, str, bool]]:
    """Yield place and label of each edge: clear of nodes, arrows and other labels, or true where there is no room."""
    taken = [*boxes, *(Patch(*_at(route, 0.97), 12 * unit, 12 * unit) for _, route in routes)]
    for edge, route in routes:
        if label := cut(node_text(edge, "label"), 60):
            aside = width(label, 11) * unit / 2 + 7 * unit
            steps = ((0, 0), (0, -11 * unit), (0, 11 * unit), (aside, 0), (-aside, 0))
            places = [
                (x + dx, y + dy)
                for dx, dy in steps
                for x, y in (_at(route, share) for share in SHARES)
            ]
            at = free_patch(label, places, taken, 11 * unit)
            taken += [at] if at else []
            yield at[:2] if at else _at(route, 0.4), label, not at


def _route(edge: Data, nodes: Mapping[str, Data], around: Sequence[Patch]) -> Sequence[Point]:
    """Return a curve from border to border, at right angles to both: the shortest one that keeps off the nodes.

    An edge may name its sides; otherwise each pair of sides is tried, each with a narrow or a wide bow at both ends.
    """
    pair = [nodes[edge["fromNode"]], nodes[edge["toNode"]]]
    sides = [[edge[key]] if edge.get(key) in SIDES else SIDES for key in ("fromSide", "toSide")]
    routes = [
        _curve(pair, chosen[:2], chosen[2:])
        for chosen in product(*map(sorted, sides), _BOWS, _BOWS)
    ]
    routes.sort(key=_length)
    routes = [route for route in routes if _length(route) < _DETOUR * _length(routes[0])]
    crossed = list[int]()
    for route in routes:
        crossed.append(_crossed(route, around))
        if not crossed[-1]:
            return route
    return routes[crossed.index(min(crossed))]


def _length(route: Sequence[Point]) -> float:
    return sum(map(dist, route, route[1:]))


def _curve(pair: Sequence[Data], sides: Sequence[str], bows: Sequence[float]) -> Sequence[Point]:
    first, last = map(_port, pair, pair[::-1], sides)
    middle = []
    for (x, y), side, wide in zip((first, last), sides, bows, strict=True):
        bow = min(max(dist(first, last) * wide, 30), 400 * wide)
        middle.append((x + bow * _OUT[side][0], y + bow * _OUT[side][1]))
    return first, *middle, last


def _port(node: Data, other: Data, side: str) -> Point:
    """Return where an edge leaves a side: off its middle towards the other node, so that edges part."""
    places = []
    for at, size, out in zip(("x", "y"), ("width", "height"), _OUT[side], strict=True):
        ahead = other[at] + other[size] / 2 - node[at] - node[size] / 2
        places.append(
            node[at]
            + node[size] * (1 + out) / 2
            + (0 if out else max(min(ahead, node[size] * 0.3), node[size] * -0.3))
        )
    return places[0], places[1]


def _at(route: Sequence[Point], share: float) -> Point:
    """Return the point of a cubic curve at this share of its way."""
    xs, ys = zip(*route, strict=True)
    return sum(map(mul, _weights(share), xs)), sum(map(mul, _weights(share), ys))


def _weights(share: Any) -> list[Any]:
    """Return how much each point of a cubic curve counts at a share of its way, or at each of an array of shares."""
    return [(1 - share) ** 3, 3 * share * (1 - share) ** 2, 3 * share**2 * (1 - share), share**3]


def _crossed(route: Sequence[Point], around: Sequence[Patch]) -> int:
    """Return how many of these nodes a curve runs over, or along."""
    import numpy as np  # hundreds of curves of each edge are compared with every node

    boxes = np.reshape(np.array(around), (-1, 4))
    points = np.transpose(_weights(np.arange(3, 34) / 36)) @ np.array(route)
    meets = 2 * abs(points[:, None] - boxes[:, :2]) < boxes[:, 2:] + _CLEAR
    return int(meets.all(axis=2).any(axis=0).sum())


def canvas_blocks(canvas: Canvas, name: str, labels: Labels) -> Iterator[Block]:
    """Yield what is on a canvas, as tables."""
    most_rows = 200
    yield Lines((((name, "strong"), (f"  {_counted(canvas, labels)}", "dim")),))
    rows = [
        (
            node["id"],
            labels(f"canvas_{node['type']}"),
            node_title(node),
            _path(canvas, node["id"]),
            _color(node, labels),
        )
        for node in list(canvas.nodes.values())[:most_rows]
    ]
    heads = columns(labels, "canvas_id:code", "kb_type", "title", "canvas_group", "canvas_color")
    yield clipped(labels("canvas_nodes", n=len(canvas.nodes)), heads, rows)
    names = {i: node_title(node) for i, node in canvas.nodes.items()}
    links = [
        (names[start], label, names[end])
        for _, start, label, end in list(canvas.links())[:most_rows]
    ]
    if links:
        heads = columns(labels, "canvas_from", "relation", "canvas_to")
        yield clipped(labels("canvas_edges", n=len(canvas.edges)), heads, links, opened=False)
    if canvas.problems:
        heads, faults = (
            columns(labels, "why_wrong"),
            [(problem,) for problem in canvas.problems[:most_rows]],
        )
        yield clipped(labels("canvas_problems", n=len(canvas.problems)), heads, faults)


def _color(node: Data, labels: Labels) -> str:
    color = node_color(node)
    return labels.get(f"canvas_{color}", color)


def _path(canvas: Canvas, node_id: str) -> str:
    return " › ".join(
        filter(None, (node_title(canvas.nodes[i]) for i in canvas.around(node_id)[::-1]))
    )


def work_blocks(operation: str, entries: Sequence[Data], labels: Labels) -> Iterator[Block]:
    """Yield what an operation found, node by node."""
    heads, rows = (
        columns(labels, "canvas_node", "canvas_what::whole", "canvas_said", "canvas_because"),
        list[Sequence[str]](),
    )
    for entry in entries:
        score = f" · {entry['score']:.0%}" if entry["score"] is not None else ""
        results = [
            (labels(f"canvas_{row['kind']}"), row["text"], row["because"]) for row in entry["rows"]
        ]
        names = [f"{entry['title']}{score}", *[""] * len(results)]
        rows += [
            (name, *cells)
            for name, cells in zip(names, results or [("", entry["note"], "")], strict=False)
        ]
    counts = Counter(kind for _, kind, *_ in rows if kind)
    title = " · ".join(
        [labels(f"canvas_{operation}"), *(f"{kind} {n}" for kind, n in counts.items())]
    )
    yield clipped(title, heads, rows)
