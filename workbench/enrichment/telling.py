"""Films and people of TMDB as evidence and as a piece of graph, in the language of the question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.context import Enriched, Entity, Passage, Relation
from workbench.enrichment.records import Film, Person, key_of
from workbench.text import CJK

PAGES = "https://www.themoviedb.org"
LICENCE = "TMDB"
_SAYS = {
    "directors": ("was directed by {}", "由{}执导"),
    "writers": ("was written by {}", "的编剧是{}"),
    "cast": ("stars {}", "由{}主演"),
    "composers": ("has music composed by {}", "由{}作曲配乐"),
    "producers": ("was produced by {}", "的制片人是{}"),
    "cinematographers": ("has cinematography by {}", "由{}摄影"),
    "genres": ("is of the genre {}", "的类型是{}"),
    "countries": ("is from {}", "的制片国家/地区是{}"),
    "languages": ("is spoken in these languages: {}", "的语言是{}"),
    "studios": ("comes from the studio {}", "的出品公司是{}"),
    "runtime": ("has a running time of {}", "的片长是{}"),
    "budget": ("had a budget of {}", "的预算是{}"),
    "revenue": ("grossed {} at the box office", "的票房是{}"),
    "rating": ("is rated {}", "的评分是{}"),
}
FIELDS = frozenset(_SAYS)
"""Typed fields of a film that are said there, beside its year and its other titles."""
_RELATIONS = {"directors": "directed_by", "writers": "written_by", "cast": "acted_in"}
_WORKS = {"directed_by": ("directed {}", "执导了{}"), "acted_in": ("acted in {}", "出演了{}")}


def told(things: Iterable[Film | Person], language: str) -> Enriched:
    """Each thing as a passage of evidence, and all of them as one piece of graph."""
    passages: list[Passage] = []
    entities: dict[str, Entity] = {}
    relations: dict[str, Relation] = {}
    for thing in things:
        if isinstance(thing, Film):
            passage = _film(thing, language)
            graph = _film_graph(thing, passage)
        else:
            passage = _person(thing, language)
            graph = _person_graph(thing, passage)
        passages.append(passage)
        for entity in graph[0]:
            entities.setdefault(entity["entity_id"], entity)
        for relation in graph[1]:
            relations.setdefault(relation["relation_id"], relation)
    return Enriched(
        passages=passages, entities=list(entities.values()), relations=list(relations.values()), notes=[], asked=0
    )


def _film(film: Film, language: str) -> Passage:
    chinese = language == "zh"
    shown = f"《{film.title}》" if chinese else film.title
    lines = [_opening(film, shown, chinese)]
    for name, (english, said) in _SAYS.items():
        if values := film.fields.get(name):
            listed = values if isinstance(values, str) else ("、" if chinese else ", ").join(values)
            lines.append(shown + (said if chinese else f" {english}").format(listed) + ("。" if chinese else "."))
    return _passage("movie", film.number, film.title, [*lines, film.overview], chinese, film.fields)


def _opening(film: Film, shown: str, chinese: bool) -> str:
    others = [name for name in film.names if name != film.title]
    twins = [name for name in others if bool(CJK.search(name)) != bool(CJK.search(film.title))] or others
    year = film.year
    if chinese:
        called = f"{shown}又名 {twins[0]}" if twins else shown
        return f"{called}，{year}年上映。" if year else f"{called}。" if twins else ""
    called = f"{shown}, also known as {twins[0]}," if twins else shown
    return f"{called} was released in {year}." if year else f"{called} is a film." if twins else ""


def _person(person: Person, language: str) -> Passage:
    chinese = language == "zh"
    name, born, place = person.name, person.fields.get("born", ""), person.fields.get("birth_place", "")
    others = [other for other in person.names if other != name]
    lines = [person.biography]
    if born or place:
        where = f" in {place}" if place else ""
        lines.append(f"{name}{born}出生于{place or '不详之地'}。" if chinese else f"{name} was born {born}{where}.")
    for kind, (english, said) in _WORKS.items():
        listed = [_work(title, year, chinese) for _, title, year in person.works.get(kind, ())]
        if listed:
            glue = ("、" if chinese else ", ").join(listed)
            lines.append(name + (said.format(glue) + "。" if chinese else f" {english.format(glue)}."))
    if others:
        lines.append(f"{name}又名{others[0]}。" if chinese else f"{name} is also known as {others[0]}.")
    return _passage("person", person.number, name, lines, chinese, person.fields)


def _work(title: str, year: int | None, chinese: bool) -> str:
    shown = f"《{title}》" if chinese else title
    return shown + ((f"（{year}）" if chinese else f" ({year})") if year else "")


def _passage(
    kind: str, number: int, title: str, lines: Iterable[str], chinese: bool, fields: Mapping[str, Any]
) -> Passage:
    place = f"tmdb:{kind}/{number}"
    return Passage(
        chunk_id=place,
        doc_id=place,
        title=title,
        text=("" if chinese else " ").join(line for line in lines if line) or title,
        position=0,
        url=f"{PAGES}/{kind}/{number}",
        licence=LICENCE,
        fields=dict(fields),
    )


def _film_graph(film: Film, passage: Passage) -> tuple[list[Entity], list[Relation]]:
    place = passage["doc_id"]
    entities = [_entity(place, film.title, "Film", film.names, place)]
    relations = []
    for name, relation in _RELATIONS.items():
        for person in film.fields.get(name, ()):
            other = f"tmdb:person/{film.people[person]}" if person in film.people else f"person:{key_of(person)}"
            entities.append(_entity(other, person, "Person"))
            ends = (other, place) if relation == "acted_in" else (place, other)
            relations.append(_relation(*ends, relation, passage))
    return entities, relations


def _person_graph(person: Person, passage: Passage) -> tuple[list[Entity], list[Relation]]:
    place = passage["doc_id"]
    entities = [_entity(place, person.name, "Person", person.names, place)]
    relations = []
    for relation, works in person.works.items():
        for number, title, _ in works:
            film = f"tmdb:movie/{number}"
            entities.append(_entity(film, title, "Film"))
            ends = (place, film) if relation == "acted_in" else (film, place)
            relations.append(_relation(*ends, relation, passage))
    return entities, relations


def _entity(entity_id: str, name: str, kind: str, names: Iterable[str] = (), doc_id: str | None = None) -> Entity:
    aliases = [other for other in names if other != name]
    return Entity(entity_id=entity_id, name=name, type=kind, aliases=aliases, doc_id=doc_id)


def _relation(source: str, target: str, kind: str, passage: Passage) -> Relation:
    return Relation(
        relation_id=f"{source}|{kind}|{target}",
        source=source,
        type=kind,
        target=target,
        sentence="",
        chunk_id=passage["chunk_id"],
    )
