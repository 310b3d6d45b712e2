"""What the writer takes from a question: its names, what is asked of them, and what is left as themes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from workbench.generate.themes import content, segments
from workbench.generate.wording import any_of, language_file, wording
from workbench.question.language import spelled
from workbench.question.names import Named, mask
from workbench.state import Filters, QueryIntent
from workbench.text import CJK, language_of, terms


@dataclass(frozen=True)
class Facet:
    """Something that can be asked of a document or a person; ``facets.toml`` says what each part is for."""

    name: str
    fields: tuple[str, ...]
    asked: re.Pattern[str]
    said: re.Pattern[str]
    names: tuple[str, str]
    drops: frozenset[str] = frozenset()

    @property
    def typed(self) -> bool:
        """Whether documents say it in typed fields only: a sentence that sounds like it is no answer."""
        return self.name in ("year", "director", "genre", "alias")


@cache
def facets() -> tuple[Facet, ...]:
    """Everything that the writer knows to be askable, in the order in which an answer says it."""
    return tuple(_facet(name, entry) for name, entry in language_file("facets.toml").items())


def _facet(name: str, entry: Mapping[str, Any]) -> Facet:
    asked, said = any_of(entry["asked"]), any_of(entry["said"])
    english, chinese = entry["names"]
    drops = frozenset(entry.get("drops", ()))
    return Facet(name, tuple(entry.get("fields", ())), asked, said, (english, chinese), drops)


def field_facet(name: str) -> Facet:
    """A typed field that the writer has no words for is asked for by its own name."""
    words = name.replace("_", " ")
    return _facet(
        name,
        {
            "fields": [name],
            "asked": [re.escape(words)],
            "said": [re.escape(words)],
            "names": [f"the {words} of {{}}", f"{{}}的{name}"],
        },
    )


@dataclass(frozen=True)
class Subject:
    """A name in the question. ``known``: a knowledge base has it; ``doc_id``: the document that is about it."""

    name: str
    surface: str
    type: str = ""
    known: bool = False
    doc_id: str | None = None

    @property
    def is_person(self) -> bool:
        """Whether a knowledge base says so."""
        return self.type == "person"


_NUMBERS = {
    "a couple": 2,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
}
_NUMERALS = {"两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}
_WANTED_EN = re.compile(
    rf"\b(\d{{1,2}}|{'|'.join(_NUMBERS)})\s+(?:[\w-]+\s+){{0,2}}(?:<film>|others?|more|ones?)\b".replace(
        "<film>", spelled("<film>")
    )
)
_WANTED_ZH = re.compile(rf"(?<![每哪第几这那])([{''.join(_NUMERALS)}]|\d{{1,2}})\s?[部个条本](?!年|月)")


@dataclass(frozen=True)
class Question:
    """A question as the writer sees it: ``masked`` has a sign for each name, ``themes`` what is left of its content."""

    text: str
    language: str
    intent: QueryIntent
    subjects: tuple[Subject, ...] = ()
    filters: Filters = field(default_factory=Filters)
    masked: str = ""
    themes: tuple[str, ...] = ()
    again: bool = False

    def wants(self, what: str) -> bool:
        """Whether its wording is that of an entry of ``wording.toml``; ``others`` too where it repeats a wish.

        >>> Question("", "en", "qa", masked="did \\ue001 direct \\ue002?").wants("yes_no")
        True
        >>> Question("", "zh", "qa", masked="\\ue002讲了什么故事？").wants("plot")
        True
        """
        return (self.again and what == "others") or bool(wording("question", what).search(self.masked))

    def says(self, what: str, theme: str) -> bool:
        """Whether a theme is nothing but such wording ("oldest")."""
        return bool(wording("question", what).fullmatch(theme.lower()))

    def facets(self, fields: Sequence[str] = ()) -> list[Facet]:
        """What is asked of its subjects; ``fields`` are the evidence's typed fields, each askable by its name.

        >>> [f.name for f in Question("", "en", "qa", masked="who directed \\ue002 and when?").facets()]
        ['year', 'director']
        >>> [f.name for f in Question("", "zh", "qa", masked="\\ue002片长多少分钟？").facets()]
        ['runtime']
        """
        found = [facet for facet in facets() if facet.asked.search(self.masked)]
        dropped = {name for facet in found for name in facet.drops}
        answered = {name for facet in facets() for name in facet.fields}
        words = set(terms(self.masked))
        own = [name for name in fields if name not in answered and set(terms(name.replace("_", " "))) <= words]
        return [facet for facet in found if facet.name not in dropped] + [field_facet(name) for name in own]

    def about(self, facets: Sequence[Facet] | None = None) -> list[str]:
        """The themes that are not just the words by which something was asked for.

        >>> themes = ("wrote", "screenplay", "dreams")
        >>> Question("", "en", "qa", masked="who wrote the screenplay about dreams?", themes=themes).about()
        ['dreams']
        """
        left = self.masked
        for pattern in [*(f.asked for f in (self.facets() if facets is None else facets)), wording("question", "plot")]:
            left = pattern.sub(" ", left)
        rest = [
            part for theme in self.themes for part in ([theme] if theme.lower() in left else segments(theme, [left]))
        ]
        return [theme for theme in dict.fromkeys(rest) if len(theme) > 1 and theme.lower() in left]

    @property
    def wanted(self) -> int | None:
        """How many are asked for, where a number is named.

        >>> [Question("", "", "list", masked=m).wanted for m in ("recommend three films", "推荐5部", "推荐几部")]
        [3, 5, None]
        """
        match = _WANTED_EN.search(self.masked) or _WANTED_ZH.search(self.masked)
        if not match:
            return None
        found = match.group(1)
        number = int(found) if found.isdigit() else {**_NUMBERS, **_NUMERALS}[found]
        return number if 1 < number <= 50 else None  # "recommend a film" is not for one alone


def asked(
    text: str,
    intent: QueryIntent,
    filters: Filters,
    names: Sequence[Named],
    documents: Mapping[str, str | None],
    themes: Sequence[str],
    language: str = "",
) -> Question:
    """A question from what was read of it; ``documents`` gives the document about an entity id."""
    # "IMDb" and "Oscar" look like names and are what is asked for.
    names = [n for n in names if n["entity_id"] or not any(f.asked.search(n["surface"].lower()) for f in facets())]
    subjects = tuple(dict.fromkeys(_subject(text, name, documents) for name in names))
    masked = mask(text, names)
    said = [theme for theme in content(masked, themes) if theme.lower() not in _NUMBERS]
    now = wording("question", "now").search(masked) if intent in ("qa", "unknown") else None
    today = [now.group()] if now and not any(now.group() in theme for theme in said) else []  # no corpus knows today
    return Question(
        text=text,
        language=language or language_of(text),
        intent=intent,
        subjects=subjects,
        filters=filters,
        masked=masked,
        themes=tuple(dict.fromkeys([*said, *today])),
    )


def _subject(text: str, named: Named, documents: Mapping[str, str | None]) -> Subject:
    """A name; with a number behind it ("Titanic 2") it is another one, which no knowledge base knew."""
    numbered = re.match(r"\s?(?:\d{1,2}|II|III|IV|V)(?![\w年月日部个-])", text[named["end"] :])
    if numbered and named["type"] != "person" and not CJK.search(numbered.group()):
        surface = named["surface"] + numbered.group().rstrip()
        return Subject(surface, surface)
    doc_id = documents.get(named["entity_id"])
    return Subject(named["name"], named["surface"], named["type"].lower(), bool(named["entity_id"]), doc_id)
