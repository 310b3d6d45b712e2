"""What the words of a question say of relations: which ones they call up, in which order, and what is asked for.

A relation is called up by the words of its own name (``former_members``: former, members) and by every word, English
or Chinese, that ``words.json`` puts beside one of them, and by what the base's own vocabulary calls it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from workbench.knowledge import vocabulary
from workbench.knowledge.names.surfaces import key_of
from workbench.ports import Entity, KnowledgeBase, Mention, RelationKind
from workbench.text import CJK, fold, stem
from workbench.tools.scoring import claimed_names, content_terms

# --- Who a question may be about: every known name in it, by how surely the writer means a name ---

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_FIRST_WORDS = "and who what which when where how list name describe can the in is are was were did do does give"
_FIRST = frozenset(_FIRST_WORDS.split())
"""Words whose capital at the head of a question says nothing."""
_CAPITAL, _LETTER, _SIGN, _AS_WRITTEN = 1.0, 0.05, 0.5, 0.6
"""What speaks for a name: a word with a capital or digit, each letter, each Chinese sign, its own spelling."""
_LOST_CAPITAL = -1.5
"""What a word with a capital beside it speaks against it: the name should have been longer."""
_BEHIND = 4.0
"""Names that much worse than the best are nobody's topic."""
MOST_TOPICS = 50
"""Distinct names that are weighed; a question that names more asks for no one path."""


@dataclass(frozen=True)
class Topic:
    """Whom ``text[start:end]`` may name, and how surely; ``whole``: by a name that leaves no other beside it."""

    start: int
    end: int
    entity: Entity
    score: float
    whole: bool


def topics(text: str, given: Sequence[str], knowledge: KnowledgeBase) -> list[Topic]:
    """Whom a question may be about, best first.

    Args:
        text: the question.
        given: names that it is about, when they are known: no other is looked at, if one of them stands there.
        knowledge: where the names are.
    """
    readings, found = knowledge.typed.readings(text), []
    surnames = [mention for mention in knowledge.link(text) if mention not in readings]
    first: dict[str, Mention] = {}  # a name that stands there a thousand times is one topic
    for mention in [*readings, *surnames]:
        first.setdefault(mention["entity_id"], mention)
    for mention in list(first.values())[:MOST_TOPICS]:
        entity = knowledge.entity(mention["entity_id"])
        if entity:
            place = mention["start"], mention["end"]
            found.append(Topic(*place, entity, _surely(text, *place, entity), _whole(text, *place)))
    keys = {key_of(name) for name in given}
    named = [t for t in found if keys & {key_of(text[t.start : t.end]), key_of(t.entity["name"])}]
    found = sorted(named or found, key=lambda t: (-round(t.score, 6), t.start, t.entity["entity_id"]))
    return [topic for topic in found if topic.score > found[0].score - _BEHIND]


def _surely(text: str, start: int, end: int, entity: Entity) -> float:
    """How surely a name is meant: by its length and its capitals, and those that it leaves unexplained."""
    total = _LETTER * (end - start) + _SIGN * len(CJK.findall(text[start:end]))
    for match in _WORD.finditer(text):
        word = match.group()
        asking = match.start() == 0 and key_of(word) in _FIRST
        if not asking and not CJK.search(word) and any(c.isupper() or c.isdigit() for c in word):
            total += _CAPITAL if start <= match.start() < end else _LOST_CAPITAL
    return total + (_AS_WRITTEN if _as_written(text, start, end, entity["name"]) else 0.0)


def _whole(text: str, start: int, end: int) -> bool:
    """Whether it is written like a name, and nothing else in the question is."""
    inside = text[start:end]
    named = (len(CJK.findall(inside)) > 1) or any(c.isupper() or c.isdigit() for c in inside)
    return named and not claimed_names(f"{text[:start]} / {text[end:]}")


def _as_written(text: str, start: int, end: int, name: str) -> bool:
    """Whether the name stands there sign for sign; marks at its ends belong to no word: "Moulin Rouge!"."""
    place = text.find(name, max(0, start - 3), end + 3)
    return 0 <= place <= start and place + len(name) >= end


