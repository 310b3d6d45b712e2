"""Known names in a text: longest match first, folded, in both languages, and no ordinary words taken for a title.

A name all of whose words are ordinary ("Up", "The Game") is a name only where the writer marks it: in 《》 or quotes,
in capitals where a capital is not the rule, or after words such as "called". A surname is not the known person's when
a capitalised neighbour makes it another person's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property

from workbench.knowledge.names.surfaces import Surface, Unit, ordinary_words, unbroken, units
from workbench.ports import Mention
from workbench.text import CJK, FUNCTION_WORDS


class Matcher:
    """Find names by their keys (``surfaces.surface_key``) in any text.

    >>> from workbench.knowledge.names.surfaces import units
    >>> text = "The Dark Knight Rises"
    >>> Matcher(["dark knight", "dark knight rises", "dark horse"]).at(text, units(text), 1)
    [('dark knight rises', 3), ('dark knight', 2)]
    """

    def __init__(self, keys: Iterable[str]):
        self._keys = frozenset(keys)
        self._beginnings = frozenset(" ".join(words) for key in self._keys for words in _beginnings(key))

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


def _beginnings(key: str) -> Iterator[list[str]]:
    words = key.split(" ")
    return (words[:length] for length in range(1, len(words)))


_OPENS, _CLOSES = "《〈“‘\"'「『«*_", "》〉”’\"'」』»*_"
_CUES = (
    "called|titled|named|read|watch|watched|seen|saw|similar to|plot of|title of|year was|when was|when did|compare|"
    "between"
)
"""Words behind which an ordinary word may be a name in any corpus."""


@cache
def _cue(own: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join((_CUES, *map(re.escape, own)))})\s+$", re.IGNORECASE)


class Linker:
    """A matcher over compiled surfaces: all of a base's, or those that can occur in the text available.

    ``cues`` are the corpus' own words behind which an ordinary word may be a name (``Vocabulary.cues``).
    """

    def __init__(self, surfaces: Mapping[str, Surface], cues: tuple[str, ...] = ()):
        self._surfaces, self._names, self._cue = surfaces, Matcher(surfaces), _cue(cues)

    def link(self, text: str, about: str = "") -> list[Mention]:
        """Return the known names in a text, in its order; where two overlap the longer wins.

        ``about`` is the entity that the text is about: of several bearers of a name it is the one who is meant. Where
        several remain the best connected one is given, and the ``others`` with it.
        """
        mentions: list[Mention] = []
        parts, style, at = units(text), _Style(text, self._cue), 0
        while at < len(parts):
            name = next(self._accepted(text, parts, at, style), None)
            if name:
                start, end = parts[at].start, parts[at + name[1] - 1].end
                first, *rest = _bearers(self._surfaces[name[0]], text[end:], about)
                mention = Mention(start=start, end=end, surface=text[start:end], entity_id=first)
                mentions.append(Mention(**mention, others=rest) if rest else mention)
            at += name[1] if name else 1
        return mentions

    def lower_case(self, text: str) -> Iterator[str]:
        """Yield keys of names whose words are in the text in lower case, from which ``common_keys`` counts."""
        parts = units(text)
        for at in range(len(parts)):
            for key, length in self._names.at(text, parts, at):
                words = [text[u.start : u.end] for u in parts[at : at + length]]
                if not CJK.match(key) and any(w.islower() for w in words) and not any(w[0].isupper() for w in words):
                    yield key

    def _accepted(self, text: str, parts: Sequence[Unit], at: int, style: _Style) -> Iterator[tuple[str, int]]:
        for key, length in self._names.at(text, parts, at):
            if _says_name(self._surfaces[key], key, text, parts, at, length, style):
                yield key, length


def _says_name(
    surface: Surface, key: str, text: str, parts: Sequence[Unit], at: int, length: int, style: _Style
) -> bool:
    """Check whether the writer means the name, and not the words."""
    part = parts[at : at + length]
    start, end = part[0].start, part[-1].end
    if _quoted(text, start, end):
        return True
    if CJK.match(key):
        stands_alone = surface.kind != "surname" or not _inside_longer_name(text, parts, at, length, style)
        return length > 1 and stands_alone
    words = [text[u.start : u.end] for u in part]
    content = [w for w, u in zip(words, part, strict=True) if u.key not in FUNCTION_WORDS] or words
    capital = all(not w[0].islower() for w in content) and any(w[0].isupper() for w in words)
    if surface.kind == "surname":
        return (capital or style.careless) and not _inside_longer_name(text, parts, at, length, style)
    if surface.kind == "name":
        return capital or len(key) > 3
    if length == 1 and _inside_longer_name(text, parts, at, length, style):
        return False
    if capital and style.tells:
        return not style.starts(start) or (length > 1 and len(content) > 1) or style.chinese
    cued = bool(style.cue.search(text[:start])) and all(u.key not in FUNCTION_WORDS for u in part[-1:])
    if capital or style.careless:
        return cued or (len(content) > 1 and surface.kind == "words")
    return False


def _bearers(surface: Surface, after: str, about: str) -> list[str]:
    """Who may be meant, the best first: the one that the text is about, or of the year that follows, or equal ones."""
    if any(bearer.entity_id == about for bearer in surface.bearers):
        return [about]
    year = re.match(r"\s*[》”\"'’]?,?\s*[(（]?\s*((?:19|20)\d\d)\b", after)
    dated = [b for b in surface.bearers if year and b.year == int(year[1])]
    likely = dated or surface.bearers
    return [b.entity_id for b in likely if b.rank == likely[0].rank]


class _Style:
    """How the writer of a text uses capitals; looked at when a name depends on it."""

    def __init__(self, text: str, cue: re.Pattern[str]):
        self.cue, self._text, self.chinese = cue, text, bool(CJK.search(text))

    @cached_property
    def _words(self) -> list[re.Match[str]]:
        return [m for m in re.finditer(r"[^\W\d_]{2,}", self._text) if not CJK.match(m.group())]

    @cached_property
    def _inner(self) -> list[str]:
        return [
            m.group() for m in self._words if not self.starts(m.start()) and m.group().lower() not in FUNCTION_WORDS
        ]

    @cached_property
    def tells(self) -> bool:
        """Check whether a capital means something: not in A TEXT OF CAPITALS, Not in a Headline."""
        asks = bool(self._words) and self._words[0].group().lower() in _QUESTION_WORDS
        few = sum(word[0].isupper() for word in self._inner) < 3
        lower = any(word[0].islower() for word in self._inner)
        return lower or self.chinese or few or (asks and self._text != self._text.upper())

    @cached_property
    def careless(self) -> bool:
        """Check whether small letters mean nothing, since there are only small letters."""
        return not any(word[0].isupper() for word in self._inner)

    def starts(self, place: int) -> bool:
        """Check whether a sentence starts here, so that a capital is the rule."""
        before = self._text[:place].rstrip(" \t\"'“‘《(（*_")
        return not before or before[-1] in ".!?:;\n。！？：；…"


def _quoted(text: str, start: int, end: int) -> bool:
    before, after = text[:start].rstrip()[-1:], text[end:].lstrip()[:1]
    if not before or not after or before not in _OPENS or after not in _CLOSES:
        return False
    # an apostrophe is no quotation mark: 'tis, the boys' and it's
    return before not in "'’" or not text[: start - 1][-1:].isalnum()


def _inside_longer_name(text: str, parts: Sequence[Unit], at: int, length: int, style: _Style) -> bool:
    """Check whether a capitalised neighbour makes it another name: "Jennifer Nash", "Nash Bushnell", "Old School"."""
    first, last = parts[at], parts[at + length - 1]
    if at:
        left = parts[at - 1]
        asking = style.starts(left.start) and left.key in _QUESTION_WORDS
        plain = asking or left.key in FUNCTION_WORDS or left.key in ordinary_words()
        between = text[left.end : first.start]
        if between in ("·", "・", "•") or (between in (" ", ". ", "-") and text[left.start].isupper() and not plain):
            return True
    if at + length < len(parts) and text[last.end : parts[at + length].start] == " ":
        right = parts[at + length]
        return text[right.start].isupper() and right.key not in FUNCTION_WORDS
    return False


_ASKING = "compare list recommend is are was were did does has which what who"
_QUESTION_WORDS = frozenset(_ASKING.split())


def nearest(mentions: Sequence[Mention], about: str, beside: Callable[[str], Collection[str]]) -> list[Mention]:
    """Return the names of a text about something; of several bearers of one the one that most next to it is related to.

    Args:
        mentions: as ``Linker.link`` finds them.
        about: the entity that the text is about.
        next to: the entities that one is related to.
    """
    if not any("others" in mention for mention in mentions):
        return list(mentions)
    linked = {*beside(about), *(mention["entity_id"] for mention in mentions)}
    chosen = []
    for mention in mentions:
        bearers = [mention["entity_id"], *mention.get("others", ())]
        related = {one: len(linked & {*beside(one)} - {one}) if len(bearers) > 1 else 0 for one in bearers}
        best = max(bearers, key=related.__getitem__)  # the first of equal ones
        chosen.append(Mention(**{**mention, "entity_id": best}))
    return chosen


def common_keys(linker: Linker, passages: Iterable[str], total: int) -> list[str]:
    """Keys of names that are in lower case in at least 3 of 1,000 passages (and in two): ordinary in this corpus."""
    counts: dict[str, int] = defaultdict(int)
    for text in passages:
        for key in set(linker.lower_case(text)):
            counts[key] += 1
    return sorted(key for key, count in counts.items() if count >= max(2, 0.003 * total))
