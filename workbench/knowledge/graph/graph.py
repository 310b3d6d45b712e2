"""The graph of entities and relations: neighbours, paths, and its communities (Louvain), kept as documents come and go.

Each is kept with a summary of its documents' own first sentences, and with the home of every member, by which a
question finds it. What is new is grouped by itself; a group that a community already knows enough of moves in there,
and is told in its summary while there is room. Nothing else is touched, so that few documents cost little.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.knowledge.names.entities import Extracted, Source
from workbench.plans import canonical_json
from workbench.ports import Community, Entity, Relation
from workbench.text import CJK, sentences

if TYPE_CHECKING:
    import networkx


_SEED = 7
SENTENCES = 4
"""Of a summary."""


def build(entities: Iterable[Entity], relations: Iterable[Relation]) -> networkx.MultiDiGraph:
    """Entities as nodes (with ``name``, ``type``, ``aliases``, ``doc_id``), relations as edges keyed by their id."""
    import networkx

    graph: networkx.MultiDiGraph = networkx.MultiDiGraph()
    for entity in entities:
        graph.add_node(entity["entity_id"], **{k: v for k, v in entity.items() if k != "entity_id"})
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
    entities: Sequence[Entity],
    relations: Sequence[Relation],
    categories: Collection[str],
    leads: Mapping[str, str],
    fewest: int = 2,
) -> list[Community]:
    """Groups of entities with the ``fewest`` documents or more, largest first.

    A relation counts less the better connected its ends are, so that "American" holds nothing together; what a text
    mentions counts half of what a field says, and a category a tenth. ``leads`` are the first sentences of documents,
    by document id: the summary is made of those of the members that are best connected within the group.
    """
    by_id = {entity["entity_id"]: entity for entity in entities}
    weights = _weights(relations, categories)
    groups = _louvain(sorted(by_id), weights, _resolution(len(leads)))
    home = {entity_id: number for number, group in enumerate(groups) for entity_id in group}
    inner: dict[str, float] = defaultdict(float)
    for (a, b), weight in weights.items():
        if home[a] == home[b]:
            inner[a] += weight
            inner[b] += weight
    found: list[Community] = []
    for group in groups:
        ranked = sorted(group, key=lambda i: (-round(inner[i], 6), i))
        doc_ids = [d for i in ranked if (d := by_id[i]["doc_id"])]
        if len(doc_ids) < fewest:
            continue
        named = [by_id[i] for i in ranked if i not in categories]
        title = [e["name"] for e in named if not e["doc_id"]][:1] + [e["name"] for e in named if e["doc_id"]][:2]
        found.append(
            {
                "community_id": "",
                "title": " · ".join(dict.fromkeys(title)),
                "members": ranked,
                "summary": summary(leads.get(d, "") for d in doc_ids[:SENTENCES]),
                "doc_ids": doc_ids,
            }
        )
    found.sort(key=lambda c: (-len(c["members"]), c["members"][0]))
    for number, community in enumerate(found):
        community["community_id"] = f"community:{number:04d}"
    return found


def _weights(relations: Sequence[Relation], categories: Collection[str]) -> dict[tuple[str, str], float]:
    """One weight for each pair of related entities, in a fixed order."""
    strength: dict[tuple[str, str], float] = {}
    for relation in relations:
        a, b = sorted((relation["source"], relation["target"]))
        if a != b:
            says = 0.1 if a in categories or b in categories else 0.5 if relation["type"] == "mentions" else 1.0
            strength[a, b] = max(says, strength.get((a, b), 0.0))
    degree: dict[str, int] = defaultdict(int)
    for a, b in strength:
        degree[a] += 1
        degree[b] += 1
    return {(a, b): strength[a, b] / math.log(1 + max(degree[a], degree[b])) for a, b in sorted(strength)}


def _resolution(documents: int) -> float:
    """Of Louvain's modularity: groups of about ten documents in a corpus of any size, not of a tenth of the corpus.

    >>> _resolution(9), round(_resolution(1_065), 1)
    (1.0, 3.6)
    """
    return max(1.0, math.sqrt(documents / 80))


def _louvain(ids: Sequence[str], weights: Mapping[tuple[str, str], float], resolution: float) -> list[list[str]]:
    """Groups of ids. Whoever has one neighbour goes where that one goes; the others are left to Louvain.

    Numbers stand for the ids inside, so that no hash seed can change the order in which Louvain meets the nodes.
    """
    import networkx

    near: dict[str, list[str]] = defaultdict(list)
    for a, b in weights:
        near[a].append(b)
        near[b].append(a)
    inner = [i for i in ids if len(near[i]) > 1]
    number = {entity_id: i for i, entity_id in enumerate(inner)}
    graph: networkx.Graph = networkx.Graph()
    graph.add_nodes_from(range(len(inner)))
    pairs = ((number[a], number[b], weight) for (a, b), weight in weights.items() if a in number and b in number)
    graph.add_weighted_edges_from(pairs)
    found = (
        networkx.community.louvain_communities(graph, weight="weight", resolution=resolution, seed=_SEED)
        if inner
        else []
    )
    groups = [[inner[i] for i in sorted(group)] for group in found]
    home = {entity_id: group for group in groups for entity_id in group}
    for entity_id in ids:
        if entity_id not in number:
            with_whom = near[entity_id][0] if near[entity_id] else entity_id
            group = home.get(with_whom)
            if group is None:  # a pair on its own, or somebody alone
                group = home[with_whom] = []
                groups.append(group)
            home[entity_id] = group
            group.append(entity_id)
    return groups


def summary(leads: Iterable[str]) -> str:
    """The first few of these sentences as one text, Chinese ones close up.

    >>> summary(["One is.", "", "二是。", "三是。", "Four is.", "Five is."])
    'One is. 二是。三是。 Four is.'
    """
    told = ""
    for said in [one for one in leads if one][:SENTENCES]:
        close = not told or (CJK.match(said) and told[-1] in "。！？”》")
        told += said if close else f" {said}"
    return told


# --- The communities that an index keeps: found by Louvain in a whole graph, and grown by what is new ---

KNOWN = 0.2
"""The part of a group's members that must live in a community for the group to move in."""
FULL = 500
"""Documents of a community into which nobody moves any more."""


