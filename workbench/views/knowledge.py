"""A knowledge base to look at: the graph around an answer, an inspection (``Inspected``), the progress of indexing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from workbench.ports import Entity
from workbench.views.labels import Labels, labels_for
from workbench.views.neighbourhood import Around
from workbench.views.outline import Block, Column, Lines, clipped, columns
from workbench.views.page import Markup, Picture, button, closed, el, joined, opened, safe
from workbench.views.render import Shown

if TYPE_CHECKING:
    from rich.console import Console


WIDTH, HEIGHT, EDGE = 1000, 560, 70
_LONGEST_NAME = 22


def knowledge_graph(found: Around, labels: Labels, chosen: str = "") -> Picture:
    """The graph as SVG. Entities of the answer are filled and large; the way that was asked for is drawn heavy."""
    places = {one: (EDGE + x * (WIDTH - 2 * EDGE), 40 + y * (HEIGHT - 80)) for one, (x, y) in found.places().items()}
    told = labels("knowledge_told", n=len(found.entities), m=len(found.relations))
    svg = opened("svg.wb-knowledge", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="listbox", aria_label=told)
    lines = [_line(found, pair, kinds, places, chosen) for pair, kinds in _pairs(found).items()]
    rows = {one: _disc(found, one, places[one], labels, one == chosen) for one in found.entities}
    head = el("div", el("span.wb-dim", told))
    return Picture(joined([opened("section.wb-section"), head, svg, lines]), rows, closed("svg", "section"))


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
        return Picture(el("section.wb-section", el("p.wb-dim", labels("knowledge_choose"))))
    opens = labels("fold_entity") if one in found.opened else labels("expand_entity")
    buttons = [button(opens, "expand", key=one)]
    if start and start != one:
        buttons.append(button(labels("way_to", name=found.entities[start]["name"]), "way", key=one, cls="wb-primary"))
    else:
        buttons.append(button(labels("way_from"), "start", key=one))
    title = el("div.wb-bar", el("h3.wb-title", entity["name"]), el("span.wb-dim", entity["type"]))
    aliases = el("p.wb-dim", labels("comma").join(entity["aliases"])) if entity["aliases"] else None
    hidden = found.more.get(one, 0)
    more = el("p.wb-dim", labels("neighbours_hidden", n=hidden)) if hidden else None
    parts = [title, aliases, el("div.wb-bar", buttons), _relations(found, one, labels), more]
    return Picture(el("section.wb-section", parts))


def way_told(found: Around, labels: Labels) -> Markup:
    """The way that was asked for, in words: names and relations in turn."""
    if not found.path:
        return el("p.wb-dim", labels("no_way"))
    between = {frozenset(pair): kinds for pair, kinds in _pairs(found).items()}
    told: list[Markup] = [el("b", found.entities[found.path[0]]["name"])]
    for before, after in pairwise(found.path):
        kinds = between.get(frozenset((before, after)), [])
        told += [el("span.wb-dim", f" — {', '.join(kinds)} — "), el("b", found.entities[after]["name"])]
    return el("p.wb-way", told)


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
    on_way = set(pair) in map(set, pairwise(found.path))
    cls = "wb-relation" + (" wb-on-way" if on_way else " wb-near" if chosen in pair else "")
    said = ", ".join(kinds)
    drawn = [el("line", x1=x1, y1=y1, x2=x2, y2=y2), el("title", said)]
    if chosen in pair or on_way:
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
    return el("g", inside, cls=cls, data_key=one, role="option", aria_label=said, aria_selected=chosen, tabindex="-1")


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
    return el("table.wb-table.wb-relations", el("thead", heads), el("tbody", rows))


# what is in a knowledge base, as tables

_DAYS = 30
"""Days of growth that are listed; what came before stands in one row."""


def knowledge_blocks(found: Mapping[str, Any], labels: Labels) -> list[Block]:
    """What is there, how it grew, what covers it, what belongs to nothing, what is there twice, its fields."""
    return [block for part in (_head, _coverage, _growth, _faults, _fields) for block in part(found, labels)]


def _head(found: Mapping[str, Any], labels: Labels) -> Iterator[Block]:
    counts = labels("comma").join(f"{n:,} {labels(f'kb_{what}')}" for what, n in found["counts"].items())
    where = labels("kb_behind") if not found["chroma"] else found["chroma_at"] or labels("kb_own_files")
    kept = f"{found['vector_store']}{labels('colon')}{where}"
    facts = f"{found['embedding_model']} · {labels('kb_search')} {found['search']} · {kept}"
    languages = labels("comma").join(f"{language} {count:,}" for language, count in found["languages"].items())
    size = f"{found['bytes'] / 2**20:,.1f} MB · {labels('kb_generation', n=found['generation'])}"
    lines = [((found["name"], "strong"), (f" · {counts}", "")), ((f"{facts} · {size}", "dim"),)]
    if languages:
        lines.append(((f"{labels('kb_languages')}{labels('colon')}{languages}", "dim"),))
    yield Lines(tuple(lines))


def _coverage(found: Mapping[str, Any], labels: Labels) -> Iterator[Block]:
    heads = (*columns(labels, "kb_covered", "kb_documents:number"), Column("%", "number"))
    rows = [
        (labels(f"kb_with_{name}"), f"{part['documents']:,}", f"{part['percent']:.1f}")
        for name, part in found["coverage"].items()
    ]
    yield clipped(labels("kb_coverage"), heads, rows)


def _growth(found: Mapping[str, Any], labels: Labels) -> Iterator[Block]:
    heads = columns(labels, "kb_day", "kb_documents:number", "kb_total:number")
    days = found["growth"]
    rows = [(one["day"] or labels("kb_before"), f"{one['documents']:,}", f"{one['total']:,}") for one in days[-_DAYS:]]
    notes = [labels("and_more", n=len(days) - _DAYS)] if len(days) > _DAYS else []
    yield clipped(labels("kb_growth"), heads, rows, opened=len(days) > 1, notes=notes)


def _faults(found: Mapping[str, Any], labels: Labels) -> Iterator[Block]:
    heads = columns(labels, "kb_what", "kb_count:number", "kb_examples:code")
    orphans = [
        (labels(f"kb_{name}"), f"{part['count']:,}", labels("comma").join(part["examples"]))
        for name, part in found["orphans"].items()
    ]
    yield clipped(labels("kb_orphans"), heads, orphans)
    twice = [
        (labels(f"kb_{name}"), f"{part['count']:,}", labels("comma").join(" = ".join(ids) for ids in part["examples"]))
        for name, part in found["duplicates"].items()
    ]
    unread = found["duplicates"]["nearly_same"]["not_compared"]
    notes = [labels("kb_not_compared", n=unread)] if unread else []
    yield clipped(labels("kb_duplicates"), heads, twice, notes=notes)


def _fields(found: Mapping[str, Any], labels: Labels) -> Iterator[Block]:
    if found["fields"]:
        heads = columns(labels, "kb_field:code", "kb_type", "kb_values", "kb_documents:number")
        told = [(f["name"], labels(f"kb_{f['type']}"), _range(f), f"{f['documents']:,}") for f in found["fields"]]
        yield clipped(labels("kb_fields", n=len(told)), heads, told, opened=False)
    if found["sources"]:
        rows = [(path, f"{count:,}") for path, count in found["sources"].items()]
        heads = columns(labels, "kb_source:code", "kb_documents:number")
        yield clipped(labels("kb_sources", n=len(rows)), heads, rows, opened=False)


def _range(field: Mapping[str, Any]) -> str:
    """What a field holds: its first values, or from where to where."""
    if field["values"]:
        return ", ".join(field["values"][:4]) + (" …" if len(field["values"]) > 4 else "")
    low, high = ((f"{end:,g}" if isinstance(end, float) else end or "") for end in (field["low"], field["high"]))
    unit = f" {field['unit']}" if field["unit"] else ""
    return f"{low} – {high}{unit}" if low else ""


# the progress of indexing, in a terminal

Tell = Callable[[str, int, int], None]
"""``tell(stage, done, total)``; ``total`` is 0 where nobody knows."""


@contextmanager
def bar(console: Console) -> Iterator[Tell]:
    """A progress bar on this console while the block works; it is gone at the end."""
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
        found: counts, growth, coverage, languages, orphans, duplicates, fields and files.
    """

    found: Mapping[str, Any]
    message = ""  # no question: the language that was chosen for everything

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return json.loads(json.dumps(self.found))

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row a figure: ``part``, ``what``, ``count``, ``percent``, ``examples``."""
        for what, count in self.found["counts"].items():
            yield _row("counts", what, count)
        for what, covered in self.found["coverage"].items():
            yield _row("coverage", what, covered["documents"], covered["percent"])
        for language, count in self.found["languages"].items():
            yield _row("languages", language, count)
        for day in self.found["growth"]:
            yield _row("growth", day["day"], day["documents"])
        for part in ("orphans", "duplicates"):
            for what, told in self.found[part].items():
                yield _row(part, what, told["count"], examples=told["examples"])

    def to_frame(self) -> Any:
        """``rows`` as a pandas table."""
        import pandas

        return pandas.DataFrame(self.rows())

    def blocks(self) -> list[Block]:
        """As tables, in the language that was chosen for everything."""
        return knowledge_blocks(self.found, labels_for(""))

    def __repr__(self) -> str:
        return f"<Inspected {self.found['name']}: {self.found['counts']['documents']:,} documents>"


def _row(part: str, what: str, count: int, percent: float | None = None, examples: Any = ()) -> dict[str, Any]:
    return {"part": part, "what": what, "count": count, "percent": percent, "examples": list(examples)}
