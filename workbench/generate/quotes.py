"""Which sentences of the evidence answer a question: by the share of its content words that they hold."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

from workbench.generate.question import Facet
from workbench.generate.sources import Sentence
from workbench.text import terms

Weight = Callable[[str], float]
"""How much a term says: an inverse document frequency."""

ENOUGH = 0.6
"""The share of a question's weighted content words that sentences must hold to be its answer."""

_PLOT = re.compile(
    r"\b(?:follow(?:s|ing)?|stor(?:y|ies)|tells?|cent(?:er|re)s|concerns|revolves|depicts|chronicles|explores|about an?\b"
    r"|struggl\w+|must|tries|discovers|plans?|finds|who)\b|讲述|故事|描写|围绕",
    re.IGNORECASE,
)
_BACKGROUND = re.compile(
    r"\b(?:gross|box[- ]office|award|nominat|premiered|was released|released on|reviews?|critic|sequel|produced by|co-production"
    r"|distribut|remake|soundtrack|budget|filming|theatrical)",
    re.IGNORECASE,
)


def stem(term: str) -> str:
    """A word without its commonest endings, so that "stories" meets "story".

    >>> [stem(w) for w in ("stories", "story", "dreams", "dreaming", "喜宴", "gas")]
    ['stor', 'stor', 'dream', 'dream', '喜宴', 'gas']
    """
    if not term.isascii() or len(term) < 4:
        return term
    return re.sub(r"(?:['’]s|ies|ing|ed|es|s|y|e)$", "", term) if len(term) > 4 else term.removesuffix("s")


def stems(text: str) -> frozenset[str]:
    """The stems of a text's terms."""
    return frozenset(stem(term) for term in terms(text))


def weights(themes: Iterable[str], weight: Weight) -> dict[str, float]:
    """Stem -> how much it says, for the content words of a question."""
    return {stem(term): max(weight(term), 0.1) for theme in themes for term in terms(theme)}


def coverage(wanted: dict[str, float], text_stems: Iterable[str]) -> float:
    """The weighted share of the wanted stems that a text has; 1 when nothing is wanted.

    >>> coverage({"dream": 3.0, "thief": 1.0}, {"dream", "film"})
    0.75
    """
    total = sum(wanted.values())
    return sum(wanted[s] for s in set(text_stems) & set(wanted)) / total if total else 1.0


def best(sentences: Sequence[Sentence], wanted: dict[str, float], most: int = 2) -> tuple[list[Sentence], float]:
    """The sentences that together cover most of what is wanted, each adding something, in reading order.

    Returns:
        The sentences (none when none has a wanted word) and the share that they cover together.
    """
    held = {s.text: stems(f"{s.text} {s.title}") & set(wanted) for s in sentences}
    chosen: list[Sentence] = []
    covered: frozenset[str] = frozenset()
    while len(chosen) < most:
        gains = [(coverage(wanted, covered | held[s.text]) - coverage(wanted, covered), s) for s in sentences]
        gain, sentence = max(gains, key=lambda g: (g[0], -g[1].n, g[1].place[0], -g[1].place[1]), default=(0.0, None))
        if sentence is None or gain < (0.01 if not chosen else 0.15):
            break
        chosen.append(sentence)
        covered |= held[sentence.text]
    return sorted(chosen, key=lambda s: (s.n, s.place)), coverage(wanted, covered) if wanted else 0.0


def saying(facet: Facet, sentences: Sequence[Sentence], wanted: dict[str, float], most: int = 1) -> list[Sentence]:
    """The sentences that say something of a facet, those with more of the question's words first."""
    fitting = [s for s in sentences if facet.said.search(s.text)]
    return sorted(fitting, key=lambda s: (-coverage(wanted, stems(s.text)) if wanted else 0, s.n, s.place))[:most]


def plot(sentences: Sequence[Sentence], most: int = 2) -> list[Sentence]:
    """The sentences that tell the story, in their order; the opening when none does."""

    def telling(sentence: Sentence) -> float:
        first = sentence.place == (0, 0)
        return (
            2 * bool(_PLOT.search(sentence.text)) - 2 * bool(_BACKGROUND.search(sentence.text)) - 0.5 * first
        ) - 0.01 * sum(sentence.place)

    ranked = sorted(sentences, key=lambda s: (-telling(s), s.n, s.place))
    good = [s for s in ranked if telling(s) > 0] or ranked[:1]
    return sorted(good[:most], key=lambda s: (s.place, s.n))


def rarity(texts: Sequence[str]) -> Weight:
    """Inverse document frequency within some texts, for when no index gives one."""
    held = [set(terms(text)) for text in texts]

    def weight(term: str) -> float:
        return math.log((1 + len(held)) / (1 + sum(term in words for words in held))) + 0.1

    return weight
