"""Values as JSON and as digests that are equal for equal values."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.documents import Document
from langgraph.store.base import Item
from langgraph.types import Command, Send
from pydantic import BaseModel

from workbench.records import tape


def plain(value: Any) -> Any:
    """Return a value as JSON that is equal for equal values, for digests and for showing."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(inner) for inner in value), key=repr)
    if isinstance(value, BaseModel):  # `model_dump` takes five times as long
        return {
            "type": type(value).__name__,
            **plain({**vars(value), **(value.model_extra or {})}),
        }
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
        return {"type": type(value).__name__, **fields}
    if isinstance(value, Item):
        return plain(value.dict())
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    return repr(value) if " object at 0x" not in repr(value) else type(value).__qualname__


def digest(value: Any) -> str:
    """Return 16 hex digits that are equal for equal values, in every process.

    >>> digest({"a": 1, "b": {2, 3}}) == digest({"b": {3, 2}, "a": 1})
    True
    """
    return tape.digest(plain(value))


def leaves(value: Any) -> Iterator[Any]:
    """Yield what is in a node's result: in its lists and dicts, in a command, and behind a tool message.

    >>> list(leaves({"a": [1, 2], "b": "c"}))
    [1, 2, 'c']
    """
    if isinstance(value, Command):
        yield from leaves(value.update)
    elif isinstance(value, Send):
        yield from leaves(value.arg)
    elif isinstance(value, Mapping):
        # LangGraph reads those of a message back so
        if value.get("type") == "Document" and "page_content" in value:
            yield Document(**value)
            return
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from leaves(inner)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from leaves(vars(value) if hasattr(value, "__dict__") else [])
    else:
        yield value
        if (artifact := getattr(value, "artifact", None)) is not None:
            yield from leaves(artifact)
