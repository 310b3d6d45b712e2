"""The words of a question as a chain covers them: each with its weight, and the words that a text may say for it.

No list says which words those are. Where the corpus is written in another script than the question, they are the words
of the corpus that mean nearly the same (``KnowledgeBase.near``); next to them, what its vocabulary calls the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from workbench.ports import KnowledgeBase
from workbench.text import CJK, stem, stems
from workbench.tools.scoring import content_terms

RELATED = 0.8
"""What a word that stands for the one that was asked for counts at most."""
ALIKE, SAME = 0.55, 0.85
"""Cosines from which on a word of the other script counts for one of the question, and counts in full."""
CLOSEST = 0.6
"""What this part of the best of them counts, or more, is one of those whose rarity is the word's."""


class Word(NamedTuple):
    """A word of a question.

    Attributes:
        weight: inverse document frequency.
        forms: its stems.
        related: stems that may stand for it -> what they count, 0 to 1.
        said: as the question writes it.
        nearest: the word of the corpus that is nearest to it, where the corpus is written in another script.
    """

    weight: float
    forms: frozenset[str]
    related: Mapping[str, float]
    said: str = ""
    nearest: str = ""

    def share(self, held: Collection[str]) -> float:
        """Return how far a text of these stems says it, 0 to 1."""
        if not self.forms.isdisjoint(held):
            return 1.0
        return max((worth for one, worth in self.related.items() if one in held), default=0.0)


@dataclass(frozen=True)
class AskedWords:
    """The content words of a question, each once."""

    words: tuple[Word, ...]

    @classmethod
    def of(cls, question: str, knowledge: KnowledgeBase) -> AskedWords:
        """Return the content words of a question."""
        groups = [
            roots_of(word for word in group.get(language, ()) if " " not in word)
            for group in knowledge.lexicon()
            for language in ("en", "zh")
        ]
        near = knowledge.near(question)
        foreign = {word: others for word, others in near.items() if CJK.match(word)}
        found: dict[str, Word] = {}
        for term in content_terms(question):
            if foreign and CJK.match(term):
                continue  # pairs of signs that no text of this corpus has: their words follow
            word = root(stem(term))
            own = dict.fromkeys(frozenset().union(*(group for group in groups if word in group)), RELATED)
            others = near.get(term, [])
            worth = {one: worth for one, worth in (own | _worth(others)).items() if one not in forms(word)}
            nearest = others[0][0] if others else ""
            found.setdefault(word, Word(knowledge.term_weight(term), forms(word), worth, term, nearest))
        for word, others in foreign.items():
            if worth := _worth(others):
                closest = [one for one, share in worth.items() if share >= CLOSEST * max(worth.values())]
                weight = min(map(knowledge.term_weight, closest))
                found[word] = Word(weight, frozenset({word}), worth, word, others[0][0])
        return cls(tuple(found.values()))

    def left(self, covered: Collection[str]) -> AskedWords:
        """Return the words that none of these stems is of."""
        return AskedWords(tuple(word for word in self.words if word.forms.isdisjoint(covered)))

    def share(self, held: Collection[str]) -> float:
        """Return the share of the words' weight, 0 to 1, that a text of these stems covers.

        >>> words = AskedWords((Word(2.0, forms("spous"), {"wife": 0.8}), Word(2.0, forms("king"), {})))
        >>> round(words.share({"king", "wife"}), 3)
        0.9
        """
        total = sum(word.weight for word in self.words)
        return sum(word.weight * word.share(held) for word in self.words) / total if total else 0.0


def _worth(others: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Stem of a near word -> what it counts; of a Chinese word each pair of signs."""
    found: dict[str, float] = {}
    for said, cosine in others:
        worth = RELATED * min(1.0, (cosine - ALIKE) / (SAME - ALIKE))
        for one in stems(said) if worth > 0 else ():
            found[one] = max(found.get(one, 0.0), worth)
    return found


def root(stemmed: str) -> str:
    """Return a stem without the ending of who does it: an inspector has inspected.

    >>> root("inspector"), root("inspect"), root("her")
    ('inspect', 'inspect', 'her')
    """
    return stemmed[:-2] if len(stemmed) >= 6 and stemmed.endswith(("er", "or")) else stemmed


def forms(word: str) -> frozenset[str]:
    """Return the stems of which this is the root.

    >>> sorted(forms("invent"))
    ['invent', 'inventer', 'inventor']
    """
    return frozenset({word, f"{word}er", f"{word}or"} if len(word) >= 4 else {word})


def roots_of(said: Iterable[str]) -> frozenset[str]:
    """Return the stems of these words with those of which they are the root; of Chinese words the pairs of signs."""
    return frozenset().union(*(forms(root(one)) for one in stems(" ".join(said))))
