"""Numbers as people write them, in English and Chinese: the one reader for typed fields and for questions."""

from __future__ import annotations

import re

WORDS = "one two three four five six seven eight nine ten eleven twelve".split()
ZH_DIGITS = "〇一二三四五六七八九"
_ZH = {**{sign: value for value, sign in enumerate(ZH_DIGITS)}, "零": 0, "两": 2}
_ZH_TENS = {"十": 10, "百": 100, "千": 1000}
_SCALES = {
    "hundred": 1e2, "k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9, "trillion": 1e12,
    "百": 1e2, "千": 1e3, "万": 1e4, "十万": 1e5, "百万": 1e6, "千万": 1e7, "亿": 1e8, "万亿": 1e12,
}  # fmt: skip
SCALE = r"""(?:hundred|thousand|[mb]illion|trillion|bn|k|(?-i:M)|(?<=[$€£¥]\d)m|(?<=[$€£¥]\d[\d.]\d)m)(?![a-z])
    |万亿|[十百千]?万|[百千亿]"""
DIGITS = r"""(?:\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d{1,18})?|\d{1,3}(?:\.\d{3})+,\d{1,18}|\d{1,3}(?:\.\d{3}){2,}
    |\d{1,3}(?:[\ ']\d{3})+(?:[.,]\d{1,18})?|\d{1,18}(?:[.,]\d{1,18})?)(?:e[-+]?\d\d?)?(?![\d_])"""
UNIT = r"""(?:percent|per\ cent|km/h|mph|kilomet(?:er|re)s?|met(?:er|re)s?|[kcm]?m|miles?|feet|foot|ft|inch(?:es)?
    |kilograms?|kilos?|grams?|[km]?g|tonnes?|tons?|pounds?|lbs?|[kmgt]b|bytes?|hours?|hrs?|h|minutes?|mins?|seconds?|secs?
    |m?s|days?|weeks?|months?|years?|usd|eur|gbp|cny|rmb|dollars?|euros?|yuan|people|persons?|pages?|words?)(?![a-z])
    |%|°[CF]?|美元|欧元|英镑|日元|人民币|元|块|公里|千米|厘米|毫米|米|公斤|千克|克|吨|小时|分钟|分|秒|天|日|周|个?月|年|岁|人|页|字|度"""
MEASURE = re.compile(rf"\ ?(?:{UNIT})", re.VERBOSE | re.IGNORECASE | re.ASCII)
_AMOUNT = re.compile(
    rf"[~≈约$€£¥￥]?\s*(?P<open>\()?(?P<number>[-+−]?{DIGITS})(?P<close>\))?\s*(?P<scale>{SCALE})?\s*"
    r"(?P<unit>[^\W\d_].{0,19}|[%‰°$€£¥￥].{0,9})?",
    re.VERBOSE | re.IGNORECASE,
)
_UNSURE = re.compile(r"[1-9]\d{0,2}\.\d{3}|\d+,\d{1,2}")
"""1.200 and 3,5 depend on who writes them."""


def whole(text: str) -> int | None:
    """Return a small whole number in digits or in words of either language.

    >>> whole("12"), whole("three"), whole("一百二十"), whole("many")
    (12, 3, 120, None)
    """
    if text.lower() in WORDS:
        return WORDS.index(text.lower()) + 1
    if re.fullmatch("[0-9]{1,18}", text):
        return int(text)
    total, digit = 0, 0
    for sign in text:
        if sign in _ZH_TENS:
            total, digit = total + (digit or 1) * _ZH_TENS[sign], 0
        elif sign in _ZH:
            digit = digit * 10 + _ZH[sign]
        else:
            return None
    return total + digit if text else None


def scaled(scale: str | None) -> float:
    """Return what a word of size multiplies by."""
    return _SCALES[scale.lower()] if scale else 1.0


def decimal(text: str) -> tuple[float, bool]:
    """Return the value of digits, and whether another reading is as likely.

    >>> decimal("1,200.5"), decimal("1.200,5"), decimal("1 200"), decimal("1.200"), decimal("-1e3")
    ((1200.5, False), (1200.5, False), (1200.0, False), (1.2, True), (-1000.0, False))
    """
    body, _, power = re.sub("[ ']", "", text.replace("−", "-").lower()).partition("e")
    last = max(body.rfind(","), body.rfind("."))
    mark, fraction = body[last : last + 1], body[last + 1 :]
    grouped = body.count(mark) > 1 or (mark == "," and len(fraction) == 3 and "." not in body)
    if last < 0 or grouped:
        number = re.sub("[,.]", "", body)
    else:
        number = f"{re.sub('[,.]', '', body[:last])}.{fraction}"
    return float(f"{number}e{power or 0}"), bool(_UNSURE.fullmatch(body))


def amount(value: object) -> tuple[float, str] | None:
    """Return a typed value as a number with its unit; None for anything else.

    >>> amount(7.5), amount("1,200 EUR"), amount("35 万元"), amount("98.5%"), amount("v2.0"), amount(True)
    ((7.5, ''), (1200.0, 'EUR'), (350000.0, '元'), (98.5, '%'), None, None)
    >>> amount("(300)"), amount("1.200,50 €"), amount("03/04/2024"), amount("17.06.2024")
    ((-300.0, ''), (1200.5, '€'), None, None)
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if not isinstance(value, str):
        return float(value), ""
    match = _AMOUNT.fullmatch(value.strip().replace("萬", "万").replace("億", "亿"))
    if not match or bool(match["open"]) != bool(match["close"]):
        return None
    number = decimal(match["number"])[0] * scaled(match["scale"])
    return -number if match["open"] else number, (match["unit"] or "").strip()
