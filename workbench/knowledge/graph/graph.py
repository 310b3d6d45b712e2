"""The graph of entities and relations for networkx, and its communities (Louvain).

A community is kept with a summary of its documents' own first sentences, and with the home of every member, by which a
question finds it.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.knowledge.indexes.index import Index
from workbench.knowledge.reading.blocks import joined
from workbench.plans import canonical_json
from workbench.ports import Community, Entity, Relation

if TYPE_CHECKING:
    import networkx


SENTENCES = 4
"""Of a summary."""


def build(entities: Iterable[Entity], relations: Iterable[Relation]) -> networkx.MultiDiGraph:
    """Entities as nodes (with ``name``, ``type``, ``aliases``, ``doc_id``), relations as edges keyed by their id."""
    import networkx

    graph: networkx.MultiDiGraph = networkx.MultiDiGraph()
    for entity in entities:
        graph.add_node(
            entity["entity_id"], **{k: v for k, v in entity.items() if k != "entity_id"}
        )
    for relation in relations:
        graph.add_edge(
            relation["source"],
            relation["target"],
            key=relation["relation_id"],
            type=relation["type"],
            sentence=relation["sentence"],
            chunk_id=relation["chunk_id"],
        )
    return graph


def communities(
    by_id: Mapping[str, Entity],
    relations: Iterable[tuple[str, str, str]],
    categories: Collection[str],
    leads: Mapping[str, str],
) -> list[Community]:
    """Return the groups of entities with two documents or more, largest first.

    Args:
        by_id: the entities.
        relations: ``(source, type, target)``.
        categories: ids of those that only group others.
        leads: the first sentence of each document, by its id.

    A relation counts less the better connected its ends are, so that "American" holds nothing together; what a text
    mentions counts half of what a field says, and a category a tenth. The summary is made of the leads of the members
    that are best connected within the group.
    """
    weights = _weights(relations, categories)
    groups = _louvain(sorted(by_id), weights, _resolution(len(leads)))
    home = {entity_id: number for number, group in enumerate(groups) for entity_id in group}
    inner: dict[str, float] = defaultdict(float)
    for (a, b), weight in weights.items():
        if home[a] == home[b]:
            inner[a] += weight
            inner[b] += weight
    communities = []
    for group in groups:
        members = sorted(group, key=lambda i: (-round(inner[i], 6), i))
        doc_ids = list(filter(None, (by_id[i]["doc_id"] for i in members)))
        if len(doc_ids) > 1:
            ranked = [by_id[i] for i in members if i not in categories]
            names = [e["name"] for e in ranked if not e["doc_id"]][:1] + [
                e["name"] for e in ranked if e["doc_id"]
            ][:2]
            title = " · ".join(dict.fromkeys(names))
            text = summary(leads.get(doc_id, "") for doc_id in doc_ids[:SENTENCES])
            communities.append((title, members, text, doc_ids))
    communities.sort(key=lambda community: (-len(community[1]), community[1][0]))
    return [
        Community(
            community_id=f"community:{n:04d}",
            title=title,
            members=members,
            summary=text,
            doc_ids=doc_ids,
        )
        for n, (title, members, text, doc_ids) in enumerate(communities)
    ]


def _weights(
    relations: Iterable[tuple[str, str, str]], categories: Collection[str]
) -> dict[tuple[str, str], float]:
    """Return one weight for each pair of related entities, in a fixed order."""
    strength: dict[tuple[str, str], float] = {}
    for source, kind, target in relations:
        a, b = sorted((source, target))
        if a != b:
            says = 0.5 if kind == "mentions" else 1.0
            if a in categories or b in categories:
                says = 0.1
            strength[a, b] = max(says, strength.get((a, b), 0.0))
    degree: dict[str, int] = defaultdict(int)
    for a, b in strength:
        degree[a] += 1
        degree[b] += 1
    return {
        (a, b): strength[a, b] / math.log(1 + max(degree[a], degree[b]))
        for a, b in sorted(strength)
    }


def _resolution(documents: int) -> float:
    """Of Louvain's modularity: groups of about ten documents in a corpus of any size, not of a tenth of the corpus.

    >>> _resolution(9), round(_resolution(1_065), 1)
    (1.0, 3.6)
    """
    return max(1.0, math.sqrt(documents / 80))


def _louvain(
    ids: Sequence[str], weights: Mapping[tuple[str, str], float], resolution: float
) -> list[list[str]]:
    """Return groups of ids. An entity with one neighbour joins its neighbour's group; Louvain groups the others.

    Its nodes are numbers, so that no hash seed can change the order in which Louvain meets them.
    """
    import networkx

    neighbours: dict[str, list[str]] = defaultdict(list)
    for a, b in weights:
        neighbours[a].append(b)
        neighbours[b].append(a)
    inner = [i for i in ids if len(neighbours[i]) > 1]
    number = {entity_id: i for i, entity_id in enumerate(inner)}
    graph: networkx.Graph = networkx.Graph()
    graph.add_nodes_from(range(len(inner)))
    pairs = (
        (number[a], number[b], weight)
        for (a, b), weight in weights.items()
        if a in number and b in number
    )
    graph.add_weighted_edges_from(pairs)
    louvain = networkx.community.louvain_communities
    partition = louvain(graph, weight="weight", resolution=resolution, seed=7) if inner else []
    groups = [[inner[i] for i in sorted(group)] for group in partition]
    home = {entity_id: group for group in groups for entity_id in group}
    for entity_id in ids:
        if entity_id not in number:
            neighbour = neighbours[entity_id][0] if neighbours[entity_id] else entity_id
            if neighbour not in home:  # a pair on its own, or an entity alone
                groups.append([])
                home[neighbour] = groups[-1]
            home[entity_id] = home[neighbour]
            home[entity_id].append(entity_id)
    return groups


def summary(leads: Iterable[str]) -> str:
    """Return the first few of these sentences as one text, Chinese ones close up.

    >>> summary(["One is.", "", "二是。", "三是。", "Four is.", "Five is."])
    'One is. 二是。三是。 Four is.'
    """
    return joined([*filter(None, leads)][:SENTENCES] or [""])


# --- The communities that an index keeps ---


def keep(connection: sqlite3.Connection, communities: Sequence[Community]) -> None:
    """Store communities in their empty tables."""
    rows = ((community["community_id"], canonical_json(community)) for community in communities)
    connection.executemany("INSERT INTO communities VALUES (?, ?)", rows)
    homes = sorted((i, c["community_id"]) for c in communities for i in c["members"])
    connection.executemany("INSERT INTO homes VALUES (?, ?)", homes)


def read(index: Index, entity_ids: Sequence[str]) -> list[Community]:
    """Return the communities of these entities by id, or all of them, the largest first."""
    sql = "SELECT community_id, value FROM communities"
    if not entity_ids:
        return [
            json.loads(value)
            for _, value in index.rows(f"{sql} ORDER BY length(community_id), community_id")
        ]
    homes = "WHERE community_id IN (SELECT community_id FROM homes WHERE entity_id IN ({}))"
    by_id = dict(index.rows_in(f"{sql} {homes}", entity_ids))
    return [json.loads(by_id[community_id]) for community_id in sorted(by_id)]
