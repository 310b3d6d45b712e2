"""A canvas to look at: its nodes where they stand, as SVG without a script; its rows, and what an operation found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product, starmap
from math import dist
from operator import mul

from markupsafe import Markup

from workbench.parts.fusion.canvas import COLORS, SIDES, Canvas, node_color, node_text, node_title
from workbench.state import Data
from workbench.views.blocks import Block, Lines, clipped, columns
from workbench.views.drawing import SHARES, Patch, free_patch, zoomable
from workbench.views.labels import Labels
from workbench.views.markup import cut, draw, el
from workbench.views.render import page_html

MOST_DRAWN = 1_000
"""Nodes and edges that a picture shows; the rest is counted."""
_SCALE = 0.75
"""Pixels for a unit of the canvas: its text of 16 units can be read."""
_MOST_ROUTED = 10_000
"""Nodes times edges up to which edges avoid nodes: beyond it that would take seconds."""
_CLEAR = 12
"""Units of the canvas between an edge and a node that it passes."""
_WIDEST = 20_000
"""Pixels; a browser draws no more."""
_OUT = {"left": (-1, 0), "right": (1, 0), "top": (0, -1), "bottom": (0, 1)}
Point = tuple[float, float]
_INK = dict(
    zip(COLORS.values(), ("#e93147", "#ec7500", "#d9a800", "#08b94e", "#00a8a5", "#7852ee"), strict=True)
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
    boxes = [node for node in nodes if node["type"] != "group"]
    around = boxes if len(boxes) * len(edges) < _MOST_ROUTED else []
    routes = [(edge, _route(edge, canvas.nodes, around)) for edge in edges]
    corners = [(n["x"], n["y"]) for n in nodes] + [(n["x"] + n["width"], n["y"] + n["height"]) for n in nodes]
    points = [*corners, *(_at(route, n / 12) for _, route in routes for n in range(1, 12))]
    (left, right), (top, low) = ((min(places) - 40, max(places) + 40) for places in zip(*points, strict=True))
    box = f"{left:g} {top:g} {right - left:g} {low - top:g}"
    drawing = [draw("svg.canvas_tip"), *map(_box, nodes), *starmap(_line, routes), *_words(routes, boxes)]
    scale = min(_SCALE, _WIDEST / (right - left), _WIDEST / (low - top))
    size = {"width": round((right - left) * scale), "height": round((low - top) * scale), "viewBox": box}
    return el("div", zoomable(el("svg", drawing, role="img", aria_label=_counted(canvas, labels), **size)), note)


def beside(canvas: Canvas, blocks: Iterable[Block], labels: Labels) -> Markup:
    """Return the picture with tables next to it, or below it where the page is too narrow."""
    tables = el("div", Markup(page_html(blocks, labels)), style="flex:1 1 340px;max-height:680px;overflow:auto")
    picture = el("div", drawn(canvas, labels), style="flex:2 1 640px;min-width:0")
    return el("div", picture, tables, style="display:flex;flex-wrap:wrap;gap:16px")


def _counted(canvas: Canvas, labels: Labels) -> str:
    return labels("canvas_told", n=len(canvas.nodes), m=len(canvas.edges), g=len(canvas.groups))


def _box(node: Data) -> Markup:
    group, ink = node["type"] == "group", _ink(node)
    text = node_title(node) if group or node["type"] == "file" else node_text(node, "text") or node_text(node, "url")
    return draw("svg.canvas_node", node=node, ink=ink, text=cut(text, 1_000), group=group)


def _ink(element: Data) -> str:
    color = node_color(element)
    return _INK.get(color) or color or "currentColor"


def _line(edge: Data, route: Sequence[Point]) -> Markup:
    start, *rest = (f"{x:g} {y:g}" for x, y in route)
    ends = {
        f"marker_{mark}": "url(#wb-canvas-end)"
        for mark, key, otherwise in (("start", "fromEnd", "none"), ("end", "toEnd", "arrow"))
        if edge.get(key, otherwise) == "arrow"
    }
    return el("path", d=f"M{start}C{' '.join(rest)}", fill="none", stroke=_ink(edge), stroke_width=2, **ends)


def _words(routes: Iterable[tuple[Data, Sequence[Point]]], boxes: Iterable[Data]) -> Iterator[Markup]:
    """Yield the labels of edges, in front of everything: clear of other labels, and of nodes where there is room."""
    labels = list[Patch]()
    nodes = [Patch(n["x"] + n["width"] / 2, n["y"] + n["height"] / 2, n["width"], n["height"]) for n in boxes]
    for edge, route in routes:
        label, places = cut(node_text(edge, "label"), 60), [_at(route, share) for share in SHARES]
        at = free_patch(label, places, [*nodes, *labels], 15) or free_patch(label, places, labels, 15)
        labels += [at] if at else []
        x, y = at[:2] if at else places[0]
        yield draw("svg.canvas_words", x=x, y=y, text=label)


def _route(edge: Data, nodes: Mapping[str, Data], around: Sequence[Data]) -> Sequence[Point]:
    """Return a curve from border to border, at right angles to both: the shortest one that keeps off the nodes.

    An edge may name its sides; otherwise each pair of sides is tried, each with narrow and with wide bows.
    """
    pair = [nodes[edge["fromNode"]], nodes[edge["toNode"]]]
    sides = [[edge[key]] if edge.get(key) in SIDES else SIDES for key in ("fromSide", "toSide")]
    routes = [_curve(pair, chosen, wide) for *chosen, wide in product(*map(sorted, sides), (0.5, 0.25, 1.0))]
    routes.sort(key=lambda route: sum(map(dist, route, route[1:])))
    clear = (route for route in routes if not _crossed(route, around, pair))
    return next(clear, None) or min(routes, key=lambda route: _crossed(route, around, pair))


def _curve(pair: Sequence[Data], sides: Sequence[str], wide: float) -> Sequence[Point]:
    starts = [(n["x"] + n["width"] * (1 + _OUT[s][0]) / 2, n["y"] + n["height"] * (1 + _OUT[s][1]) / 2)
              for n, s in zip(pair, sides, strict=True)]  # fmt: skip
    bow = min(max(dist(*starts) * wide, 30), 400 * wide)
    (a, b), (c, d) = ((x + bow * _OUT[s][0], y + bow * _OUT[s][1]) for (x, y), s in zip(starts, sides, strict=True))
    return starts[0], (a, b), (c, d), starts[1]


def _at(route: Sequence[Point], share: float) -> Point:
    """Return the point of a cubic curve at this share of its way."""
    weights = [(1 - share) ** 3, 3 * share * (1 - share) ** 2, 3 * share**2 * (1 - share), share**3]
    return sum(map(mul, weights, (x for x, _ in route))), sum(map(mul, weights, (y for _, y in route)))


def _crossed(route: Sequence[Point], around: Sequence[Data], ends: Sequence[Data]) -> int:
    """Return how many of these nodes a curve runs over, or along: its own ends may be touched."""
    points = [_at(route, n / 12) for n in range(1, 12)]

    def touches(node: Data) -> bool:
        off = 0 if node in ends else _CLEAR
        left, top, right, low = node["x"], node["y"], node["x"] + node["width"], node["y"] + node["height"]
        return any(left - off < x < right + off and top - off < y < low + off for x, y in points)

    return sum(map(touches, around))


def canvas_blocks(canvas: Canvas, name: str, labels: Labels) -> Iterator[Block]:
    """Yield what is on a canvas, as tables."""
    most_rows = 200
    yield Lines((((name, "strong"), (f"  {_counted(canvas, labels)}", "dim")),))
    rows = [
        (node["id"], labels(f"canvas_{node['type']}"), node_title(node), _path(canvas, node["id"]), node_color(node))
        for node in list(canvas.nodes.values())[:most_rows]
    ]
    heads = columns(labels, "canvas_id:code", "kb_type", "title", "canvas_group", "canvas_color")
    yield clipped(labels("canvas_nodes", n=len(canvas.nodes)), heads, rows)
    names = {i: node_title(node) for i, node in canvas.nodes.items()}
    links = [(names[start], label, names[end]) for _, start, label, end in list(canvas.links())[:most_rows]]
    if links:
        heads = columns(labels, "canvas_from", "relation", "canvas_to")
        yield clipped(labels("canvas_edges", n=len(canvas.edges)), heads, links, opened=False)
    if canvas.problems:
        heads, faults = columns(labels, "why_wrong"), [(problem,) for problem in canvas.problems[:most_rows]]
        yield clipped(labels("canvas_problems", n=len(canvas.problems)), heads, faults)


def _path(canvas: Canvas, node_id: str) -> str:
    return " › ".join(filter(None, (node_title(canvas.nodes[i]) for i in canvas.around(node_id)[::-1])))


def work_blocks(operation: str, entries: Sequence[Data], labels: Labels) -> Iterator[Block]:
    """Yield what an operation found for each node."""
    yield Lines((((labels(f"canvas_{operation}"), "strong"),),))
    for entry in entries:
        heads = columns(labels, "canvas_what", "canvas_said", "canvas_because")
        rows = [(labels(f"canvas_{row['kind']}"), row["text"], row["because"]) for row in entry["rows"]]
        score = f" · {entry['score']:.0%}" if entry["score"] is not None else ""
        yield clipped(f"{entry['title']}{score}", heads, rows, notes=filter(None, [entry["note"]]))
