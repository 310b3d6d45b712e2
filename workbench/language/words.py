"""The closed classes of words of ``words.toml``, and small talk."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

from workbench.state import Json

_LONGEST_TALK = 300
"""Characters of small talk, at most."""


@cache
def closed_words() -> Json:
    """Return the sections of ``words.toml``."""
    return tomllib.loads(
        files("workbench.language").joinpath("words.toml").read_text(encoding="utf-8")
    )


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Compile a pattern of ``words.toml``, by its section and name: ``pattern("count.how_many")``."""
    section, key = name.split(".")
    return re.compile(closed_words()[section][key], re.I)


@cache
def _small_talk() -> re.Pattern[str]:
    lines = (
        files("workbench.language")
        .joinpath("smalltalk.txt")
        .read_text(encoding="utf-8")
        .splitlines()
    )
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
