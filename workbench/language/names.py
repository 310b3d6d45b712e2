"""The names in a question: what knowledge bases know by name, and what is only written like one.

A base links the names that it knows. Other quoted or capitalised words are names too: they are searched for, and the
answer points out names that the corpus does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from workbench.knowledge.names.names import capitalised
from workbench.knowledge.names.surfaces import ordinary_words
from workbench.ports import Bases, Entity, Field, KnowledgeBase, LinkKind, Mention
from workbench.state import NameRead
from workbench.text import CJK, MONTHS, dates, days, fold, sentences

QUOTED = re.compile(
    r"《([^》]+)》|〈([^〉]+)〉|「([^」]+)」|『([^』]+)』|\"([^\"]{2,80})\"|“([^”]{2,80})”|`([^`]{2,80})`"
)
At = tuple[int, int]
"""Where something stands: ``text[start:end]``."""
_LANGUAGES = ("english", "chinese")


def names_in(text: str, bases: Bases, kind: LinkKind = "name") -> list[NameRead]:
    """Return the names of a text in its order; where several knowledge bases know one, the first describes it.

    >>> [name["name"] for name in names_in("I like tea. Which books are by Lao She?", [])]
    ['Lao She']
    """
    quotes = [match.span() for match in QUOTED.finditer(text)]
    names = []
    for base in bases:
        linked = (_linked(text, mention, base, quotes) for mention in base.link(text, kind))
        names += [name for name in linked if name]
    owned = filter(None, (_owner_of_field(text, base) for base in bases))
    owners = [match.span(1) for match in owned]
    return _without_overlaps([*names, *_unknown(text, [*quotes, *owners], names)])


def _owner_of_field(text: str, base: KnowledgeBase) -> re.Match[str] | None:
    """Match the name in 海风的作者是谁, of which a field is asked; descriptions and pronouns are not names."""
    fields = base.about()["fields"]
    words = {word for field in fields for word in field["called"].get("zh", ())}
    common = {
        *base.about()["nouns"].get("zh", ()),
        *(value for field in fields for value in _chinese_values(field)),
    }
    match = re.match(
        rf"(?:请问)?([\u4e00-\u9fff]{{2,12}})的(?:{'|'.join(map(re.escape, words)) or '$'})(?![\u4e00-\u9fff]*的)",
        text,
    )
    if match is None or re.search(r"[这那该此本它他她哪什谁最和与的]|所有|每", match[1]):
        return None
    return None if any(word in match[1] for word in common) else match


def _chinese_values(field: Field) -> list[str]:
    words = [
        word
        for by_language in field["values_called"].values()
        for word in by_language.get("zh", ())
    ]
    return [word for word in (*field["values"], *words) if CJK.match(word)]


def at(span: Any) -> At:
    """Return where a name, a value, a date or a number stands."""
    return (span["start"], span["end"]) if isinstance(span, dict) else (span[0], span[1])


def meets(span: Any, spans: Iterable[Any]) -> bool:
    """Return True where a thing overlaps one of the others."""
    start, end = at(span)
    return any(start < until and begin < end for begin, until in map(at, spans))


def blotted(text: str, spans: Iterable[At]) -> str:
    """Return the text with these parts blotted out, at the same length: the 2049 of a title is no year.

    >>> blotted("like Ali?", [(5, 8)])
    'like ___?'
    """
    for start, end in spans:
        text = text[:start] + "_" * (end - start) + text[end:]
    return text


def bare(surface: str) -> str:
    """Return a surface without its quotation marks.

    >>> bare("《茶馆》"), bare("Lao She")
    ('茶馆', 'Lao She')
    """
    return surface.strip('《》〈〉「」『』"“”` ')


def _linked(
    text: str, mention: Mention, base: KnowledgeBase, quotes: Sequence[At]
) -> NameRead | None:
    start = mention["start"]
    end = mention["end"]
    entity = base.entity(mention["entity_id"])
    surface = text[start:end]
    if (
        entity is None
        or len(re.sub(r"\W", "", surface)) < 2
        or all(w in (*MONTHS, *_LANGUAGES, "i") or w.isdigit() for w in surface.lower().split())
    ):
        return None
    around = next((q for q in quotes if q[0] <= start and end <= q[1]), None)
    if around:
        if fold(text[around[0] + 1 : around[1] - 1]) != fold(surface):
            return None  # 《茶馆2》 is another thing than 《茶馆》
        start, end = around
    elif surface.isascii() and surface.islower() and any(c.isupper() for c in entity["name"]):
        ordinary = surface in ordinary_words()
        if ordinary or (not entity["doc_id"] and text != text.lower()):
            return None  # who writes capitals writes names with them, and an ordinary word is one
    return known_name(text, start, end, entity, base)


def known_name(text: str, start: int, end: int, entity: Entity, base: KnowledgeBase) -> NameRead:
    """Return the name ``text[start:end]`` of an entity of a knowledge base."""
    return NameRead(
        surface=text[start:end],
        start=start,
        end=end,
        name=entity["name"],
        type=entity["type"],
        entity_id=entity["entity_id"],
        doc_id=entity["doc_id"] or "",
        bases=[base.name],
    )


def _unknown(text: str, quotes: Sequence[At], linked: Sequence[NameRead]) -> list[NameRead]:
    """Return names that no base has: quoted titles, capitalised words, owners of a field; not languages and dates."""
    shouted = text.upper() == text and not CJK.search(text)
    spans = []
    begin = 0
    # each sentence begins with a capital, which makes no name
    for sentence in [] if shouted else sentences(text):
        begin = max(text.find(sentence, begin), begin)
        spans += [(begin + start, begin + end) for start, end in capitalised(sentence)]
    day_spans = [*days(text), *dates(text)]
    spans = [
        (start, end)
        for start, end in spans
        if text[start:end].lower() not in _LANGUAGES
        and not any(begin <= start and end <= until for begin, until, _ in day_spans)
        and not re.search(r"\d\s?$", text[: start + 1])
    ]
    return [
        NameRead(
            surface=text[s:e],
            start=s,
            end=e,
            name=bare(text[s:e]),
            type="",
            entity_id="",
            doc_id="",
            bases=[],
        )
        for s, e in [*quotes, *spans]
        if not meets((s, e), linked)
    ]


def _without_overlaps(names: Sequence[NameRead]) -> list[NameRead]:
    """Return names in the order of the text; the longer of two that overlap; two bases with one span give one name."""
    result: list[NameRead] = []
    for name in sorted(names, key=lambda n: n["start"] - n["end"]):
        same = next((result_name for result_name in result if at(result_name) == at(name)), None)
        if same:
            same["bases"] += [base for base in name["bases"] if base not in same["bases"]]
        elif not meets(name, result):
            result.append(name)
    return sorted(result, key=lambda n: n["start"])
