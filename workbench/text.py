"""Text in English and Chinese: cleaned, folded, cut into terms and sentences; the days and dates in it."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import tomllib
import unicodedata
from calendar import monthrange
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

# --- Numbers as people write them: the one reader for typed fields and for questions ---

WORDS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_NUMERALS = str.maketrans("○两", "〇二")
_SCALES = """1e2 hundred 百|1e3 k thousand 千|1e4 万|1e5 十万|1e6 m million 百万|1e7 千万|1e8 亿|1e9 b bn billion
|1e12 trillion 万亿"""
_KINDS = """1e-3 mg|1 g gram 克|1e3 kg kilo kilogram 公斤 千克|1e6 t ton tonne 吨|453.6 lb pound
1 byte|1e3 kb|1e6 mb|1e9 gb|1e12 tb
1e-3 ms|1 s sec second 秒|60 min minute 分钟 分|3600 h hr hour 小时|86400 day 天|604800 week 周
1e-3 mm 毫米|1e-2 cm 厘米|1 m meter metre 米|1e3 km kilometer kilometre 公里 千米|1609.344 mile
1 m2 m² 平方米|1e4 ha hectare 公顷|1e6 km2 km² 平方公里
1e-3 ml 毫升|1 litre liter 升
1e3 kw 千瓦|1e6 mw 兆瓦
1 cal 卡|1e3 kcal 千卡 大卡|0.239 j 焦|239 kj 千焦
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


