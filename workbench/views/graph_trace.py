"""The conversation graph with the graphs inside it unfolded, and where a run went in it.

Nodes and edges are LangGraph's own (``get_graph(xray=True)``): what is drawn is what runs. Places are in
cells, x to the right, y downwards; the parent graph runs across, the ones inside it down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, TypedDict

from workbench.records.timeline import Bar, bars, busy_ms
from workbench.views.layout import Pair, layered

START, END = "__start__", "__end__"


class Node(TypedDict):
    """A node: ``times`` it ran, in ``duration_ms`` altogether (side by side counts once).

    ``status`` is ``done``, ``pending``, or how the run stands, where it stands there.
    """

    id: str
    name: str
    frame: str
    status: str
    times: int
    duration_ms: float
    x: float
    y: float


class Edge(TypedDict):
    """``conditional``: one of several that may be taken; ``back``: it leads to what ran before; ``times`` taken."""

    source: str
    target: str
    conditional: bool
    back: bool
    times: int


class Frame(TypedDict):
    """A graph inside the parent: the cells that it fills, and its ``status`` as of a node."""

    name: str
    status: str
    x0: float
    x1: float
    y0: float
    y1: float


@dataclass(frozen=True)
class Walked:
    """The graph, and where a run went in it."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    frames: tuple[Frame, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One row a node, then one row an edge."""
        names = {node["id"]: node["name"] for node in self.nodes}
        rows: list[dict[str, Any]] = []
        for node in self.nodes:
            of_node = {key: node[key] for key in ("name", "status", "times", "duration_ms")}
            graph = node["frame"] or "conversation"
            rows.append({"kind": "node", "name": "", "graph": graph, **of_node, "source": "", "target": ""})
        for edge in self.edges:
            source, target = names[edge["source"]], names[edge["target"]]
            told: dict[str, Any] = {"kind": "edge", "name": f"{source} → {target}", "graph": ""}
            told |= {"status": "done" if edge["times"] else "pending", "times": edge["times"], "duration_ms": None}
            rows.append({**told, "source": source, "target": target})
        return rows


def walked(
    graph: Any, log: Iterable[Mapping[str, Any]] = (), status: str = "pending", current: Collection[str] = ()
) -> Walked:
    """Where a run went.

    Args:
        graph: LangGraph's drawable graph, unfolded: nodes inside another one are named ``outer:inner``.
        log: of the run, one entry a node that ran.
        status: of the run.
        current: where it stands now: ids of nodes, or names of frames; as many times as there are tasks.
    """
    frames, edges = _unfolded(graph)
    log = sorted(log, key=lambda entry: entry["timestamp"])
    ids = {_name(node): node for node in reversed(frames)}
    runs: dict[str, list[Bar]] = {node: [] for node in frames}
    for bar in bars(log, ()):
        if bar.name in ids:
            runs[ids[bar.name]].append(bar)
    route = [ids[name] for name, _ in groupby(entry["node"] for entry in log) if name in ids]
    if route:
        route = [START, *route, *([END] if status == "done" else [])]
    taken = Counter(pairwise(route))
    if route and status != "done":
        taken.update((route[-1], node) for node in dict.fromkeys(current))

    def standing(names: set[str], visited: bool) -> str:
        if status != "done" and names.intersection(current):
            return status
        return "done" if visited else "pending"

    places, boxes = _places(frames, edges)
    back = layered(frames, edges).back
    nodes = tuple(
        Node(
            id=node,
            name=_name(node),
            frame=frame,
            status=standing({node}, node in route),
            times=len(runs[node]),
            duration_ms=round(busy_ms(runs[node]), 3),
            x=places[node][0],
            y=places[node][1],
        )
        for node, frame in frames.items()
    )
    return Walked(
        nodes,
        tuple(
            Edge(source=a, target=b, conditional=either, back=(a, b) in back, times=taken[a, b])
            for (a, b), either in edges.items()
        ),
        tuple(
            Frame(name=name, status=standing({name, *inside}, not inside.isdisjoint(route)), x0=x0, x1=x1, y0=y0, y1=y1)
            for name, (x0, x1, y0, y1) in boxes.items()
            for inside in ({node for node, frame in frames.items() if frame == name},)
        ),
    )


