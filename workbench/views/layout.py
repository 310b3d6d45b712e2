"""The places of the nodes of a graph in layers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

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
        before = {node: [places[source][1] for source in graph.predecessors(node)] for node in members_in_order}
        members_in_order.sort(key=lambda node: sum(before[node]) / max(len(before[node]), 1))
        places |= {node: (layer, row - (len(members_in_order) - 1) / 2) for row, node in enumerate(members_in_order)}
    return Layers({node: places[node] for node in nodes}, back)
