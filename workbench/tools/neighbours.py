"""One hop through the knowledge graph: from the names in a question to the passages and entities around them."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.context import Entity, KnowledgeBase, Relation
from workbench.tools.signals import Question

HUB = 60  # an entity with more relations than this (a country, a genre) says little about what stands around it


def around(question: Question, knowledge: KnowledgeBase) -> list[tuple[Entity, list[Relation]]]:
    """The entities one relation away from those in the question, best connected to them first, ties by id."""
    seeds = [n.entity_id for n in question.named]
    met: dict[str, list[Relation]] = {}
    for seed in seeds:
        for relation in knowledge.relations_of(seed):
            other = relation["target"] if relation["source"] == seed else relation["source"]
            if other not in seeds:
                met.setdefault(other, []).append(relation)
    found = [(knowledge.entity(i), met[i]) for i in sorted(met, key=lambda i: (-len(met[i]), i))]
    return [(entity, relations) for entity, relations in found if entity is not None]


def passages_around(question: Question, knowledge: KnowledgeBase, limit: int) -> list[str]:
    """Ids of passages by place in the graph: documents on the names, passages that say them, then the neighbours'.

    A neighbour's passages count by how rare the neighbour is, so a shared author tells more than a shared genre.
    """
    own = [p["chunk_id"] for p in knowledge.passages_of(question.subjects)]
    said = _agreed((n.weight, sorted(n.chunk_ids)) for n in question.named)
    votes: list[tuple[float, list[str]]] = []
    for entity, _ in around(question, knowledge)[:limit]:
        at = knowledge.mentions_of(entity["entity_id"])
        if entity["doc_id"]:
            votes.append((1.0, [p["chunk_id"] for p in knowledge.passages_of([entity["doc_id"]])]))
        if 0 < len(at) <= HUB:
            votes.append((1 / len(at), at))
    return list(dict.fromkeys([*own, *said, *_agreed(votes)]))[:limit]


def _agreed(votes: Iterable[tuple[float, list[str]]]) -> list[str]:
    """Ids by the sum of the weights of those who name them, ties by id."""
    total: dict[str, float] = {}
    for weight, ids in votes:
        for i in ids:
            total[i] = total.get(i, 0.0) + weight
    return sorted(total, key=lambda i: (-round(total[i], 9), i))
