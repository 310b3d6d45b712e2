"""Every writing of every name, compiled: what a reader looks up to know who is meant.

A name is a sequence of units: a Latin word or number, or one Chinese character, folded; what is between units does not
count ("Spider-Man" is "spider man", "约翰·麦卡锡" needs no dot). A name is found in its own spelling, by its other
names, and by short forms of both (``writings``); a person also by the surname, when the person best connected has no
rival.

Known names are found in a text longest match first, folded, in both languages. A name all of whose words are ordinary
("Up", "The Game") is a name only where the writer marks it: by quotation marks, or by capitals where a capital is not
the rule. A single word next to another capitalised word is part of a longer name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from workbench.ports import Entity, Mention
from workbench.text import CJK, FUNCTION_WORDS, fold

LONGEST = 16
"""Units of the longest name that is looked for."""
LONGEST_NAME = 80
"""Its characters."""

_UNIT = re.compile(
    r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|(?:[^\W_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[\u0300-\u036f])+|&"
)
_BRACKET = re.compile(r"(?<=\S)\s*[(（][^()（）]*[)）]\s*$")
_POINTED = re.compile(r"\b(?:[A-Z]\.\s?){2,}")
_MIDDLE = re.compile(r"(?<=\w\w)\s+[A-Z]\.(?=\s+\w\w)")
_HYPHEN = re.compile(r"(?<=[A-Za-z])-(?=[A-Za-z])")
_ARTICLES = ("the", "a", "an")
_LITTLE = """
    song album series who what when where which i you we they one two first last new old american british french
    german english man woman king queen love life from with his her was he she
