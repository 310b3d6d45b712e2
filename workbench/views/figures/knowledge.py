"""The knowledge graph around an answer: its entities large, their neighbours, the way from one to another heavy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from plotly.graph_objects import Scatter

from workbench.ports import Entity
from workbench.text import CJK
from workbench.views.figures.paper import (
    COLOURS,
    DIM,
    FAINT,
    GROUND,
    INK,
    STRONG,
    Point,
    hidden,
    hover,
    paper,
    points,
    safe,
    short,
    swatch,
    words,
)
from workbench.views.figures.picture import Picture
from workbench.views.labels import Labels
from workbench.views.neighbourhood import Around

_SHAPES = ("circle", "square", "diamond", "triangle-up", "pentagon", "hexagon2", "triangle-down", "star-diamond")
"""One for each type of entity, in the order in which types come; the last stands for all further ones."""


_LOOKS = {
    "seed": ("of_the_answer", COLOURS["done"][1], COLOURS["done"][0], 20),
    "way": ("on_the_way", COLOURS["running"][1], COLOURS["running"][0], 14),
    "near": ("related", GROUND, COLOURS["idle"][1], 10),
}
"""Role -> its name, fill, outline, size; a neighbour is hollow."""


def knowledge(found: Around, title: str = "", language: str = "en") -> Picture:
    """The graph. A shape a type; filled and large what the answer rests on, heavy the way that was asked for."""
    labels, places = Labels(language), found.places()
    layout = paper(
        title or labels("knowledge_around"),
        width=960,
        height=680,
        under=_under(found, labels),
        xaxis=hidden(-0.1, 1.1),
        yaxis=hidden(1.06, -0.06),
    )
    return Picture.of(found.rows(), [*_relations(found, places, labels), *_entities(found, places, labels)], layout)


def called(entity: Entity, language: str) -> str:
    """What an entity is called: its shortest Chinese alias for Chinese, where it has one (美国, not 好莱坞).

    >>> entity = {"entity_id": "p", "name": "Lao She", "type": "Person", "aliases": ["老舍"], "doc_id": None}
    >>> called(entity, "zh"), called(entity, "en")
    ('老舍', 'Lao She')
    """
    chinese = [alias for alias in entity["aliases"] if CJK.search(alias)] if language == "zh" else []
    return min(chinese, key=len, default=entity["name"])


def _relations(found: Around, places: Mapping[str, Point], labels: Labels) -> Iterator[Any]:
    """Lines, the way heavy; what each says in its middle: who relates how to whom, and a sentence that states it."""
    pairs: dict[frozenset[str], list[Mapping[str, Any]]] = {}
    for relation in found.relations:
        if relation["source"] != relation["target"]:
            pairs.setdefault(frozenset((relation["source"], relation["target"])), []).append(relation)
    steps = {frozenset(pair) for pair in pairwise(found.path)}
    for heavy in (False, True):
        ends = [[places[one] for one in sorted(pair)] for pair in pairs if (pair in steps) == heavy]
        x, y = ([value for a, b in ends for value in (a[axis], b[axis], None)] for axis in (0, 1))
        line = {"color": STRONG if heavy else FAINT, "width": 3.2 if heavy else 0.8}
        yield Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    told, on_way = [], []
    for pair, relations in pairs.items():
        (x0, y0), (x1, y1) = (places[one] for one in pair)
        first, middle = relations[0], ((x0 + x1) / 2, (y0 + y1) / 2)
        source, target = (
            short(called(found.entities[first[end]], labels.language), 40) for end in ("source", "target")
        )
        kinds = labels("comma").join(dict.fromkeys(_word("rel", one["type"], labels) for one in relations))
        told.append((*middle, hover(f"{source} → {kinds} → {target}", first["sentence"])))
        on_way += [(*middle, safe(kinds))] if pair in steps else []
    yield points(told, size=12)
    if on_way:
        yield words(on_way, 11, COLOURS["running"][0], "top center")


def _word(kind: str, name: str, labels: Labels) -> str:
    """The word for a type of relation or entity; one that a corpus brings itself is shown as it is."""
    return labels.known(f"{kind}_{name}", name.replace("_", " "))


def _entities(found: Around, places: Mapping[str, Point], labels: Labels) -> Iterator[Any]:
    types = list(dict.fromkeys(entity["type"] for entity in found.entities.values()))
    shapes = {name: _SHAPES[min(number, len(_SHAPES) - 1)] for number, name in enumerate(types)}
    roles: dict[str, list[str]] = {role: [] for role in _LOOKS}
    for one in found.entities:
        roles["seed" if one in found.seeds else "way" if one in found.path else "near"].append(one)
    names = []
    for role, (key, fill, outline, size) in _LOOKS.items():
        here = roles[role]
        if not here:
            continue
        symbols = [shapes[found.entities[one]["type"]] for one in here]
        marker = {"symbol": symbols, "size": size, "color": fill, "line": {"color": outline, "width": 1.6}}
        x, y = ([places[one][axis] for one in here] for axis in (0, 1))
        said = [_hover(found, one, labels) for one in here]
        look = {"mode": "markers", "marker": marker, "hoverinfo": "text", "hovertext": said, "showlegend": False}
        yield Scatter(x=x, y=y, **look)
        yield swatch(labels(key), fill, outline, "circle")
        down, small = 0.028 if role == "seed" else 0.018, role == "near"
        shown = ((places[one][0], places[one][1] + down, _name(found.entities[one], role, labels)) for one in here)
        names.append(words(shown, 10 if small else 12, COLOURS["idle"][0] if small else INK, "bottom center"))
    for name, shape in shapes.items():
        yield swatch(_word("type", name, labels), GROUND, DIM, shape)
    yield from names


def _name(entity: Entity, role: str, labels: Labels) -> str:
    name = safe(short(called(entity, labels.language), 26))
    return f"<b>{name}</b>" if role == "seed" else name


def _hover(found: Around, one: str, labels: Labels) -> str:
    entity, more = found.entities[one], found.more.get(one)
    aliases = short(labels("comma").join(entity["aliases"]), 60)
    hidden_too = labels("neighbours_hidden", n=more) if more else ""
    return hover(entity["name"], _word("type", entity["type"], labels), aliases, hidden_too)


def _under(found: Around, labels: Labels) -> str:
    told = [labels("knowledge_told", n=len(found.entities), m=len(found.relations))]
    if found.path:
        way = [short(called(found.entities[one], labels.language), 24) for one in found.path]
        told.append(f"{labels('the_way', n=len(way) - 1)}{labels('colon')}{' – '.join(way)}")
    return " · ".join(told)
