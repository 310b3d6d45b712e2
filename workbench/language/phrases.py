"""Comparisons in a text: what stands before and behind a value, and two values joined to a range."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from workbench.text import simplified

WORD_LIKE = re.ASCII | re.IGNORECASE | re.VERBOSE
"""ASCII: a word ends where Chinese begins."""
SIGN = "[\ue000-\uf8ff]"
_PLAIN = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}
_PLAIN |= dict(zip(map(ord, "–—−～’‘“”￥"), "---~''\"\"¥", strict=True))
_SPACES = re.compile(rf"(?:\s|{SIGN})+(?=[一-鿿])|(?<=[一-鿿])(?:\s|{SIGN})+|(?:\s|{SIGN})+")
_QUOTED = re.compile(r"《[^《》]{0,200}》|\"[^\"]{0,200}\"")


class Phrase(NamedTuple):
    """``start`` to ``end`` compares with ``first``, or with what lies from ``first`` to ``second``."""

    start: int
    end: int
    op: str
    first: Any
    second: Any
    edges: tuple[str, str]


class Draft:
    """A text while it is read: values are replaced by signs, and every character knows where it came from."""

    def __init__(self, text: str):
        self.text, self.places = simplified(text).translate(_PLAIN), range(len(text) + 1)
        self.original = text
        self.values: list[Any] = []
        self.rewrite(_QUOTED, lambda match: "_")
        self.rewrite(_SPACES, lambda match: " " if self._between_words(match) else "")

    def _between_words(self, match: re.Match[str]) -> bool:
        return not any("一" <= char <= "鿿" for char in self.text[max(0, match.start() - 1) : match.end() + 1])

    def rewrite(self, pattern: re.Pattern[str], make: Callable[[re.Match[str]], Any]) -> None:
        """Replace each match by a text, or by the sign of a value; None leaves it."""
        edits = ((match.start(), match.end(), make(match)) for match in pattern.finditer(self.text))
        self.replace(edit for edit in edits if edit[2] is not None)

    def replace(self, edits: Iterable[tuple[int, int, Any]]) -> None:
        """Replace spans, in their order, by texts or by the signs of values."""
        pieces: list[str] = []
        places: list[int] = []
        at = 0
        for start, end, new in list(edits):
            if not isinstance(new, str):
                self.values.append(new)
                new = chr(0xE000 + min(len(self.values), 6400) - 1)
            pieces += self.text[at:start], new
            places += [*self.places[at:start], *[self.places[start]] * len(new)]
            at = end
        self.text = "".join([*pieces, self.text[at:]])
        self.places = [*places, *self.places[at:]]

    def phrases(self, pattern: re.Pattern[str]) -> Iterator[Phrase]:
        """Yield what is compared, by a pattern that ``comparison`` made."""
        at = 0
        while match := pattern.search(self.text, at):
            words = match.groupdict()
            first, second, at = self._value(words["first"]), words["second"], match.end()
            if words["loose"] and not (words["between"] or words["close"]):
                second, at = None, match.start("loose")
            ops = sorted(name for name, text in words.items() if text and name[:2] in ("a_", "b_"))
            op = "between" if second else (ops or [""])[0][2:]
            start, end = self.places[match.start()], self.places[at]
            end -= len(self.original[start:end]) - len(self.original[start:end].rstrip())
            edges = (words.get("edge") or words.get("tail") or "").strip(" -")
            far = (words.get("edge2") or words.get("tail2") or "").strip(" -")
            yield Phrase(start, end, op, first, second and self._value(second), (edges, far))

    def _value(self, sign: str) -> Any:
        return self.values[ord(sign) - 0xE000]


def comparison(before: Mapping[str, str], behind: Mapping[str, str], edge: str = "", tail: str = "") -> re.Pattern[str]:
    """Return a pattern of one sign or two with the words that compare; words behind it count more."""
    led = "|".join(rf"(?P<b_{op}>\b(?:{words})|{signs})" for op, words, signs in _split(before))
    ends = "|".join(rf"(?P<a_{op}>\ ?\b(?:{words})(?![a-z])|{signs})" for op, words, signs in _split(behind))
    the = r"(?:(?:the|about|a|an)\ )?"
    return re.compile(
        rf"""(?:(?:(?P<between>\bbetween|介于)|{led})[ -]?)?{the}{edge}(?P<first>{SIGN}){tail}
        (?:\ ?(?:(?P<strict>-|~|\b(?:to|through|until|till)\b|到|至)|(?P<loose>\band\b|[和与跟]))\ ?
        {the}{edge.replace("<edge>", "<edge2>")}(?P<second>{SIGN}){tail.replace("<tail>", "<tail2>")}
        (?P<close>[之期]?间|为止)?|{ends})?""",
        WORD_LIKE,
    )


def _split(words: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for op, listed in words.items():
        english, _, chinese = listed.partition(" / ")
        yield op, english.replace(" ", r"\ "), chinese or "(?!)"
