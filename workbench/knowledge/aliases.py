"""Fields and relations that say another name of a thing, and not something else about it.

``original_title`` and ``title_en`` are other names of the document; ``authors_zh`` next to ``authors`` has the other
names of the authors, in their order; the triple ``茶馆 also_known_as Teahouse`` is one of its head. They
become aliases, by which a thing is found and linked in every language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from workbench.state import Data

_OTHER_NAMES = """
    alias aliases aka also_known_as other_name other_names other_title other_titles alternative_name alternative_names
    alternative_title alternative_titles alternate_title alternate_titles alternate_name alternate_names original_title
    original_name synonyms english_title english_name chinese_title chinese_name native_name native_title
    又名 别名 別名 原名 译名 譯名 中文名 英文名 外文名
"""
_NAMES = frozenset(_OTHER_NAMES.split())
_LANGUAGE = r"(?:en|zh|ja|ko|fr|de|es|it|ru|hans|hant)(?:[_-](?:[a-z]{2}|hans|hant))?"
_OF_TITLE = re.compile(rf"(?:title|name)[_-]{_LANGUAGE}|{_LANGUAGE}[_-](?:title|name)")
_IN_CHINESE = re.compile("[中英外]文.名")
_TWIN = re.compile(rf"(?P<field>.+)[_-]{_LANGUAGE}|{_LANGUAGE}[_-](?P<behind>.+)")


def is_alias(name: str) -> bool:
    """Check whether a field or a relation of this name says another name of its document or head.

    >>> [is_alias(n) for n in ("original_title", "Title_EN", "alsoKnownAs", "又名", "author", "title")]
    [True, True, True, True, False, False]
    """
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", name.strip()).lower()
    return plain in _NAMES or bool(_OF_TITLE.fullmatch(plain) or _IN_CHINESE.fullmatch(plain))


def find_translation(name: str, fields: Data) -> str | None:
    """Return the field whose values this one says in another language, value for value; None when it is no such field.

    >>> fields = {"authors": ["Lao She"], "authors_zh": ["老舍"], "zh_staff": ["赵文"], "staff": ["A", "B"]}
    >>> [find_translation(name, fields) for name in fields]
    [None, 'authors', None, None]
    """
    match = _TWIN.fullmatch(name.lower())
    field = next(
        (n for n in fields if match and n.lower() in (match["field"], match["behind"])), None
    )
    if (
        field is None
        or len(_texts(fields[field])) != len(_texts(fields[name]))
        or not _texts(fields[name])
    ):
        return None
    return field


def says_names(name: str, fields: Data) -> bool:
    """Check whether a field only says other names: it relates its document to nothing."""
    return is_alias(name) or find_translation(name, fields) is not None


def of_document(fields: Data) -> Iterator[str]:
    """Yield the other names of a document that its fields say."""
    for name, value in fields.items():
        if is_alias(name):
            yield from _texts(value)


def of_values(fields: Data) -> Iterator[tuple[str, str]]:
    """(name, another name of it) for the values that have a twin in another language."""
    for name, value in fields.items():
        field = None if is_alias(name) else find_translation(name, fields)
        if field is not None:
            yield from zip(_texts(fields[field]), _texts(value), strict=True)


def _texts(value: Any) -> list[str]:
    longest = 200
    many = value if isinstance(value, list) else [value]
    texts = [v.strip() for v in many if isinstance(v, str)]
    return [t for t in texts if t and len(t) <= longest and "\n" not in t and "://" not in t]
