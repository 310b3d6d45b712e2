"""The communities of the graph of entities (Louvain).

A community is kept with a summary of its documents' own first sentences, and with the home of every member, by which a
question finds it.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.knowledge.indexes.index import Index
from workbench.knowledge.reading.blocks import joined
from workbench.plans import canonical_json
from workbench.ports import Community, Entity

if TYPE_CHECKING:
    import networkx

SENTENCES = 4
"""Of a summary."""


def write(
    connection: sqlite3.Connection,
    by_id: Mapping[str, Entity],
    categories: Collection[str],
    leads: Mapping[str, str],
) -> None:
    """Store the groups of entities with two documents or more in their empty tables, largest first.

    Args:
        connection: to the index, which has the relations.
        by_id: the entities.
        categories: ids of those that only group others.
        leads: the first sentence of each document, by its id.

    A relation counts less the better connected its ends are, so that "American" holds nothing together; what a text
    mentions counts half of what a field says, and a category a tenth. The summary is made of the leads of the members
    that are best connected within the group.
    """
    relations = connection.execute("SELECT source, type, target FROM relations")
    graph = _related(sorted(by_id), relations, categories)
    # groups of about ten documents in a corpus of any size, not of a tenth of the corpus
    groups = _louvain(graph, max(1.0, math.sqrt(len(leads) / 80)))
    communities = []
    for group in groups:
        inner = graph.subgraph(group).degree(weight="weight")
        members = sorted(group, key=lambda i: (-round(inner[i], 6), i))
        documents = [by_id[i] for i in members if by_id[i]["doc_id"]]
        if len(documents) > 1:
            communities.append((members, documents))
    communities.sort(key=lambda pair: (-len(pair[0]), pair[0][0]))
    for number, (members, documents) in enumerate(communities):
        subjects = [by_id[i] for i in members if i not in categories and not by_id[i]["doc_id"]]
        names = dict.fromkeys(entity["name"] for entity in [*subjects[:1], *documents[:2]])
        doc_ids = [str(entity["doc_id"]) for entity in documents]
        first = [leads[doc_id] for doc_id in doc_ids[:SENTENCES] if leads.get(doc_id)]
        community = Community(
            community_id=f"community:{number:04d}",
            title=" · ".join(names),
            members=members,
            summary=joined(first or [""]),
            doc_ids=doc_ids,
        )
        row = community["community_id"], canonical_json(community)
        connection.execute("INSERT INTO communities VALUES (?, ?)", row)
        homes = ((entity_id, row[0]) for entity_id in sorted(members))
        connection.executemany("INSERT INTO homes VALUES (?, ?)", homes)


def _related(
    ids: Sequence[str], relations: Iterable[tuple[str, str, str]], categories: Collection[str]
) -> networkx.Graph:
    """Return the entities with one weight for each pair of related ones, in a fixed order."""
    import networkx

    strength: dict[tuple[str, str], float] = {}
    for source, kind, target in relations:
        a, b = sorted((source, target))
        if a != b:
            says = 0.5 if kind == "mentions" else 1.0
            if a in categories or b in categories:
                says = 0.1
            strength[a, b] = max(says, strength.get((a, b), 0.0))
    graph: networkx.Graph = networkx.Graph()
    graph.add_nodes_from(ids)
    graph.add_edges_from(sorted(strength))
    for a, b, edge in graph.edges(data=True):
        edge["weight"] = strength[a, b] / math.log(1 + max(graph.degree[a], graph.degree[b]))
    return graph


def _louvain(related: networkx.Graph, resolution: float) -> list[list[str]]:
    """Return groups of ids. An entity with one neighbour joins its neighbour's group; Louvain groups the others.

    Its nodes are numbers, so that no hash seed can change the order in which Louvain meets them.
    """
    import networkx

    inner = [entity_id for entity_id, degree in related.degree if degree > 1]
    number = {entity_id: i for i, entity_id in enumerate(inner)}
    graph: networkx.Graph = networkx.Graph()
    graph.add_nodes_from(range(len(inner)))
    graph.add_edges_from(
        (number[a], number[b], edge)
        for a, b, edge in related.edges(data=True)
        if a in number and b in number
    )
    louvain = networkx.community.louvain_communities
    partition = louvain(graph, weight="weight", resolution=resolution, seed=7) if inner else []
    groups = [[inner[i] for i in sorted(group)] for group in partition]
    home = {entity_id: group for group in groups for entity_id in group}
    for entity_id in related:
        if entity_id not in number:
            neighbour = next(iter(related[entity_id]), entity_id)
            if neighbour not in home:  # a pair on its own, or an entity alone
                groups.append([])
                home[neighbour] = groups[-1]
            home[entity_id] = home[neighbour]
            home[entity_id].append(entity_id)
    return groups


def read(index: Index, entity_ids: Sequence[str]) -> list[Community]:
    """Return the communities of these entities by id, or all of them, the largest first."""
    sql = "SELECT value FROM communities"
    if entity_ids:
        homes = "WHERE community_id IN (SELECT community_id FROM homes WHERE entity_id IN ({}))"
        rows = sorted(
            {*index.rows_in(f"{sql} {homes}", entity_ids)}
        )  # a value begins with its id
    else:
        rows = index.rows(f"{sql} ORDER BY length(community_id), community_id")
    return [json.loads(row[0]) for row in rows]
