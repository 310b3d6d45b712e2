"""What of a question the evidence does not cover yet: names, and the words around them, for each name by itself.

By words alone: a passage covers for a name what it says when it is about that name or says it, or was reached from one
that is. That somewhere else somebody was born covers nothing. What texts in another language than the question's do not
say is named in theirs, as far as its words are known in both (作者, author): they could not say the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from workbench.knowledge.vocabulary import country, country_names, words_of
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


Groups = tuple[tuple[str, ...], ...]
"""Words that say nearly the same, of both languages."""


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
    groups: Groups = ()

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
        groups = tuple((*group.get("en", ()), *group.get("zh", ())) for group in knowledge.lexicon())
        words = tuple(
            word._replace(related=word.related | roots_of(counterparts(word.said, groups)))
            for word in asked
            if word.forms.isdisjoint(said) and word.said not in _COMPARING
        )
        return cls(AskedWords(words), tuple(sides[:MOST_SIDES]) or (Side(""),), written_in(question.rest), groups)

    def left(self, held: Collection[str], languages: Collection[str] = ()) -> list[Piece]:
        """What no text of these stems says, nor says in other words.

        Args:
            held: stems of the texts.
            languages: in which they are written, if that is known.

        >>> words = tuple(Word(2.0, stems(said), frozenset(), said) for said in ("作者", "毕业", "nba"))
        >>> demand = Demand(AskedWords(words), (), "zh")
        >>> [piece.said for piece in demand.left({"tarn"}, {"en"})], [piece.said for piece in demand.left(set())]
        (['writer', 'graduated', 'nba'], ['作者', '毕业', 'nba'])
        """
        words = list(self.words.words)
        if languages and self.language not in languages:
            words = [told for word in words if (told := _in_other_words(word, self.language, self.groups))]
        said = [not (word.forms.isdisjoint(held) and word.related.isdisjoint(held)) for word in words]
        return list(_pieces(words, said))


def written_in(text: str) -> str:
    """The language of most of a text.

    >>> written_in("The Teahouse (茶馆) is a play."), written_in("《茶馆》是Lao She写的。"), written_in("1993")
    ('en', 'zh', 'en')
    """
    return "zh" if 4 * sum(bool(CJK.match(sign)) for sign in text) > len(text) else "en"


def _in_other_words(word: Word, language: str, groups: Groups) -> Word | None:
    """A word of this language in the other one, None where nobody knows it there; any other word as it is."""
    if bool(CJK.match(word.said)) != (language == "zh") or not word.said.isalpha():
        return word
    others = counterparts(word.said, groups)[:1]
    return word._replace(forms=roots_of(others), said=others[0]) if others else None


@cache
def counterparts(word: str, groups: Groups = ()) -> tuple[str, ...]:
    """What the other language says for a word, the nearest first; nothing where nobody knows it.

    Args:
        word: of a question.
        groups: words of the corpus that say nearly the same, in both languages.

    >>> counterparts("作者")[:2], counterparts("fathers")[:2], counterparts("台湾")[:1], counterparts("若川")
    (('writer', 'author'), ('父亲', '母亲'), ('Taiwan',), ())
    >>> counterparts("组长", (("lead", "组长"),))
    ('lead',)
    """
    own, chinese = stems(word), bool(CJK.match(word))
    known = [list(group) for group in groups if any(stems(one) == own for one in group)]
    known += [list(group) for group in _groups() if own in group.values()]
    known += [country_names(name)] if (name := country(word)) else []
    return tuple(dict.fromkeys(one for group in known for one in group if bool(CJK.match(one)) != chinese))


@cache
def _groups() -> list[dict[str, frozenset[str]]]:
    """Words of both languages that say nearly the same, each with its stems; the narrower groups come first."""
    pairs = files("workbench.tools").joinpath("both_languages.txt").read_text(encoding="utf-8").splitlines()
    groups = [pair.split() for pair in pairs if not pair.startswith("#")]
    return [{one: stems(one) for one in group} for group in (*groups, *(w[1:] for w in words_of("relation").values()))]


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
