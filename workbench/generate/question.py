"""What the writer takes from a question: its names, what is asked of them, and what is left as themes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from workbench.generate.themes import content
from workbench.question.language import OTHER, spelled
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
    text = files("workbench.generate").joinpath("facets.toml").read_text(encoding="utf-8")
    return tuple(_facet(name, entry) for name, entry in tomllib.loads(text).items())


def _facet(name: str, entry: Mapping[str, Any]) -> Facet:
    asked, said = (re.compile("|".join(map(spelled, entry[key])), re.IGNORECASE) for key in ("asked", "said"))
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
_NUMERALS = {"一": 1, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}
_WANTED_EN = re.compile(
    rf"\b(\d{{1,2}}|{'|'.join(_NUMBERS)})\s+(?:[\w-]+\s+){{0,2}}(?:<film>|others?|more|ones?)\b".replace(
        "<film>", spelled("<film>")
    )
)
_WANTED_ZH = re.compile(rf"(?<![每哪第几这那])([{''.join(_NUMERALS)}]|\d{{1,2}})\s?[部个条本](?!年|月)")
_PATTERNS = {
    "plot": r"\babout\b\W*$|\b(?:plot|story|storyline|synopsis|premise|summar\w+|describe|happens?|tell me (?:more )?about)\b"
    r"|讲了?(?:的是|的|述)?(?:了)?(?:一个)?(?:什么|啥|谁)|说的?是?什么|剧情|故事|情节|内容|简介|介绍|概括|梗概|关于什么",
    "work": r"\b(?:which|what)(?:'s| is| was)?(?: the)?(?: \w+)? (?:film|movie|one|title)s?\b"
    r"|\b(?:film|movie|one) (?:about|where|in which|that|with|set|featuring)\b"
    r"|哪一?[部个](?:电影|影片|片子|片|作品)?|什么(?:电影|片子?)|的(?:那部|那个)?(?:电影|影片|片子)",
    "which": r"^\W*(?:(?:in )?which|what(?:'s| is| was)?(?: the)?(?: name of the)?) (?:\w+ )?(?:film|movie)s?\b|哪一?[部个](?:电影|影片|片子|片|作品)?|什么电影",
    "count": r"\bhow many\b|\bnumber of\b|多少[部个]|有?几部",
    "first": r"\b(?:first|debut|earliest|oldest)\b|最早|第一部|首部|处女作",
    "last": r"\b(?:latest|newest|most recent|last)\b|最新|最近|最后一部|最晚",
    "order": r"\b(?:first|earlier|later|older|newer|before|after)\b|[更最]?(?:早|晚|新|旧)|先(?:上映|拍|出)|[之以]?[前后]上映",
    "yes_no": r"^\W*(?:is|are|was|were|did|does|do|has|have|had)\b(?! you\b)|吗\W*$|是不是|是否|对不对|对吗",
    "others": r"\b(?:more|others?|another|else)\b|再|还有|其他|别的|另外",
    "now": r"\b(?:today|tonight|tomorrow|yesterday|right now|currently|this (?:week|month|year))\b|今天|明天|昨天|现在|目前|今年|本周",
    "role": rf"{OTHER}\s+in\s+[\"“]?{OTHER}",
}
_COMPILED = {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}


@dataclass(frozen=True)
class Question:
    """A question as the writer sees it. ``masked`` has one sign for each name, ``themes`` what is left of its content."""

    text: str
    language: str
    intent: QueryIntent
    subjects: tuple[Subject, ...] = ()
    filters: Filters = field(default_factory=Filters)
    masked: str = ""
    themes: tuple[str, ...] = ()

    def wants(self, what: str) -> bool:
        """Whether its wording shows one of the patterns above.

        >>> Question("", "en", "qa", masked="did \\ue001 direct \\ue002?").wants("yes_no")
        True
        >>> Question("", "zh", "qa", masked="\\ue002讲了什么故事？").wants("plot")
        True
        """
        return bool(_COMPILED[what].search(self.masked))

    def facets(self, fields: Sequence[str] = ()) -> list[Facet]:
        """What is asked of its subjects; ``fields`` are the typed fields that the evidence has, each askable by its name.

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

        >>> q = Question("", "en", "qa", masked="who wrote the screenplay about dreams?", themes=("wrote", "screenplay", "dreams"))
        >>> q.about()
        ['dreams']
        """
        left = self.masked
        for pattern in [*(f.asked for f in (self.facets() if facets is None else facets)), _COMPILED["plot"]]:
            left = pattern.sub(" ", left)
        return [theme for theme in self.themes if theme.lower() in left]

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
        return number if 0 < number <= 50 else None


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
    subjects = tuple(dict.fromkeys(_subject(text, name, documents) for name in names))
    masked = mask(text, names)
    said = [theme for theme in content(masked, themes) if theme.lower() not in _NUMBERS]
    now = _COMPILED["now"].search(masked)
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
