"""What a knowledge base gives, as plain data: passages, entities, relations, and the ways between them."""

from __future__ import annotations

from typing import Any, NamedTuple, NotRequired, TypedDict


class Passage(TypedDict):
    """One retrievable piece of a document. ``fields`` are the document's typed fields: ``year``, ``authors``, ..."""

    chunk_id: str
    doc_id: str
    title: str
    text: str
    position: int
    url: str
    licence: str
    fields: dict[str, Any]


class Entity(TypedDict):
    """A node of the knowledge graph. ``doc_id`` is set when a document is about it; ``aliases`` hold every language."""

    entity_id: str
    name: str
    type: str
    aliases: list[str]
    doc_id: str | None


class Relation(TypedDict):
    """An edge of the knowledge graph, with the sentence and passage that state it."""

    relation_id: str
    source: str
    type: str
    target: str
    sentence: str
    chunk_id: str


class RelationKind(TypedDict):
    """A type of relation between two types of entities, and how many relations are of it."""

    type: str
    source: str
    target: str
    count: int


class Community(TypedDict):
    """A group of entities that belong together. ``summary`` is extractive; ``doc_ids`` are the documents behind it."""

    community_id: str
    title: str
    members: list[str]
    summary: str
    doc_ids: list[str]


class Mention(TypedDict):
    """A known name in a text: ``text[start:end]`` names ``entity_id``.

    ``others`` bear the name too, and nothing in the text tells them from it: the name is ambiguous.
    """

    start: int
    end: int
    surface: str
    entity_id: str
    others: NotRequired[list[str]]


class Titled(TypedDict):
    """A title in a text: ``text[start:end]`` is a writing of the titles of these documents."""

    start: int
    end: int
    doc_ids: list[str]


class Link(TypedDict):
    """A passage names a document: ``surface`` is its title as ``sentence`` writes it."""

    chunk_id: str
    doc_id: str
    surface: str
    sentence: str


class Shared(TypedDict):
    """A phrase in a sentence of a passage, and the other passages that hold it."""

    chunk_id: str
    phrase: str
    sentence: str
    chunk_ids: list[str]


class Reached(TypedDict):
    """A passage where a walk over the graph is found with this probability.

    ``way``: ``(kind, id)`` of what led there, in turns of name and passage, the passage itself last; kinds are
    ``passage``, ``entity`` and ``phrase``. It begins at a name from which the walk began; where no name was given, at a
    passage where it is found more often than at all around. Empty where nothing led there.
    """

    chunk_id: str
    probability: float
    way: list[tuple[str, str]]


class Enriched(TypedDict):
    """What a source outside the corpus said: evidence and a piece of graph, for one run and never stored in a base.

    ``notes`` say why there is less than was asked for; ``asked`` counts its answers.
    """

    passages: list[Passage]
    entities: list[Entity]
    relations: list[Relation]
    notes: list[str]
    asked: int


class Wanted(NamedTuple):
    """A name to ask a source outside for: how else it is written, and the years that it may be of."""

    name: str
    also: tuple[str, ...] = ()
    years: tuple[int, ...] = ()
