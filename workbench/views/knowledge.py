"""A knowledge base to look at: the graph around an answer, and an inspection (``Inspected``)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import atan2, degrees
from typing import Any

from markupsafe import Markup

from workbench.ports import Entity, Relation
from workbench.state import Data, Json
from workbench.text import CJK
from workbench.views.blocks import Block, Lines, Span, clipped, columns
from workbench.views.drawing import Body, Drawing, Patch, sheet, short, width
from workbench.views.labels import Labels, labels_for
from workbench.views.markup import draw
from workbench.views.render import Shown


def ends(relation: Relation) -> frozenset[str]:
    """Return the ids of both entities of a relation."""
    return frozenset((relation["source"], relation["target"]))


@dataclass(frozen=True)
class Around:
    """A part of a knowledge graph.

    Attributes:
        entities: by id, those of the answer first.
        relations: between them, sorted by id.
        seeds: ids of the entities of the answer.
        words: type of a relation or of a document -> language -> words for it, the one to show first.
    """

    entities: dict[str, Entity]
    relations: tuple[Relation, ...]
    seeds: tuple[str, ...]
    words: Mapping[str, Mapping[str, list[str]]]

    def rows(self) -> list[Json]:
        """Return one row per relation, with the names of both ends and its sentence."""
        return [
            {
                "source": self.entities[relation["source"]]["name"],
                "relation": relation["type"],
                "target": self.entities[relation["target"]]["name"],
                "sentence": relation["sentence"],
            }
            for relation in self.relations
        ]

    def along_fields(self) -> Iterator[Relation]:
        """Yield the relations as they are drawn: one that a field of a document states leads from the document."""
        for relation in self.relations:
            source, target = relation["source"], relation["target"]
            documents = [self.entities[end]["doc_id"] for end in (source, target)]
            if relation["type"] in self.words and documents[1] and not documents[0]:
                relation = {**relation, "source": target, "target": source}
            yield relation

    def word(self, kind: str, name: str, labels: Labels) -> str:
        """Return the word for a type of relation or entity: of a field that of the corpus, as of a foreign type."""
        own = self.words.get(name, {}).get(labels.language)
        foreign = bool(CJK.search(name)) != (labels.language == "zh")
        if own and (kind == "rel" or foreign):
            return own[0]
        return labels.get(f"{kind}_{name}", name.replace("_", " "))

    def core(self, chosen: Collection[str] = ()) -> Around:
        """Return what is of the answer, with the neighbours of what is chosen, without what else is near to it."""
        pairs = (ends(relation) for relation in self.relations)
        shown = {*self.seeds}.union(*(pair for pair in pairs if pair & {*chosen}))
        return replace(
            self,
            entities={i: self.entities[i] for i in self.entities if i in shown},
            relations=tuple(r for r in self.relations if ends(r) <= shown),
        )

    def places(self) -> dict[str, complex]:
        """Return the place of each entity: x from -1 to 1, and its row times i.

        The documents of the answer are a column. To the right of each is what only it is related to, to the left what
        several of them are, and everything else is below. In a crowd what is not of the answer takes less of a row.
        """
        hubs = [i for i in self.seeds if self.entities[i]["doc_id"]] or [*self.seeds]
        pairs = {*map(ends, self.relations)}
        groups = defaultdict[tuple[str, ...], list[str]](list)
        for i in self.entities:
            if i not in hubs:
                groups[tuple(hub for hub in hubs if frozenset((hub, i)) in pairs)].append(i)
        step = 0.3 if len(self.entities) > _CROWD else 1
        places = dict[str, complex]()
        row = 0.0
        for owners in [*((hub,) for hub in hubs), ()]:
            first = row
            for i in groups.pop(owners, ()):
                places[i] = complex(len(owners), row)
                row += 1 if i in self.seeds else step
            row = max(row, first + 1)
            places |= {hub: complex(0, (first + row - 1) / 2) for hub in owners}
        for owners, members in groups.items():
            middle = sum(places[hub].imag for hub in owners) / len(owners)
            for n, i in enumerate(members):
                places[i] = complex(-1, middle + step * n)
                if self.entities[i]["doc_id"]:  # below, where its relations pass through no other
                    places[i] = complex(0.6, row)
        return places


# the drawing

_WIDTH, _ROW = 770, 36
"""Pixels: the width, and from a row to the next one."""
MENTION = "Name"
"""The type of what a text only names."""
_INKS = {"Person": "person", MENTION: "idle", "Genre": "done", "Year": "done", "Country": "done"}
"""Type of an entity -> family of colour; a document has its own."""
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "1 3")
"""Dashes of the types of relations, those of the answer first; further types look like the last."""
_LONGEST_NAME = 26
_HIGH = 34
"""Pixels from an entity to one below it."""
_CROWD = 80
"""From how many entities on those that are not of the answer are dots, named when they are pointed at."""


def knowledge(graph: Around, language: str = "en", text: str = "") -> Drawing:
    """Draw the entities, those of the answer filled and large, and their relations; its rows are relations.

    An entity of several names has the one that the text has; without a text there is no answer yet.
    """
    labels = Labels(language)
    names = {
        i: short(display_name(entity, language, text), _LONGEST_NAME)
        for i, entity in graph.entities.items()
    }
    dots = {*names} - {*graph.seeds} if len(names) > _CROWD else set[str]()
    state = "answer" if text else "found"
    of_it = labels(f"of_the_{state}")
    places = _apart(graph.places(), names, dots)
    pairs = defaultdict[tuple[str, ...], list[Relation]](list)
    for relation in graph.along_fields():
        pairs[tuple(sorted(ends(relation)))].append(relation)
    # those of the answer first, so that neighbours change no line
    types = dict.fromkeys(r["type"] for r in (*graph.core().relations, *graph.relations))
    looks = dict(zip(types, _DASHES, strict=False))
    lines = [
        draw(
            "svg.relations",
            labels,
            graph=graph,
            looks=looks,
            pairs=pairs,
            places=places,
            tip=_tip,
        )
    ]
    rows = dict[str, Markup]()
    inks = dict[str, dict[str, None]]()
    for i, entity in graph.entities.items():
        ink = "run" if entity["doc_id"] else _INKS.get(entity["type"], "idle")
        kind = graph.word("type", entity["type"], labels)
        inks.setdefault(f"{ink}-fill", {})[kind] = None
        entry = draw(
            "svg.entity",
            entity=entity,
            name=names[i],
            word=kind,
            dot=i in dots,
            place=places[i],
            seed=of_it if i in graph.seeds else "",
            kind=ink,
        )
        if i in dots:  # behind the names
            lines.append(entry)
        else:
            rows[i] = entry
    height = max([40, *(place.y + 14 for place in places.values())])
    legend = [("■", ink, labels("comma").join(each)) for ink, each in inks.items()]
    if len(graph.seeds) < len(graph.entities):
        legend.append(("▬", "dim", of_it))
    return sheet(
        graph.rows(),
        Body(lines, rows, _WIDTH, height),
        labels(f"knowledge_{state}"),
        labels("knowledge_told", n=len(graph.entities), m=len(graph.relations)),
        legend,
        lines=[
            (dashes, "idle", short(graph.word("rel", kind, labels), 20))
            for kind, dashes in looks.items()
        ],
    )


def detail(graph: Around, labels: Labels, text: str, key: str, **about: Any) -> Markup:
    """Return relations by the sentences that state them, the answer's first, and the pieces that name an entity.

    Args:
        graph: around the answer.
        labels: the words.
        text: the answer.
        key: the id of an entity, or of two with a tab between them; "" for all relations.
        about: the ``base``, and the ``pieces`` in which an entity is to be found; those that are ``expanded``: their
            neighbours are shown.
    """
    names = {i: display_name(each, labels.language, text) for i, each in graph.entities.items()}
    chosen = {*key.split("\t")} - {""}
    stated = defaultdict[str, list[Relation]](list)
    for relation in sorted(graph.along_fields(), key=lambda r: not ends(r) <= {*graph.seeds}):
        if chosen <= ends(relation):
            stated[relation["sentence"]].append(relation)
    entity = graph.entities.get(key)
    return draw(
        "svg.detail", labels, graph=graph, entity=entity, names=names, stated=stated, **about
    )


def _apart(
    places: Mapping[str, complex], names: Mapping[str, str], dots: Collection[str]
) -> dict[str, Patch]:
    """Return the patch of each entity, with its name in it, moved down until it lies on no other; dots stay."""
    apart: dict[str, Patch] = {}
    for entity_id, place in sorted(places.items(), key=lambda item: item[1].imag):
        wide = 0 if entity_id in dots else width(names[entity_id], 13) + 22
        x = _WIDTH / 2 + place.real * (_WIDTH / 2 - 70)
        x = min(max(x, wide / 2), _WIDTH - wide / 2)
        patch = Patch(round(x), round(46 + place.imag * _ROW), wide, _HIGH)
        while wide and (obstacle := next(filter(patch.meets, apart.values()), None)):
            patch = patch._replace(y=obstacle.y + _HIGH)
        apart[entity_id] = patch
    return apart


def display_name(entity: Entity, language: str, text: str) -> str:
    """Return the name of an entity; in Chinese an alias that the text has, or the shortest (美国, not 好莱坞).

    >>> entity = {"entity_id": "p", "name": "Lao She", "type": "Person", "aliases": ["老舍"], "doc_id": None}
    >>> display_name(entity, "zh", ""), display_name(entity, "en", "")
    ('老舍', 'Lao She')
    """
    chinese = [alias for alias in entity["aliases"] if language == "zh" and CJK.search(alias)]
    return min(chinese, key=lambda alias: (alias not in text, len(alias)), default=entity["name"])


def _tip(source: Patch, target: Patch) -> tuple[float, float, float]:
    """Return where the line to an entity comes to its border, and its angle in degrees."""
    across, down = target.x - source.x, target.y - source.y
    sides = (
        max(target.wide - 6, 10) / abs(across or 1e-9),
        (target.high - 10) / abs(down or 1e-9),
    )
    share = min(sides) / 2
    return target.x - across * share, target.y - down * share, degrees(atan2(down, across))


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

    def blocks(self) -> list[Block]:
        """Return as tables."""
        report = self.found
        labels = labels_for("")
        counts = labels("comma").join(
            f"{count:,} {labels(f'kb_{name}')}" for name, count in report["counts"].items()
        )
        where = (
            labels("kb_behind")
            if not report["chroma"]
            else report["chroma_at"] or labels("kb_own_files")
        )
        facts = [
            report["embedding_model"],
            f"{labels('kb_search')} {report['search']}",
            f"{report['vector_store']}{labels('colon')}{where}",
            f"{report['bytes'] / 2**20:,.1f} MB",
            labels("kb_generation", n=report["generation"]),
        ]
        head: list[str | Span] = [(report["name"], "strong"), f" · {counts}"]
        blocks: list[Block] = [Lines([head, (" · ".join(facts), "dim")])]
        fields = [
            (f["name"], labels(f"kb_{f['type']}"), _range(f), f"{f['documents']:,}")
            for f in report["fields"]
        ]
        heads = columns(labels, "kb_field:code", "kb_type", "kb_values", "kb_documents:number")
        blocks.append(clipped(labels("kb_fields", n=len(fields)), heads, fields, opened=False))
        files = [(path, f"{count:,}") for path, count in report["sources"].items()]
        heads = columns(labels, "kb_source:code", "kb_documents:number")
        return [*blocks, clipped(labels("kb_sources", n=len(files)), heads, files, opened=False)]


def _range(figures: Data) -> str:
    """Return the values of a field, or the lowest and the highest."""
    if figures["values"]:
        return ", ".join(figures["values"])  # the table cuts them
    low, high = (
        (f"{end:,g}" if isinstance(end, float) else end or "")
        for end in (figures["low"], figures["high"])
    )
    unit = f" {figures['unit']}" if figures["unit"] else ""
    return f"{low} – {high}{unit}" if low else ""
