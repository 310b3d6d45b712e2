"""The knowledge graph around an answer: its entities large, their neighbours, the way from one to another heavy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.ports import Entity
from workbench.text import CJK
from workbench.views.around import Around
from workbench.views.figures.paper import (
    COLOURS,
    DIM,
    FAINT,
    GROUND,
    INK,
    STRONG,
    entry,
    hidden,
    paper,
    points,
    safe,
    short,
    words,
    wrapped,
)
from workbench.views.labels import Labels

if TYPE_CHECKING:
    from workbench.views.figures.picture import Picture


_SHAPES = ("circle", "square", "diamond", "triangle-up", "pentagon", "hexagon2", "triangle-down", "star-diamond")
"""One for each type of entity, in the order in which types come; the last stands for all further ones."""


def knowledge(found: Around, title: str = "", language: str = "en") -> Picture:
    """The graph. A shape a type; filled and large what the answer rests on, heavy the way that was asked for."""
    from workbench.views.figures.picture import Picture

    labels = Labels(language)
    places = found.places()
    pairs = _pairs(found)
    layout = {
        **paper(title or labels("knowledge_around"), width=960, height=680, under=_under(found, pairs, labels)),
        "xaxis": hidden() | {"range": [-0.1, 1.1]},
        "yaxis": hidden() | {"range": [1.06, -0.06]},
    }
    near = (((x0 + x1) / 2, (y0 + y1) / 2, said) for (x0, y0), (x1, y1), said in _middles(pairs, places, found, labels))
    data = [*_lines(pairs, places, found), points(near, size=12), *_way_words(pairs, places, found, labels)]
    data += [*_discs(found, places, labels), *_names(found, places, labels)]
    return Picture.of(found.rows(), data, layout)


Places = Mapping[str, tuple[float, float]]
Pairs = Mapping[tuple[str, str], list[Mapping[str, Any]]]


def called(entity: Entity, language: str) -> str:
    """What an entity is called: its shortest Chinese alias for Chinese, where it has one (美国, not 好莱坞).

    >>> entity = {"entity_id": "p", "name": "Lao She", "type": "Person", "aliases": ["老舍"], "doc_id": None}
    >>> called(entity, "zh"), called(entity, "en")
    ('老舍', 'Lao She')
    """
    chinese = [alias for alias in entity["aliases"] if CJK.search(alias)] if language == "zh" else []
    return min(chinese, key=len, default=entity["name"])


def _pairs(found: Around) -> Pairs:
    """The relations between each two entities."""
    pairs: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for relation in found.relations:
        if relation["source"] != relation["target"]:
            a, b = sorted((relation["source"], relation["target"]))
            pairs.setdefault((a, b), []).append(relation)
    return pairs


def _steps(found: Around) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in zip(found.path, found.path[1:], strict=False)}


def _lines(pairs: Pairs, places: Places, found: Around) -> list[Any]:
    from plotly.graph_objects import Scatter

    steps, traces = _steps(found), []
    for heavy in (False, True):
        here = [pair for pair in pairs if (frozenset(pair) in steps) == heavy]
        x = [value for a, b in here for value in (places[a][0], places[b][0], None)]
        y = [value for a, b in here for value in (places[a][1], places[b][1], None)]
        line = {"color": STRONG if heavy else FAINT, "width": 3.2 if heavy else 0.8}
        traces.append(Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False))
    return traces


def _middles(pairs: Pairs, places: Places, found: Around, labels: Labels) -> list[tuple[Any, Any, str]]:
    """For each line its ends, and what it says: who relates how to whom, and a sentence that states it."""
    told = []
    for (a, b), relations in pairs.items():
        first = relations[0]
        ends = (called(found.entities[first[end]], labels.language) for end in ("source", "target"))
        source, target = (safe(short(name, 40)) for name in ends)
        kinds = labels("comma").join(_kinds(relations, labels))
        said = [f"<b>{source} → {safe(kinds)} → {target}</b>"]
        said += [wrapped(first["sentence"], most=3)] if first["sentence"] else []
        told.append((places[a], places[b], "<br>".join(said)))
    return told


def _kinds(relations: Sequence[Mapping[str, Any]], labels: Labels) -> list[str]:
    return list(dict.fromkeys(_word("rel", relation["type"], labels) for relation in relations))


def _word(kind: str, name: str, labels: Labels) -> str:
    """The word for a type of relation or entity; one that a corpus brings itself is shown as it is."""
    told = labels(f"{kind}_{name}")
    return name.replace("_", " ") if told == f"{kind}_{name}".replace("_", " ") else told


def _way_words(pairs: Pairs, places: Places, found: Around, labels: Labels) -> list[Any]:
    steps = _steps(found)
    told = [
        (
            (places[a][0] + places[b][0]) / 2,
            (places[a][1] + places[b][1]) / 2,
            safe(labels("comma").join(_kinds(relations, labels))),
        )
        for (a, b), relations in pairs.items()
        if frozenset((a, b)) in steps
    ]
    return [words(told, 11, COLOURS["running"][0], "top center")] if told else []


def _role(found: Around, one: str) -> str:
    return "seed" if one in found.seeds else "way" if one in found.path else "near"


_LOOKS = {
    "seed": (COLOURS["done"][1], COLOURS["done"][0], 20),
    "way": (COLOURS["running"][1], COLOURS["running"][0], 14),
    "near": (GROUND, COLOURS["idle"][1], 10),
}
"""Role -> fill, outline, size; a neighbour is hollow."""


def _discs(found: Around, places: Places, labels: Labels) -> list[Any]:
    from plotly.graph_objects import Scatter

    types = list(dict.fromkeys(entity["type"] for entity in found.entities.values()))
    shapes = {name: _SHAPES[min(number, len(_SHAPES) - 1)] for number, name in enumerate(types)}
    traces = []
    for role, (fill, outline, size) in _LOOKS.items():
        here = [one for one in found.entities if _role(found, one) == role]
        if not here:
            continue
        marker = {
            "symbol": [shapes[found.entities[one]["type"]] for one in here],
            "size": size,
            "color": fill,
            "line": {"color": outline, "width": 1.6},
        }
        x, y = [places[one][0] for one in here], [places[one][1] for one in here]
        said = [_hover(found, one, labels) for one in here]
        traces.append(
            Scatter(x=x, y=y, mode="markers", marker=marker, hoverinfo="text", hovertext=said, showlegend=False)
        )
        key = {"seed": "of_the_answer", "way": "on_the_way", "near": "related"}[role]
        look = {"symbol": "circle", "size": 11, "color": fill, "line": {"color": outline, "width": 1.6}}
        traces.append(entry(labels(key), mode="markers", marker=look))
    for name, shape in shapes.items():
        marker = {"symbol": shape, "size": 10, "color": GROUND, "line": {"color": DIM, "width": 1.4}}
        traces.append(entry(_word("type", name, labels), mode="markers", marker=marker))
    return traces


def _names(found: Around, places: Places, labels: Labels) -> list[Any]:
    traces = []
    for role in _LOOKS:
        colour = INK if role != "near" else COLOURS["idle"][0]
        named = (
            (places[one][0], places[one][1] + (0.028 if role == "seed" else 0.018), _name(entity, role, labels))
            for one, entity in found.entities.items()
            if _role(found, one) == role
        )
        traces.append(words(named, 12 if role != "near" else 10, colour, "bottom center"))
    return traces


def _name(entity: Entity, role: str, labels: Labels) -> str:
    name = safe(short(called(entity, labels.language), 26))
    return f"<b>{name}</b>" if role == "seed" else name


def _hover(found: Around, one: str, labels: Labels) -> str:
    entity = found.entities[one]
    told = [f"<b>{safe(short(entity['name'], 60))}</b>", safe(_word("type", entity["type"], labels))]
    told += [safe(short(labels("comma").join(entity["aliases"]), 60))] if entity["aliases"] else []
    told += [safe(labels("neighbours_hidden", n=found.more[one]))] if found.more.get(one) else []
    return "<br>".join(told)


def _under(found: Around, pairs: Pairs, labels: Labels) -> str:
    told = [labels("knowledge_told", n=len(found.entities), m=len(found.relations))]
    if found.path:
        way = [called(found.entities[one], labels.language) for one in found.path]
        told.append(f"{labels('the_way', n=len(way) - 1)}{labels('colon')}{' – '.join(short(w, 24) for w in way)}")
    return " · ".join(told)
