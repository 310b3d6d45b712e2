"""A canvas to look at: its nodes where they stand, as SVG without a script; its rows, and what an operation found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise
from math import ceil, floor
from typing import Any

from markupsafe import Markup

from workbench.parts.fusion.canvas import (
    Canvas,
    box,
    node_color,
    node_text,
    node_title,
    title_and_text,
)
from workbench.state import Data
from workbench.views.blocks import Block, Lines, clipped, columns
from workbench.views.drawing import Patch, free_patch, width, zoomable
from workbench.views.labels import Labels
from workbench.views.markup import cut, draw, el
from workbench.views.render import page_html

_SCALE = 0.75
"""Pixels for a unit of the canvas where it is not fitted to a page."""
Point = tuple[float, float]
Route = tuple[Data, Sequence[Point]]


def drawn(canvas: Canvas, labels: Labels) -> Markup:
    """Return the picture: groups behind, then nodes, then edges; everything in it is text."""
    # Pixels; a browser draws no more.
    widest = 20_000
    # Pixels of a page to which it is fitted: text keeps its size, so more of it is seen in a
    # larger picture.
    fitted = 800
    # Nodes and edges that a picture shows; the rest is counted.
    most_drawn = 1_000
    nodes = sorted(canvas.nodes.values(), key=lambda node: node["type"] != "group")[:most_drawn]
    if not nodes:
        return el("p", labels("canvas_empty"))
    shown = {node["id"] for node in nodes}
    edges = [e for e in canvas.edges.values() if {e["fromNode"], e["toNode"]} <= shown][
        :most_drawn
    ]
    hidden = len(canvas.nodes) + len(canvas.edges) - len(nodes) - len(edges)
    areas = [box(node) for node in nodes]
    corners = [corner for area in areas for corner in (area[:2], area[2:])]
    across = [x for x, _ in corners]
    unit = max((max(across) - min(across) + 100) / fitted, 1 / _SCALE)
    boxes = [_patch(node, unit) for node in nodes]
    routes = list(zip(edges, ways(edges, canvas.nodes, boxes, unit).values(), strict=True))
    words = list(_words(routes, boxes, unit))
    points = [*corners, *(point for _, way in routes for point in way)]
    for (x, y), label, _ in words:
        points += [(x + sign * width(label, 11) * unit / 2, y) for sign in (-1, 1)]
    (left, right), (top, low) = (
        (min(places) - 30, max(places) + 30) for places in zip(*points, strict=True)
    )
    wide = right - left
    high = low - top
    picture = draw(
        "canvas.picture",
        name=_counted(canvas, labels),
        scale=min(_SCALE, widest / max(wide, high)),
        frame=(left, top, wide, high),
        nodes=nodes,
        routes=routes,
        words=words,
        unit=unit,
        color=node_color,
        parts=title_and_text,
        text=node_text,
    )
    return draw("canvas.drawn", labels, picture=zoomable(picture), hidden=hidden)


def beside(canvas: Canvas, blocks: Iterable[Block], labels: Labels, order: int = 1) -> Markup:
    """Return the picture with tables next to it, or below it where there is no room; ``order`` -1 puts them first."""
    tables = page_html(blocks, labels)
    return draw("canvas.beside", picture=drawn(canvas, labels), tables=tables, order=order)


def _counted(canvas: Canvas, labels: Labels) -> str:
    return labels("canvas_told", n=len(canvas.nodes), m=len(canvas.edges), g=len(canvas.groups))


def _words(
    routes: Sequence[Route], boxes: Iterable[Patch], unit: float
) -> Iterator[tuple[Point, str, bool]]:
    """Yield place and label of each edge, on its own line and clear of nodes and other labels; none without room.

    True is a label with room only where the picture is not fitted to a page. Other edges are crossed only where there
    is no other place.
    """
    lines = [_lines(way, 3 * unit) for _, way in routes]
    lengths = [sum(line.wide + line.high for line in way) for way in lines]
    ends = [Patch(*way[-1], 12 * unit, 12 * unit) for _, way in routes]
    taken = [*boxes]
    # the short have few places
    for number in sorted(range(len(routes)), key=lengths.__getitem__):
        label = cut(node_text(routes[number][0], "label"), 60)
        long = sorted(lines[number], key=lambda line: -line.wide - line.high)
        places = [
            (line.x + line.wide * tenths / 10, line.y + line.high * tenths / 10)
            for tenths in sorted(range(-4, 5), key=abs)
            for line in long
        ]
        rest = chain(*lines[:number], *lines[number + 1 :])
        clear = [*taken, *ends]
        tries = [([*clear, *rest], unit), (clear, unit), (taken, 1 / _SCALE)]
        for obstacles, scale in tries if label else ():
            if at := free_patch(label, places, obstacles, 11 * scale, 0.9):
                taken.append(at)
                yield at[:2], label, scale < unit
                break


def _patch(node: Data, unit: float) -> Patch:
    """Return what is to be kept free of a node; of a group it is the title."""
    wide = node["width"]
    high = node["height"]
    if node["type"] == "group":
        title = width(node_title(node), 11) + 14
        wide = min(wide, title * unit)
        high = min(high, 20 * unit)
    return Patch(node["x"] + wide / 2, node["y"] + high / 2, wide, high)


def _lines(way: Sequence[Point], thick: float) -> list[Patch]:
    return [
        Patch((a + c) / 2, (b + d) / 2, abs(a - c) + thick, abs(b - d) + thick)
        for (a, b), (c, d) in pairwise(way)
    ]


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
        )
        for node in list(canvas.nodes.values())[:most_rows]
    ]
    heads = columns(labels, "canvas_id:code", "kb_type", "title", "canvas_group")
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
        heads = columns(labels, "why_wrong")
        faults = [(problem,) for problem in canvas.problems[:most_rows]]
        yield clipped(labels("canvas_problems", n=len(canvas.problems)), heads, faults)


def _path(canvas: Canvas, node_id: str) -> str:
    return " › ".join(
        filter(None, (node_title(canvas.nodes[i]) for i in canvas.around(node_id)[::-1]))
    )


def work_blocks(operation: str, entries: Sequence[Data], labels: Labels) -> Iterator[Block]:
    """Yield what an operation found, node by node."""
    heads = columns(labels, "canvas_node", "canvas_what:status", "canvas_said", "canvas_because")
    rows = []
    for entry in entries:
        score = f" · {entry['score']:.0%}" if entry["score"] is not None else ""
        results = [
            (labels(f"canvas_{row['kind']}"), row["text"], row["because"])
            for row in entry["rows"]
        ]
        results += [("", entry["note"], "")] if entry["note"] else []
        names = [f"{entry['title']}{score}", *[""] * len(results)]
        rows += [(name, *cells) for name, cells in zip(names, results, strict=False)]
    counts = Counter(kind for _, kind, *_ in rows if kind)
    title = " · ".join(
        [labels(f"canvas_{operation}"), *(f"{kind} {n}" for kind, n in counts.items())]
    )
    yield clipped(title, heads, rows)


# the ways of edges: along lanes around the nodes, at right angles, next to each other


_SPANS = (("x", "width"), ("y", "height"))


def ways(
    edges: Iterable[Data], nodes: Mapping[str, Data], boxes: Sequence[Patch], unit: float
) -> dict[str, list[Point]]:
    """Return the corners of each edge by its id.

    A place is where two lanes cross, twice: for ways across (axis 0) and for ways down (axis 1). An
    edge makes its own lane dearer for the next.

    Args:
        edges: those to draw.
        nodes: by id.
        boxes: what edges keep off.
        unit: the size of a pixel on the canvas.
    """
    import numpy as np  # with scipy it takes a second to load
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    # What a turn costs, a piece of a lane that has an edge already, and one that a node covers;
    # any other costs 1.
    turn = 4
    shared = 5
    over = 50
    # Pixels between two lanes, and about how many places there are; in a larger picture lanes are
    # farther apart.
    lane = 8
    most_places = 12_000
    middles = np.array(boxes)[:, :2]
    halves = np.array(boxes)[:, 2:] / 2 + 3 * unit
    areas = np.array([box(node) for node in nodes.values()])
    low = areas[:, :2].min(axis=0)
    high = areas[:, 2:].max(axis=0)
    apart = max(lane * unit, (np.prod(high - low) / most_places) ** 0.5)
    low = low - 4 * apart
    shape = np.ceil((high - low) / apart).astype(int) + 4
    places = np.arange(2 * shape.prod()).reshape(*shape, 2)
    across = places[..., 0]
    down = places[..., 1]
    pieces = [(across[:-1], across[1:]), (down[:, :-1], down[:, 1:]), (across, down)]
    costs = [
        np.full(piece[0].shape, cost) for piece, cost in zip(pieces, (1, 1, turn), strict=True)
    ]
    corners = (np.ceil((middles + sign * halves - low) / apart).astype(int) for sign in (-1, 1))
    for (left, top), (right, bottom) in zip(*corners, strict=True):
        costs[0][left - 1 : right, top:bottom] += over
        costs[1][left:right, top - 1 : bottom] += over
    ends = [np.concatenate([piece[end].ravel() for piece in pieces]) for end in (0, 1)]
    used = set[int]()

    # the axis on which an edge leaves a side, and whether that is the far side
    sides = {"left": (0, 0), "right": (0, 1), "top": (1, 0), "bottom": (1, 1)}

    def ports(node: Data, side: Any) -> dict[int, Point]:
        """Return the places next to a node where edges leave it, and that point of its border; the best first."""
        options = []
        for name in [side] if side in sides else sides:
            axis, end = sides[name]
            (at, size), (by, span) = _SPANS[axis], _SPANS[1 - axis]
            border = float(node[at] + end * node[size])
            beside = (border + (14 * end - 7) * unit - low[axis]) / apart
            middle = (node[by] + node[span] / 2 - low[1 - axis]) / apart
            half = (node[span] / 2 - 4 * unit) / apart
            for row in range(ceil(middle - half), floor(middle + half) + 1) or [round(middle)]:
                place = (ceil(beside) if end else floor(beside), row)
                point = (border, float(low[1 - axis] + row * apart))
                if axis:
                    place = place[::-1]
                    point = point[::-1]
                options.append((abs(row - middle), int(places[*place, axis]), point))
        best = {place: point for _, place, point in sorted(options)}
        return {place: best[place] for place in best if place not in used} or best

    def way(edge: Data) -> list[Point]:
        """Return the corners of the cheapest way."""
        first, last = (
            ports(nodes[edge[f"{end}Node"]], edge.get(f"{end}Side")) for end in ("from", "to")
        )
        cost = np.concatenate([cost.ravel() for cost in costs])
        streets = coo_array((cost, ends), (places.size,) * 2)
        total, before, _ = dijkstra(streets, False, list(first), True, min_only=True)
        walk = [min(last, key=total.__getitem__)]
        while walk[-1] not in first:
            walk.append(int(before[walk[-1]]))
        used.update((walk[0], walk[-1]))
        at = [
            place
            for place, _ in groupby(divmod(place // 2, shape[1]) for place in reversed(walk))
        ]
        for (i, j), (k, _) in map(sorted, pairwise(at)):
            costs[int(i == k)][i, j] += shared
        inner = [(float(low[0] + i * apart), float(low[1] + j * apart)) for i, j in at]
        points = [first[walk[-1]], *inner, last[walk[0]]]
        turns = (
            point
            for a, point, b in zip(points, points[1:], points[2:], strict=False)
            if a[0] != b[0] and a[1] != b[1]
        )
        return [points[0], *turns, points[-1]]

    return {edge["id"]: way(edge) for edge in edges}
