"""What of a question the evidence does not cover yet: names, and the words around them, for each name by itself.

By words alone: a passage covers for a name what it says when it is about that name or says it, or was reached from one
that is. That somewhere else somebody was born covers nothing. What texts in another language than the question's do not
say is named in theirs, by the nearest of their words (作者, author): they could not say the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from workbench.ports import KnowledgeBase, Passage
from workbench.text import CJK, fold
from workbench.tools.query_terms import AskedWords, Word, roots_of, stems
from workbench.tools.scoring import Question

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


@dataclass(frozen=True)
class Demand:
    """What a question asks for: its words around the names, the names, and its language."""

    words: AskedWords
    sides: tuple[Side, ...]
    language: str = "en"

    @classmethod
    def of(cls, question: Question, text: str, knowledge: KnowledgeBase) -> Demand:
        """Read it; titles count as names that nobody linked, and a question without names has one side."""
        sides = [Side(named.name, named.names, named.doc_ids, named.chunk_ids) for named in question.named]
        for title in knowledge.ways.titles_in(text):
            doc_ids = frozenset(title["doc_ids"])
            if not any(doc_ids & side.doc_ids for side in sides):
                written = text[title["start"] : title["end"]]
                sides.append(Side(written, (fold(written),), doc_ids))
        said = frozenset().union(*(stems(writing) for side in sides for writing in (side.name, *side.writings)))
        asked = AskedWords.of(question.rest, knowledge).words
        words = tuple(word for word in asked if word.forms.isdisjoint(said) and word.said not in _COMPARING)
        return cls(AskedWords(words), tuple(sides[:MOST_SIDES]) or (Side(""),), written_in(question.rest))

    def left(self, held: Collection[str], languages: Collection[str] = ()) -> list[Piece]:
        """What no text of these stems says, nor says in other words.

        Args:
            held: stems of the texts.
            languages: in which they are written, if that is known.

        >>> near = {"作者": "writer", "毕业": "graduated", "nba": ""}
        >>> words = tuple(Word(2.0, stems(said), {}, said, other) for said, other in near.items())
        >>> demand = Demand(AskedWords(words), (), "zh")
        >>> [piece.said for piece in demand.left({"tarn"}, {"en"})], [piece.said for piece in demand.left(set())]
        (['writer', 'graduated', 'nba'], ['作者', '毕业', 'nba'])
        """
        words = list(self.words.words)
        if languages and self.language not in languages:
            words = [told for word in words if (told := _in_other_words(word, self.language))]
        return list(_pieces(words, [word.share(held) > 0 for word in words]))


def written_in(text: str) -> str:
    """The language of most of a text.

    >>> written_in("The Teahouse (茶馆) is a play."), written_in("《茶馆》是Lao She写的。"), written_in("1993")
    ('en', 'zh', 'en')
    """
    return "zh" if 4 * sum(bool(CJK.match(sign)) for sign in text) > len(text) else "en"


def _in_other_words(word: Word, language: str) -> Word | None:
    """A word of this language as the corpus writes it, None where nobody knows; any other word as it is."""
    if bool(CJK.match(word.said)) != (language == "zh") or not word.said.isalpha():
        return word
    return word._replace(forms=roots_of([word.nearest]), said=word.nearest) if word.nearest else None


def _pieces(words: Sequence[Word], said: Sequence[bool]) -> Iterator[Piece]:
    """The words that are not said; Chinese pairs close up, and a sign between two that are said is no word.

    >>> words = [Word(1.0, frozenset(), {}, pair) for pair in ("妻子", "子毕", "毕业", "业于", "born")]
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
