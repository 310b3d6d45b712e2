"""Numbers as people write them, in English and Chinese: the one reader for typed fields and for questions."""

from __future__ import annotations

import re

WORDS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_ZH = dict(zip("零〇○一二三四五六七八九两", [0, 0, 0, *range(1, 10), 2], strict=True))
_ZH_TENS = {"十": 10, "百": 100, "千": 1000}
_SCALES = """1e2 hundred 百|1e3 k thousand 千|1e4 万|1e5 十万|1e6 m million 百万|1e7 千万|1e8 亿|1e9 bn billion
|1e12 trillion 万亿"""
_KINDS = """1e-3 mg|1 g gram 克|1e3 kg kilo kilogram 公斤 千克|1e6 t ton tonne 吨|453.6 lb pound
1 byte|1e3 kb|1e6 mb|1e9 gb|1e12 tb
1e-3 ms|1 s sec second 秒|60 min minute 分钟 分|3600 h hr hour 小时|86400 day 天|604800 week 周
1e-3 mm 毫米|1e-2 cm 厘米|1 m meter metre 米|1e3 km kilometer kilometre 公里 千米|1609.344 mile
1 month 个月 月|12 year 年
1 元 块 人民币 yuan cny rmb ¥
1 $ us$ usd dollar 美元
1 € eur euro 欧元
1 £ gbp 英镑
1 % percent
1 people person 人
1 page 页
1 word 字
1 岁
1 °c"""


def _table(lines: str) -> dict[str, tuple[str, float]]:
    parts = ((line, *part.split()) for line in lines.splitlines() for part in line.split("|"))
    return {name: (line, float(size)) for line, size, *names in parts for name in names}


SIZES = _table(_KINDS)
"""Unit -> its kind, and how many of the first unit of that kind it is."""
_SCALE_SIZES = _table(_SCALES.replace("\n", ""))


def written(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of English and Chinese words: a word ends where Chinese begins."""
    return re.compile(re.sub(r"\n *", "", pattern), re.ASCII | re.IGNORECASE)


def _any(names: dict[str, tuple[str, float]]) -> str:
    return "|".join(sorted(filter(re.compile(r"[^$€£¥]+").fullmatch, names), key=len, reverse=True))


UNIT = rf"(?:(?!(?-i:G)(?!B))(?:{_any(SIZES)})(?:(?<=[a-z])s)?(?![a-z]))"
SCALE = rf"(?:(?:(?-i:M)|(?<=[$€£¥]\d)m|(?!m(?![a-z]))(?:{_any(_SCALE_SIZES)}))(?![a-z]))"
DIGITS = r"""(?:\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d{1,18})?|\d{1,3}(?:\.\d{3})+,\d{1,18}|\d{1,3}(?:\.\d{3}){2,}
    |\d{1,3}(?:[ ']\d{3})+(?:[.,]\d{1,18})?|\d{1,18}(?:[.,]\d{1,18})?)(?:e[-+]?\d\d?)?(?![\d_])"""
_AMOUNT = written(
    rf"""[~≈约$€£¥￥]?\s*(?P<open>\()?(?P<number>[-+−]?{DIGITS})(?P<close>\))?\s*(?P<scale>{SCALE})?
    \s*(?P<unit>(?:[a-z]|[^\x00-\x7f]|[%°$+]).{{0,19}}|/100?)?"""
)
_UNSURE = re.compile(r"[1-9]\d{0,2}\.\d{3}|\d+,\d{1,2}")
"""1.200 and 3,5 depend on who writes them."""


def whole(text: str) -> int | None:
    """Return a small whole number in digits or in words of either language.

    >>> whole("12"), whole("three"), whole("一百二十"), whole("二〇一五"), whole("many")
    (12, 3, 120, 2015, None)
    """
    words = WORDS.split("|")
    if text.lower() in words:
        return words.index(text.lower()) + 1
    if re.fullmatch("[0-9]{1,18}", text):
        return int(text)
    if not re.fullmatch(f"[{''.join(_ZH)}十百千]{{1,18}}", text):
        return None
    total, digit = 0, 0
    for sign in text:
        if sign in _ZH:
            digit = digit * 10 + _ZH[sign]
        else:
            total, digit = total + (digit or 1) * _ZH_TENS[sign], 0
    return total + digit


def scaled(number: float, scale: str | None) -> float:
    """Return a number times its word of size: 3, "million"."""
    return number * _SCALE_SIZES[scale.lower()][1] if scale else number


def decimal(text: str) -> tuple[float, bool]:
    """Return the value of digits, and whether another reading is as likely.

    >>> decimal("1,200.5"), decimal("1.200,5"), decimal("1 200"), decimal("1.200"), decimal("-1e3")
    ((1200.5, False), (1200.5, False), (1200.0, False), (1.2, True), (-1000.0, False))
    """
    body, _, power = re.sub("[ ']", "", text.replace("−", "-").lower()).partition("e")
    whole_part, mark, fraction = re.fullmatch(r"(.*?)(?:([,.])(\d*))?", body).groups("")  # type: ignore[union-attr]
    grouped = mark in whole_part if mark else False
    if grouped or (mark == "," and len(fraction) == 3 and "." not in whole_part):
        whole_part, fraction = whole_part + fraction, ""
    number = f"{re.sub('[,.]', '', whole_part)}.{fraction}e{power or 0}"
    return float(number), bool(_UNSURE.fullmatch(body))


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
    number = scaled(decimal(match["number"])[0], match["scale"])
    return -number if match["open"] else number, (match["unit"] or "").strip()
