"""Comparisons in a text: what stands before and behind a value, and two values joined to a range."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from workbench.text import compile_words, simplified

VALUE = "∼"
"""A text that begins with it is a value, and no longer read."""
_SIGN = "[\ue000-\uf8ff]"
_MOST_VALUES = 0xF900 - 0xE000
_PLAIN = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}
_PLAIN |= dict(zip(map(ord, "–—−～’‘“”￥∼≈⊢⊣"), map(ord, "---~''\"\"¥    "), strict=True))
_RANGE = r"-|~|\b(?:to|through|until|till)\b|到|至"


class Phrase(NamedTuple):
    """``start`` to ``end`` compares with ``first``, or asks for what lies between ``first`` and ``second``.

    The edges are of the two: ⊢ at the beginning, ⊣ at the end, ≈ about.
    """

    start: int
    end: int
    op: str
    first: Any
    second: Any
    edges: tuple[str, ...]


class Draft:
    """A text while it is read: values become signs, and every character knows where it came from."""

    def __init__(self, text: str):
        self.original, self.text = text, simplified(text).translate(_PLAIN)
        self.places: list[int] = list(range(len(text) + 1))
        self.values: list[Any] = []
        self.rewrite(r"《[^《》]{0,200}》|\"[^\"]{0,200}\"", "_")
        self.rewrite(rf"(?:\s|{_SIGN})+", " ")
        self.rewrite("(?<=[一-鿿]) | (?=[一-鿿])", "")

    def rewrite(self, pattern: str, make: str | Callable[[re.Match[str]], Any]) -> None:
        """Replace each match by a template, or by what a function makes of it."""
        matches = compile_words(pattern).finditer(self.text)
        self.replace((m.start(), m.end(), m.expand(make) if isinstance(make, str) else make(m)) for m in matches)

    def replace(self, edits: Iterable[tuple[int, int, Any]]) -> None:
        """Replace spans, in their order, by texts or by the signs of values; None leaves them."""
        pieces: list[str] = []
        places: list[int] = []
        at = 0
        for start, end, new in edits:
            if new is None or len(self.values) == _MOST_VALUES:
                continue
            if not isinstance(new, str) or new.startswith(VALUE):
                self.values.append(new)
                new = chr(0xE000 + len(self.values) - 1)
            pieces += self.text[at:start], new
            places += self.places[at:start] + [self.places[min(start + n, end - 1)] for n in range(len(new))]
            at = end
        self.text = "".join(pieces) + self.text[at:]
        self.places = places + self.places[at:]

    def phrases(self, pattern: re.Pattern[str]) -> Iterator[Phrase]:
        """Yield what is compared, by a pattern that ``comparison`` made."""
        at = 0
        while match := pattern.search(self.text, at):
            words, at = match.groupdict(""), match.end()
            pair = bool(words["value2"])
            if words["loose"] and not (words["between"] or words["close"]):
                pair, at = False, match.start("loose")
            start, end = self.places[match.start()], self.places[at]
            inside = self.original[start:end]
            start, end = end - len(inside.lstrip()), start + len(inside.rstrip())
            ops = sorted(name for name in words if words[name] and name[1] == "_")
            values = [self.values[ord(words[name]) - 0xE000] for name in ("value1", "value2")[: 1 + pair]]
            edges = [words[f"edge{nth}"] + words[f"tail{nth}"] for nth in (1, 2)]
            yield Phrase(start, end, "between" if pair else "".join(ops[:1])[2:], values[0], values[-1], (*edges,))


def comparison(before: Mapping[str, str], behind: Mapping[str, str]) -> re.Pattern[str]:
    """Return a pattern of a value or two with the words that compare; the words behind it count more."""
    led = "|".join(f"(?P<b_{op}>{words})" for op, words in before.items())
    followed = "|".join(f"(?P<a_{op}>{words})" for op, words in behind.items())
    first, second = (rf"(?:the )?(?:(?P<edge{n}>[≈⊢⊣]) ?)?(?P<value{n}>{_SIGN})(?P<tail{n}>[≈⊢⊣]?)" for n in (1, 2))
    return compile_words(
        rf"""(?:(?:(?P<between>\bbetween|介于)|{led})[ -]?)?{first}
        (?: ?(?:{_RANGE}|(?P<loose>\band\b|[和与跟])) ?{second}(?P<close>[之期]?间|为止)?| ?(?:{followed}))?"""
    )
