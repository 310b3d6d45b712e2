"""A canvas to look at: its nodes where they stand, as SVG without a script; its rows, and what an operation found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

from markupsafe import Markup

from workbench.parts.fusion.canvas import (
    COLORS,
    Canvas,
    node_color,
    node_text,
    node_title,
    title_and_text,
)
from workbench.parts.fusion.routing import Point, ways
from workbench.state import Data
from workbench.views.blocks import Block, Lines, clipped, columns
from workbench.views.drawing import Patch, free_patch, width, zoomable
from workbench.views.labels import Labels
from workbench.views.markup import cut, draw, el
from workbench.views.render import page_html

_SCALE = 0.75
"""Pixels for a unit of the canvas where it is not fitted to a page."""
Route = tuple[Data, Sequence[Point]]
_INK = dict(
    zip(
        COLORS.values(),
        ["#e93147", "#ec7500", "#d9a800", "#08b94e", "#00a8a5", "#7852ee"],
        strict=True,
    )
)  # readable on white and on black


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
    corners = [
        (node["x"] + end * node["width"], node["y"] + end * node["height"])
        for node in nodes
        for end in (0, 1)
    ]
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
        ink=_ink,
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


def _ink(element: Data) -> str:
    color = node_color(element)
    return _INK.get(color) or color or "var(--wb-idle-fill)"


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
    rows = list[Sequence[str]]()
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