def lead(source: Source) -> str:
    """The first sentence of a document."""
    return next(iter(sentences(source.passages[0][1])), "") if source.passages else ""


def make_anew(connection: sqlite3.Connection, found: Extracted, sources: Sequence[Source]) -> None:
    """Find the communities of the whole graph and keep them; the caller has emptied the tables."""
    leads = {source.doc_id: lead(source) for source in sources}
    _keep(connection, communities(found.entities, found.relations, found.categories, leads))


def grow(
    connection: sqlite3.Connection,
    entities: Sequence[Entity],
    relations: Sequence[Relation],
    categories: Collection[str],
    sources: Sequence[Source],
) -> None:
    """Give what these documents say a home, in a community that is there or in one of their own."""
    leads = {source.doc_id: lead(source) for source in sources}
    ends = {end for relation in relations for end in (relation["source"], relation["target"])}
    here = {entity["entity_id"] for entity in entities}
    outside: list[Entity] = [
        {"entity_id": i, "name": "", "type": "", "aliases": [], "doc_id": None} for i in sorted(ends - here)
    ]
    groups = communities([*entities, *outside], relations, categories, leads, fewest=1)
    homes = _homes(connection, [i for group in groups for i in group["members"] if i not in categories])
    (number,) = connection.execute(
        "SELECT ifnull(max(CAST(substr(community_id, 11) AS INT)), -1) FROM communities"
    ).fetchone()
    new: list[Community] = []
    for group in groups:
        lived = Counter(homes[i] for i in group["members"] if i in homes)
        home = min(lived, key=lambda h: (-lived[h], h), default="")
        if home and lived[home] >= KNOWN * len(group["members"]) and _move_in(connection, home, group, leads):
            continue
        if len(group["doc_ids"]) > 1:
            number += 1
            members = [i for i in group["members"] if i not in homes]
            new.append({**group, "community_id": f"community:{number:04d}", "members": members})
    _keep(connection, new)


def _move_in(connection: sqlite3.Connection, home: str, group: Community, leads: dict[str, str]) -> bool:
    """Whether there was room for the group's new members."""
    community = read(connection, [home])[0]
    if len(community["doc_ids"]) >= FULL:
        return False
    told = sentences(community["summary"])
    new_docs = [d for d in group["doc_ids"] if d not in community["doc_ids"]]
    if len(told) < SENTENCES:
        community["summary"] = summary([*told, *(leads[d] for d in new_docs if leads.get(d))])
    there = set(community["members"])
    community["members"] += [i for i in group["members"] if i not in there]
    community["doc_ids"] += new_docs
    _keep(connection, [community])
    return True


def read(connection: sqlite3.Connection, ids: Sequence[str]) -> list[Community]:
    """The communities of these ids, in their order."""
    columns = "community_id, title, members, summary, doc_ids"
    sql = f"SELECT {columns} FROM communities WHERE community_id = ?"
    rows = [row for i in ids if (row := connection.execute(sql, (i,)).fetchone())]
    return [of_row(row) for row in rows]


def of_row(row: Sequence[Any]) -> Community:
    """A community of the columns in which an index keeps it."""
    community_id, title, members, said, doc_ids = row
    return {
        "community_id": community_id,
        "title": title,
        "members": json.loads(members),
        "summary": said,
        "doc_ids": json.loads(doc_ids),
    }


def _homes(connection: sqlite3.Connection, entity_ids: Sequence[str]) -> dict[str, str]:
    sql = "SELECT community_id FROM homes WHERE entity_id = ?"
    found = ((i, connection.execute(sql, (i,)).fetchone()) for i in dict.fromkeys(entity_ids))
    return {i: row[0] for i, row in found if row}


def _keep(connection: sqlite3.Connection, found: Sequence[Community]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO communities VALUES (?, ?, ?, ?, ?)",
        (
            (c["community_id"], c["title"], canonical_json(c["members"]), c["summary"], canonical_json(c["doc_ids"]))
            for c in found
        ),
    )
    homes = sorted((i, c["community_id"]) for c in found for i in c["members"])
    connection.executemany("INSERT OR IGNORE INTO homes VALUES (?, ?)", homes)
