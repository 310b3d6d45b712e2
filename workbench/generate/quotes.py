"""Which sentences of the evidence answer a question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from workbench.generate.question import Facet
from workbench.generate.sources import Sentence
from workbench.generate.themes import Want, Weight, coverage, stems
from workbench.generate.wording import wording
from workbench.text import terms

ENOUGH = 0.6
"""The share of a question's weighted content words that sentences must say to be its answer."""


def best(sentences: Sequence[Sentence], wanted: Sequence[Want], most: int = 2) -> tuple[list[Sentence], float]:
    """The sentences that together say most of what is wanted, each adding something, in reading order.

    Returns:
        The sentences (none when none says anything of it) and the share that they say together.
    """
    said = {s: [w for w in wanted if w.met(stems(f"{s.text} {s.title}"))] for s in sentences}
    total, chosen, covered = sum(w.weight for w in wanted), list[Sentence](), list[Want]()
    while total and len(chosen) < most:
        gains = [(sum(w.weight for w in said[s] if w not in covered) / total, s) for s in sentences]
        gain, sentence = max(gains, key=lambda g: (round(g[0], 6), -g[1].n, _back(g[1])), default=(0.0, None))
        if sentence is None or gain < (0.01 if not chosen else 0.15):
            break
        chosen.append(sentence)
        covered += [w for w in said[sentence] if w not in covered]
    share = sum(w.weight for w in wanted if w in covered) / total if total else 0.0
    return sorted(chosen, key=lambda s: (s.n, s.place)), share


def _back(sentence: Sentence) -> tuple[int, int]:
    return (-sentence.place[0], -sentence.place[1])


def saying(facet: Facet, sentences: Sequence[Sentence], wanted: Sequence[Want], most: int = 1) -> list[Sentence]:
    """The sentences that say something of a facet, those with more of the question's words first."""
    fitting = [s for s in sentences if facet.said.search(s.text)]
    return sorted(fitting, key=lambda s: (-coverage(wanted, stems(s.text)) if wanted else 0, s.n, s.place))[:most]


def plot(sentences: Sequence[Sentence], most: int = 2) -> list[Sentence]:
    """The sentences that tell the story, in their order; none when none does."""

    def telling(sentence: Sentence) -> float:
        text = sentence.text
        return (
            2.0 * bool(wording("sentence", "telling").search(text))
            + 1.0 * bool(wording("sentence", "acting").search(text))
            - 2.0 * bool(wording("sentence", "background").search(text))
            - 2.0 * bool(wording("sentence", "cast_only").search(text))
            - 1.5 * (sentence.place == (0, 0))
            - 0.01 * sum(sentence.place)
        )

    ranked = sorted(sentences, key=lambda s: (-telling(s), s.n, s.place))
    return sorted([s for s in ranked if telling(s) > 0][:most], key=lambda s: (s.place, s.n))


def rarity(texts: Sequence[str]) -> Weight:
    """Inverse document frequency within some texts, for when no index gives one."""

    @cache
    def held() -> list[set[str]]:
        return [set(terms(text)) for text in texts]  # only when it is asked: it costs more than a whole answer

    def weight(term: str) -> float:
        return math.log((1 + len(held())) / (1 + sum(term in words for words in held()))) + 0.1

    return weight
