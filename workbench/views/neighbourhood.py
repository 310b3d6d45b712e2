"""The part of the knowledge graph around an answer: its entities, their neighbours, and the way from one to another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from workbench.knowledge.vocabulary import GROUPING
from workbench.ports import Entity, KnowledgeBase, Relation

MOST_SEEDS = 8
MOST_NEIGHBOURS = 10
"""Neighbours that are shown of one entity; the rest is counted."""
MOST_NODES = 120
MOST_LOOKED_AT = 20_000
"""Entities whose neighbours are looked at for a way; one that is longer is not found."""


@dataclass(frozen=True)
class Around:
    """A part of a knowledge graph.

    Attributes:
        entities: by id, those of the answer first.
        relations: between them, by id.
        seeds: ids of the entities that the answer rests on.
        opened: ids whose neighbours are shown.
        more: how many neighbours of an opened entity are not shown.
        path: the ids on the way that was asked for; empty for none.
    """

    entities: dict[str, Entity] = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()
    seeds: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    more: Mapping[str, int] = field(default_factory=dict)
    path: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """One row a relation, with the names of both ends and the sentence that states it."""
        names = {one: entity["name"] for one, entity in self.entities.items()}
        steps = {frozenset(pair) for pair in pairwise(self.path)}
        return [
            {
                "source": names[relation["source"]],
                "relation": relation["type"],
                "target": names[relation["target"]],
                "sentence": relation["sentence"],
                "on_path": frozenset((relation["source"], relation["target"])) in steps,
            }
            for relation in self.relations
        ]

    def places(self) -> dict[str, tuple[float, float]]:
        """Where each entity is drawn, 0 to 1 on both axes; the same graph has the same places."""
        import networkx

        graph: networkx.Graph = networkx.Graph()
        graph.add_nodes_from(self.entities)
        graph.add_edges_from((relation["source"], relation["target"]) for relation in self.relations)
        if len(graph) < 2:
            return dict.fromkeys(graph, (0.5, 0.5))
        found = networkx.spring_layout(graph, k=1.8 / len(graph) ** 0.5, iterations=120, seed=7)
        return {one: (round((x + 1) / 2, 4), round((y + 1) / 2, 4)) for one, (x, y) in found.items()}


def seeds_of(knowledge: KnowledgeBase, documents: Iterable[str], text: str) -> list[str]:
    """The entities that an answer rests on: those that its documents are about, then those that the question names."""
    known = [f"doc:{doc_id}" for doc_id in dict.fromkeys(documents)]
    named = [mention["entity_id"] for mention in knowledge.link(text)]
    found = [one for one in dict.fromkeys([*named, *known]) if knowledge.entity(one) is not None]
    return found[:MOST_SEEDS]


def around(
    knowledge: KnowledgeBase,
    seeds: Sequence[str],
    opened: Collection[str] | None = None,
    path: Sequence[str] = (),
) -> Around:
    """The entities, the neighbours of those that are opened, and what relates all of them.

    Args:
        knowledge: the base.
        seeds: ids of the entities to begin with.
        opened: ids whose neighbours are shown; None opens the seeds.
        path: ids on a way to show next to them.
    """
    wanted = dict.fromkeys([*seeds, *path])
    opened = list(dict.fromkeys(seeds if opened is None else opened))
    more = dict[str, int]()
    for one in opened:
        neighbours = _neighbours(knowledge, one, seeds)
        shown = neighbours[:MOST_NEIGHBOURS]
        more[one] = len(neighbours) - len(shown)
        wanted |= dict.fromkeys([one, *shown])
    ids = list(wanted)[:MOST_NODES]
    entities = {one: entity for one in ids if (entity := knowledge.entity(one)) is not None}
    relations: dict[str, Relation] = {}
    for one in entities:
        for relation in knowledge.relations_of(one):
            if relation["source"] in entities and relation["target"] in entities:
                relations[relation["relation_id"]] = relation
    kept = tuple(one for one in seeds if one in entities)
    ordered = tuple(relations[key] for key in sorted(relations))
    return Around(entities, ordered, kept, tuple(o for o in opened if o in entities), more, tuple(path))


def with_outside(found: Around, enrichment: Mapping[str, Any] | None, source: str = "TMDB") -> Around:
    """The same with what a source outside the corpus said for this run; its own things are of a type of their own."""
    if not enrichment:
        return found
    room = MOST_NODES - len(found.entities)
    new = [e for e in enrichment["entities"] if e["entity_id"] not in found.entities][:room]
    entities = found.entities | {e["entity_id"]: Entity(**_plain(e) | {"type": source}) for e in new}  # type: ignore[typeddict-item]
    known = {relation["relation_id"]: relation for relation in found.relations}
    for relation in enrichment["relations"]:
        if relation["source"] in entities and relation["target"] in entities:
            known.setdefault(relation["relation_id"], relation)
    return replace(found, entities=entities, relations=tuple(known[key] for key in sorted(known)))


def _plain(entity: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entity[name] for name in Entity.__annotations__}


def way(knowledge: KnowledgeBase, start: str, end: str) -> list[str]:
    """Return the ids on a shortest way from one entity to another, whichever way its relations point; empty for none.

    It is looked for from both ends at once, the smaller side first.
    """
    if knowledge.entity(start) is None or knowledge.entity(end) is None:
        return []
    ways: tuple[dict[str, list[str]], dict[str, list[str]]] = ({start: [start]}, {end: [end]})
    fronts, looked = ([start], [end]), 0
    while all(fronts) and looked < MOST_LOOKED_AT:
        if met := sorted(ways[0].keys() & ways[1].keys()):
            one = min(met, key=lambda i: (len(ways[0][i]) + len(ways[1][i]), len(knowledge.relations_of(i)), i))
            return [*ways[0][one], *ways[1][one][-2::-1]]
        side = int(len(fronts[1]) < len(fronts[0]))
        reached: list[str] = []
        for one in fronts[side]:
            for other in sorted(_ends(knowledge.relations_of(one)) - ways[side].keys()):
                ways[side][other] = [*ways[side][one], other]
                reached.append(other)
        looked += len(fronts[side])
        fronts = (fronts[0], reached) if side else (reached, fronts[1])
    return []


def _neighbours(knowledge: KnowledgeBase, one: str, seeds: Collection[str]) -> list[str]:
    """The ids next to an entity, the most telling first.

    What several seeds have next to them comes first; then what is well connected; what only groups, as a year, last.
    """
    found = map(knowledge.entity, _ends(knowledge.relations_of(one)) - {one})
    beside = {entity["entity_id"]: entity for entity in found if entity}

    def order(other: str) -> tuple[int, bool, int, str]:
        relations = knowledge.relations_of(other)
        touched = (_ends(relations) - {other}) & {*seeds}
        return -len(touched), beside[other]["type"] in GROUPING, -len(relations), other

    return sorted(beside, key=order)


def _ends(relations: Iterable[Relation]) -> set[str]:
    return {end for relation in relations for end in (relation["source"], relation["target"])}
