"""The words of a question as a chain covers them: each with its weight, and the words that a text may say for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from workbench.context import KnowledgeBase
from workbench.knowledge.keywords import stem
from workbench.text import terms
from workbench.tools.signals import content_terms

RELATED = 0.8
"""What a related word counts for the one that was asked for: wife for spouse."""


@dataclass(frozen=True)
class AskedWords:
    """Root of a content word -> its inverse document frequency."""

    weights: Mapping[str, float]

    @classmethod
    def of(cls, question: str, knowledge: KnowledgeBase) -> AskedWords:
        """The content words of a question."""
        weights: dict[str, float] = {}
        for term in content_terms(question):
            weights.setdefault(root(stem(term)), knowledge.term_weight(term))
        return cls(weights)

    def left(self, covered: Collection[str]) -> AskedWords:
        """The words that are not covered yet."""
        return AskedWords({word: weight for word, weight in self.weights.items() if word not in covered})

    def share(self, held: Collection[str]) -> float:
        """The share of the words' weight, 0 to 1, that a text of these roots covers.

        >>> round(AskedWords({"spous": 2.0, "king": 2.0}).share({"king", "wife"}), 3)
        0.9
        """
        total = sum(self.weights.values())
        found = 0.0
        for word, weight in self.weights.items():
            if word in held:
                found += weight
            elif not related().get(word, _NONE).isdisjoint(held):
                found += RELATED * weight
        return found / total if total else 0.0

    def share_of_stems(self, texts: Iterable[Collection[str]]) -> float:
        """The share that several texts cover together, each given by its stems."""
        return self.share(frozenset(root(word) for text in texts for word in text))


_NONE: frozenset[str] = frozenset()


def root(stemmed: str) -> str:
    """A stem without the ending of who does it: a director has directed.

    >>> root("director"), root("direct"), root("her")
    ('direct', 'direct', 'her')
    """
    return stemmed[:-2] if len(stemmed) >= 6 and stemmed.endswith(("er", "or")) else stemmed


def roots(text: str) -> frozenset[str]:
    """The roots of the words in a text."""
    return frozenset(root(stem(term)) for term in terms(text))


@cache
def related() -> Mapping[str, frozenset[str]]:
    """Root -> roots that a text may hold in its place (``related.txt``)."""
    found: dict[str, set[str]] = defaultdict(set)
    for line in files("workbench.tools").joinpath("related.txt").read_text(encoding="utf-8").splitlines():
        head, _, others = line.partition(":")
        if not line.startswith("#"):
            for word in roots(head):
                found[word] |= roots(others) - {word}
    return {word: frozenset(others) for word, others in found.items()}
