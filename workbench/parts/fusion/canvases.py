"""An open canvas: shown as a picture without a script and as tables; worked on with what a base says, into a copy."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, count, groupby, pairwise
from math import ceil
from pathlib import Path
from typing import Any
from uuid import uuid4

from markupsafe import Markup

from workbench.errors import UnknownKnowledge, shown
from workbench.knowledge.reading.files import Unreadable
from workbench.parts.fusion.canvas import (
    SUFFIX,
    Canvas,
    CanvasError,
    box,
    node_color,
    node_text,
    node_title,
    title_and_text,
)
from workbench.parts.fusion.canvas_work import Desk, Entry, known_operation, work, worth
from workbench.records.writing import write_file
from workbench.state import Data, Json
from workbench.views.blocks import Block, clipped, columns
from workbench.views.drawing import Patch, free_patch, width, zoomable
from workbench.views.labels import Labels, labels_for
from workbench.views.markup import cut, draw, el
from workbench.views.render import Shown, page_html

_SCALE = 0.75
"""Pixels for a unit of the canvas where it is not fitted to a page."""
Point = tuple[float, float]
Route = tuple[Data, Sequence[Point]]


class CanvasFile(Canvas, Shown):
    """A canvas in a file, as ``wb.canvas`` opens it.

    Attributes:
        path: the file.
        nodes, edges: by id, as the file has them.
        problems: what is wrong in it, with the fix; it stays in the file unchanged.
    """

    def __init__(self, path: Path, workspace: Any):
        try:
            if path.suffix.lower() != SUFFIX:
                raise Unreadable(f"a canvas ends in {SUFFIX}: rename it")
            super().__init__(self.read_text(path))
        except (Unreadable, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise CanvasError(f"{shown(str(path))} cannot be opened: {why}.") from None
        self.path = path
        self.workspace = workspace

    @property
    def message(self) -> str:  # type: ignore[override]
        """Return the first text, which determines the language."""
        texts = (node_text(node, "text") for node in self.nodes.values())
        return next(filter(None, texts), "")

    def blocks(self) -> list[Block]:
        """Return nodes, edges and problems as tables."""
        return list(canvas_blocks(self, labels_for(self.message)))

    def to_dict(self) -> Json:
        """Return the canvas as JSON: nodes with the groups around them, edges, problems."""
        return {
            "canvas_path": str(self.path),
            "nodes": [{**node, "groups": self.around(i)} for i, node in self.nodes.items()],
            "edges": list(self.edges.values()),
            "problems": self.problems,
        }

    def _repr_html_(self) -> str:
        return beside(self, self.blocks(), labels_for(self.message))

    def __repr__(self) -> str:
        return f"<Canvas {self.path.name}: {len(self.nodes)} nodes, {len(self.edges)} edges>"

    def work(self, operation: str, nodes: Iterable[str] = (), kb: str | None = None) -> Worked:
        """Work on nodes: ``decomposition``, ``scoring``, ``explanation``, ``verification`` or ``review`` of them.

        Args:
            operation: its name.
            nodes: their ids; none means the answers for ``scoring``, and every node with a text for the others.
            kb: the knowledge base to ask; None for a temporary one of this canvas file, to which no other question can
                be routed; ``wb.add_knowledge`` makes one that lasts.

        Raises:
            CanvasError: there is no such operation or node.
        """
        known_operation(operation)
        node_ids = [nodes] if isinstance(nodes, str) else list(nodes)
        with self._base(kb) as base:
            desk = Desk(self, base, labels_for(self.message))
            return Worked(operation, tuple(work(desk, operation, node_ids)), self, base.name)

    @contextmanager
    def _base(self, kb: str | None) -> Iterator[Any]:
        """Yield the base of that name, or a temporary one of this canvas."""
        if kb is not None:
            yield self.workspace.knowledge.get(kb)
            return
        name = f"canvas-{uuid4().hex[:12]}"
        try:
            self.workspace.add_knowledge(name, [self.path], lambda *_: None)
            yield self.workspace.knowledge.get(name)
        finally:
            with suppress(UnknownKnowledge):
                self.workspace.knowledge.remove(name)


@dataclass(frozen=True)
class Worked(Shown):
    """The results of an operation on nodes of a canvas.

    Attributes:
        operation: its name.
        entries: one per node: ``node``, ``title``, ``score``, ``note``, ``run_id``, and ``rows`` of ``kind``, ``text``,
            ``because`` and ``node``.
        canvas: the canvas.
        kb: the knowledge base that was asked.
    """

    operation: str
    entries: tuple[Entry, ...]
    canvas: CanvasFile
    kb: str

    @property
    def message(self) -> str:  # type: ignore[override]
        """Return the first text of the canvas, which determines the language."""
        return self.canvas.message

    def to_dict(self) -> Json:
        """Return the results as JSON."""
        return {
            "canvas_path": str(self.canvas.path),
            "operation": self.operation,
            "kb": self.kb,
            "target_nodes": [entry["node"] for entry in self.entries],
            "results": list(self.entries),
        }

    def blocks(self) -> list[Block]:
        """Return a table for each node."""
        return list(work_blocks(self.operation, self.entries, labels_for(self.message)))

    def _repr_html_(self) -> str:
        labels = labels_for(self.message)
        # of many results the picture has the counts, at their nodes
        many = len(self.entries) >= 10
        marks = {e["node"]: " · ".join(_counts(e, labels)) for e in self.entries if many}
        canvas = self.canvas if many else self.copy()
        return beside(canvas, self.blocks(), labels, -1, marks)

    def copy(self) -> Canvas:
        """Return the canvas with the results: a new node next to each target, with edges to the nodes it is about."""
        labels = labels_for(self.message)
        canvas = self.canvas
        numbers = count(
            1 + max(map(int, re.findall(r'"wb-\w+-(\d{1,9})"', canvas.raw)), default=0)
        )
        placed = dict(canvas.nodes)
        nodes = []
        edges = []

        def connect(start: str, end: str, name: str) -> None:
            edge = {"id": f"wb-edge-{next(numbers)}", "fromNode": start, "toNode": end}
            edges.append({**edge, "label": labels(f"canvas_{name}")})

        for entry in self.entries:
            color = "6"
            head = [f"**{labels(f'canvas_{self.operation}')}**"]
            if entry["score"] is not None:
                color = {0.0: "1", 0.5: "2", 1.0: "4"}[worth(entry["rows"][0]["kind"])]
                head += _counts(entry, labels)
            lines = [
                f"- {labels('canvas_' + row['kind'])}: {row['text']} — {row['because']}"
                for row in entry["rows"]
            ]
            text = "\n".join(filter(None, [" · ".join(head), *lines, entry["note"]]))
            new = {
                "id": f"wb-text-{next(numbers)}",
                "type": "text",
                "text": text,
                **_size(text),
                "color": color,
            }
            new["x"], new["y"] = _room(canvas, placed, new, entry["node"])
            nodes.append(placed.setdefault(new["id"], new))
            connect(entry["node"], new["id"], self.operation)
            worst = {row["node"]: row["kind"] for row in reversed(entry["rows"])}
            for node, kind in worst.items():
                if node not in ("", entry["node"]):
                    connect(node, new["id"], kind)
        added = {"nodes": nodes, "edges": edges}
        return Canvas(
            _text(
                {**canvas.content, **{n: [*canvas.content.get(n, ()), *added[n]] for n in added}}
            )
        )

    def save(self, path: str | Path) -> CanvasFile:
        """Write that copy into a file.

        Raises:
            CanvasError: the file is there already, with something else in it.
        """
        return CanvasFile(write(Path(path).expanduser(), self.copy().raw), self.canvas.workspace)


def _counts(entry: Entry, labels: Labels) -> list[str]:
    """Return how many results of each kind there are."""
    counts = Counter(labels(f"canvas_{row['kind']}") for row in entry["rows"])
    return [f"{kind} {n}" for kind, n in counts.items()]


def _size(text: str) -> Json:
    # 汉字 is wide
    lines = sum(1 + len(line.encode("gb18030", "replace")) // 42 for line in text.split("\n"))
    return {"width": 400, "height": max(80, 40 + 26 * lines)}


def _room(canvas: Canvas, placed: Mapping[str, Data], new: Data, node_id: str) -> list[int]:
    """Return the nearest free place right of a node and outside of groups, which would hold it too."""
    gap = 40
    size = new["width"], new["height"]
    _, top, right, _ = box(canvas.nodes[node_id])
    taken = [*map(box, placed.values())]

    def free(axis: int) -> list[int]:
        place = [ceil(right) + 2 * gap, ceil(top)]
        for area in sorted(taken, key=lambda area: area[axis]):
            if all(
                area[n] < place[n] + size[n] + gap and area[n + 2] + gap > place[n]
                for n in (0, 1)
            ):
                place[axis] = ceil(area[axis + 2]) + gap
        return place

    return min(free(1), free(0), key=sum)


def _text(content: Data) -> str:
    """Return a canvas as text.

    Raises:
        CanvasError: a number is infinite for Python, as 1e400, for which JSON has no word.
    """
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent="\t")
    except ValueError:
        raise CanvasError(
            "A number of the canvas is too large to be written: make it smaller."
        ) from None
    # half of a surrogate pair has no UTF-8
    return json.dumps(content, indent="\t") if re.search("[\ud800-\udfff]", text) else text


def write(place: Path, text: str) -> Path:
    """Put a canvas into a new file, wholly or not at all.

    Raises:
        CanvasError: it is there already, with something else in it; or cannot be written.
    """
    if place.suffix.lower() != SUFFIX:
        raise CanvasError(f"{shown(str(place))} is not a name of a canvas: end it in {SUFFIX}.")
    return write_file(place, text.encode(), replace=False, kind=CanvasError)


def canvas(wb: Any, path: str | Path) -> CanvasFile:
    """Open a JSON Canvas: see it, work on its nodes, put answers next to them in a copy.

    Raises:
        CanvasError: the file is not a canvas, or cannot be read.
    """
    wb._must_be_open()
    return CanvasFile(Path(path).expanduser(), wb)


# its picture and tables


def drawn(canvas: Canvas, labels: Labels, marks: Mapping[str, str] = {}) -> Markup:
    """Return the picture: groups behind, then nodes with their ``marks``, then edges; everything in it is text."""
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
        name=labels(
            "canvas_told", n=len(canvas.nodes), m=len(canvas.edges), g=len(canvas.groups)
        ),
        scale=_SCALE,
        frame=(left, top, wide, high),
        nodes=nodes,
        routes=routes,
        words=words,
        unit=unit,
        color=node_color,
        parts=title_and_text,
        text=node_text,
        marks=marks,
    )
    return draw("canvas.drawn", labels, picture=zoomable(picture), hidden=hidden)


def beside(
    canvas: Canvas,
    blocks: Iterable[Block],
    labels: Labels,
    order: int = 1,
    marks: Mapping[str, str] = {},
) -> Markup:
    """Return the picture with tables next to it, or below it where there is no room; ``order`` -1 puts them first."""
    tables = page_html(blocks, labels)
    return draw("canvas.beside", picture=drawn(canvas, labels, marks), tables=tables, order=order)


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


def canvas_blocks(canvas: Canvas, labels: Labels) -> Iterator[Block]:
    """Yield what is on a canvas, as tables."""
    most_rows = 200
    titles = {i: node_title(node) for i, node in canvas.nodes.items()}
    rows = [
        (
            i,
            labels(f"canvas_{canvas.nodes[i]['type']}"),
            title,
            " › ".join(filter(None, map(titles.get, canvas.around(i)[::-1]))),
        )
        for i, title in list(titles.items())[:most_rows]
    ]
    heads = columns(labels, "canvas_id:code", "kb_type", "title", "canvas_group")
    yield clipped(labels("canvas_nodes", n=len(canvas.nodes)), heads, rows)
    links = [
        (titles[start], label, titles[end])
        for _, start, label, end in list(canvas.links())[:most_rows]
    ]
    if links:
        title = labels("canvas_edges", n=len(canvas.edges))
        heads = columns(labels, "canvas_from", "relation", "canvas_to")
        yield clipped(title, heads, links, opened=False)
    if canvas.problems:
        faults = [(problem,) for problem in canvas.problems[:most_rows]]
        title = labels("canvas_problems", n=len(canvas.problems))
        yield clipped(title, columns(labels, "why_wrong"), faults)


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


_SIDES = {"left": (-1, 0), "right": (1, 0), "top": (0, -1), "bottom": (0, 1)}
"""A side of a node -> the direction in which an edge leaves it."""


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

    def ports(node: Data, side: object) -> dict[int, Point]:
        """Return the places next to a node where edges leave it, and that point of its border; the best first."""
        size = np.array([node["width"], node["height"]])
        middle = np.array(box(node)[:2]) + size / 2
        chosen = [direction for name, direction in _SIDES.items() if name == side]
        options = []
        for out in map(np.array, chosen or _SIDES.values()):
            along = abs(out[::-1])
            border = middle + out * size / 2
            nearest = np.rint((border + 7 * unit * out - low) / apart + out / 2).astype(int)
            reach = max(0, int((size @ along / 2 - 4 * unit) / apart))
            for offset in range(-reach, reach + 1):
                place = nearest + offset * along
                x, y = np.where(out, border, low + place * apart)
                options.append((abs(offset), int(places[*place, along[0]]), (float(x), float(y))))
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
        at = [
            place
            for place, _ in groupby(divmod(place // 2, shape[1]) for place in reversed(walk))
        ]
        used.update((walk[0], walk[-1]))
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
