"""The communities that an index keeps: found by Louvain in a whole graph, and grown by what is new.

Each is kept with a summary of its documents' own first sentences, and with the home of every member, by which a
question finds it. What is new is grouped by itself; a group that a community already knows enough of moves in there,
and is told in its summary while there is room. Nothing else is touched, so that few documents cost little.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from workbench.context import Community, Entity, Relation
from workbench.knowledge import graph
from workbench.knowledge.entities import Extracted, Source
from workbench.knowledge.graph import SENTENCES, summary
from workbench.plans import canonical_json
from workbench.text import sentences

KNOWN = 0.2
"""The part of a group's members that must live in a community for the group to move in."""
FULL = 500
"""Documents of a community into which nobody moves any more."""


def lead(source: Source) -> str:
    """The first sentence of a document."""
    return next(iter(sentences(source.passages[0][1])), "") if source.passages else ""


def make_anew(connection: sqlite3.Connection, found: Extracted, sources: Sequence[Source]) -> None:
    """The communities of a whole graph."""
    leads = {source.doc_id: lead(source) for source in sources}
    _keep(connection, graph.communities(found.entities, found.relations, found.categories, leads))


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
    groups = graph.communities([*entities, *outside], relations, categories, leads, fewest=1)
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


def forget(connection: sqlite3.Connection, doc_ids: Sequence[str]) -> None:
    """Take documents that are gone out of their communities; one with a single document left is none."""
    entities = [f"doc:{doc_id}" for doc_id in doc_ids]
    gone = set(doc_ids)
    for community in read(connection, sorted(set(_homes(connection, entities).values()))):
        left = [d for d in community["doc_ids"] if d not in gone]
        if len(left) > 1:
            members = [i for i in community["members"] if i not in set(entities)]
            leads = dict(_leads(connection, left[:SENTENCES]))
            told = summary(leads.get(d, "") for d in left[:SENTENCES])
            _keep(connection, [{**community, "members": members, "doc_ids": left, "summary": told}])
        else:
            connection.execute("DELETE FROM communities WHERE community_id = ?", (community["community_id"],))
            connection.execute("DELETE FROM homes WHERE community_id = ?", (community["community_id"],))
    connection.executemany("DELETE FROM homes WHERE entity_id = ?", ((i,) for i in entities))


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


def _leads(connection: sqlite3.Connection, doc_ids: Sequence[str]) -> Iterable[tuple[str, str]]:
    for doc_id in doc_ids:
        row = connection.execute("SELECT text FROM passages WHERE doc_id = ? AND position = 0", (doc_id,)).fetchone()
        yield doc_id, next(iter(sentences(row[0])), "") if row else ""


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
