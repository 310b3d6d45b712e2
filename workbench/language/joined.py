"""Names that a text writes as one word: a chat is of JakeWatson and LiHua, a question asks of Jake and of Li Hua."""

from __future__ import annotations

import re
from functools import lru_cache

from workbench.context import KnowledgeBase

_JOINED = re.compile(r"(?<!\w)(?!Ma?c[A-Z])[A-Z][a-z]+(?:[A-Z][a-z-]+)+(?!\w)")
_APART = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NAME = re.compile(r"(?<!\w)[A-Z][a-z-]+(?: [A-Z][a-z-]+)+(?!\w)")


@lru_cache(maxsize=4096)
def apart(text: str) -> str:
    """The names in a text that are written as one word, each in its parts.

    >>> apart("JakeWatson: Hey LiHua! How is Ann?"), apart("Hey!")
    ('Jake Watson / Li Hua', '')
    """
    return " / ".join(_APART.sub(" ", word) for word in dict.fromkeys(_JOINED.findall(text)))


def together(question: str, knowledge: KnowledgeBase) -> str:
    """The question with such names as one word, where the texts write that more often than some part of the name."""
    return _NAME.sub(lambda match: " ".join(_joined(match[0].split(), knowledge)), question)


def joined_in(question: str, knowledge: KnowledgeBase) -> list[tuple[int, int]]:
    """Where such names stand in a question."""
    found = []
    for match in _NAME.finditer(question):
        at = match.start()
        for word in _joined(match[0].split(), knowledge):
            end = at + len(word) + len(_APART.findall(word))
            if question[at:end] != word:
                found.append((at, end))
            at = end + 1
    return found


def _joined(parts: list[str], knowledge: KnowledgeBase) -> list[str]:
    for start, end in [(i, j) for j in range(len(parts), 1, -1) for i in range(j - 1)]:
        rarest = max(knowledge.term_weight(part.lower()) for part in parts[start:end])
        word = "".join(parts[start:end])
        if knowledge.term_weight(word.lower()) < rarest:
            return [*_joined(parts[:start], knowledge), word, *_joined(parts[end:], knowledge)]
    return parts
