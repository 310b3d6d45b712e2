"""The words of a question as a chain covers them: each with its weight, and the words that a text may say for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from workbench.knowledge.indexes.keywords import stem
from workbench.ports import KnowledgeBase
from workbench.text import terms
from workbench.tools.scoring import content_terms

RELATED = 0.8
"""What a related word counts for the one that was asked for: wife for spouse."""


class Word(NamedTuple):
    """A word of a question: its inverse document frequency, its stems, those that may stand for it, how it was said."""

    weight: float
    forms: frozenset[str]
    related: frozenset[str]
    said: str = ""


@dataclass(frozen=True)
class AskedWords:
    """The content words of a question, each once."""

    words: tuple[Word, ...]

    @classmethod
    def of(cls, question: str, knowledge: KnowledgeBase) -> AskedWords:
        """The content words of a question."""
        found: dict[str, Word] = {}
        groups = [
            roots_of(word for word in group.get(language, ()) if " " not in word)
            for group in knowledge.lexicon()
            for language in ("en", "zh")
        ]
        for term in content_terms(question):
            word = root(stem(term))
            near = related().get(word, frozenset()).union(*(own for own in groups if word in own)) - forms(word)
            found.setdefault(word, Word(knowledge.term_weight(term), forms(word), near, term))
        return cls(tuple(found.values()))

    def left(self, covered: Collection[str]) -> AskedWords:
        """The words that none of these stems is of."""
        return AskedWords(tuple(word for word in self.words if word.forms.isdisjoint(covered)))

    def share(self, held: Collection[str]) -> float:
        """The share of the words' weight, 0 to 1, that a text of these stems covers.

        >>> words = AskedWords((Word(2.0, forms("spous"), related()["spous"]), Word(2.0, forms("king"), frozenset())))
        >>> round(words.share({"king", "wife"}), 3)
        0.9
        """
        total = found = 0.0
        for weight, own, others, _ in self.words:
            total += weight
            if not own.isdisjoint(held):
                found += weight
            elif not others.isdisjoint(held):
                found += RELATED * weight
        return found / total if total else 0.0


def root(stemmed: str) -> str:
    """A stem without the ending of who does it: an inspector has inspected.

    >>> root("inspector"), root("inspect"), root("her")
    ('inspect', 'inspect', 'her')
    """
    return stemmed[:-2] if len(stemmed) >= 6 and stemmed.endswith(("er", "or")) else stemmed


def forms(word: str) -> frozenset[str]:
    """The stems of which this is the root.

    >>> sorted(forms("invent"))
    ['invent', 'inventer', 'inventor']
    """
    return frozenset({word, f"{word}er", f"{word}or"} if len(word) >= 4 else {word})


def roots_of(said: Iterable[str]) -> frozenset[str]:
    """The stems of these words with those of which they are the root; of Chinese words the pairs of signs."""
    return frozenset().union(*(forms(root(one)) for one in stems(" ".join(said))))


def stems(text: str) -> frozenset[str]:
    """The stems of the words in a text."""
    return frozenset(map(stem, terms(text)))


@cache
def related() -> Mapping[str, frozenset[str]]:
    """Root -> stems that a text may hold in its place (``related.txt``)."""
    found: dict[str, set[str]] = defaultdict(set)
    for line in files("workbench.tools").joinpath("related.txt").read_text(encoding="utf-8").splitlines():
        head, _, others = line.partition(":")
        if not line.startswith("#"):
            for word in map(root, stems(head)):
                found[word] |= roots_of([others]) - forms(word)
    return {word: frozenset(others) for word, others in found.items()}
