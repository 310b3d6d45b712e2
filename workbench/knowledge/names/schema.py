"""Typed fields of documents: types are inferred from the values, and conditions on them become SQL over ``facts``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.errors import UnfitCondition, shown
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.names.surfaces import surface_key
from workbench.knowledge.vocabulary import FieldWords, Vocabulary, is_alias, says_names, unit_in
from workbench.ports import Field
from workbench.state import Condition, Data, Op, Sort, as_list
from workbench.text import CJK, amount, fold, iso

MOST_VALUES = 200
"""The limit of distinct values of a category; a field with more of them names things."""
_SHORT = 80
NUMBERED = re.compile(r"^has_(?:\w+_)?(?:id|no|编号|序号)$|^has_number$")
"""Relations whose values number documents, and measure nothing."""

_PROPER = re.compile(
    r"(?:[A-Z][\w.'’-]*\s+)+[A-Z][\w.'’-]*|[\u4e00-\u9fff]{2,4}(?:[·・][\u4e00-\u9fff]+)?"
)
SURNAMES = (
    "王李张刘陈杨黄赵周吴徐孙朱马胡郭林何高梁郑罗宋谢唐韩曹许邓萧冯曾程蔡彭潘袁于董余苏叶吕"
    "魏蒋田杜丁沈姜范江傅钟卢汪戴崔任陆廖姚方金邱夏谭韦贾邹石熊孟秦阎薛侯雷白龙段郝孔邵史毛常万顾赖武康贺严尹钱施牛洪龚"
)


Test = tuple[str, list[Any]]
"""SQL of a condition, and its parameters."""


def key(text: str) -> str:
    """Return what two writings of one value share."""
    return surface_key(text) or fold(text)


def insert(connection: Any, doc_id: str, fields: Data) -> None:
    """Store every value of a document, without fields that are other names.

    For comparison, as written, and as a number and an ISO date where it is one.
    """
    longest = 500  # characters of a value that are stored for comparison
    rows = {}
    for name, value in fields.items():
        if says_names(name, fields):
            continue
        for cell in as_list(value):
            text = str(cell).strip()[:longest]
            if not isinstance(cell, str | int | float) or not text:
                continue
            if isinstance(cell, bool):
                text = "yes" if cell else "no"
            number = amount(cell)
            day = iso(cell) or None
            row = (name, key(text), doc_id, text, number[0] if number else None, day)
            rows[row[:2]] = row
    connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?)", rows.values())


def schema(index: Index, vocabulary: Vocabulary) -> list[Field]:
    """Return the fields of a base, those of most documents first."""
    rows = {name: counts for name, *counts in index.rows(_FIELDS) if not is_alias(name)}
    if vocabulary.enrichment:  # a field that no document has can be asked for there
        rows = {**{name: [0] * 6 + [None] * 4 for name in vocabulary.fields}, **rows}
    fields = [_field(index, vocabulary, name, counts) for name, counts in rows.items()]
    return sorted(fields, key=lambda field: (-field["documents"], field["name"]))


def _field(index: Index, vocabulary: Vocabulary, name: str, counts: Sequence[Any]) -> Field:
    # Values that are written like names make a category where this share or less is distinct.
    few = 0.2
    documents, total, distinct, *_, low, high, first, last = counts
    words = vocabulary.fields.get(name, FieldWords())
    meaning = vocabulary.meaning(name)
    kind: Any = words.type or (_type(counts[1:8]) if total else "text")
    if (
        kind == "name" and meaning.category and distinct <= MOST_VALUES
    ):  # keywords group documents
        kind = "category"
    sample = _values(index, name, 200) if kind == "number" else []
    units = {number[1] for number in map(amount, sample) if number}
    numbered = kind == "number" and total == distinct and NUMBERED.search(meaning.relation)
    codes = numbered or any(re.match(r"0\d", value) for value in sample)
    if (codes or len(units) > 1) and not words.type:  # they cannot be compared
        kind = "text"
    if (
        kind == "category"
        and not words.type
        and distinct > few * total
        and _are_names(_values(index, name, 50))
    ):
        kind = "name"
    frequent = index.rows(_FREQUENT, (name, MOST_VALUES)) if kind == "category" else []
    values = [row[0] for row in frequent]
    # several dates that are all a first of January are years
    if kind == "date" and distinct > 2 and not index.rows(_DAYS, (name,)):
        first, last = first[:4], last[:4]
    bounds = {"number": (low, high), "date": (first, last)}.get(kind, (None, None))
    unit = words.unit or (unit_in(name)[1] or "".join(units) if kind == "number" else "")
    return Field(
        name=name,
        type=kind,
        many=total > documents,
        documents=documents,
        low=bounds[0],
        high=bounds[1],
        values=values,
        called=vocabulary.called(name),
        values_called=vocabulary.values_called(name, values),
        unit=unit,
        relation=meaning.relation,
    )


def _values(index: Index, name: str, limit: int) -> list[str]:
    rows = index.rows("SELECT DISTINCT value FROM facts WHERE field = ? LIMIT ?", (name, limit))
    return [row[0] for row in rows]


def _type(counts: Sequence[Any]) -> Any:
    total, distinct, numbers, dates, long, low, high = counts
    # A category has at most so many distinct values per value, and so many times the root of
    # their number.
    spread = 2.0
    repeated = 0.67
    # The share of values that makes a field a number or a date.
    mostly = 0.95
    years = low is not None and high is not None and low >= 1500 and high <= 2100
    if dates >= mostly * total and (numbers < total or years):
        return "date"
    flags = (distinct, low, high) == (2, 0, 1) and total > 20  # 1 says yes, 0 says no
    if numbers >= mostly * total and not flags:
        return "number"
    if long > (1 - mostly) * total:
        return "text"
    few = distinct <= min(MOST_VALUES, max(3, repeated * total), spread * total**0.5)
    return "category" if few else "name"


def _are_names(values: Sequence[str]) -> bool:
    """Check whether most values are written like the names of people or works."""
    surnames = SURNAMES if any(CJK.match(value) for value in values) else ""
    names = [
        v
        for v in values
        if _PROPER.fullmatch(v) and (not CJK.match(v) or v[0] in surnames or "·" in v)
    ]
    return 2 * len(names) > len(values)


def where(condition: Condition, field: Field, keys: Callable[[str, str], list[str]]) -> Test:
    """Return a condition as SQL over ``documents`` with its parameters.

    Args:
        condition: of a field that the base has.
        field: its type.
        keys: (field, value) -> every key that the value may have.

    Raises:
        UnfitCondition: the operator or the value does not fit the field.
    """
    name = condition["field"]
    op = condition["op"]
    value = condition["value"]

    def joined(joint: str, *tests: tuple[Op, Any]) -> Test:
        parts = [
            where(Condition(field=name, op=op, value=value), field, keys) for op, value in tests
        ]
        sql = joint.join(sql for sql, _ in parts) or "0"
        return f"({sql})", [parameter for _, parameters in parts for parameter in parameters]

    if op == "exists":
        return f"doc_id {'' if value in (True, 'true', None) else 'NOT '}IN ({_HAVING})", [name]
    if op in ("ne", "not_in"):
        sql, parameters = joined("", ("eq" if op == "ne" else "in", value))
        return f"(doc_id IN ({_HAVING}) AND NOT {sql})", [name, *parameters]
    if op == "in":
        return joined(" OR ", *(("eq", option) for option in _listed(condition)))
    if op == "between":
        low, high = _listed(condition, 2)
        return joined(" AND ", ("ge", low), ("le", high))
    if op == "contains":
        like = "%" + re.sub(r"([%_\\])", r"\\\1", key(str(value))) + "%"
        return f"doc_id IN ({_HAVING} AND key LIKE ? ESCAPE '\\')", [name, like]
    if field["type"] == "date":
        return _dated(condition)
    if field["type"] == "number" or op != "eq":
        number = amount(value)
        if number is None:
            raise _unfit(condition, "a number")
        return f"doc_id IN ({_HAVING} AND number {_SIGNS[op]} ?)", [name, number[0]]
    options = json.dumps(keys(name, str(value)))
    return f"doc_id IN ({_HAVING} AND key {_AMONG})", [name, options]


def in_table(condition: Condition, tables: Mapping[str, Sequence[str]]) -> Test:
    """Return the documents of a type, a file or a folder: ``table`` is not a field of theirs."""
    value = condition["value"]
    names = [str(name) for name in as_list(value)]
    sources = [source for name in names for source in tables.get(name, ())]
    negation = "NOT " if condition["op"] in ("ne", "not_in") else ""
    test = f"{negation}(type {_AMONG} OR source {_AMONG})"
    return test, [json.dumps(names), json.dumps(sources)]


def _dated(condition: Condition) -> Test:
    """Return a comparison of dates of any precision, as far as both have it; a year is not before a day in it."""
    date = iso(condition["value"])
    if not date:
        raise _unfit(condition, "a date: 2005, 2005-03 or 2005-03-17")
    part = "substr(day, 1, min(length(day), ?))"
    bound = "substr(?, 1, min(length(day), ?))"
    same = "(length(day) >= ? AND substr(day, 1, ?) = ?)"
    size = len(date)
    bounds = [size, date, size]
    equal = [size, size, date]
    sql, parameters = {
        "eq": (same, equal),
        "lt": (f"{part} < {bound}", bounds),
        "gt": (f"{part} > {bound}", bounds),
        "le": (f"({part} < {bound} OR {same})", [*bounds, *equal]),
        "ge": (f"({part} > {bound} OR {same})", [*bounds, *equal]),
    }[condition["op"]]
    return f"doc_id IN ({_HAVING} AND {sql})", [condition["field"], *parameters]


def order(sort: Sort | None, field: Field | None) -> Test:
    """Return the order of documents as SQL; those without the field come last."""
    if sort is None or field is None:
        return "ifnull(year, 0) DESC, doc_id", []
    column = {"number": "number", "date": "day"}.get(field["type"], "key")
    extreme = "max" if sort["descending"] else "min"
    value = f"(SELECT {extreme}({column}) FROM facts WHERE facts.doc_id = documents.doc_id AND field = ?)"
    return f"{value} IS NULL, {value} {'DESC' if sort['descending'] else 'ASC'}, doc_id", [
        sort["field"]
    ] * 2


def _listed(condition: Condition, size: int = 0) -> list[Any]:
    value = condition["value"]
    if not isinstance(value, list | tuple) or (size and len(value) != size):
        raise _unfit(condition, "two bounds" if size else "a list of values")
    return list(value)


def _unfit(condition: Condition, kind: str) -> UnfitCondition:
    test = f"{condition['field']} {condition['op']} {shown(condition['value'])}"
    return UnfitCondition(f"The condition {test} cannot be tested: {kind} is needed.")


_AMONG = "IN (SELECT value FROM json_each(?))"
_SIGNS = {"eq": "=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_HAVING = "SELECT doc_id FROM facts WHERE field = ?"
# As the reader of records has it, in what SQL can say: long, Chinese marks, or five words and a full stop.
_PROSE = f"length(value) > {_SHORT} OR value GLOB '*[。！？]*' OR value GLOB '* * * * *.'"
_FIELDS = (
    "SELECT field, count(DISTINCT doc_id), count(*), count(DISTINCT key), count(number), count(day), "
    f"sum({_PROSE}), min(number), max(number), min(day), max(day) FROM facts GROUP BY field"
)
_DAYS = "SELECT 1 FROM facts WHERE field = ? AND day NOT LIKE '____-01-01' LIMIT 1"
_FREQUENT = (
    "SELECT min(value) FROM facts WHERE field = ? GROUP BY key ORDER BY count(*) DESC, 1 LIMIT ?"
)
