"""Values as JSON and as digests that are equal for equal values."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel


def plain(value: Any) -> Any:
    """Return a value as JSON that is equal for equal values, for digests and for showing."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items() if name != "total_cost"}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(inner) for inner in value), key=repr)
    if isinstance(value, BaseModel):
        return {"type": type(value).__name__, **plain(value.model_dump())}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return repr(value) if " object at 0x" not in repr(value) else type(value).__qualname__


def digest(value: Any) -> str:
    """Return 16 hex digits that are equal for equal values, in every process.

    >>> digest({"a": 1, "b": {2, 3}}) == digest({"b": {3, 2}, "a": 1})
    True
    """
    text = json.dumps(plain(value), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
