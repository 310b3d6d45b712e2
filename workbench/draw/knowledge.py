"""The knowledge graph around an answer: entities as discs, relations as lines, one entity looked at in full."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.around import Around
from workbench.context import Entity
from workbench.draw.page import Markup, Picture, button, closed, el, joined, opened, safe
from workbench.labels import Labels

WIDTH, HEIGHT, EDGE = 1000, 560, 70
_LONGEST_NAME = 22


def knowledge_graph(found: Around, labels: Labels, chosen: str = "") -> Picture:
    """The graph as SVG. Entities of the answer are filled and large; the way that was asked for is drawn heavy."""
    places = {one: (EDGE + x * (WIDTH - 2 * EDGE), 40 + y * (HEIGHT - 80)) for one, (x, y) in found.places().items()}
    svg = opened(
        "svg",
        cls="wb-knowledge",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="listbox",
        aria_label=labels("knowledge_told", n=len(found.entities), m=len(found.relations)),
    )
    lines = [_line(found, pair, kinds, places, chosen) for pair, kinds in _pairs(found).items()]
    rows = {one: _disc(found, one, places[one], labels, one == chosen) for one in found.entities}
    head = el("div", el("span", labels("knowledge_told", n=len(found.entities), m=len(found.relations)), cls="wb-dim"))
    return Picture(joined([opened("section", cls="wb-section"), head, svg, lines]), rows, closed("svg", "section"))


def entity_card(found: Around, one: str, labels: Labels, start: str = "") -> Picture:
    """An entity in full: what it is, what relates it to what is shown, and what can be done from here.

    Args:
        found: the graph.
        one: the entity's id.
        labels: the words.
        start: the entity from which a way is asked for, when there is one.
    """
    entity = found.entities.get(one)
    if entity is None:
        return Picture(el("section", el("p", labels("knowledge_choose"), cls="wb-dim"), cls="wb-section"))
    opens = labels("fold_entity") if one in found.opened else labels("expand_entity")
    buttons = [button(opens, "expand", key=one)]
    if start and start != one:
        buttons.append(button(labels("way_to", name=found.entities[start]["name"]), "way", key=one, cls="wb-primary"))
    else:
        buttons.append(button(labels("way_from"), "start", key=one))
    title = el("div", el("h3", entity["name"], cls="wb-title"), el("span", entity["type"], cls="wb-dim"), cls="wb-bar")
    aliases = el("p", labels("comma").join(entity["aliases"]), cls="wb-dim") if entity["aliases"] else None
    hidden = found.more.get(one, 0)
    more = el("p", labels("neighbours_hidden", n=hidden), cls="wb-dim") if hidden else None
    parts = [title, aliases, el("div", buttons, cls="wb-bar"), _relations(found, one, labels), more]
    return Picture(el("section", parts, cls="wb-section"))


def way_told(found: Around, labels: Labels) -> Markup:
    """The way that was asked for, in words: names and relations in turn."""
    if not found.path:
        return el("p", labels("no_way"), cls="wb-dim")
    between = {frozenset(pair): kinds for pair, kinds in _pairs(found).items()}
    told: list[Markup] = [el("b", found.entities[found.path[0]]["name"])]
    for before, after in zip(found.path, found.path[1:], strict=False):
        kinds = between.get(frozenset((before, after)), [])
        told += [el("span", f" — {', '.join(kinds)} — ", cls="wb-dim"), el("b", found.entities[after]["name"])]
    return el("p", told, cls="wb-way")


def _pairs(found: Around) -> dict[tuple[str, str], list[str]]:
    """The kinds of relation between each two entities, one line a pair."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for relation in found.relations:
        a, b = sorted((relation["source"], relation["target"]))
        kinds = pairs.setdefault((a, b), [])
        if relation["type"] not in kinds:
            kinds.append(relation["type"])
    return pairs


def _line(
    found: Around, pair: tuple[str, str], kinds: list[str], places: Mapping[str, tuple[float, float]], chosen: str
) -> Markup:
    (x1, y1), (x2, y2) = places[pair[0]], places[pair[1]]
    steps = [{a, b} for a, b in zip(found.path, found.path[1:], strict=False)]
    cls = "wb-relation" + (" wb-on-way" if set(pair) in steps else " wb-near" if chosen in pair else "")
    said = ", ".join(kinds)
    drawn = [el("line", x1=x1, y1=y1, x2=x2, y2=y2), el("title", said)]
    if chosen in pair or set(pair) in steps:
        drawn.append(el("text", said, x=(x1 + x2) / 2, y=(y1 + y2) / 2 - 3, text_anchor="middle"))
    return el("g", drawn, cls=cls)


def _disc(found: Around, one: str, place: tuple[float, float], labels: Labels, chosen: bool) -> Markup:
    entity: Entity = found.entities[one]
    seed = one in found.seeds
    cls = "wb-entity" + (" wb-seed" if seed else "") + (" wb-on-way" if one in found.path else "")
    name = entity["name"] if len(entity["name"]) <= _LONGEST_NAME else entity["name"][: _LONGEST_NAME - 1] + "…"
    said = f"{entity['name']}, {entity['type']}" + (f", {labels('of_the_answer')}" if seed else "")
    x, y = place
    inside = [
        el("circle", cx=x, cy=y, r=10 if seed else 6),
        el("text", name, x=x, y=y + (22 if seed else 17), text_anchor="middle"),
        el("title", said),
    ]
    selected = "true" if chosen else "false"
    return el("g", inside, cls=cls, data_key=one, role="option", aria_label=said, aria_selected=selected, tabindex="-1")


def _relations(found: Around, one: str, labels: Labels) -> Markup:
    rows = []
    for relation in found.relations:
        if one not in (relation["source"], relation["target"]):
            continue
        other = relation["target"] if relation["source"] == one else relation["source"]
        arrow = "→" if relation["source"] == one else "←"
        name = button(found.entities[other]["name"], "choose", key=other, cls="wb-quiet")
        cells = [el("td", f"{arrow} {relation['type']}"), el("td", name), el("td", safe(relation["sentence"], 200))]
        rows.append(el("tr", cells))
    heads = el("tr", [el("th", labels(name)) for name in ("relation", "entity", "sentence")])
    return el("table", el("thead", heads), el("tbody", rows), cls="wb-table wb-relations")
