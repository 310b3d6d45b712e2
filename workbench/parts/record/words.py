"""The words of the bench and of the story of a recorded run, in English and Chinese."""

import json
from collections.abc import Mapping
from pathlib import Path

_WORDS: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))


def words(language: str) -> Mapping[str, str]:
    """Return them in a language."""
    return _WORDS["zh" if language.startswith("zh") else "en"]
