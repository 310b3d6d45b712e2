"""Which turns of a conversation a question is about: a few signals of each turn, weighted and added; no model decides.

``Conversation`` takes turns one by one and ranks all of them for a question. Words are counted as the keyword index
does (stems, Chinese bigrams) over a turn and the turns around it; vectors, where there are any, add the
cosine of sentences and the nearest words (MaxSim). Other signals are who speaks, which days are meant, whether a turn
answers a question, and whether it holds what is asked for: a time, a number, a name, a place. Both languages alike.

The weights were fitted by ``experiments/remembering.py``, which prints what they are worth on conversations that they
were not fitted on.
"""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np

from workbench.knowledge.dated import last_day
from workbench.language.dates_and_numbers import read_dates
from workbench.models.embeddings import products
from workbench.models.rerank import WordVectors
from workbench.models.rerank import words as words_of
from workbench.state import unique
from workbench.text import days, is_stop_word, own_table, spelled, stem, terms

WEIGHTS: Mapping[str, Mapping[str, float]] = json.loads(
    Path(__file__).with_suffix(".json").read_text("utf-8")
)["weights"]
"""Of each signal, for ``words`` alone, with ``vectors`` of turns, and with vectors of the ``nearest`` words as well."""


Vector = Sequence[float] | np.ndarray


class Turn(NamedTuple):
    """One message. ``time`` begins with its day in any usual writing, or is empty."""

    id: str
    session: str
    time: str
    speaker: str
    text: str