def compile_words(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of English and Chinese words: a word ends where Chinese begins."""
    return re.compile(re.sub(r"\n *", "", pattern), re.ASCII | re.IGNORECASE)


def _any(names: dict[str, tuple[str, float]]) -> str:
    return "|".join(
        sorted(filter(re.compile(r"[^$€£¥]+").fullmatch, names), key=len, reverse=True)
    )


UNIT = rf"(?:(?!(?-i:G)(?!B))(?:{_any(SIZES)})(?:(?<=[a-z])s)?(?![a-z]))"
SCALE = rf"(?:(?:(?-i:M)|(?<=[$€£¥]\d)m|(?!m(?![a-z]))(?:{_any(_SCALE_SIZES)}))(?![a-z]))"
DIGITS = r"""(?:\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d{1,18})?|\d{1,3}(?:\.\d{3})+,\d{1,18}|\d{1,3}(?:\.\d{3}){2,}
    |\d{1,3}(?:[ ']\d{3})+(?:[.,]\d{1,18})?|\d{1,18}(?:[.,]\d{1,18})?)(?:e[-+]?\d\d?)?(?![\d_])"""
_AMOUNT = compile_words(
    rf"""[~≈约$€£¥￥]?\s*(?P<open>\()?(?P<number>[-+−]?(?:{DIGITS}|\.\d{{1,18}}))(?P<close>\))?\s*(?P<scale>{SCALE})?
    \s*(?P<unit>(?:[a-z]|[^\x00-\x7f]|[%°$+]).{{0,19}}|/100?)?"""
)
_UNSURE = re.compile(r"[1-9]\d{0,2}\.\d{3}|\d+,\d{1,2}")
"""1.200 and 3,5 depend on who writes them."""


def read_number(text: str) -> int | None:
    """Return a small whole number in digits or in words of either language.

    >>> read_number("12"), read_number("three"), read_number("一百二十"), read_number("二〇一五"), read_number("many")
    (12, 3, 120, 2015, None)
    """
    words = WORDS.split("|")
    if text.lower() in words:
        return words.index(text.lower()) + 1
    if re.fullmatch("[0-9]{1,18}", text):
        return int(text)
    text = text.translate(_NUMERALS)
    if not re.fullmatch("[零〇一二三四五六七八九十百千]{1,18}", text):
        return None
    total = 0
    digit = 0
    for value in map(int, map(unicodedata.numeric, text)):
        if value < 10:
            digit = digit * 10 + value
        else:
            total = total + (digit or 1) * value
            digit = 0
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
        whole_part = whole_part + fraction
        fraction = ""
    number = f"{re.sub('[,.]', '', whole_part)}.{fraction}e{power or 0}"
    return float(number), bool(_UNSURE.fullmatch(body))


def amount(value: object) -> tuple[float, str] | None:
    """Return a typed value as a number with its unit; None for anything else.

    >>> amount(7.5), amount("1,200 EUR"), amount("35 万元"), amount("98.5%"), amount(".5"), amount("v2.0"), amount(True)
    ((7.5, ''), (1200.0, 'EUR'), (350000.0, '元'), (98.5, '%'), (0.5, ''), None, None)
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


# --- Words and sentences ---

CJK = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_FUNCTION_WORDS = "a an the of in on at to and or for from with by as is it its"
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""English words that carry no name and no meaning of their own."""
_MORE_STOP_WORDS = """
    about after again all also am another any anything are be been before being between both but came can come comes
    compare comparison could did difference do does doing done during each either else enjoyed ever every everything
    few find get give had has have having he her here him his how i if into just kind know let like liked list look
    looking loved many may me might more most much must my name neither next no nor not now off only onto other
    others our out over own please recommend said same say see several shall she should show similar so some
    something sort such suggest tell than that their them then there these they this those through too type under
    until up us versus very vs was we were what when where which while who whom whose why will within without would
    yet you your
"""
STOP_WORDS = FUNCTION_WORDS | frozenset(_MORE_STOP_WORDS.split())
"""English function words and words of asking: no search looks for them, and no answer owes them anything."""
STOP_WORDS_ZH = re.compile(
    r"推荐|喜欢|接下来|请问|请|帮我|给我|告诉我?|介绍|一下|列出来?|列举|找出|类似|相似|对比|比较|区别|之间|关于|有关|什么时候|为什么|什么|何时"
    r"|为何|怎么样?|怎样|如何|是不是|是否|有没有|多[长久大高远]|所有|全部|总共|一共|还有|以及|可以|[我你他她它]们"
    r"|(?:[哪几多这那每一][些个位部篇份项人条款本种名家次台件首场道座年月天]|多少[个位部篇份项人条款本种名家次台件首场道座年月天]?)|哪里|哪儿"
    r"|[的了吗呢吧啊么过着地得是有在和与跟及或从到把被对为于这那哪我你您他她它谁也都还又再就才更最很既由几]"
)
"""The same in Chinese: words of asking with their measure words, then single characters."""
_SEGMENT = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")


def titled(title: str) -> str:
    """Return a title in the marks that its own language has for titles.

    >>> titled("茶馆"), titled("《茶馆》"), titled("Hulk")
    ('《茶馆》', '《茶馆》', 'Hulk')
    """
    return f"《{title.strip('《》')}》" if CJK.search(title) else title


def own_table(module: str, name: str = "") -> dict[str, Any]:
    """Return the content of the TOML file next to a module, with this name or that of the module."""
    path = Path(module)
    return tomllib.loads(path.with_name(f"{name or path.stem}.toml").read_text("utf-8"))


def detect_language(text: str) -> str:
    """Return ``"zh"`` when the text holds a Chinese character outside a title in 《》, else ``"en"``.

    >>> detect_language("Who wrote 《茶馆》?"), detect_language("茶馆哪一年出版？"), detect_language("Lao She")
    ('en', 'zh', 'en')
    >>> detect_language("《茶馆》")
    'zh'
    """
    bare = re.sub(r"《[^《》]*》", "", text)
    if CJK.search(bare):
        return "zh"
    return "zh" if CJK.search(text) and not re.search(r"[A-Za-z]{2}", bare) else "en"


_MARK = "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_STORM = re.compile(f"({_MARK}{{30}}){_MARK}+")
"""More marks on one letter than any language writes: composing a million of them would take hours."""


_secrets: dict[str, None] = {}
SHORTEST_SECRET = 8
"""Characters; a shorter text appears by chance in too many places."""


def to_json(value: Any) -> str:
    """Return a value as JSON that people can read: Chinese is not escaped."""
    return json.dumps(value, ensure_ascii=False)


def as_text(value: Any) -> str:
    """Return a text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else to_json(value)


def text_digest(text: str, length: int = 64) -> str:
    """Return hex digits that follow from a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def joined_values(value: Any) -> str:
    """Return a value of a field as text; those of a list with commas between."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def keep_secret(*texts: str) -> None:
    """Mask these texts in everything that is stored from now on, raw or in JSON; of overlapping ones the longest."""
    forms = (
        form
        for text in texts
        if len(text) >= SHORTEST_SECRET
        for form in (text, json.dumps(text)[1:-1])
    )
    # Longest first, because `without_secrets` replaces in this order: a secret that contains another goes first.
    secrets_now = sorted({*_secrets, *forms}, key=lambda form: (-len(form), form))
    _secrets.clear()
    _secrets.update(dict.fromkeys(secrets_now))


def without_secrets(text: str) -> str:
    """Return a text with ``[secret]`` in the place of each secret that the process knows."""
    for secret in _secrets:
        text = text.replace(secret, "[secret]")
    return text


def clean(text: str) -> str:
    """Return the text without NUL and lone surrogates, in Unicode's composed form, for every store and model.

    Without secrets that the process knows, too.
    """
    text = without_secrets(text)
    if text.isascii():
        return text.replace("\x00", " ")
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")
    return unicodedata.normalize("NFC", _STORM.sub(r"\1", text))


_NEVER = "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
"""What Unicode promises to be no character: XML and HTML refuse it."""
_HIDDEN = re.compile(
    f"[{_NEVER}\ufdd0-\ufdef\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
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
    _, old, new, _, rare, usual = (
        (Path(__file__).parent / "traditional.txt").read_text("utf-8").splitlines()
    )
    return str.maketrans(dict(zip(old, new, strict=True))), str.maketrans(
        dict(zip(rare, usual, strict=True))
    )


def simplified(text: str) -> str:
    """Return the text in simplified characters, one for each; everything else is unchanged.

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


fold_word = lru_cache(maxsize=32_768)(fold)
"""``fold`` that remembers the words and names that come back with every question."""


def terms(text: str) -> list[str]:
    """Latin words, folded, and Chinese bigrams (a character alone stays alone): the unit of every keyword index.

    >>> terms("Lao She's 茶馆 (1993)"), terms("Hallström")
    (['lao', "she's", '茶馆', '1993'], ['hallstrom'])
    >>> terms("饮食男女")
    ['饮食', '食男', '男女']
    """
    terms_found: list[str] = []
    for segment in _SEGMENT.findall(fold(text)):
        if CJK.match(segment) and len(segment) > 1:
            terms_found += [segment[i : i + 2] for i in range(len(segment) - 1)]
        else:
            terms_found.append(segment)
    return terms_found


def closest(words: str, lines: Iterable[str]) -> str:
    """Return the line that shares most words of content with these, in any form, the first of equal ones.

    >>> closest("year of release", ["It is green.", "The year was 2003."])
    'The year was 2003.'
    """
    wanted = content_stems(words)
    return max(lines, key=lambda line: len(wanted & content_stems(line)), default="")


_STEMMING = threading.Lock()
"""Snowball's stemmer holds the word that it works on, so two threads in it at once give nonsense or an IndexError."""


@lru_cache(maxsize=100_000)
def stem(term: str) -> str:
    """Return the stem of a term: English words without possessive and ending (Snowball), Chinese unchanged.

    >>> stem("invented"), stem("lee's"), stem("茶馆"), stem("1993")
    ('invent', 'lee', '茶馆', '1993')
    """
    if CJK.match(term) or not term.isascii():
        return term
    with _STEMMING:
        return _stemmer().stemWord(term.removesuffix("'s").replace("'", "")) or term.strip("'")


def stems(text: str) -> frozenset[str]:
    """Return the stems of all words of a text.

    >>> sorted(stems("The boats of 茶馆"))
    ['boat', 'of', 'the', '茶馆']
    """
    return frozenset(map(stem, terms(text)))


def is_stop_word(term: str) -> bool:
    """Check whether a term is a function word or a word of asking.

    >>> is_stop_word("what"), is_stop_word("什么"), is_stop_word("boat")
    (True, True, False)
    """
    return term in STOP_WORDS or bool(STOP_WORDS_ZH.fullmatch(term))


def content_terms(text: str) -> list[str]:
    """Return the distinct terms of a text that carry content, in order.

    >>> content_terms("Who wrote the novel about a dream thief?"), content_terms("推荐几部武侠小说")
    (['wrote', 'novel', 'dream', 'thief'], ['武侠', '侠小', '小说'])
    """
    content = dict.fromkeys(terms(STOP_WORDS_ZH.sub(" ", text)))
    return [
        term
        for term in content
        if term not in STOP_WORDS and (len(term) > 1 or not term.isascii())
    ]


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the terms of a text that carry content.

    >>> sorted(content_stems("The boats of 茶馆"))
    ['boat', '茶馆']
    """
    return frozenset(map(stem, content_terms(text)))


@cache
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")


_UNFINISHED = re.compile(
    r"[(（《][^()（）《》\n]{0,80}[.!?。！？；]$|(?:\b(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|vs|No|Vol|Prof|Gen|Col|Sgt|Capt|Lt|Rev|Bros|Inc|Ltd|Co|Corp|Fig|Eq|Sec|approx|etc|i\.e|e\.g|U\.S|U\.K)"
    r"|\b[A-Z]|(?:^|› )\d{1,3})\.$"
)

_BEGINS = re.compile(r"(?:^|[.!?]\s+|“)([A-Za-z])")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, Chinese and English; initials and titles in brackets are kept whole.

    >>> sentences("It stars John C. Reilly. It is good (Tora! Tora! Tora!)! 《茶馆》很好。真的？")
    ['It stars John C. Reilly.', 'It is good (Tora! Tora! Tora!)!', '《茶馆》很好。', '真的？']
    >>> sentences("It runs from 10 p.m. to 6 a.m. Then it stops."), sentences("Is Yahoo! open? Yes.")
    (['It runs from 10 p.m. to 6 a.m.', 'Then it stops.'], ['Is Yahoo! open?', 'Yes.'])
    """
    # A sentence that continues after an abbreviation or in brackets ends here, which keeps the
    # time linear.
    long = 2_000
    parts = []
    begun = ""
    # who begins sentences with capitals begins none without: "the ? operator", "Yahoo! was"
    capitals = [letter.isupper() for letter in _BEGINS.findall(text)]
    goes_on = "(?![a-z])" if 2 * sum(capitals) >= len(capitals) else ""
    ends = (
        rf"(?<=[.!?]['\"”’)])\s+{goes_on}|(?<=[.!?])\s+(?!(?<=[ap]\.m\.\s)[a-z\d]){goes_on}"
        r"|(?<=[。！？；])|\n+"
    )
    for piece in re.split(ends, text):
        begun = f"{begun} {piece}".strip() if begun else piece.strip()
        if begun and (len(begun) > long or not _UNFINISHED.search(begun[-82:])):
            parts.append(begun)
            begun = ""
    return parts + ([begun] if begun else [])


def unmarked(text: str) -> str:
    """Return a text without the numbers of what it cites.

    >>> unmarked("Moss Mill was built in 1821 [1][3].")
    'Moss Mill was built in 1821.'
    """
    return re.sub(r"\s?\[\d+\]", "", text)


def closed_up(key: str) -> str:
    """Return a name's key in its written form: without the spaces between Chinese characters.

    >>> closed_up("霸 王 别 姬"), closed_up("farewell my concubine")
    ('霸王别姬', 'farewell my concubine')
    """
    return re.sub(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])", "", key)


# --- Days in a text: 20260810, 2026-08-10, 10 August 2026, August 10th, 8月10日. Only days that a calendar has ---

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTHS = [month[:3] for month in MONTHS]
MONTH_NAMES = "|".join([*MONTHS, "sept", *_MONTHS])
YEAR = r"(?:1[5-9]|20)\d\d"
_DAY_FORMS = [
    rf"(?<!\d)(?P<y>{YEAR})(?P<m>[01]\d)(?P<d>[0-3]\d)(?!\d)",
    rf"(?<!\d)(?P<y>{YEAR})([-/.])(?P<m>[01]?\d)\2(?P<d>[0-3]?\d)(?!\d)",
    rf"(?<![\d./-])(?P<d>1[3-9]|2\d|3[01])([./-])(?P<m>[01]?\d)\2(?P<y>{YEAR})(?!\d)",
    rf"(?<![\d./-])(?P<m>[01]?\d)([/-])(?P<d>1[3-9]|2\d|3[01])\2(?P<y>{YEAR})(?!\d)",
    rf"(?<![\d./-])(?P<d>[0-3]?\d)\.(?P<m>[01]?\d)\.(?P<y>{YEAR})(?!\d)",
    rf"(?:(?P<y>{YEAR})年)?(?P<m>[01]?\d)月(?P<d>[0-3]?\d)[日号號]",
    rf"\b(?P<d>[0-3]?\d)(?:st|nd|rd|th)?(?: of)? (?P<m>{MONTH_NAMES})\b\.?(?:,? (?P<y>{YEAR})\b)?",
    rf"\b(?P<m>{MONTH_NAMES})\.? (?P<d>[0-3]?\d)(?:st|nd|rd|th)?\b(?:,? (?P<y>{YEAR})\b)?",
]
_PATTERNS = [re.compile(pattern, re.I) for pattern in _DAY_FORMS]
_LONGEST = 40
"""Characters; a longer value is prose that mentions a day."""


class Day(NamedTuple):
    """A day; ``year`` is 0 where none is said, and is then any."""

    year: int
    month: int
    day: int

    def search_terms(self) -> str:
        """Return all written forms of the day: what to search for.

        >>> Day(2026, 8, 1).search_terms(), Day(0, 8, 1).search_terms()
        ('20260801 2026 08 01 1 aug august 8月1日', '08 01 1 aug august 8月1日')
        """
        year, month, day = self
        both = f"{month:02} {day:02}"
        numbers = f"{year}{month:02}{day:02} {year} {both}" if year else both
        return f"{numbers} {day} {_MONTHS[month - 1]} {MONTHS[month - 1]} {month}月{day}日"


def days(text: str) -> list[tuple[int, int, Day]]:
    """``(start, end, day)`` of each, in the order of the text.

    >>> [day for _, _, day in days("on 20260810, May 8th, 2023 and January 6th")]
    [Day(year=2026, month=8, day=10), Day(year=2023, month=5, day=8), Day(year=0, month=1, day=6)]
    >>> days("2026年8月10日和 1:56 pm on 8 May, 2023")[0], days("20261399, 31 June, in May 2020")
    ((0, 10, Day(year=2026, month=8, day=10)), [])
    """
    days_found: list[tuple[int, int, Day]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            day = Day(int(match["y"] or 0), month_number(match["m"]), int(match["d"]))
            free = all(
                match.end() <= start or end <= match.start() for start, end, _ in days_found
            )
            # in a leap year, as the year may not be said
            if free and 1 <= day.month <= 12 and 1 <= day.day <= monthrange(2000, day.month)[1]:
                days_found.append((match.start(), match.end(), day))
    return sorted(days_found)


def month_number(text: str) -> int:
    """Return the number of a month from its name or digits."""
    return int(text) if text.isdecimal() else _MONTHS.index(fold(text)[:3]) + 1


@lru_cache(maxsize=32_768)
def read_day(value: str) -> Day | None:
    """Return the day that a typed value begins with or consists of; None without one, or with several.

    >>> read_day("20260810_18:00"), read_day("1993")
    (Day(year=2026, month=8, day=10), None)
    """
    match = days(value)
    return match[0][2] if len(match) == 1 and len(value) <= _LONGEST else None


_YEAR_ALONE = re.compile(rf"({YEAR})\s*年?")
_MONTH_ALONE = [
    re.compile(rf"(?<!\d)(?P<y>{YEAR})(?:[-/.]|年\s*)(?P<m>0?[1-9]|1[0-2])(?!\d)\s*月?"),
    re.compile(rf"(?<![a-z])(?P<m>{MONTH_NAMES})\.?,?(?: of)? (?P<y>{YEAR})\b", re.I),
]

_YEAR_WITHIN = re.compile(
    r"(?<!more than )(?<!less than )(?<!fewer than )(?<!greater than )(?<!over )(?<!under )(?<!at least )"
    r"(?<!at most )(?<!exactly )(?<![超不]过)(?<!至[少多])(?<!不到)(?<![大小多少高低]于)"
    rf"(?<![\d.,$€£¥#-])(?<!\d[–—~])(?P<y>{YEAR})"
    rf"(?:\s*年(?!代)|(?![\d年.,]\d|\d|['’]?s\b|\s*(?:(?i:{UNIT})|[万个册家])))"
    rf"|(?<=\d{{4}}[-–—~])(?P<z>{YEAR})年?(?!\d)"
)
_ZH_YEAR = re.compile("[一二][〇零○一二三四五六七八九]{3}(?=年)")
_ZH_DIGITS = str.maketrans("〇零○一二三四五六七八九", "000123456789")


def dates(text: str) -> list[tuple[int, int, str]]:
    """``(start, end, date)`` of each day, month and year with its year, in the order of the text, in ISO form.

    >>> [date for _, _, date in dates("1998–2004, in March 2010, 2012年5月起, 二〇一五年, on 3 May 2016, 2005 people")]
    ['1998', '2004', '2010-03', '2012-05', '2015', '2016-05-03']
    """
    text = _ZH_YEAR.sub(lambda match: match[0].translate(_ZH_DIGITS), text)
    spans = [
        (s, e, f"{day.year}-{day.month:02}-{day.day:02}") for s, e, day in days(text) if day.year
    ]
    for pattern in (*_MONTH_ALONE, _YEAR_WITHIN):
        for match in pattern.finditer(text):
            if all(match.end() <= start or end <= match.start() for start, end, _ in spans):
                groups = match.groupdict()
                month = f"-{month_number(groups['m']):02}" if "m" in groups else ""
                spans.append((*match.span(), f"{groups['y'] or groups['z']}{month}"))
    return sorted(spans)


def iso(value: object) -> str:
    """Return a typed value that is a date, in ISO form of its own precision; "" for anything else.

    >>> iso("10 August 2026"), iso("2024年3月"), iso(1993), iso("20260810_18:00"), iso("1993 papers"), iso(93)
    ('2026-08-10', '2024-03', '1993', '2026-08-10', '', '')
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    text = str(value).strip()
    if len(text) > _LONGEST or not text[:1].isalnum():
        return ""
    if match := _YEAR_ALONE.fullmatch(text):
        return match[1]
    for pattern in _MONTH_ALONE:
        if match := pattern.fullmatch(text):
            return f"{match['y']}-{month_number(match['m']):02}"
    day = read_day(text)
    return (
        f"{day.year}-{day.month:02}-{day.day:02}" if day and day.year and _is_date(text) else ""
    )


def _is_date(text: str) -> bool:
    """Check whether a text consists of a day and at most its time, and is not a sentence that mentions one."""
    start, end, _ = days(text)[0]
    return not re.search(r"[^\W\d_]{4,}", text[:start] + text[end:])


def mentions(text: str, name: str) -> bool:
    """Check whether a folded text has a folded name, as whole words where the script has words.

    >>> mentions("the hulk is green", "hulk"), mentions("a hulking man", "hulk"), mentions("看茶馆吗", "茶馆")
    (True, False, True)
    """
    edges = (r"(?<!\w)" if name[:1].isascii() else "", r"(?!\w)" if name[-1:].isascii() else "")
    return name in text and re.search(edges[0] + re.escape(name) + edges[1], text) is not None
