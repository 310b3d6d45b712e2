"""The names in a question: what knowledge bases know by name, what only looks like a name, and what is left as themes.

The knowledge base links what it knows. What is quoted or capitalised beside that is a name too: one to search for, and
to miss honestly when the corpus does not have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TypedDict

from workbench.context import KnowledgeBase, Mention
from workbench.knowledge import vocabulary
from workbench.question.joined import joined_in
from workbench.question.language import FILM_EN, NEAR, OTHER, PERSON, language_file
from workbench.text import fold

_QUOTED = re.compile(r"《([^》]+)》|〈([^〉]+)〉|「([^」]+)」|『([^』]+)』|\"([^\"]{2,80})\"|“([^”]{2,80})”")
_WORD = r"(?:(?:[A-Z]['’])?[A-Z]\w*(?:-\w+)*|[A-Z]\.)"
_CAPITALISED = re.compile(rf"(?<![\w'’]){_WORD}(?: (?:(?:of|the|de|del|van|von|la|le|du|in|on) )*(?:{_WORD}|\d+))*")
_CONJUNCTION = re.compile(r"(?:and|or|&)\W", re.I)
_CHINESE = "[\u4e00-\u9fff]"
_NAME_SIGN = r"(?:(?![的是和与由谁影片部哪些有导演])[\u4e00-\u9fff])"
_DOTTED = re.compile(
    rf"(?:介绍|推荐|列出|对比|比较|一下)*({_NAME_SIGN}{{1,6}}(?:[·・]{_NAME_SIGN}{{1,6}}?)+)(?=[的是和与主导执演拍在有]|\W|$)"
)
_ASKED_ABOUT = re.compile(
    rf"^(?:请问|那么|那)?({_CHINESE}{{2,10}}?)(?:到底|究竟)?(?:是谁|是什么人|是何许人|由谁|是?哪一?年|是?什么时候"
    r"|讲了?什么|讲的是|的(?:导演|主演|演员|剧情|上映))"
    rf"|谁(?:是|导演了?|执导了?|主演了?|拍了?)({_CHINESE}{{2,10}}?)[？?。]?$"
)
_AROUND_CHINESE = re.compile(rf"(?<={_CHINESE})\s+(?=[{PERSON}{OTHER}])|(?<=[{PERSON}{OTHER}])\s+(?={_CHINESE})")
_TOPIC = re.compile(
    rf"(?:\b{FILM_EN}|\b(?:one|ones|anything|something)) (?:about|on) (?:the )?$"
    r"|\b(?:set|takes? place|taking place|happening) (?:in|during|at|on) (?:the )?$",
    re.IGNORECASE,
)
_NOT_A_SUBJECT = re.compile(r"导演|主演|演员|编剧|电影|影片|[片部个们者]$|^[两二前后]|[他她它这那该此谁哪什么的最第]")


class Named(TypedDict):
    """A name in a question: ``text[start:end]``, with its quotation marks if it has some.

    ``name`` is as the knowledge base writes it, or as the question does when no knowledge base knows it (then ``type``
    and ``entity_id`` are empty and so is ``bases``). ``roles`` of a person: filters that find documents.
    """

    surface: str
    start: int
    end: int
    name: str
    type: str
    entity_id: str
    bases: list[str]
    roles: list[str]


def is_person(named: Named) -> bool:
    """Whether the knowledge base says that it is a person."""
    return named["type"].lower() == "person"


def names_in(text: str, bases: Sequence[KnowledgeBase]) -> list[Named]:
    """The names of a text in its order; where several knowledge bases know one, the first describes it."""
    quotes = [match.span() for match in _QUOTED.finditer(text)]
    found: list[Named] = []
    for base in bases:
        mentions = base.link(text)
        longer = joined_in(text, base) if mentions else []
        for mention in mentions:
            named = _known(text, mention, base, quotes)
            if named and not any(_part_of(named, whole) for whole in longer):
                found.append(named)
    kept = _without_overlaps(found)
    return _without_overlaps([*kept, *_unknown(text, quotes, kept)])


def mask(text: str, names: Iterable[Named]) -> str:
    """The text with one sign for each name, so that patterns see the sentence and not what the titles say.

    >>> lee = Named(surface="Ang Lee", start=7, end=14, name="Ang Lee", type="person", entity_id="", bases=[], roles=[])
    >>> mask("Who is Ang Lee?", [lee]) == f"who is {PERSON}?"
    True
    """
    parts, at = [], 0
    for named in sorted(names, key=lambda n: n["start"]):
        parts += [text[at : named["start"]].lower(), PERSON if is_person(named) else OTHER]
        at = named["end"]
    return _AROUND_CHINESE.sub("", "".join([*parts, text[at:].lower()]))


def _known(text: str, mention: Mention, base: KnowledgeBase, quotes: Sequence[tuple[int, int]]) -> Named | None:
    start, end = mention["start"], mention["end"]
    entity = base.entity(mention["entity_id"])
    if entity is None or len(re.sub(r"\W", "", text[start:end])) < 2:
        return None
    if entity["doc_id"] is None and text[start:end].islower() and text != text.lower():
        return None  # nobody who writes capitals writes a person without
    if entity["doc_id"] is None and entity["type"].lower() != "person" and _is_topic(text[:start]):
        return None
    if text[start:end].lower() in _not_names() and re.search(
        r"\b(?:the|an?|any|wins?|won)\s$", text[max(0, start - NEAR) : start], re.I
    ):
        return None  # "win an Oscar" is not about the film
    around = next((q for q in quotes if q[0] <= start and end <= q[1]), None)
    if around:
        if not _same(text[around[0] + 1 : around[1] - 1], text[start:end]):
            return None  # 《喜宴2》 is another film than 《喜宴》
        start, end = around
    elif _CONJUNCTION.match(text[start:end]) or (
        _is_field(text[start:end]) and not _same(entity["name"], text[start:end])
    ):
        return None  # "and Aliens" is two words too many, and France is not Michael France
    return Named(
        surface=text[start:end],
        start=start,
        end=end,
        name=entity["name"],
        type=entity["type"],
        entity_id=entity["entity_id"],
        bases=[base.name],
        roles=_roles(entity["name"], base) if entity["type"].lower() == "person" else [],
    )


def _part_of(named: Named, whole: tuple[int, int]) -> bool:
    start, end = whole
    return start <= named["start"] and named["end"] <= end and (named["start"], named["end"]) != whole


def _same(one: str, other: str) -> bool:
    return fold(one) == fold(other)


def _roles(name: str, base: KnowledgeBase) -> list[str]:
    found = {"director": base.select({"director": name}), "cast": base.select({"cast": name})}
    return sorted((role for role, docs in found.items() if docs), key=lambda role: -len(found[role]))


def _unknown(text: str, quotes: Sequence[tuple[int, int]], known: Sequence[Named]) -> list[Named]:
    """Quoted titles and capitalised names that no knowledge base has: to be asked for, and missed honestly."""
    spans = [*quotes, *_capitalised(text), *_chinese_names(text)]
    return [
        Named(
            surface=text[s:e],
            start=s,
            end=e,
            name=bare(text[s:e]),
            type="",
            entity_id="",
            bases=[],
            roles=[],
        )
        for s, e in spans
        if not any(s < n["end"] and n["start"] < e for n in known) and not _is_topic(text[:s])
    ]


def _is_topic(before: str) -> bool:
    """Whether what follows is what works are about, and no name of one: "films about World War II", "set in New York".

    >>> _is_topic("List films about "), _is_topic("Tell me about "), _is_topic("a comedy set in ")
    (True, False, True)
    """
    return _TOPIC.search(before[-NEAR:]) is not None


def bare(surface: str) -> str:
    """A surface without its quotation marks.

    >>> bare("《喜宴》"), bare("Ang Lee")
    ('喜宴', 'Ang Lee')
    """
    return surface.strip('《》〈〉「」『』"“” ')


@cache
def _not_names() -> frozenset[str]:
    return frozenset(" ".join(language_file("not_names.txt")).split())


def _capitalised(text: str) -> list[tuple[int, int]]:
    """Spans of capitalised words that are not there for beginning a sentence or naming a month.

    >>> [("Did Zhang Yimou direct Hero?")[s:e] for s, e in _capitalised("Did Zhang Yimou direct Hero?")]
    ['Zhang Yimou', 'Hero']
    """
    if text.upper() == text:
        return []
    spans = []
    for match in _CAPITALISED.finditer(text):
        start, end = match.span()
        words = list(re.finditer(r"\S+", match.group()))
        while words and words[0].group().lower().removesuffix("'s").removesuffix("’s") in _not_names():
            words.pop(0)
        if not words:
            continue
        start, end = start + words[0].start(), start + words[-1].end()
        begins = not re.search(r"[\w,;:]\W*$", text[max(0, start - NEAR) : start])
        if not (begins and len(words) == 1) and end - start > 1 and not _is_field(text[start:end]):
            spans.append((start, end))
    return spans


@cache
def _somebodys_films() -> re.Pattern[str]:
    """Films of a name that begins as Chinese names do: 王家卫的电影, but not 好看的电影."""
    surnames = "".join(language_file("surnames.txt")).replace(" ", "")
    begin = "推荐|列出|列举|几部|一些|有没有|有哪些|喜欢|关于|导演|^"
    return re.compile(rf"(?:{begin})([{surnames}]{_CHINESE}{{1,2}})(?:导演|主演|执导|拍)?的(?:电影|影片|片子|作品)")


def _is_field(phrase: str) -> bool:
    """Whether a capitalised phrase is a country or a genre: "Taiwanese"."""
    return any(vocabulary.canonical(kind, phrase) for kind in vocabulary.KINDS)


def _chinese_names(text: str) -> list[tuple[int, int]]:
    """Chinese names that nobody quoted: with a dot, between English words, or as what is asked about.

    >>> text = "谁导演了霸王别姬？"
    >>> [text[start:end] for start, end in _chinese_names(text)]
    ['霸王别姬']
    """
    spans = [match.span(1) for match in _DOTTED.finditer(text)]
    if len(re.findall(r"[A-Za-z]{2,}", text)) > 1:
        between = re.finditer(rf"(?<=[\sa-z]){_CHINESE}{{2,12}}(?=[\s?!.,a-z]|$)", text)
        spans += [match.span() for match in between if not _NOT_A_SUBJECT.search(match.group())]
    spans += [match.span(1) for match in _somebodys_films().finditer(text)]
    match = _ASKED_ABOUT.search(text)
    for group in (1, 2):
        if match and match.group(group) and not _NOT_A_SUBJECT.search(match.group(group)):
            spans.append(match.span(group))
    return spans


def _without_overlaps(names: Sequence[Named]) -> list[Named]:
    """In the order of the text; the longer of two that overlap; one span known to two bases is one name."""
    kept: list[Named] = []
    for named in sorted(names, key=lambda n: n["start"] - n["end"]):
        same = next((k for k in kept if (k["start"], k["end"]) == (named["start"], named["end"])), None)
        if same:
            same["bases"] += [base for base in named["bases"] if base not in same["bases"]]
        elif not any(named["start"] < k["end"] and k["start"] < named["end"] for k in kept):
            kept.append(named)
    return sorted(kept, key=lambda n: n["start"])
