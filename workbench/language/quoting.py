"""Answer by quoting: the few sentences of the evidence that answer best together, and how probably they do.

It works in four steps, and reads nothing of a question but its words:

1. ``split_sentences`` splits the first pieces of evidence into sentences, list items and rows, without markup.
2. ``Reader`` sees ``SIGNALS`` of each sentence. A word of the question counts by its rarity among these sentences.
3. ``Reader.choose`` takes the sentence with the best weighted sum, then the one that adds most to it, and so on
   until the budget of words is spent: what a chosen sentence says counts less in the next, what is new counts more.
4. ``Reader.together`` sees the chosen sentences as a whole, and a logistic gives the probability that they answer.

Every weight is in ``quoting.json``; ``experiments/answering.py DATA --fit`` makes it from the fit halves of public
questions.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markdown_it.common.html_blocks import block_names

from workbench.knowledge.reading.blocks import ITEM, Block, blocks, cells
from workbench.ports import Words
from workbench.state import Evidence, Json
from workbench.text import CJK, content_terms, fold, sentences, spelled, stem, terms

Similar = Callable[[str, Sequence[str]], Words]
Rerank = Callable[[str, Sequence[str]], list[float] | None]
PASSAGES, RERANKED = 10, 8
"""So many of the first pieces of evidence are read; so many of their sentences are reranked, which costs most."""
BUDGET, QUOTES = 60, 4
"""Words of an answer in all, with the titles (a Chinese character counts half a word), and its most sentences."""
_BELOW = " › "
"""Between a heading and what is below it."""
SIGNALS = ("said", "above", "near", "sense", "foreign_sense", "first", "begins", "led")
"""What is seen of a sentence, each about 0 to 1, for the weights of ``quoting.json``:

``said``: the question's words that it says; ``above``: those that only its title or heading says; ``near``: how near
the nearest words are where the base has word vectors; ``sense``: the reranker's score; ``foreign_sense``: the same,
where it is in the other language; ``first``: its piece is among the best; ``begins``: it is among the first of its
piece; ``led``: a sentence that says words of the question names its title.
"""


class Sentence(NamedTuple):
    """A sentence of the evidence.

    Attributes:
        n: the number of its piece of evidence, from 1.
        doc_id: its document.
        title: of the document.
        heading: that it stands below, or the question that it follows.
        text: without markup.
        place: among the sentences of its piece, from 0.
        score: of the piece.
        is_field: it only repeats a typed field, as a record without a text does.
    """

    n: int
    doc_id: str
    title: str
    heading: str
    text: str
    place: int
    score: float
    is_field: bool = False

    def below_heading(self, question: str) -> str:
        """Return the text, behind the headings that alone say a word of the question: "0.6 (May 2022): Fixed." """
        words = {*word_stems(question)} - {*word_stems(f"{self.title} {self.text}")}
        above = [part.rstrip(":：") for part in self.heading.split(_BELOW)]
        added = [part for part in above if words & {*word_stems(part)} and not _ASKS.search(part)]
        heading = _BELOW.join(added)
        colon = "：" if CJK.search(heading) else ": "
        return f"{heading}{colon}{self.text}" if added else self.text


class Quotes(NamedTuple):
    """The chosen sentences, the best first, and the probability that they answer."""

    quotes: list[Sentence]
    probability: float

    @property
    def sure(self) -> bool:
        """Return True where they are called an answer."""
        return self.probability >= weights()["sure"]


@cache
def weights() -> Json:
    """Return what was fitted: ``signals`` of a sentence, ``steps`` between sentences, ``answers`` of the whole."""
    return dict(json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")))


def best_quotes(
    question: str,
    results: Evidence,
    *,
    similar: Similar | None = None,
    rerank: Rerank | None = None,
) -> Quotes:
    """Return the sentences that answer best together, and how probably they do.

    Args:
        question: as asked.
        results: the evidence, best first.
        similar: ``KnowledgeBase.words``, for words that mean nearly the same.
        rerank: ``KnowledgeBase.rerank``.
    """
    pool = split_sentences(results[:PASSAGES])
    words = {*word_stems(question)}
    # a field that nobody asks for is no sentence of its document
    candidates = [s for s in pool if not s.is_field or words & {*word_stems(s.text)}]
    reader = Reader(question, candidates or pool, similar, rerank)
    if rows := reader.beginning():
        return Quotes([reader.pool[row] for row in rows], 1.0)
    chosen = reader.choose({**weights()["signals"], **weights()["steps"]})
    seen = reader.together(chosen)
    score = sum(weight * seen[name] for name, weight in weights()["answers"].items())
    probability = 1 / (1 + math.exp(-score)) if chosen else 0.0
    return Quotes([reader.pool[row] for row in chosen], probability)


def in_reading_order(quotes: Sequence[Sentence]) -> list[Sentence]:
    """Return quotes with those of one document side by side, in its order."""
    documents = list(dict.fromkeys(quote.doc_id for quote in quotes))
    return sorted(quotes, key=lambda quote: (documents.index(quote.doc_id), quote.n, quote.place))


_ASKS = re.compile(r"[?？][\"'”’」』)）*_\s]*$|[吗呢嗎][。.]?$")
_SPEAKER = re.compile(r"^(?:[QA]|问|答|問)\s*[:：]\s*")


def split_sentences(results: Evidence) -> list[Sentence]:
    """Return the sentences that may be quoted; one that asks is the heading of those after it, and one word is none.

    >>> text = "Mills\\n\\nWhat do they do?\\n\\nThey grind."
    >>> sentences = split_sentences([{"result_id": "a", "evidence": text, "metadata": {}, "score": 1.0}])
    >>> [(sentence.heading, sentence.text) for sentence in sentences]
    [('What do they do?', 'They grind.')]
    """
    chosen = []
    seen = set()
    for n, result in enumerate(results, 1):
        metadata = result["metadata"]
        doc_id = str(metadata.get("doc_id") or result["result_id"])
        title = _title(str(metadata.get("title") or ""), result["evidence"])
        pieces = parts(result["evidence"], title) or parts(result["evidence"], "")
        lead = ""
        above = ""
        for place, (heading, text) in enumerate(pieces):
            lead = lead if heading == above else ""
            above = heading
            text = _SPEAKER.sub("", text)
            if _ASKS.search(text):
                lead = text
            elif len(terms(text)) > 1 and (doc_id, text) not in seen:  # pieces may overlap
                seen.add((doc_id, text))
                is_field = text.partition(": ")[0] in (metadata.get("fields") or ())
                chosen.append(
                    Sentence(
                        n, doc_id, title, lead or heading, text, place, result["score"], is_field
                    )
                )
    return chosen


def _title(title: str, text: str) -> str:
    """Return a title, or "" for one that is only how the text begins."""
    begins = words_in(title) > _TITLE and text.startswith(title.rstrip(" ….")[:40])
    return "" if begins else title


# --- What is seen of a sentence ---


@lru_cache(maxsize=32_768)
def word_stems(text: str) -> tuple[str, ...]:
    """Return the stems of the words that say something, in their order; of Chinese pairs of characters."""
    return tuple(map(stem, content_terms(text)))


_SAME = 0.95
"""A word so near to another is the same."""


class Reader:
    """What a question looks for, and what each sentence of the evidence has of it.

    Args:
        question: as asked.
        pool: the sentences.
        matches: the nearest word for each word of the question.
        rerank: a score for each text.
    """

    def __init__(
        self,
        question: str,
        pool: Sequence[Sentence],
        matches: Similar | None = None,
        rerank: Rerank | None = None,
    ):
        self.question = question
        self.pool = pool
        self.place = {
            word: column for column, word in enumerate(dict.fromkeys(word_stems(question)))
        }
        self.texts = [sentence.text for sentence in pool]
        self.documents = np.array([sentence.doc_id for sentence in pool])
        chinese = bool(CJK.search(question))
        self.foreign = np.array([float(bool(CJK.search(text)) != chinese) for text in self.texts])
        self.said = self._measure_coverage(self.texts)
        self.weights = rarity(self.said)
        first = [
            row == 0 or pool[row - 1][:4] != sentence[:4] for row, sentence in enumerate(pool)
        ]
        # what follows a question at once answers it
        self.below = np.where(first, 1.0, 0.7)[:, None]
        headed = self.below * self._measure_coverage([sentence.heading for sentence in pool])
        titled = self._measure_coverage([sentence.title for sentence in pool])
        self.above = np.maximum(titled, headed)
        self.covered = np.maximum(self.said, 0.8 * self.above)
        # the sentences below one heading do not repeat one another for its words
        self.own = np.maximum(self.said, 0.8 * titled)
        self.near = (
            self._measure_meaning(matches)
            if matches is not None and pool
            else np.maximum(self.said, headed)
        )
        self.near_weights = rarity(self.near >= _SAME)
        self.signals = self._signals(rerank)

    def _measure_coverage(self, texts: Sequence[str]) -> np.ndarray:
        """Return sentences x words: 1 where the text says the word."""
        matrix = np.zeros((len(texts), len(self.place)))
        for row, text in enumerate(texts):
            for word in word_stems(text):
                if word in self.place:
                    matrix[row, self.place[word]] = 1
        return matrix

    def _measure_meaning(self, matches: Similar) -> np.ndarray:
        """Return sentences x words: how near the nearest word is of a sentence, or of what it stands below."""
        texts = list(dict.fromkeys([*self.texts, *(sentence.heading for sentence in self.pool)]))
        nearness = dict(zip(texts, np.array(matches(self.question, texts)["texts"]), strict=True))
        below = (
            0.8 * self.below * np.array([nearness[sentence.heading] for sentence in self.pool])
        )
        return np.maximum(np.array([nearness[text] for text in self.texts]), below)

    def _signals(self, rerank: Any) -> np.ndarray:
        """Return sentences x ``SIGNALS``."""
        said_share = self.said @ self.weights
        above = (self.above * (1 - self.said)) @ self.weights
        near_share = self.near @ self.near_weights
        led = self._led(said_share + 0.8 * above)
        ranks = np.array([1 / sentence.n for sentence in self.pool])
        sense = self._sense(
            said_share + 0.7 * above + near_share + 0.8 * led + 0.3 * ranks, rerank
        )
        begins = np.array([1 / (1 + sentence.place) for sentence in self.pool])
        foreign_sense = self.foreign * sense
        columns = (said_share, above, near_share, sense, foreign_sense, ranks, begins, led)
        return np.column_stack(columns)  # in the order of SIGNALS

    def _sense(self, likely: np.ndarray, rerank: Any) -> np.ndarray:
        """Return the reranker's score of the likely sentences; the others have the lowest of them."""
        first = np.argsort(-likely, kind="stable")[:RERANKED]
        scores = (
            rerank(self.question, [self._with_title(row) for row in first])
            if rerank and self.pool
            else None
        )
        sense = np.full(len(likely), min(scores) / 4 if scores else 0.0)
        if scores:
            sense[first] = np.array(scores) / 4
        return sense

    def _with_title(self, row: int) -> str:
        """Return a sentence behind its heading or title, so that a reranker knows what it is about."""
        sentence = self.pool[row]
        above = sentence.heading or sentence.title
        if plain_title(above) in spelled(sentence.text):
            return sentence.text
        return f"{above} {sentence.text}"

    def _led(self, covered: np.ndarray) -> np.ndarray:
        """Return how much the best sentence of another document says that names this one's title."""
        led = np.zeros(len(self.pool))
        folded = [spelled(text) for text in self.texts]
        for name, doc_id in {
            plain_title(sentence.title): sentence.doc_id for sentence in self.pool
        }.items():
            own = self.documents == doc_id
            leads = np.array([len(name) > 2 and name in text for text in folded], bool)
            led[own] = covered[leads & ~own].max(initial=0.0)
        return led

    def beginning(self) -> list[int]:
        """Return how the first document begins whose title is all that is asked for, as in 树是什么？"""
        titles = {
            plain_title(sentence.title): sentence.doc_id for sentence in reversed(self.pool)
        }
        question = spelled(self.question)
        only = [
            title
            for title in titles
            if title and title in question and not word_stems(question.replace(title, " "))
        ]
        document = titles[max(only, key=len)] if only else None
        rows = [row for row, sentence in enumerate(self.pool) if sentence.doc_id == document]
        return rows[:_DEFINING]

    def choose(self, model: Mapping[str, float]) -> list[int]:
        """Return rows of the sentences that answer best together: what one says is worth less in the next.

        Args:
            model: the weight of each signal and of what counts between sentences.
        """
        scores = self.signals @ np.array([model[name] for name in SIGNALS])
        covered = np.zeros(len(self.place))
        meant = np.zeros(self.near.shape[1:])
        titled = np.zeros(len(scores), bool)
        rest = set(range(len(scores)))
        quotes = list[int]()
        left = float(BUDGET)
        while rest and len(quotes) < QUOTES and left >= _SHORTEST:
            repeated = (self.own * covered) @ self.weights
            fresh = np.maximum(self.near - meant, 0.0) @ self.near_weights
            gains = scores - model["repeated"] * repeated + model["fresh"] * fresh
            row = max(rest, key=lambda n: (gains[n], -n))
            if quotes and gains[row] < model["share"] * scores.max():
                break
            rest.discard(row)
            sentence = self.pool[row]
            printed = not titled[row] and fold(sentence.title) not in fold(sentence.text)
            title = words_in(brief_title(sentence.title)) if printed else 0.0
            length = words_in(sentence.text) + title
            if quotes and length > left:
                continue
            left -= length
            quotes.append(row)
            covered = np.maximum(covered, self.covered[row])
            meant = np.maximum(meant, self.near[row])
            titled |= self.documents == sentence.doc_id
        return quotes

    def together(self, rows: Sequence[int]) -> dict[str, float]:
        """Return what is seen of the chosen sentences as a whole."""
        coverage, _, nearness, *_ = self.signals[rows].max(axis=0, initial=0.0)
        return {
            "bias": 1.0,
            "covered": float(self.covered[rows].max(axis=0, initial=0.0) @ self.weights),
            "meant": float(self.near[rows].max(axis=0, initial=0.0) @ self.near_weights),
            "best": float(coverage + nearness),
            "passage": max([self.pool[row].score for row in rows], default=0.0),
            "foreign": float(self.foreign[rows].max(initial=0.0)),
            "few": 1 / (1 + len(self.place)),
        }


