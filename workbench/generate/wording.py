"""The language files of the writer: ``wording.toml``, ``facets.toml`` and ``themes.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from workbench.question.language import spelled


@cache
def language_file(name: str) -> dict[str, Any]:
    """A TOML file of this package."""
    return tomllib.loads(files("workbench.generate").joinpath(name).read_text(encoding="utf-8"))


def any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """One pattern for several, their signs (``<person>``, ...) written out; case does not matter."""
    return re.compile("|".join(map(spelled, patterns)), re.IGNORECASE)


@cache
def wording(kind: str, name: str) -> re.Pattern[str]:
    """An entry of ``wording.toml``.

    >>> bool(wording("question", "yes_no").search("是不是李安导演的"))
    True
    """
    return any_of(language_file("wording.toml")[kind][name])
