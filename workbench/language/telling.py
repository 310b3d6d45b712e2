"""Conditions and fields as people say them, in English and Chinese."""

from __future__ import annotations

from typing import Any

from workbench.context import Field
from workbench.state import Condition
from workbench.text import CJK

_SAID = {
    "en": {"eq": "is {}", "ne": "is not {}", "contains": "contains {}", "gt": "over {}", "ge": "at least {}"},
    "zh": {"eq": "是{}", "ne": "不是{}", "contains": "含有{}", "gt": "超过{}", "ge": "至少{}"},
}
_SAID["en"] |= {"lt": "under {}", "le": "at most {}", "in": "is {}", "not_in": "is not {}", "between": "from {} to {}"}
_SAID["zh"] |= {"lt": "低于{}", "le": "至多{}", "in": "是{}", "not_in": "不是{}", "between": "在{}到{}之间"}
_DATED = {
    "en": {"gt": "after {}", "ge": "since {}", "lt": "before {}", "le": "until {}"},
    "zh": {"gt": "在{}之后", "ge": "在{}及以后", "lt": "在{}之前", "le": "在{}及以前"},
}


def in_words(condition: Condition, field: Field, language: str) -> str:
    """A condition as a person says it.

    >>> field = Field(name="budget", type="number", many=False, documents=3, low=1.0, high=9.0, values=[], unit="EUR",
    ...               called={"en": ["budget"], "zh": ["预算"]}, values_called={}, relation="")
    >>> in_words({"field": "budget", "op": "gt", "value": 3000000}, field, "en")
    'budget over 3,000,000 EUR'
    >>> in_words({"field": "budget", "op": "ne", "value": 5}, field, "zh")
    '预算不是5EUR'
    """
    zh, name, op, value = language == "zh", shown(field, language), condition["op"], condition["value"]
    if op == "exists":
        return (f"{name}{'有' if value else '没有'}记载") if zh else f"{'with' if value else 'without'} {name}"
    said = [_value(one, field, language) for one in (value if isinstance(value, list | tuple) else [value])]
    if op in ("in", "not_in"):
        said = [("或" if zh else " or ").join(said)]
    ways = _SAID[language] | (_DATED[language] if field["type"] == "date" else {})
    return f"{name}{'' if zh else ' '}{ways[op].format(*said)}"


def _value(given: Any, field: Field, language: str) -> str:
    called = field["values_called"].get(str(given), {}).get(language, [])
    foreign = bool(CJK.search(str(given))) != (language == "zh")
    text = called[0] if called and foreign else f"{given:,}" if isinstance(given, int | float) else str(given)
    unit = field["unit"] if field["type"] == "number" else ""
    return f"{text}{' ' if unit and language == 'en' else ''}{unit}"


def shown(field: Field, language: str) -> str:
    """What a field is called in a language, or by its own name."""
    return (field["called"].get(language) or field["called"].get("en") or [field["name"]])[0]
