"""Who and what is named in a text that no field names, without a model: 《titles》 and words with capitals."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.knowledge import vocabulary
from workbench.knowledge.names.entities import LONGEST_NAME, Name
from workbench.knowledge.names.surfaces import is_ordinary, ordinary_words, surface_key
from workbench.text import MONTHS, sentences

_CAPITAL = r"(?:[A-Z][\w’'.-]*[\w]|[A-Z]\.?|\d+(?:st|nd|rd|th)?(?=\s[A-Z]))"
_JOIN = r"(?:of|the|de|del|der|van|von|da|di|la|le|&)"
_NAME = re.compile(rf"《([^》\n]{{1,40}})》|{_CAPITAL}(?:[ \u00a0]+(?:{_JOIN}[ \u00a0]+){{0,2}}{_CAPITAL}){{0,7}}")
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_NO_NAMES = frozenset(["the", "a", "an", *MONTHS, *_DAYS.split()])


def names_in(text: str) -> Iterator[Name]:
    """Yield the names in a text, in its order.

    >>> [name.surface for name in names_in("The novel 《蛙》 was adapted by Bill Gunn in May. He met Kristin Hunter.")]
    ['蛙', 'Bill Gunn', 'Kristin Hunter']
    """
    for sentence in sentences(text):
        for match in _NAME.finditer(sentence):
            surface = match[1] or _without_capitals_of_no_name(match[0], begins=not sentence[: match.start()].strip())
            if match[1] or (1 < len(surface) <= LONGEST_NAME and not is_ordinary(surface_key(surface))):
                yield Name(surface, "Name", sentence)


def _without_capitals_of_no_name(surface: str, begins: bool) -> str:
    """Return capitalised words without dates, articles, and an ordinary word at the beginning of a sentence."""
    words = re.sub(r"[’']s\b", "", surface).split()
    while words and _is_no_name(words[0], begins):
        words, begins = words[1:], False
    while words and (words[-1].lower() in _NO_NAMES or words[-1].isdigit()):
        words = words[:-1]
    single = len(words) == 1 and (begins or vocabulary.country(words[0]))
    return "" if single else " ".join(words).strip(" .,;:'’\"-")


def _is_no_name(word: str, begins: bool) -> bool:
    joins = word.isalpha() and word.islower()  # "of" of what stood before it
    return joins or word.lower() in _NO_NAMES or (begins and word.lower() in ordinary_words())
