"""A condition on a typed field as one line that people write and read: ``budget > 100000``, ``status != finished``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from workbench.state import Condition, Op

SIGNS: Mapping[str, Op] = {
    "!=": "ne",
    ">=": "ge",
    "<=": "le",
    "=": "eq",
    ">": "gt",
    "<": "lt",
    "not in": "not_in",
    "in": "in",
    "between": "between",
    "contains": "contains",
    "exists": "exists",
    "missing": "exists",
}
_LINE = re.compile(
    r"(?P<field>\S(?:.*?\S)?)\s*(?P<sign>!=|>=|<=|=|>|<|(?<=\s)(?:not in|in|between|contains|exists|missing)(?=\s|$))"
    r"\s*(?P<value>.*)"
)


def written(condition: Mapping[str, Any]) -> str:
    """A condition in one line.

    >>> written({"field": "year", "op": "between", "value": ["1990", "1999"]})
    'year between 1990 and 1999'
    >>> written({"field": "status", "op": "not_in", "value": ["done", "open"]})
    'status not in done, open'
    """
    field, op, value = condition["field"], condition["op"], condition.get("value")
    if op == "exists":
        return f"{field} {'exists' if value in (True, None) else 'missing'}"
    sign = next(sign for sign, one in SIGNS.items() if one == op)
    joint = " and " if op == "between" else ", "
    return f"{field} {sign} {joint.join(map(str, value)) if isinstance(value, list | tuple) else value}"


def parsed(line: str) -> Condition:
    """A line as a condition.

    >>> parsed("budget >= 100000"), parsed("name missing")
    ({'field': 'budget', 'op': 'ge', 'value': 100000}, {'field': 'name', 'op': 'exists', 'value': False})

    Raises:
        ValueError: with the line and how one is written.
    """
    match = _LINE.fullmatch(line.strip())
    if not match or (not match["value"] and match["sign"] not in ("exists", "missing")):
        raise ValueError(f"{line.strip()!r} is no condition: write field, sign, value ({', '.join(SIGNS)})")
    op, value = SIGNS[match["sign"]], match["value"].strip()
    if op == "exists":
        return Condition(field=match["field"], op=op, value=match["sign"] == "exists")
    if op in ("in", "not_in", "between"):
        parts = re.split(r"\s+and\s+" if op == "between" else r"\s*[,，、]\s*", value)
        return Condition(field=match["field"], op=op, value=[_typed(part) for part in parts])
    return Condition(field=match["field"], op=op, value=_typed(value))


def _typed(text: str) -> str | int | float:
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d{1,15}\.\d+", text) else text