_SHORTEST, _TITLE, _DEFINING, _COMMANDS = 6, 8, 2, 3


def rarity(matrix: np.ndarray) -> np.ndarray:
    """Return a weight for each word, 1 in all: a word that most sentences say tells little."""
    weights = np.log1p(len(matrix) / (0.5 + matrix.sum(axis=0)))
    return np.asarray(weights / (weights.sum() or 1.0))


def plain_title(title: str) -> str:
    """Return a title as other texts write it: folded, without brackets."""
    return spelled(re.sub(r"\s*[(（][^()（）]*[)）]", "", title))


def words_in(text: str) -> float:
    """Return the length of a text in words; a Chinese character counts half a word."""
    return len(re.findall(r"\w+", CJK.sub(" ", text))) + len(CJK.findall(text)) / 2


def brief_title(title: str) -> str:
    """Return the title that is printed next to its quotes: only the first words of a long one."""
    cut_at = 2 * _TITLE if CJK.search(title) else 8 * _TITLE
    brief = title if len(title) <= cut_at else title[:cut_at].rstrip() + "…"
    return " ".join(brief.split())


# --- Whole sentences, list items, rows of tables, code; without their markup ---

LONGEST = 600
"""Characters of one quotation; a longer one is cut at a word."""


@lru_cache(
    maxsize=4_096
)  # a run splits what it found at its reflection, its merge and its answer
def parts(text: str, title: str) -> tuple[tuple[str, str], ...]:
    r"""Return ``(heading, text)`` of each sentence, list item, row of a table and block of code of a passage, in order.

    >>> parts("# Oven\n\n- It is **hot**. Mind it.\n\n|what|how|\n|--|--|\n|bread|220 °C|", "Oven")
    (('Oven', 'It is hot. Mind it.'), ('Oven', 'bread: how 220 °C'))
    >>> parts("- List files:\n\n`ls -l`\n\nRun it.", "")
    (('', 'List files: ls -l'), ('', 'Run it.'))
    """
    heading = ""
    opening = ""  # the line that ends with a colon before what it opens
    pieces = list[tuple[str, str]]()
    for block in blocks(text):
        if block.kind == "heading":
            heading = bare(block.text)
            opening = ""
            continue
        literal = block.kind == "code" or re.fullmatch("`[^`]+`", block.text)
        is_text = block.kind == "text" and not literal
        for words in sentences(bare(block.text)) if is_text else [_whole_piece(block)]:
            if not words or fold(words) == fold(title):
                continue
            if opening and pieces[-1][1] == cut(opening):
                pieces.pop()  # it says nothing alone
            if literal:
                item = pieces.pop()[1] if pieces and pieces[-1][1].endswith((":", "：")) else ""
                words = f"{opening or item} {words}".strip()
                opening = ""
            pieces.append((_BELOW.join(filter(None, (heading, opening))), cut(words)))
            if is_text:
                opening = words if words[-1] in ":：" else ""
    return tuple(pieces)