class Conversation:
    """The turns of one conversation, in order. Not to be changed in one thread while another ranks.

    >>> talk = Conversation()
    >>> talk.add(Turn("1", "s1", "2023-05-08", "Ann", "I went to Lisbon last week."))
    >>> talk.add(Turn("2", "s1", "2023-05-08", "Bo", "Nice! My sister makes pottery."))
    >>> [*talk.rank("Who makes pottery?")]
    ['2', '1']
    """

    def __init__(self, words: WordVectors | None = None):
        """``words``: ``(len(words), dimensions)`` for any words, of length 1; None: words are compared by their stems.

        It is called at the first question after a turn, once for all words that are new.
        """
        self.turns: list[Turn] = []
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths = list[int]()
        self._session = list[int]()
        self._days = list[int | None]()
        self._sessions: dict[str, int] = {}
        self._vectors: list[Vector | None] = []
        self._rows = np.zeros((0, 0), np.float32)
        self._traits: dict[str, list[float]] = defaultdict(list)
        self._names: dict[str, list[str]] = {}
        self._words = _Words(words) if words else None

    def add(self, turn: Turn, vector: Vector | None = None) -> None:
        """Take the next turn, with its vector (of length 1) if it has one."""
        number = len(self.turns)
        self.turns.append(turn)
        spoken = [
            *self._names.setdefault(turn.speaker, _terms(_spaced(turn.speaker))),
            *_terms(turn.text),
        ]
        for term, count in Counter(spoken).items():
            self._postings[term].append((number, count))
        self._lengths.append(len(spoken))
        self._session.append(self._sessions.setdefault(turn.session, len(self._sessions)))
        self._vectors.append(vector)
        if self._words:
            self._words.add(words_of(turn.text))
        for name, value in _traits(turn.text).items():
            self._traits[name].append(value)
        self._days.append(_day(turn.time))

    def rank(
        self, question: str, vector: Vector | None = None, *, today: str = ""
    ) -> Iterator[str]:
        """Yield the ids of all turns, best first; equal ones in their order.

        Args:
            question: its words.
            vector: of length 1, by the model of the turns' vectors; None: words alone.
            today: the day on which it is asked, so that "yesterday" is one.
        """
        if not self.turns:
            return
        values = self.signals(question, vector, today=today)
        signals = "nearest" if "word" in values else "vectors"
        weights = WEIGHTS[signals if "cosine" in values else "words"]
        scores = np.sum(
            [values[name] * weight for name, weight in weights.items()], axis=0
        ).round(5)
        for number in np.argsort(-scores, kind="stable").tolist():
            yield self.turns[number].id

    def signals(
        self, question: str, vector: Vector | None = None, *, today: str = ""
    ) -> dict[str, np.ndarray]:
        """Each signal's value for each turn, about 0 to 1: what the weights are fitted to, and why a turn was found."""
        neighbours = _Neighbours(np.array(self._session))
        spans, rest = self._asked_days(question, today)
        query_terms = _terms(rest)
        people = {term for name in self._names.values() for term in name}
        alone = [term for term in query_terms if term not in people] or query_terms
        lengths = np.array(self._lengths, float)
        every = self._counts(query_terms)
        bare = self._counts(alone)
        values = {
            "turn": _scaled(_bm25(bare, lengths)),
            "around": _scaled(_bm25(neighbours.sums(every), neighbours.sums(lengths))),
        }
        base = values["turn"]
        if vector is not None and any(own is not None for own in self._vectors):
            cosines = self.cosines(vector)
            values |= {
                "cosine": _standard(cosines),
                "near": _standard(
                    neighbours.sums(cosines, 1) / neighbours.sums(neighbours.ones, 1)
                ),
            }
            base = base + _scaled(cosines)
        if self._words and vector is not None:
            wanted = [w for w in words_of(rest) if stem(w) not in people] or list(words_of(rest))
            closest = self._words.closest(unique(wanted))
            values["word"] = _scaled(closest.sum(1))
            values["word_before"] = _scaled(
                np.maximum(closest, neighbours.before(closest)).sum(1)
            )
            base = base + values["word"]
        return values | self._circumstances(
            question, neighbours, base / (base.max() + _TINY), spans
        )

    def keywords(self, question: str) -> np.ndarray:
        """BM25 of each turn, its speaker's name read with it."""
        return _bm25(self._counts(_terms(question)), np.array(self._lengths, float))

    def cosines(self, vector: Vector) -> np.ndarray:
        """Of each turn's vector with this one; a turn without one has the mean, which speaks neither way."""
        new = self._vectors[len(self._rows) :]
        if new:
            blank = np.zeros(len(vector), np.float32)
            rows = np.array([blank if own is None else own for own in new], np.float32)
            self._rows = np.concatenate([self._rows, rows]) if len(self._rows) else rows
        results = products(self._rows, np.asarray(vector, np.float32)).astype(float)
        embedded = self._rows.any(axis=1)
        results[~embedded] = results[embedded].mean() if embedded.any() else 0.0
        return results

    def _circumstances(
        self, question: str, neighbours: _Neighbours, base: np.ndarray, spans: Sequence[Span]
    ) -> dict[str, np.ndarray]:
        """Return what speaks for a turn besides its words."""
        traits = {name: np.array(values) for name, values in self._traits.items()}
        before = neighbours.before(base)
        kinds = [traits[name] for name, (wanted, _) in _KINDS.items() if wanted.search(question)]
        return {
            "before": before,
            "answer": before * neighbours.before(traits["inquires"]),
            "best": neighbours.best(base),
            "who": self._speaker_named(question),
            "when": np.array([_match(spans, day) for day in self._days]),
            "kind": np.maximum.reduce(kinds) if kinds else np.zeros(len(base)),
            "asks": traits["asks"],
        }

    def _counts(self, query_terms: Sequence[str]) -> np.ndarray:
        """Return ``(turns, terms)``: how often each term is in each turn, without terms that are nowhere."""
        postings = [
            self._postings[term] for term in dict.fromkeys(query_terms) if term in self._postings
        ]
        counts = np.zeros((len(self.turns), len(postings)))
        for column, posting in enumerate(postings):
            places, numbers = zip(*posting, strict=True)
            counts[list(places), column] = numbers
        return counts

    def _speaker_named(self, question: str) -> np.ndarray:
        """1 where the speaker is named in the question, and not all speakers are."""
        squeezed = re.sub(r"\W", "", spelled(question))
        speakers = {name for name in self._names if _is_named(name, squeezed, question)}
        if len(speakers) == len(self._names):
            speakers = set()
        return np.array([float(turn.speaker in speakers) for turn in self.turns])

    def _asked_days(self, question: str, today: str) -> tuple[list[Span], str]:
        """Return the days that a question asks for, and the question without those that are counted from ``today``.

        Once "yesterday" is read, a turn that says it too is no nearer. Where no day is today, that of the newest turn
        is: a month without a year is its last one.
        """
        newest = max((day for day in self._days if day), default=None)
        begin = today or (date.fromordinal(newest).isoformat() if newest else "")
        spans = []
        for span in reversed(read_dates(question, begin)):
            with suppress(ValueError):  # open at one end, or no such day in that year
                spans.append((_ordinal(f"{span.low}-01-01"[:10]), _ordinal(last_day(span.high))))
                if today and not re.search(r"\d", question[span.start : span.end]):
                    question = f"{question[: span.start]} {question[span.end :]}"
        return spans, question


