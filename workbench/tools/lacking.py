"""What of a question the evidence does not cover yet: names, and the words around them, for each name by itself.

By words alone: a passage covers for a name what it says when it is about that name or says it, or was reached from one
that is. That somewhere else somebody was born covers nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from workbench.context import KnowledgeBase, Passage
from workbench.text import CJK, fold
from workbench.tools.asked_words import AskedWords, Word, stems
from workbench.tools.signals import Named, Question

LITTLE = 0.08
"""The share of the words' weight that may be left open."""
MOST_SIDES = 4
"""Names of a question that are followed each by itself."""
_COMPARED = """
    first last older oldest younger youngest earlier earliest later latest more most less least longer longest same both
    other different before after 更早 更晚 更大 更小 更多 更长 最早 最晚 早于 晚于 相同 同一 一样 不同 之前 之后
"""
_COMPARING = frozenset(_COMPARED.split())
"""Words by which a question compares: no text on one of its sides says them."""


class Lack(NamedTuple):
    """One thing that is missing: a name, a field that other documents have, or a word; for which name of the question.

    ``what`` is as the question writes it.
    """

    kind: Literal["name", "field", "word"]
    what: str
    side: str


class Piece(NamedTuple):
    """Words of the question as it writes them."""

    said: str
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Side:
    """One name of the question and where it is known; without a name: whatever the question is about."""

    name: str
    writings: tuple[str, ...] = ()
    doc_ids: frozenset[str] = frozenset()
    chunk_ids: frozenset[str] = frozenset()

    def holds(self, passage: Passage) -> bool:
        """Whether a passage is about the name, or says it."""
        if not self.name or passage["doc_id"] in self.doc_ids or passage["chunk_id"] in self.chunk_ids:
            return True
        text = fold(f"{passage['title']} {passage['text']}")
        return any(name in text for name in self.writings)

    @classmethod
    def of(cls, named: Named) -> Side:
        """The side of a name that is known."""
        return cls(named.name, tuple(named.names), named.doc_ids, named.chunk_ids)


@dataclass(frozen=True)
class Demand:
    """What a question asks for: its words around the names, and the names."""

    words: AskedWords
    sides: tuple[Side, ...]

    @classmethod
    def of(cls, question: Question, text: str, knowledge: KnowledgeBase) -> Demand:
        """Read it; titles count as names that nobody linked, and a question without names has one side."""
        sides = [Side.of(named) for named in question.named]
        for title in knowledge.ways.titles_in(text):
            doc_ids = frozenset(title["doc_ids"])
            if not any(doc_ids & side.doc_ids for side in sides):
                written = text[title["start"] : title["end"]]
                sides.append(Side(written, (fold(written),), doc_ids))
        said = frozenset().union(*(stems(writing) for side in sides for writing in (side.name, *side.writings)))
        asked = AskedWords.of(question.rest, knowledge).words
        words = tuple(w for w in asked if w.forms.isdisjoint(said) and w.said not in _COMPARING)
        return cls(AskedWords(words), tuple(sides[:MOST_SIDES]) or (Side(""),))

    def left(self, held: Collection[str]) -> list[Piece]:
        """What no text of these stems says, nor says in other words; nothing where it weighs next to nothing.

        Words in a script that the texts are not written in are not missed: the texts would say them otherwise.

        >>> from workbench.tools.asked_words import forms
        >>> words = tuple(Word(2.0, forms(said), frozenset(), said) for said in ("born", "tarn", "出生"))
        >>> [piece.said for piece in Demand(AskedWords(words), ()).left({"tarn"})]
        ['born']
        """
        scripts = {bool(CJK.match(stem)) for stem in held} or {True, False}
        words = [word for word in self.words.words if bool(CJK.match(word.said)) in scripts]
        said = [not (word.forms.isdisjoint(held) and word.related.isdisjoint(held)) for word in words]
        pieces = list(_pieces(words, said))
        every = sum(word.weight for word in self.words.words)
        return pieces if sum(word.weight for piece in pieces for word in piece.words) > LITTLE * every else []


def _pieces(words: Sequence[Word], said: Sequence[bool]) -> Iterator[Piece]:
    """The words that are not said; Chinese pairs close up, and a sign between two that are said is no word.

    >>> words = [Word(1.0, frozenset(), frozenset(), pair) for pair in ("妻子", "子毕", "毕业", "业于", "born")]
    >>> [piece.said for piece in _pieces(words, [True, False, False, False, False])]
    ['毕业于', 'born']
    >>> [piece.said for piece in _pieces(words, [True, False, True, False, True])]
    []
    """
    at = 0
    while at < len(words):
        begun = at
        while at < len(words) and not said[at] and (at == begun or _overlap(words[at - 1], words[at])):
            at += 1
        if at == begun:
            at += 1
            continue
        text = words[begun].said + "".join(word.said[1:] for word in words[begun + 1 : at])
        if CJK.match(text):
            after = at < len(words) and said[at] and _overlap(words[at - 1], words[at])
            before = begun > 0 and said[begun - 1] and _overlap(words[begun - 1], words[begun])
            text = text[before : len(text) - after]
        if len(text) > 1:
            yield Piece(text, tuple(words[begun:at]))


def _overlap(one: Word, other: Word) -> bool:
    return bool(CJK.match(one.said) and CJK.match(other.said)) and one.said[-1] == other.said[0]


def lacks(side: Side, found: bool, left: Sequence[Piece], fields: Collection[str]) -> list[Lack]:
    """What is missing for one side: its name when nothing on it was found, and the words that are left.

    Args:
        side: the name.
        found: whether any passage holds it.
        left: what no passage of this side says.
        fields: stems of the names of the fields that documents of this base have.
    """
    missing = [Lack("name", side.name, side.name)] if side.name and not found else []
    kinds = ((any(word.forms & set(fields) for word in piece.words), piece.said) for piece in left)
    return missing + [Lack("field" if known else "word", said, side.name) for known, said in kinds]


def field_stems(fields: Mapping[str, Any]) -> frozenset[str]:
    """The stems of the names of a document's fields that hold something."""
    names = (name for name, value in fields.items() if value not in (None, "", []))
    return frozenset().union(*(stems(name.replace("_", " ")) for name in names))