_FORM_WORDS = frozenset(("has", "have", "by", "in", "of", "from", "to", "is", "at", "on", "for", "the", "a", "with"))
_TOKEN = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_DOES = frozenset(("did", "do", "doe", "has", "have"))
_IS = frozenset(("is", "are", "was", "were", "有", "是", "为", "叫"))
UNTYPED = frozenset({"mentions"})
"""Relations that say nothing but that two names stand together."""
WORKS = frozenset({"Node", "Document", "Book", "Song", "Work", "Album"})
"""Types that "books" and "works" ask for; those of a base's documents join them."""


class Cue(NamedTuple):
    """A word that calls up relations: its place among the tokens, and how much it speaks for each of them."""

    place: int
    word: str
    weights: Mapping[str, float]


@dataclass(frozen=True)
class Asked:
    """A question with a gap where its topic stands.

    Attributes:
        words: stems and Chinese words in order; the gap is ``""``.
        gap: its place.
        cues: in the order of the text.
        kind: ``person`` or ``work``; "" where the question does not say.
        relation: the cue that stands with the question word, if any.
        more: "also", "other".
        read: the share of the content words that call up a relation or ask, 0 to 1.
        several: more than one thing is asked.
    """

    words: tuple[str, ...]
    gap: int
    cues: tuple[Cue, ...]
    kind: str = ""
    relation: Cue | None = None
    more: bool = False
    read: float = 1.0
    several: bool = False

    def orders(self) -> list[tuple[Cue, ...]]:
        """The cues in the orders in which a path may meet them: from the topic outwards, what is asked for last."""
        last = self.relation
        inner = [cue for cue in self.cues if cue is not last]
        end = (last,) if last else ()
        near = sorted(inner, key=lambda cue: (abs(cue.place - self.gap), -cue.place))
        left = [cue for cue in reversed(inner) if cue.place < self.gap]
        right = [cue for cue in inner if cue.place > self.gap]
        found = [(*some, *end) for some in (near, right + left, left + right)]
        return [order for place, order in enumerate(found) if order not in found[:place]]


