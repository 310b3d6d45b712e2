"""Typed fields of documents (``facts``, conditions, order), and the types of relations between entities."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.errors import KnowledgeError, shown
from workbench.knowledge.aliases import is_alias, says_names
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.names.names import SURNAMES
from workbench.knowledge.names.surfaces import key_of
from workbench.knowledge.reading.columns import Column, settle
from workbench.knowledge.vocabulary import FieldWords, Vocabulary, unit_in
from workbench.ports import Field
from workbench.state import Condition, Data, Op, Sort
from workbench.text import CJK, amount, fold, iso

# --- Fields: their types are inferred from the values; a condition on them becomes SQL ---

MOST_VALUES = 200
"""Distinct values of a category at most; a field with more of them names things."""
LONGEST_VALUE = 500
"""Characters of a value that are kept to be compared."""
_SHORT = 80
_MOSTLY = 0.95
"""The share of values that makes a field a number or a date."""
_REPEATED = 0.67
_SPREAD = 2.0
"""A category has at most so many distinct values for each that there is, and so many times their root."""
_FEW = 0.2
"""Values that are written like names make a category where so few are distinct."""
_PROPER = re.compile(r"(?:[A-Z][\w.'’-]*\s+)+[A-Z][\w.'’-]*|[\u4e00-\u9fff]{2,4}(?:[·・][\u4e00-\u9fff]+)?")


class Fact(NamedTuple):
    """One value of one field: as it is compared, as it is written, and as a number and an ISO date where it is one."""

    field: str
    key: str
    value: str
    number: float | None
    day: str | None


def facts(fields: Data) -> Iterator[Fact]:
    """Yield every typed value of a document; texts that only say other names are none."""
    for name, value in fields.items():
        if says_names(name, fields):
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int | float) and str(one).strip():
                text = ("yes" if one else "no") if isinstance(one, bool) else str(one).strip()[:LONGEST_VALUE]
                counted = amount(one)
                yield Fact(name, key(text), text, counted[0] if counted else None, iso(one) or None)


def key(text: str) -> str:
    """Return what two writings of one value share."""
    return key_of(text) or fold(text)


def insert(connection: Any, doc_id: str, fields: Data) -> None:
    """Keep the facts of a document."""
    rows = {(fact.field, fact.key): (*fact, doc_id) for fact in facts(fields)}
    connection.executemany(
        "INSERT INTO facts (field, key, value, number, day, doc_id) VALUES (?, ?, ?, ?, ?, ?)", rows.values()
    )


def schema(index: Index, vocabulary: Vocabulary) -> list[Field]:
    """Return the fields of a base, those of most documents first."""
    (documents,) = index.rows("SELECT count(*) FROM documents")[0]
    found = []
    for row in index.rows(_FIELDS):
        name, *counted = row
        if not is_alias(name):
            found.append(_field(index, vocabulary, name, counted))
    if vocabulary.enrichment:  # what no document says can be asked for there
        lacking = [name for name in vocabulary.fields if name not in {one["name"] for one in found}]
        found += [_field(index, vocabulary, name, [0] * 6 + [None] * 4) for name in lacking]
    return sorted(found, key=lambda one: (-one["documents"], one["name"])) if documents else []


def _field(index: Index, vocabulary: Vocabulary, name: str, counted: Sequence[Any]) -> Field:
    having, total, distinct, numbers, dates, long, low, high, first, last = counted
    said = vocabulary.fields.get(name, FieldWords())
    kind: Any = said.type or (_type(total, distinct, numbers, dates, long, low, high) if total else "text")
    if kind == "number" and not said.type and _is_mixed(index, name):
        kind = "text"
    if kind == "category" and not said.type and distinct > _FEW * total and _proper(index, name):
        kind = "name"
    values = [row[0] for row in index.rows(_VALUES, (name, MOST_VALUES))] if kind == "category" else []
    ends = {"number": (low, high), "date": (first, last)}.get(kind, (None, None))
    return Field(
        name=name,
        type=kind,
        many=total > having,
        documents=having,
        low=ends[0],
        high=ends[1],
        values=values,
        called=vocabulary.called(name),
        values_called=vocabulary.values_called(name, values),
        unit=said.unit or (unit_in(name)[1] or _unit(index, name) if kind == "number" else ""),
        relation=vocabulary.meaning(name).relation,
    )


def _type(total: int, distinct: int, numbers: int, dates: int, long: int, low: float | None, high: float | None) -> Any:
    years = low is not None and high is not None and low >= 1500 and high <= 2100
    if dates >= _MOSTLY * total and (numbers < total or years):
        return "date"
    if numbers >= _MOSTLY * total:
        return "number"
    if long > (1 - _MOSTLY) * total:
        return "text"
    few = distinct <= min(MOST_VALUES, max(3, _REPEATED * total), _SPREAD * total**0.5)
    return "category" if few else "name"


def _is_mixed(index: Index, name: str) -> bool:
    """Check for numbers that are not of one kind, or not in one writing."""
    column = Column(name)
    for (value,) in index.rows("SELECT DISTINCT value FROM facts WHERE field = ? LIMIT 200", (name,)):
        column.see(value)
    settle([column], comma=False)
    return column.mixed


def _proper(index: Index, name: str) -> bool:
    """Check whether most values of a field are written like the names of people or works."""
    values = [row[0] for row in index.rows("SELECT DISTINCT value FROM facts WHERE field = ? LIMIT 50", (name,))]
    surnames = SURNAMES if any(CJK.match(value) for value in values) else ""
    named = [v for v in values if _PROPER.fullmatch(v) and (not CJK.match(v) or v[0] in surnames or "·" in v)]
    return 2 * len(named) > len(values)


def _unit(index: Index, name: str) -> str:
    units = [amount(row[0]) for row in index.rows("SELECT value FROM facts WHERE field = ? LIMIT 50", (name,))]
    found = {one[1] for one in units if one}
    return found.pop() if len(found) == 1 else ""


class Spoken(NamedTuple):
    """Every word for a value of a category: as one pattern, and folded word -> (field, value)."""

    pattern: re.Pattern[str] | None
    meant: Mapping[str, tuple[str, str]]


def spoken_words(fields: Iterable[Field]) -> Spoken:
    """Return words by which the values of these fields are spoken of: themselves, what they are called, and plurals."""
    meant: dict[str, tuple[str, str]] = {}
    for one in fields:
        for value in one["values"]:
            called = one["values_called"].get(value, {})
            for word in (value, *(w for words in called.values() for w in words)):
                if len(word) > 1 and not word.isdigit():
                    for form in (fold(word), *_plurals(fold(word))):
                        meant.setdefault(form, (one["name"], value))
    words = sorted(meant, key=lambda word: (-len(word), word))
    ends = (re.escape(w) if CJK.match(w) else rf"(?<![a-z0-9]){re.escape(w)}(?![a-z0-9])" for w in words)
    return Spoken(re.compile("|".join(ends)) if words else None, meant)


def _plurals(word: str) -> list[str]:
    if not re.fullmatch(r"[a-z][a-z -]+", word):
        return []
    return [re.sub(r"y$", "ies", word) if re.search(r"[^aeiou]y$", word) else f"{word}s"]


def spoken(words: Spoken, text: str) -> list[tuple[int, int, str, str]]:
    """``(start, end, field, value)`` in the order of the text."""
    if words.pattern is None:
        return []
    lowered = "".join(f if len(f := fold(c)) == 1 else c for c in text)  # place for place
    return [(m.start(), m.end(), *words.meant[m.group()]) for m in words.pattern.finditer(lowered)]


def where(condition: Condition, field: Field, keys: Callable[[str, str], list[str]]) -> tuple[str, list[Any]]:
    """Return the documents that hold for a condition, as SQL over ``documents`` with its parameters.

    Args:
        condition: of a field that the base has.
        field: its type.
        keys: (field, value) -> every key that the value may have.

    Raises:
        KnowledgeError: the operator or the value does not fit the field.
    """
    name, op, value = condition["field"], condition["op"], condition["value"]
    if op == "exists":
        return f"doc_id {'' if value in (True, 'true', None) else 'NOT '}IN ({_HAVING})", [name]
    if op in ("ne", "not_in"):
        positive = Condition(field=name, op="eq" if op == "ne" else "in", value=value)
        sql, given = where(positive, field, keys)
        return f"(doc_id IN ({_HAVING}) AND NOT ({sql}))", [name, *given]
    if op == "in":
        parts = [where(Condition(field=name, op="eq", value=one), field, keys) for one in _listed(condition)]
        return f"({' OR '.join(sql for sql, _ in parts) or '0'})", [one for _, given in parts for one in given]
    if op == "between":
        low, high = _listed(condition, 2)
        ends: tuple[tuple[Op, Any], ...] = (("ge", low), ("le", high))
        parts = [where(Condition(field=name, op=o, value=v), field, keys) for o, v in ends]
        return f"({' AND '.join(sql for sql, _ in parts)})", [one for _, given in parts for one in given]
    if op == "contains":
        like = "%" + re.sub(r"([%_\\])", r"\\\1", key(str(value))) + "%"
        return f"doc_id IN ({_HAVING} AND key LIKE ? ESCAPE '\\')", [name, like]
    if field["type"] == "date":
        return _dated(condition)
    if field["type"] == "number" or op != "eq":
        counted = amount(value)
        if counted is None:
            raise _unfit(condition, "a number")
        return f"doc_id IN ({_HAVING} AND number {_SIGNS[op]} ?)", [name, counted[0]]
    found = keys(name, str(value))
    return f"doc_id IN ({_HAVING} AND key IN ({', '.join('?' * len(found))}))", [name, *found]


def in_table(condition: Condition, tables: Mapping[str, Sequence[str]]) -> tuple[str, list[Any]]:
    """Return the documents of a type, a file or a folder: ``table`` is not a field of theirs."""
    value = condition["value"]
    names = [str(name) for name in (value if isinstance(value, list) else [value])]
    sources = [source for name in names for source in tables.get(name, ())]
    inside = "IN (SELECT value FROM json_each(?))"
    negation = "NOT " if condition["op"] in ("ne", "not_in") else ""
    return f"{negation}(type {inside} OR source {inside})", [json.dumps(names), json.dumps(sources)]


def _dated(condition: Condition) -> tuple[str, list[Any]]:
    """Return a comparison of dates of any precision: as far as both say it; a year is not before a day of itself."""
    day = iso(condition["value"])
    if not day:
        raise _unfit(condition, "a date: 2005, 2005-03 or 2005-03-17")
    part, whole = "substr(day, 1, min(length(day), ?))", "substr(?, 1, min(length(day), ?))"
    same = "(length(day) >= ? AND substr(day, 1, ?) = ?)"
    size = len(day)
    ordered, equal = [size, day, size], [size, size, day]
    sql, given = {
        "eq": (same, equal),
        "lt": (f"{part} < {whole}", ordered),
        "gt": (f"{part} > {whole}", ordered),
        "le": (f"({part} < {whole} OR {same})", [*ordered, *equal]),
        "ge": (f"({part} > {whole} OR {same})", [*ordered, *equal]),
    }[condition["op"]]
    return f"doc_id IN ({_HAVING} AND {sql})", [condition["field"], *given]


def order(sort: Sort | None, field: Field | None) -> tuple[str, list[Any]]:
    """Return the order of documents as SQL; who does not have the field comes last."""
    if sort is None or field is None:
        return "ifnull(year, 0) DESC, doc_id", []
    column = {"number": "number", "date": "day"}.get(field["type"], "key")
    best = "max" if sort["descending"] else "min"
    value = f"(SELECT {best}({column}) FROM facts WHERE facts.doc_id = documents.doc_id AND field = ?)"
    return f"{value} IS NULL, {value} {'DESC' if sort['descending'] else 'ASC'}, doc_id", [sort["field"]] * 2


def _listed(condition: Condition, size: int = 0) -> list[Any]:
    value = condition["value"]
    if not isinstance(value, list | tuple) or (size and len(value) != size):
        raise _unfit(condition, "two bounds" if size else "a list of values")
    return list(value)


def _unfit(condition: Condition, wanted: str) -> KnowledgeError:
    name, op, value = condition["field"], condition["op"], shown(condition["value"])
    return KnowledgeError(f"The condition {name} {op} {value} cannot be tested: {wanted} is needed.")


_SIGNS = {"eq": "=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_HAVING = "SELECT doc_id FROM facts WHERE field = ?"
_FIELDS = (
    "SELECT field, count(DISTINCT doc_id), count(*), count(DISTINCT key), count(number), count(day), "
    f"sum(length(value) > {_SHORT}), min(number), max(number), min(day), max(day) FROM facts GROUP BY field"
)
_VALUES = "SELECT min(value) FROM facts WHERE field = ? GROUP BY key ORDER BY count(*) DESC, 1 LIMIT ?"
