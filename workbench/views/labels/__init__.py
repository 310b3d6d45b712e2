"""The words and signs with which runs are shown: ``en.toml`` and ``zh.toml`` have the same keys, grouped by subject."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any

from workbench.text import detect_language

LANGUAGES = ("en", "zh")
_spoken = ""

SIGNS: Mapping[str, str] = {
    "done": "●",
    "success": "✓",
    "partial": "◐",
    "running": "▸",
    "paused": "‖",
    "interrupted": "↻",
    "failed": "✗",
    "timeout": "◷",
    "cancelled": "⊖",
    "skipped": "⊘",
    "pending": "○",
    "proposed": "+",
    "recorded": "⊙",
    "waiting": "◌",
    "held": "◫",
    "warning": "!",
    "invalid": "✘",
}
"""A sign for each status, each distinct in shape; it always stands before the word."""


class _Counting(Formatter):
    """English counts: ``{n:step}`` is "1 step" or "0 steps"; ``{n:entity|entities}`` names its plural.

    >>> [_ENGLISH.format("{n:step}, {m:entity|entities}", n=n, m=n) for n in (0, 1, 2)]
    ['0 steps, 0 entities', '1 step, 1 entity', '2 steps, 2 entities']
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a number with its noun."""
        singular, _, plural = format_spec.partition("|")
        if singular:
            return f"{value} {singular if str(value) == '1' else plural or singular + 's'}"
        return str(value)


_ENGLISH = _Counting()


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Key -> its words in a language; English for every language but Chinese."""
    file = files("workbench.views.labels") / ("zh.toml" if language == "zh" else "en.toml")
    subjects = tomllib.loads(file.read_text("utf-8"))
    return {key: words for subject in subjects.values() for key, words in subject.items()}


class Labels:
    """The words of one language: ``labels("plan")``, ``labels("steps", n=3)``; an unknown word is shown unchanged.

    >>> Labels("en")("steps", n=3), Labels("zh")("steps", n=3), Labels("zh")("my_signal")
    ('3 steps', '3 步', 'my signal')
    """

    def __init__(self, language: str):
        self.language = language
        self.html_lang = "zh-Hans" if language == "zh" else "en"

    def __call__(self, key: str, **values: object) -> str:
        """Return the word of that key."""
        words = catalogue(self.language)
        if key not in words:
            return key.replace("_", " ")
        if self.language == "zh":
            return words[key].format(**values)
        return _ENGLISH.format(words[key], **values)

    def get(self, key: str, otherwise: str, **values: object) -> str:
        """Return the word of that key, or something other where there is none."""
        return self(key, **values) if key in catalogue(self.language) else otherwise

    def status(self, status: str) -> str:
        """Sign and word.

        >>> Labels("en").status("timeout"), Labels("zh").status("success")
        ('◷ timed out', '✓ 完成')
        """
        return f"{SIGNS.get(status, '·')} {self(status)}"


def speak(language: str) -> None:
    """Use this language for everything that this process shows; empty: for each run that of its question.

    Like a locale, it holds for the process: opening a workspace sets it from ``WORKBENCH_LANG``.
    """
    global _spoken
    _spoken = language


def labels_for(text: str) -> Labels:
    """Return the words in the language that was chosen for everything, or else in that of a question."""
    return Labels(_spoken or detect_language(text))


def score_text(score: float) -> str:
    """Return a score for people.

    >>> score_text(0), score_text(0.004), score_text(0.996)
    ('0.00', '<0.01', '1.00')
    """
    return "<0.01" if 0 < score < 0.005 else f"{score:.2f}"


def percent(share: float) -> str:
    """Return a share for people.

    >>> percent(0), percent(0.004), percent(0.414)
    ('0%', '<1%', '41%')
    """
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def milliseconds(value: float) -> str:
    """Return a duration for people.

    >>> milliseconds(0.4), milliseconds(84.2), milliseconds(2170), milliseconds(754_000)
    ('<1 ms', '84 ms', '2.17 s', '12:34')
    """
    if value >= 60_000:
        return f"{int(value // 60_000)}:{int(value % 60_000 // 1000):02d}"
    if value >= 1000:
        return f"{value / 1000:.2f} s"
    return "<1 ms" if value < 1 else f"{value:.0f} ms"


def seconds_text(value: float) -> str:
    """Return seconds with one significant digit at least.

    >>> seconds_text(1.234), seconds_text(0.05)
    ('1.2', '0.05')
    """
    return f"{value:.1f}" if value >= 0.095 else f"{value:.2f}"
