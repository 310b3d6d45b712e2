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
from workbench.views.drawing import Body, Drawing, sheet, short
from workbench.views.labels import Labels, labels_for
from workbench.views.outline import Block, Column, Lines, clipped, columns
from workbench.views.page import Picture, draw
from workbench.views.render import Shown

if TYPE_CHECKING:
    from rich.console import Console

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

    def rows(self) -> list[Json]:
        """Return one row a relation, with the names of both ends and the sentence that states it."""
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
        """Return where each entity is drawn, 0 to 1 on both axes; the same graph has the same places."""
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
    """Return the entities, the neighbours of those that are opened, and what relates all of them.

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


def with_outside(found: Around, enrichment: Data | None, source: str = "TMDB") -> Around:
    """The same with what a source outside the corpus said for this run; its own things are of a type of their own."""
    if not enrichment:
        return found
    room = MOST_NODES - len(found.entities)
    new = [e for e in enrichment["entities"] if e["entity_id"] not in found.entities][:room]
    entities = dict(found.entities)
    for entity in new:
        own: Any = {name: entity[name] for name in Entity.__annotations__} | {"type": source}
        entities[entity["entity_id"]] = own
    known = {relation["relation_id"]: relation for relation in found.relations}
    for relation in enrichment["relations"]:
        if relation["source"] in entities and relation["target"] in entities:
            known.setdefault(relation["relation_id"], relation)
    return replace(found, entities=entities, relations=tuple(known[key] for key in sorted(known)))


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
    """Return the ids next to an entity, the most telling first.

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


# the drawing

WIDTH, HEIGHT, EDGE = 1000, 560, 70
_LONGEST_NAME = 26