class _Neighbours:
    """Turns next to one another in the same session."""

    def __init__(self, session: np.ndarray):
        self.session = session
        self.ones = np.ones(len(session))
        self._same = {n: session[n:] == session[:-n] for n in (1, 2)}

    def before(self, values: np.ndarray) -> np.ndarray:
        """Return the previous turn's, 0 where there is none."""
        moved = np.zeros_like(values)
        moved[1:] = (values[:-1].T * self._same[1]).T
        return moved

    def sums(self, values: np.ndarray, around: int = 2) -> np.ndarray:
        """Over the turn and so many on each side: those that are read together with it."""
        totals = values.astype(float)
        for n in range(1, around + 1):
            same = self._same[n]
            totals[n:] += (values[:-n].T * same).T
            totals[:-n] += (values[n:].T * same).T
        return totals

    def best(self, values: np.ndarray) -> np.ndarray:
        """Return the highest of each turn's session."""
        highest = np.zeros(self.session.max() + 1)
        np.maximum.at(highest, self.session, values)
        return highest[self.session]


class _Words:
    """The words of the turns and their vectors: which word of a turn is nearest to each of the question."""

    def __init__(self, vectors: WordVectors):
        self._vectors_of = vectors
        self._numbers = dict[str, int]()
        self._of_turns = array("l")
        self._starts = list[int]()
        self._rows = np.zeros((0, 0), np.float32)

    def add(self, words: Sequence[str]) -> None:
        """Add the words of the next turn."""
        self._starts.append(len(self._of_turns))
        self._of_turns.extend(
            self._numbers.setdefault(word, len(self._numbers)) for word in dict.fromkeys(words)
        )

    def closest(self, query_words: Sequence[str]) -> np.ndarray:
        """Return ``(turns, asked)``: squared cosine of the nearest word, centred, times how rare the asked word is."""
        results = np.zeros((len(self._starts), len(query_words)))
        if not query_words or not self._numbers:
            return results
        numbers = np.array(self._of_turns)
        counted = np.bincount(numbers)
        counts = np.array(
            [counted[self._numbers[word]] if word in self._numbers else 0 for word in query_words]
        )
        similar = self._similar(query_words) * _rarity(counts, len(results))
        starts = np.array(self._starts)
        has_words = np.diff(np.append(starts, len(numbers))) > 0
        results[has_words] = np.maximum.reduceat(similar[numbers], starts[has_words], axis=0)
        return results

    def _similar(self, query_words: Sequence[str]) -> np.ndarray:
        """``(words, asked)``: the square of each cosine above 0, the mean of all words taken away from both."""
        new = list(self._numbers)[len(self._rows) :]
        strange = [word for word in query_words if word not in self._numbers]
        if new or strange:  # in one call, since a call has a price of its own
            vectors = np.asarray(self._vectors_of([*new, *strange]), np.float32)
            self._rows = np.concatenate(
                [self._rows.reshape(-1, vectors.shape[1]), vectors[: len(new)]]
            )
        of_strange = dict(zip(strange, vectors[len(new) :], strict=True)) if strange else {}
        middle = self._rows.mean(axis=0)
        rows = self._rows - middle
        rows /= np.linalg.norm(rows, axis=1, keepdims=True) + _TINY
        wanted = [
            (of_strange[w] if w in of_strange else self._rows[self._numbers[w]]) - middle
            for w in query_words
        ]
        cosines = [products(rows, row / (np.linalg.norm(row) + _TINY)) for row in wanted]
        return np.maximum(np.array(cosines).T, 0).astype(float) ** 2


