"""What people, scripts and broken files give: texts, values, JSON and bytes, drawn from a seeded generator."""

from __future__ import annotations

import json
from random import Random
from typing import Any

PIECES = (
    "When was The Wedding Banquet released?", "喜宴哪一年上映？", "Who directed it", "推荐几部类似《喜宴》的电影",
    "Ang Lee", "李安", " ", "\n", "\t", "\x00", "\x1b[31m", "\ud800", "\udfff", "\u202e", "\u200b", "\ufeff",
    "\u2028", "a\u0301", "\u0301" * 40, "👩‍👩‍👧‍👦", "🎬", "《", "》", "“", '"', "'", "\\", "/", "../", "{", "}",
    "[", "]", "<script>alert(1)</script>", "${x}", "%s", "1993", "before 1990", "1990年代以后", "-1", "1e999", "NaN",
    "null", "true", "compare", "和", "and", "or", "not", "; DROP TABLE runs; --", "NEAR(", "*", "?", "!", "。", "，",
    ",", "..", "|", "；", "=", "&", "#", "\r\n", "\x7f", "\u00e9", "臥虎藏龍",
)  # fmt: skip
NAMES = (
    "film", "films", "", "general", "Film", "../film", "a b", "fi\x00lm", "\ud800", "喜宴", "x" * 300, "film ",
    "FILM", ".", "-",
)  # fmt: skip
NUMBERS = (0, 1, -1, 7, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e308, float("nan"), float("inf"))


def text(rng: Random, most: int = 12) -> str:
    """Pieces of questions, signs, controls and halves of characters; now and then very much of one."""
    if rng.random() < 0.02:
        return rng.choice(PIECES) * rng.choice((1_000, 20_000))
    return rng.choice(("", " ")).join(rng.choice(PIECES) for _ in range(rng.randrange(most)))


def value(rng: Random, depth: int = 3) -> Any:
    """Anything that JSON or Python can say."""
    kind = rng.randrange(10 if depth else 6)
    if kind < 3:
        return text(rng, 4)
    if kind < 5:
        return rng.choice(NUMBERS)
    if kind == 5:
        return rng.choice((None, True, False))
    if kind < 8:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {text(rng, 2): value(rng, depth - 1) for _ in range(rng.randrange(4))}


def changed(rng: Random, one: Any) -> Any:
    """A JSON value with one place in it replaced, dropped or doubled."""
    if isinstance(one, dict) and one and rng.random() < 0.8:
        name = rng.choice(sorted(one))
        rest = {k: v for k, v in one.items() if k != name}
        pick = rng.random()
        if pick < 0.25:
            return rest if pick < 0.15 else {**rest, text(rng, 2): one[name]}
        return {**one, name: changed(rng, one[name])}
    if isinstance(one, list) and one and rng.random() < 0.8:
        place = rng.randrange(len(one))
        pick = rng.random()
        if pick < 0.2:
            return one[:place] + one[place + 1 :]
        return [*one, one[place]] if pick < 0.4 else [*one[:place], changed(rng, one[place]), *one[place + 1 :]]
    return value(rng)


def spelled(one: Any) -> bytes:
    """The value as a line of JSON, halves of characters as escapes."""
    return json.dumps(one, ensure_ascii=True).encode()


def bent(rng: Random, raw: bytes) -> bytes:
    """The bytes with some of them changed, cut or doubled."""
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(raw) + 1)
        put = rng.choice((b"", bytes([rng.randrange(256)]), b"\x00", b'"', b"\xff\xfe", b"[" * 50, raw[at:]))
        raw = raw[:at] + put + raw[at + rng.randrange(3) :]
    return raw.replace(b"\n", b" ")
