"""The conversation graph with its subgraphs unfolded, and the path of a run through it.

Nodes and edges are LangGraph's own (``get_graph(xray=True)``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from workbench.records.timeline import bars, busy_ms, span_ms
from workbench.state import Data, Json
from workbench.views.drawing import Box, Drawing, Line, network, sheet
from workbench.views.labels import Labels, milliseconds
from workbench.views.markup import family

START, END = "__start__", "__end__"


class Walked(NamedTuple):
    """The graph, and the path of a run.

    A node has the ``times`` that it ran, its ``duration_ms`` (parallel runs count once), its ``share`` of the time of
    the run, the subgraph that it belongs to as ``graph``, and a ``status``: ``done``, ``pending``, or the status of the
    run at its current node. An edge is ``conditional`` where others may be taken instead; ``times`` counts how often
    it was.
    """

    nodes: Sequence[Json]
    edges: Sequence[Json]

    def rows(self) -> list[Json]:
        """Return one row per node, then one row per edge."""
        nodes = [{"kind": "node", **node} for node in self.nodes]
        return [*nodes, *({"kind": "edge", **edge} for edge in self.edges)]


def walked(
    graph: Any,
    log: Iterable[Data] = (),
    status: str = "pending",
    current: Collection[str] = (),
    unasked: Collection[str] = (),
) -> Walked:
    """Follow a run through its graph.

    Args:
        graph: LangGraph's drawable graph, unfolded: the nodes of a subgraph are named ``outer:inner``.
        log: of the run, one entry per executed node.
        status: of the run.
        current: its current nodes; the name of a subgraph means its first node.
        unasked: the names of nodes that it passed without doing anything.
    """
    nodes, edges = _unfolded(graph, unasked)
    first = {node.rpartition(":")[0]: node for node in reversed(nodes)}
    active = {
        node if node in nodes else first.get(node, "") for node in current if status != "done"
    }
    log = sorted(log, key=lambda entry: entry["timestamp"])
    log = [entry for entry in log if entry["node"] not in unasked]
    ids = {_name(node): node for node in reversed(nodes)}
    drawn = bars([{**entry, "node_type": ""} for entry in log], ())
    total = span_ms(drawn) or 1.0
    ran = [bar for bar in drawn if bar.kind == "node"]
    runs = {node: [bar for bar in ran if ids.get(bar.name) == node] for node in nodes}
    route = [ids[name] for name, _ in groupby(entry["node"] for entry in log) if name in ids]
    if route:
        route = [START, *route, *([END] if status == "done" else active)]
    statuses = dict.fromkeys(route, "done") | dict.fromkeys(active, status)
    rows = [
        {
            "id": node,
            "name": _name(node),
            "graph": node.rpartition(":")[0],
            "status": statuses.get(node, "pending"),
            "times": len(runs[node]),
            "duration_ms": round(busy_ms(runs[node]), 3),
            "share": busy_ms(runs[node]) / total,
        }
        for node in nodes
    ]
    times = _taken(route, edges)
    ways: list[Json] = [
        {
            "source": source,
            "target": target,
            "conditional": conditional,
            "status": "done" if times[source, target] else "pending",
            "times": times[source, target],
        }
        for (source, target), conditional in edges.items()
    ]
    return Walked(rows, ways)


def _taken(
    route: Sequence[str], edges: Mapping[tuple[str, str], bool]
) -> Counter[tuple[str, str]]:
    """Count how often each edge was taken: all that leave a node, or one of those that are conditional."""
    times = Counter[tuple[str, str]]()
    ahead = set[tuple[str, str]]()
    for node in route:
        for edge in [edge for edge in ahead if edge[1] == node]:
            times[edge] += 1
            ahead -= {way for way in ahead if way == edge or (edges[edge] and way[0] == edge[0])}
        ahead |= {edge for edge in edges if edge[0] == node}
    return times


def _name(node: str) -> str:
    return node.rpartition(":")[2]


def _unfolded(
    graph: Any, unasked: Collection[str]
) -> tuple[list[str], dict[tuple[str, str], bool]]:
    """Return the nodes, and (source, target) -> whether conditional, in the order of the graph.

    The start and end nodes of subgraphs are left out. Their neighbours and those of unasked nodes are connected.
    """
    edges = {(edge.source, edge.target): bool(edge.conditional) for edge in graph.edges}
    gates = [node for node in graph.nodes if ":" in node and _name(node) in (START, END)]
    for gate in [*gates, *(node for node in graph.nodes if _name(node) in unasked)]:
        through = {
            (source, target): first or second
            for (source, way_in), first in edges.items()
            for (way_out, target), second in edges.items()
            if way_in == way_out == gate
        }
        edges = {pair: edges[pair] for pair in edges if gate not in pair} | through
    nodes = [node for node in graph.nodes if node not in gates]
    return nodes, dict(sorted(edges.items(), key=lambda edge: tuple(map(nodes.index, edge[0]))))


def graph(walked: Walked, title: str, language: str = "en") -> Drawing:
    """Draw the path of a run downwards and count the rest; before a run, draw the whole graph.

    A node shows how often it ran and how long; the current one has a heavy border. An edge that was taken more than
    once has its number.
    """
    labels = Labels(language)
    on_path = [node for node in walked.nodes if node["status"] != "pending"]
    boxes = {node["id"]: _box(node, labels) for node in on_path or walked.nodes}
    lines = [
        Line(
            e["source"],
            e["target"],
            "dashed" if e["conditional"] and not on_path else "plain",
            f"{e['times']}×" if e["times"] > 1 else "",
        )
        for e in walked.edges
        if {e["source"], e["target"]} <= {*boxes} and (e["times"] or not on_path)
    ]
    groups: dict[str, list[str]] = {}
    for node in on_path or walked.nodes:
        if node["graph"]:
            groups.setdefault(_name_text(node["graph"], labels), []).append(node["id"])
    body = network(boxes, lines, groups, 24)
    if on_path:
        return sheet(walked.rows(), body, title, heat=labels("of_the_time"))
    legend = [("─", "text", labels("always")), ("┄", "text", labels("either_way"))]
    return sheet(walked.rows(), body, title, legend=legend)


def _box(node: Data, labels: Labels) -> Box:
    status = node["status"].replace("done", "success")
    ink = family(status)
    name = _name_text(node["name"], labels)
    times = f"{node['times']}× " if node["times"] > 1 else ""
    took = times + milliseconds(node["duration_ms"]) if node["times"] else ""
    done = status == "success"
    pending = status == "pending"
    fact = {"pending": "", "success": took or "✓"}.get(status, labels.status(status))
    title = "\n".join(filter(None, (name, labels.status(status), took)))
    return Box(
        name,
        fact,
        title,
        "text" if done else ink,
        "ground" if pending else f"{ink}-tint",
        border=1.5 if done or pending else 3,
        dashed=pending,
        share=node["share"] if done else None,
    )


def _name_text(name: str, labels: Labels) -> str:
    return labels.get(f"node_{name}", name)
