"""Known names in a text: longest match first, folded, in both languages, and no title made of ordinary words by mistake.

A name is a sequence of units: a Latin word or number, or one Chinese character; what stands between units does not count
("Spider-Man" is "spider man", "克里斯托弗·诺兰" needs no dot). A name all of whose words are ordinary ("Up", "The Game") is a
name only where the writer says so: in 《》 or quotes, in capitals where a capital is not the rule, or after words such as
"directed". A surname stands for its best connected bearer when nobody else of that name comes near.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from workbench.context import Entity, Mention
from workbench.text import CJK, fold

_UNIT = re.compile(
    r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|(?:[^\W_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[\u0300-\u036f])+|&"
)
_STOP = frozenset("a an the of in on at to and or for from with by as is it its".split())
_ARTICLES = ("the", "a", "an")
_SUFFIXES = ("jr", "sr", "ii", "iii", "iv")
_PARTICLES = ("de", "del", "della", "van", "von", "der", "den", "da", "di", "du", "la", "le", "el", "al", "bin")
_OPENS, _CLOSES = "《〈“‘\"'「『«*_", "》〉”’\"'」』»*_"
_CUE = re.compile(
    r"(?:\b(?:directed|directs?|called|titled|named|watch(?:ed)?|seen|saw|similar to|(?:films?|movies?) like|cast of|"
    r"plot of|director of|stars? of|stars? in|starred in|starring in|acted in|year was|when was|when did|about the film|"
    r"the (?:film|movie))|compare|between)\s+$",
    re.IGNORECASE,
)
_SURNAME_LEAD = 2.0


class Unit(NamedTuple):
    """One unit of a text: ``text[start:end]``, folded."""

    start: int
    end: int
    key: str


@lru_cache(maxsize=50_000)
def _folded(word: str) -> str:
    return "and" if word == "&" else fold(word)


def units(text: str) -> list[Unit]:
    """The units of a text with their places.

    >>> [u.key for u in units("Spider-Man & 诺兰's Amélie")]
    ['spider', 'man', 'and', '诺', '兰', 's', 'amelie']
    """
    return [Unit(m.start(), m.end(), _folded(m.group())) for m in _UNIT.finditer(text)]


def key_of(name: str) -> str:
    """What two writings of one name share.

    >>> key_of("Spider-Man"), key_of("SPIDER MAN"), key_of("克里斯托弗·诺兰") == key_of("克里斯托弗诺兰")
    ('spider man', 'spider man', True)
    """
    return " ".join(unit.key for unit in units(name))


@cache
def ordinary_words() -> frozenset[str]:
    """About 4,000 English words that are common in lower case (``ordinary_words.txt``: counted in openings of articles)."""
    return frozenset(files("workbench.knowledge").joinpath("ordinary_words.txt").read_text(encoding="utf-8").split())


@dataclass(frozen=True)
class _Surface:
    """One writing of a name, and who bears it, best first: (rank of the writing, minus relations, entity id)."""

    bearers: tuple[tuple[int, int, str], ...]
    ordinary: bool
    surname: bool


class Linker:
    """A compiled matcher over entities.

    Args:
        entities: who can be named; categories (genres, countries, years) are not given to it.
        degrees: relations of each entity, by which one of several bearers of a name is chosen.
        common: keys of names that the corpus itself writes in lower case (``common_keys``), for which ordinary rules hold.
        years: entity id -> year, so that "Halloween (2018)" is the right one.
    """

    def __init__(
        self,
        entities: Iterable[Entity],
        degrees: dict[str, int],
        common: Collection[str] = (),
        years: dict[str, int] | None = None,
    ):
        self._years, self._common = years or {}, frozenset(common)
        full: dict[str, set[tuple[int, int, str]]] = defaultdict(set)
        surnames: dict[str, set[tuple[int, int, str]]] = defaultdict(set)
        for entity in entities:
            entity_id = entity["entity_id"]
            for rank, name in enumerate([entity["name"], *entity["aliases"]]):
                key = key_of(name)
                bearer = (min(rank, 1), -degrees.get(entity_id, 0), entity_id)
                for variant, worse in _variants(key):
                    full[variant].add((bearer[0] + worse, *bearer[1:]))
                if entity["type"] == "Person":
                    for short in _surnames(name, key):
                        surnames[short].add((0, *bearer[1:]))
        self._surfaces = {key: _Surface(tuple(sorted(b)), self._is_ordinary(key), False) for key, b in full.items()}
        for key, bearers in surnames.items():
            ranked = sorted(bearers)
            clear = len(ranked) == 1 or ranked[0][1] <= _SURNAME_LEAD * ranked[1][1]
            if key not in self._surfaces and clear and not self._is_ordinary(key):
                self._surfaces[key] = _Surface(tuple(ranked[:1]), False, True)
        self._lengths: dict[str, list[int]] = defaultdict(list)
        for key in self._surfaces:
            parts = key.split(" ")
            if len(parts) not in self._lengths[parts[0]]:
                self._lengths[parts[0]].append(len(parts))
        for lengths in self._lengths.values():
            lengths.sort(reverse=True)

    def link(self, text: str) -> list[Mention]:
        """The known names in a text, in its order; where two overlap the longer wins."""
        return [mention for mention, _ in self.surfaces(text)]

    def find(self, name: str) -> str | None:
        """The entity of this name or alias, whatever its case and however ordinary; the best connected of several."""
        surface = self._surfaces.get(key_of(name))
        return surface.bearers[0][2] if surface else None

    def surfaces(self, text: str) -> Iterator[tuple[Mention, str]]:
        """As ``link``, each with the key under which it was found."""
        found = units(text)
        style = _Style(text)
        at = 0
        while at < len(found):
            length = next(self._accepted(text, found, at, style), 0)
            if length:
                key = " ".join(unit.key for unit in found[at : at + length])
                start, end = found[at].start, found[at + length - 1].end
                entity_id = self._choose(self._surfaces[key], text[end:])
                yield {"start": start, "end": end, "surface": text[start:end], "entity_id": entity_id}, key
            at += length or 1

    def lower_case(self, text: str) -> Iterator[str]:
        """Keys of names whose words stand in the text in lower case, from which ``common_keys`` counts."""
        found = units(text)
        for at in range(len(found)):
            for key, length in self._known(text, found, at):
                words = [text[u.start : u.end] for u in found[at : at + length]]
                if not CJK.match(key) and any(w.islower() for w in words) and not any(w[0].isupper() for w in words):
                    yield key

    def _known(self, text: str, found: Sequence[Unit], at: int) -> Iterator[tuple[str, int]]:
        for length in self._lengths.get(found[at].key, ()):
            part = found[at : at + length]
            key = " ".join(unit.key for unit in part)
            if len(part) == length and key in self._surfaces and _unbroken(text, part):
                yield key, length

    def _accepted(self, text: str, found: Sequence[Unit], at: int, style: _Style) -> Iterator[int]:
        for key, length in self._known(text, found, at):
            if self._says_name(self._surfaces[key], key, text, found, at, length, style):
                yield length

    def _says_name(
        self, surface: _Surface, key: str, text: str, found: Sequence[Unit], at: int, length: int, style: _Style
    ) -> bool:
        part = found[at : at + length]
        start, end = part[0].start, part[-1].end
        if _quoted(text, start, end):
            return True
        if CJK.match(key):
            return length > 1
        words = [text[u.start : u.end] for u in part]
        content = [w for w, u in zip(words, part, strict=True) if u.key not in _STOP] or words
        capital = all(not w[0].islower() for w in content) and any(w[0].isupper() for w in words)
        if surface.surname:
            return (capital or style.careless) and not _inside_longer_name(text, found, at, length, style)
        if not surface.ordinary:
            return capital or len(key) > 3
        if capital and style.tells:
            return not style.starts(start) or (length > 1 and len(content) > 1) or style.chinese
        cued = bool(_CUE.search(text[:start])) and all(u.key not in _STOP for u in part[-1:])
        if capital or style.careless:
            return cued or (len(content) > 1 and key not in self._common and not key.isdigit())
        return False

    def _is_ordinary(self, key: str) -> bool:
        """Whether every word that carries the name is ordinary, or a number, or the corpus writes the name in lower case."""
        if CJK.match(key):
            return False
        content = [word for word in key.split(" ") if word not in _STOP]
        return key in self._common or all(
            word in ordinary_words() or word.isdigit() or len(word) == 1 for word in content
        )

    def _choose(self, surface: _Surface, after: str) -> str:
        year = re.match(r"\s*[》”\"'’]?\s*[(（]?\s*((?:19|20)\d\d)\b", after)
        if year and len(surface.bearers) > 1:
            for _, _, entity_id in surface.bearers:
                if self._years.get(entity_id) == int(year[1]):
                    return entity_id
        return surface.bearers[0][2]


def _variants(key: str) -> Iterator[tuple[str, int]]:
    """(key, how much worse than the name itself): a name goes by itself and without its article."""
    if key:
        yield key, 0
    first, _, rest = key.partition(" ")
    if first in _ARTICLES and rest:
        yield rest, 2


def _surnames(name: str, key: str) -> Iterator[str]:
    """The short forms by which a person is named.

    >>> list(_surnames("Guillermo del Toro", "guillermo del toro")), list(_surnames("克里斯托弗·诺兰", "克 里 斯 托 弗 诺 兰"))
    (['toro', 'del toro'], ['诺 兰'])
    """
    if CJK.search(name):
        parts = re.split(r"[·・•‧．]", name)
        if len(parts) > 1 and len(parts[-1]) > 1:
            yield key_of(parts[-1])
        return
    parts = [part for part in key.split(" ") if part not in _SUFFIXES]
    if len(parts) > 1 and len(parts[-1]) > 2:
        yield parts[-1]
        if len(parts) > 2 and parts[-2] in _PARTICLES:
            yield " ".join(parts[-2:])


class _Style:
    """How the writer of a text uses capitals."""

    def __init__(self, text: str):
        self._text = text
        words = [m for m in re.finditer(r"[^\W\d_]{2,}", text) if not CJK.match(m.group())]
        inner = [m.group() for m in words if not self.starts(m.start())]
        lower = [w for w in inner if w[0].islower() and w.lower() not in _STOP]
        upper = [w for w in inner if w[0].isupper()]
        self.chinese = bool(CJK.search(text))
        self.tells = bool(lower) or self.chinese or not upper or len(words) <= 2
        """Whether a capital means something: not in A TEXT OF CAPITALS, Not in a Headline."""
        self.careless = not upper
        """Whether small letters mean nothing, since there are only small letters."""

    def starts(self, place: int) -> bool:
        """Whether a sentence starts here, so that a capital is the rule."""
        before = self._text[:place].rstrip(" \t\"'“‘《(（*_")
        return not before or before[-1] in ".!?:;\n。！？：；…"


def _quoted(text: str, start: int, end: int) -> bool:
    before, after = text[:start].rstrip()[-1:], text[end:].lstrip()[:1]
    if not before or not after or before not in _OPENS or after not in _CLOSES:
        return False
    # an apostrophe is no quotation mark: 'tis, the boys' and it's
    return before not in "'’" or not text[: start - 1][-1:].isalnum()


def _unbroken(text: str, part: Sequence[Unit]) -> bool:
    """Whether no sentence ends between the units; a full stop after an initial ends none."""
    for left, right in zip(part, part[1:], strict=False):
        gap = text[left.end : right.start]
        if len(gap) > 4 or re.search(r"[!?。！？；\n]", gap) or (". " in gap and len(left.key) > 3):
            return False
    return True


def _inside_longer_name(text: str, found: Sequence[Unit], at: int, length: int, style: _Style) -> bool:
    """Whether a capitalised neighbour makes the surname that of somebody else ("Jennifer Nolan", "Nolan Bushnell")."""
    first, last = found[at], found[at + length - 1]
    if at:
        left = found[at - 1]
        known = left.key in ordinary_words() or (style.starts(left.start) and left.key in _QUESTION_WORDS)
        between = text[left.end : first.start]
        if between in ("·", "・", "•") or (between in (" ", ". ", "-") and text[left.start].isupper() and not known):
            return True
    if at + length < len(found) and text[last.end : found[at + length].start] == " ":
        right = found[at + length]
        return text[right.start].isupper() and right.key not in ordinary_words()
    return False


_QUESTION_WORDS = frozenset("compare list recommend is are was were did does do has have which what who when".split())


def common_keys(linker: Linker, passages: Iterable[str], total: int) -> list[str]:
    """Keys of names that stand in lower case in at least 3 of 1,000 passages (and in two): the corpus' ordinary words."""
    counts: dict[str, int] = defaultdict(int)
    for text in passages:
        for key in set(linker.lower_case(text)):
            counts[key] += 1
    return sorted(key for key, count in counts.items() if count >= max(2, 0.003 * total))
