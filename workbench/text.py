"""What the workbench knows of written language: which one it is, its terms, its sentences. Standard library only."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

CJK = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_SEGMENT = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")


def language_of(text: str) -> str:
    """``"zh"`` when the text holds a Chinese character outside a title in 《》, else ``"en"``.

    >>> language_of("Who wrote 《茶馆》?"), language_of("茶馆哪一年出版？"), language_of("Lao She")
    ('en', 'zh', 'en')
    >>> language_of("《茶馆》")
    'zh'
    """
    bare = re.sub(r"《[^《》]*》", "", text)
    if CJK.search(bare):
        return "zh"
    return "zh" if CJK.search(text) and not re.search(r"[A-Za-z]{2}", bare) else "en"


_MARK = "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_STORM = re.compile(f"({_MARK}{{30}}){_MARK}+")
"""More marks on one letter than any language writes: composing a million of them would take hours."""


def clean(text: str) -> str:
    """The text without NUL and lone surrogates, in Unicode's composed form, so that every store and model takes it."""
    if text.isascii():
        return text.replace("\x00", " ")
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")
    return unicodedata.normalize("NFC", _STORM.sub(r"\1", text))


_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: object) -> str:
    """Any value as text that can be shown: what steers a terminal or turns the writing direction is spelled out.

    >>> visible("a\\x1b[31mb"), visible("\\u202egnp.exe"), visible("茶馆\\n1993")
    ('a␛[31mb', '⟨U+202E⟩gnp.exe', '茶馆\\n1993')
    """

    def spell(match: re.Match[str]) -> str:
        code = ord(match.group())
        if code == 0x0D:
            return ""
        return chr(0x2400 + code) if code < 0x20 else f"⟨U+{code:04X}⟩"

    return _HIDDEN.sub(spell, str(text))


def visible_json(text: str) -> str:
    """JSON text in which the same characters stand as escapes: a terminal shows it, a program reads the same value.

    >>> visible_json('{"a": "\\x9b\\u202e喜"}')
    '{"a": "\\\\u009b\\\\u202e喜"}'
    """
    return _HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


@cache
def _tables() -> tuple[dict[int, str], dict[int, str]]:
    """Traditional characters to simplified ones; and those that two writings of a word may differ in to one of them."""
    _, old, new, _, some, one = (Path(__file__).parent / "traditional.txt").read_text(encoding="utf-8").splitlines()
    return str.maketrans(dict(zip(old, new, strict=True))), str.maketrans(dict(zip(some, one, strict=True)))


def simplified(text: str) -> str:
    """The text in simplified characters, one for each; everything else is as it was.

    >>> simplified("臥虎藏龍 by Lao She")
    '卧虎藏龙 by Lao She'
    """
    return text if text.isascii() else text.translate(_tables()[0])


def spelled(text: str) -> str:
    """Full width, case, accents and traditional characters folded away: words as a dictionary has them.

    >>> spelled("Ｃａｆé  Society"), spelled("臥虎藏龍"), spelled("計劃")
    ('cafe society', '卧虎藏龙', '计划')
    """
    if text.isascii():  # most English text: the same, three times as fast
        return re.sub(r"\s+", " ", text.lower()).strip()
    wide = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    bare = "".join(c for c in wide if not unicodedata.combining(c))
    return re.sub(r"\s+", " ", bare.translate(_tables()[0])).strip()


def fold(text: str) -> str:
    """``spelled``, and characters alike that only the word tells apart: what two writings of one name share.

    >>> fold("Ｃａｆé  Society"), fold("計畫") == fold("计划")
    ('cafe society', True)
    """
    return spelled(text).translate(_tables()[1])


def terms(text: str) -> list[str]:
    """Latin words, folded, and Chinese bigrams (a character alone stays alone): the unit of every keyword index.

    >>> terms("Lao She's 茶馆 (1993)"), terms("Hallström")
    (['lao', "she's", '茶馆', '1993'], ['hallstrom'])
    >>> terms("饮食男女")
    ['饮食', '食男', '男女']
    """
    found: list[str] = []
    for segment in _SEGMENT.findall(fold(text)):
        if CJK.match(segment) and len(segment) > 1:
            found += [segment[i : i + 2] for i in range(len(segment) - 1)]
        else:
            found.append(segment)
    return found


_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|vs|No|Vol|Prof|Gen|Col|Sgt|Capt|Lt|Rev|Bros|Inc|Ltd|Co|Corp|Fig|Eq|Sec|approx|etc|i\.e|e\.g|U\.S|U\.K)|\b[A-Z])\.$"
)


_LONG = 2_000
"""A sentence that goes on after an abbreviation ends here, so that a file of nothing else is read in linear time."""


def sentences(text: str) -> list[str]:
    """The sentences of a text, Chinese and English, initials ("K. Raghavendra Rao") kept whole.

    >>> sentences("It stars John C. Reilly. It is good! 《茶馆》很好。真的？")
    ['It stars John C. Reilly.', 'It is good!', '《茶馆》很好。', '真的？']
    """
    found, begun = [], ""
    for piece in re.split(r"(?<=[.!?]['\"”’)])\s+|(?<=[.!?])\s+|(?<=[。！？；])|\n+", text):
        begun = f"{begun} {piece}".strip() if begun else piece.strip()
        if begun and (len(begun) > _LONG or not _ABBREVIATION.search(begun[-20:])):
            found.append(begun)
            begun = ""
    return found + ([begun] if begun else [])
