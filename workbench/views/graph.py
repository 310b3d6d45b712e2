"""The conversation graph with the graphs inside it unfolded, and where a run went in it.

Nodes and edges are LangGraph's own (``get_graph(xray=True)``): what is drawn is what runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from workbench.records.timeline import Bar, bars, busy_ms
from workbench.state import Data, Json
from workbench.views.drawing import Box, Drawing, Line, network, sheet
from workbench.views.labels import Labels, milliseconds
from workbench.views.page import family

START, END = "__start__", "__end__"


class Walked(NamedTuple):
    """The graph, and where a run went in it.

    A node ran so many ``times``, in ``duration_ms`` altogether (side by side counts once). ``graph`` is the one inside
    the conversation that it belongs to. ``status`` is ``done``, ``pending``, or how the run stands, where it stands
    there. An edge is ``conditional`` where it is one of several that may be taken; ``times`` taken.
    """

    nodes: Sequence[Data]
    edges: Sequence[Data]

    def rows(self) -> list[Json]:
        """Return one row per node, then one row per edge."""
        names = {node["id"]: node["name"] for node in self.nodes}
        rows: list[Json] = []
        for node in self.nodes:
            own = {key: node[key] for key in ("name", "status", "times", "duration_ms")}
            rows.append({"kind": "node", "graph": node["graph"] or "conversation", **own, "source": "", "target": ""})
        for edge in self.edges:
            ends = {end: names[edge[end]] for end in ("source", "target")}
            status, times = "done" if edge["times"] else "pending", edge["times"]
            own = {"name": " → ".join(ends.values()), "status": status, "times": times, "duration_ms": None}
            rows.append({"kind": "edge", "graph": "", **own, **ends})
        return rows


def walked(graph: Any, log: Iterable[Data] = (), status: str = "pending", current: Collection[str] = ()) -> Walked:
    """Follow a run through its graph.

    Args:
        graph: LangGraph's drawable graph, unfolded: nodes inside another one are named ``outer:inner``.
        log: of the run, one entry a node that ran.
        status: of the run.
        current: where it stands now: ids of nodes, or names of graphs, which stand for their first node.
    """
    nodes, edges = _unfolded(graph)
    first = {node.rpartition(":")[0]: node for node in reversed(nodes)}
    here = {node if node in nodes else first.get(node, "") for node in current if status != "done"}
    log = sorted(log, key=lambda entry: entry["timestamp"])
    ids = {_name(node): node for node in reversed(nodes)}
    runs: dict[str, list[Bar]] = {node: [] for node in nodes}
    for bar in bars(log, ()):
        if bar.name in ids:
            runs[ids[bar.name]].append(bar)
    route = [ids[name] for name, _ in groupby(entry["node"] for entry in log) if name in ids]
    taken = Counter[tuple[str, str]]()
    if route:
        route = [START, *route, *([END] if status == "done" else [])]
        taken.update([*pairwise(route), *((route[-1], node) for node in here)])

    def node_of(node: str) -> Data:
        stands = status if node in here else "done" if node in route else "pending"
        place = {"id": node, "name": _name(node), "graph": node.rpartition(":")[0], "status": stands}
        return {**place, "times": len(runs[node]), "duration_ms": round(busy_ms(runs[node]), 3)}

    ways = [{"source": a, "target": b, "conditional": c, "times": taken[a, b]} for (a, b), c in edges.items()]
    return Walked([*map(node_of, nodes)], ways)


def _name(node: str) -> str:
    return node.rpartition(":")[2]


def _unfolded(graph: Any) -> tuple[list[str], dict[tuple[str, str], bool]]:
    """Return the nodes, and (source, target) -> whether conditional, both in the order of the graph.

    The beginnings and ends of the graphs inside are left out: who leads there leads to what comes behind.
    """
    edges = {(edge.source, edge.target): bool(edge.conditional) for edge in graph.edges}
    inner = [node for node in graph.nodes if ":" in node and _name(node) in (START, END)]
    for gate in inner:
        before = [(a, either) for (a, b), either in edges.items() if b == gate]
        after = [(b, either) for (a, b), either in edges.items() if a == gate]
        edges = {pair: either for pair, either in edges.items() if gate not in pair}
        edges |= {(a, b): one or other for a, one in before for b, other in after}
    nodes = [node for node in graph.nodes if node not in inner]
    place = {node: at for at, node in enumerate(nodes)}
    return nodes, dict(sorted(edges.items(), key=lambda edge: (place[edge[0][0]], place[edge[0][1]])))


def graph(walked: Walked, title: str, language: str = "en") -> Drawing:
    """Draw the graph downwards.

    A node that ran has how often and how long; where the run stands has a heavy border and a word; ways that were
    taken are heavy, and have their number when it was several times.
    """
    labels = Labels(language)
    boxes = {node["id"]: _box(node, labels) for node in walked.nodes}
    lines = [
        Line(
            edge["source"],
            edge["target"],
            "heavy" if edge["times"] else "dashed" if edge["conditional"] else "plain",
            f"{edge['times']}×" if edge["times"] > 1 else "",
        )
        for edge in walked.edges
    ]
    signs = (("━", "taken"), ("─", "not_taken"), ("┄", "either_way"))
    legend = "   ".join(f"{sign} {labels(word)}" for sign, word in signs)
    return sheet(walked.rows(), network(boxes, lines, down=True), title, _under(walked, labels), legend)


def _box(node: Data, labels: Labels) -> Box:
    status, ink = node["status"], family(node["status"])
    name = {START: labels("start"), END: labels("end")}.get(node["name"]) or str(node["name"])
    ran = f"{node['times']}× · {milliseconds(node['duration_ms'])}" if node["times"] else ""
    fact = " ".join(filter(None, ("✓", ran))) if status == "done" else labels.status(status)
    title = "\n".join(filter(None, (name, node["graph"], labels.status(status), ran)))
    return Box(
        f"{node['graph']}: {name}" if node["graph"] else name,
        "" if status == "pending" else fact,
        title,
        ink,
        "ground" if status == "pending" else f"{ink}-tint",
        border=1.5 if status in ("done", "pending") else 3,
        dashed=status == "pending",
    )


def _under(walked: Walked, labels: Labels) -> str:
    """Return where the run stands, in words."""
    here = [node for node in walked.nodes if node["status"] not in ("done", "pending")]
    here = here or [node for node in walked.nodes if node["name"] == END and node["status"] == "done"]
    names = (f"{labels('colon')}{node['name']}" if node["name"] != END else "" for node in here)
    return labels("comma").join(labels.status(node["status"]) + name for node, name in zip(here, names, strict=True))