@dataclass(frozen=True)
class Lexicon:
    """The words of a base's relations, by stem."""

    relations: Mapping[str, Mapping[str, float]]
    chinese: re.Pattern[str] = field(repr=False)
    works: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        kinds: Sequence[RelationKind],
        called: Mapping[str, Collection[str]] = MappingProxyType({}),
        nouns: Collection[str] = (),
    ) -> Lexicon:
        """The lexicon of a base with these relations.

        Args:
            kinds: of relations.
            called: what the base's vocabulary calls a relation.
            nouns: what it calls its documents.
        """
        said: dict[str, set[str]] = defaultdict(set)
        for name in sorted({kind["type"] for kind in kinds} - UNTYPED):
            own = frozenset(stem(fold(part)) for word in called.get(name, ()) for part in fold(word).split())
            for word in words_of_relation(name) | (own - _FORM_WORDS):
                said[word].add(name)
        relations = {word: dict.fromkeys(sorted(names), 1 / len(names)) for word, names in said.items()}
        works = frozenset(stem(fold(noun)) for noun in nouns)
        return cls(relations, _chinese(tuple(sorted({*said, *works}))), works)

    def read(self, text: str, start: int, end: int) -> list[Asked]:
        """A question whose topic is ``text[start:end]``; it may be read in two ways."""
        before, after = self.tokens(text[:start]), self.tokens(text[end:])
        words, gap = (*before, "", *after), len(before)
        cues = tuple(Cue(i, w, self.relations[w]) for i, w in enumerate(words) if w in self.relations)
        ways = ["work" if word in self.works else _asking().get(word, "") for word in words]
        content = [word for word in content_terms(f"{text[:start]} / {text[end:]}") if not self._known(word)]
        read = 1 - len(content) / (len(content) + sum(map(bool, ways)) + len(cues) or 1)
        several = sum(way in ("person", "which") for way in ways) > 1
        said = self._asked(words, ways, gap, cues)
        return [Asked(words, gap, cues, kind, relation, "more" in ways, read, several) for kind, relation in said]

    def _known(self, term: str) -> bool:
        """Whether a term of the keyword index, a bigram in Chinese, is read by the words of this lexicon."""
        return any(word in self.relations or word in self.works or word in _asking() for word in self.tokens(term))

    def tokens(self, text: str) -> list[str]:
        """Stems, and in Chinese the longest known words, every other character by itself.

        >>> Lexicon.of([]).tokens("《茶馆》和哪些作品 married")
        ['茶', '馆', '和', '哪些', '作品', 'marri']
        """
        found: list[str] = []
        for token in _TOKEN.findall(fold(text)):
            found += self.chinese.findall(token) if CJK.match(token) else [stem(token)]
        return found

    def _asked(
        self, words: Sequence[str], ways: Sequence[str], gap: int, cues: Sequence[Cue]
    ) -> list[tuple[str, Cue | None]]:
        """What is asked for: by "who", by the noun at "which", or by the only word that can be meant."""
        at = {cue.place: cue for cue in cues}
        wh = next((i for i, way in enumerate(ways) if way in ("person", "which")), None)
        if wh is None:
            return [self._unasked(words, ways, cues)]
        person = ways[wh] == "person"
        kind = "person" if person else ""
        after = wh + 2 if ways[wh + 1 : wh + 2] == ["more"] else wh + 1
        if not person and _DOES.intersection(words[after : after + 1]):  # "what else did": the verb tells how
            return [("", None)]
        for places in (range(wh + 1, len(words)), range(wh - 1, -1, -1)):
            for place in places:
                if place == gap and not (person and places.step < 0):
                    break
                if not person and ways[place] == "work":
                    return [("work", None)]
                if place in at:
                    made = not person and wh >= len(words) - 2 and not _IS.intersection(words[place + 1 : wh])
                    return [("work", None), ("", at[place])] if made and places.step < 0 else [(kind, at[place])]
        return [(kind, None)]

    @staticmethod
    def _unasked(words: Sequence[str], ways: Sequence[str], cues: Sequence[Cue]) -> tuple[str, Cue | None]:
        """What is asked for without a question word: at the head in English, at the end in Chinese; or "when"."""
        when = next((cue for cue in cues if cue.word in _when()), None)
        if when:
            return "", when
        at = {cue.place: cue for cue in cues}
        chinese = any(CJK.match(word) for word in words)
        heads = [i for i in range(len(words)) if i in at or ways[i] == "work"]
        head = heads[-1 if chinese else 0] if heads else -1
        return ("", at[head]) if head in at else ("work" if heads else "", None)


@cache
def _when() -> frozenset[str]:
    return frozenset(stem(fold(word)) for word in vocabulary.words_of("relation")["when"])


@cache
def _concepts() -> dict[str, frozenset[str]]:
    """Every stem and Chinese word of a kind of relation, by the kind."""
    return {
        name: frozenset(stem(fold(word)) for word in words) for name, words in vocabulary.words_of("relation").items()
    }


@cache
def _words() -> frozenset[str]:
    return frozenset().union(*_concepts().values())


@cache
def _asking() -> dict[str, str]:
    return {stem(fold(word)): way for way, words in vocabulary.words_of("asking").items() for word in words}


def words_of_relation(name: str) -> frozenset[str]:
    """The stems and Chinese words that call a relation up.

    >>> sorted({"spous", "wife", "妻子", "born"} & words_of_relation("spouse"))
    ['spous', 'wife', '妻子']
    """
    parts = re.findall(r"[A-Z]?[^\W_A-Z]+|[A-Z]+", name.replace("_", " "))
    own = {stem(fold(part)) for part in parts} - _FORM_WORDS
    own |= {word for part in parts if CJK.match(part) for word in _chinese(tuple(sorted(_words()))).findall(fold(part))}
    beside = [words for words in _concepts().values() if words & own]
    return frozenset(own).union(*beside)


@cache
def _chinese(words: tuple[str, ...]) -> re.Pattern[str]:
    known = {word for word in (*words, *_asking()) if CJK.match(word)}
    return re.compile("|".join([*sorted(known, key=lambda word: (-len(word), word)), "."]))
