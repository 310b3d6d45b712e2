"""A knowledge base to look at: the graph around an answer, an inspection (``Inspected``), the progress of indexing."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from workbench.knowledge.vocabulary import GROUPING
from workbench.ports import Entity, KnowledgeBase, Relation
from workbench.state import Data, Json
from workbench.text import CJK
from workbench.views.blocks import Block, Lines, Span, clipped, columns
from workbench.views.drawing import Body, Drawing, sheet, short
from workbench.views.labels import Labels, labels_for
from workbench.views.page import Picture, draw
from workbench.views.render import Shown

if TYPE_CHECKING:
    from rich.console import Console

_MOST_SEEDS = 8
_MOST_NEIGHBOURS = 10
"""Neighbours of one entity that are shown; the rest is counted."""
MOST_NODES = 120
_MOST_SEARCHED = 20_000
"""Entities whose neighbours are read in the search for a path; a longer path is not found."""


@dataclass(frozen=True)
class Around:
    """A part of a knowledge graph.

    Attributes:
        entities: by id, those of the answer first.
        relations: between them, sorted by id.
        seeds: ids of the entities of the answer.
        opened: ids of the entities whose neighbours are shown.
        more: the number of hidden neighbours of an opened entity.
        path: the ids on a path to show; empty for none.
    """

    entities: dict[str, Entity] = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()
    seeds: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    more: Mapping[str, int] = field(default_factory=dict)
    path: tuple[str, ...] = ()

    def rows(self) -> list[Json]:
        """Return one row per relation, with the names of both ends and its sentence."""
        return [
            {
                "source": self.entities[relation["source"]]["name"],
                "relation": relation["type"],
                "target": self.entities[relation["target"]]["name"],
                "sentence": relation["sentence"],
                "on_path": self.on_path(relation["source"], relation["target"]),
            }
            for relation in self.relations
        ]

    def on_path(self, source: str, target: str) -> bool:
        """Return whether two entities are next to each other on the path."""
        return {source, target} in map(set, pairwise(self.path))

    def places(self) -> dict[str, tuple[float, float]]:
        """Return the place of each entity, 0 to 1 on both axes; the same for the same graph."""
        import networkx

        graph: networkx.Graph = networkx.Graph()
        graph.add_nodes_from(self.entities)
        graph.add_edges_from((relation["source"], relation["target"]) for relation in self.relations)
        if len(graph) < 2:
            return dict.fromkeys(graph, (0.5, 0.5))
        places = networkx.spring_layout(graph, k=1.8 / len(graph) ** 0.5, iterations=120, seed=7)
        return {entity_id: (round((x + 1) / 2, 4), round((y + 1) / 2, 4)) for entity_id, (x, y) in places.items()}


def seed_entities(knowledge: KnowledgeBase, documents: Iterable[str], text: str) -> list[str]:
    """Return the entities of an answer: those that the question names, then those of its documents."""
    mentioned = [mention["entity_id"] for mention in knowledge.link(text)]
    seeds = dict.fromkeys([*mentioned, *(f"doc:{doc_id}" for doc_id in documents)])
    return [entity_id for entity_id in seeds if knowledge.entity(entity_id) is not None][:_MOST_SEEDS]


def around(
    knowledge: KnowledgeBase,
    seeds: Sequence[str],
    opened: Collection[str] | None = None,
    path: Sequence[str] = (),
) -> Around:
    """Return entities, the neighbours of the opened ones, and the relations between them.

    Args:
        knowledge: the knowledge base.
        seeds: ids of the entities to begin with.
        opened: ids of the entities whose neighbours are shown; by default the seeds.
        path: ids on a path to show too.
    """
    ids = dict.fromkeys([*seeds, *path])
    opened = list(dict.fromkeys(seeds if opened is None else opened))
    more = dict[str, int]()
    for entity_id in opened:
        neighbours = _neighbours(knowledge, entity_id, seeds)
        more[entity_id] = max(len(neighbours) - _MOST_NEIGHBOURS, 0)
        ids |= dict.fromkeys([entity_id, *neighbours[:_MOST_NEIGHBOURS]])
    read = map(knowledge.entity, list(ids)[:MOST_NODES])
    entities = {entity["entity_id"]: entity for entity in read if entity is not None}
    relations = (relation for entity_id in entities for relation in knowledge.entity_relations(entity_id))
    seeds, opened = ([key for key in keys if key in entities] for keys in (seeds, opened))
    return Around(entities, _within(relations, entities), tuple(seeds), tuple(opened), more, tuple(path))


def _within(relations: Iterable[Relation], entities: Collection[str]) -> tuple[Relation, ...]:
    """Return the relations between these entities, each once."""
    unique = {r["relation_id"]: r for r in relations if r["source"] in entities and r["target"] in entities}
    return tuple(unique[relation_id] for relation_id in sorted(unique))


def with_outside(graph: Around, enrichment: Data | None, source: str = "TMDB") -> Around:
    """Return the graph with the entities that a source outside the corpus gave for this run, typed by the source."""
    if not enrichment:
        return graph
    new = [entity for entity in enrichment["entities"] if entity["entity_id"] not in graph.entities]
    entities = dict(graph.entities)
    for entity in new[: MOST_NODES - len(entities)]:
        own: Any = {name: entity[name] for name in Entity.__annotations__} | {"type": source}
        entities[entity["entity_id"]] = own
    relations = _within([*enrichment["relations"], *graph.relations], entities)
    return replace(graph, entities=entities, relations=relations)


def way(knowledge: KnowledgeBase, start: str, end: str) -> list[str]:
    """Return the ids on a shortest path between two entities, in any direction of its relations; empty for none.

    The search grows from both ends, the smaller side first.
    """
    if knowledge.entity(start) is None or knowledge.entity(end) is None:
        return []
    paths: tuple[dict[str, list[str]], dict[str, list[str]]] = ({start: [start]}, {end: [end]})
    fronts, searched = ([start], [end]), 0
    while all(fronts) and searched < _MOST_SEARCHED:
        if common := sorted(paths[0].keys() & paths[1].keys()):
            middle = min(
                common, key=lambda i: (len(paths[0][i]) + len(paths[1][i]), len(knowledge.entity_relations(i)), i)
            )
            return [*paths[0][middle], *paths[1][middle][-2::-1]]
        side = int(len(fronts[1]) < len(fronts[0]))
        reached: list[str] = []
        for entity_id in fronts[side]:
            for neighbour in sorted(_ends(knowledge.entity_relations(entity_id)) - paths[side].keys()):
                paths[side][neighbour] = [*paths[side][entity_id], neighbour]
                reached.append(neighbour)
        searched += len(fronts[side])
        fronts = (fronts[0], reached) if side else (reached, fronts[1])
    return []


def _neighbours(knowledge: KnowledgeBase, entity_id: str, seeds: Collection[str]) -> list[str]:
    """Return the ids next to an entity: neighbours of several seeds first, then well connected ones, groups last."""
    read = map(knowledge.entity, _ends(knowledge.entity_relations(entity_id)) - {entity_id})
    neighbours = {entity["entity_id"]: entity for entity in read if entity}

    def order(neighbour: str) -> tuple[int, bool, int, str]:
        relations = knowledge.entity_relations(neighbour)
        shared = (_ends(relations) - {neighbour}) & {*seeds}
        return -len(shared), neighbours[neighbour]["type"] in GROUPING, -len(relations), neighbour

    return sorted(neighbours, key=order)


def _ends(relations: Iterable[Relation]) -> set[str]:
    return {end for relation in relations for end in (relation["source"], relation["target"])}


# the drawing

_WIDTH, _HEIGHT, _EDGE = 1000, 560, 70
_LONGEST_NAME = 26


def knowledge_graph(graph: Around, labels: Labels, chosen: str = "") -> Picture:
    """Return the graph, in which entities can be chosen."""
    count = labels("knowledge_told", n=len(graph.entities), m=len(graph.relations))
    look = {"cls": "wb-knowledge", "viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "role": "listbox", "aria_label": count}
    picture = _body(graph, labels, chosen).picture(**look)
    return Picture(draw("knowledge.graph", count=count, svg=picture.frame), picture.rows)


def knowledge(graph: Around, title: str = "", language: str = "en") -> Drawing:
    """Draw the graph for a page; its rows are relations."""
    labels = Labels(language)
    facts = [labels("knowledge_told", n=len(graph.entities), m=len(graph.relations))]
    if graph.path:
        facts.append(path_text(graph, labels))
    heading = title or labels("knowledge_around")
    return sheet(graph.rows(), _body(graph, labels, ""), heading, " · ".join(facts), f"● {labels('of_the_answer')}")


def display_name(entity: Entity, language: str) -> str:
    """Return the name of an entity; in Chinese its shortest Chinese alias, if any (美国, not 好莱坞).

    >>> entity = {"entity_id": "p", "name": "Lao She", "type": "Person", "aliases": ["老舍"], "doc_id": None}
    >>> display_name(entity, "zh"), display_name(entity, "en")
    ('老舍', 'Lao She')
    """
    chinese = [alias for alias in entity["aliases"] if CJK.search(alias)] if language == "zh" else []
    return min(chinese, key=len, default=entity["name"])


def _body(graph: Around, labels: Labels, chosen: str) -> Body:
    """Draw the entities, those of the answer filled and large, and the relations, those on the path heavy."""
    places = {
        entity_id: (_EDGE + x * (_WIDTH - 2 * _EDGE), 40 + y * (_HEIGHT - 80))
        for entity_id, (x, y) in graph.places().items()
    }
    lines = [_line(graph, relations, places, chosen, labels) for relations in _pairs(graph).values()]
    rows = {entity_id: _disc(graph, entity_id, places[entity_id], labels, chosen) for entity_id in graph.entities}
    return Body(lines, rows, _WIDTH, _HEIGHT)


def _pairs(graph: Around) -> dict[frozenset[str], list[Relation]]:
    """Group the relations by their ends."""
    pairs: dict[frozenset[str], list[Relation]] = {}
    for relation in graph.relations:
        pairs.setdefault(frozenset((relation["source"], relation["target"])), []).append(relation)
    return pairs


def _line(
    graph: Around, relations: list[Relation], places: Mapping[str, tuple[float, float]], chosen: str, labels: Labels
) -> Markup:
    source, target = relations[0]["source"], relations[0]["target"]
    words, on_path = _relation_words(relations, labels), graph.on_path(source, target)
    shown = on_path or chosen in (source, target)
    ink, width = ("person", 3.5) if on_path else ("run-fill", 1.5) if shown else ("idle-fill", 0.6)
    title = f"{words}\n{relations[0]['sentence'][:300]}"
    ends = (*places[source], *places[target])
    look = {"ink": ink, "width": width, "words": words if shown else ""}
    return draw("svg.relation", ends=ends, title=title, **look)


def _disc(graph: Around, entity_id: str, place: tuple[float, float], labels: Labels, chosen: str) -> Markup:
    entity, seed = graph.entities[entity_id], entity_id in graph.seeds
    title = f"{entity['name']}, {_word('type', entity['type'], labels)}"
    title += f", {labels('of_the_answer')}" if seed else ""
    look = {"seed": seed, "on_path": entity_id in graph.path, "chosen": entity_id == chosen}
    name = short(display_name(entity, labels.language), _LONGEST_NAME)
    return draw("svg.entity", key=entity_id, title=title, x=place[0], y=place[1], name=name, **look)


def _relation_words(relations: Iterable[Relation], labels: Labels) -> str:
    return labels("comma").join(dict.fromkeys(_word("rel", relation["type"], labels) for relation in relations))


def _word(kind: str, name: str, labels: Labels) -> str:
    """Return the word for a type of relation or entity; the type itself where a corpus brings its own."""
    return labels.get(f"{kind}_{name}", name.replace("_", " "))


def entity_card(graph: Around, entity_id: str, labels: Labels) -> Picture:
    """Return an entity in full: its type, its relations, and a button for its neighbours."""
    entity = graph.entities.get(entity_id)
    if entity is None:
        return Picture(draw("knowledge.note", text=labels("knowledge_choose")))
    relations = []
    for relation in graph.relations:
        source, target = relation["source"], relation["target"]
        if entity_id in (source, target):
            arrow, neighbour = ("→", target) if source == entity_id else ("←", source)
            relations.append((relation, arrow, neighbour, graph.entities[neighbour]["name"]))
    opened, hidden = entity_id in graph.opened, graph.more.get(entity_id, 0)
    card = draw("knowledge.card", labels, entity=entity, opened=opened, hidden=hidden, relations=relations)
    return Picture(card)


def path_text(graph: Around, labels: Labels) -> str:
    """Return the path in words: names and relations in turn."""
    if not graph.path:
        return labels("no_way")
    names = [short(display_name(graph.entities[entity_id], labels.language), 24) for entity_id in graph.path]
    pairs = _pairs(graph)
    words = [_relation_words(pairs.get(frozenset(pair), ()), labels) for pair in pairwise(graph.path)]
    steps = (f" — {relation} — {name}" for relation, name in zip(words, names[1:], strict=True))
    return f"{labels('the_way', n=len(words))}{labels('colon')}{names[0]}{''.join(steps)}"


# the inspection of a knowledge base


@dataclass(frozen=True)
class Inspected(Shown):
    """The contents of a knowledge base.

    Attributes:
        found: counts, fields and files.
    """

    found: Data
    message = ""  # no question, so the language of the process

    def to_dict(self) -> Json:
        """Return as JSON."""
        return json.loads(json.dumps(self.found))

    def to_frame(self) -> Any:
        """Return a pandas table with one row per field: its type, and how many documents have it."""
        import pandas

        rows = [(field["name"], field["type"], field["documents"]) for field in self.found["fields"]]
        return pandas.DataFrame(rows, columns=["field", "type", "documents"])

    def blocks(self) -> list[Block]:
        """Return as tables."""
        report, labels = self.found, labels_for("")
        counts = labels("comma").join(f"{count:,} {labels(f'kb_{name}')}" for name, count in report["counts"].items())
        where = labels("kb_behind") if not report["chroma"] else report["chroma_at"] or labels("kb_own_files")
        facts = [report["embedding_model"], f"{labels('kb_search')} {report['search']}"]
        facts += [f"{report['vector_store']}{labels('colon')}{where}", f"{report['bytes'] / 2**20:,.1f} MB"]
        facts.append(labels("kb_generation", n=report["generation"]))
        head: list[str | Span] = [(report["name"], "strong"), f" · {counts}"]
        blocks: list[Block] = [Lines([head, (" · ".join(facts), "dim")])]
        fields = [(f["name"], labels(f"kb_{f['type']}"), _range(f), f"{f['documents']:,}") for f in report["fields"]]
        heads = columns(labels, "kb_field:code", "kb_type", "kb_values", "kb_documents:number")
        blocks.append(clipped(labels("kb_fields", n=len(fields)), heads, fields, opened=False))
        files = [(path, f"{count:,}") for path, count in report["sources"].items()]
        heads = columns(labels, "kb_source:code", "kb_documents:number")
        return [*blocks, clipped(labels("kb_sources", n=len(files)), heads, files, opened=False)]

    def __repr__(self) -> str:
        return f"<Inspected {self.found['name']}: {self.found['counts']['documents']:,} documents>"


def _range(figures: Data) -> str:
    """Return the values of a field: the first ones, or the lowest and the highest."""
    if figures["values"]:
        return ", ".join(figures["values"][:4]) + (" …" if len(figures["values"]) > 4 else "")
    low, high = ((f"{end:,g}" if isinstance(end, float) else end or "") for end in (figures["low"], figures["high"]))
    unit = f" {figures['unit']}" if figures["unit"] else ""
    return f"{low} – {high}{unit}" if low else ""


# the progress of indexing, in a terminal

Tell = Callable[[str, int, int], None]
"""``tell(stage, done, total)``; ``total`` is 0 where it is unknown."""


@contextmanager
def bar(console: Console) -> Iterator[Tell]:
    """Yield a progress bar on this console, which disappears at the end of the block."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<8}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("read", total=None)

        def tell(stage: str, done: int, total: int) -> None:
            progress.update(task, description=stage, completed=done, total=total or None)

        yield tell
