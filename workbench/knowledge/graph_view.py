"""The knowledge graph of a large base for networkx: a view over the sorted tables of its index, none of it loaded.

It is a ``networkx.MultiDiGraph`` whose nodes and edges are read when they are asked for, a node's at a time; the last
ones are held. Everything that only reads works on it: degrees, neighbours, shortest paths, subgraphs (copy one to
change it). What goes through all nodes reads all of them, one after the other, as the index is at that moment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from workbench.knowledge.index import Index

if TYPE_CHECKING:
    import networkx

HELD = 10_000
"""Nodes whose attributes or edges are held."""
_PAGE = 1_000


class _Rows(Mapping[str, Any]):
    """Entity id -> what is read of it."""

    def __init__(self, index: Index, read: Callable[[str], Any]):
        self._index, self._read = index, read
        self._held: dict[str, Any] = {}

    def __getitem__(self, entity_id: str) -> Any:
        if entity_id not in self._held:
            found = self._read(entity_id)
            if len(self._held) >= HELD:
                self._held.clear()
            self._held[entity_id] = found
        return self._held[entity_id]

    def __contains__(self, entity_id: object) -> bool:
        if not isinstance(entity_id, str):
            return False
        return entity_id in self._held or bool(self._index.rows(f"{_ENTITY} LIMIT 1", (entity_id,)))

    def __iter__(self) -> Iterator[str]:
        sql, last = f"SELECT entity_id FROM entities WHERE entity_id > ? ORDER BY 1 LIMIT {_PAGE}", ""
        while rows := self._index.rows(sql, (last,)):
            yield from (row[0] for row in rows)
            last = rows[-1][0]

    def __len__(self) -> int:
        return int(self._index.rows("SELECT count(*) FROM entities")[0][0])


_ENTITY = "SELECT name, type, aliases, doc_id FROM entities WHERE entity_id = ?"


def graph_view(index: Index) -> networkx.MultiDiGraph:
    """The graph of an index, as ``graph.build`` would make it; it cannot be changed."""

    def node(entity_id: str) -> dict[str, Any]:
        for name, kind, aliases, doc_id in index.rows(_ENTITY, (entity_id,)):
            return {"name": name, "type": kind, "aliases": json.loads(aliases), "doc_id": doc_id}
        raise KeyError(entity_id)

    def edges(here: str, there: str) -> Callable[[str], dict[str, dict[str, dict[str, str]]]]:
        sql = f"SELECT {there}, relation_id, type, sentence, chunk_id FROM relations WHERE {here} = ? ORDER BY 2"

        def read(entity_id: str) -> dict[str, dict[str, dict[str, str]]]:
            found: dict[str, dict[str, dict[str, str]]] = {}
            for other, key, kind, sentence, chunk_id in index.rows(sql, (entity_id,)):
                found.setdefault(other, {})[key] = {"type": kind, "sentence": sentence, "chunk_id": chunk_id}
            if not found:
                node(entity_id)  # nobody, or nobody's neighbour
            return found

        return read

    graph = _kind()()
    graph._node, graph.read_from = _Rows(index, node), index
    graph._adj = _Rows(index, edges("source", "target"))
    graph._pred = _Rows(index, edges("target", "source"))
    return graph


@cache
def _kind() -> Any:
    """The class, made when networkx is first needed."""
    import networkx

    class IndexGraph(networkx.MultiDiGraph):
        """A frozen graph over an index; without one, as networkx makes it for a part of another."""

        read_from: Index | None = None

        def __init__(self, *given: Any, **attributes: Any):
            super().__init__(*given, **attributes)
            networkx.freeze(self)

        def number_of_edges(self, u: Any = None, v: Any = None) -> int:
            if u is not None or self.read_from is None:
                return int(super().number_of_edges(u, v))
            return int(self.read_from.rows("SELECT count(*) FROM relations")[0][0])

        def copy(self, as_view: bool = False) -> Any:
            """All of it as a graph of networkx's own."""
            whole: Any = networkx.MultiDiGraph()
            whole.add_nodes_from((one, dict(self.nodes[one])) for one in self)
            whole.add_edges_from((a, b, key, dict(data)) for a, b, key, data in self.edges(keys=True, data=True))
            return whole

    return IndexGraph
