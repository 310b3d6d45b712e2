"""Where the nodes of a graph stand: in layers, or in the lanes of a gutter next to a list, as in a git log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from markupsafe import Markup

from workbench.views.page import el

Pair = tuple[str, str]
"""An edge: its source and its target."""


class Layers(NamedTuple):
    """A graph from its sources on.

    Attributes:
        places: (layer, row) of each node: behind all that lead to it, and near the middle of those; rows are centred
            on 0.
        back: the edges that lead back into what came before, which the layers leave out.
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
        here = [node for node in nodes if node in set(members)]
        before = {node: [places[one][1] for one in graph.predecessors(node)] for node in here}
        here.sort(key=lambda node: sum(before[node]) / max(len(before[node]), 1))
        places |= {node: (layer, row - (len(here) - 1) / 2) for row, node in enumerate(here)}
    return Layers({node: places[node] for node in nodes}, back)


# gutters

MOST_LANES = 8
"""Lines beyond these share the last lane."""
_MID, _LOW, _FAR, _FIRST, _APART = 26, 52, 999, 9, 13
_STRENGTH = ("dashed", "plain", "heavy", "cycle")


class Edge(NamedTuple):
    """From one row to another; ``look`` is ``plain``, ``heavy``, ``dashed`` or ``cycle``."""

    source: int
    target: int
    look: str = "plain"

    @property
    def rows(self) -> tuple[int, int]:
        """Return its rows, the upper one first."""
        return min(self.source, self.target), max(self.source, self.target)


@dataclass
class _Bus:
    """Edges that share a line: all that leave one row, or all that come to one.

    ``looks`` is that of the piece between the middle of a row and the middle of the next.
    """

    owner: int
    lane: int = 0
    looks: dict[int, str] = field(default_factory=dict)
    at: dict[int, list[Edge]] = field(default_factory=dict)

    def add(self, edge: Edge) -> None:
        """Take an edge in."""
        for row in range(*edge.rows):
            self.looks[row] = max(self.looks.get(row, edge.look), edge.look, key=_STRENGTH.index)
        for row in edge.rows:
            self.at.setdefault(row, []).append(edge)

    @property
    def last(self) -> int:
        """Return the row that its line ends in."""
        return max(self.at)


class Row(NamedTuple):
    """The gutter of one row: the lane of its dot, and the lines through it, each a look and a path."""

    lane: int
    lines: tuple[tuple[str, str], ...]


def gutters(count: int, edges: tuple[Edge, ...]) -> tuple[list[Row], int]:
    """Return the gutter of each row, and its width in pixels.

    Two rows that feed a third share its line; so do those that one row feeds.

    Args:
        count: of rows.
        edges: between them; a dot stands where its line ends.

    >>> [row.lane for row in gutters(3, (Edge(0, 2), Edge(1, 2)))[0]], gutters(1, ())[1]
    ([0, 1, 0], 18)
    """
    starting: dict[int, list[_Bus]] = {}
    for bus in _buses(edges):
        starting.setdefault(min(bus.at), []).append(bus)
    active: list[_Bus] = []
    rows, widest = list[Row](), 0
    for row in range(count):
        lane = _lane_of(row, active)
        going = {bus.lane for bus in active if bus.last > row}
        for bus in sorted(starting.get(row, ()), key=lambda b: (b.owner != row, b.last)):
            bus.lane = lane if lane not in going else _free({*going, lane})
            going.add(bus.lane)
            active.append(bus)
        rows.append(Row(lane, tuple(line for bus in active for line in _lines(bus, row, lane))))
        widest = max([widest, lane, *going])
        active = [bus for bus in active if bus.last > row]
    return rows, _x(widest) + _FIRST


def gutter_drawn(row: Row, width: int, hollow: bool = False) -> Markup:
    """Return the gutter of one row as SVG; its lines go on as far down as the row is high."""
    by_look: dict[str, str] = {}
    for look, path in row.lines:
        by_look[look] = by_look.get(look, "") + path
    paths = [el(f"path.wb-dag.wb-dag-{look}", d=by_look[look]) for look in _STRENGTH if look in by_look]
    dot = el("circle.wb-dot.wb-hollow" if hollow else "circle.wb-dot", cx=_x(row.lane), cy=_MID, r=4)
    return el("svg.wb-gutter", paths, dot, width=width, aria_hidden="true")


def _buses(edges: Iterable[Edge]) -> Iterable[_Bus]:
    edges = [edge for edge in dict.fromkeys(edges) if edge.source != edge.target]
    feeds, fed = Counter(edge.source for edge in edges), Counter(edge.target for edge in edges)
    made: dict[tuple[str, int], _Bus] = {}
    for place, edge in enumerate(edges):
        to = fed[edge.target] >= feeds[edge.source]
        owner = edge.target if to else edge.source
        key = ("cycle", place) if edge.look == "cycle" else ("to" if to else "from", owner)
        made.setdefault(key, _Bus(-1 if edge.look == "cycle" else owner)).add(edge)
    return made.values()


def _lane_of(row: int, active: Sequence[_Bus]) -> int:
    ending = [bus.lane for bus in active if bus.last == row]
    owned = [bus.lane for bus in active if bus.owner == row]
    return min(ending or owned, default=_free({bus.lane for bus in active}))


def _free(used: Collection[int]) -> int:
    return next((lane for lane in range(MOST_LANES) if lane not in used), MOST_LANES - 1)


def _lines(bus: _Bus, row: int, lane: int) -> Iterator[tuple[str, str]]:
    x, here, on = _x(bus.lane), _x(lane), bus.lane == lane
    above, below = bus.looks.get(row - 1, ""), bus.looks.get(row, "")
    by_strength = sorted(bus.at.get(row, ()), key=lambda edge: _STRENGTH.index(edge.look))
    joined = {edge.rows[0] == row: edge for edge in by_strength}
    if above and (on or below):
        yield (below if not on and False in joined else above), f"M{x} 0V{_MID}"
    if below and (on or above):
        yield (above if not on and True in joined else below), f"M{x} {_MID}V{_LOW}"
    if below:
        yield below, f"M{x} {_LOW}V{_FAR}"
    for down, edge in joined.items():
        if not on:
            end = _LOW if down else 0
            half = (end + _MID) // 2
            yield edge.look, f"M{x} {end}C{x} {half} {here} {half} {here} {_MID}"


def _x(lane: int) -> int:
    return _FIRST + _APART * lane
