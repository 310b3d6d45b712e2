"""The words, signs and fixed sentences with which runs are shown.

``en.toml`` and ``zh.toml`` have the same keys, grouped by subject.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any

from workbench.records import proposals
from workbench.state import Data
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


# sentences

MISSING = ("unmet", "open")
"""The states of needs for which there is too little."""


def need_state(need: Data) -> str:
    """Return a person's word on a need, ``met``, ``unmet``, ``unjudged``, or ``likely`` where likeness was measured."""
    if need["kind"] == "step":
        return "unjudged"
    exact = need["kind"] in ("name", "field", "condition", "count") or "verdict" in need
    sure = "met" if exact or (need["kind"] != "words" and need["met"] == 1) else "likely"
    decided = need["said"] in proposals.DECIDED or need["met"] < proposals.MET
    return (need["said"] or "unmet") if decided else sure


def need_states(needs: Sequence[Data]) -> Counter[str]:
    """Count the needs by state, all that are ``needed``, and those ``reached``: met, surely or likely."""
    states = Counter(map(need_state, needs))
    states["needed"] = len(needs) - states["struck"]
    states["reached"] = states["met"] + states["likely"] + states["confirmed"]
    return states


def needs_sentence(needs: Sequence[Data], labels: Labels) -> str:
    """Return how many of the needs are met, how the others stand, and the names of those that are not met."""
    comma = labels("comma")
    states = need_states(needs)
    names = [need["need"] for need in needs if need_state(need) in MISSING]

    def counted(*kinds: str) -> list[str]:
        return [labels(f"needs_{kind}", n=states[kind]) for kind in kinds if states[kind]]

    met = labels("needs_met", n=states["reached"], of=states["needed"])
    how = comma.join(counted("likely", "confirmed"))
    parts = [labels("aside", said=met, more=how) if how else met] if states["needed"] else []
    if names:
        parts.append(labels("needs_unmet", n=len(names), names=comma.join(names)))
    return " · ".join([*parts, *counted("struck", "unjudged")])


def as_of_text(document: Data, labels: Labels) -> str:
    """Return the dates of a run: as of which facts were true, and were known."""
    pairs = zip(("as_of_told", "known_told"), document["as_of"], strict=True)
    return labels("comma").join(labels(key, at=date) for key, date in pairs if date)


def reading_text(run: Data, labels: Labels) -> str:
    """Return how a follow-up question was read; empty where it was taken literally."""
    if run["query"] not in (run["message"], ""):
        return labels("read_alone", query=run["query"])
    return ""


def decision_name(review_id: str, labels: Labels) -> str:
    """Return the number of a decision, from 1, and its point; of a recorded graph its place.

    >>> decision_name("1-reflect", Labels("en")), decision_name("review/1", Labels("en"))
    ('2 · reflect', 'review/1')
    """
    number, _, point = review_id.partition("-")
    if number.isdecimal():
        return f"{int(number) + 1} · {labels.get(f'point_{point}', point)}"
    return review_id


def reviewer_name(who: str, labels: Labels) -> str:
    """Return the author of a decision."""
    if who in ("person", "fork"):
        return labels({"person": "by_person", "fork": "fork"}[who])
    return who


def reason_text(record: Data, labels: Labels) -> str:
    """Return why a step was skipped, cut short or failed; messages of tools and libraries are unchanged.

    >>> reason_text({"reason": {"kind": "after_timeout", "step": "step_0"}, "error": "..."}, Labels("zh"))
    '前置步骤 step_0 超时'
    """
    if reason := record.get("reason"):
        return labels(reason["kind"], **reason)
    return str(record["error"])


def duration_text(figures: Data, labels: Labels) -> str:
    """Return how long a run worked.

    >>> duration_text({"total_s": 10.4}, Labels("en"))
    '10.40 s in all'
    """
    return labels("took", span=milliseconds(1000 * figures["total_s"]))


def phase_name(phase: str, labels: Labels) -> str:
    """Return the name of a phase; of a recorded graph, a node's."""
    return labels.get(f"phase_{phase}", phase)


def savings_text(figures: Data, labels: Labels) -> str:
    """Return the number of calls of tools that the tape answered, and the time that they had taken."""
    span = milliseconds(1000 * figures["saved_s"])
    return labels("calls_saved", n=figures["saved_calls"], span=span)