def knowledge_graph(found: Around, labels: Labels, chosen: str = "") -> Picture:
    """Return the graph, in which entities can be chosen."""
    words = labels("knowledge_told", n=len(found.entities), m=len(found.relations))
    look = {"cls": "wb-knowledge", "viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "listbox", "aria_label": words}
    picture = _body(found, labels, chosen).picture(**look)
    return Picture(draw("knowledge.graph", told=words, svg=picture.frame), picture.rows)


def knowledge(found: Around, title: str = "", language: str = "en") -> Drawing:
    """Draw the graph for a page; its rows are relations."""
    labels = Labels(language)
    facts = [labels("knowledge_told", n=len(found.entities), m=len(found.relations))]
    if found.path:
        facts.append(way_told(found, labels))
    heading = title or labels("knowledge_around")
    return sheet(found.rows(), _body(found, labels, ""), heading, " · ".join(facts), f"● {labels('of_the_answer')}")


def name_of(entity: Entity, language: str) -> str:
    """Return the shortest Chinese alias for Chinese, where there is one (美国, not 好莱坞); else the name.

    >>> entity = {"entity_id": "p", "name": "Lao She", "type": "Person", "aliases": ["老舍"], "doc_id": None}
    >>> name_of(entity, "zh"), name_of(entity, "en")
    ('老舍', 'Lao She')
    """
    chinese = [alias for alias in entity["aliases"] if CJK.search(alias)] if language == "zh" else []
    return min(chinese, key=len, default=entity["name"])


def _body(found: Around, labels: Labels, chosen: str) -> Body:
    """Entities of the answer are filled and large; the way that was asked for is heavy."""
    places = {one: (EDGE + x * (WIDTH - 2 * EDGE), 40 + y * (HEIGHT - 80)) for one, (x, y) in found.places().items()}
    lines = [_line(found, pair, kinds, places, chosen, labels) for pair, kinds in _pairs(found, labels).items()]
    rows = {entity: _disc(found, entity, places[entity], labels, entity == chosen) for entity in found.entities}
    return Body(lines, rows, WIDTH, HEIGHT)


def entity_card(found: Around, one: str, labels: Labels, start: str = "") -> Picture:
    """Return an entity in full: what it is, what relates it to what is shown, and what can be done from here.

    Args:
        found: the graph.
        one: the entity's id.
        labels: the words.
        start: the entity from which a way is asked for, when there is one.
    """
    entity = found.entities.get(one)
    if entity is None:
        return Picture(draw("knowledge.note", text=labels("knowledge_choose"), status=False))
    words = {
        "entity": entity,
        "opened": one in found.opened,
        "start": found.entities[start]["name"] if start and start != one else "",
        "hidden": found.more.get(one, 0),
        "relations": list(_relations(found, one)),
    }
    return Picture(draw("knowledge.card", labels, **words))


def way_told(found: Around, labels: Labels) -> str:
    """Return the way that was asked for in words: names and relations in turn."""
    if not found.path:
        return labels("no_way")
    names = [short(name_of(found.entities[one], labels.language), 24) for one in found.path]
    between = {frozenset(pair): kinds for pair, kinds in _pairs(found, labels).items()}
    kinds = [labels("comma").join(between.get(frozenset(pair), ())) for pair in pairwise(found.path)]
    steps = (f" — {kind} — {name}" for kind, name in zip(kinds, names[1:], strict=True))
    return f"{labels('the_way', n=len(kinds))}{labels('colon')}{names[0]}{''.join(steps)}"


def _pairs(found: Around, labels: Labels) -> dict[tuple[str, str], list[str]]:
    """Return the kinds of relation between each two entities, one line a pair."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for relation in found.relations:
        a, b = sorted((relation["source"], relation["target"]))
        kinds = pairs.setdefault((a, b), [])
        kind = _word("rel", relation["type"], labels)
        if kind not in kinds:
            kinds.append(kind)
    return pairs


def _word(kind: str, name: str, labels: Labels) -> str:
    """Return the word for a type of relation or entity; a type that a corpus brings is shown unchanged."""
    return labels.known(f"{kind}_{name}", name.replace("_", " "))


def _line(
    found: Around,
    pair: tuple[str, str],
    kinds: list[str],
    places: Mapping[str, tuple[float, float]],
    chosen: str,
    labels: Labels,
) -> Markup:
    ends = (*places[pair[0]], *places[pair[1]])
    on_way, near = set(pair) in map(set, pairwise(found.path)), chosen in pair
    ink, width = ("person", 3.5) if on_way else ("run-fill", 1.5) if near else ("idle-fill", 0.6)
    words = labels("comma").join(kinds)
    stated = next(r["sentence"] for r in found.relations if {r["source"], r["target"]} == set(pair))
    look = {"ink": ink, "width": width, "title": f"{words}\n{stated[:300]}", "words": words if near or on_way else ""}
    return draw("svg.relation", ends=ends, **look)


def _disc(found: Around, one: str, place: tuple[float, float], labels: Labels, chosen: bool) -> Markup:
    entity, seed = found.entities[one], one in found.seeds
    said = f"{entity['name']}, {_word('type', entity['type'], labels)}"
    said += f", {labels('of_the_answer')}" if seed else ""
    look = {"seed": seed, "on_way": one in found.path, "chosen": chosen}
    name = short(name_of(entity, labels.language), _LONGEST_NAME)
    return draw("svg.entity", key=one, said=said, x=place[0], y=place[1], name=name, **look)


def _relations(found: Around, one: str) -> Iterator[tuple[Relation, str, str, str]]:
    """Yield the relations of an entity: each with an arrow, and the id and name of the other end."""
    for relation in found.relations:
        if one in (relation["source"], relation["target"]):
            arrow, other = ("→", relation["target"]) if relation["source"] == one else ("←", relation["source"])
            yield relation, arrow, other, found.entities[other]["name"]


# what is in a knowledge base, as tables


def knowledge_blocks(found: Data, labels: Labels) -> list[Block]:
    """Return the counts, the coverage, what belongs to nothing, what is there twice, and the fields."""
    return [block for part in (_head, _coverage, _fields) for block in part(found, labels)]


def _head(found: Data, labels: Labels) -> Iterator[Block]:
    counts = labels("comma").join(f"{n:,} {labels(f'kb_{what}')}" for what, n in found["counts"].items())
    where = labels("kb_behind") if not found["chroma"] else found["chroma_at"] or labels("kb_own_files")
    kept = f"{found['vector_store']}{labels('colon')}{where}"
    facts = f"{found['embedding_model']} · {labels('kb_search')} {found['search']} · {kept}"
    size = f"{found['bytes'] / 2**20:,.1f} MB · {labels('kb_generation', n=found['generation'])}"
    yield Lines((((found["name"], "strong"), (f" · {counts}", "")), ((f"{facts} · {size}", "dim"),)))


def _coverage(found: Data, labels: Labels) -> Iterator[Block]:
    heads = (*columns(labels, "kb_covered", "kb_documents:number"), Column("%", "number"))
    rows = [
        (labels(f"kb_with_{name}"), f"{part['documents']:,}", f"{part['percent']:.1f}")
        for name, part in found["coverage"].items()
    ]
    yield clipped(labels("kb_coverage"), heads, rows)


def _fields(found: Data, labels: Labels) -> Iterator[Block]:
    if found["fields"]:
        heads = columns(labels, "kb_field:code", "kb_type", "kb_values", "kb_documents:number")
        words = [(f["name"], labels(f"kb_{f['type']}"), _range(f), f"{f['documents']:,}") for f in found["fields"]]
        yield clipped(labels("kb_fields", n=len(words)), heads, words, opened=False)
    if found["sources"]:
        rows = [(path, f"{count:,}") for path, count in found["sources"].items()]
        heads = columns(labels, "kb_source:code", "kb_documents:number")
        yield clipped(labels("kb_sources", n=len(rows)), heads, rows, opened=False)


def _range(of: Data) -> str:
    """Return what a field holds: its first values, or from where to where."""
    if of["values"]:
        return ", ".join(of["values"][:4]) + (" …" if len(of["values"]) > 4 else "")
    low, high = ((f"{end:,g}" if isinstance(end, float) else end or "") for end in (of["low"], of["high"]))
    unit = f" {of['unit']}" if of["unit"] else ""
    return f"{low} – {high}{unit}" if low else ""


# the progress of indexing, in a terminal

Tell = Callable[[str, int, int], None]
"""``tell(stage, done, total)``; ``total`` is 0 where nobody knows."""


@contextmanager
def bar(console: Console) -> Iterator[Tell]:
    """Yield a progress bar on this console while the block works; it is gone at the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<8}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task("read", total=None)

        def tell(stage: str, done: int, total: int) -> None:
            shown.update(task, description=stage, completed=done, total=total or None)

        yield tell


@dataclass(frozen=True)
class Inspected(Shown):
    """What is in a knowledge base.

    Attributes:
        found: counts, coverage, fields and files.
    """

    found: Data
    message = ""  # no question: the language that was chosen for everything

    def to_dict(self) -> Json:
        """Return as JSON."""
        return json.loads(json.dumps(self.found))

    def to_frame(self) -> Any:
        """Return a pandas table with one row per figure: ``part``, ``what``, ``count``, ``percent``."""
        import pandas

        found = self.found
        rows = [("counts", what, n, None) for what, n in found["counts"].items()]
        rows += [("coverage", what, of["documents"], of["percent"]) for what, of in found["coverage"].items()]
        return pandas.DataFrame(rows, columns=["part", "what", "count", "percent"])

    def blocks(self) -> list[Block]:
        """Return as tables, in the language that was chosen for everything."""
        return knowledge_blocks(self.found, labels_for(""))

    def __repr__(self) -> str:
        return f"<Inspected {self.found['name']}: {self.found['counts']['documents']:,} documents>"
