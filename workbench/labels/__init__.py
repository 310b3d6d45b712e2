"""The words and signs with which runs are shown, English and Chinese, for every form alike.

The words stand in one file a subject: ``runs`` (what a page of a run says), ``bench``, ``editor``, ``reviewing``,
``pictures``, ``beside`` (comparisons and forks as widgets) and ``knowledge``.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.labels import bench, beside, editor, knowledge, pictures, reviewing, runs
from workbench.text import language_of

_WORDS: Mapping[str, tuple[str, str]] = {
    **runs.WORDS,
    **bench.WORDS,
    **editor.WORDS,
    **reviewing.WORDS,
    **pictures.WORDS,
    **beside.WORDS,
    **knowledge.WORDS,
}
LANGUAGES = ("en", "zh")
_spoken = ""

SIGNS: Mapping[str, str] = {
    "done": "✓",
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
}
"""A sign for each status, each distinct in shape; it always stands before the word."""


class Labels:
    """The words of one language: ``labels("plan")``, ``labels("steps", n=3)``; an unknown word is shown as it is.

    >>> Labels("en")("steps", n=3), Labels("zh")("steps", n=3), Labels("zh")("my_signal")
    ('3 steps', '3 步', 'my signal')
    """

    def __init__(self, language: str):
        self.language = language
        self.html_lang = "zh-Hans" if language == "zh" else "en"

    def __call__(self, key: str, **values: object) -> str:
        """The word of that key."""
        if key not in _WORDS:
            return key.replace("_", " ")
        return _WORDS[key][self.language == "zh"].format(**values)

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
    """The words in the language that was chosen for everything, or else in that of a question."""
    return Labels(_spoken or language_of(text))


def milliseconds(value: float) -> str:
    """A duration for people.

    >>> milliseconds(0.4), milliseconds(84.2), milliseconds(2170), milliseconds(754_000)
    ('<1 ms', '84 ms', '2.17 s', '12:34')
    """
    if value >= 60_000:
        return f"{int(value // 60_000)}:{int(value % 60_000 // 1000):02d}"
    if value >= 1000:
        return f"{value / 1000:.2f} s"
    return "<1 ms" if value < 1 else f"{value:.0f} ms"
