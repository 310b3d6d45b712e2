"""Summarize a conversation in two or three of its own sentences, without a model.

No sentence is about the person: that is in core memory, and a summary would keep what has been taken back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log1p, sqrt

from workbench.language.words import is_small_talk
from workbench.parts.memory.reading import read_preferences
from workbench.state import Data
from workbench.text import closest, content_stems, detect_language, sentences, unmarked

LONGEST = 180
"""Characters of a sentence that is chosen."""
_HEADS = {"en": ("Asked: ", "Found: ", "Asked last: "), "zh": ("问过：", "查明：", "最近问：")}
_REFUSED = re.compile(
    r"corpus does not say|^nothing (?:here|in)\b|没有(?:提到|找到|记过)|资料库里?没有",
    re.IGNORECASE,
)

_FORGETS = re.compile(r"^\W*(?:please )?forget\b|忘[掉了记]", re.IGNORECASE)


def summarize(messages: Sequence[Data]) -> str:
    """Return the question most spoken of, what answered it, and the newest question.

    Args:
        messages: oldest first, each with ``role`` (``user`` or ``assistant``) and ``content``.

    >>> asked = [{"role": "user", "content": "Who wrote Emma?"},
    ...          {"role": "assistant", "content": "Jane Austen wrote Emma in 1815 [1]."}]
    >>> print(summarize(asked))
    Asked: Who wrote Emma?
    Found: Jane Austen wrote Emma in 1815.
    """
    words = Counter(
        word for message in messages for word in content_stems(str(message["content"]))
    )
    questions = list(_questions(messages))
    if not questions:
        return ""
    # of equal ones the first: the topic
    sentence, answer = max(questions, key=lambda pair: _weight(pair[0], words))
    newest = questions[-1][0]
    lines = [sentence, _best(answer, sentence), newest if newest != sentence else ""]
    heads = _HEADS[detect_language(sentence)]
    return "\n".join(f"{head}{line}" for head, line in zip(heads, lines, strict=True) if line)


def _questions(messages: Sequence[Data]) -> Iterator[tuple[str, str]]:
    """Yield the sentences of the person that are to be answered, each with the answer that follows."""
    nothing = {"role": "", "content": ""}
    # there may be no message
    for message, following in zip(messages, [*messages[1:], nothing], strict=False):
        if message["role"] != "user" or is_small_talk(message["content"]):
            continue
        answer = str(following["content"]) if following["role"] == "assistant" else ""
        for sentence in sentences(read_preferences(str(message["content"]))[1]):
            if (
                len(sentence) <= LONGEST
                and content_stems(sentence)
                and not _FORGETS.search(sentence)
            ):
                yield sentence, answer


def _best(answer: str, question: str) -> str:
    """Return the sentence of an answer that has most of the question's words; "" where it only refuses."""
    plain = [unmarked(sentence).strip() for sentence in sentences(answer)]
    plain = [
        sentence
        for sentence in plain
        if 8 <= len(sentence) <= LONGEST and not _REFUSED.search(sentence)
    ]
    return closest(question, plain)


def _weight(sentence: str, counts: Counter[str]) -> float:
    """Return how much a sentence is about what the conversation speaks of again and again."""
    words = content_stems(sentence)
    return sum(log1p(counts[word]) for word in words) / sqrt(len(words))
