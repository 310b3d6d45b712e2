"""A conversation in two or three sentences, without a model; each stands in a message or in a note."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log1p, sqrt
from typing import Any

from workbench.language.preferences import read_preferences
from workbench.language.words import is_small_talk
from workbench.text import content_stems, language_of, sentences

LONGEST = 180
"""Characters of a sentence that is chosen, and of what is told of the person."""
_HEADS = {"en": ("The person: ", "Asked: ", "Found: "), "zh": ("用户：", "问过：", "查明：")}
_REFUSED = re.compile(r"corpus does not say|^nothing (?:here|in)\b|没有(?:提到|找到|记过)|资料库里?没有", re.IGNORECASE)

_FORGETS = re.compile(r"^\W*(?:please )?forget\b|忘[掉了记]", re.IGNORECASE)


def summarize(messages: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> str:
    """Return what is noted of the person, the sentence most spoken of, and what answered it.

    Args:
        messages: oldest first, each with ``role`` (``user`` or ``assistant``) and ``content``.
        notes: of the person, oldest first.

    >>> asked = [{"role": "user", "content": "Who wrote Emma?"},
    ...          {"role": "assistant", "content": "Jane Austen wrote Emma in 1815 [1]."}]
    >>> print(summarize(asked, ["I don't like brass bands"]))
    The person: I don't like brass bands
    Asked: Who wrote Emma?
    Found: Jane Austen wrote Emma in 1815.
    """
    words = Counter(word for message in messages for word in content_stems(str(message["content"])))
    asked = list(_asked(messages))
    lines = [_newest(notes)]
    if asked:
        sentence, answer = max(asked, key=lambda pair: _weight(pair[0], words))  # of equal ones the first: the topic
        lines += [sentence, _best(answer, sentence)]
    language = language_of(lines[-2] if asked else lines[0])
    heads = _HEADS["zh" if language == "zh" else "en"]
    return "\n".join(f"{head}{line}" for head, line in zip(heads, lines, strict=False) if line)


def without_person(summary: str) -> str:
    """Return a summary without what it tells of the person."""
    heads = tuple(head for head, *_ in _HEADS.values())
    return "\n".join(line for line in summary.splitlines() if not line.startswith(heads))


def quoted(summary: str) -> list[str]:
    """Return the sentences of a summary, without its headings.

    >>> quoted("The person: I like tea; I am Ann\\nAsked: Who wrote Emma?")
    ['I like tea', 'I am Ann', 'Who wrote Emma?']
    """
    heads = "|".join(head for heads in _HEADS.values() for head in heads)
    lines = [re.sub(f"^(?:{heads})", "", line) for line in summary.splitlines()]
    return [part for line in lines for part in re.split("; |；", line)]


def _newest(notes: Sequence[str]) -> str:
    """Return the newest notes that fit, oldest first."""
    chosen, left = list[str](), LONGEST
    for note in reversed(notes):
        left -= len(note)
        if left >= 0:
            chosen.insert(0, note.rstrip(" .。"))
    return ("；" if language_of("".join(chosen)) == "zh" else "; ").join(chosen)


def _asked(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the sentences of the person that are to be answered, each with the answer that follows."""
    for number, message in enumerate(messages):
        if message["role"] != "user" or is_small_talk(message["content"]):
            continue
        following = messages[number + 1] if number + 1 < len(messages) else {"role": "", "content": ""}
        answer = str(following["content"]) if following["role"] == "assistant" else ""
        for sentence in sentences(read_preferences(str(message["content"]))[1]):
            if len(sentence) <= LONGEST and content_stems(sentence) and not _FORGETS.search(sentence):
                yield sentence, answer


def _best(answer: str, question: str) -> str:
    """Return the sentence of an answer that has most of the question's words; "" where it only refuses."""
    told = [re.sub(r"\s?\[\d+\]", "", sentence).strip() for sentence in sentences(answer)]
    told = [sentence for sentence in told if 8 <= len(sentence) <= LONGEST and not _REFUSED.search(sentence)]
    return max(told, key=lambda sentence: len(content_stems(sentence) & content_stems(question)), default="")


def _weight(sentence: str, counts: Counter[str]) -> float:
    """Return how much a sentence is about what the conversation speaks of again and again."""
    words = content_stems(sentence)
    return sum(log1p(counts[word]) for word in words) / sqrt(len(words))
