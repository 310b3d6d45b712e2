"""Words that are read by rule: the closed classes of ``words.toml``, small talk, and what fields are called.

A condition is written as text here too, in the words and the unit of its field.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, cast

from workbench.knowledge.vocabulary import unit_in
from workbench.language.dates_and_numbers import convert
from workbench.ports import Bases, Field
from workbench.state import Condition, Json
from workbench.text import CJK, STOP_WORDS, fold, fold_word, scaled

_LONGEST_TALK = 300
"""Characters of small talk, at most."""


@cache
def closed_words() -> Json:
    """Return the sections of ``words.toml``."""
    return tomllib.loads(files("workbench.language").joinpath("words.toml").read_text("utf-8"))


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Compile a pattern of ``words.toml``, by its section and name: ``pattern("count.how_many")``."""
    section, key = name.split(".")
    return re.compile(closed_words()[section][key], re.I)


@cache
def _small_talk() -> re.Pattern[str]:
    lines = files("workbench.language").joinpath("smalltalk.txt").read_text("utf-8").splitlines()
    return re.compile(
        "|".join(f"(?:{line})" for line in lines if line.strip() and not line.startswith("#"))
    )


def is_small_talk(message: str) -> bool:
    """Return True for a message of nothing but greetings, thanks, farewells and questions about who answers.

    >>> [is_small_talk(m) for m in ("Hello there!", "你好，你是谁？", "Hello, who wrote this?", "再推荐几部")]
    [True, True, False, False]
    """
    if len(message) > _LONGEST_TALK:
        return False
    parts = re.split(
        r"[\W_]*[,.!?:;，。！？：；~～、\n…]+[\W_]*", message.lower().replace("’", "'")
    )
    bare = [re.sub(r"[^\w\s']", "", part).strip() for part in parts]
    return any(bare) and all(_small_talk().fullmatch(part) for part in bare if part)


TABLE = cast(
    Field,
    {
        "name": "table",
        "type": "category",
        "called": {"en": ["table"], "zh": ["表"]},
        "values_called": {},
        "unit": "",
    },
)
"""The type, file or folder of a document, which a condition may be on like on a field of its own."""
YES, NO = ("yes", "true", "1", "是", "有"), ("no", "false", "0", "否", "无")
_SCALE = re.compile(r"(百万|千万|万|亿|千(?![克米])|thousand|million|billion)\s*(?:of )?")


def fields_by_name(bases: Bases) -> dict[str, Field]:
    """Return the fields of knowledge bases by name, of each name the last."""
    return {field["name"]: field for base in bases for field in base.about()["fields"]}


def shown(field: Field, language: str) -> str:
    """Return what a field is called in a language, or its own name."""
    return (field["called"].get(language) or field["called"].get("en") or [field["name"]])[0]


_YES_NO = {True: "yes", False: "no"}


def value_texts(value: Any) -> list[str]:
    """Return the values of a field as texts; an empty list where there is none.

    >>> value_texts(["Ann", ""]), value_texts(True), value_texts(None)
    (['Ann'], ['yes'], [])
    """
    values = value if isinstance(value, list | tuple) else [value]
    return [_YES_NO[v] if isinstance(v, bool) else str(v) for v in values if v not in (None, "")]


def field_words(field: Field) -> list[str]:
    """Return the words that call a field, in both languages: a launch date is a launch, miles per gallon mpg."""
    words = [word for words in field["called"].values() for word in words]
    dated = re.compile("(.{2,})(?:日期|时间| date| time)")
    dates = [dated.fullmatch(word) for word in words if field["type"] == "date"]
    initials = ["".join(re.findall(r"\b[a-z]", fold(w))) for w in words if " per " in fold(w)]
    return words + [match[1] for match in dates if match] + initials


def own_words(fields: Sequence[Field], nouns: Iterable[str]) -> dict[str, Field]:
    """Return word -> the only field that has it in its name: "context" calls a context length.

    Words that order or count, and the ``nouns`` of documents, call none.
    """
    words_of = closed_words()["words"]
    closed = {*words_of["light"].split(), *words_of["counting"].split(), *STOP_WORDS}
    closed |= {form for noun in nouns for form in (noun, noun.removesuffix("s"))}
    words = [{fold(w) for words in field_words(field) for w in words.split()} for field in fields]
    return {
        word: field
        for field in fields
        for word in map(fold, re.findall("[A-Za-z][a-z]{3,}", unit_in(field["name"])[0]))
        if word not in closed and sum(word in own for own in words) == 1
    }


