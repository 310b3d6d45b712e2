"""With what names begin, as bits: few places of a text can begin one, and few of its runs have to be looked up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from workbench.knowledge.surfaces import LONGEST, Unit, unbroken

_BITS = 1 << 24


class Beginnings:
    """The first one or two units of names."""

    def __init__(self, keys: Iterable[str]):
        self._bits = bytearray(_BITS // 8)
        self.add(keys)

    def add(self, keys: Iterable[str]) -> None:
        """More names."""
        for key in keys:
            place = hash(" ".join(key.split(" ", 2)[:2])) % _BITS
            self._bits[place >> 3] |= 1 << (place & 7)

    def _has(self, beginning: str) -> int:
        place = hash(beginning) % _BITS
        return self._bits[place >> 3] & 1 << (place & 7)

    def candidates(self, text: str, found: Sequence[Unit]) -> list[str]:
        """The keys that may be names in the text: all of those that are, and few others."""
        keys: dict[str, None] = {}
        for at, unit in enumerate(found):
            key = unit.key
            if self._has(key):
                keys[key] = None
            for left, right in pairwise(found[at : at + LONGEST]):
                if not unbroken(text, left, right):
                    break
                key += f" {right.key}"
                if left is unit and not self._has(key):
                    break
                keys[key] = None
        return list(keys)