"""
SAYS_LITTLE = frozenset(_LITTLE.split()) | FUNCTION_WORDS
_SUFFIXES = ("jr", "sr", "ii", "iii", "iv")
_ROMANCE = "de del della van von der den da di du la le el al bin"
_PARTICLES = _ROMANCE.split()


class Unit(NamedTuple):
    """One unit of a text: ``text[start:end]``, folded."""

    start: int
    end: int
    key: str


class Bearer(NamedTuple):
    """An entity that has a name.

    Lower is better: ``rank`` 0 is the name, 1 an alias, 2 a short form of either, 3 a surname; ``lead`` is minus the
    relations.
    """

    rank: int
    lead: int
    entity_id: str
    year: int | None
    category: bool


@lru_cache(maxsize=100_000)
def _folded(word: str) -> str:
    return "and" if word == "&" else fold(word)


def units(text: str) -> list[Unit]:
    """Return the units of a text with their places.

    >>> [u.key for u in units("Spider-Man & 若兰's Amélie")]
    ['spider', 'man', 'and', '若', '兰', 's', 'amelie']
    """
    return [Unit(m.start(), m.end(), _folded(m.group())) for m in _UNIT.finditer(text)]


@lru_cache(maxsize=100_000)
def surface_key(name: str) -> str:
    """Return what two writings of one name share.

    >>> surface_key("Spider-Man"), surface_key("SPIDER MAN"), surface_key("约翰·麦卡锡") == surface_key("约翰麦卡锡")
    ('spider man', 'spider man', True)
    """
    return " ".join(unit.key for unit in units(name))


@cache
def ordinary_words() -> frozenset[str]:
    """About 4,000 English words that are common in lower case (``ordinary_words.txt``, counted in articles)."""
    return frozenset(
        files("workbench.knowledge").joinpath("ordinary_words.txt").read_text("utf-8").split()
    )


def is_ordinary(key: str) -> bool:
    """Check whether every word that carries the name is an ordinary one, a number or a letter.

    >>> is_ordinary("the game"), is_ordinary("gladiator"), is_ordinary("1917"), is_ordinary("茶 馆")
    (True, False, True, False)
    """
    if CJK.match(key):
        return False
    content = [word for word in key.split(" ") if word not in FUNCTION_WORDS]
    return all(word in ordinary_words() or word.isdigit() or len(word) == 1 for word in content)


def compiled(
    entities: Iterable[Entity],
    degrees: Mapping[str, int],
    categories: Collection[str],
    years: Mapping[str, int],
) -> dict[str, list[Bearer]]:
    """Return who has each name, the best first, by the name's key.

    Args:
        entities: who can be named.
        degrees: relations of each entity, by which one of several bearers of a name is chosen.
        categories: ids of those that only group others (genres, countries, years).
        years: entity id -> year, so that "Halloween (2018)" is the right one.
    """
    # A surname is its best bearer's when the next one has at most half as many relations.
    lead = 2
    surname = 3
    full = defaultdict(set)
    bearing = defaultdict(set)
    entities = list(entities)
    heads = subtitled(entities)
    for entity in entities:
        entity_id = entity["entity_id"]
        bearer = Bearer(
            0,
            -degrees.get(entity_id, 0),
            entity_id,
            years.get(entity_id),
            entity_id in categories,
        )
        if entity_id in heads:
            full[heads[entity_id]].add(bearer._replace(rank=2))
        for place, name in enumerate([entity["name"], *entity["aliases"]]):
            for key, short in writings(name).items():
                full[key].add(bearer._replace(rank=2 if short else min(place, 1)))
            if entity["type"] == "Person":
                for key in surnames(name):
                    bearing[key].add(bearer._replace(rank=surname))
    names = {key: _best_first(bearers) for key, bearers in full.items()}
    for key, bearers in bearing.items():
        first, *rivals = _best_first(bearers)
        if (
            key not in names
            and not is_ordinary(key)
            and (not rivals or first.lead <= lead * rivals[0].lead)
        ):
            names[key] = [first]
    return names


def subtitled(entities: Iterable[Entity]) -> dict[str, str]:
    """Return entity -> the key of what stands before its colon, where no other name begins so."""
    owners = defaultdict(list)
    for entity in entities:
        head, colon, _ = entity["name"].replace("：", ":").partition(":")
        if colon:
            owners[surface_key(head)].append(entity["entity_id"])
    return {ids[0]: key for key, ids in owners.items() if key and len(ids) == 1}


def _best_first(bearers: Iterable[Bearer]) -> list[Bearer]:
    """Return one entry for each bearer, its best writing."""
    best: dict[str, Bearer] = {}
    for bearer in sorted(bearers, key=lambda b: b[:3]):
        best.setdefault(bearer.entity_id, bearer)
    return list(best.values())


def writings(name: str) -> dict[str, bool]:
    """Return the keys under which a name goes, and whether each is a short form: without its article, its bracket, the
    points of an abbreviation, a middle initial or a hyphen, or what is before its comma.

    >>> list(writings("The Reef (1962 novel)")), list(writings("Spider-Man"))
    (['the reef 1962 novel', 'the reef', 'reef 1962 novel', 'reef'], ['spider man', 'spiderman'])
    >>> list(writings("J. R. R. Tolkien")), list(writings("John F. Kennedy"))
    (['j r r tolkien', 'jrr tolkien'], ['john f kennedy', 'john kennedy'])
    """
    bare = _BRACKET.sub("", name)
    short = [name.partition(",")[0]]
    for form in dict.fromkeys([name, bare]):
        short.append(_POINTED.sub(lambda m: re.sub(r"[.\s]", "", m[0]) + " ", form))
        short += [_MIDDLE.sub("", form), _HYPHEN.sub("", form)]
    keys = [surface_key(form) for form in (name, bare)]
    short_keys = list(map(surface_key, short))
    for key in (*keys, *short_keys):
        article, _, rest = key.partition(" ")
        short_keys += [rest] * (article in _ARTICLES)
    forms = {**dict.fromkeys(keys, False), **{key: True for key in short_keys if key not in keys}}
    return {key: derived for key, derived in forms.items() if key and key.count(" ") < LONGEST}


def surnames(name: str) -> Iterator[str]:
    """Yield the short forms by which a person is named.

    >>> list(surnames("Guillermo del Toro")), list(surnames("汤姆·汉克斯"))
    (['toro', 'del toro'], ['汉 克 斯'])
    """
    if CJK.search(name):
        parts = re.split(r"[·・•‧．]", name)
        if len(parts) > 1 and len(parts[-1]) > 1:
            yield surface_key(parts[-1])
        return
    parts = [part for part in surface_key(name).split(" ") if part not in _SUFFIXES]
    if len(parts) > 1 and len(parts[-1]) > 2:
        yield parts[-1]
        if len(parts) > 2 and parts[-2] in _PARTICLES:
            yield " ".join(parts[-2:])


def unbroken(text: str, left: Unit, right: Unit) -> bool:
    """Check whether a name may run on from one unit to the next; a full stop after an initial ends no sentence."""
    gap = text[left.end : right.start]
    return (
        len(gap) <= 4
        and not re.search(r"[!?。！？；\n]", gap)
        and not (". " in gap and len(left.key) > 3)
    )


def candidates(text: str) -> list[str]:
    """Return every key that could be a name in the text: all runs of its units."""
    parts = units(text)
    keys = dict[str, None]()
    for at, unit in enumerate(parts):
        key = unit.key
        keys[key] = None
        for left, right in pairwise(parts[at : at + LONGEST]):
            if not unbroken(text, left, right):
                break
            key += f" {right.key}"
            keys[key] = None
    return list(keys)


_OPENS, _CLOSES = "《〈“‘\"'「『«*_", "》〉”’\"'」』»*_"
_DOTS = ("·", "・", "•")
_QUESTION_WORDS = "compare list recommend is are was were did does has which what who"
_ASKING = frozenset(_QUESTION_WORDS.split())


class Matcher:
    """Find names by their keys (``surfaces.surface_key``) in any text.

    >>> from workbench.knowledge.names.surfaces import units
    >>> text = "The Dark Knight Rises"
    >>> Matcher(["dark knight", "dark knight rises", "dark horse"]).at(text, units(text), 1)
    [('dark knight rises', 3), ('dark knight', 2)]
    """

    def __init__(self, keys: Iterable[str]):
        self._keys = frozenset(keys)
        self._beginnings = frozenset(chain.from_iterable(map(_beginnings, self._keys)))

    def at(self, text: str, parts: Sequence[Unit], place: int) -> list[tuple[str, int]]:
        """Return ``(key, units)`` of the names that begin at a unit of the text and run on unbroken, longest first."""
        key = parts[place].key
        last = place
        names = []
        while True:
            last += 1
            if key in self._keys:
                names.append((key, last - place))
            goes_on = key in self._beginnings and last < len(parts)
            if not goes_on or not unbroken(text, parts[last - 1], parts[last]):
                return names[::-1]
            key += f" {parts[last].key}"

    def names_in(self, text: str, careless: int = 0) -> Iterator[tuple[int, int, str]]:
        """Yield begin, end and key of each name in a text, in its order; where two overlap the longer wins.

        ``careless``: its writer may leave capitals out, 1 those of several words, 2 of one too, as in a question.
        """
        writing = _Writing(text, careless)
        at = 0
        while at < len(writing.parts):
            names = self.at(text, writing.parts, at)
            key, length = next((name for name in names if writing.means(at, *name)), ("", 1))
            if key:
                yield writing.parts[at].start, writing.parts[at + length - 1].end, key
            at += length


def _beginnings(key: str) -> list[str]:
    return list(accumulate(key.split(" "), "{} {}".format))[:-1]


class _Writing:
    """A text, and how its writer uses capitals."""

    def __init__(self, text: str, careless: int):
        self.text = text
        self.parts = units(text)
        self._careless = careless
        self._capital = [not text[unit.start].islower() for unit in self.parts]
        self._chinese = bool(CJK.search(text))
        self._shouted = text.isupper() and len(self.parts) > 4 and not self._chinese

    def means(self, at: int, key: str, length: int) -> bool:
        """Check whether the writer means the name, and not the words."""
        part = self.parts[at : at + length]
        capitals = self._capital[at : at + length]
        start = part[0].start
        end = part[-1].end
        if self._quoted(start, end):
            return True
        if CJK.match(key):
            return length > 1 and self.text[start - 1 : start] not in _DOTS
        if length == 1 and re.fullmatch(r"(?=\D*\d)(?=\d*[a-z])[a-z\d]+", key):  # a code: "r2"
            return True
        if length == 1 and self._inside_longer_name(at):
            return False
        no_capitals = not any(self._capital)
        if not is_ordinary(key):
            says_little = all(unit.key in SAYS_LITTLE for unit in part) or len(key) < 3
            return not says_little and (
                any(capitals) or no_capitals or self._careless > (length == 1)
            )
        if length == 1:
            within = bool(self._careless) and not self._starts(start)
            return (
                capitals[0]
                and (self._chinese or within)
                and not self._shouted
                and not key.isdigit()
            )
        content = [
            capital
            for unit, capital in zip(part, capitals, strict=True)
            if unit.key not in FUNCTION_WORDS
        ]
        if no_capitals:
            return bool(self._careless) and len(content) > 1
        return bool(content) and all(content) and not self._shouted

    def _starts(self, place: int) -> bool:
        """Check whether a sentence starts here, so that a capital is the rule."""
        before = self.text[:place].rstrip(" \t\"'“‘《(（*_")
        return not before or before[-1] in ".!?:;\n。！？：；…"

    def _quoted(self, start: int, end: int) -> bool:
        before = self.text[:start].rstrip()[-1:]
        after = self.text[end:].lstrip()[:1]
        if not before or not after or before not in _OPENS or after not in _CLOSES:
            return False
        # an apostrophe is no quotation mark: 'tis, the boys' and it's
        return before not in "'’" or not self.text[: start - 1][-1:].isalnum()

    def _inside_longer_name(self, at: int) -> bool:
        """Check whether a capitalised neighbour makes it another name: "Jennifer Nash", "Nash Bushnell"."""
        for place in (at - 1, at + 1):
            if 0 <= place < len(self.parts) and self._capital[place]:
                left, right = (self.parts[n] for n in sorted((at, place)))
                beside = self.parts[place]
                if CJK.match(beside.key):
                    continue  # Chinese around a name has no capitals
                between = self.text[left.end : right.start]
                opens = self._starts(beside.start) and (
                    beside.key in _ASKING or beside.key in ordinary_words()
                )
                plain = beside.key in FUNCTION_WORDS or opens
                if between in _DOTS or (
                    between in (" ", ". ", "-")[: 1 if place > at else 3] and not plain
                ):
                    return True
        return False


def mentions_in(
    text: str,
    names: Mapping[str, Sequence[Bearer]],
    matcher: Matcher,
    about: str = "",
    careless: int = 1,
) -> list[Mention]:
    """Return the known names in a text with their bearers, the best connected first.

    Where several entities share a name and none is ruled out, the rest are in ``others``; ``about`` is the entity that
    the text is about: its own name means it.
    """
    mentions = []
    for start, end, key in matcher.names_in(text, careless):
        first, *rest = _bearers(names[key], text[end:], about)
        mention = Mention(start=start, end=end, surface=text[start:end], entity_id=first)
        mentions.append(Mention(**mention, others=rest) if rest else mention)
    return mentions


def _bearers(bearers: Sequence[Bearer], after: str, about: str) -> list[str]:
    """Return who may be meant, the best first: the subject of the text, those of the year that follows, or equals."""
    if any(bearer.entity_id == about for bearer in bearers):
        return [about]
    year = re.match(r"\s*[》”\"'’]?,?\s*[(（]?\s*((?:19|20)\d\d)\b", after)
    dated = [bearer for bearer in bearers if year and bearer.year == int(year[1])]
    likely = dated or bearers
    return [bearer.entity_id for bearer in likely if bearer.rank == likely[0].rank]


def nearest(
    mentions: Sequence[Mention], about: str, related: Callable[[str], Collection[str]]
) -> list[Mention]:
    """Return the names in a text about an entity; a shared name means the one to which most others are related.

    Args:
        mentions: as ``mentions_in`` returns them.
        about: the entity that the text is about.
        related: returns the entities to which an entity is related.
    """
    if not any("others" in mention for mention in mentions):
        return list(mentions)
    linked = {*related(about), *(mention["entity_id"] for mention in mentions)}
    chosen = []
    for mention in mentions:
        bearers = [mention["entity_id"], *mention.get("others", ())]
        # the first of equal ones
        best = max(bearers, key=lambda bearer: len(linked & {*related(bearer)} - {bearer}))
        chosen.append(Mention(**{**mention, "entity_id": best}))
    return chosen