def word_spans(word: str, text: str, verb: bool = True) -> list[tuple[int, int]]:
    """Return the spans of a folded word in a folded text, with plural endings and those of a ``verb``.

    >>> word_spans("editors", "who edited it?"), word_spans("attendee", "did Mei attend?")
    ([(4, 10)], [(8, 14)])
    >>> word_spans("noble gas", "which are noble gases?")
    [(10, 21)]
    """
    if CJK.search(word):
        ending = re.escape(word)
    elif not re.fullmatch(r"[a-z ]{4,}", word):
        ending = rf"(?<![a-z0-9]){re.escape(word)}s?(?![a-z0-9])"
    else:
        bare = re.sub(r"ies$", "y", re.sub(r"(?<=[a-rt-z])s$", "", word))
        inflected = bool(re.search(r"e$|[^aeiou]y$", bare))
        verbal = "|ed|ing" if verb else ""
        stem = (
            bare[:-1] + rf"(?:y|ies|ied|e|es{verbal})"
            if inflected
            else bare + rf"(?:s|es|ses{verbal})?"
        )
        if verb and re.search(r"[a-z]{3}(?:[st]or|er|ee)$", bare):  # an editor has edited
            stem = rf"(?:{stem}|{bare[:-2]}(?:ed|s)?)"
        ending = rf"(?<![a-z0-9]){stem}(?![a-z0-9])"
    return [match.span() for match in re.finditer(ending, text)]


def fold_in_place(text: str) -> str:
    """Fold a text character by character, so that positions stay those of the text."""
    pairs = ((fold_word(character), character) for character in text)
    return "".join(folded if len(folded) == 1 else character for folded, character in pairs)


def fits(unit: str, field: Field) -> bool:
    """Return True where a field counts in a unit, or in another of its kind."""
    unit_of_field = _SCALE.sub("", fold(field["unit"])).partition(" per ")[0]
    units = [unit_of_field, *map(fold, field_words(field))]
    return any(unit == own or convert(1.0, unit, own) is not None for own in units if own)


def degrees(text: str) -> Iterator[tuple[re.Match[str], list[str]]]:
    """Yield the adjectives of measure in a folded text, each with units of what it measures."""
    for kind, units in closed_words()["measures"].items():
        for match in pattern(f"degree.{kind}").finditer(text):
            yield match, units.split()


def measured(phrase: str, fields: Iterable[Field]) -> list[Field]:
    """Return the numbers that a phrase may be of: the heaviest has a mass, or a number without a unit."""
    numbers = [field for field in fields if field["type"] == "number" and field["documents"]]
    units = [unit for _, kind in degrees(phrase) for unit in kind]
    fitting = [field for field in numbers if any(fits(unit, field) for unit in units)]
    return fitting or [field for field in numbers if not (units and field["unit"])]


def in_unit(value: float, unit: str, field: Field, is_scaled: bool) -> float | int:
    """Return a number of a question in the unit of its field: 3 million are 300 where a field counts 万元."""
    own = fold(field["unit"])
    scale = _SCALE.match(own)
    if scale and (is_scaled or unit == own[scale.end() :]):
        value = value / scaled(1.0, scale[1])
        unit = ""
    words = map(fold, field_words(field))
    own = own or next((word for word in words if convert(1.0, unit, word) is not None), "")
    changed = convert(value, unit, own) if unit and own and unit != own else None
    value = round(value if changed is None else changed, 9)
    return int(value) if value == int(value) else value


def in_words(condition: Condition, field: Field, language: str) -> str:
    """Write a condition as a person says it.

    >>> field = Field(name="budget", type="number", many=False, documents=3, low=1.0, high=9.0, values=[], unit="EUR",
    ...               called={"en": ["budget"], "zh": ["预算"]}, values_called={}, relation="")
    >>> in_words({"field": "budget", "op": "gt", "value": 3000000}, field, "en")
    'budget over 3,000,000 EUR'
    >>> in_words({"field": "budget", "op": "ne", "value": 5}, field, "zh")
    '预算不是5EUR'
    """
    zh = language == "zh"
    name = shown(field, language)
    op = condition["op"]
    value = condition["value"]
    if op == "exists":
        if zh:
            return f"{name}{'有' if value else '没有'}记载"
        return f"{'with' if value else 'without'} {name}"
    values = [
        value_in_words(each, field, language)
        for each in (value if isinstance(value, list) else [value])
    ]
    if op in ("in", "not_in"):
        values = [("或" if zh else " or ").join(values)]
    if zh and op == "eq" and fold(values[0]) in (*YES, *NO):
        return f"{name}：{values[0]}"
    phrases = dict(closed_words()["says"][language])
    if field["type"] == "date":
        phrases |= closed_words()["says_of_dates"][language]
    return f"{name}{'' if zh else ' '}{phrases[op].format(*values)}"


def value_in_words(value: Any, field: Field, language: str) -> str:
    """Write a value as a person does: in the language, its thousands apart, with its unit."""
    text = str(value)
    called = field["values_called"].get(text, {}).get(language)
    if called and bool(CJK.search(text)) != (language == "zh"):
        return str(called[0])
    if field["type"] == "date" and len(str(field["high"])) == len("1970"):
        return text.removesuffix("-01-01")
    if field["type"] != "number" or not re.fullmatch(r"-?\d+(\.\d+)?", text):
        return text
    digits, point, part = text.partition(".")
    unit = field["unit"]
    space = " " if unit and unit != "%" and language == "en" else ""
    return f"{int(digits):,}{point}{part}{space}{unit}"
