"""The words of asking (``ways.toml``) as patterns."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _all() -> dict[str, Any]:
    return tomllib.loads(files("workbench.language").joinpath("ways.toml").read_text(encoding="utf-8"))


def ways(section: str) -> dict[str, Any]:
    """A section as it is written."""
    return dict(_all()[section])


@cache
def way(section: str, name: str) -> re.Pattern[str]:
    """The patterns of that name as one."""
    given = _all()[section][name]
    return re.compile("|".join(f"(?:{one})" for one in ([given] if isinstance(given, str) else given)), re.I)