def _whole_piece(block: Block) -> str:
    """Return a list item, a row or code in words; a program is not a quotation."""
    if block.kind in ("item", "text"):
        return bare(ITEM.sub("", block.text))
    if block.kind == "row":
        head = block.head.partition("\n")[0]
        return _row(
            [bare(cell) for cell in cells(head)] if head else [],
            [bare(cell) for cell in cells(block.text)],
        )
    lines = [line.strip() for line in block.text.split("\n") if line.strip()]
    return "" if len(lines) > _COMMANDS else "; ".join(lines)


def _row(header: Sequence[str], cells: Sequence[str]) -> str:
    """Return a row of a table in words: its first cell, and the others by their heads."""
    heads = header if len(header) == len(cells) else [""] * len(cells)
    first, *rest = [(head, cell) for head, cell in zip(heads, cells, strict=True) if cell] or [
        ("", "")
    ]
    return ": ".join(
        filter(None, [first[1], ", ".join(f"{head} {cell}".strip() for head, cell in rest)])
    )


_MARKUP = re.compile(
    r"`+([^`]+)`+"  # which is meant literally
    r"|(?<![^\s(（《“\"'])([*_])(?=[^\s*_])([^*_`\n]+)(?<=\S)\2(?![\w*{\\^])|\*\*|__(?=\S)|(?<=\S)__|`+|^\s*>+\s?|<!--[^<>]{0,400}>"
    # only elements of HTML: the <file> of a command is text
    rf"|</?(?:{'|'.join(block_names)}|abbr|big|br|code|del|em|font|img|ins|kbd|mark|picture|pre|script|small|source|span|strong"
    r"|style|sub|sup|textarea|tt|video|[abisu])(?:[\s/][^<>]{0,400})?>"
)


def bare(text: str) -> str:
    """Return a text without markup, control characters and marks of its own, which would point at other evidence.

    >>> bare("**Run** `tarn save` [2] as in [the guide](http://x)\\x1b!")
    'Run tarn save as in the guide!'
    >>> bare("<b>Run _tarn_</b> <file> in `__init__` or my_own_file, (g)_a (h)_b<br/>")
    'Run tarn <file> in __init__ or my_own_file, (g)_a (h)_b'
    """
    text = re.sub(r"\[\s*!\[[^\[\]]*\]\([^()]*\)\s*\]\([^()]*\)", "", text)  # a badge
    text = re.sub(r"!?\[([^\[\]]*)\]\([^()\s]*\)", r"\1", text)
    text = re.sub(
        r"\s?[\[【]\d+(?:[,，、]\s*\d+)*[\]】]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]",
        "",
        text,
    )
    return re.sub(r"\s+", " ", _MARKUP.sub(r"\1\3", text)).strip()


def cut(text: str) -> str:
    """Return a text that is not too long to be quoted."""
    if len(text) <= LONGEST:
        return text
    return re.sub(r"\s+\S*$", "", text[:LONGEST]) + " …"
