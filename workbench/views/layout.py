"""The places of the nodes of a graph: in layers, or next to a list with lines in its gutter."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from workbench.views.markup import draw

Pair = tuple[str, str]
"""An edge: its source and its target."""


class Layers(NamedTuple):
    """The layers of a graph.

    Attributes:
        places: (layer, row) of each node: after its predecessors, and close to their middle; rows are centred on 0.
        back: the edges that lead back to an earlier layer, which are ignored.
    """

    places: dict[str, tuple[int, float]]
    back: set[Pair]


def layered(nodes: Collection[str], edges: Iterable[Pair]) -> Layers:
    """Return the layers of a graph, which may have cycles.

    >>> layered("abcd", [("a", "c"), ("b", "c"), ("c", "d"), ("d", "c")])
    Layers(places={'a': (0, -0.5), 'b': (0, 0.5), 'c': (1, 0.0), 'd': (2, 0.0)}, back={('d', 'c')})
    """
    import networkx

    graph: networkx.DiGraph[str] = networkx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    back = set[Pair]()
    while not networkx.is_directed_acyclic_graph(graph):
        source, target = networkx.find_cycle(graph)[-1][:2]
        graph.remove_edge(source, target)
        back.add((source, target))
    places: dict[str, tuple[int, float]] = {}
    for layer, members in enumerate(networkx.topological_generations(graph)):
        members_in_order = [node for node in nodes if node in set(members)]
        before = {
            node: [places[source][1] for source in graph.predecessors(node)]
            for node in members_in_order
        }
        members_in_order.sort(key=lambda node: sum(before[node]) / max(len(before[node]), 1))
        places |= {
            node: (layer, row - (len(members_in_order) - 1) / 2)
            for row, node in enumerate(members_in_order)
        }
    return Layers({node: places[node] for node in nodes}, back)


# gutters

MOST_LANES = 8
"""Further lines share the last lane."""
_MIDDLE, _LOW, _BOTTOM, _FIRST, _APART = 17, 43, 999, 9, 13
_STRENGTH = ["dashed", "plain", "heavy", "cycle"]
Path = tuple[str, str]
"""The look of a line and its SVG path."""


class Edge(NamedTuple):
    """An edge from one row to another; ``look`` is ``plain``, ``heavy``, ``dashed`` or ``cycle``."""

    source: int
    target: int
    look: str = "plain"


def gutters(count: int, edges: Iterable[Edge]) -> tuple[list[list[Path]], int]:
    """Return the lines of each row, and the width of the gutter in pixels.

    Dots are on lane 0. Edges to the same row share a lane, which is straight between neighbouring rows.

    >>> [len(lines) for lines in gutters(3, [Edge(0, 2), Edge(1, 2)])[0]], gutters(1, [])[1]
    ([1, 2, 2], 18)
    """
    groups: dict[int, list[Edge]] = {}
    for edge in edges:
        if edge.source != edge.target:
            groups.setdefault(edge.target, []).append(edge)
    rows: list[list[Path]] = [[] for _ in range(count)]
    ends = list[int]()
    for group in sorted(groups.values(), key=lambda group: min(min(edge[:2]) for edge in group)):
        first, *_, last = sorted(row for edge in group for row in edge[:2])
        free = [lane for lane, end in enumerate(ends) if end <= first]
        lane = (
            0 if last - first == 1 else 1 + (free[0] if free else min(len(ends), MOST_LANES - 2))
        )
        if lane:
            ends[lane - 1 : lane] = [last]
        for row in range(first, last + 1):
            rows[row] += _lines(group, row, lane)
    return rows, _x(len(ends)) + _FIRST


def gutter_svg(lines: Sequence[Path], width: int, hollow: bool = False) -> Markup:
    """Return the gutter of one row as SVG, whose lines reach as far down as the row is high."""
    return draw("svg.gutter", lines=lines, width=width, hollow=hollow, x=_x(0), y=_MIDDLE)


def _lines(group: Sequence[Edge], row: int, lane: int) -> Iterator[Path]:
    """Yield the lines of edges with a common target in one row."""
    x = _x(lane)
    dot = _x(0)
    up = f"M{x} 0C{x} 9 {dot} 9 {dot} {_MIDDLE}"
    down = f"M{x} {_BOTTOM}V{_LOW}C{x} 30 {dot} 30 {dot} {_MIDDLE}"
    covering = [edge for edge in group if min(edge[:2]) <= row <= max(edge[:2])]
    joins = [edge for edge in covering if row in edge[:2]]
    if passing := [edge for edge in covering if row not in edge[:2]]:
        yield _strongest(passing), f"M{x} 0V{_BOTTOM}"
    for path, tip, edges in (
        (up, "6h8l-4 7z", [edge for edge in joins if min(edge[:2]) < row]),
        (down, "28h8l-4 -7z", [edge for edge in joins if max(edge[:2]) > row]),
    ):
        if edges:
            yield _strongest(edges), path
            if row == group[0].target:
                yield f"{_strongest(edges)} wb-tip", f"M{dot - 4} {tip}"


def _strongest(edges: Iterable[Edge]) -> str:
    return max((edge.look for edge in edges), key=_STRENGTH.index)


def _x(lane: int) -> int:
    return _FIRST + _APART * lane