# --- Words ---

_TINY = 1e-9


def _terms(text: str) -> list[str]:
    """Stems without function words, in their order.

    >>> _terms("Where did Ann’s sisters go?"), _terms("我的姐姐")
    (['ann', 'sister', 'go'], ['我的', '的姐', '姐姐'])
    """
    return [stem(term) for term in terms(text.replace("’", "'")) if not is_stop_word(term)]


def _spaced(name: str) -> str:
    """Return a name written as one, in its words.

    >>> _spaced("AnnLee"), _spaced("user_1")
    ('Ann Lee', 'user 1')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name)


def _rarity(counts: np.ndarray, total: int) -> np.ndarray:
    return np.log(1 + (total - counts + 0.5) / (counts + 0.5))


def _bm25(counts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Okapi BM25 of texts of these lengths, in which each term stands so often."""
    k1 = 1.2
    b = 0.75
    mean = max(float(lengths.mean()), _TINY)
    filled = counts * (k1 + 1) / (counts + (k1 * (1 - b + b * lengths / mean) + _TINY)[:, None])
    return filled @ _rarity((counts > 0).sum(axis=0), len(counts))


def _scaled(values: np.ndarray) -> np.ndarray:
    """Scale values so that the best is 1."""
    return np.maximum(values, 0) / (values.max() + _TINY)


def _standard(values: np.ndarray) -> np.ndarray:
    """In quarters of the standard deviation from the mean."""
    return (values - values.mean()) / (4 * values.std() + _TINY)


# --- What a turn is and holds ---

_KINDS: Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    name: (re.compile("|".join(kind["asks"]), re.I), re.compile("|".join(kind["holds"])))
    for name, kind in own_table(__file__).items()
}
"""What a question may want to know: how it asks, and what a turn that tells it holds."""
_INQUIRES = re.compile(r"[?？]|[吗呢][。.!！]?$")


def _traits(text: str) -> dict[str, float]:
    """
    >>> _traits("你去哪儿了？")["asks"], _traits("It was in Lisbon, in 2019.")["time"]
    (1.0, 1.0)
    """
    kinds = {name: float(bool(pattern.search(text))) for name, (_, pattern) in _KINDS.items()}
    return kinds | {
        "asks": float(text.rstrip().endswith(("?", "？", "吗", "呢"))),
        "inquires": float(bool(_INQUIRES.search(text.rstrip()))),
    }


_ROLES = {
    "user": re.compile(r"\b(i|my|me|mine)\b|我", re.I),
    "assistant": re.compile(r"\b(you|your|yours)\b|你|您", re.I),
}
"""Speakers without a name of their own, and how the user's question names them."""


def _is_named(speaker: str, squeezed: str, question: str) -> bool:
    if speaker in _ROLES:
        return bool(_ROLES[speaker].search(question))
    name = re.sub(r"\W", "", spelled(speaker))
    return bool(name) and name in squeezed


# --- Days ---

Span = tuple[int, int]
"""The first and the last day, as ``date.toordinal`` counts them."""


def _match(spans: Sequence[Span], day: int | None) -> float:
    """Return 1 for a day that is asked for, less for one soon after."""
    # What a turn is worth that comes so many days after those that are asked for: it may still be
    # about them.
    after = ((0, 1.0), (3, 0.5), (10, 0.25))
    gaps = [max(day - last, 0) for first, last in spans if day and first <= day]
    return next((share for days_after, share in after if gaps and min(gaps) <= days_after), 0.0)


def _day(text: str) -> int | None:
    """Return the first day in a text that has its year."""
    for _, _, day in days(text):
        if day.year:
            with suppress(ValueError):
                return date(*day).toordinal()
    return None


def _ordinal(iso_date: str) -> int:
    return date.fromisoformat(iso_date).toordinal()