def _name(node: str) -> str:
    return node.rpartition(":")[2]


def _unfolded(graph: Any) -> tuple[dict[str, str], dict[tuple[str, str], bool]]:
    """Node -> its frame, and (source, target) -> whether conditional, both in the order of the graph.

    The beginnings and ends of the graphs inside are left out: who leads there leads to what comes behind.
    """
    edges = {(edge.source, edge.target): bool(edge.conditional) for edge in graph.edges}
    for inner in [node for node in graph.nodes if ":" in node and _name(node) in (START, END)]:
        before = [(a, either) for (a, b), either in edges.items() if b == inner]
        after = [(b, either) for (a, b), either in edges.items() if a == inner]
        edges = {pair: either for pair, either in edges.items() if inner not in pair}
        edges |= {(a, b): one or other for a, one in before for b, other in after}
    nodes = [node for node in graph.nodes if not (":" in node and _name(node) in (START, END))]
    place = {node: at for at, node in enumerate(nodes)}
    ordered = sorted(edges.items(), key=lambda edge: (place[edge[0][0]], place[edge[0][1]]))
    return {node: node.rpartition(":")[0] for node in nodes}, dict(ordered)


Point = tuple[float, float]
Box = tuple[float, float, float, float]


def _stacked(names: Collection[str], inside: Mapping[str, Mapping[str, tuple[int, float]]]) -> dict[str, float]:
    """The row of each node of one layer, where some are frames: as high as what is in them. Else it stays as it is."""
    if not any(name in inside for name in names):
        return {}
    high = {name: 2 + max(depth for depth, _ in inside[name].values()) if name in inside else 1 for name in names}
    rows, top = dict[str, float](), 0.0
    for name in names:
        rows[name] = top + high[name] / 2
        top += high[name]
    middle = next(rows[name] for name in names if name in inside)
    return {name: row - middle for name, row in rows.items()}


def _places(
    frames: Mapping[str, str], edges: Collection[Pair]
) -> tuple[dict[str, tuple[float, float]], dict[str, Box]]:
    """(x, y) of each node, and (x0, x1, y0, y1) of each frame: a frame is a node as large as its graph."""
    outer = dict.fromkeys(frame or node for node, frame in frames.items())
    between = {(frames[a] or a, frames[b] or b) for a, b in edges}
    parent = layered(outer, sorted(pair for pair in between if pair[0] != pair[1])).places
    inside = {
        name: layered(
            [node for node, frame in frames.items() if frame == name],
            [(a, b) for a, b in edges if frames[a] == frames[b] == name],
        ).places
        for name in outer
        if name not in frames
    }
    wide = {name: 1 + 2 * max(row for _, row in grid.values()) for name, grid in inside.items()}
    places, boxes, left = dict[str, Point](), dict[str, Box](), 0.0
    for layer in range(max((layer for layer, _ in parent.values()), default=-1) + 1):
        here = [name for name in outer if parent[name][0] == layer]
        width = max(wide.get(name, 1) for name in here)
        rows = _stacked(sorted(here, key=lambda name: parent[name][1]), inside) if len(here) > 1 else {}
        for name in here:
            x, y = left + width / 2, rows.get(name, parent[name][1])
            if name not in inside:
                places[name] = (x, y)
                continue
            high = 1 + max(depth for depth, _ in inside[name].values())
            boxes[name] = (x - wide[name] / 2, x + wide[name] / 2, y - high / 2, y + high / 2)
            places |= {node: (x + row, y - (high - 1) / 2 + depth) for node, (depth, row) in inside[name].items()}
        left += width
    return places, boxes
