"""Known names in a text: longest match first, folded, in both languages, by one rule of what is meant as a name.

A name all of whose words are ordinary ("Up", "The Game") is a name only where the writer marks it: by quotation marks,
or by capitals where a capital is not the rule. A single word next to another capitalised word is part of a longer name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from workbench.knowledge.names.surfaces import (
    SAYS_LITTLE,
    Bearer,
    Unit,
    is_ordinary,
    ordinary_words,
    unbroken,
    units,
)
from workbench.ports import Mention
from workbench.text import CJK, FUNCTION_WORDS

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
        self._beginnings = frozenset(
            " ".join(words) for key in self._keys for words in _beginnings(key)
        )

    def at(self, text: str, parts: Sequence[Unit], place: int) -> list[tuple[str, int]]:
        """Return ``(key, units)`` of the names that begin at a unit of the text and run on unbroken, longest first."""
        key, last, names = parts[place].key, place, list[tuple[str, int]]()
        while True:
            last += 1
            if key in self._keys:
                names.append((key, last - place))
            goes_on = key in self._beginnings and last < len(parts)
            if not goes_on or not unbroken(text, parts[last - 1], parts[last]):
                return names[::-1]
            key += f" {parts[last].key}"

    def names_in(self, text: str, careless: bool = False) -> Iterator[tuple[int, int, str]]:
        """Yield begin, end and key of each name in a text, in its order; where two overlap the longer wins.

        ``careless``: its writer may leave capitals out, as in a question.
        """
        writing, at = _Writing(text, careless), 0
        while at < len(writing.parts):
            names = self.at(text, writing.parts, at)
            key, length = next((name for name in names if writing.means(at, *name)), ("", 1))
            if key:
                yield writing.parts[at].start, writing.parts[at + length - 1].end, key
            at += length


def _beginnings(key: str) -> Iterator[list[str]]:
    words = key.split(" ")
    return (words[:length] for length in range(1, len(words)))


class _Writing:
    """A text, and how its writer uses capitals."""

    def __init__(self, text: str, careless: bool):
        self.text, self.parts, self._careless = text, units(text), careless
        self._capital = [not text[unit.start].islower() for unit in self.parts]
        self._chinese = bool(CJK.search(text))
        self._shouted = text.isupper() and len(self.parts) > 4 and not self._chinese

    def means(self, at: int, key: str, length: int) -> bool:
        """Check whether the writer means the name, and not the words."""
        part, capitals = self.parts[at : at + length], self._capital[at : at + length]
        start, end = part[0].start, part[-1].end
        if self._quoted(start, end):
            return True
        if CJK.match(key):
            return length > 1 and self.text[start - 1 : start] not in _DOTS
        if length == 1 and self._inside_longer_name(at):
            return False
        no_capitals = not any(self._capital)
        if not is_ordinary(key):
            says_little = all(unit.key in SAYS_LITTLE for unit in part) or len(key) < 3
            return not says_little and (
                any(capitals) or no_capitals or (self._careless and length > 1)
            )
        if length == 1:
            within = self._careless and not self._starts(start)
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
            return self._careless and len(content) > 1
        return bool(content) and all(content) and not self._shouted

    def _starts(self, place: int) -> bool:
        """Check whether a sentence starts here, so that a capital is the rule."""
        before = self.text[:place].rstrip(" \t\"'“‘《(（*_")
        return not before or before[-1] in ".!?:;\n。！？：；…"

    def _quoted(self, start: int, end: int) -> bool:
        before, after = self.text[:start].rstrip()[-1:], self.text[end:].lstrip()[:1]
        if not before or not after or before not in _OPENS or after not in _CLOSES:
            return False
        # an apostrophe is no quotation mark: 'tis, the boys' and it's
        return before not in "'’" or not self.text[: start - 1][-1:].isalnum()

    def _inside_longer_name(self, at: int) -> bool:
        """Check whether a capitalised neighbour makes it another name: "Jennifer Nash", "Nash Bushnell"."""
        for place in (at - 1, at + 1):
            if 0 <= place < len(self.parts) and self._capital[place]:
                left, right = (self.parts[n] for n in sorted((at, place)))
                beside, between = self.parts[place], self.text[left.end : right.start]
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
    careless: bool = False,
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
